"""How large and how small values and weights may be: what the sums and products of a fit can represent.

A float64 holds 1e-308 to 1.8e308 with all its digits. Weights are multiplied with each other, divergences with weights
and, where lam is chosen, with themselves; what would leave that range is refused here, with what would not.
"""

from typing import Any, NamedTuple

import numpy as np

from kfree.families import FAMILIES, LARGEST, Array, Family, Geometry
from kfree.families.base import ROUNDING
from kfree.inference.clusters.table import Table

#: Weights that are not zero, their sum, and smoothing: the product of two of them is a number of full precision.
WEIGHTS = (1e-150, 1e150)
#: Divergences, and weights times divergences.
COSTS = (1e-300, 1e303)
#: The same where lam is chosen from the data, which takes squares of them.
COSTS_OF_AUTO = (1e-140, 1e140)
#: Lengths and sums of rows that are divided by them.
LENGTHS = (1e-300, 1e300)
#: The largest lam times the number of rows: a lam for each of them is still a number.
LARGEST_PENALTY = 1e306
#: Differences from the mean of a column whose squares, times 1e-6, are numbers of full precision.
SPREADS = (1e-140, 1e150)
#: Share of all weight that a row must have where a mean next to the upper end of the domain is taken for that end.
LEAST_SHARE = 1e-12
#: Entries, and means of columns, where differences are squared.
LARGEST_ENTRY = 1e150


def label_of(family: Family) -> str:
    """How a family is named in messages."""
    return repr(family.name) if family.name else type(family).__name__


def check_weight_range(weight: Array, what: str = "sample_weight") -> None:
    """Weights whose products leave the range of floats are an error."""
    if not weight.size:
        return
    least, most = WEIGHTS
    lightest, total = float(weight.min(where=weight > 0, initial=np.inf)), float(weight.sum())
    if lightest < least or not total <= most:
        i = int(np.where(weight > 0, weight, np.inf).argmin()) if lightest < least else int(weight.argmax())
        raise ValueError(
            f"{what} must be 0 or at least {least:g}, and at most {most:g} in sum, but row {i} weighs {weight[i]:g} "
            f"and the sum is {total:g}. Divide the weights by their largest, and set to 0 what is then too small."
        )


def check_total(total: float) -> None:
    """Weights whose sum leaves the range of floats are an error."""
    if not total <= WEIGHTS[1]:
        raise ValueError(
            f"The sum of sample_weight is {total:g}, and {WEIGHTS[1]:g} is the most that can be computed with. Divide "
            "the weights by their largest."
        )


def check_means(mean: Array) -> None:
    """Columns whose mean has no square are an error."""
    size = float(np.abs(mean).max(initial=0.0))
    if not size <= LARGEST_ENTRY:
        raise ValueError(
            f"The mean of a column of X is {size:g}, and {LARGEST_ENTRY:g} is the most whose square is a number. "
            "Rescale the data, for instance by their largest entry."
        )


def check_spread(spread: Array, mean: Array) -> None:
    """Columns that vary by so much, or so little, that their variance is no number of full precision are an error."""
    least, most = SPREADS
    check_means(mean)
    varies = spread > 1e-12 * np.abs(mean)  # else it is rounding of the mean
    wrong = np.flatnonzero(~((spread > least) & (spread < most)) & (varies | ~(spread < most)))
    if wrong.size:
        j = int(wrong[0])
        raise ValueError(
            f"divergence='mahalanobis' needs columns that vary by {least:g} to {most:g} for their covariance, but "
            f"column {j} varies by {spread[j]:g}, and {wrong.size} of {spread.size} columns are like it. Rescale "
            "them: each column may have units of its own."
        )


def check_shares(geometry: Geometry, lightest: float, total: float, least: float, short: float) -> None:
    """Weights so unequal, or entries so close to an end of the domain, that a row leaves no trace in the mean of a
    cluster, where that would exclude the row, are an error; ``lightest`` and ``total`` are of the weights, ``least`` is
    the smallest entry above 0, ``short`` the share of the upper end by which the largest entry below it is short of
    it."""
    family = geometry.family
    total += geometry.eta
    prior = np.inf
    if geometry.prior_mean is not None and family.excludes:
        prior = geometry.eta * float(geometry.prior_mean.min(where=geometry.prior_mean > 0, initial=np.inf))
    if family.excludes and not min(lightest * least, prior) > COSTS[0]:
        raise ValueError(
            f"Weight times entry must be 0 or above {COSTS[0]:g} for divergence={label_of(family)}, but the smallest "
            f"weight is {lightest:g} (smoothing {geometry.eta:g}) and the smallest entry {least:g}. Set what is so "
            "small to 0, or rescale."
        )
    of_rows = lightest
    lightest = min(lightest, geometry.eta) if geometry.eta else lightest
    if family.upper < np.inf and (lightest < LEAST_SHARE * total or LEAST_SHARE * geometry.eta > 1.0):
        raise ValueError(
            f"divergence={label_of(family)} needs weights of at least {LEAST_SHARE:g} of their sum, smoothing "
            f"included (at most {1 / LEAST_SHARE:g}), which is {total:g}, but the smallest is {lightest:g}: a mean "
            "could not tell that it is there. Set it to 0."
        )
    if family.upper < np.inf:
        _check_upper_end(geometry, family, of_rows / total, short, total)


def _check_upper_end(geometry: Geometry, family: Family, share: float, short: float, total: float) -> None:
    """Entries, or a prior mean, that a mean cannot tell from the upper end of the domain are an error."""
    upper, prior = family.upper, np.inf
    if geometry.prior_mean is not None:
        mean = geometry.prior_mean
        prior = 1 - float(mean.max(where=mean < upper * (1 - ROUNDING), initial=0.0)) / upper
    for who, mine, gap in (("X", share, short), ("smoothing_mean", geometry.eta / total, prior)):
        if mine * gap <= 2 * ROUNDING:
            raise ValueError(
                f"divergence={label_of(family)} takes a mean within {ROUNDING:g} of {upper:g} for {upper:g}, but the "
                f"largest entry of {who} below it is only {gap:g} of it short, and may have {mine:g} of the weight of "
                f"a cluster. Set entries above {1 - 2 * ROUNDING / mine:.15g} times {upper:g} to {upper:g}, for "
                "instance by rounding, or use divergence='sqeuclidean'."
            )


def check_smoothing_range(smoothing: float) -> None:
    """Smoothing is a weight."""
    least, most = WEIGHTS
    if smoothing and not least <= smoothing <= most:
        raise ValueError(f"smoothing must be 0 or between {least:g} and {most:g}, got {smoothing!r}.")


def check_lam_range(lam: float, n: int, name: str = "lam") -> None:
    """The penalty of as many clusters as there are rows must be a number."""
    if LARGEST_PENALTY / n < lam < np.inf:
        raise ValueError(
            f"{name} must be at most {LARGEST_PENALTY / n:g} for {n} rows, or inf for no new clusters, got {lam!r}."
        )


def farthest(family: Family) -> float:
    """Divergences must stay below this: beyond it they are infinite, or mean that a centre excludes a row."""
    return LARGEST if family.excludes else COSTS[1]


def check_far(base: Array, family: Family, what: str = "Row {} of X is") -> None:
    """Rows so far from the mean of the fit that divergences are no numbers are an error; ``base`` is how far."""
    most = farthest(family)
    wrong = np.flatnonzero(~(base < most))
    if not wrong.size:
        return
    if np.isnan(base[wrong]).any() and type(family) not in FAMILIES.values():
        raise ValueError(
            f"divergence={label_of(family)} gives NaN for these rows. Look at its phi and natural: both must be finite "
            "wherever its domain (lower, upper) allows."
        )
    raise ValueError(
        f"{what.format(int(wrong[0]))} {most:g} or more from the mean under divergence={label_of(family)}, and "
        f"{wrong.size} in all are: that cannot be computed with. Drop what is so far away, or rescale the data, for "
        "instance by their largest entry."
    )


class Reach(NamedTuple):
    """How far rows are from the point that costs are relative to."""

    far: float  # the largest divergence from it
    active: float  # of rows that have weight
    lowest: Any  # hashes of the rows that have weight: the smallest, or None
    highest: Any  # and the largest
    scaled: bool  # rows are divided by their size

    @classmethod
    def of(cls, table: Table) -> "Reach":
        """Of rows that are checked one by one here."""
        check_far(table.base, table.geometry.family)
        base, hashes, active = table.base, table.hashed().hashes, table.base
        if table.rows.weight.size:
            heavy = table.rows.weight > 0
            active, hashes = base[heavy], hashes[heavy]
        ends = (hashes.min(), hashes.max()) if hashes.size else (None, None)
        far, reach = float(base.max(initial=0.0)), float(active.max(initial=0.0))
        return cls(far, reach, ends[0], ends[1], bool(table.rows.scale.size))

    def joined(self, other: "Reach") -> "Reach":
        """Of these rows and others."""
        lowest = [end for end in (self.lowest, other.lowest) if end is not None]
        highest = [end for end in (self.highest, other.highest) if end is not None]
        far, active = max(self.far, other.far), max(self.active, other.active)
        return Reach(far, active, min(lowest, default=None), max(highest, default=None), self.scaled)

    @property
    def all_equal(self) -> bool:
        """Whether all rows that have weight are copies of one."""
        return self.lowest == self.highest


def check_reach(reach: Reach, geometry: Geometry, lightest: float, total: float, *, squares: str = "") -> None:
    """Rows that differ by so much, or so little, that weighted divergences leave the range of floats are an error; or
    their squares, which what ``squares`` says needs. ``lightest`` and ``total`` are of the weights."""
    family, (least, most) = geometry.family, COSTS_OF_AUTO if squares else COSTS
    total += geometry.eta
    low, high = min(1.0, lightest) * reach.active, max(1.0, total) * reach.far
    # rows of length 1 that do not differ at all are equal: their differences cannot be too small for floats
    equal = reach.all_equal or (reach.scaled and not reach.active)
    if (low > least or equal) and high < most:
        return
    who = f"{squares} needs squares of these, which" if squares else "These"
    raise ValueError(
        f"Rows are up to {reach.active:g} from their mean under divergence={label_of(family)}, and with weights from "
        f"{lightest:g} to {total:g} in sum that makes {low:g} to {high:g}. {who} must lie between {least:g} and "
        f"{most:g}. Rescale the data, for instance by their largest entry, or the weights."
    )


def check_prior_range(geometry: Geometry) -> None:
    """A prior that lies where divergences are no numbers, or weighs so much that they are not, is an error."""
    if geometry.prior_mean is None:
        return
    with np.errstate(over="ignore", invalid="ignore"):
        away = geometry.from_anchor(geometry.prior_mean[None])
    check_far(away, geometry.family, "smoothing_mean is")
    if not geometry.eta * float(away[0]) < COSTS[1]:
        raise ValueError(
            f"smoothing={geometry.eta:g} times the {away[0]:g} that smoothing_mean is from the mean of the data is "
            f"{COSTS[1]:g} or more. Pass a smaller smoothing, or one nearer to the data."
        )
