"""Mixtures with conjugate priors: checked rows in units of their own, and what was found in them as a model."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.families.conjugate import ANCHORED, CONJUGATE, Conjugate, Facts, join
from kfree.families.conjugate.conjugate_family import FARTHEST, LEAST_WIDTH, MOST_WIDTH, Hyperprior, hyperparameter
from kfree.inference.loop import Budget
from kfree.inference.variational.greedy import FoundMixture, GreedyGoal
from kfree.inference.variational.partition import Partition
from kfree.inference.variational.posterior import Mixture, Setting, View
from kfree.inference.variational.prior_learning import Learner
from kfree.inference.variational.variational_numbers import VARIATIONAL
from kfree.models.checks import check_number, check_weight
from kfree.models.mixture_model import MixtureModel, check_rows, make_tied
from kfree.rows import Tied
from kfree.rows.recording import recording_error
from kfree.rows.standardise import LARGEST, Units, blocks, standardise
from kfree.structures import StickBreaking

PRIORS = ("learn", "fixed")


class PriorWish(NamedTuple):
    """What the user said of the prior."""

    learn: bool
    given: Mapping[str, Any]  # hyperparameters by name

    @classmethod
    def of(cls, prior: Any, family: type[Conjugate] | Conjugate) -> "PriorWish":
        """Read ``prior``: a word, or hyperparameters by name."""
        names = ", ".join(map(repr, family.hyperparameters))
        if isinstance(prior, str):
            return cls(prior == "learn", {})
        if not isinstance(prior, Mapping):
            raise TypeError(
                f"prior must be 'learn', 'fixed' or a dict of hyperparameters, got {type(prior).__name__}. "
                f"family={family.name!r} knows {names}."
            )
        known = (*family.hyperparameters, "sd") if "covariance" in family.hyperparameters else family.hyperparameters
        for name in prior:
            if name not in known:
                raise ValueError(
                    f"prior[{name!r}] is not a hyperparameter of family={family.name!r}. It knows "
                    f"{', '.join(map(repr, known))}."
                )
            try:
                np.asarray(prior[name], dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise TypeError(
                    f"prior[{name!r}] must be a number or an array of numbers, got {prior[name]!r}."
                ) from error
        given = dict(prior)
        if "sd" in given:
            if "covariance" in given:
                raise ValueError("prior has both 'sd' and 'covariance', which is its square. Pass one of them.")
            with np.errstate(over="ignore"):
                given["covariance"] = np.asarray(given.pop("sd"), dtype=np.float64) ** 2
            if given["covariance"].ndim > 1:
                raise ValueError("prior['sd'] must be a number, or one for each column. Pass a matrix as 'covariance'.")
        return cls(True, given)


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


class MixtureWish(NamedTuple):
    """What is assumed of rows before they are seen."""

    name: str  # of the family
    family: Conjugate
    weights: StickBreaking
    given: Mapping[str, Any]  # hyperparameters by name
    learn: bool  # whether the others are learned

    @classmethod
    def of(cls, name: str, prior: Any, weights: StickBreaking) -> "MixtureWish":
        """Read what the user said."""
        family = CONJUGATE[name]()
        wish = PriorWish.of(prior, family)
        learn = wish.learn and bool(family.starts) and not set(family.hyperparameters) <= set(wish.given)
        return cls(name, family, weights, wish.given, learn)


class KnownRows(NamedTuple):
    """What is known of all rows of a fit."""

    units: Units
    facts: Facts
    degenerate: bool  # rows do not differ
    total: float  # their weight
    largest: float  # entry of counts


class PriorStart(NamedTuple):
    """A prior to begin with, and what moves it, if it is learned."""

    prior: Any  # record of one component
    learner: Learner | None = None


class MixtureProblem(NamedTuple):
    """Checked rows and what is assumed of them."""

    setting: Setting
    tied: Tied  # the rows that weigh something, for the partition
    units: Units
    degenerate: bool  # rows do not differ
    starts: list[PriorStart]  # searches begin with each of them

    @classmethod
    def of(cls, X: Any, sample_weight: Any, wish: MixtureWish) -> "MixtureProblem":
        """Check X for the family and bring it into units of its own."""
        check_rows(X, wish.family)
        n = check_mass(sample_weight, X.shape[0])
        if (n == 0).any():
            X, n = X[n > 0], n[n > 0]
        rows, units, facts, degenerate = prepare(X, n, wish.family, wish.learn)
        largest = float(X.max()) if wish.name in ANCHORED else 0.0
        return cls.assuming(wish, KnownRows(units, facts, degenerate, float(n.sum()), largest), rows, n)

    @classmethod
    def assuming(cls, wish: MixtureWish, known: KnownRows, rows: Any, n: Array) -> "MixtureProblem":
        """Rows in their units, all of them or a sample, with what is assumed of them in view of all."""
        (name, family, weights), (units, facts, degenerate, total, largest) = wish[:3], known
        given, learn = in_units(wish.given, units), wish.learn and not degenerate
        starts = _starts(family, facts, given, total) if learn else [PriorStart(family.prior(facts, given))]
        own = starts[0].prior
        if name in ANCHORED and max(largest, *(field.max() for field in own)) >= VARIATIONAL.large_count:
            family = ANCHORED[name](facts.mean)
        setting = Setting(family, own, weights)
        if learn and family.continuous:
            grain, deviation = recording_error(rows, facts.variance), np.sqrt(facts.variance)
            setting = setting._replace(grain=grain, deviation=deviation if family.column_units else None)
        check_blur(setting.family, setting.prior, total)
        return cls(setting, make_tied(rows, n, family, units), units, degenerate, starts)


def check_mass(sample_weight: Any, n: int) -> Array:
    """How often each row counts, a copy."""
    weight = check_weight(sample_weight, n)
    check_total_mass(float(weight.sum()))
    return np.array(weight) if weight.size else np.ones(n)  # it may be permuted


def check_total_mass(total: float) -> None:
    """Whether a prior is anything beside rows of so much weight."""
    if total > VARIATIONAL.most_weight:
        raise ValueError(
            f"The sum of sample_weight is {total:g}, and beyond {VARIATIONAL.most_weight:g} the prior "
            "is lost in rounding. A weight counts as so many copies of a row: divide them."
        )


def prepare(X: Any, n: Array, family: Conjugate, learn: bool) -> tuple[Any, Units, Facts, bool]:
    """Rows in units of their own, the units, what default priors depend on, and whether rows do not differ."""
    p = X.shape[1]
    if not family.continuous:
        return X, Units.of_counts(p), Facts(p, 1.0, _mean(X, n)), False
    rows, units, spread, variance = standardise(X, n, by_column=learn and family.column_units)
    return rows, units, *facts_of_units(spread, variance)


def facts_of_units(spread: float, variance: Array) -> tuple[Facts, bool]:
    """What default priors depend on where rows are in units of their own, and whether rows do not differ."""
    variance = np.where(variance > 0, variance, 1.0)  # a column that does not vary is as wide as its unit
    p = variance.size
    return Facts(p, spread if spread > 0 else 1.0, np.zeros(p), variance), not spread > 0


def _starts(family: Conjugate, facts: Facts, given: dict[str, Any], total: float) -> list[PriorStart]:
    """Where learning starts: with the star, moved from the first component on; and with narrower ones, moved only once
    there are two. The first may stop too early, the others may split noise: the least penalised free energy tells."""
    narrowest = max(VARIATIONAL.least_variance, np.finfo(float).eps * total)
    hyper = Hyperprior(family.star(facts, given), frozenset(given), narrowest * facts.variance)
    widths = family.starts if "covariance" not in given else family.starts[:1]
    return [PriorStart(family.star(facts, given, width), Learner(hyper, 1 if width == 1.0 else 2)) for width in widths]


def check_blur(family: Conjugate, prior: Any, total: float) -> None:
    """Whether anything is left of the prior beside sums over all rows."""
    blur = family.blur(prior, total) / VARIATIONAL.most_blur
    if blur > 1:
        raise ValueError(
            f"The prior, which keeps covariances from being singular, is lost in the rounding of sums over rows of "
            f"weight {total:g}. Divide sample_weight, or multiply prior['covariance'], by at least {blur:.2g}; a "
            "prior['mean'] far from the rows must come closer."
        )


def in_units(given: Mapping[str, Any], units: Units) -> dict[str, Any]:
    """Hyperparameters that have the units of the data."""
    inside = dict(given)
    if "mean" in inside:
        mean = hyperparameter(inside, "mean", None, units.shift.shape, -np.inf)
        with np.errstate(over="ignore"):
            mean = (mean - units.shift) / units.scale
        inside["mean"] = _in_range("mean", mean, units, 0.0, LARGEST / max(units.scale.max(), LARGEST / FARTHEST))
    if "covariance" in inside:
        width, scale = np.asarray(inside["covariance"], dtype=np.float64), units.scale
        hyperparameter(inside, "covariance", None, width.shape, -np.inf if width.ndim == 2 else 0.0)
        if width.ndim == 0 and (scale == scale[0]).all():
            scale = scale[:1].reshape(())  # one number stays one
        if width.shape not in ((), scale.shape, (scale.size, scale.size)):
            raise ValueError(
                f"prior['covariance'] (or 'sd') has shape {width.shape}; pass a positive number, {scale.size} of them, "
                f"or, for the covariance of family='gaussian', a positive definite ({scale.size}, {scale.size}) matrix."
            )
        with np.errstate(over="ignore"):
            width = width / scale / (scale[:, None] if width.ndim == 2 else scale)
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


def published(family: Conjugate, prior: Any, units: Units) -> dict[str, Any]:
    """A prior by the names of its hyperparameters, in the users' units."""
    values = family.hyperparameters_of(prior)
    if "mean" in values:
        values["mean"] = units.means(values["mean"])
    if "covariance" in values:
        covariance = units.covariances(np.asarray(values["covariance"])[None])[0]
        values["covariance"] = covariance if covariance.ndim else float(covariance)
    return values


class Solved(NamedTuple):
    """A mixture that was found, as a model, and what one exact look at all rows says of it."""

    model: MixtureModel
    labels: Array | None  # (n,) None where rows are elsewhere
    energy: float  # free energy
    posterior: "Posterior"

    def reordered(self, order: Array, rank: Array) -> "Solved":
        """The same components with other numbers: ``order`` tells who gets each, ``rank`` which each one gets."""
        posterior = self.posterior._replace(order=order)
        labels = None if self.labels is None else rank[self.labels]
        return self._replace(model=self.model.reordered(order), labels=labels, posterior=posterior)

    @classmethod
    def of(cls, problem: MixtureProblem, mixture: Mixture, partition: Partition, X: Any, weight: Array) -> "Solved":
        """Look at the rows of the fit, those without weight too."""
        view, tied = mixture.view(problem.setting), problem.tied
        counted = not problem.setting.family.continuous
        length = float(tied.n @ np.asarray(tied.mean.sum(axis=1)).ravel()) / tied.total if counted else 0.0
        model = model_of(problem, mixture, view, length)
        rows = partition.rows if partition.rows.size == X.shape[0] else model.weighted(X, weight)  # some weigh nothing
        found, lse = model.assign(rows)
        labels = found
        if rows is partition.rows and partition.places is not None:
            labels = np.empty_like(found)
            labels[partition.places] = found
        posterior = Posterior(problem.setting, mixture, problem.units, np.arange(model.size))
        return cls(model, labels, view.divergence - float(rows.n @ lse) - rows.base, posterior)


def model_of(problem: MixtureProblem, mixture: Mixture, view: View, length: float) -> MixtureModel:
    """A mixture that can be asked about rows; their mean total was ``length``."""
    setting = problem.setting
    return MixtureModel(
        setting.family,
        join([mixture.params, setting.prior]),
        view.log_weight,
        setting.weights.weights(mixture.sticks),
        problem.units,
        tail=True,
        length=length,
        grain=setting.grain,
    )


class MixtureRows(ABC):
    """The rows of a fit, wherever they are."""

    problem: MixtureProblem  # what the search runs on: all of them, or a sample

    @abstractmethod
    def finish(self, found: FoundMixture, goal: GreedyGoal, budget: Budget) -> FoundMixture:
        """Bring what was found onto all rows."""

    @abstractmethod
    def solve(self, found: FoundMixture, partition: Partition) -> Solved:
        """What was found, as a model."""


@dataclass(frozen=True)
class LocalMixtureRows(MixtureRows):
    """Rows in memory: the search runs on all of them."""

    problem: MixtureProblem
    X: Any
    sample_weight: Any

    @classmethod
    def of(cls, X: Any, sample_weight: Any, wish: MixtureWish) -> "LocalMixtureRows":
        """Check X for the family and bring it into units of its own."""
        return cls(MixtureProblem.of(X, sample_weight, wish), X, sample_weight)

    def finish(self, found: FoundMixture, goal: GreedyGoal, budget: Budget) -> FoundMixture:
        """Nothing is left to do."""
        return found

    def solve(self, found: FoundMixture, partition: Partition) -> Solved:
        """A last exact look at all rows."""
        problem, weight = (
            self.problem._replace(setting=found.setting),
            check_weight(self.sample_weight, self.X.shape[0]),
        )
        return Solved.of(problem, found.mixture, partition, self.X, weight)


class Posterior(NamedTuple):
    """What is known of weights and parameters, and how well."""

    setting: Setting
    mixture: Mixture
    units: Units
    order: Array  # (T,) which component of the mixture has each number

    def deviations(self) -> tuple[Array, Array]:
        """Standard deviations of weights (T,) and of means (T, p), in the users' units."""
        means = self.setting.family.deviations(self.mixture.params) * self.units.scale
        return self.setting.weights.deviations(self.mixture.sticks)[self.order], means[self.order]

    def draw(self, count: int, rng: np.random.Generator) -> dict[str, Array]:
        """Draws of weights, means and, if there are any, covariances, in the users' units."""
        drawn = self.setting.family.draw(self.mixture.params, count, rng)
        weights = self.setting.weights.draw(self.mixture.sticks, count, rng)[:, self.order]
        found = {"weights": weights, "means": self.units.means(drawn.means)[:, self.order]}
        if drawn.covariances is not None:
            inside = drawn.covariances.reshape(-1, *drawn.covariances.shape[2:])
            found["covariances"] = self.units.covariances(inside).reshape(drawn.covariances.shape)[:, self.order]
        return found


def _mean(X: Any, n: Array) -> Array:
    """Mean of the rows of a table of counts or bits."""
    total = sum(np.asarray(X[block].T @ n[block], dtype=np.float64).ravel() for block in blocks(X.shape[0]))
    return np.asarray(total / n.sum())
