"""Components whose parameters are points, not posteriors, and what a kernel makes of them.

A kernel k turns a distribution f into a function, its kernel mean mu[f](x) = E k(x, y), y ~ f. A family knows it in
closed form, the inner products of kernel means, and random features: columns phi with <phi(x), phi(y)> = k(x, y) on
average, in which a kernel mean is a row, too.
"""

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families.base import Array
from kfree.families.components import Components

# Bits that a float64 has, and those that are left of a frequency.
_BITS, _OF_FREQUENCY = 53, 24


class Kernel(NamedTuple):
    """A kernel; families take of it what theirs depends on."""

    widths: Array  # (B,) squared bandwidths: the kernel is the mean of one for each
    brevity: float = 0.0  # mean over rows of one over their total: how much the shares of a short row scatter
    log_unit: float = 0.0  # inner products are in units of exp(log_unit): with many columns they leave the range


class Spread(NamedTuple):
    """What candidates may depend on besides their own rows."""

    mean: Array  # (p,) of all rows
    covariance: Array  # (p, p) of all rows if the family is continuous, else (0, 0)
    floor: Array  # (p,) variances that no component is below, if the family is continuous


class Slopes(NamedTuple):
    """Derivatives of an objective by means and covariances, in the shape of these."""

    mean: Array  # (K, p)
    covariance: Array  # (K, p, p), (K, p) or (K,)


class PointFamily(Components):
    """A family of components with known parameters."""

    #: Divergence by which rows are clustered when candidates are made.
    divergence: ClassVar[str]
    #: Whether its kernel has a bandwidth.
    has_width: ClassVar[bool] = True
    #: Whether every column may have a unit of its own.
    column_units: ClassVar[bool] = False

    def seen(self, X: Any) -> Any:
        """Rows as the kernel sees them; sparse if X is."""
        return X

    @abstractmethod
    def estimate(self, X: Any, resp: Array, spread: Spread) -> Any:
        """Parameters of K components from the weights (n, K) that rows have in them."""

    @abstractmethod
    def draw(self, spread: Spread, count: int, rng: np.random.Generator) -> Any:
        """Parameters from a prior as wide as the rows; the first of many draws are those of few."""

    @abstractmethod
    def made_of(self, means: Array, covariances: Array | None) -> Any:
        """Parameters of components with these means, and covariances if the family has such."""

    def covariance_shape(self, K: int, columns: int) -> tuple[int, ...]:
        """Shape of the covariances of K components, () if the family has none."""
        return ()

    def least_rows(self, columns: int) -> float:
        """Weight above which a cluster says enough of a component."""
        return 1.0

    @abstractmethod
    def apart(self, X: Any, Y: Any) -> Array:
        """Squared distances of rows as the kernel sees them, (n, m)."""

    def paired(self, X: Any, Y: Any) -> Array:
        """Squared distances of each row of X from the row of Y in its place, (n,)."""
        gap = X - Y
        return np.asarray(gap.multiply(gap).sum(axis=1)).ravel() if sp.issparse(gap) else (gap * gap).sum(axis=1)

    @abstractmethod
    def between(self, kernel: Kernel, X: Any, Y: Any) -> Array:
        """The kernel between rows as it sees them, (n, m), not in units."""

    def own(self, X: Any) -> Array:
        """The kernel of rows with themselves, (n,)."""
        return np.ones(X.shape[0])

    @abstractmethod
    def embed(self, kernel: Kernel, params: Any, X: Any) -> Array:
        """Kernel means at rows as the kernel sees them, (n, K)."""

    @abstractmethod
    def inner(self, kernel: Kernel, one: Any, other: Any) -> Array:
        """Inner products of kernel means, (K, L)."""

    @abstractmethod
    def log_norms(self, kernel: Kernel, params: Any) -> Array:
        """Logs of the squared lengths of kernel means, (K,), not in units."""

    @abstractmethod
    def frequencies(self, kernel: Kernel, columns: int, count: int, rng: np.random.Generator) -> Array:
        """What ``count`` random features are made of, drawn once for all rows; ``few_bits`` of it."""

    @abstractmethod
    def row_features(self, frequencies: Array, X: Any) -> Array:
        """Random features of rows as the kernel sees them, (n, F): of each the same numbers whatever rows stand beside
        it. None is larger than one over the root of their count."""

    @abstractmethod
    def component_features(self, kernel: Kernel, frequencies: Array, params: Any) -> Array:
        """Expected random features of components, (K, F)."""


class MovableFamily(PointFamily):
    """A family whose components can be moved by gradients."""

    @abstractmethod
    def inner_slopes(self, kernel: Kernel, params: Any, p: Array) -> Slopes:
        """Derivatives of 1/2 p'Sp."""

    @abstractmethod
    def row_slopes(self, kernel: Kernel, params: Any, p: Array, X: Any, share: Array) -> Slopes:
        """Derivatives of p'R for rows with these shares of all."""

    @abstractmethod
    def feature_slopes(self, frequencies: Array, params: Any, p: Array, excess: Array) -> Slopes:
        """Derivatives of 1/2 |z|^2 for an excess z of the features of components over those of rows."""


def log_mean_exp(logs: list[Array], log_unit: float) -> Array:
    """Mean of exponentials over the items of a list, in units."""
    total = np.exp(logs[0] - log_unit)
    for other in logs[1:]:
        total += np.exp(other - log_unit)
    return total / len(logs)


def few_bits(frequencies: Array) -> Array:
    """Frequencies (p, M) with so few digits that their products with rows that have few, too, are exact."""
    step = np.ldexp(1.0, np.frexp(np.abs(frequencies).max(axis=0))[1] - _OF_FREQUENCY)
    return np.rint(frequencies / step) * step


def products(X: Array, frequencies: Array) -> Array:
    """X @ frequencies, of each row the same numbers whatever rows stand beside it.

    How BLAS adds hangs on the number of rows. So rows are cut in two parts of few digits, whose products with
    frequencies of ``few_bits`` are exact in any order; what is cut off is far below the noise of random features.
    """
    p = X.shape[1]
    bits = _BITS - _OF_FREQUENCY - int(np.ceil(np.log2(max(p, 1)))) - 1
    least = np.finfo(float).minexp + 2 * bits
    step = np.ldexp(1.0, np.maximum(np.frexp(np.abs(X).max(axis=1, initial=0.0))[1] - bits, least))[:, None]
    coarse = np.rint(X / step) * step
    step *= 2.0**-bits
    fine = np.rint((X - coarse) / step) * step
    total = coarse @ frequencies
    total += fine @ frequencies
    return total


def waves(phase: Array) -> Array:
    """Cosines, then sines, of phases (n, M), over the root of M; single precision is below the noise of features. The
    phases are used up: to ask for more room takes longer than to fill it."""
    n, M = phase.shape
    angle, out = np.empty((n, M), np.float32), np.empty((n, 2 * M), np.float32)
    phase *= 0.5 / np.pi
    # whole turns go in double precision; of rows that are very far the phase is noise, and any will do
    np.subtract(phase, np.rint(phase), out=angle, casting="same_kind")
    angle *= np.float32(2 * np.pi)
    np.cos(angle, out=out[:, :M])
    np.sin(angle, out=out[:, M:])
    out *= np.float32(1 / np.sqrt(M))
    return out
