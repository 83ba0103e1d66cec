"""Groups with a real gap between them: which clusters of a solution have a valley on the way to the next.

For clusters a, b with joint centre m the rows are taken that are nearly closer to m than to any third centre. That
region is convex (bisectors of Bregman divergences are hyperplanes), and a log-concave density cut to a convex set
projects to a unimodal one in every direction. So one log-concave cloud has no valley, however it was divided. The
direction is fitted on one half of the rows and the other half is projected.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import breadth_first_order, connected_components

from kfree.families import Array
from kfree.inference.assign import make_centres, own_cost
from kfree.inference.curve import Solution, costs
from kfree.inference.pilot import Pilot, uniform
from kfree.kernels import kernels

#: Share of the smaller cluster that must have the other one as second nearest for the two to be neighbours.
NEIGHBOURS = 0.05
#: False discovery rate of valleys, for each K.
RATE = 0.02
#: Rows there must be on each side of a valley, and in a group.
FEWEST = 8
#: What p is multiplied by where one pair alone connects two parts: there is no second test; one column, several.
BRIDGE_ONE_COLUMN, BRIDGE = 10**1.5, 10**0.5
#: sqrt(n) dip of uniform samples (simulated) and how often it is exceeded; beyond, a decade for every 0.083.
_QUANTILES = np.array([0.0, 0.371, 0.491, 0.529, 0.609, 0.692, 0.692 + 20 * 0.083])
_LOG_P = np.array([np.log10(2), np.log10(0.5), -1.0, np.log10(0.05), -2.0, -3.0, -23.0])

_HALVES, _LATTICE = 2_000_000, 3_000_000  # streams of random numbers
_PIECE = 4_000_000  # entries of the centres of pairs held at a time


class _Order(NamedTuple):
    """The nearest centres of each row."""

    first: Array  # (m, 3) the three nearest, or as many as there are
    cost: Array  # (m, 3) divergences from them


class _Entries(NamedTuple):
    """Rows that may lie between the clusters of a pair, one entry for each row and pair."""

    row: Array
    pair: Array
    third: Array  # divergence from the nearest centre that is in neither
    side: Array  # 0 if the row belongs to the first cluster of the pair, 1 to the second, 2 to another


def count_groups(pilot: Pilot, solution: Solution) -> int:
    """Number of groups of at least FEWEST rows that no chain of clusters without a valley connects."""
    K = solution.mean.shape[0]
    order = _nearest_three(pilot, solution.mean)
    labels = order.first[:, 0]
    pairs = _neighbours(order, K)
    p = _p_values(pilot, order, pairs, K)
    p = p * np.where(_bridges(pairs, K), BRIDGE_ONE_COLUMN if pilot.table.rows.p == 1 else BRIDGE, 1.0)
    joined = pairs[~_discoveries(p, RATE)]
    graph = coo_matrix((np.ones(len(joined)), joined.T), shape=(K, K))
    _, group = connected_components(graph, directed=False)
    return max(1, int((np.bincount(group[labels]) >= FEWEST).sum()))


def _nearest_three(pilot: Pilot, mean: Array) -> _Order:
    cost = costs(pilot, mean)
    count = min(3, mean.shape[0])
    first = np.argpartition(cost, count - 1, axis=1)[:, :count]
    values = np.take_along_axis(cost, first, axis=1)
    order = np.lexsort((first, values), axis=1)  # equal costs: the lower index
    return _Order(np.take_along_axis(first, order, axis=1), np.take_along_axis(values, order, axis=1))


def _neighbours(order: _Order, K: int) -> Array:
    """Pairs (P, 2) of clusters next to each other, a < b."""
    labels, second = order.first[:, 0], order.first[:, 1]
    seconds = np.bincount(labels * K + second, minlength=K * K).reshape(K, K)
    size = np.bincount(labels, minlength=K)
    often = (seconds >= NEIGHBOURS * size[:, None]) & (seconds > 0)
    smaller = size[:, None] <= size[None]
    linked = often & smaller
    held = np.flatnonzero(size)
    linked[held, seconds[held].argmax(axis=1)] = True
    linked |= linked.T
    return np.argwhere(np.triu(linked, 1))


def _p_values(pilot: Pilot, order: _Order, pairs: Array, K: int) -> Array:
    """How often a unimodal pair would show a valley like this."""
    half = (uniform(pilot.ticket, _HALVES) < 0.5).astype(np.int32)
    labels = order.first[:, 0].astype(np.int32)
    total, mass = pilot.table.rows.sums(labels + K * half, 2 * K)
    p = np.ones(len(pairs))
    step = max(1, _PIECE // pilot.table.rows.p)
    for start in range(0, len(pairs), step):
        piece = slice(start, start + step)
        entries = _entries(order, pairs[piece], K)
        entries = _between(pilot, entries, pairs[piece], total[:K] + total[K:], mass[:K] + mass[K:])
        p[piece] = _test(*_project(pilot, entries, pairs[piece], half, total, mass), len(pairs[piece]))
    return p


def _entries(order: _Order, pairs: Array, K: int) -> _Entries:
    """Rows with a or b among their three nearest centres."""
    ends = np.concatenate([pairs[:, 0], pairs[:, 1]])
    by_cluster = np.argsort(ends, kind="stable")
    degree = np.bincount(ends, minlength=K)
    start = np.cumsum(degree) - degree
    rows, found, place = [], [], []
    for t in range(order.first.shape[1]):
        count = degree[order.first[:, t]]
        row = np.repeat(np.arange(count.size), count)
        within = np.arange(row.size) - np.repeat(np.cumsum(count) - count, count)
        pair = by_cluster[start[order.first[row, t]] + within] % len(pairs)
        other = pairs[pair].sum(axis=1) - order.first[row, t]
        new = ~(order.first[row, :t] == other[:, None]).any(axis=1)
        rows.append(row[new])
        found.append(pair[new])
        place.append(np.full(int(new.sum()), t))
    row, pair = np.concatenate(rows), np.concatenate(found)
    outside = (order.first[row] != pairs[pair, :1]) & (order.first[row] != pairs[pair, 1:])
    third = np.where(outside, order.cost[row], np.inf).min(axis=1)
    label = order.first[row, 0]
    side = np.where(label == pairs[pair, 0], 0, np.where(label == pairs[pair, 1], 1, 2))
    return _Entries(row, pair, third, side)


def _between(pilot: Pilot, entries: _Entries, pairs: Array, total: Array, mass: Array) -> _Entries:
    """Entries with D(x, m) - third <= h, for the least h >= 0 that keeps half of both clusters."""
    geometry = pilot.table.geometry
    a, b = pairs.T
    joint = make_centres(geometry, geometry.centre(total[a] + total[b], mass[a] + mass[b]))
    excess = own_cost(pilot.table, entries.row, joint, entries.pair) - entries.third
    height = np.zeros(len(pairs))
    member = np.flatnonzero(entries.side < 2)
    key = 2 * entries.pair[member] + entries.side[member]
    order = np.lexsort((excess[member], key))
    count = np.bincount(key, minlength=2 * len(pairs))
    start = np.cumsum(count) - count
    held = np.flatnonzero(count)
    middle = excess[member][order][start[held] + (count[held] + 1) // 2 - 1]
    np.maximum.at(height, held // 2, middle)
    keep = excess <= height[entries.pair]
    return _Entries(*(field[keep] for field in entries))


def _project(
    pilot: Pilot, entries: _Entries, pairs: Array, half: Array, total: Array, mass: Array
) -> tuple[Array, Array]:
    """Coordinates D(x, b) - D(x, a) over their difference at the centres, fitted on the other half; and the pairs."""
    geometry, K = pilot.table.geometry, mass.size // 2
    known = mass > 0
    mean = np.zeros_like(total)
    mean[known] = geometry.centre(total[known], mass[known])
    mean[~known] = geometry.anchor
    centres = make_centres(geometry, mean)
    other = (1 - half)[entries.row] * K
    a, b = (other + pairs[entries.pair, 0]).astype(np.int32), (other + pairs[entries.pair, 1]).astype(np.int32)
    with np.errstate(invalid="ignore"):
        t = own_cost(pilot.table, entries.row, centres, b) - own_cost(pilot.table, entries.row, centres, a)
    shift = np.zeros((2, len(pairs)))
    step = np.zeros((2, len(pairs)))
    usable = np.zeros((2, len(pairs)), bool)
    for h in (0, 1):
        first, second = pairs[:, 0] + h * K, pairs[:, 1] + h * K
        dtheta = centres.affine.coef[first] - centres.affine.coef[second]
        shift[h] = ((mean[first] - mean[second]) * dtheta).sum(axis=1)
        usable[h] = known[first] & known[second] & (shift[h] > 0)
        if pilot.length.size:
            step[h] = geometry.family.lattice_step(dtheta, (mean[first] + mean[second]) / 2)
    at = (1 - half)[entries.row], entries.pair
    if pilot.length.size:
        noise = uniform(pilot.ticket, _LATTICE)[entries.row] - 0.5
        t = t + step[at] / pilot.length[entries.row] * noise
    keep = usable[at] & np.isfinite(t)
    return (t[keep] / shift[at][keep]), entries.pair[keep]


def _test(t: Array, pair: Array, n_pairs: int) -> Array:
    """Dip test of each pair on equally many rows of both sides, those nearest to the border."""
    order = np.lexsort((t, pair))
    t, pair = t[order], pair[order]
    edge = np.searchsorted(pair, np.arange(n_pairs + 1))
    border = edge[:-1] + np.bincount(pair[t < 0], minlength=n_pairs)
    side = np.minimum(border - edge[:-1], edge[1:] - border)
    side[side < FEWEST] = 0
    rank = np.arange(t.size) - border[pair]
    kept = t[(rank >= -side[pair]) & (rank < side[pair])]
    edges = np.concatenate([[0], np.cumsum(2 * side)])
    dips = np.empty(n_pairs)
    kernels().dip(kept, edges, dips)
    statistic = np.sqrt(2 * side) * dips
    return np.where(side > 0, 10 ** np.interp(statistic, _QUANTILES, _LOG_P), 1.0)


def _bridges(pairs: Array, K: int) -> Array:
    """True for a pair without which the graph of the pairs has more parts.

    Every pair outside a spanning forest closes a loop. Give it a random number and add (bitwise) at both of its ends:
    the sum over a branch of the forest is zero iff no loop leaves the branch.
    """
    bridge = np.zeros(len(pairs), bool)
    graph = coo_matrix((np.ones(len(pairs)), pairs.T), shape=(K, K)).tocsr()
    number = {(int(a), int(b)): e for e, (a, b) in enumerate(pairs)}
    _, part = connected_components(graph, directed=False)
    mark = uniform(np.arange(len(pairs), dtype=np.uint64), 0).view(np.uint64)
    for root in np.unique(part, return_index=True)[1]:
        nodes, parent = breadth_first_order(graph, root, directed=False)
        stem = {int(v): number[min(v, parent[v]), max(v, parent[v])] for v in nodes[1:]}
        loops = np.ones(len(pairs), bool)
        loops[list(stem.values())] = False
        loops &= part[pairs[:, 0]] == part[root]
        branch = np.zeros(K, np.uint64)
        np.bitwise_xor.at(branch, pairs[loops].ravel(), np.repeat(mark[loops], 2))
        for v in nodes[:0:-1]:
            bridge[stem[int(v)]] = branch[v] == 0
            branch[parent[v]] ^= branch[v]
    return bridge


def _discoveries(p: Array, rate: float) -> Array:
    """Benjamini & Hochberg (1995): hypotheses rejected at a false discovery rate."""
    if not p.size:
        return np.zeros(0, bool)
    ranked = np.sort(p)
    below = np.flatnonzero(ranked <= rate * np.arange(1, p.size + 1) / p.size)
    return p <= ranked[below[-1]] if below.size else np.zeros(p.size, bool)
