"""Families with conjugate priors: posteriors, expectations under them, and predictive densities.

Parameters of K components are one record of arrays with K in front, so that a set of components is a record, too.
An expected log-likelihood is one of three forms (below): what runs over the rows knows the form, not the family.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from kfree.families.base import Array

R = TypeVar("R", bound=tuple[Any, ...])

#: Hyperparameters that count rows: smaller or larger ones leave too few digits, or too large powers, to anything else.
LEAST_COUNT, MOST_COUNT = 1e-20, 1e8
#: Squared widths of components, in units of the rows, within which powers of them are numbers.
LEAST_WIDTH, MOST_WIDTH = 1e-20, 1e20
#: Draws beyond this, which a Student's t of few degrees of freedom has, end here: in any units they are numbers.
FARTHEST = 1e100


class Linear(NamedTuple):
    """E[log p(x | k)] = <x, coef_k> - offset_k + log h(x)."""

    coef: Array  # (K, p)
    offset: Array  # (K,)


class Weighted(NamedTuple):
    """E[log p(x | k)] = -1/2 sum_d precision_kd (x_d - mean_kd)^2 - offset_k + log h(x)."""

    precision: Array  # (K, p)
    mean: Array  # (K, p)
    offset: Array  # (K,)


class Whitened(NamedTuple):
    """E[log p(x | k)] = -1/2 |(x - mean_k)' root_k|^2 - offset_k + log h(x)."""

    root: Array  # (K, p, p)
    mean: Array  # (K, p)
    offset: Array  # (K,)


Form = Linear | Weighted | Whitened


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


class Conjugate(ABC):
    """A family with a conjugate prior. ``params`` is its record, K in front; a prior is a record with K = 1."""

    name: ClassVar[str]
    #: Values a row may hold.
    lower: ClassVar[float] = -np.inf
    upper: ClassVar[float] = np.inf
    lower_open: ClassVar[bool] = False
    #: What is a count, and must be exact, if anything: "entry", or "row" for its sum.
    counted: ClassVar[str] = ""
    #: True if rows are centred and scaled first, which changes nothing but the rounding.
    continuous: ClassVar[bool] = False
    #: What nodes of a tree must know of the second moments of their rows: "full", "diag", "spherical" or "none".
    second_moments: ClassVar[str] = "none"
    #: What to do about a value outside, the end of the error message.
    advice: ClassVar[str] = ""
    #: Names of the hyperparameters a user may set.
    hyperparameters: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def prior(self, facts: Facts, given: Mapping[str, Any]) -> Any:
        """The prior: by default as weak as is proper and scaled by the data, else as the user said."""

    @abstractmethod
    def posterior(self, prior: Any, sums: Moments) -> Any:
        """The prior updated with sums of statistics, one for each component."""

    @abstractmethod
    def form(self, params: Any) -> Form:
        """Expected log-likelihoods as a form."""

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
    def log_base(self, X: Any) -> Array:
        """log h of rows, (n,)."""

    @abstractmethod
    def log_predictive(self, params: Any, X: Any) -> Array:
        """Log of the predictive densities of rows under each component, (n, K)."""

    @abstractmethod
    def sample(self, params: Any, labels: Array, rng: np.random.Generator, length: Array) -> Array:
        """One row from the predictive density of each component in ``labels``, (n, p).

        ``length`` (n,) are the totals of count rows where the family does not model them."""

    @abstractmethod
    def means(self, params: Any) -> Array:
        """Expected means, (K, p)."""

    def covariances(self, params: Any) -> Array | None:
        """Inverse expected precisions; None if the family has none."""
        return None

    def directions(self, params: Any) -> Array | None:
        """Directions (K, p) along which components are longest; None if parameters do not say so."""
        return None

    def standardised(self, X: Any, mean: Array) -> Any:
        """Rows as they are looked at when a component with this mean is to be split; sparse if X is."""
        return X

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def take(params: R, which: Any) -> R:
    """Some of the components of a record."""
    return type(params)(*(field[which] for field in params))


def join(params: Sequence[R]) -> R:
    """The components of several records."""
    return type(params[0])(*(np.concatenate(fields) for fields in zip(*params)))


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
