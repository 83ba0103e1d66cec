"""What a cluster is: an exponential family in natural form, and the divergence that belongs to it.

A family holds formulas and hyperparameters and no state. For convex ``phi`` with conjugate ``psi``,

    D(x, mu) = phi(x) - phi(mu) - <x - mu, theta(mu)> = phi(x) + psi(theta) - <x, theta>,

data first, centre second. The last form is affine in ``x``, so all costs are one matrix product.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from inspect import signature
from math import prod
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import kl_div

from kfree.families.cached import cached_property

Array = NDArray[Any]

#: Stands for log 0 in a product (0 * -inf would be NaN): a cost this large reads as +inf.
MINUS_INF = -1e100
#: A cost above this was made by such a stand-in; so entries down to LARGEST / -MINUS_INF tell that they are excluded.
LARGEST = 1e50
# The same in single precision.
_MINUS_INF_FLOAT32, _LARGEST_FLOAT32 = -1e30, 1e17
#: Entries above 0 that single precision can carry: those that meet such a stand-in tell, reciprocals are numbers.
FLOAT32 = 1e-12, 1e12
# Share of the middle of the domain in a point that must not be on the boundary.
_INSIDE = 1e-3
#: Relative error a mean of many equal values may have.
ROUNDING = 1e-13
# The smallest mean that is not zero, with a little room.
_TINY = 1e-307
# Entries of a temporary.
_PIECE = 32_000


def i_divergence(x: Array, mean: Array) -> Array:
    """x log(x / mu) - x + mu, entry by entry; never negative, +inf where mu = 0 < x.

    The plain formula is wrong by eps x, and negative, where mu is close to x: there it is
    x (e - log(1 + e)) with e = (mu - x) / x.
    """
    value = np.asarray(kl_div(x, mean))
    odd = np.isinf(value) & (mean > 0)  # x / mu has left the range of floats, its logarithm has not
    if odd.any():
        part, whole = np.broadcast_to(x, value.shape)[odd], np.broadcast_to(mean, value.shape)[odd]
        value[odd] = part * (np.log(part) - np.log(whole)) - part + whole
    gap = mean - x
    near = np.abs(gap) < 0.1 * x
    scale = np.broadcast_to(x, value.shape)[near]
    excess = np.broadcast_to(gap, value.shape)[near] / scale
    value[near] = scale * np.maximum(excess - np.log1p(excess), 0.0)
    return value


def positive(owner: str, name: str, value: float) -> float:
    """The value, or an error if it is not a positive number."""
    if not (isinstance(value, Real) and 0 < value < np.inf):
        raise ValueError(f"{owner} needs a positive number {name}, got {value!r}.")
    return value


@dataclass(frozen=True)
class Affine:
    """Costs as a product: ``cost(x, k) = base(x) + offset[k] - <x, coef[k]>``."""

    coef: Array  # (K, p) natural parameters, less those of the anchor
    offset: Array  # (K,) psi, less that of the anchor
    size: float  # magnitude of the numbers that costs are differences of: what their rounding scales with

    @cached_property
    def reach(self) -> Array:
        """Largest 2-norm and largest entry of the coefficients: with the row's, they bound every product."""
        size = np.abs(self.coef)
        largest = size.max(initial=0.0)
        if not largest <= -MINUS_INF / 2:  # stand-ins for infinity: a row that meets one is far beyond any bound
            size[size > -MINUS_INF / 2] = 0.0
            largest = size.max(initial=0.0)
        return np.array([np.sqrt(np.einsum("kj,kj->k", size, size).max(initial=0.0)), largest])

    def cast(self, dtype: Any) -> tuple[Array, Array]:
        """Coefficients and offsets in another precision; made once."""
        key = np.dtype(dtype)
        if key not in self._forms:
            with np.errstate(over="ignore"):  # what leaves the range decides nothing
                self._forms[key] = np.ascontiguousarray(self._coef(key), dtype), self.offset.astype(dtype)
        return self._forms[key]

    def transposed(self, dtype: Any, multiple: int) -> tuple[Array, Array]:
        """Coefficients with columns outside, (p, K), and offsets; centres padded with ones that are never nearest."""
        key = (np.dtype(dtype), multiple)
        if key not in self._forms:
            (K, p), spare = self.coef.shape, -self.coef.shape[0] % multiple
            coef = np.zeros((p, K + spare), dtype)
            with np.errstate(over="ignore"):
                coef[:, :K] = self._coef(key[0]).T
                self._forms[key] = coef, np.r_[self.offset, np.full(spare, np.inf)].astype(dtype)
        return self._forms[key]

    def _coef(self, dtype: Any) -> Array:
        """Coefficients whose stand-ins for log 0 are numbers in this precision, too."""
        return np.maximum(self.coef, _MINUS_INF_FLOAT32) if dtype == np.float32 else self.coef

    @cached_property
    def _forms(self) -> dict[Any, tuple[Array, Array]]:
        return {}

    def some(self, which: slice | Array) -> "Affine":
        """A few of the centres."""
        return Affine(self.coef[which], self.offset[which], self.size)


class Ends(NamedTuple):
    """Columns in which centres lie on an end of the domain: a row has the same value there, or it is excluded."""

    theta: Array  # (K, p) natural parameters, 0 in these columns, to whose divergence they add nothing
    psi: Array  # (K,) psi without these columns
    coef: Array  # (K, p) offset - <x, coef> > 0 for rows that a centre excludes, and for no others
    offset: Array  # (K,)


class Family(ABC):
    r"""A Bregman divergence :math:`D_\phi`, written for rows: functions reduce the last axis.

    A family of your own defines ``phi``, ``psi``, ``natural`` and ``mean``, and sets the class attributes
    that differ from the defaults below. If its ``phi`` is a sum over columns, derive from
    :class:`Separable` and define ``terms`` as well: sparse input then works, and divergences are exact
    where the difference of large ``phi`` values would lose digits.
    """

    name: ClassVar[str] = ""
    #: Values a row may hold: ``lower <= x <= upper`` (``lower < x`` if ``lower_open``).
    lower: float = -np.inf
    upper: float = np.inf
    lower_open: ClassVar[bool] = False
    #: Entries other than 0 that can be computed with.
    smallest: ClassVar[float] = 0.0
    largest: ClassVar[float] = np.inf
    #: What to do about a value outside, the end of the error message.
    advice: ClassVar[str] = ""
    #: How rows are scaled before anything else: None, "sum" (histograms) or "norm" (unit vectors).
    normalise: ClassVar[str | None] = None
    #: True if D(x + c, mu + c) = D(x, mu): rows are then centred, which keeps digits far from the origin.
    translates: ClassVar[bool] = False
    #: c if D(x, mu) is c times the squared distance, which is then computed as such; None for everything else.
    euclidean_factor: float | None = None
    #: False where float32 products cannot carry the natural parameters.
    float32: ClassVar[bool] = True
    #: False where the centre is not the mean, so that no prior can be mixed in.
    smoothable: ClassVar[bool] = True
    #: True if observations are counts, so that projections of them live on a lattice.
    counts: ClassVar[bool] = False
    #: True if phi(x) is the sum of x log x, up to what is linear in x: zeros of a row need not be looked at to move it.
    entropic: ClassVar[bool] = False

    @property
    def excludes(self) -> bool:
        """True if centres on the lower end of the domain exclude rows that are above it."""
        return self.lower > -np.inf and not self.lower_open

    @abstractmethod
    def phi(self, stats: Array) -> Array:
        """Convex generator of the rows, (n,)."""

    @abstractmethod
    def psi(self, theta: Array) -> Array:
        """Conjugate of phi, (K,)."""

    @abstractmethod
    def natural(self, mean: Array) -> Array:
        """Gradient of phi at the means, (K, p); finite also on the boundary (see MINUS_INF)."""

    @abstractmethod
    def mean(self, theta: Array) -> Array:
        """Gradient of psi, the inverse of natural, (K, p)."""

    def psi_at(self, mean: Array, theta: Array) -> Array:
        """psi of the natural parameters of means, (K,); for families where the means give it more easily."""
        return self.psi(theta)

    def magnitude(self, mean: Array, theta: Array, psi: Array) -> Array:
        """Size (K,) of the numbers that costs of rows near these means are differences of: what their rounding scales
        with. psi alone may be 0 where these are not."""
        return np.abs(psi) + (np.abs(mean) * np.abs(theta)).sum(axis=-1)

    def divergence(self, stats: Array, mean: Array) -> Array:
        """D(stats, mean), broadcasting over leading axes; the decisive formula, in float64."""
        theta = self.natural(mean)
        gap = self.phi(stats) - self.phi(mean) - ((stats - mean) * theta).sum(axis=-1)
        return self.divergence_at_infinity(np.maximum(gap, 0.0))

    def by_column(self, stats: Array, mean: Array) -> Array:
        """How much each column has to do with D(stats, mean), (..., p), never negative. Where D is no sum over columns:
        the sizes of the terms of <stats - mean, theta(stats) - theta(mean)>, which is D and its mirror image."""
        return np.abs((stats - mean) * (self.natural(stats) - self.natural(mean)))

    def ends(self, mean: Array) -> Ends | None:
        """How to tell which rows centres on an end of the domain exclude, where natural parameters cannot stand for
        infinity on both ends in one product; None if there are no such centres, or one product tells."""
        return None

    def zero_ends(self, mean: Array) -> Ends | None:
        """The same for rows with entries so small that no stand-in for infinity tells that a zero excludes them."""
        return None

    def divergence_at_infinity(self, cost: Array, dtype: Any = np.float64) -> Array:
        """Costs of a product, formed in this precision, with the stand-ins for infinity read as +inf."""
        if not (self.excludes or self.upper < np.inf):
            return cost
        return np.where(cost > (_LARGEST_FLOAT32 if dtype == np.float32 else LARGEST), np.inf, cost)

    def centre(self, total: Array, mass: Array) -> Array:
        """Best centres of clusters with weighted row sums ``total`` (K, p) and weights ``mass`` (K,)."""
        mean = self.within(total / mass[..., None])
        if self.excludes:  # a light row that is above the end of the domain must not vanish from the mean
            lost = (mean == self.lower) & (total > mass[..., None] * self.lower)
            if lost.any():
                mean[lost] = self.lower + _TINY
        return mean

    def within(self, mean: Array) -> Array:
        """Means (of any shape) with the rounding undone that pushed them across the ends of the domain."""
        if self.lower > -np.inf:
            mean = np.maximum(mean, self.lower)
        if self.upper < np.inf:
            # Rounding may push a mean of boundary values just inside, where +inf would turn finite.
            mean = np.where(mean >= self.upper * (1 - ROUNDING), self.upper, mean)
        return mean

    def pull(self, square: Array, mass: Array) -> Array:
        """Weight with which a cluster's own centre c stands for its rows:
        sum w D(x, m) - sum w D(x, c) = pull * D(c, m) for every m; ``square`` is the squared length of their sum."""
        return mass

    def inside(self, mean: Array) -> Array:
        """A point next to a mean but off the boundary, from which every row is at a finite divergence."""
        if self.lower == -np.inf and self.upper == np.inf:
            return mean
        middle = (self.lower + self.upper) / 2 if np.isfinite(self.lower + self.upper) else mean.mean()
        return (1 - _INSIDE) * mean + _INSIDE * (middle if middle != self.lower else self.lower + 1.0)

    def join_cost(self, total_a: Array, mass_a: Array, total_b: Array, mass_b: Array) -> Array:
        """Rise of the summed divergence when clusters a and b (rows of equal number) become one.

        W_a D(mu_a, mu_ab) + W_b D(mu_b, mu_ab): terms that are all >= 0, so no digits are lost.
        """
        mean_a, mean_b = self.centre(total_a, mass_a), self.centre(total_b, mass_b)
        joint = self.centre(total_a + total_b, mass_a + mass_b)
        return mass_a * self.divergence(mean_a, joint) + mass_b * self.divergence(mean_b, joint)

    def adapt(self, summary: "Summary") -> "Family":
        """The family with hyperparameters that were left open taken from the data; most have none."""
        return self

    def lattice_step(self, dtheta: Array, mean: Array) -> Array:
        """Typical effect of one count on the projection <x, dtheta>, (n,); 0 for continuous data."""
        if not self.counts:
            return np.zeros(dtheta.shape[:-1])
        square = np.maximum((mean * dtheta**2).sum(axis=-1), 1e-300)
        return (mean * np.abs(dtheta) ** 3).sum(axis=-1) / square

    def __repr__(self) -> str:
        settings = [f"{key}={getattr(self, key)!r}" for key in signature(type(self)).parameters]
        return f"{type(self).__name__}({', '.join(settings)})"


class Separable(Family):
    """A family whose divergence is a sum over columns; works on sparse rows without densifying."""

    @abstractmethod
    def terms(self, stats: Array, mean: Array) -> Array:
        """Divergence column by column, broadcasting; exact on the boundary (+inf included)."""

    def by_column(self, stats: Array, mean: Array) -> Array:
        """The terms of the sum."""
        return self.terms(stats, mean)

    def divergence(self, stats: Array, mean: Array) -> Array:
        """Sum of the terms over the last axis, a piece at a time: large temporaries take twice as long."""
        shape = np.broadcast_shapes(stats.shape, mean.shape)
        step = max(1, _PIECE // max(1, prod(shape[1:])))
        if len(shape) < 2 or step >= shape[0]:
            return self.terms(stats, mean).sum(axis=-1)
        stats, mean = np.broadcast_to(stats, shape), np.broadcast_to(mean, shape)
        pieces = (slice(start, start + step) for start in range(0, shape[0], step))
        return np.concatenate([self.terms(stats[piece], mean[piece]).sum(axis=-1) for piece in pieces])


class Summary(NamedTuple):
    """What a family may learn of the data before a fit (see :meth:`Family.adapt`)."""

    mean: Array  # (p,) weighted mean of the rows
    largest: float  # largest entry
    covariance: Any  # callable () -> (p, p) weighted covariance, evaluated only if asked for
