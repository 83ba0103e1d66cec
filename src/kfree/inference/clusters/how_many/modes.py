"""Groups with a real gap between them: which clusters of a solution have a valley on the way to the next.

For clusters a, b with joint centre m the rows are taken that are nearly closer to m than to any third centre. That
region is convex (bisectors of Bregman divergences are hyperplanes), and a log-concave density cut to a convex set
projects to a unimodal one in every direction. So one log-concave cloud has no valley, however it was divided. The
direction is fitted on one half of the rows and the other half is projected.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree

from kfree.families import Array
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.how_many.price_path import Solution
from kfree.inference.clusters.how_many.subsample import Pilot
from kfree.inference.content import uniform
from kfree.inference.dip import FEWEST, discoveries, p_values_sorted
from kfree.kernels import kernels

#: Share of the smaller cluster that must have the other one as second nearest for the two to be neighbours.
NEIGHBOURS = 0.05
#: False discovery rate of valleys, for each K.
RATE = 0.02
#: What p is multiplied by where one pair alone connects two parts: there is no second test; one column, several.
BRIDGE_ONE_COLUMN, BRIDGE = 10**1.5, 10**0.5

_HALVES, _LATTICE = 2_000_000, 3_000_000  # streams of random numbers
_PIECE = 4_000_000  # entries of the centres of pairs held at a time


class _Order(NamedTuple):
    """The nearest centres of each row."""

    first: Array  # (m, 3) the three nearest, or as many as there are
    cost: Array  # (m, 3) divergences from them


class _Between(NamedTuple):
    """Rows in the regions between pairs, pair after pair."""

    rows: Array  # (E,)
    edges: Array  # (P + 1,) where the rows of each pair start

    @property
    def pair(self) -> Array:
        """The pair of each entry, (E,)."""
        return np.repeat(np.arange(self.edges.size - 1, dtype=np.int32), np.diff(self.edges))


def count_groups(pilot: Pilot, solution: Solution) -> int:
    """Number of groups of at least FEWEST rows that no chain of clusters without a valley connects."""
    group, labels = find_groups(pilot, solution.mean)
    return max(1, int((np.bincount(group[labels]) >= FEWEST).sum()))


def find_groups(pilot: Pilot, mean: Array, parent: Array | None = None) -> tuple[Array, Array]:
    """The group (K,) of each of some clusters and the nearest cluster of each row; a group is what a chain of clusters
    without a valley connects. With ``parent`` (K,) only clusters of the same parent are compared."""
    K = mean.shape[0]
    order = _nearest_three(pilot, mean)
    labels = order.first[:, 0]
    pairs = _neighbours(order, K)
    if parent is not None:
        pairs = pairs[parent[pairs[:, 0]] == parent[pairs[:, 1]]]
    p = _p_values(pilot, order, pairs, K)
    p = p * np.where(_bridges(pairs, K), BRIDGE_ONE_COLUMN if pilot.table.rows.p == 1 else BRIDGE, 1.0)
    joined = pairs[~discoveries(p, RATE)]
    graph = coo_matrix((np.ones(len(joined)), joined.T), shape=(K, K))
    _, group = connected_components(graph, directed=False)
    return group, labels


def _nearest_three(pilot: Pilot, mean: Array) -> _Order:
    affine = pilot.table.geometry.affine(mean)
    count = min(3, mean.shape[0])
    first, least = np.empty((pilot.n, count), np.int32), np.empty((pilot.n, count))
    kernels().three_least(np.ascontiguousarray(pilot.stats @ affine.coef.T), affine.offset, first, least)
    least += pilot.table.base[:, None]
    return _Order(first, np.maximum(least, 0.0))


def _neighbours(order: _Order, K: int) -> Array:
    """Pairs (P, 2) of clusters next to each other, a < b."""
    labels, second = order.first[:, 0].astype(np.intp), order.first[:, 1]
    seconds = np.bincount(labels * K + second, minlength=K * K).reshape(K, K)
    size = np.bincount(labels, minlength=K)
    linked = (size[:, None] <= size[None]) & (seconds > 0) & (seconds >= NEIGHBOURS * size[:, None])
    held = np.flatnonzero(size)
    linked[held, seconds[held].argmax(axis=1)] = True
    linked |= linked.T
    # A narrow cluster may have only its other neighbour as second nearest, and the chain would break at it. Parts
    # are joined by the pair that is nearest to most rows, from either side; more pairs would cost power.
    both = seconds + seconds.T
    near = (both > 0) & (both >= NEIGHBOURS * np.minimum(size[:, None], size[None]))
    length = np.where(linked, 0.5, np.where(near, 1.0 + 1.0 / np.maximum(both, 1), 0.0))
    linked |= minimum_spanning_tree(length).toarray() > 0
    return np.argwhere(np.triu(linked | linked.T, 1)).astype(np.int32, order="C")


class _Halves(NamedTuple):
    """Centres of the clusters on each half of the rows: cluster k on half h is number k + h K."""

    half: Array  # (m,) 0 or 1
    total: Array  # (2K, p)
    mass: Array  # (2K,)
    centres: Centres
    score: Array  # (m, 2K) D(x, anchor) - D(x, centre)


def _halve(pilot: Pilot, labels: Array, K: int) -> _Halves:
    geometry = pilot.table.geometry
    half = (uniform(pilot.ticket, _HALVES) < 0.5).astype(np.int32)
    total, mass = pilot.sums(labels + K * half, 2 * K)
    mean = np.tile(geometry.anchor, (2 * K, 1))
    mean[mass > 0] = geometry.centre(total[mass > 0], mass[mass > 0])
    centres = Centres(geometry, mean)
    score = np.asarray(pilot.smooth @ centres.affine.coef.T)
    score -= centres.affine.offset
    return _Halves(half, total, mass, centres, score)


def _p_values(pilot: Pilot, order: _Order, pairs: Array, K: int) -> Array:
    """How often a unimodal pair would show a valley like this."""
    halves = _halve(pilot, order.first[:, 0], K)
    total, mass = (part[:K] + part[K:] for part in (halves.total, halves.mass))
    p = np.ones(len(pairs))
    step = max(1, _PIECE // pilot.table.rows.p)
    for start in range(0, len(pairs), step):
        piece = pairs[start : start + step]
        between = _between(pilot, order, piece, total, mass)
        p[start : start + step] = np.nan_to_num(p_values_sorted(*_project(pilot, between, piece, halves)), nan=1.0)
    return p


def _between(pilot: Pilot, order: _Order, pairs: Array, total: Array, mass: Array) -> _Between:
    """Rows with D(x, m) <= h + D(x, c) for every third centre c, and the least h >= 0 that keeps half of a and of b.

    Only rows with a or b among their three nearest centres are looked at.
    """
    geometry, K = pilot.table.geometry, mass.size
    ends = pairs.T.ravel()
    incident = np.argsort(ends, kind="stable") % len(pairs)
    degree = np.bincount(ends, minlength=K)
    most = int(degree[order.first].sum())
    edges, rows, third = np.empty(3 * len(pairs) + 1, np.intp), np.empty(most, np.intp), np.empty(most)
    start = np.concatenate([[0], np.cumsum(degree)])
    kernels().rows_of_pairs(order.first, order.cost, pairs, start, incident, edges, rows, third)
    rows, third = rows[: edges[-1]], third[: edges[-1]]
    a, b = pairs.T
    joint = Centres(geometry, geometry.centre(total[a] + total[b], mass[a] + mass[b]))
    pair = np.repeat(np.arange(len(pairs), dtype=np.int32), np.diff(edges[::3]))
    excess = pilot.own_cost(rows, joint, pair) - third
    middle = np.zeros((len(pairs), 2))
    parts = edges[:-1].reshape(-1, 3)[:, :2].ravel(), edges[1:].reshape(-1, 3)[:, :2].ravel()
    kernels().lower_medians(excess, *parts, middle.reshape(-1))
    keep = excess <= np.maximum(middle.max(axis=1), 0.0)[pair]
    return _Between(rows[keep], np.concatenate([[0], np.cumsum(np.bincount(pair[keep], minlength=len(pairs)))]))


def _directions(pilot: Pilot, halves: _Halves, pairs: Array) -> tuple[Array, Array]:
    """For each half and pair <mu_a - mu_b, theta_a - theta_b>, which is how far apart the centres are in
    D(x, b) - D(x, a), or 0 where one of them has no rows; and the effect of one count; (2, P) each."""
    centres, K = halves.centres, halves.mass.size // 2
    gap, step = np.zeros((2, len(pairs))), np.zeros((2, len(pairs)))
    for h in (0, 1):
        a, b = pairs.T + h * K
        dtheta = centres.affine.coef[a] - centres.affine.coef[b]
        held = (halves.mass[a] > 0) & (halves.mass[b] > 0)
        gap[h] = np.where(held, ((centres.mean[a] - centres.mean[b]) * dtheta).sum(axis=1), 0.0)
        if pilot.length.size:
            step[h] = pilot.table.geometry.family.lattice_step(dtheta, (centres.mean[a] + centres.mean[b]) / 2)
    return gap, step


def _project(pilot: Pilot, between: _Between, pairs: Array, halves: _Halves) -> tuple[Array, Array]:
    """Coordinates D(x, b) - D(x, a) in units of their range, centres fitted on the other half; sorted, with edges."""
    gap, step = _directions(pilot, halves, pairs)
    rows, pair = between.rows, between.pair
    other = 1 - halves.half[rows]
    a, b = pairs[pair].T + halves.mass.size // 2 * other
    t = halves.score[rows, a] - halves.score[rows, b]
    if pilot.length.size:
        noise = (uniform(pilot.ticket, _LATTICE) - 0.5) / pilot.length
        t += step[other, pair] * noise[rows]
    size = np.abs(halves.centres.affine.offset)
    rounding = 1e3 * np.finfo(float).eps * (pilot.table.base[rows] + size[a] + size[b])
    gap = gap[other, pair]
    keep = gap > rounding
    edges = np.concatenate([[0], np.cumsum(np.bincount(pair[keep], minlength=len(pairs)))])
    t = t[keep] / gap[keep]
    kernels().sort_segments(edges, t)
    return t, edges


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
