"""Rows that share their responsibilities: single rows of a table, or nodes of a tree that stand for many."""

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, NamedTuple, Protocol, TypeVar

import scipy.sparse as sp

from kfree.families import Array
from kfree.rows.threads import cut, over

#: Tied rows read at a time. Part of the result's definition: sums are formed per span and added in order.
TIED_SPAN = 4096

T = TypeVar("T")

#: Sums of a span of tied rows, which add.
SpanSums = Callable[["Tied", slice], tuple[Any, ...]]


class Summable(Protocol):
    """Tied rows of which nothing is known but sums: they may be elsewhere."""

    @property
    def total(self) -> float:
        """Weight of all rows."""

    @property
    def base(self) -> float:
        """Weighted sum of the log of the base measure."""

    @property
    def size(self) -> int:
        """Number of tied rows."""

    @property
    def columns(self) -> int:
        """D."""

    @property
    def single(self) -> bool:
        """Whether no row stands for several that differ."""

    def added(self, function: SpanSums, work: int = 1) -> tuple[Any, ...]:
        """The sums of all spans."""


class Tied(NamedTuple):
    """A table of tied rows.

    For a row that stands for many, statistics are averages over them. The second statistic is about the row's own
    mean, so that no digits are lost: the upper triangle of the covariance row by row (R, D (D + 1) / 2) where
    covariances are full, the variances (R, D) where they are diagonal, the sum of the variances (R,) where they are
    spherical; None where it is zero (single rows) or plays no part (discrete families).
    """

    n: Array  # (R,) weight of the rows it stands for
    mean: Any  # (R, D) float64 in C order, or CSR
    second: Array | None  # in C order
    log_h: Array  # (R,) mean log of the base measure

    @property
    def size(self) -> int:
        """Number of tied rows."""
        return int(self.n.shape[0])

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.n.sum())

    @property
    def base(self) -> float:
        """Weighted sum of the log of the base measure."""
        return float(self.n @ self.log_h)

    @property
    def columns(self) -> int:
        """D."""
        return int(self.mean.shape[1])

    @property
    def single(self) -> bool:
        """Whether no row stands for several that differ (or that plays no part)."""
        return self.second is None

    def spans(self) -> list[slice]:
        """The spans the rows are read in."""
        return cut(self.size, TIED_SPAN)

    def each(self, function: Callable[[slice], T], work: int = 1) -> Iterator[T]:
        """Apply a function to every span, in parallel if there is enough to do; results in span order."""
        entries = self.mean.nnz if sp.issparse(self.mean) else self.mean.size
        return over(self.spans(), function, 2.0 * entries * work)

    def added(self, function: SpanSums, work: int = 1) -> tuple[Any, ...]:
        """The sums of all spans, added in their order."""
        return reduce(add_parts, self.each(lambda span: function(self, span), work))

    def take(self, index: Array) -> "Tied":
        """Some of the rows (ascending), copied; the table itself if it is all of them."""
        if index.shape[0] == self.size:
            return self
        second = None if self.second is None else self.second[index]
        return Tied(self.n[index], self.mean[index], second, self.log_h[index])


def add_parts(one: tuple[Any, ...], two: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sums of some rows and of others."""
    return tuple(a + b for a, b in zip(one, two))
