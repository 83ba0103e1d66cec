"""The pilot: the rows on which lam is chosen.

Every row has a ticket, a hash of its content and of its number among its copies. Draws, halves and noise are
functions of tickets, and the rows stand in the order of their tickets: so nothing depends on the order of the table.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array, Geometry
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.how_many.how_many_numbers import HOW_MANY
from kfree.inference.clusters.table import Table
from kfree.inference.content import dither, nth_copy, starts, uniform
from kfree.inference.race import Contents, Entrants, arrivals, first_contents
from kfree.rows import DenseRows

# Sparse rows with more entries than this are not dithered, for that would fill them.
_MOST_FILLED = 2_000_000

# Rows up to which copies are spelled out.
_MOST_COPIES = 1_000_000


class Pilot(NamedTuple):
    """Some rows of a table, prepared for the choice of lam."""

    table: Table  # the rows, with weights of mean 1 and a smoothed geometry
    stats: Any  # (m, p) their statistics, array or CSR matrix
    smooth: Any  # (m, p) the same with rounding dithered away, which would show as valleys
    ticket: Array  # (m,) uint64
    length: Array  # (m,) counts that a row was divided by, where counts put projections on a lattice; else (0,)
    source: Table  # the rows as they are
    origin: Array  # (m,) where they stand there
    n_distinct: int  # rows of different content
    scale: float  # weight of the whole table over that of the pilot
    charge: float = 0.0  # what the prior's share in the objective of the table is of that here

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
    contents, place = first_contents(Entrants(table.hashes, table.rows.weight, table.copies), HOW_MANY.contents)
    index, ticket, weight = draw(contents, most_drawn(table.rows.entries // max(table.n, 1)))
    return make_pilot(table, place[index], ticket, weight, table.rows.total_weight())


def most_drawn(entries: int) -> int:
    """Rows of a pilot at most, if each stores so many entries."""
    most_entries, enough = HOW_MANY.entries
    return int(np.clip(most_entries // max(entries, 1), enough, HOW_MANY.rows))


def make_pilot(table: Table, index: Array, ticket: Array, weight: Array, total: float) -> Pilot:
    """Prepare rows that were drawn from a table of so much weight, in the order of their tickets."""
    rows: Any = table.rows.take(index, weight * (index.size / weight.sum()))
    length = _lengths(table, rows.X, index)
    n_distinct = np.unique(table.hashes[index]).size
    scale = total / index.size
    geometry, charge = _smoothed(table.geometry, scale)
    smooth: Any = None
    if table.geometry.family.translates and (not sp.issparse(rows.X) or rows.n * rows.p <= _MOST_FILLED):
        stats = rows.dense(slice(0, rows.n))
        rows = DenseRows(stats, weight=rows.weight, scale=np.empty(0), shift=np.zeros(rows.p))
        smooth = dither(stats, ticket)
    base = rows.base(slice(0, rows.n), geometry)
    none = np.empty(0)
    pilot = Table(rows, geometry, base, ticket, none, none)
    stats = rows.X if not rows.scale.size else sp.csr_matrix(rows.X.multiply(rows.scale[:, None]))
    seen = stats if smooth is None else smooth
    return Pilot(pilot, stats, seen, ticket, length, table, index, n_distinct, scale, charge)


def pilot_of(stats: Array, weight: Array, ticket: Array, geometry: Geometry, charge: float = 0.0) -> Pilot:
    """Rows that are of no table, prepared as those that are."""
    n, p = stats.shape
    none = np.empty(0)
    rows = DenseRows(np.ascontiguousarray(stats), weight=weight * (n / weight.sum()), scale=none, shift=np.zeros(p))
    table = Table(rows, geometry, rows.base(slice(0, n), geometry), ticket, none, none)
    return Pilot(table, rows.X, rows.X, ticket, none, table, np.arange(n), n, 1.0, charge)


def part_of(pilot: Pilot, rows: Array) -> Pilot:
    """Some rows of a pilot."""
    table = pilot.table.sample(rows, pilot.table.rows.weight[rows])
    length = pilot.length[rows] if pilot.length.size else pilot.length
    share = pilot.n_distinct / pilot.n
    return pilot._replace(
        table=table,
        stats=pilot.stats[rows],
        smooth=pilot.smooth[rows],
        ticket=pilot.ticket[rows],
        length=length,
        origin=pilot.origin[rows],
        n_distinct=int(share * rows.size),
    )


def _smoothed(geometry: Geometry, scale: float) -> tuple[Geometry, float]:
    """The geometry of a pilot and its charge: the prior weighs as much beside its rows as beside those of the table,
    and where centres on a boundary would exclude rows at least a little."""
    family, own = geometry.family, geometry.eta / scale
    least = 0.0 if family.translates or not family.smoothable else HOW_MANY.smoothing
    eta = max(own, least)
    mean = geometry.prior_mean if geometry.eta else geometry.anchor
    return Geometry(family, geometry.anchor, eta, mean if eta else None), own / eta if eta else 0.0


def draw(contents: Contents, most: int) -> tuple[Array, Array, Array]:
    """Rows, tickets and weights of a sample without replacement, in the order of the tickets.

    An exponential race: row i arrives at -log(u_i) / w_i and the first ``most`` are in. Given when the next one
    arrives, row i is in with probability 1 - exp(-w_i time), and w_i over that makes every sum unbiased. Of long tables
    contents race first, as their copies may be anywhere, then copies of those that are in.
    """
    index, contents = _heats(contents)
    weight, copies = contents.weight, np.rint(contents.copies)
    if (np.abs(contents.copies - copies) <= 1e-9 * copies).all() and copies.sum() <= _MOST_COPIES:
        times = copies.astype(np.intp)  # an integer weight is so many rows
        index, hashes, weight = np.repeat(index, times), np.repeat(contents.hashes, times), weight / copies
        weight = np.repeat(weight, times)
    else:
        hashes = contents.hashes
    start = np.flatnonzero(starts(hashes))
    copy = np.arange(index.size) - np.repeat(start, np.diff(np.append(start, index.size)))
    ticket = nth_copy(hashes, copy)
    if index.size > most:
        arrival = -np.log(uniform(ticket, 0)) / weight
        first = np.argpartition(arrival, most)
        index, ticket, weight = index[first[:most]], ticket[first[:most]], weight[first[:most]]
        weight = weight / -np.expm1(-weight * arrival[first[most]])
    order = np.argsort(ticket, kind="stable")
    return index[order], ticket[order], weight[order]


def _heats(contents: Contents) -> tuple[Array, Contents]:
    """The rows of the contents that are in, with weights that stand for all of them."""
    first, total = contents.totals()
    if first.size <= HOW_MANY.contents:
        return np.arange(contents.hashes.size), contents
    arrival = arrivals(contents.hashes[first], total)
    ranked = np.argpartition(arrival, HOW_MANY.contents)
    kept, times = np.zeros(first.size, bool), np.diff(np.append(first, contents.hashes.size))
    kept[ranked[: HOW_MANY.contents]] = True
    share = -np.expm1(-total * arrival[ranked[HOW_MANY.contents]])
    rows = np.flatnonzero(np.repeat(kept, times))
    some = contents.some(rows)
    return rows, some._replace(weight=some.weight / np.repeat(share, times)[rows])


def _lengths(table: Table, stats: Any, index: Array) -> Array:
    """What whole counts were divided by, row by row; empty if the data are not whole counts."""
    if not table.geometry.family.counts:
        return np.empty(0)
    length = 1.0 / table.rows.scale[index] if table.rows.scale.size else np.ones(index.size)
    counts = stats.data if sp.issparse(stats) else stats * length[:, None]  # sparse rows are still undivided
    whole = np.abs(counts - np.rint(counts)) <= 1e-6 * np.maximum(counts, 1.0)
    return length if whole.all() else np.empty(0)
