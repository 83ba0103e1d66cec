"""``algorithm="serial"``: the papers' sweep, one row after the other, evaluated together with the same result.

Old centres stand still during a pass and new ones are only appended. So all rows are compared with the old centres at
once; only rows beyond their threshold there can open a cluster, and they are looked at in order; then every row is
compared with the centres opened before its turn. Labels equal the one-row-at-a-time algorithm.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.assign import Centres, assign, exact_costs, exact_own, nearest_spread, own_cost
from kfree.inference.clusters.grow import openers_in_order, penalised, rounding_scale, update
from kfree.inference.clusters.table import Memory, Table
from kfree.inference.loop import Budget, Info, Outcome, run


class Swept(NamedTuple):
    """State between two passes."""

    centres: Centres
    rng: np.random.Generator


class Sweep(NamedTuple):
    """How the rows are visited."""

    lam: float
    order: str | Array  # "random" (a fresh permutation per pass), "index", "content", or a permutation
    tol: float
    max_clusters: float = np.inf


def fit_serial(
    table: Table,
    centres: Centres,
    memory: Memory,
    sweep: Sweep,
    budget: Budget,
    *,
    rng: np.random.Generator,
    max_iter: int,
) -> Outcome:
    """Sweep until a pass changes nothing; the outcome's state holds the centres."""

    def step(state: Swept) -> tuple[Swept, Info]:
        return _pass(table, state, memory, sweep)

    return run(step, Swept(centres, rng), budget, phase="all rows", tol=sweep.tol, max_iter=max_iter)


def _pass(table: Table, state: Swept, memory: Memory, sweep: Sweep) -> tuple[Swept, Info]:
    before = memory.labels.copy()
    sums = assign(table, state.centres, memory, sweep.lam)
    openers, fresh = open_in_order(table, state.centres, memory, sweep, visit(table, sweep.order, state.rng))
    if openers.size:
        centres = Centres(table.geometry, np.concatenate([state.centres.mean, fresh.mean]))
        weight = table.rows.weights(slice(0, table.n))
        total, mass = table.rows.sums(memory.labels, centres.mean.shape[0])
        cost = float((weight * np.where(weight > 0, memory.cost, 0.0)).sum())
        changed = float(weight[before != memory.labels].sum())
        sums = sums._replace(total=total, mass=mass, cost=cost, changed=changed)
    else:
        centres = state.centres
    objective = penalised(table, centres, sums, sweep.lam)
    share = sums.changed / table.rows.total_weight()
    scale = rounding_scale(table, centres, sums)
    info = Info(objective, scale, share, openers.size, int((sums.mass > 0).sum()))
    return Swept(update(table, state.centres, sums.total, sums.mass, memory, sums.reach), state.rng), info


def visit(table: Table, order: str | Array, rng: np.random.Generator) -> Array:
    """The order in which a pass visits the rows; "content" depends on nothing but the rows themselves."""
    if not isinstance(order, str):
        return np.asarray(order)
    if order == "content":
        return np.argsort(table.hashes, kind="stable")
    return rng.permutation(table.n) if order == "random" else np.arange(table.n)


def open_in_order(table: Table, centres: Centres, memory: Memory, sweep: Sweep, order: Array) -> tuple[Array, Centres]:
    """Rows that open a cluster when their turn comes, and their centres; labels and costs of all rows follow."""
    beyond = np.flatnonzero(table.excess(memory.cost, sweep.lam) > 0)
    none = np.empty(0, np.intp)
    room = sweep.max_clusters - centres.mean.shape[0]
    if not beyond.size or room <= 0:
        return none, centres
    turn = np.empty(table.n, np.intp)
    turn[order] = np.arange(table.n)
    candidates = beyond[np.argsort(turn[beyond])]
    chosen = openers_in_order(table, candidates, table.threshold(sweep.lam, candidates))
    openers = candidates[chosen[: int(min(room, chosen.size))]]
    fresh = Centres(table.geometry, table.singletons(openers))
    contested = _contested(table, memory, centres, fresh)
    contested = contested[np.argsort(turn[contested])]
    K = centres.mean.shape[0]
    stops = np.searchsorted(turn[contested], [*turn[openers], table.n])
    for count, (start, stop) in enumerate(pairwise(stops), start=1):
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
