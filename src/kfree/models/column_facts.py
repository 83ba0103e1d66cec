"""What is true of the columns of a table as a whole: what clusters are compared with, and what words fit them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array, Family
from kfree.models.checks import WEIGHTINGS, row_scale
from kfree.rows.threads import cut

# Entries looked at together.
_ENTRIES = 1 << 21
# Standard deviations over means from which, in half of the columns, numbers that are never negative are amounts.
_AMOUNTS = 0.75
# Average entry from which counts are amounts: nobody does a thing "often" 10 000 times.
_FEW = 10.0
# Variance, as a share of the mean square, that rounding leaves of a column that does not vary.
_ROUNDING = 1e-13


class ColumnFacts(NamedTuple):
    """Columns of the rows as a family sees them (histograms, unit vectors, or as they are)."""

    mean: Array  # (p,) weighted
    spread: Array  # (p,) standard deviation, 0 for columns that do not vary
    flag: Array  # (p,) bool, every entry is 0 or 1
    few: bool  # entries, as they were given, are small on average: things were counted, and not weighed or paid for
    amounts: bool  # entries are never negative, and columns typically vary as much as they are large


def look_at_columns(X: Any, weight: Array, family: Family, weighting: str) -> ColumnFacts:
    """One look for the means, one for the spread; rows are weighted as in a fit."""
    scale, size = _rescaled(X, family)
    if weighting != WEIGHTINGS[0]:
        weight = size * weight if weight.size else size
    total, mass, least = np.zeros(X.shape[1]), 0.0, np.inf
    flag = np.ones(X.shape[1], bool)
    for rows, w in _blocks(X, scale, weight):
        values = rows.data if sp.issparse(rows) else rows
        total += rows.T @ w
        mass += float(w.sum())
        least = min(least, float(values.min(initial=0.0 if sp.issparse(rows) else np.inf)))
        flag &= _flags(rows)
    mass = mass or 1.0  # documents may all be empty
    mean = total / mass
    spread = _spread(X, scale, weight, mean, mass)
    size_of = np.abs(mean)[spread > 0]
    with np.errstate(divide="ignore"):
        amounts = least >= 0 and size_of.size > 0 and float(np.median(spread[spread > 0] / size_of)) >= _AMOUNTS
    average = float(np.mean(size)) / X.shape[1] if family.normalise == "sum" else float(mean.mean())
    return ColumnFacts(mean, spread, flag & (spread > 0), average < _FEW, amounts)


def _rescaled(X: Any, family: Family) -> tuple[Array, Array]:
    """Factors of rows, (0,) for ones, and their sizes; rows without counts, which some mixtures take, stay zero."""
    if family.normalise != "sum":
        return row_scale(X, family)
    size = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    return 1.0 / np.where(size > 0, size, 1.0), size


def _blocks(X: Any, scale: Array, weight: Array) -> Iterator[tuple[Any, Array]]:
    """Rows, rescaled, a block at a time, and their weights."""
    for span in cut(X.shape[0], max(1, _ENTRIES // X.shape[1])):
        rows = X[span].astype(np.float64)
        if scale.size:
            rows = sp.diags(scale[span]) @ rows if sp.issparse(rows) else rows * scale[span, None]
        yield rows, weight[span] if weight.size else np.ones(rows.shape[0])


def _flags(rows: Any) -> Array:
    """Mask of the columns with entries of 0 and 1 alone."""
    if not sp.issparse(rows):
        return np.asarray(((rows == 0) | (rows == 1)).all(axis=0))
    found = np.ones(rows.shape[1], bool)
    entries = rows.tocoo()
    found[entries.col[(entries.data != 1) & (entries.data != 0)]] = False
    return found


def _spread(X: Any, scale: Array, weight: Array, mean: Array, mass: float) -> Array:
    """Standard deviations of columns."""
    square = np.zeros(mean.size)
    with np.errstate(over="ignore", invalid="ignore"):
        for rows, w in _blocks(X, scale, weight):
            if sp.issparse(rows):
                square += rows.multiply(rows).T @ w
            else:
                rows -= mean
                square += w @ (rows * rows)
        variance = square / mass - (mean**2 if sp.issparse(X) else 0.0)
        least = _ROUNDING * (mean**2 + np.maximum(variance, 0.0))
        return np.where(np.isfinite(variance) & (variance > least), np.sqrt(np.maximum(variance, 0.0)), 0.0)
