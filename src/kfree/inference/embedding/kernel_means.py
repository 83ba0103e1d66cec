"""What is to be matched: the kernel mean of the rows, exactly or by random features.

A target knows the inner products S of the kernel means of components, those R with the kernel mean of the rows, and how
the objective changes as components move. Random features need one pass over the rows and add up over batches.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from kfree.families import Array
from kfree.families.points import Kernel, MovableFamily, PointFamily, Slopes
from kfree.inference.embedding.embedding_numbers import EMBEDDING
from kfree.inference.embedding.simplex import Part
from kfree.inference.loop import Budget
from kfree.rows import DenseRows
from kfree.rows.exact_sums import ExactSums, Grid, Shares, WeightRange
from kfree.rows.threads import cut, over


class SeenRows(NamedTuple):
    """Rows as the kernel sees them."""

    X: Any  # (n, p) array or CSR matrix
    weight: Array  # (n,)
    fold: Array  # (n,) which part they are held out with

    def spans(self, columns: int) -> list[slice]:
        """Blocks of rows that have so many columns in a temporary."""
        return cut(self.X.shape[0], max(64, EMBEDDING.entries // max(columns, 1)))


class OutOfTime(Exception):
    """The user does not wait for a sum over all rows."""


class Target(ABC):
    """A kernel mean of rows that components are to match, in units in which candidates have length one."""

    family: PointFamily
    kernel: Kernel

    @abstractmethod
    def in_units_of(self, params: Any) -> "Target":
        """The same in units of the mean squared length of the kernel means of these components."""

    @abstractmethod
    def inner(self, params: Any) -> Array:
        """S (T, T)."""

    @abstractmethod
    def parts(self, params: Any, budget: Budget | None = None) -> list[Part]:
        """R of every part of the rows; OutOfTime if there is a budget, and it is spent before all rows were seen."""

    @abstractmethod
    def slopes(self, family: MovableFamily, params: Any, p: Array) -> Slopes:
        """Derivatives of 1/2 p'Sp - R'p by the parameters of components of its family, if these can be moved."""

    def match(self, params: Any) -> Array:
        """R (T,) of all rows."""
        parts = self.parts(params)
        return np.asarray(sum(part.R * part.mass for part in parts) / sum(part.mass for part in parts))


class ExactTarget(Target):
    """The kernel mean of rows in memory."""

    def __init__(self, family: PointFamily, kernel: Kernel, rows: SeenRows):
        self.family, self.kernel, self.rows = family, kernel, rows

    def in_units_of(self, params: Any) -> "ExactTarget":
        """In logs: with many columns lengths leave the range."""
        logs = self.family.log_norms(self.kernel, params)
        unit = float(logsumexp(logs) - np.log(logs.size))
        return ExactTarget(self.family, self.kernel._replace(log_unit=unit), self.rows)

    def inner(self, params: Any) -> Array:
        """In closed form."""
        return self.family.inner(self.kernel, params, params)

    def parts(self, params: Any, budget: Budget | None = None) -> list[Part]:
        """A pass over the rows."""
        rows, T = self.rows, params[0].shape[0]

        def of_span(span: slice) -> Array:
            _look_at_the_clock(budget)
            value = self.family.embed(self.kernel, params, rows.X[span])
            return _by_fold(rows, span, value)

        mass = np.bincount(rows.fold, weights=rows.weight, minlength=EMBEDDING.folds)
        sums = sum(over(rows.spans(T + rows.X.shape[1]), of_span, float(rows.X.shape[0]) * T * rows.X.shape[1]))
        return [Part(total / max(m, np.finfo(float).tiny), float(m)) for total, m in zip(np.asarray(sums), mass)]

    def slopes(self, family: MovableFamily, params: Any, p: Array) -> Slopes:
        """A pass over the rows."""
        rows = self.rows
        share = rows.weight / rows.weight.sum()

        def of_span(span: slice) -> Slopes:
            return family.row_slopes(self.kernel, params, p, rows.X[span], share[span])

        total = family.inner_slopes(self.kernel, params, p)
        entries = float(rows.X.shape[0]) * p.size * rows.X.shape[1]
        for part in over(rows.spans(p.size + rows.X.shape[1]), of_span, entries):
            total = Slopes(total.mean - part.mean, total.covariance - part.covariance)
        return total


class FeatureTarget(Target):
    """The mean of random features of rows that have been read: sums of batches add."""

    def __init__(self, family: PointFamily, kernel: Kernel, frequencies: Array, sums: "FeatureSums", unit: float = 1.0):
        self.family, self.kernel, self.frequencies, self.sums, self.unit = family, kernel, frequencies, sums, unit

    def _features(self, params: Any) -> Array:
        return self.family.component_features(self.kernel, self.frequencies, params)

    def in_units_of(self, params: Any) -> "FeatureTarget":
        """Lengths of features."""
        squares = float((self._features(params) ** 2).sum(axis=1).mean())
        unit = max(squares, np.finfo(float).tiny)
        return FeatureTarget(self.family, self.kernel, self.frequencies, self.sums, unit)

    def inner(self, params: Any) -> Array:
        """Products of features."""
        features = self._features(params)
        return features @ features.T / self.unit

    def parts(self, params: Any, budget: Budget | None = None) -> list[Part]:
        """Products with what was summed."""
        features = self._features(params)
        means = self.sums.total / np.maximum(self.sums.mass, np.finfo(float).tiny)[:, None]
        return [Part(features @ mean / self.unit, float(mass)) for mean, mass in zip(means, self.sums.mass)]

    def slopes(self, family: MovableFamily, params: Any, p: Array) -> Slopes:
        """Features move with the components."""
        excess = self._features(params).T @ p - self.sums.mean
        found = family.feature_slopes(self.frequencies, params, p, excess)
        return Slopes(found.mean / self.unit, found.covariance / self.unit)


class FeatureSums(NamedTuple):
    """Sums of random features over rows, by part; they add."""

    total: Array  # (folds, F)
    mass: Array  # (folds,)

    @property
    def mean(self) -> Array:
        """Mean over all rows, (F,)."""
        return self.total.sum(axis=0) / self.mass.sum()

    def plus(self, other: "FeatureSums") -> "FeatureSums":
        """The sums of both."""
        return FeatureSums(self.total + other.total, self.mass + other.mass)


def sum_features(family: PointFamily, frequencies: Array, rows: SeenRows, budget: Budget | None = None) -> FeatureSums:
    """One pass over rows."""
    grid = feature_grid(family, frequencies, rows.X[:1], WeightRange.of(rows.weight))
    return FeatureSums(*sum_exactly(family, frequencies, rows, grid, budget).values())


def feature_grid(family: PointFamily, frequencies: Array, some: Any, weights: WeightRange) -> Grid:
    """What sums of random features are measured in; ``some`` are rows, one at least."""
    columns, count = family.row_features(frequencies, some[:1]).shape[1], frequencies.shape[-1]
    return Grid.of(np.full(columns, (1 + 1e-6) / np.sqrt(count)), weights)  # but for rounding none is larger


def sum_exactly(
    family: PointFamily, frequencies: Array, rows: SeenRows, grid: Grid, budget: Budget | None = None
) -> ExactSums:
    """Sums of random features by part, the same whatever rows are summed first, or together."""
    F = grid.exponent.size - 1
    shares, shift = Shares(ExactSums(EMBEDDING.folds, grid)), np.zeros(F)

    def of_span(span: slice) -> None:
        _look_at_the_clock(budget)
        value, w = family.row_features(frequencies, rows.X[span]), rows.weight[span]
        some = DenseRows(value, weight=w, scale=np.empty(0), shift=shift)
        with shares.one() as mine:
            some.move(slice(0, some.n), np.full(some.n, -1, np.int32), rows.fold[span].astype(np.int32), mine)

    for _ in over(rows.spans(F), of_span, float(rows.X.shape[0]) * F):
        pass
    return shares.total()


def _look_at_the_clock(budget: Budget | None) -> None:
    if budget is not None and budget.spent:
        raise OutOfTime


def _by_fold(rows: SeenRows, span: slice, value: Array) -> Array:
    """Weighted sums (folds, columns) of values of the rows of a span."""
    share, unit = np.zeros((EMBEDDING.folds, value.shape[0]), dtype=value.dtype), float(rows.weight[span].max())
    share[rows.fold[span], np.arange(value.shape[0])] = rows.weight[span] / unit  # single precision holds these
    return (share @ value).astype(np.float64, copy=False) * unit


def squared_length(family: PointFamily, kernel: Kernel, rows: SeenRows) -> float:
    """Mean of the kernel over all pairs of rows, each with itself included."""
    share, n = rows.weight / rows.weight.sum(), rows.X.shape[0]

    def of_span(span: slice) -> float:
        return float(share[span] @ (family.between(kernel, rows.X[span], rows.X) @ share))

    return float(sum(over(rows.spans(n), of_span, float(n) * n)))
