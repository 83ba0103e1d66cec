"""Hard HDP: clusters shared by groups (Kulis & Jordan 2012, Algorithm 2, for any family).

    J = sum w D(x, centre) + prior + lam_local * (local clusters) + lam_global * (global clusters)

A pass has three parts: rows choose their clusters, local clusters choose their global ones, centres move. J, with the
clusters in use counted, rises in none of them.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.assign import Centres, assign, loosen, own_cost
from kfree.inference.clusters.fit import canonical_order
from kfree.inference.clusters.grow import rounding_scale, update
from kfree.inference.clusters.table import Memory, Table
from kfree.inference.loop import Budget, Info, ObjectiveRose, Outcome, run
from kfree.inference.shared.groups import (
    Groups,
    Held,
    Lams,
    find_slots,
    group_rows,
    held_by_all,
    held_by_none,
    held_in_use,
    held_of_labels,
)
from kfree.inference.shared.local_clusters import move_parts
from kfree.inference.shared.row_choices import LARGEST_BLOCK, MOST_ENTRIES, make_block, settle_exactly, visit_points
from kfree.kernels import kernels
from kfree.rows.threads import in_order

# Rounds of the closing assignment: each lowers the objective, and hardly any fit needs more than two.
_CLOSING = 100


class Plan(NamedTuple):
    """What the user chose, resolved."""

    lams: Lams
    search: str  # "points" or "full"
    order: str | Array
    tol: float
    max_iter: int
    max_clusters: float
    price: bool = False  # the penalties were found together with the start: its number of clusters is meant


class Shared(NamedTuple):
    """State between two passes."""

    centres: Centres
    labels: Array  # (n,) int32, global cluster of each row; -1 for rows without weight, and before the first pass
    held: Held
    rng: np.random.Generator


class Fitted(NamedTuple):
    """A finished fit, clusters in canonical order."""

    mean: Array  # (K, p) in the geometry of the table
    total: Array  # (K, p) weighted sums of rows
    mass: Array  # (K,) weights
    labels: Array  # (n,) int32
    held: Held  # clusters of each group, by number
    penalty: float  # what a cluster that its group lacks costs a row more, when rows are predicted
    inertia: float
    objective: float
    trace: list[float]
    n_iter: int
    converged: bool


def start_state(mean: Array, table: Table, groups: Groups, *, given: bool, rng: np.random.Generator) -> Shared:
    """Every group holds the global centre; or given centres, which no group holds yet."""
    held = held_by_none(groups.n_groups) if given else held_by_all(groups.n_groups)
    labels = np.full(table.n, -1, np.int32)
    return Shared(Centres(table.geometry, mean), labels, held, rng)


def penalised(table: Table, centres: Centres, cost: float, lams: Lams, n_local: int, used: Array) -> float:
    """J from the costs of the rows, the number of local clusters and the global ones in use."""
    prior = float(table.geometry.prior_costs(centres.mean, centres.affine)[used].sum())
    top = lams.top * used.sum() if np.isfinite(lams.top) else 0.0
    return cost + prior + lams.local * n_local + float(top)


def total_cost(table: Table, centres: Centres, labels: Array) -> float:
    """Weighted divergences of the rows from the centres of their labels."""

    def of_span(span: slice) -> float:
        weight = table.rows.weights(span)
        cost = own_cost(table, span, centres, np.maximum(labels[span], 0))
        return float((weight * np.where(weight > 0, cost, 0.0)).sum())

    return float(sum(table.rows.each(of_span)))


def masses(table: Table, groups: Groups, labels: Array, K: int) -> Array:
    """Weight of each global cluster."""
    return np.bincount(labels[groups.rows], table.rows.weights(groups.rows), K)


class _Readings:
    """The objective after each part of a pass; a rise is an error."""

    def __init__(self, table: Table, lams: Lams):
        self.table, self.lams, self.last = table, lams, np.inf

    def add(self, part: str, centres: Centres, cost: float, n_local: int, used: Array, scale: float) -> float:
        objective = penalised(self.table, centres, cost, self.lams, n_local, used)
        if objective > self.last + 1e-9 * (abs(self.last) + scale):
            raise ObjectiveRose(
                f"The objective rose from {self.last!r} to {objective!r} when {part}. "
                "This is a bug in kfree; please report it with the data."
            )
        self.last = objective
        return objective


def three_part_pass(
    table: Table, groups: Groups, state: Shared, memory: Memory, plan: Plan, budget: Budget | None = None
) -> tuple[Shared, Info, list[float]]:
    """One pass; also returns the objective after each of its parts."""
    lams, old, K = plan.lams, state.centres, state.centres.mean.shape[0]
    sums = assign(table, old, memory, lams.both)
    scale = rounding_scale(table, old, sums)
    visited = visit_points(
        table,
        groups,
        state.held,
        old,
        memory,
        lams,
        order=plan.order,
        rng=state.rng,
        most=plan.max_clusters,
        budget=budget,
    )
    centres = _with(table, old, visited.fresh)
    labels, K1 = visited.labels, centres.mean.shape[0]
    held = held_in_use(groups, visited.held, labels, K1)
    used = masses(table, groups, labels, K1) > 0
    readings = _Readings(table, lams)
    cost = sums.cost + _strayed(table, groups, centres, memory, labels)
    values = [readings.add("rows chose", centres, cost, held.member.size, used, scale)]
    # an empty global cluster that was taken up here would cost lam_global unseen: only those in use take part
    labels, held, fresh, gain = _second_part(table, groups, labels, held, centres, used, plan)
    centres = _with(table, centres, fresh)
    total, mass = table.rows.sums(labels, centres.mean.shape[0])
    values.append(readings.add("local clusters chose", centres, cost - gain, held.member.size, mass > 0, scale))
    changed = float(table.rows.weights(groups.rows)[(labels != state.labels)[groups.rows]].sum())
    after = update(table, old, total, mass, memory, sums.reach)
    name = (np.cumsum(mass > 0) - 1).astype(np.int32)
    labels = np.where(labels >= 0, name[labels], -1).astype(np.int32)
    held = Held(held.start, name[held.member])
    everyone = np.ones(after.mean.shape[0], bool)
    cost = total_cost(table, after, labels)
    values.append(readings.add("centres moved", after, cost, held.member.size, everyone, scale))
    opened = int((mass[K:] > 0).sum())
    info = Info(values[-1], scale, changed / table.rows.total_weight(), opened, everyone.size)
    return Shared(after, labels, held, state.rng), info, values


def _with(table: Table, centres: Centres, fresh: Array) -> Centres:
    return Centres(table.geometry, np.concatenate([centres.mean, fresh])) if fresh.shape[0] else centres


def _strayed(table: Table, groups: Groups, centres: Centres, memory: Memory, labels: Array) -> float:
    """What rows pay for not being with their nearest old centre; less than nothing where a new one is nearer."""
    rows = groups.rows[labels[groups.rows] != memory.labels[groups.rows]]
    with np.errstate(invalid="ignore"):
        more = own_cost(table, rows, centres, labels[rows]) - memory.cost[rows]
    return float((table.rows.weights(rows) * more).sum())


def _second_part(
    table: Table, groups: Groups, labels: Array, held: Held, centres: Centres, used: Array, plan: Plan
) -> tuple[Array, Held, Array, float]:
    """Local clusters choose among the global ones in use; numbers of unused ones stay unused."""
    K = used.size
    slot = find_slots(groups, held, labels, K)
    alive = np.flatnonzero(used)
    name = (np.cumsum(used) - 1).astype(np.int32)
    inside = Held(held.start, name[held.member])
    some = centres if alive.size == K else Centres(table.geometry, centres.mean[alive])
    moved = move_parts(table, groups, inside, slot, some, plan.lams.top, plan.max_clusters)
    number = np.concatenate([alive, K + np.arange(moved.fresh.shape[0])]).astype(np.int32)
    member = number[moved.member]
    if (member != held.member).any():
        labels = labels.copy()
        labels[groups.rows] = member[slot]
        held = held.renamed(member)
    return labels, held, moved.fresh, moved.gain


def run_passes(
    table: Table,
    groups: Groups,
    state: Shared,
    memory: Memory,
    plan: Plan,
    budget: Budget,
    *,
    max_iter: int | None = None,
    guard: float = np.inf,
) -> Outcome:
    """Passes until one changes nothing; the outcome's state is a Shared."""

    def step(state: Shared) -> tuple[Shared, Info]:
        after, info, _ = three_part_pass(table, groups, state, memory, plan, budget)
        return after, info

    limit = plan.max_iter if max_iter is None else max_iter
    return run(step, state, budget, phase="all rows", tol=plan.tol, max_iter=limit, guard=guard)


def close(
    table: Table,
    groups: Groups,
    state: Shared,
    memory: Memory,
    plan: Plan,
    publish: Callable[[Array], Array],
    outcome: Outcome,
) -> Fitted:
    """Assign all rows to final centres by the rule of ``predict``, and put the clusters in canonical order."""
    held, last = state.held, state.centres
    mean = publish(last.mean)
    loosen(table, last, Centres(table.geometry, mean), np.arange(len(mean)), memory)
    lightest = float(table.unit[table.unit > 0].min()) if table.unit.size else 1.0
    penalty = plan.lams.local / lightest
    for _ in range(_CLOSING):
        centres = Centres(table.geometry, mean)
        assign(table, centres, memory)
        labels = predict_rows(table, groups.code, held, centres, memory, penalty)
        K = mean.shape[0]
        after = held_of_labels(groups, labels, K)
        mass = masses(table, groups, labels, K)
        order = canonical_order(mean, mass)
        if order.size == K and (order == np.arange(K)).all() and _same(held, after):
            break
        name = np.zeros(K, np.int32)
        name[order] = np.arange(order.size)
        labels = name[labels]
        held, mean, mass = held_of_labels(groups, labels, order.size), mean[order], mass[order]
        memory.labels[:], memory.low[:] = 0, -np.inf
    cost = total_cost(table, centres, labels)
    total, mass = table.rows.sums(labels, mean.shape[0])
    objective = penalised(table, centres, cost, plan.lams, held.member.size, np.ones(mean.shape[0], bool))
    trace = [*outcome.trace, objective]
    n_iter, done = len(outcome.trace), outcome.converged
    return Fitted(mean, total, mass, labels, after, penalty, cost, objective, trace, n_iter, done)


def _same(a: Held, b: Held) -> bool:
    """Whether all groups hold the same, whatever its age; b is sorted."""
    return np.array_equal(a.start, b.start) and np.array_equal(a.member[np.lexsort((a.member, a.group))], b.member)


def predict_rows(table: Table, code: Array, held: Held, centres: Centres, memory: Memory, penalty: float) -> Array:
    """The cheapest centre of each row, where those its group lacks cost ``penalty`` more; nobody opens anything.

    Groups that hold nothing, and rows of no group (code -1), take the nearest centre.
    """
    K, labels = centres.mean.shape[0], memory.labels.copy()
    sizes = np.append(np.diff(held.start), 0)  # the last one is for rows of no group
    groups = group_rows(code, np.flatnonzero(sizes[code] > 0), held.start.size - 1)
    rows = groups.rows[find_slots(groups, held, labels, K) < 0]

    def of_piece(piece: Array) -> Array:
        block = make_block(table, piece, centres, Lams(penalty, np.inf))
        lines, mask = np.arange(piece.size), held.mask(code[piece], K)
        chosen, grew = np.empty(piece.size, np.int32), np.zeros(piece.size, bool)
        one, none, nobody = np.ones(piece.size), np.zeros(piece.size), np.full(piece.size, -1)
        known, room, at = np.ones(K, bool), np.zeros(1, np.intp), 0
        cost, slack = block.cost, block.slack
        while True:
            at = kernels().visit_rows(
                at, cost, slack, one, none, lines, nobody, (penalty, np.inf), room, known, mask, chosen, grew
            )
            if at == piece.size:
                return chosen
            settle_exactly(table, piece, centres.mean, at, cost, slack)

    size = max(1, min(LARGEST_BLOCK, MOST_ENTRIES // K))
    pieces = [rows[start : start + size] for start in range(0, rows.size, size)]
    for piece, chosen in zip(pieces, in_order(of_piece, pieces)):
        labels[piece] = chosen
    return labels
