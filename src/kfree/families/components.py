"""What a mixture is made of: components that rows can be asked about, drawn from, and looked at.

Parameters of K components are one record of arrays with K in front, so that a set of components is a record, too.
A log-likelihood is one of three forms (below): what runs over the rows knows the form, not the family.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from kfree.families.base import Array

R = TypeVar("R", bound=tuple[Any, ...])


class Linear(NamedTuple):
    """log p(x | k) = <x, coef_k> - offset_k + log h(x)."""

    coef: Array  # (K, p)
    offset: Array  # (K,)


class Weighted(NamedTuple):
    """log p(x | k) = -1/2 sum_d precision_kd (x_d - mean_kd)^2 - offset_k + log h(x)."""

    precision: Array  # (K, p)
    mean: Array  # (K, p)
    offset: Array  # (K,)


class Whitened(NamedTuple):
    """log p(x | k) = -1/2 |(x - mean_k)' root_k|^2 - offset_k + log h(x)."""

    root: Array  # (K, p, p)
    mean: Array  # (K, p)
    offset: Array  # (K,)


Form = Linear | Weighted | Whitened


def grained(form: Form, grain: Array | None) -> Form:
    """Expected log-likelihoods of rows whose entries are known up to errors of mean 0 and these variances (p,)."""
    if grain is None or isinstance(form, Linear):
        return form
    squares = form.precision @ grain if isinstance(form, Weighted) else (form.root**2).sum(axis=2) @ grain
    return form._replace(offset=form.offset + 0.5 * squares)


class Components(ABC):
    """A family of components. ``params`` is its record, K in front."""

    name: ClassVar[str]
    #: Values a row may hold.
    lower: ClassVar[float] = -np.inf
    upper: ClassVar[float] = np.inf
    lower_open: ClassVar[bool] = False
    #: What is a count, and must be exact, if anything: "entry", or "row" for its sum.
    counted: ClassVar[str] = ""
    #: True if rows are centred and scaled first, which changes nothing but the rounding.
    continuous: ClassVar[bool] = False
    #: What to do about a value outside, the end of the error message.
    advice: ClassVar[str] = ""

    @abstractmethod
    def form(self, params: Any) -> Form:
        """Log-likelihoods, or what is expected of them, as a form."""

    @abstractmethod
    def log_base(self, X: Any) -> Array:
        """log h of rows, (n,)."""

    @abstractmethod
    def log_predictive(self, params: Any, X: Any) -> Array:
        """Log of the densities of rows under each component, (n, K)."""

    @abstractmethod
    def sample(self, params: Any, labels: Array, rng: np.random.Generator, length: Array) -> Array:
        """One row from the density of each component in ``labels``, (n, p).

        ``length`` (n,) are the totals of count rows where the family does not model them."""

    @abstractmethod
    def means(self, params: Any) -> Array:
        """Expected means, (K, p)."""

    def covariances(self, params: Any) -> Array | None:
        """Covariances, or inverses of expected precisions; None if the family has none."""
        return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def take(params: R, which: Any) -> R:
    """Some of the components of a record."""
    return type(params)(*(field[which] for field in params))


def join(params: Sequence[R]) -> R:
    """The components of several records."""
    return type(params[0])(*(np.concatenate(fields) for fields in zip(*params)))
