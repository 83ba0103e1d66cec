"""Bounds that show which rows cannot have changed their nearest centre, for centres that have moved."""

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.inference.clusters.table import Memory, Table
from kfree.kernels import kernels


def loosen(
    table: Table, before: Centres, after: Centres, kept: Array, memory: Memory, reach: Array | None = None
) -> None:
    """Make ``memory.low`` hold for the centres ``after``; labels already count in them.

    ``kept`` gives, for each centre of ``after`` that stood in ``before``, its index there; centres beyond
    ``len(kept)`` are new. For a row x of cluster a the cost of another centre k changes by

        d psi_k - <x, d theta_k>  >=  d psi_k - <mu_a, d theta_k> - R_a |d theta_k|,

    with R_a the largest distance of a's rows from mu_a: exact for every affine cost, no triangle inequality.
    New centres are evaluated for all rows. ``reach`` (see ``Sums``) saves measuring R for Euclidean costs. Where the
    centres outweigh the rows this would cost more than it saves, and nothing is known afterwards; nor where nothing was
    known before.
    """
    K_old, K = len(kept), after.mean.shape[0]
    if not (memory.low > -np.inf).any():
        return
    small = table.rows.entries * K <= CLUSTERS.quick
    if K_old == 0 or memory.labels.size == 0 or memory.labels[0] < 0 or small or after.mean.size > table.rows.entries:
        memory.forget()
        return
    radius = _radius(table, before.mean[kept], memory, None if reach is None else reach[kept])
    fall = _least_changes(before, after, kept, radius)
    fresh = after.affine.some(slice(K_old, None))

    def of_span(span: slice) -> None:
        low = memory.low[span]
        kernels().lower_bounds(memory.labels[span], fall, low)
        if K_old < K:
            base = table.base[span]
            found, _ = table.rows.nearest(span, base, fresh, norms=table.norms())
            np.minimum(low, base + found.least - 2 * found.slack, out=low)

    for _ in table.rows.each(of_span):
        pass


def _least_changes(before: Centres, after: Centres, kept: Array, radius: Array) -> Array:
    """For each cluster a: the least change of any other centre's cost for a row within radius_a of mu_a."""
    K = len(kept)
    if K == 1:
        return np.zeros(1)
    step = after.affine.coef[:K] - before.affine.coef[kept]
    length = np.sqrt((step * step).sum(axis=1))
    lift = after.affine.offset[:K] - before.affine.offset[kept]
    fall = np.empty(K)
    for start in range(0, K, 64):  # a few clusters at a time: nothing of size K x K
        drop = before.mean[kept[start : start + 64]] @ step.T
        kernels().least_changes(drop, lift, length, radius, start, fall)
    return fall


def _radius(table: Table, mean: Array, memory: Memory, reach: Array | None) -> Array:
    """Largest Euclidean distance of a cluster's rows from its centre, with a little room for rounding."""
    K, factor = mean.shape[0], table.geometry.family.euclidean_factor
    if factor is not None and reach is not None:
        return np.sqrt(reach / factor) * (1 + 1e-9)

    def of_span(span: slice) -> Array:
        labels, squares = memory.labels[span], np.zeros(K)
        mine = np.flatnonzero(labels < K)
        square = table.rows.distance(mine + span.start, labels[mine], mean)
        kernels().tally(np.empty(0), labels[mine], square, labels[mine], squares)
        return squares

    squares = np.zeros(K)
    for part in table.rows.each(of_span):
        np.maximum(squares, part, out=squares)
    return np.sqrt(squares) * (1 + 1e-9)
