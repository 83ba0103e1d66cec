"""Rows that share their responsibilities: single rows of a table, or nodes of a tree that stand for many."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import scipy.sparse as sp

from kfree.families import Array
from kfree.rows.threads import cut, over

#: Tied rows read at a time. Part of the result's definition: sums are formed per span and added in order.
TIED_SPAN = 4096

T = TypeVar("T")


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

    def spans(self) -> list[slice]:
        """The spans the rows are read in."""
        return cut(self.size, TIED_SPAN)

    def each(self, function: Callable[[slice], T], work: int = 1) -> Iterator[T]:
        """Apply a function to every span, in parallel if there is enough to do; results in span order."""
        entries = self.mean.nnz if sp.issparse(self.mean) else self.mean.size
        return over(self.spans(), function, 2.0 * entries * work)

    def take(self, index: Array) -> "Tied":
        """Some of the rows (ascending), copied; the table itself if it is all of them."""
        if index.shape[0] == self.size:
            return self
        second = None if self.second is None else self.second[index]
        return Tied(self.n[index], self.mean[index], second, self.log_h[index])
