"""Mixtures with conjugate priors: checked rows in units of their own, and what was found in them as a model."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.families.conjugate import ANCHORED, CONJUGATE, Conjugate, Facts, join
from kfree.families.conjugate.conjugate_family import FARTHEST, LEAST_WIDTH, MOST_WIDTH, hyperparameter
from kfree.inference.variational.partition import Partition
from kfree.inference.variational.posterior import Mixture, Setting
from kfree.inference.variational.variational_numbers import VARIATIONAL
from kfree.models.checks import check_number, check_weight
from kfree.models.mixture_model import MixtureModel, check_rows, make_tied
from kfree.rows import Tied
from kfree.rows.standardise import LARGEST, Units, blocks, standardise
from kfree.structures import StickBreaking


def check_given(prior: Any, family: Conjugate) -> Mapping[str, Any]:
    """Hyperparameters by name."""
    if prior is None:
        return {}
    if not isinstance(prior, Mapping):
        raise TypeError(
            f"prior must be None or a dict of hyperparameters, got {type(prior).__name__}. family={family.name!r} "
            f"knows {', '.join(map(repr, family.hyperparameters))}."
        )
    for name in prior:
        if name not in family.hyperparameters:
            raise ValueError(
                f"prior[{name!r}] is not a hyperparameter of family={family.name!r}. It knows "
                f"{', '.join(map(repr, family.hyperparameters))}."
            )
        try:
            np.asarray(prior[name], dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"prior[{name!r}] must be a number or an array of numbers, got {prior[name]!r}.") from error
    return prior


def check_concentration(concentration: Any) -> StickBreaking:
    """The prior of the sticks: Beta(1, concentration), or Beta(a1, a2) for a pair."""
    if isinstance(concentration, tuple | list | np.ndarray):
        if len(concentration) != 2:
            raise ValueError(f"concentration must be a number or a pair (a1, a2), got {len(concentration)} values.")
        pair = concentration
    else:
        pair = (1.0, concentration)
    least, most = VARIATIONAL.least_concentration, VARIATIONAL.most_concentration
    for value in pair:
        check_number("concentration", value, above=0.0, hint="Pass a number > 0, or a pair of such.")
        if not value <= most:
            raise ValueError(f"concentration must be at most {most:g}, got {value!r}: all weight would be in the tail.")
        if not value >= least:
            raise ValueError(f"concentration must be at least {least:g}, got {value!r}: smaller ones change nothing.")
    if float(pair[1]) > VARIATIONAL.most_ratio * float(pair[0]):
        raise ValueError(
            f"concentration=({pair[0]!r}, {pair[1]!r}) puts all weight in the tail: the second must be at most "
            f"{VARIATIONAL.most_ratio:g} times the first."
        )
    return StickBreaking(float(pair[0]), float(pair[1]))


class MixtureProblem(NamedTuple):
    """Checked rows and what is assumed of them."""

    setting: Setting
    tied: Tied  # the rows that weigh something, for the partition
    units: Units
    degenerate: bool  # rows do not differ

    @classmethod
    def of(cls, X: Any, sample_weight: Any, name: str, prior: Any, weights: StickBreaking) -> "MixtureProblem":
        """Check X for the family and bring it into units of its own."""
        family = CONJUGATE[name]()
        given = check_given(prior, family)
        check_rows(X, family)
        weight = check_weight(sample_weight, X.shape[0])
        if weight.sum() > VARIATIONAL.most_weight:
            raise ValueError(
                f"The sum of sample_weight is {weight.sum():g}, and beyond {VARIATIONAL.most_weight:g} the prior "
                "is lost in rounding. A weight counts as so many copies of a row: divide them."
            )
        n = np.array(weight) if weight.size else np.ones(X.shape[0])  # a copy: it may be permuted
        if (n == 0).any():
            X, n = X[n > 0], n[n > 0]
        if family.continuous:
            rows, units, spread, _ = standardise(X, n, by_column=False)
            facts = Facts(X.shape[1], spread if spread > 0 else 1.0, np.zeros(X.shape[1]))
        else:
            rows, units, spread = X, Units.of_counts(X.shape[1]), 1.0
            facts = Facts(X.shape[1], 1.0, _mean(X, n))
        own = family.prior(facts, _in_units(given, units))
        if name in ANCHORED and max(X.max(), *(field.max() for field in own)) >= VARIATIONAL.large_count:
            family = ANCHORED[name](facts.mean)
        setting = Setting(family, own, weights)
        _check_blur(setting, float(n.sum()))
        return cls(setting, make_tied(rows, n, family, units), units, not spread > 0)


def _check_blur(setting: Setting, total: float) -> None:
    """Whether anything is left of the prior beside sums over all rows."""
    blur = setting.family.blur(setting.prior, total) / VARIATIONAL.most_blur
    if blur > 1:
        raise ValueError(
            f"The prior, which keeps covariances from being singular, is lost in the rounding of sums over rows of "
            f"weight {total:g}. Divide sample_weight, or multiply prior['covariance'], by at least {blur:.2g}; a "
            "prior['mean'] far from the rows must come closer."
        )


def _in_units(given: Mapping[str, Any], units: Units) -> dict[str, Any]:
    """Hyperparameters that have the units of the data."""
    inside = dict(given)
    if "mean" in inside:
        mean = hyperparameter(inside, "mean", None, units.shift.shape, -np.inf)
        with np.errstate(over="ignore"):
            mean = (mean - units.shift) / units.scale
        inside["mean"] = _in_range("mean", mean, units, 0.0, LARGEST / max(units.scale.max(), LARGEST / FARTHEST))
    if "covariance" in inside:
        width = np.asarray(inside["covariance"], dtype=np.float64)
        hyperparameter(inside, "covariance", None, width.shape, -np.inf if width.ndim == 2 else 0.0)
        with np.errstate(over="ignore"):
            width = width / units.scale[0] / units.scale[0]
        inside["covariance"] = _in_range("covariance", width, units, LEAST_WIDTH, MOST_WIDTH)
    return inside


def _in_range(name: str, inside: Array, units: Units, least: float, most: float) -> Array:
    """A hyperparameter in the units of the rows, if it is of a size that goes with them."""
    size = np.abs(np.diagonal(inside) if inside.ndim == 2 else inside)
    if size.size and not (least <= size.min() and size.max() <= most):
        raise ValueError(
            f"prior[{name!r}] has entries from {size.min():g} to {size.max():g} in units of the spread of X, about "
            f"{units.scale.max():g}, and must be within {least:g} and {most:g} there. Are its units those of X?"
        )
    return inside


class Solved(NamedTuple):
    """A mixture that was found, as a model, and what one exact look at all rows says of it."""

    model: MixtureModel
    labels: Array  # (n,)
    energy: float  # free energy

    @classmethod
    def of(cls, problem: MixtureProblem, mixture: Mixture, partition: Partition, X: Any, weight: Array) -> "Solved":
        """Look at the rows of the fit, those without weight too."""
        view, tied = mixture.view(problem.setting), problem.tied
        counted = not problem.setting.family.continuous
        length = float(tied.n @ np.asarray(tied.mean.sum(axis=1)).ravel()) / tied.total if counted else 0.0
        model = MixtureModel(
            problem.setting.family,
            join([mixture.params, problem.setting.prior]),
            view.log_weight,
            problem.setting.weights.weights(mixture.sticks),
            problem.units,
            tail=True,
            length=length,
        )
        rows = partition.rows if partition.rows.size == X.shape[0] else model.weighted(X, weight)  # some weigh nothing
        found, lse = model.assign(rows)
        labels = found
        if rows is partition.rows and partition.places is not None:
            labels = np.empty_like(found)
            labels[partition.places] = found
        return cls(model, labels, view.divergence - float(rows.n @ lse) - rows.base)


def _mean(X: Any, n: Array) -> Array:
    """Mean of the rows of a table of counts or bits."""
    total = sum(np.asarray(X[block].T @ n[block], dtype=np.float64).ravel() for block in blocks(X.shape[0]))
    return np.asarray(total / n.sum())
