"""Rows of a dense table: numpy array or memory map, C or F order, any real dtype."""

from typing import Any

import numpy as np

from kfree.families import Affine, Array, Family, Geometry
from kfree.families.cached import cached_property
from kfree.kernels import kernels
from kfree.rows.base import Assigned, Descent, Nearest, Norms, Rows, limits_of, magnitude, positions
from kfree.rows.exact_sums import ExactSums

# Entries up to which a table in another order or type is converted once, not span by span in every pass.
_SMALL = 4_000_000
_DOUBLE = np.dtype(np.float64)
# Of the entries of a grid 30 bits are kept at least, so of these the 53 that float64 has.
_LAST_DIGITS = 2.0**-23


def sizes_of(extent: tuple[Array, Array, Array], shift: Array, scale: float) -> tuple[Array, Array]:
    """Largest and finest entries of columns that are shifted; ``scale`` is the largest of the rows, 0 for none."""
    least, largest, finest = extent
    size = np.abs(shift)
    # entries that are near what is subtracted leave as little as its digits tell
    finest = np.where(finest > 2 * size, finest, size * _LAST_DIGITS)
    if not scale:
        return np.maximum(np.abs(least - shift), np.abs(largest - shift)), finest
    return np.maximum(np.abs(least), np.abs(largest)) + size * scale, finest


class DenseRows(Rows):
    """Rows of a dense array; float64 and float32 in C order are read in place, others are converted: once if small,
    else span by span."""

    def __init__(
        self,
        X: Array,
        *,
        weight: Array,
        scale: Array,
        shift: Array,
        dtype: Any = None,
        ratio: float | None = 1.0,
    ):
        self.bind(X)
        self.n, self.p = X.shape
        self.weight, self.scale, self.shift, self.ratio = weight, scale, shift, ratio
        self.dtype = np.dtype(dtype or (X.dtype if X.dtype.kind == "f" else np.float64))

    def bind(self, X: Array) -> None:
        """Read rows from here, where they have the values they had."""
        if X.size <= _SMALL and not (X.flags.c_contiguous and X.dtype in (np.float32, np.float64)):
            X = np.ascontiguousarray(X, dtype=np.float32 if X.dtype == np.float32 else np.float64)
        self.X = X
        # Of a memory map the array underneath, which kernels accept.
        self._view = np.asarray(X) if X.flags.c_contiguous and X.dtype in (np.float32, np.float64) else None

    def release(self) -> None:
        """Hold no values until rows are bound again."""
        self.X, self._view = np.empty((0, self.p), self.X.dtype), None  # a slice would hold them all

    def shifted(self, shift: Array, ratio: float | None = 1.0) -> "DenseRows":
        """The same rows less something else; what is known of their extent stays known."""
        other = DenseRows(self.X, weight=self.weight, scale=self.scale, shift=shift, dtype=self.dtype, ratio=ratio)
        other.extent = self.extent
        if not self.scale.size and not self.shift.any():  # their sum need not be formed again
            other.whole = self.exact_whole.less(shift), self.whole[1]
        return other

    def _window(self, rows: Any) -> tuple[Array, Array, Array]:
        """An array that holds the rows, their positions in it, and the row scales that go with it."""
        if self._view is not None and not isinstance(rows, slice):
            return self._view, rows, self.scale
        if self._view is not None:
            return self._view[rows], positions(rows), self.scale[rows] if self.scale.size else self.scale
        copy = np.ascontiguousarray(self.X[rows], dtype=np.float64)
        return copy, np.arange(copy.shape[0]), self.scale[rows] if self.scale.size else self.scale

    def dense(self, rows: Any) -> Array:
        """Statistics of a few rows, float64."""
        # take is quicker, but copies the whole of an array that is not contiguous
        view = None if isinstance(rows, slice) else self._view
        X = self.X[rows] if view is None else np.take(view, rows, axis=0)
        stats = np.asarray(X, dtype=np.float64) - self.shift
        return stats * self.scale[rows][:, None] if self.scale.size else stats

    def take(self, rows: Array, weight: Array) -> "DenseRows":
        """A copy of some rows in memory, float64, with weights of its own."""
        stats = self.dense(rows)
        return DenseRows(
            stats, weight=weight, scale=np.empty(0), shift=np.zeros(self.p), dtype=self.dtype, ratio=self.ratio
        )

    def part(self, rows: Array) -> "DenseRows":
        """A copy of some rows in memory as they are, which is not as they are measured; they weigh 1."""
        scale = self.scale[rows] if self.scale.size else self.scale
        weight = np.ones(len(rows))
        return DenseRows(self.X[rows], weight=weight, scale=scale, shift=self.shift, dtype=self.dtype, ratio=self.ratio)

    def joined(self, other: "DenseRows") -> "DenseRows":
        """These rows and those of another sample of the same table."""
        X = np.concatenate([self.X, other.X])
        weight = np.concatenate([self.weights(slice(0, self.n)), other.weights(slice(0, other.n))])
        scale = np.concatenate([self.scale, other.scale])
        return DenseRows(X, weight=weight, scale=scale, shift=self.shift, dtype=self.dtype, ratio=self.ratio)

    def hash(self, rows: slice) -> Array:
        """Hashes of the rows' content as the user gave it."""
        X, index, _ = self._window(rows)
        hashes = np.empty(index.shape[0], np.uint64)
        kernels().hash_dense(X, index, hashes)
        return hashes

    def base(self, rows: slice, geometry: Geometry) -> Array:
        """D(x, anchor)."""
        factor = geometry.family.euclidean_factor
        if factor is not None:
            return factor * self.distance(rows, np.zeros(rows.stop - rows.start, np.int32), geometry.anchor[None])
        return geometry.divergence(self.dense(rows), geometry.anchor)

    @property
    def entries(self) -> int:
        """Stored entries: what one pass reads."""
        return self.n * self.p

    def _nearest(self, rows: Any, affine: Affine, dtype: Any, reach: Array, out: Nearest) -> int:
        X, index, scale = self._window(rows)
        kernels().nearest_dense(X, index, self.shift, scale, *affine.cast(dtype), reach, *out)
        return self.p

    def own(self, rows: Any, labels: Array, affine: Affine) -> Array:
        """Relative costs of rows to the centres in ``labels``, float64."""
        X, index, scale = self._window(rows)
        cost = np.empty(index.shape[0])
        kernels().own_dense(X, index, self.shift, scale, labels, affine.coef, affine.offset, cost)
        return cost

    def distance(self, rows: Any, labels: Array, mean: Array) -> Array:
        """Squared Euclidean distances of rows from the means in ``labels``, float64."""
        X, index, scale = self._window(rows)
        square = np.empty(index.shape[0])
        kernels().distance_dense(X, index, self.shift, scale, labels, mean, square)
        return square

    def add(self, rows: Any, labels: Array, total: Array, mass: Array) -> None:
        """Add w x and w of rows to the sums of their labels (skipped if negative)."""
        X, index, scale = self._window(rows)
        weight = self.weight if X is self._view or not self.weight.size else self.weight[rows]
        kernels().add_dense(X, index, self.shift, scale, weight, labels, total, mass)

    def move(self, rows: Any, before: Array, labels: Array, sums: ExactSums) -> None:
        """Move rows between the sums of their labels."""
        X, index, scale = self._window(rows)
        weight = self.weight if X is self._view or not self.weight.size else self.weight[rows]
        kernels().move_dense(X, index, self.shift, scale, weight, before, labels, sums.ledger)

    @cached_property
    def extent(self) -> tuple[Array, Array, Array]:
        """(p,) The least and the largest entries of rows times their scales, before they are shifted, and the smallest
        that are not 0; infinite where there are none."""

        def of_span(span: slice) -> tuple[Array, Array, Array]:
            X, index, scale = self._window(span)
            ends = np.full(self.p, np.inf), np.full(self.p, -np.inf), np.full(self.p, np.inf)
            kernels().extent_dense(X, index[self._weighing(span)], scale, *ends)
            return ends

        least, largest, finest = np.full(self.p, np.inf), np.full(self.p, -np.inf), np.full(self.p, np.inf)
        for lo, hi, small in self.each(of_span):
            np.minimum(least, lo, out=least)
            np.maximum(largest, hi, out=largest)
            np.minimum(finest, small, out=finest)
        return least, largest, finest

    def _sizes(self) -> tuple[Array, Array]:
        return sizes_of(self.extent, self.shift, float(self.scale.max(initial=0.0)))

    def measure(self, span: slice, labels: Array, mean: Array, factor: float, *decisions: Any) -> tuple[int, int]:
        """The same as for any rows, in one call."""
        X, index, scale = self._window(span)
        return kernels().measure_dense(X, index, self.shift, scale, labels, mean, factor, *decisions)

    def assign(
        self,
        span: slice,
        mean: Array,
        factor: float,
        affine: Affine,
        norms: Norms,
        opening: tuple[Array, Array, Array, float],
        memory: tuple[bool, Array, Array, Array],
        sums: tuple[ExactSums, Array],
    ) -> Assigned:
        """The same as for any rows, in one call."""
        X, index, scale = self._window(span)
        weight = self.weight[span] if self.weight.size else self.weight
        looks = tuple((*affine.cast(dtype), limits_of(dtype)) for dtype in (self.dtype, _DOUBLE))
        base, unit, alone, lam = opening
        centres = mean, factor, looks, base, unit, alone, norms.of(affine), affine.size, lam
        ends = sums[0].ledger, sums[1]
        return Assigned(*kernels().assign_dense(X, index, self.shift, scale, weight, *centres, *memory, *ends))

    def descend(
        self,
        mean: Array,
        geometry: Geometry,
        base: Array,
        lam: float,
        rule: tuple[int, int, float, float, bool],
        memory: tuple[Array, Array, Array],
        sums: tuple[ExactSums, Array],
        room: int,
    ) -> Descent:
        """The same as for any rows, in one call."""
        X, index, scale = self._window(slice(0, self.n))
        trace, looks = np.empty((room, 3)), (limits_of(self.dtype), limits_of(_DOUBLE))
        metric = geometry.anchor, geometry.family.euclidean_factor
        table = X, index, self.shift, scale, self.weight, base, *metric, lam, rule
        ends = sums[0].ledger, sums[1]
        count, *rest = kernels().descend_dense(*table, np.empty(0, self.dtype), looks, mean, *memory, *ends, trace)
        return Descent(trace[:count], *rest)

    def two_means(self, rows: Array, labels: Array, steps: int, mean: Array, usable: Array) -> bool:
        """The same as for any rows, in one call if they are read in place."""
        if self._view is None:
            return False
        kernels().two_means_dense(self._view, rows, self.shift, self.scale, self.weight, labels, steps, mean, usable)
        return True

    def products(self, rows: Any, affine: Affine) -> tuple[Array, Array]:
        """Products (m, K) of a few rows with the coefficients, float64, and a bound (m,) on their magnitude."""
        x = self.dense(rows)
        return x @ affine.coef.T, magnitude(np.abs(x).sum(axis=1), (x * x).sum(axis=1), affine.reach)

    def parts(self, rows: Array, labels: Array, K: int, family: Family) -> "DenseRows":
        """The centres of K sets of rows as rows of their own; each weighs what its centre stands for."""
        total, mass = np.zeros((K, self.p)), np.zeros(K)
        self.add(rows, labels, total, mass)
        with np.errstate(over="ignore"):  # where rows are no unit vectors nobody looks at it
            pull = family.pull((total * total).sum(axis=1), mass)
        none, shift = np.empty(0), np.zeros(self.p)
        return DenseRows(
            family.centre(total, mass), weight=pull, scale=none, shift=shift, dtype=self.dtype, ratio=self.ratio
        )
