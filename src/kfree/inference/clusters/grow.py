"""GROW: assign all rows, open clusters at the farthest ones, move the centres; repeat.

Over-opening comes from opening again before a new centre has moved to the mean of its cluster, not from opening
several at once: so one row per cluster opens, and then come a few plain passes.
"""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.assign import assign, nearest_spread, note_doubts, sums_by_label
from kfree.inference.clusters.bounds import loosen
from kfree.inference.clusters.centres import Centres, Sums
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.inference.clusters.exact import exact_costs
from kfree.inference.clusters.table import Memory, Table
from kfree.inference.goal import Goal
from kfree.inference.labels import compact
from kfree.inference.loop import Budget, Info, Outcome, run
from kfree.kernels import kernels
from kfree.rows.exact_sums import ExactSums


class Clustering(NamedTuple):
    """Clusters of all rows of a table, as an algorithm leaves them."""

    centres: Centres
    memory: Memory
    sums: Sums | None = None  # of the last assignment, if its clusters are still those of the centres
    moved: bool = True  # the centres have moved since


class Grown(NamedTuple):
    """State between two passes."""

    clustering: Clustering
    pause: int  # plain passes since the last opening

    @property
    def centres(self) -> Centres:
        """The centres."""
        return self.clustering.centres


class Phase(NamedTuple):
    """A part of a fit."""

    name: str
    guard: float | None = np.inf  # objective that its first pass must not exceed; None where it may rise


def grow(
    table: Table, centres: Centres, memory: Memory, goal: Goal, budget: Budget, phase: Phase, *, delayed: bool = False
) -> Outcome:
    """Run GROW to its end; the outcome's state is a Clustering.

    ``delayed``: one row opens in a pass, the farthest of all, and no pass goes by without (Dinari & Freifeld 2022).
    """
    opening = Opening(0, True) if delayed else Opening(CLUSTERS.pause, False)
    made = 0

    def step(state: Grown) -> tuple[Grown, Info]:
        nonlocal made
        state, info = _pass(table, state, goal, opening, goal.max_iter - made, budget)
        made += len(info.earlier) + 1
        return state, info

    start = Grown(Clustering(centres, memory), opening.pause)
    outcome = run(step, start, budget, phase=phase.name, tol=goal.tol, max_iter=goal.max_iter, guard=phase.guard)
    return outcome._replace(state=outcome.state.clustering)


class Opening(NamedTuple):
    """How clusters open."""

    pause: int  # plain passes between two openings
    one_at_a_time: bool  # only the farthest row of all opens


def _pass(table: Table, state: Grown, goal: Goal, opening: Opening, room: int, budget: Budget) -> tuple[Grown, Info]:
    """One pass, and before it those in which nothing but the means moves, if they can be made in one call."""
    memory = state.clustering.memory
    state, earlier, sums = _plain_passes(table, state, goal, opening, room)
    weight = table.rows.total_weight()
    if sums is None:
        sums = assign(table, state.centres, memory, goal.lam)
    K = int(np.count_nonzero(sums.mass > 0))
    objective = penalised(table, state.centres, sums, goal.lam)
    changed = sums.changed / weight
    openers = np.empty(0, np.intp)
    if goal.max_clusters > K and (state.pause >= opening.pause or changed <= goal.tol):
        openers = choose_openers(table, memory, goal.lam, sums.reach, opening.one_at_a_time, budget)
        openers = openers[: int(min(goal.max_clusters - K, openers.size))]
    total, mass = (sums.total, sums.mass) if not openers.size else _open(table, memory, openers, len(sums.mass))
    centres = update(table, state.centres, total, mass, memory, sums.reach)
    info = Info(objective, rounding_scale(table, state.centres, sums), changed, openers.size, K, earlier)
    if openers.size or centres.mean.shape != state.centres.mean.shape:
        return Grown(Clustering(centres, memory), 0 if openers.size else state.pause + 1), info
    moved = not np.array_equal(centres.mean, state.centres.mean)
    return Grown(Clustering(centres, memory, sums, moved), state.pause + 1), info


def _plain_passes(
    table: Table, state: Grown, goal: Goal, opening: Opening, room: int
) -> tuple[Grown, tuple[Info, ...], Sums | None]:
    """Passes in which nothing opens or vanishes, as many as can be made in one call.

    Returns the state after them, what is to be told of them, and the sums of the assignment to the centres of that
    state, if it has been made.
    """
    K = state.centres.mean.shape[0]
    if not _short(table, K):
        return state, (), None
    memory = state.clustering.memory
    mean, weight = state.centres.mean.copy(), table.rows.total_weight()
    sums, reach = ExactSums(K, table.rows.grid), np.empty(K)
    known, memory.sums = memory.sums, None
    done = table.rows.descend(
        mean,
        table.geometry,
        table.base,
        goal.lam,
        (state.pause, opening.pause, goal.tol, weight, bool(goal.max_clusters > K)),
        (memory.labels, memory.low, memory.cost),
        (sums, reach),
        min(room, CLUSTERS.passes_at_once),
    )
    if done is None:
        memory.sums = known
        return state, (), None
    note_doubts(table, done.compared, done.doubted)
    lines = done.trace[: len(done.trace) - done.complete].tolist()
    penalty = goal.lam * K if np.isfinite(goal.lam) else 0.0
    told = tuple(Info(cost + penalty, _scale(table, cost, size), moved / weight, 0, K) for cost, moved, size in lines)
    state = Grown(Clustering(Centres(table.geometry, mean), memory), state.pause + len(told))
    if not done.complete:
        memory.forget()  # the bounds are those of the pass before
        return state, told, None
    cost, changed, _ = done.trace[-1]
    memory.sums = sums
    return state, told, Sums(*sums.values(), changed, cost, 0, reach)


def _short(table: Table, K: int) -> bool:
    """True if passes over a table are so short that it is worth while to make many of them in one call."""
    plain = table.geometry.plain and not table.unit.size
    return plain and table.rows.entries * K <= CLUSTERS.quick and len(table.rows.spans()) == 1


def penalised(table: Table, centres: Centres, sums: Sums, lam: float) -> float:
    """The objective of an assignment: costs, the prior's share, and lam for every cluster that holds weight."""
    held = sums.mass > 0
    penalty = lam * np.count_nonzero(held) if np.isfinite(lam) else 0.0
    if not table.geometry.eta:
        return float(sums.cost + penalty)
    prior = float(table.geometry.prior_costs(centres.mean, centres.affine)[held].sum())
    return float(sums.cost + prior + penalty)


def rounding_scale(table: Table, centres: Centres, sums: Sums) -> float:
    """Magnitude that the rounding of an objective scales with."""
    scale = _scale(table, sums.cost, centres.affine.size)
    if not table.geometry.eta:
        return scale
    return scale + float((1e-4 * table.geometry.prior_magnitude(centres.affine) + 1e-6 * table.geometry.eta).sum())


def _scale(table: Table, cost: float, size: float) -> float:
    # the guard allows 1e-9 of this; shares that should sum to 1 do so up to rounding, however small a divergence is
    return cost + table.rows.total_weight() * (1e-4 * size + 1e-6)


def choose_openers(
    table: Table, memory: Memory, lam: float, reach: Array, one_at_a_time: bool, budget: Budget
) -> Array:
    """Rows that open a cluster in this pass, farthest first; ``reach`` holds the largest cost in each cluster."""
    K = reach.size
    if not table.unit.size and not reach.max() > lam:  # no row is beyond lam, smoothing or not
        return np.empty(0, np.intp)
    rows, excess = np.full(K, -1, np.intp), np.zeros(K)
    kernels().farthest(memory.cost, table.unit, table.alone, lam, memory.labels, table.hashes, rows, excess)
    found = rows[rows >= 0]
    if not found.size:
        return found
    ranked = found[np.lexsort((table.hashes[found], -excess[rows >= 0]))]
    if one_at_a_time:
        return ranked[:1]
    return ranked[openers_in_order(table, ranked, CLUSTERS.exclusion * table.threshold(lam, ranked), budget)]


def openers_in_order(table: Table, rows: Array, threshold: Array | float, budget: Budget) -> Array:
    """Positions of the rows that are beyond their threshold of every row chosen before them, as far as the time lasts.

    The sequential rule, evaluated in pieces: a piece is compared with all centres chosen so far in one product, and
    its survivors with each other. Pieces grow while few survive; the result is the same for any size.
    """
    threshold = np.broadcast_to(np.asarray(threshold, dtype=float), rows.shape)
    unit = table.unit[rows] if table.unit.size else np.ones(rows.size)
    chosen: list[int] = []
    means = np.empty((0, table.rows.p))
    first, largest = CLUSTERS.opener_pieces
    start, size = 0, first
    while start < rows.size and not budget.spent:
        piece = np.arange(start, min(start + size, rows.size))
        if len(means):
            cost = nearest_cost(table, rows[piece], Centres(table.geometry, means), threshold[piece] / unit[piece])
            piece = piece[unit[piece] * cost > threshold[piece]]
        if piece.size > 2 * first:  # too many to compare with each other: take the first of them
            piece = piece[: 2 * first]
            start, size = int(piece[-1]) + 1, max(first, size // 2)
        else:
            start, size = start + size, min(largest, 2 * size)
        fresh = table.singletons(rows[piece])
        beyond = unit[piece][:, None] * exact_costs(table, rows[piece], fresh) > threshold[piece][:, None]
        free, taken = np.ones(piece.size, bool), []
        for t in range(piece.size):
            if free[t]:
                taken.append(t)
                free &= beyond[:, t]
        chosen += piece[taken].tolist()
        means = np.concatenate([means, fresh[taken]])
    return np.array(chosen, dtype=np.intp)


def nearest_cost(table: Table, rows: Array, centres: Centres, threshold: Array | float) -> Array:
    """Least divergence of each row from the centres, exact where it comes near ``threshold``."""
    found = nearest_spread(table, rows, centres)
    cost = table.base[rows] + found.least
    close = np.flatnonzero(~(np.abs(cost - threshold) > 2 * found.slack))
    if close.size:
        cost[close] = exact_costs(table, rows[close], centres.mean).min(axis=1)
    return table.geometry.family.divergence_at_infinity(np.maximum(cost, 0.0), table.rows.dtype)


def _open(table: Table, memory: Memory, openers: Array, K: int) -> tuple[Array, Array]:
    """Give each opener, and the copies of it, a label of its own; return the sums by label."""
    known = sums_by_label(table, memory)
    assert known is not None  # all rows have been assigned
    sums, memory.sums = known.resized(K + len(openers)), None
    copies = copies_of(table, openers)
    rows = np.concatenate(copies)
    new = np.repeat(np.arange(K, K + len(openers), dtype=np.int32), [same.size for same in copies])
    table.rows.move(rows, memory.labels[rows], new, sums)
    memory.labels[rows] = new
    memory.sums = sums
    return sums.values()


def copies_of(table: Table, rows: Array) -> list[Array]:
    """For each of some rows the indices of all rows with the same content."""
    hits = np.empty(table.n, np.intp)
    hits = hits[: kernels().find_content(table.hashes, np.sort(table.hashes[rows]), hits)]
    by_hash = hits[np.argsort(table.hashes[hits], kind="stable")]
    starts, stops = (np.searchsorted(table.hashes[by_hash], table.hashes[rows], side) for side in ("left", "right"))
    out = []
    for row, start, stop in zip(rows, starts, stops):
        same = by_hash[start:stop]
        if same.size > 1:  # equal hashes of unequal rows are next to impossible, but cheap to rule out
            same = same[(table.rows.dense(same) == table.rows.dense(np.array([row]))).all(axis=1)]
        out.append(same)
    return out


def update(table: Table, centres: Centres, total: Array, mass: Array, memory: Memory, reach: Array) -> Centres:
    """Drop clusters without weight and move the rest to their best centres; labels and bounds follow.

    ``reach`` holds the largest cost in each of the clusters that ``centres`` are of.
    """
    K_before = centres.mean.shape[0]
    held = np.flatnonzero(mass > 0)
    if held.size < mass.size:
        gone = np.flatnonzero(mass == 0)
        memory.low[np.isin(memory.labels, gone)] = -np.inf
        memory.relabel(compact(mass > 0))
    kept = held[held < K_before]
    after = centres.moved(table.geometry.centre(total[held], mass[held]), kept)
    loosen(table, centres, after, kept, memory, reach)
    return after
