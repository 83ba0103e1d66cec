"""The rows that features are fitted to, dense or sparse: products with means, and the sums that the solve needs."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.inference.features.feature_numbers import FEATURES
from kfree.rows.threads import cut, over

T = TypeVar("T")


class FeatureTable:
    """Rows with positive weights; ``intercept``: a mean of all rows is fitted beside the features."""

    def __init__(self, X: Any, weight: Array, *, intercept: bool = False):
        self.X, self.intercept = X, intercept
        self.n, self.p = X.shape
        self.weighted = bool(weight.size)
        self.weight = weight if weight.size else np.ones(self.n)
        size = max(FEATURES.least_span, FEATURES.span_entries // max(self.p, 1))
        self.spans = cut(self.n, size)
        self.square = np.concatenate([self._squares(span) for span in self.spans])  # (n,) squared lengths
        self.total = float(self.weight @ self.square)
        self.mass = float(self.weight.sum())
        # weights that sums of squares of columns cannot do justice to
        self.uneven = self.weighted and bool(self.mass > FEATURES.even * self.weight.min())
        mean = self.mean
        # what is left about the mean; of sparse rows by subtraction
        if self.sparse:
            self.spread = max(self.total - self.mass * float(mean @ mean), 0.0)
        else:
            self.spread = float(sum(self._squares(span, mean) @ self.weight[span] for span in self.spans))
        # rows that whole runs are compiled for
        self.plain = bool(
            not intercept and isinstance(X, np.ndarray) and X.dtype == np.float64 and X.flags.c_contiguous
        )

    def share(self, value: float) -> float:
        """A share of the sum of squares about the mean, but not less than rounding is: what counts as a difference."""
        return value * self.spread + FEATURES.rounding * self.total

    @property
    def sparse(self) -> bool:
        """Whether the rows are CSR."""
        return sp.issparse(self.X)

    def each(self, function: Callable[[slice], T]) -> Iterator[T]:
        """Apply a function to every span, in parallel if there is enough to do; results in span order."""
        return self.over(self.spans, function)

    def over(self, spans: list[slice], function: Callable[[slice], T]) -> Iterator[T]:
        """The same for spans of one's own."""
        return over(spans, function, FEATURES.entry_work * (spans[-1].stop - spans[0].start) * self.p)

    def part(self, rows: slice) -> Any:
        """Some rows in float64, as stored otherwise."""
        part = self.X if len(self.spans) == 1 and rows == self.spans[0] else self.X[rows]
        return part if part.dtype == np.float64 else part.astype(np.float64)

    def dense(self, rows: Any) -> Array:
        """A few rows as a dense array, float64."""
        part = self.X[rows]
        return np.asarray(part.toarray() if sp.issparse(part) else part, dtype=np.float64)

    def take(self, rows: Array, weight: Array | None = None) -> "FeatureTable":
        """Some rows with their weights or others, dense if these are; float64."""
        if weight is None:
            weight = self.weight[rows] if self.weighted else np.empty(0)
        return FeatureTable(self.X[rows].astype(np.float64, copy=False), weight, intercept=self.intercept)

    def products(self, rows: slice, means: Array) -> Array:
        """``X means'`` of some rows."""
        return np.ascontiguousarray(self.part(rows) @ means.T)

    def all_products(self, means: Array) -> Array:
        """``X means'`` of all rows."""
        parts = list(self.each(lambda span: self.products(span, means)))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    @cached_property
    def mean(self) -> Array:
        """Weighted mean of the rows."""
        ones = np.ones((self.n, 1), np.uint8)
        return self.sums(ones, bordered=False)[1][0] / self.mass

    def sums(self, Z: Array, *, bordered: bool | None = None) -> tuple[Array, Array]:
        """``Z'WZ`` and ``Z'WX``; with an intercept Z has a column of ones in front."""
        bordered = self.intercept if bordered is None else bordered
        parts = self.each(lambda span: self.part_sums(self.part(span), Z[span], span, bordered))
        return add_up(parts)

    def combine(self, factors: Array) -> Array:
        """``factors' X``."""
        parts = self.each(lambda span: np.asarray((self.part(span).T @ factors[span]).T))
        return np.ascontiguousarray(sum(parts))

    def part_sums(self, part: Any, Z: Array, span: slice, bordered: bool) -> tuple[Array, Array]:
        """The share of one span in ``sums``."""
        z = Z.astype(np.float64)
        if bordered:
            z = np.concatenate([np.ones((z.shape[0], 1)), z], axis=1)
        wz = z * self.weight[span, None] if self.weighted else z
        T = (part.T @ wz).T if sp.issparse(part) else wz.T @ part
        return wz.T @ z, np.ascontiguousarray(T)

    def _squares(self, span: slice, origin: Array | None = None) -> Array:
        part = self.part(span)
        if sp.issparse(part):
            return np.asarray(part.multiply(part).sum(axis=1)).ravel()
        if origin is not None:
            part = part - origin
        return np.einsum("ij,ij->i", part, part)


def add_up(parts: Iterator[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Sum of pairs, in order."""
    S, T = next(parts)
    for s, t in parts:
        S, T = S + s, T + t
    return S, T
