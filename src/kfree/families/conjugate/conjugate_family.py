"""Families with conjugate priors: posteriors, expectations under them, and predictive densities.

The form of a component is that of its expected log-likelihood.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from kfree.families.base import Array
from kfree.families.components import Components

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


class Conjugate(Components):
    """A family with a conjugate prior. ``params`` is its record, K in front; a prior is a record with K = 1."""

    #: What nodes of a tree must know of the second moments of their rows: "full", "diag", "spherical" or "none".
    second_moments: ClassVar[str] = "none"
    #: Names of the hyperparameters a user may set.
    hyperparameters: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def prior(self, facts: Facts, given: Mapping[str, Any]) -> Any:
        """The prior: by default as weak as is proper and scaled by the data, else as the user said."""

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

    def directions(self, params: Any) -> Array | None:
        """Directions (K, p) along which components are longest; None if parameters do not say so."""
        return None

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
