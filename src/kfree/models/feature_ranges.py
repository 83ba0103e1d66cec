"""Rows, weights and prices that sums of squares of features can be worked with in double precision."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.inference.features.feature_numbers import FEATURES
from kfree.inference.features.feature_table import FeatureTable


def check_price(lam: float, lightest: float, total: float) -> None:
    """A price that can be paid many times, and by the lightest row."""
    most = FEATURES.largest * min(1.0, lightest)
    if lam > most:
        raise ValueError(
            f"lam={lam:g} is more than float64 can work with here, {most:.3g}. No feature can save more than the "
            f"sum of squares of X, {total:.3g}: any lam above that gives none."
        )


def check_evenness(total: float, lightest: float) -> None:
    """Weights of which the smallest is not lost beside all of them."""
    if total / FEATURES.most_uneven > lightest:
        raise ValueError(
            f"sample_weight adds up to {total:g}, and its smallest positive entry is {lightest:g}. Features "
            f"are exact up to a ratio of {FEATURES.most_uneven:g}: raise weights below "
            f"{total / FEATURES.most_uneven:.3g}, or set them to 0, which leaves their rows out."
        )


def largest_of(X: Any) -> float:
    """The largest entry, whatever its sign."""
    values = X.data if sp.issparse(X) else X
    return float(np.abs(values).max(initial=0.0))


def check_length(X: Any) -> None:
    """Rows whose squares float64 holds."""
    largest, most = largest_of(X), np.sqrt(FEATURES.largest)
    if largest > most / np.sqrt(X.shape[1]):
        raise ValueError(
            f"The squares of X are too large for float64: its largest entry is {largest:g}, and entries of "
            f"{X.shape[1]} columns may be up to {most / np.sqrt(X.shape[1]):.3g}. Divide X by {largest:g}, in fit, too."
        )


def check_arithmetic(table: FeatureTable) -> None:
    """Rows whose sums of squares float64 holds, and tells apart."""
    # light rows may have means that are longer, and heavy ones differences that are smaller, by this in their squares
    ratio = table.mass / table.weight.min() / table.n
    check_sizes(largest_of(table.X), table.square.max(), table.total, ratio)
    check_spread(table.spread, table.total, alike=partial(_nearly_equal, table.X))


def check_sizes(largest: float, longest: float, total: float, ratio: float) -> None:
    """Sums of squares that float64 holds: of the longest row, and of all; ``ratio``: of mean weight to least."""
    least, most = FEATURES.smallest * ratio, FEATURES.largest / ratio
    if largest > 0 and not (least < longest < most and least < total < most):
        raise ValueError(
            f"The sum of squares of X (largest entry {largest:g}, weights included) is {total:g}; float64 can "
            f"work with {least:.3g} to {most:.3g}, with and without weights. Divide X by {largest:g} and sample_weight "
            "by its mean; lam scales with the weights and with the squares of X."
        )


def check_spread(spread: float, total: float, *, alike: Callable[[], bool]) -> None:
    """Sums of squares in which the differences between rows are not lost, unless rows are all alike."""
    if spread < FEATURES.far * total and not alike():
        raise ValueError(
            f"The rows are too far from the origin for what they differ by: of their sum of squares {total:.3g} "
            f"only {spread:.3g} is about their mean, and shares below {FEATURES.far:g} are lost to rounding. "
            "Subtract the mean, or use base='intercept', which does."
        )


def _nearly_equal(X: Any) -> bool:
    """Whether all rows are the same but for rounding: one mean is all they have."""
    ends = [X.min(axis=0), X.max(axis=0)]
    return nearly_equal(*(end.toarray() if sp.issparse(X) else end for end in ends))


def nearly_equal(low: Array, high: Array) -> bool:
    """Whether columns that lie between these ends are constant but for rounding."""
    return bool((high - low <= FEATURES.far * np.maximum(np.abs(low), np.abs(high))).all())
