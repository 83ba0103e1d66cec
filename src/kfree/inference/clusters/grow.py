"""GROW: assign all rows, open clusters at the farthest ones, move the centres; repeat.

Over-opening comes from opening again before a new centre has moved to the mean of its cluster, not from opening
several at once: so one row per cluster opens, and then come PAUSE plain passes.
"""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.assign import (
    QUICK,
    Centres,
    Sums,
    assign,
    exact_costs,
    loosen,
    nearest_spread,
    note_doubts,
)
from kfree.inference.clusters.table import Memory, Table
from kfree.inference.loop import Budget, Info, Outcome, run
from kfree.kernels import kernels

#: Plain passes between two openings.
PAUSE = 2
#: Passes made in one call, at most: time limits and interrupts are looked at between.
AT_ONCE = 32
#: A row within this multiple of the threshold of a centre opened in the same pass does not open another.
EXCLUSION = 2.0
#: Rows that are compared with the centres chosen so far in one piece: at first, and at most, while few are chosen.
FIRST_PIECE, LARGEST_PIECE = 32, 32768


class Grown(NamedTuple):
    """State between two passes."""

    centres: Centres
    pause: int  # plain passes since the last opening
    sums: Sums | None = None  # of the last assignment, if its clusters are still those of the centres
    moved: bool = True  # the centres have moved since


class Growth(NamedTuple):
    """What a growth is allowed to do."""

    lam: float
    tol: float = 1e-4  # share of the weight that may still change label
    max_clusters: float = np.inf
    pause: int = PAUSE
    exclusion: float = EXCLUSION
    one_at_a_time: bool = False  # PDC: only the farthest row of all opens


def grow(
    table: Table,
    centres: Centres,
    memory: Memory,
    growth: Growth,
    budget: Budget,
    *,
    phase: str,
    max_iter: int,
    guard: float | None = np.inf,
) -> Outcome:
    """Run GROW to its end; the outcome's state holds the centres."""

    made = 0

    def step(state: Grown) -> tuple[Grown, Info]:
        nonlocal made
        state, info = _pass(table, state, memory, growth, max_iter - made)
        made += len(info.earlier) + 1
        return state, info

    start = Grown(centres, growth.pause)
    return run(step, start, budget, phase=phase, tol=growth.tol, max_iter=max_iter, guard=guard)


def _pass(table: Table, state: Grown, memory: Memory, growth: Growth, room: int) -> tuple[Grown, Info]:
    """One pass, and before it those in which nothing but the means moves, if they can be made in one call."""
    state, earlier, sums = _plain_passes(table, state, memory, growth, room)
    weight = table.rows.total_weight()
    if sums is None:
        sums = assign(table, state.centres, memory, growth.lam)
    K = int(np.count_nonzero(sums.mass > 0))
    objective = penalised(table, state.centres, sums, growth.lam)
    changed = sums.changed / weight
    openers = np.empty(0, np.intp)
    if growth.max_clusters > K and (state.pause >= growth.pause or changed <= growth.tol):
        openers = choose_openers(table, memory, growth, sums.reach)
        openers = openers[: int(min(growth.max_clusters - K, openers.size))]
    total, mass = (sums.total, sums.mass) if not openers.size else _open(table, memory, openers, len(sums.mass))
    centres = update(table, state.centres, total, mass, memory, sums.reach)
    info = Info(objective, rounding_scale(table, state.centres, sums), changed, openers.size, K, earlier)
    if openers.size or centres.mean.shape != state.centres.mean.shape:
        return Grown(centres, 0 if openers.size else state.pause + 1), info
    return Grown(centres, state.pause + 1, sums, not np.array_equal(centres.mean, state.centres.mean)), info


def _plain_passes(
    table: Table, state: Grown, memory: Memory, growth: Growth, room: int
) -> tuple[Grown, tuple[Info, ...], Sums | None]:
    """Passes in which nothing opens or vanishes, as many as can be made in one call.

    Returns the state after them, what is to be told of them, and the sums of the assignment to the centres of that
    state, if it has been made.
    """
    K, p = state.centres.mean.shape
    if not _short(table, K):
        return state, (), None
    mean, weight = state.centres.mean.copy(), table.rows.total_weight()
    total, mass, reach = np.empty((K, p)), np.empty(K), np.empty(K)
    done = table.rows.descend(
        mean,
        table.geometry,
        table.base,
        growth.lam,
        (state.pause, growth.pause, growth.tol, weight, bool(growth.max_clusters > K)),
        (memory.labels, memory.low, memory.cost),
        (total, mass, reach),
        min(room, AT_ONCE),
    )
    if done is None:
        return state, (), None
    note_doubts(table, done.compared, done.doubted)
    lines = done.trace[: len(done.trace) - done.complete].tolist()
    penalty = growth.lam * K if np.isfinite(growth.lam) else 0.0
    told = tuple(Info(cost + penalty, _scale(table, cost, size), moved / weight, 0, K) for cost, moved, size in lines)
    state = Grown(Centres(table.geometry, mean), state.pause + len(told))
    if not done.complete:
        memory.low[:] = -np.inf  # the bounds are those of the pass before
        return state, told, None
    cost, changed, _ = done.trace[-1]
    return state, told, Sums(total, mass, changed, cost, 0, reach)


def _short(table: Table, K: int) -> bool:
    """True if passes over a table are so short that it is worth while to make many of them in one call."""
    plain = table.geometry.plain and not table.unit.size
    return plain and table.rows.entries * K <= QUICK and len(table.rows.spans()) == 1


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
    return _scale(table, sums.cost, centres.affine.size)


def _scale(table: Table, cost: float, size: float) -> float:
    return cost + table.rows.total_weight() * (1e-4 * size + 1e-6)  # the guard allows 1e-9 of this


def choose_openers(table: Table, memory: Memory, growth: Growth, reach: Array) -> Array:
    """Rows that open a cluster in this pass, farthest first; ``reach`` holds the largest cost in each cluster."""
    K = reach.size
    if not table.unit.size and not reach.max() > growth.lam:  # no row is beyond lam, smoothing or not
        return np.empty(0, np.intp)
    rows, excess = np.full(K, -1, np.intp), np.zeros(K)
    kernels().farthest(memory.cost, table.unit, table.alone, growth.lam, memory.labels, table.hashes, rows, excess)
    found = rows[rows >= 0]
    if not found.size:
        return found
    ranked = found[np.lexsort((table.hashes[found], -excess[rows >= 0]))]
    if growth.one_at_a_time:
        return ranked[:1]
    return ranked[openers_in_order(table, ranked, growth.exclusion * table.threshold(growth.lam, ranked))]


def openers_in_order(table: Table, rows: Array, threshold: Array | float) -> Array:
    """Positions of the rows that are beyond their threshold of every row chosen before them.

    The sequential rule, evaluated in pieces: a piece is compared with all centres chosen so far in one product, and
    its survivors with each other. Pieces grow while few survive; the result is the same for any size.
    """
    threshold = np.broadcast_to(np.asarray(threshold, dtype=float), rows.shape)
    unit = table.unit[rows] if table.unit.size else np.ones(rows.size)
    chosen: list[int] = []
    means = np.empty((0, table.rows.p))
    start, size = 0, FIRST_PIECE
    while start < rows.size:
        piece = np.arange(start, min(start + size, rows.size))
        if len(means):
            cost = nearest_cost(table, rows[piece], Centres(table.geometry, means), threshold[piece] / unit[piece])
            piece = piece[unit[piece] * cost > threshold[piece]]
        if piece.size > 2 * FIRST_PIECE:  # too many to compare with each other: take the first of them
            piece = piece[: 2 * FIRST_PIECE]
            start, size = int(piece[-1]) + 1, max(FIRST_PIECE, size // 2)
        else:
            start, size = start + size, min(LARGEST_PIECE, 2 * size)
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
    return table.geometry.family.divergence_at_infinity(np.maximum(cost, 0.0))


def _open(table: Table, memory: Memory, openers: Array, K: int) -> tuple[Array, Array]:
    """Give each opener, and the copies of it, a label of its own; return the sums by label."""
    for label, (row, copies) in enumerate(zip(openers, copies_of(table, openers)), start=K):
        memory.labels[copies] = label
        memory.labels[row] = label
    return table.rows.sums(memory.labels, K + len(openers))


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
        # what is left of a dropped cluster are rows of weight zero: label 0 until the next assignment
        remap = np.zeros(mass.size, np.int32)
        remap[held] = np.arange(held.size)
        gone = np.flatnonzero(mass == 0)
        memory.low[np.isin(memory.labels, gone)] = -np.inf
        kernels().relabel(remap, memory.labels)
    kept = held[held < K_before]
    after = centres.moved(table.geometry.centre(total[held], mass[held]), kept)
    loosen(table, centres, after, kept, memory, reach)
    return after
