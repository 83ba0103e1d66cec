"""Rows together with what does not change during a fit, and what is remembered of each row."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array, Geometry
from kfree.kernels import kernels
from kfree.rows import Norms, Rows
from kfree.rows.exact_sums import ExactSums

_NONE = np.empty(0)


class Table(NamedTuple):
    """Rows, the geometry they live in, and their constants."""

    rows: Rows
    geometry: Geometry
    base: Array  # (n,) D(x, anchor)
    hashes: Array  # (n,) uint64, of the content of each row
    unit: Array  # (n,) min(1, w): the weight of one copy, or (0,) for ones
    alone: Array  # (n,) what a cluster of one copy costs besides lam, or (0,) for zeros
    copies: Array = _NONE  # (n,) how many copies a row stands for, or (0,) where nobody asks

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.rows.n

    @property
    def all_equal(self) -> bool:
        """Whether all rows that have weight are copies of one."""
        hashes = self.hashed().hashes
        if self.rows.weight.size:
            hashes = hashes[self.rows.weight > 0]
        return bool((hashes == hashes[:1]).all())

    def threshold(self, lam: float, rows: slice | Array = slice(None)) -> Array | float:
        """Cost of one copy above which a row opens a cluster: lam + s."""
        return lam + self.alone[rows] if self.alone.size else lam

    def excess(self, cost: Array, lam: float, rows: slice | Array = slice(None)) -> Array:
        """e_i = v_i D_i - lam - s_i: positive where a row would rather open a cluster."""
        gain = cost
        if self.unit.size:
            unit = self.unit[rows]
            gain = unit * np.where(unit > 0, cost, 0.0)  # a row without weight opens nothing, however far it is
        if not np.isfinite(lam):
            return np.full(gain.shape, -np.inf)  # however far a row is
        # in this order a radius found as v D - s is met exactly
        return (gain - self.alone[rows] if self.alone.size else gain) - lam

    def as_published(self, mean: Array) -> Array:
        """Centres rounded once to the users' units, and back: those that ``predict`` will use."""
        return (mean + self.rows.shift) - self.rows.shift

    def singletons(self, rows: Array) -> Array:
        """Centres of clusters that one copy of each of these rows would open."""
        unit = self.unit[rows] if self.unit.size else np.ones(len(rows))
        unit = np.where(unit > 0, unit, 1.0)  # a row of weight zero opens nothing; its centre is only looked at
        return self.geometry.singleton_centre(self.rows.dense(rows), unit)

    def norms(self) -> Norms | None:
        """A bound on the size of the rows that their base cost or their normalisation gives; None without one."""
        family = self.geometry.family
        if family.euclidean_factor is not None:
            return Norms(1 / family.euclidean_factor, float(np.sqrt((self.geometry.anchor**2).sum())), 0)
        return Norms(0.0, 1.0 + 1e-9, 1) if family.normalise == "sum" else None

    def sample(self, rows: Array, weight: Array) -> "Table":
        """Some of the rows, in memory, with weights of their own."""
        return Table(
            self.rows.take(rows, weight),
            self.geometry,
            self.base[rows],
            self.hashes[rows],
            self.unit[rows] if self.unit.size else self.unit,
            self.alone[rows] if self.alone.size else self.alone,
        )

    def joined(self, other: "Table") -> "Table":
        """These rows and those of another table of the same geometry, in memory."""
        unit = (self._units(), other._units()) if self.unit.size or other.unit.size else (self.unit, other.unit)
        return Table(
            self.rows.joined(other.rows),
            self.geometry,
            np.concatenate([self.base, other.base]),
            np.concatenate([self.hashes, other.hashes]),
            np.concatenate(unit),
            np.concatenate([self.alone, other.alone]),
        )

    def hashed(self) -> "Table":
        """The same with hashes, if it was made without."""
        if self.hashes.size == self.n:
            return self
        return self._replace(hashes=np.concatenate(list(self.rows.each(self.rows.hash))))

    def _units(self) -> Array:
        return self.unit if self.unit.size else np.ones(self.n)


def make_table(
    rows: Rows, geometry: Geometry, once: Array | None = None, *, hashes: bool = True, opens: bool = True
) -> Table:
    """Compute the constants of the rows, span by span; rows that open nothing need not know what they cost alone.

    ``once`` holds the weight of one copy of each row, by default 1, or that of the row if it weighs less.
    """
    n = rows.n
    base, content = np.empty(n), np.empty(n if hashes else 0, np.uint64)
    once = np.minimum(rows.weight, 1.0) if once is None else once
    unit = np.minimum(once, 1.0) if once.size and once.min() < 1 else np.empty(0)
    alone = np.empty(n if geometry.eta and opens else 0)

    def fill(span: slice) -> None:
        if hashes:
            content[span] = rows.hash(span)
        with np.errstate(over="ignore", invalid="ignore"):  # what is beyond the range of floats is refused at the door
            base[span] = rows.base(span, geometry)
            if alone.size:
                weight = unit[span] if unit.size else np.ones(span.stop - span.start)
                alone[span] = rows.singleton_cost(span, geometry, weight)

    for _ in rows.each(fill):
        pass
    copies = rows.weight / np.where(once > 0, once, 1.0) if hashes and once.size else _NONE
    return Table(rows, geometry, base, content, unit, alone, copies)


class Memory:
    """What is remembered of each row between passes; the arrays are written in place."""

    def __init__(self, labels: Array, cost: Array, low: Array) -> None:
        self.labels = labels  # (n,) int32, nearest centre at the last assignment; -1 before the first
        self.cost = cost  # (n,) divergence from it
        self.low = low  # (n,) no other centre costs less than this; -inf where nothing is known
        self.sums: ExactSums | None = None  # of the rows by label; None where nobody knows them

    def forget(self) -> None:
        """Nothing is known of other centres: they have moved by more than bounds follow."""
        self.low[:] = -np.inf

    def written(self, sums: ExactSums | None = None) -> None:
        """Somebody has written labels: bounds no longer hold, and sums are those given, if they are known."""
        self.forget()
        self.sums = sums

    def relabel(self, new: Array) -> None:
        """Every label becomes its new number; bounds stay as they are."""
        sums, self.sums = self.sums, None
        kernels().relabel(new, self.labels)
        if sums is not None:
            self.sums = sums.relabelled(new, int(new.max()) + 1)


def make_memory(n: int) -> Memory:
    """Memory of rows that have not been assigned yet."""
    return Memory(np.full(n, -1, np.int32), np.full(n, np.inf), np.full(n, -np.inf))
