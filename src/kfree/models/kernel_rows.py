"""Rows of a kernel mixture: checked, in units of their own, and held out in parts."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.families.points import PointFamily
from kfree.inference.content import hash_rows, uniform
from kfree.inference.embedding.embedding_numbers import EMBEDDING
from kfree.models.mixture_model import check_rows, floats
from kfree.rows.standardise import Units, standardise


def check_seen(X: Any, family: PointFamily) -> None:
    """Whether the kernel of the family can have such rows."""
    check_rows(X, family)
    if family.upper == 1.0:
        _check_bits(X)
    if family.counted:
        _check_not_empty(X)


def _check_bits(X: Any) -> None:
    values = X.data if sp.issparse(X) else X
    if not ((values == 0) | (values == 1)).all():
        dense = X.toarray() if sp.issparse(X) else X
        wrong = np.argwhere((dense != 0) & (dense != 1))
        i, j = wrong[0]
        raise ValueError(
            f"family='bernoulli' needs zeros and ones, but X[{i}, {j}] = {float(dense[i, j]):g}, and {len(wrong) - 1} "
            "more entries are neither. Binarise the data, for instance with sklearn.preprocessing.Binarizer."
        )


def _check_not_empty(X: Any) -> None:
    empty = np.flatnonzero(np.asarray(X.sum(axis=1), dtype=np.float64).ravel() == 0)
    if empty.size:
        some = ", ".join(map(str, empty[:5])) + (", ..." if empty.size > 5 else "")
        raise ValueError(
            f"family='multinomial' compares the shares of columns, and rows that are all zero have none, but "
            f"{empty.size} of {X.shape[0]} are (rows {some}). Drop them before the fit."
        )


def inside_units(X: Any, n: Array, family: PointFamily, *, by_column: bool) -> tuple[Any, Units, Array]:
    """Rows in units of their own, these units, and variances of columns."""
    if not family.continuous:
        return floats(X), Units.of_counts(X.shape[1]), np.ones(X.shape[1])
    found = standardise(X, n, by_column=by_column)
    if not found.spread > 0:
        return found.rows, found.units, found.variance
    units, variance = steady_units(found.units, found.variance, by_column=by_column)
    return units.rows(X), units, variance


def steady_units(units: Units, variance: Array, *, by_column: bool) -> tuple[Units, Array]:
    """Units without their last digits, and variances in them: samples are drawn by the content of rows, of which the
    rounding of means and deviations must be no part."""
    scale = units.scale
    if by_column:  # from the nearest power of two to the deviation itself, but for its last digits
        deviation = np.sqrt(variance)
        near = (deviation > 0.5) & (deviation < 2.0)
        scale = scale * np.where(near, np.rint(deviation / EMBEDDING.scale_step) * EMBEDDING.scale_step, 1.0)
    step = scale * EMBEDDING.shift_step
    return Units(np.rint(units.shift / step) * step, scale), variance * (units.scale / scale) ** 2


def deviations(rows: Array) -> Array:
    """Of columns: the median deviation from the median, which single rows far away do not change, or, where most rows
    are equal, the standard deviation; 1 where all are."""
    middle = np.median(np.abs(rows - np.median(rows, axis=0)), axis=0)
    varies = rows.max(axis=0) > rows.min(axis=0)
    return np.where(middle > 0, middle, np.where(varies, rows.std(axis=0), 1.0))


def folds(seen: Any) -> Array:
    """Which part of the rows each is held out with: copies together."""
    return (uniform(hash_rows(seen), 3) * EMBEDDING.folds).astype(np.intp)


def stack(first: Any, second: Any) -> Any:
    """Rows of two tables; sparse if either is."""
    if sp.issparse(first) or sp.issparse(second):
        return sp.vstack([sp.csr_matrix(first), sp.csr_matrix(second)], format="csr")
    return np.concatenate([first, second])
