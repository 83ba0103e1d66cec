"""Families with conjugate priors: posteriors, expectations under them, and predictive densities.

The form of a component is that of its expected log-likelihood.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from kfree.families.base import Array
from kfree.families.components import Components, Form

_NONE = np.empty(0)
#: Hyperparameters that count rows: smaller or larger ones leave too few digits, or too large powers, to anything else.
LEAST_COUNT, MOST_COUNT = 1e-20, 1e8
#: Squared widths of components, in units of the rows, within which powers of them are numbers.
LEAST_WIDTH, MOST_WIDTH = 1e-20, 1e20
#: Draws beyond this, which a Student's t of few degrees of freedom has, end here: in any units they are numbers.
FARTHEST = 1e100


class Moments(NamedTuple):
    """Weighted sums of statistics over the rows of K components."""

    mass: Array  # (K,) sum of r
    first: Array  # (K, p) sum of r (x - about)
    second: Array | None  # sum of r (x - about)(x - about)': (K, p, p), or its diagonal (K, p); None if discrete
    about: Array  # (K, p) points close to the means, so that no digits are lost; zero if discrete


class Facts(NamedTuple):
    """What default priors depend on."""

    p: int
    spread: float  # largest eigenvalue of the covariance of the rows, if the family is continuous
    mean: Array  # (p,) mean of the rows
    variance: Array = _NONE  # (p,) of the columns, if the family is continuous


class Drawn(NamedTuple):
    """Parameters drawn from posteriors."""

    means: Array  # (count, K, p)
    covariances: Array | None  # (count, K, p, p), (count, K, p) or (count, K)


class Hyperprior(NamedTuple):
    """What a learned prior is held back by: one pseudo-component, whose posterior is a wide prior, the star."""

    star: Any  # record of one component
    held: frozenset[str]  # hyperparameters that are not learned
    least: Array  # (p,) smallest variance that a component may be expected to have in each column, if continuous


class Conjugate(Components):
    """A family with a conjugate prior. ``params`` is its record, K in front; a prior is a record with K = 1."""

    #: What nodes of a tree must know of the second moments of their rows: "full", "diag", "spherical" or "none".
    second_moments: ClassVar[str] = "none"
    #: True if columns may have units of their own.
    column_units: ClassVar[bool] = False
    #: Names of the hyperparameters a user may set.
    hyperparameters: ClassVar[tuple[str, ...]] = ()
    #: Widths of the priors that learning starts from, as shares of the star's; none if the prior is not learned.
    starts: ClassVar[tuple[float, ...]] = ()

    @abstractmethod
    def prior(self, facts: Facts, given: Mapping[str, Any]) -> Any:
        """The prior: by default as weak as is proper and scaled by the data, else as the user said."""

    @abstractmethod
    def hyperparameters_of(self, prior: Any) -> dict[str, Any]:
        """The prior by the names of its hyperparameters, in the units of the rows."""

    def star(self, facts: Facts, given: Mapping[str, Any], width: float = 1.0) -> Any:
        """A wide prior in the units of the columns, or this share of it: where learning starts, and what holds it back.
        A family that does not learn has its usual one."""
        return self.prior(facts, given)

    def learned(self, params: Any, prior: Any, hyper: Hyperprior) -> Any:
        """The prior that is nearest to components and star: sum_i KL(q_i || p) + KL(star || p) is least there, but for
        what is held. A family that does not learn keeps its own."""
        return prior

    @abstractmethod
    def posterior(self, prior: Any, sums: Moments) -> Any:
        """The prior updated with sums of statistics, one for each component."""

    @abstractmethod
    def divergence(self, params: Any, prior: Any) -> Array:
        """KL(q(eta_k) || p(eta)), (K,)."""

    @abstractmethod
    def terms(self, params: Any) -> Array:
        """Size of the terms that divergences are sums of, about, (K,): their rounding scales with it."""

    def blur(self, prior: Any, total: float) -> float:
        """Share by which parameters of components with rows of so much weight are wrong by rounding, where rows say so
        little that the prior matters; over columns, as the root of a sum of squares."""
        return 0.0

    @abstractmethod
    def deviations(self, params: Any) -> Array:
        """Standard deviations of the posterior of the means, (K, p); +inf where it has none."""

    @abstractmethod
    def draw(self, params: Any, count: int, rng: np.random.Generator) -> Drawn:
        """So many draws of all components from their posteriors."""

    @abstractmethod
    def given(self, drawn: Drawn, prior: Any) -> Form:
        """Log-likelihoods under the first of some draws of parameters, as a form."""

    @classmethod
    def made(cls, given: Mapping[str, Any]) -> "Conjugate":
        """The family, with what a user says of it beside the prior."""
        return cls()

    def directions(self, params: Any, prior: Any, deviation: Array | None) -> list[Array]:
        """Directions (K, p) along which components are longest, in one or more senses; none if parameters do not say
        so. ``deviation`` is that of the columns, where these have units of their own."""
        return []

    def standardised(self, X: Any, mean: Array) -> Any:
        """Rows as they are looked at when a component with this mean is to be split; sparse if X is."""
        return X


def pooled(sums: Moments, prior_mean: Array, beta: float) -> tuple[Array, Array, Array]:
    """Posterior means (K, p) of locations, mean of the rows less ``about``, and its distance from the prior mean."""
    safe = np.maximum(sums.mass, np.finfo(float).tiny)[:, None]
    gap = np.where(sums.mass[:, None] > 0, sums.first / safe, 0.0)
    centre = sums.about + gap
    share = (sums.mass / (beta + sums.mass))[:, None]
    return prior_mean + share * (centre - prior_mean), gap, centre - prior_mean


def hyperparameter(given: Mapping[str, Any], name: str, default: Any, shape: tuple[int, ...], above: float) -> Array:
    """A hyperparameter of the user's, or the default; a number stands for all entries."""
    value = np.asarray(given.get(name, default), dtype=np.float64)
    if value.shape not in ((), shape):
        raise ValueError(f"prior[{name!r}] has shape {value.shape}; pass a number or an array of shape {shape}.")
    if not np.isfinite(value).all() or not (value > above).all():
        raise ValueError(f"prior[{name!r}] must be finite and above {above:g}, got {value.min():g} as its least.")
    return np.broadcast_to(value, shape).astype(np.float64)


def pseudo_count(
    given: Mapping[str, Any],
    name: str,
    default: Any,
    shape: tuple[int, ...],
    above: float = 0.0,
    most: float = MOST_COUNT,
) -> Array:
    """A hyperparameter that counts as so many rows, or as so much of what rows count."""
    value = hyperparameter(given, name, default, shape, above)
    if not (value - above >= LEAST_COUNT).all() or not (value <= most).all():
        raise ValueError(
            f"prior[{name!r}] must be at least {above + LEAST_COUNT:g} and at most {most:g}, got entries from "
            f"{value.min():g} to {value.max():g}: beyond that rounding leaves nothing of the rows, or of the prior."
        )
    return value
