"""Hard HDP: clusters shared by groups (Kulis & Jordan 2012, Algorithm 2, for any family).

    J = sum w D(x, centre) + prior + lam_local * (local clusters) + lam_global * (global clusters)

A pass has three parts: rows choose their clusters, local clusters choose their global ones, centres move. J, with the
clusters in use counted, rises in none of them.
"""

from itertools import count
from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.assign import assign
from kfree.inference.clusters.bounds import loosen
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.exact import own_cost
from kfree.inference.clusters.fit import canonical_order
from kfree.inference.clusters.grow import rounding_scale, update
from kfree.inference.clusters.labelling import LocalLabelling
from kfree.inference.clusters.table import Memory, Table
from kfree.inference.goal import Goal
from kfree.inference.labels import compact
from kfree.inference.loop import Budget, Info, Outcome, check_fall, run
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
from kfree.inference.shared.hdp_numbers import HDP
from kfree.inference.shared.local_clusters import move_parts
from kfree.inference.shared.row_choices import SharedState, make_block, settle_exactly, visit_points
from kfree.kernels import kernels
from kfree.rows.threads import in_order


class SharedFit(NamedTuple):
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

    def reordered(self, order: Array, rank: Array) -> "SharedFit":
        """The same clusters with other numbers: ``order`` tells who gets each, ``rank`` which each one gets."""
        return self._replace(
            mean=self.mean[order],
            total=self.total[order],
            mass=self.mass[order],
            labels=rank[self.labels],
            held=self.held.renamed(rank[self.held.member]).sorted(),
        )


def start_state(mean: Array, table: Table, groups: Groups, *, given: bool, rng: np.random.Generator) -> SharedState:
    """Every group holds the global centre; or given centres, which no group holds yet."""
    held = held_by_none(groups.n_groups) if given else held_by_all(groups.n_groups)
    labels = np.full(table.n, -1, np.int32)
    return SharedState(Centres(table.geometry, mean), labels, held, rng)


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

    def __init__(self, table: Table, lams: Lams, scale: float):
        self.table, self.lams, self.scale, self.values = table, lams, scale, [np.inf]

    def add(self, part: str, centres: Centres, cost: float, n_local: int, used: Array) -> None:
        objective = penalised(self.table, centres, cost, self.lams, n_local, used)
        check_fall(self.values[-1], objective, self.scale, f"when {part}")
        self.values.append(objective)


def three_part_pass(
    table: Table, groups: Groups, state: SharedState, memory: Memory, goal: Goal, budget: Budget
) -> tuple[SharedState, Info, list[float]]:
    """One pass; also returns the objective after each of its parts."""
    lams, old, K = Lams.of(goal), state.centres, state.centres.mean.shape[0]
    sums = assign(table, old, memory, lams.both)
    scale = rounding_scale(table.geometry, table.rows.total_weight(), old, sums)
    visited = visit_points(table, groups, state, memory, goal, budget)
    centres = _with(table, old, visited.fresh)
    labels, K1 = visited.labels, centres.mean.shape[0]
    held = held_in_use(groups, visited.held, labels, K1)
    used = masses(table, groups, labels, K1) > 0
    readings = _Readings(table, lams, scale)
    if np.isfinite(sums.cost):
        cost = sums.cost + _strayed(table, groups, centres, memory, labels)
    else:  # old centres exclude rows that a new one takes in
        cost = total_cost(table, centres, labels)
    readings.add("rows chose", centres, cost, held.member.size, used)
    # an empty global cluster that was taken up here would cost lam_global unseen: only those in use take part
    labels, held, fresh, gain = _second_part(table, groups, (labels, held), centres, used, goal, budget)
    centres = _with(table, centres, fresh)
    total, mass = table.rows.sums(labels, centres.mean.shape[0])
    readings.add("local clusters chose", centres, cost - gain, held.member.size, mass > 0)
    changed = float(table.rows.weights(groups.rows)[(labels != state.labels)[groups.rows]].sum())
    after = update(LocalLabelling(table, memory), old, total, mass, sums.reach)
    name = compact(mass > 0)
    labels = np.where(labels >= 0, name[labels], -1).astype(np.int32)
    held = Held(held.start, name[held.member])
    everyone = np.ones(after.mean.shape[0], bool)
    cost = total_cost(table, after, labels)
    readings.add("centres moved", after, cost, held.member.size, everyone)
    opened = int((mass[K:] > 0).sum())
    info = Info(readings.values[-1], scale, changed / table.rows.total_weight(), opened, everyone.size)
    return SharedState(after, labels, held, state.rng), info, readings.values[1:]


def _with(table: Table, centres: Centres, fresh: Array) -> Centres:
    return Centres(table.geometry, np.concatenate([centres.mean, fresh])) if fresh.shape[0] else centres


def _strayed(table: Table, groups: Groups, centres: Centres, memory: Memory, labels: Array) -> float:
    """What rows pay for not being with their nearest old centre; less than nothing where a new one is nearer."""
    rows = groups.rows[labels[groups.rows] != memory.labels[groups.rows]]
    with np.errstate(invalid="ignore"):
        more = own_cost(table, rows, centres, labels[rows]) - memory.cost[rows]
    return float((table.rows.weights(rows) * more).sum())


def _second_part(
    table: Table,
    groups: Groups,
    chosen: tuple[Array, Held],
    centres: Centres,
    used: Array,
    goal: Goal,
    budget: Budget,
) -> tuple[Array, Held, Array, float]:
    """Local clusters choose among the global ones in use; numbers of unused ones stay unused."""
    K, (labels, held) = used.size, chosen
    slot = find_slots(groups, held, labels, K)
    alive = np.flatnonzero(used)
    name = compact(used)
    inside = Held(held.start, name[held.member])
    some = centres if alive.size == K else Centres(table.geometry, centres.mean[alive])
    moved = move_parts(table, groups, inside, slot, some, goal, budget)
    number = np.concatenate([alive, K + np.arange(moved.fresh.shape[0])]).astype(np.int32)
    member = number[moved.member]
    if (member != held.member).any():
        labels = labels.copy()
        labels[groups.rows] = member[slot]
        held = held.renamed(member)
    return labels, held, moved.fresh, moved.gain


def run_passes(
    table: Table, groups: Groups, state: SharedState, memory: Memory, goal: Goal, budget: Budget, guard: float = np.inf
) -> Outcome:
    """Passes until one changes nothing; the outcome's state is a SharedState.

    With a ``guard``, the objective before the moves that led here, one pass is made even if the time is up: it shows
    what they are worth.
    """

    def step(state: SharedState) -> tuple[SharedState, Info]:
        after, info, _ = three_part_pass(table, groups, state, memory, goal, budget)
        return after, info

    always, limit = int(guard < np.inf and not budget.interrupted), goal.max_iter
    return run(step, state, budget, phase="all rows", tol=goal.tol, max_iter=limit, guard=guard, always=always)


def close(table: Table, groups: Groups, memory: Memory, goal: Goal, outcome: Outcome) -> SharedFit:
    """Assign all rows to final centres by the rule of ``predict``, and put the clusters in canonical order."""
    held, last, lams = outcome.state.held, outcome.state.centres, Lams.of(goal)
    mean = table.as_published(last.mean)
    loosen(table, last, Centres(table.geometry, mean), np.arange(len(mean)), memory)
    lightest = float(table.unit[table.unit > 0].min()) if table.unit.size else 1.0
    penalty = lams.local / lightest
    for turn in count():
        centres = Centres(table.geometry, mean)
        assign(table, centres, memory)
        labels = predict_rows(table, groups.code, held, centres, memory, penalty)
        K = mean.shape[0]
        after = held_of_labels(groups, labels, K)
        mass = masses(table, groups, labels, K)
        late = turn >= HDP.closing_rounds  # with many ties nothing may settle: then the order stays, and what is held
        order = np.flatnonzero(mass > 0) if late else canonical_order(mean, mass)
        after = held.joined(after, K) if late else after
        if order.size == K and (order == np.arange(K)).all() and _same(held, after):
            break
        name = np.full(K, -1, np.int32)
        name[order] = np.arange(order.size)
        after = after.some(name[after.member] >= 0)
        held = after.renamed(name[after.member]).sorted()
        mean = mean[order]
        memory.labels[:] = 0
        memory.forget()
    cost = total_cost(table, centres, labels)
    total, mass = table.rows.sums(labels, mean.shape[0])
    objective = penalised(table, centres, cost, lams, held.member.size, np.ones(mean.shape[0], bool))
    trace = [*outcome.trace, objective]
    n_iter, done = len(outcome.trace), outcome.converged
    return SharedFit(mean, total, mass, labels, after, penalty, cost, objective, trace, n_iter, done)


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

    size = max(1, min(HDP.blocks[1], HDP.cost_entries // K))
    pieces = [rows[start : start + size] for start in range(0, rows.size, size)]
    for piece, chosen in zip(pieces, in_order(of_piece, pieces)):
        labels[piece] = chosen
    return labels
