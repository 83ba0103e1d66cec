"""Which rows open clusters: the farthest of each cluster, as far as they are apart."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.assign import nearest_spread
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.inference.clusters.exact import exact_costs
from kfree.inference.clusters.table import Memory, Table
from kfree.inference.loop import Budget
from kfree.kernels import kernels


class Farthest(NamedTuple):
    """The rows of some clusters that exceed their thresholds most, farthest first."""

    rows: Array  # (m,) indices
    excess: Array  # (m,) v D - lam - s


def farthest_rows(table: Table, memory: Memory, lam: float, K: int) -> Farthest:
    """Of each cluster the row that would open one of its own first, if any does; ties: the smaller hash."""
    rows, excess = np.full(K, -1, np.intp), np.zeros(K)
    kernels().farthest(memory.cost, table.unit, table.alone, lam, memory.labels, table.hashes, rows, excess)
    found = np.flatnonzero(rows >= 0)
    rows, excess = rows[found], excess[found]
    ranked = np.lexsort((table.hashes[rows], -excess))
    return Farthest(rows[ranked], excess[ranked])


def apart(table: Table, ranked: Array, lam: float, one_at_a_time: bool, budget: Budget) -> Array:
    """Positions of those of the farthest rows that open clusters."""
    if one_at_a_time or not ranked.size:
        return np.arange(ranked.size)[:1]
    return openers_in_order(table, ranked, CLUSTERS.exclusion * table.threshold(lam, ranked), budget)


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


def copies_of(table: Table, rows: Array) -> list[Array]:
    """For each of some rows the indices of all rows with the same content."""
    return copies_in(table, table.hashes[rows], table.rows.dense(rows))


def copies_in(table: Table, hashes: Array, stats: Array) -> list[Array]:
    """For each of some contents (hashes and what they are of) the indices of all rows that hold it."""
    hits = np.empty(table.n, np.intp)
    hits = hits[: kernels().find_content(table.hashes, np.sort(hashes), hits)]
    by_hash = hits[np.argsort(table.hashes[hits], kind="stable")]
    starts, stops = (np.searchsorted(table.hashes[by_hash], hashes, side) for side in ("left", "right"))
    out = []
    for content, start, stop in zip(stats, starts, stops):
        same = by_hash[start:stop]
        if same.size:  # equal hashes of unequal rows are next to impossible, but cheap to rule out
            same = same[(table.rows.dense(same) == content).all(axis=1)]
        out.append(same)
    return out
