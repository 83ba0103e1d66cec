"""``algorithm="serial"``: the papers' sweep, one row after the other, evaluated together with the same result.

Old centres stand still during a pass and new ones are only appended. So all rows are compared with the old centres at
once; only rows beyond their threshold there can open a cluster, and they are looked at in order; then every row is
compared with the centres opened before its turn. Labels equal the one-row-at-a-time algorithm.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.assign import nearest_spread
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.exact import exact_costs, exact_own, own_cost
from kfree.inference.clusters.grow import penalised, rounding_scale, update
from kfree.inference.clusters.labelling import Clustering, LocalLabelling
from kfree.inference.clusters.openers import openers_in_order
from kfree.inference.clusters.table import Memory, Table
from kfree.inference.goal import Goal, Order
from kfree.inference.loop import Budget, Info, Outcome, run


class SerialState(NamedTuple):
    """State between two passes."""

    centres: Centres
    rng: np.random.Generator


def fit_serial(
    labelling: LocalLabelling, centres: Centres, goal: Goal, budget: Budget, rng: np.random.Generator
) -> Outcome:
    """Sweep until a pass changes nothing; the outcome's state is a Clustering."""

    def step(state: SerialState) -> tuple[SerialState, Info]:
        return serial_pass(labelling, state, goal, budget)

    start = SerialState(centres, rng)
    outcome = run(step, start, budget, phase="all rows", tol=goal.tol, max_iter=goal.max_iter)
    return outcome._replace(state=Clustering(outcome.state.centres, labelling))


def serial_pass(labelling: LocalLabelling, state: SerialState, goal: Goal, budget: Budget) -> tuple[SerialState, Info]:
    """All rows in order, with the result of one after the other."""
    table, memory = labelling.table, labelling.memory
    before = memory.labels.copy()
    sums = labelling.assign(state.centres, goal.lam)
    openers, fresh = open_in_order(table, state.centres, memory, goal, visit(table, goal.order, state.rng), budget)
    if openers.size:
        centres = Centres(table.geometry, np.concatenate([state.centres.mean, fresh.mean]))
        weight = table.rows.weights(slice(0, table.n))
        memory.sums = table.rows.exact_sums(memory.labels, centres.mean.shape[0])
        total, mass = memory.sums.values()
        cost = float((weight * np.where(weight > 0, memory.cost, 0.0)).sum())
        changed = float(weight[before != memory.labels].sum())
        sums = sums._replace(total=total, mass=mass, cost=cost, changed=changed)
    else:
        centres = state.centres
    objective = penalised(table.geometry, centres, sums, goal.lam)
    share = sums.changed / labelling.total_weight
    scale = rounding_scale(table.geometry, labelling.total_weight, centres, sums)
    info = Info(objective, scale, share, openers.size, int((sums.mass > 0).sum()))
    if budget.spent:
        memory.forget()  # beside many new centres, to bring the bounds up to date takes as long as a pass
    return SerialState(update(labelling, state.centres, sums.total, sums.mass, sums.reach), state.rng), info


def visit(table: Table, order: Order | Array, rng: np.random.Generator) -> Array:
    """The rows that a pass visits, in their order."""
    if not isinstance(order, Order):
        return order
    if order is Order.CONTENT:
        return np.argsort(table.hashes, kind="stable")
    return rng.permutation(table.n) if order is Order.RANDOM else np.arange(table.n)


def open_in_order(
    table: Table, centres: Centres, memory: Memory, goal: Goal, order: Array, budget: Budget
) -> tuple[Array, Centres]:
    """Rows that open a cluster when their turn comes, and their centres; labels and costs of all rows follow.

    When the time is up rows whose turn has not come stay where they are.
    """
    beyond = np.flatnonzero(table.excess(memory.cost, goal.lam) > 0)
    none = np.empty(0, np.intp)
    room = goal.max_clusters - centres.mean.shape[0]
    if not beyond.size or room <= 0:
        return none, centres
    turn = np.empty(table.n, np.intp)
    turn[order] = np.arange(table.n)
    candidates = beyond[np.argsort(turn[beyond])]
    chosen = openers_in_order(table, candidates, table.threshold(goal.lam, candidates), budget)
    openers = candidates[chosen[: int(min(room, chosen.size))]]
    fresh = Centres(table.geometry, table.singletons(openers))
    contested = none if budget.spent else _contested(table, memory, centres, fresh)
    contested = contested[np.argsort(turn[contested])]
    K = centres.mean.shape[0]
    stops = np.searchsorted(turn[contested], [*turn[openers], table.n])
    for count, (start, stop) in enumerate(pairwise(stops), start=1):
        if budget.spent:
            break
        known = fresh.some(slice(count))
        rows = contested[start:stop]
        rows = rows[rows != openers[count - 1]]
        if rows.size:
            _prefer(table, rows, known, centres, memory)
    memory.labels[openers] = K + np.arange(openers.size)
    memory.cost[openers] = own_cost(table, openers, fresh, np.arange(openers.size, dtype=np.int32))
    return openers, fresh


def _contested(table: Table, memory: Memory, old: Centres, fresh: Centres) -> Array:
    """Rows that may be nearer to some fresh centre than to their own."""

    def of_span(span: slice) -> Array:
        base = table.base[span]
        found, _ = table.rows.nearest(span, base, fresh.affine, norms=table.norms())
        margin = 2 * found.slack + 1e-10 * (base + old.affine.size)
        return span.start + np.flatnonzero(~(base + found.least > memory.cost[span] + margin))

    return np.concatenate(list(table.rows.each(of_span)))


def _prefer(table: Table, rows: Array, fresh: Centres, old: Centres, memory: Memory) -> None:
    """Give rows to a fresh centre that is strictly nearer than their old one."""
    found = nearest_spread(table, rows, fresh)
    new_cost = own_cost(table, rows, fresh, found.labels)
    margin = found.slack + 1e-10 * (table.base[rows] + old.affine.size)
    with np.errstate(invalid="ignore"):
        gap = memory.cost[rows] - new_cost
    unsure = np.flatnonzero(np.abs(gap) <= margin)
    if unsure.size:
        sure_old = exact_own(table, rows[unsure], old.mean, memory.labels[rows[unsure]])
        gap[unsure] = sure_old - exact_costs(table, rows[unsure], fresh.mean).min(axis=1)
    wins = np.flatnonzero(gap > 0)
    memory.labels[rows[wins]] = old.mean.shape[0] + found.labels[wins]
    memory.cost[rows[wins]] = new_cost[wins]
