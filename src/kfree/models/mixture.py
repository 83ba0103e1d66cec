"""Mixtures with conjugate priors: checked rows in units of their own, and a fitted model that can be asked."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from kfree.families import Array
from kfree.families.conjugate import ANCHORED, CONJUGATE, Conjugate, Facts, join
from kfree.families.conjugate.conjugate_family import FARTHEST, LEAST_WIDTH, MOST_WIDTH, hyperparameter
from kfree.families.conjugate.discrete import LARGEST_COUNT, totals
from kfree.inference.variational.expected_likelihood import make_runner
from kfree.inference.variational.partition import Partition
from kfree.inference.variational.posterior import Mixture, Setting
from kfree.inference.variational.sweep import assign, soften_all
from kfree.inference.variational.variational_numbers import VARIATIONAL
from kfree.models.checks import check_domain, check_number, check_weight
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


def check_rows(X: Any, family: Conjugate) -> None:
    """Whether the family can have such rows."""
    if sp.issparse(X) and family.continuous:
        raise TypeError(
            f"family={family.name!r} does not work on sparse rows because centring makes them dense. Pass "
            "X.toarray(), or use family='multinomial', 'poisson' or 'bernoulli'."
        )
    check_domain(X, family, "family")
    if family.counted:
        _check_counts(X, family)


def _check_counts(X: Any, family: Conjugate) -> None:
    """Counts that are exact."""
    with np.errstate(over="ignore"):
        size = totals(X) if family.counted == "row" else np.asarray(_dense(X.max(axis=1)), dtype=np.float64).ravel()
    beyond = np.flatnonzero(size > LARGEST_COUNT)
    if beyond.size:
        what = "sums of rows" if family.counted == "row" else "entries"
        raise ValueError(
            f"family={family.name!r} needs {what} of at most 2**53 = {LARGEST_COUNT:.5g}: up to there whole numbers "
            f"are exact. Row {beyond[0]} has {size[beyond[0]]:g}, and {beyond.size - 1} more rows are beyond. Divide "
            "X, or use family='gaussian'."
        )


def _dense(values: Any) -> Any:
    return values.toarray() if sp.issparse(values) else values


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
            rows, units, spread = standardise(X, n)
            facts = Facts(X.shape[1], spread if spread > 0 else 1.0, np.zeros(X.shape[1]))
        else:
            rows, units, spread = X, Units(np.zeros(X.shape[1]), 1.0), 1.0
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
        inside["mean"] = _in_range("mean", mean, units, 0.0, LARGEST / max(units.scale, LARGEST / FARTHEST))
    if "covariance" in inside:
        width = np.asarray(inside["covariance"], dtype=np.float64)
        hyperparameter(inside, "covariance", None, width.shape, -np.inf if width.ndim == 2 else 0.0)
        with np.errstate(over="ignore"):
            width = width / units.scale / units.scale
        inside["covariance"] = _in_range("covariance", width, units, LEAST_WIDTH, MOST_WIDTH)
    return inside


def _in_range(name: str, inside: Array, units: Units, least: float, most: float) -> Array:
    """A hyperparameter in the units of the rows, if it is of a size that goes with them."""
    size = np.abs(np.diagonal(inside) if inside.ndim == 2 else inside)
    if size.size and not (least <= size.min() and size.max() <= most):
        raise ValueError(
            f"prior[{name!r}] has entries from {size.min():g} to {size.max():g} in units of the spread of X, about "
            f"{units.scale:g}, and must be within {least:g} and {most:g} there. Are its units those of X?"
        )
    return inside


def make_tied(X: Any, n: Array, family: Conjugate, units: Units) -> Tied:
    """A table of single rows, which are in these units."""
    rows = sp.csr_matrix(X, dtype=np.float64) if sp.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)
    log_h = np.concatenate([family.log_base(rows[block]) for block in blocks(X.shape[0])])
    if family.continuous:
        log_h -= X.shape[1] * np.log(units.scale)
    return Tied(n, rows, None, log_h)


def _mean(X: Any, n: Array) -> Array:
    """Mean of the rows of a table of counts or bits."""
    total = sum(np.asarray(X[block].T @ n[block], dtype=np.float64).ravel() for block in blocks(X.shape[0]))
    return np.asarray(total / n.sum())


class MixtureModel(NamedTuple):
    """A fitted mixture that can be asked about rows."""

    setting: Setting
    mixture: Mixture
    units: Units
    length: float  # mean total of the rows

    @classmethod
    def of(cls, problem: MixtureProblem, mixture: Mixture) -> "MixtureModel":
        """The model of a finished fit."""
        tied = problem.tied
        length = 0.0 if problem.setting.family.continuous else float(tied.n @ np.asarray(tied.mean.sum(axis=1)).ravel())
        return cls(problem.setting, mixture, problem.units, length / tied.total)

    def means(self) -> Array:
        """Expected means in the users' units."""
        return self.setting.family.means(self.mixture.params) * self.units.scale + self.units.shift

    def covariances(self) -> Array | None:
        """Covariances in the users' units."""
        inside = self.setting.family.covariances(self.mixture.params)
        return None if inside is None else inside * self.units.scale**2

    def tied(self, X: Any) -> Tied:
        """Rows, checked and in the units of the model."""
        check_rows(X, self.setting.family)
        return self._tied(X, np.ones(X.shape[0]))

    def _tied(self, X: Any, n: Array) -> Tied:
        family = self.setting.family
        return make_tied(self.units.rows(X) if family.continuous else X, n, family, self.units)

    def labels(self, X: Any) -> Array:
        """Likeliest component of each row."""
        return self._assign(self.tied(X))[0]

    def last_look(self, partition: Partition, X: Any, weight: Array) -> tuple[Array, float]:
        """Labels of the rows that were fitted and their free energy, from one exact look at all of them."""
        if partition.rows.size != X.shape[0]:  # some weigh nothing
            return self._assign(self._tied(X, weight))
        found, energy = self._assign(partition.rows)
        if partition.places is None:
            return found, energy
        labels = np.empty_like(found)
        labels[partition.places] = found
        return labels, energy

    def _assign(self, tied: Tied) -> tuple[Array, float]:
        view = self.mixture.view(self.setting)
        labels, lse = assign(tied, view.runner(tied), view.log_weight)
        return labels, view.divergence - float(tied.n @ lse) - tied.base

    def shares(self, X: Any, tail: bool) -> Array:
        """Responsibilities (n, T + 1), the last the tail's; or of the T components alone."""
        view = self.mixture.view(self.setting)
        tied = self.tied(X)
        if tail:
            return view.shares(tied).resp.T
        runner = make_runner(self.setting.family.form(self.mixture.params), self.mixture.size, tied)
        return soften_all(tied, runner, view.log_weight[:-1]).resp.T

    def log_density(self, X: Any) -> Array:
        """Log of the predictive density of rows."""
        family = self.setting.family
        params = join([self.mixture.params, self.setting.prior])
        tied = self.tied(X)
        with np.errstate(divide="ignore"):
            log_weight = np.log(self.setting.weights.weights(self.mixture.sticks))
        value = np.empty(tied.size)

        def of_span(span: slice) -> None:
            value[span] = logsumexp(family.log_predictive(params, tied.mean[span]) + log_weight, axis=1)

        for _ in tied.each(of_span, log_weight.size):
            pass
        return value - X.shape[1] * np.log(self.units.scale)

    def sample(self, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Rows from the predictive density, and their components; -1 for those of the tail."""
        chance = self.setting.weights.weights(self.mixture.sticks)
        labels = rng.choice(chance.size, size=count, p=chance / chance.sum())
        params = join([self.mixture.params, self.setting.prior])
        length = np.full(count, round(self.length))
        rows = self.setting.family.sample(params, labels, rng, length) * self.units.scale + self.units.shift
        return rows, np.where(labels == chance.size - 1, -1, labels)
