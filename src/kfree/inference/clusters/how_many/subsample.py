"""The pilot: the rows on which lam is chosen.

Every row has a ticket, a hash of its content and of its number among its copies. Draws, halves and noise are
functions of tickets, and the rows stand in the order of their tickets: so nothing depends on the order of the table.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array, Geometry
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.table import Table
from kfree.inference.content import dither, nth_copy, uniform
from kfree.rows import DenseRows

#: Rows of a pilot: at most, as many as hold so many entries, and not fewer for that than ...
MOST_ROWS, MOST_ENTRIES, ENOUGH_ROWS = 10_000, 4_000_000, 2000
#: Pseudo-observations at the global centre in every cluster, for rows of mean weight 1.
SMOOTHING = 0.05
# Sparse rows with more entries than this are not dithered, for that would fill them.
_MOST_FILLED = 2_000_000

# Rows up to which integer weights are spelled out as copies.
_MOST_COPIES = 200_000


class Pilot(NamedTuple):
    """Some rows of a table, prepared for the choice of lam."""

    table: Table  # the rows, with weights of mean 1, a smoothed geometry, and rounding dithered away
    stats: Any  # (m, p) their statistics, array or CSR matrix
    ticket: Array  # (m,) uint64
    length: Array  # (m,) counts that a row was divided by, where counts put projections on a lattice; else (0,)
    origin: Array  # (m,) where the rows stand in the whole table
    n_distinct: int  # rows of different content
    scale: float  # weight of the whole table over that of the pilot

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.table.n

    def sums(self, labels: Array, K: int) -> tuple[Array, Array]:
        """Sums (K, p) and weights (K,) by label; on this thread, so that it may be one of several."""
        total, mass = np.zeros((K, self.table.rows.p)), np.zeros(K)
        self.table.rows.add(slice(0, self.n), labels, total, mass)
        return total, mass

    def own_cost(self, rows: slice | Array, centres: Centres, labels: Array) -> Array:
        """Divergences (m,) of rows from the centres in ``labels``; large, not +inf, where a centre excludes a row:
        smoothed centres exclude none, and differences of infinities would be no numbers."""
        table = self.table
        factor = table.geometry.family.euclidean_factor
        if factor is not None:
            return factor * table.rows.distance(rows, labels, centres.mean)
        return np.maximum(table.base[rows] + table.rows.own(rows, labels, centres.affine), 0.0)


def draw_pilot(table: Table) -> Pilot:
    """Draw rows with probability proportional to weight, and prepare them."""
    most = int(np.clip(MOST_ENTRIES // max(_entries_each(table), 1), ENOUGH_ROWS, MOST_ROWS))
    return make_pilot(table, *_draw(table, most))


def make_pilot(table: Table, index: Array, ticket: Array, weight: Array) -> Pilot:
    """Prepare rows that were drawn, in the order of their tickets."""
    rows: Any = table.rows.take(index, weight * (index.size / weight.sum()))
    length = _lengths(table, rows.X, index)
    n_distinct = np.unique(table.hashes[index]).size
    scale = table.rows.total_weight() / index.size
    family, anchor = table.geometry.family, table.geometry.anchor
    eta = 0.0 if family.translates or not family.smoothable else SMOOTHING  # only centres on a boundary exclude
    geometry = Geometry(family, anchor, eta, anchor if eta else None)
    if family.translates and (not sp.issparse(rows.X) or rows.n * rows.p <= _MOST_FILLED):
        stats = dither(rows.dense(slice(0, rows.n)), ticket)
        rows = DenseRows(stats, weight=rows.weight, scale=np.empty(0), shift=np.zeros(rows.p))
    base = rows.base(slice(0, rows.n), geometry)
    none = np.empty(0)
    pilot = Table(rows, geometry, base, ticket, none, none)
    stats = rows.X if not rows.scale.size else sp.csr_matrix(rows.X.multiply(rows.scale[:, None]))
    return Pilot(pilot, stats, ticket, length, index, n_distinct, scale)


def _entries_each(table: Table) -> int:
    """Stored entries of a row, on average."""
    X: Any = getattr(table.rows, "X", None)
    return X.nnz // max(table.n, 1) if sp.issparse(X) else table.rows.p


def _draw(table: Table, most: int) -> tuple[Array, Array, Array]:
    """Rows, tickets and weights of a sample without replacement, in the order of the tickets.

    An exponential race: row i arrives at -log(u_i) / w_i and the first ``most`` are in. Given when the next one
    arrives, row i is in with probability 1 - exp(-w_i time), and w_i over that makes every sum unbiased.
    """
    weight = table.rows.weights(slice(0, table.n))
    index = np.flatnonzero(weight > 0)
    index = index[np.lexsort((weight[index], table.hashes[index]))]
    copies = np.rint(table.copies)
    if copies.size and (np.abs(table.copies - copies) <= 1e-9 * copies).all() and copies.sum() <= _MOST_COPIES:
        index = np.repeat(index, copies[index].astype(np.intp))  # an integer weight is so many rows
        weight = weight / np.maximum(copies, 1.0)
    hashes, weight = table.hashes[index], weight[index]
    start = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]]))
    copy = np.arange(index.size) - np.repeat(start, np.diff(np.append(start, index.size)))
    ticket = nth_copy(hashes, copy)
    if index.size > most:
        arrival = -np.log(uniform(ticket, 0)) / weight
        first = np.argpartition(arrival, most)
        index, ticket, weight = index[first[:most]], ticket[first[:most]], weight[first[:most]]
        weight = weight / -np.expm1(-weight * arrival[first[most]])
    order = np.argsort(ticket, kind="stable")
    return index[order], ticket[order], weight[order]


def _lengths(table: Table, stats: Any, index: Array) -> Array:
    """What whole counts were divided by, row by row; empty if the data are not whole counts."""
    if not table.geometry.family.counts:
        return np.empty(0)
    length = 1.0 / table.rows.scale[index] if table.rows.scale.size else np.ones(index.size)
    counts = stats.data if sp.issparse(stats) else stats * length[:, None]  # sparse rows are still undivided
    whole = np.abs(counts - np.rint(counts)) <= 1e-6 * np.maximum(counts, 1.0)
    return length if whole.all() else np.empty(0)
