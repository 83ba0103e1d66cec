"""Rows of a compressed sparse table; never densified beyond a few rows."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from kfree.families import Affine, Array, Family, Geometry, Separable
from kfree.families.cached import cached_property
from kfree.kernels import kernels
from kfree.rows.base import Nearest, Rows, magnitude
from kfree.rows.exact_sums import ExactSums

# Bytes that the centres of one column fill up to a multiple of: what the kernel keeps in registers.
_PAD = 256


def cells_of(X: sp.csr_matrix) -> tuple[Array, Array, Array]:
    """Entries, their columns (int32) and where rows start (int64): what kernels take, whatever scipy chose, and however
    they came over a network."""
    return (
        np.require(X.data, None, ("C", "A")),
        np.require(X.indices, np.int32, ("C", "A")),
        np.require(X.indptr, np.int64, ("C", "A")),
    )


class CsrRows(Rows):
    """Rows of a CSR matrix with sorted indices and no duplicates."""

    def __init__(self, X: sp.csr_matrix, *, weight: Array, scale: Array, dtype: Any = None, ratio: float | None = 1.0):
        self.bind(X)
        self.n, self.p = X.shape
        self.weight, self.scale, self.ratio = weight, scale, ratio
        self.shift = np.zeros(self.p)
        self.dtype = np.dtype(dtype or (X.dtype if X.dtype.kind == "f" else np.float64))

    def bind(self, X: sp.csr_matrix) -> None:
        """Read rows from here, where they have the values they had."""
        self.X, self.cells = X, cells_of(X)

    def release(self) -> None:
        """Hold no values until rows are bound again."""
        self.bind(self.X[:0])

    def _index(self, rows: Any) -> Array:
        return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows

    def dense(self, rows: Any) -> Array:
        """Statistics of a few rows, float64."""
        stats = self.X[rows].toarray().astype(np.float64)
        return stats * self.scale[rows][:, None] if self.scale.size else stats

    def take(self, rows: Array, weight: Array) -> "CsrRows":
        """A copy of some rows in memory, float64, with weights of its own."""
        X = self.X[rows].astype(np.float64)
        scale = self.scale[rows] if self.scale.size else self.scale
        return CsrRows(X, weight=weight, scale=scale, dtype=self.dtype, ratio=self.ratio)

    def part(self, rows: Array) -> "CsrRows":
        """A copy of some rows in memory as they are, which is not as they are measured; they weigh 1."""
        scale = self.scale[rows] if self.scale.size else self.scale
        return CsrRows(self.X[rows], weight=np.ones(len(rows)), scale=scale, dtype=self.dtype, ratio=self.ratio)

    def joined(self, other: "CsrRows") -> "CsrRows":
        """These rows and those of another sample of the same table."""
        X = sp.vstack([self.X, other.X], format="csr")
        weight = np.concatenate([self.weights(slice(0, self.n)), other.weights(slice(0, other.n))])
        return CsrRows(
            X, weight=weight, scale=np.concatenate([self.scale, other.scale]), dtype=self.dtype, ratio=self.ratio
        )

    def hash(self, rows: slice) -> Array:
        """Hashes of the rows' content as the user gave it."""
        index = self._index(rows)
        hashes = np.empty(index.shape[0], np.uint64)
        kernels().hash_csr(*self.cells, index, hashes)
        return hashes

    def base(self, rows: slice, geometry: Geometry) -> Array:
        """D(x, anchor): the zeros' part for all columns at once, corrected on the stored entries."""
        family = geometry.family
        if not isinstance(family, Separable):
            raise TypeError(
                f"divergence={family.name or type(family).__name__!r} does not work on sparse rows because it is not "
                "a sum over columns. Pass X.toarray(), or use divergence='sqeuclidean'."
            )
        part = self.X[rows]
        values = part.data.astype(np.float64)
        if self.scale.size:
            values = values * np.repeat(self.scale[rows], np.diff(part.indptr))
        zeros = family.terms(np.zeros(self.p), geometry.anchor)
        full = np.isinf(zeros)  # columns without a zero in the data: a row that has one is excluded
        zeros[full] = 0.0
        correction = family.terms(values, geometry.anchor[part.indices]) - zeros[part.indices]
        owner = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
        by_row = np.bincount(owner, weights=correction, minlength=part.shape[0])
        stored = np.bincount(owner, weights=full[part.indices], minlength=part.shape[0])
        return np.where(stored < full.sum(), np.inf, np.maximum(zeros.sum() + by_row, 0.0))

    @property
    def entries(self) -> int:
        """Stored entries: what one pass reads."""
        return int(self.X.nnz)

    def singleton_cost(self, rows: slice, geometry: Geometry, weight: Array) -> Array:
        """What clusters of one row each cost besides lam: as ``base``, if all weigh the same."""
        if geometry.prior_mean is None or (weight != weight[0]).any():
            return super().singleton_cost(rows, geometry, weight)
        part, w = self.X[rows], float(weight[0])
        values = part.data.astype(np.float64)
        if self.scale.size:
            values = values * np.repeat(self.scale[rows], np.diff(part.indptr))
        zeros = geometry.singleton_terms(np.zeros(self.p), geometry.prior_mean, w)
        prior = geometry.prior_mean[part.indices]
        correction = geometry.singleton_terms(values, prior, w) - zeros[part.indices]
        owner = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
        return zeros.sum() + np.bincount(owner, weights=correction, minlength=part.shape[0])

    def _nearest(self, rows: Any, affine: Affine, dtype: Any, reach: Array, out: Nearest) -> Array:
        index, indptr = self._index(rows), self.cells[2]
        coef_t, offset = affine.transposed(dtype, _PAD // np.dtype(dtype).itemsize)
        kernels().nearest_csr(*self.cells, index, self.scale, coef_t, offset, reach, *out)
        return indptr[index + 1] - indptr[index]

    def own(self, rows: Any, labels: Array, affine: Affine) -> Array:
        """Relative costs of rows to the centres in ``labels``, float64."""
        index = self._index(rows)
        cost = np.empty(index.shape[0])
        kernels().own_csr(*self.cells, index, self.scale, labels, affine.coef, affine.offset, cost)
        return cost

    def distance(self, rows: Any, labels: Array, mean: Array) -> Array:
        """Squared Euclidean distances of rows from the means in ``labels``, float64."""
        index = self._index(rows)
        square = np.empty(index.shape[0])
        norm = (mean * mean).sum(axis=1)
        kernels().distance_csr(*self.cells, index, self.scale, labels, mean, norm, square)
        return square

    def add(self, rows: Any, labels: Array, total: Array, mass: Array) -> None:
        """Add w x and w of rows to the sums of their labels (skipped if negative)."""
        index = self._index(rows)
        kernels().add_csr(*self.cells, index, self.scale, self.weight, labels, total, mass)

    def move(self, rows: Any, before: Array, labels: Array, sums: ExactSums) -> None:
        """Move rows between the sums of their labels."""
        index = self._index(rows)
        kernels().move_csr(*self.cells, index, self.scale, self.weight, before, labels, sums.ledger)

    @cached_property
    def extent(self) -> tuple[Array, Array, Array]:
        """(p,) The least and the largest entries of rows times their scales, 0 among them, and the smallest that are
        not 0; infinite where there are none."""
        least, largest, finest = np.zeros(self.p), np.zeros(self.p), np.full(self.p, np.inf)
        for span in self.spans():
            index = self._index(span)[self._weighing(span)]
            kernels().extent_csr(*self.cells, index, self.scale, least, largest, finest)
        return least, largest, finest

    def _sizes(self) -> tuple[Array, Array]:
        least, largest, finest = self.extent
        return np.maximum(-least, largest), finest

    def _scaled(self, rows: Any) -> sp.csr_matrix:
        """Some rows as they are measured, float64."""
        part = self.X[rows].astype(np.float64)
        if self.scale.size:
            part.data *= np.repeat(self.scale[rows], np.diff(part.indptr))
        return part

    def products(self, rows: Any, affine: Affine) -> tuple[Array, Array]:
        """Products (m, K) of a few rows with the coefficients, float64, and a bound (m,) on their magnitude."""
        part = self._scaled(rows)
        size = np.abs(part.data)
        owner = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
        one_norm = np.bincount(owner, size, part.shape[0])
        square = np.bincount(owner, size * size, part.shape[0])
        return np.asarray(part @ affine.coef.T), magnitude(one_norm, square, affine.reach)

    def parts(self, rows: Array, labels: Array, K: int, family: Family) -> "CsrRows":
        """The centres of K sets of rows as rows of their own; each weighs what its centre stands for."""
        weight = self.weights(rows)
        chooser = sp.csr_matrix((weight, (labels, np.arange(rows.size))), shape=(K, rows.size))
        total = sp.csr_matrix(chooser @ self._scaled(rows))
        total.sort_indices()
        owner = np.repeat(np.arange(K), np.diff(total.indptr))
        with np.errstate(over="ignore"):  # where rows are no unit vectors nobody looks at it
            pull = family.pull(np.bincount(owner, total.data**2, K), np.bincount(labels, weight, K))
        total.data = family.within(total.data / np.where(pull > 0, pull, 1.0)[owner])
        return CsrRows(total, weight=pull, scale=np.empty(0), dtype=self.dtype, ratio=self.ratio)
