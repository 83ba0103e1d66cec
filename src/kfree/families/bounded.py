"""Shares and numbers of successes: Bernoulli and binomial, bounded on both sides."""

from typing import Any

import numpy as np
from scipy.special import expit, xlogy

from kfree.families.base import LARGEST, ROUNDING, Array, Ends, Family, Separable, Summary, i_divergence, positive

# Stands for logit 0 and logit 1. Both sides of the domain meet in one product, where the offset holds as many
# of these as the centre has ones and the row takes them back: large enough to exclude, small enough that their
# difference keeps a divergence to 1e-6. It only finds the nearest centre; what is close is measured again, and who is
# excluded is told without it (see ``ends``).
_LOGIT_INF = float(2**27)
# How much more the least share above 0 counts where there should be none than the rounding of all that should be n: as
# much as a sum of shares over ten million columns can hold.
_ABOVE_ZERO = 2.0**1000


class Binomial(Separable):
    r"""Successes of n trials, independent over columns.

    .. math:: \phi(x) = \sum_j x_j \log (x_j / n) + (n - x_j) \log ((n - x_j) / n)

    Without ``n`` the largest entry of the data is taken when a fit starts.
    """

    name = "binomial"
    lower = 0.0
    float32 = False  # 2**27 has no digits left in single precision
    largest = LARGEST
    counts = True
    advice = "Rescale the data, pass Binomial(n=...), or use divergence='poisson'."

    def __init__(self, n: float | None = None):
        self.n = n
        if n is not None:
            self.upper = float(positive(type(self).__name__, "n", n))
            if self.upper > LARGEST:
                raise ValueError(f"Binomial can compute with n up to {LARGEST:g}, got {n!r}.")

    def adapt(self, summary: Summary) -> Family:
        """Take the largest entry for n where none was given."""
        return self if self.n is not None else Binomial(max(summary.largest, 1.0))

    @property
    def _trials(self) -> float:
        if self.n is None:
            raise ValueError("Binomial needs the number of trials before it can measure; pass Binomial(n=...).")
        return float(self.n)

    def _failures(self, stats: Array) -> Array:
        """n - x, and 0 where the centre of x alone would be n (see ``centre``): nobody excludes himself."""
        return np.where(stats >= self._trials * (1 - ROUNDING), 0.0, self._trials - stats)

    def phi(self, stats: Array) -> Array:
        """Negative entropy of the shares, times n."""
        n = self._trials
        rest = self._failures(stats)
        return (xlogy(stats, stats / n) + xlogy(rest, rest / n)).sum(axis=-1)

    def psi(self, theta: Array) -> Array:
        """Sum of n log(1 + exp theta)."""
        return self._trials * np.logaddexp(0.0, theta).sum(axis=-1)

    def natural(self, mean: Array) -> Array:
        """Logit of the share."""
        n = self._trials
        with np.errstate(over="ignore"):  # at n, where it is not used
            inside = np.clip(mean, 1e-300, None) / np.clip(n - mean, 1e-300, None)
        # a share below 1e-300 is excluded like 0 by everything that is not next to it
        logit = np.log(np.maximum(inside, 1e-307))
        return np.where(mean <= 0, -_LOGIT_INF, np.where(mean >= n, _LOGIT_INF, logit))

    def mean(self, theta: Array) -> Array:
        """n times the logistic function."""
        return self._trials * expit(theta)

    def terms(self, stats: Array, mean: Array) -> Array:
        """x log(x / mu) + (n - x) log((n - x) / (n - mu)), both halves in their non-negative form."""
        n = self._trials
        return i_divergence(stats, mean) + i_divergence(self._failures(stats), n - mean)

    def ends(self, mean: Array) -> Ends | None:
        """What the columns in which centres lie at 0 or at n are to rows."""
        n = self._trials
        low, high = mean <= 0, mean >= n
        if not (low.any() or high.any()):
            return None
        inside, count = ~(low | high), high.sum(axis=-1)
        theta = np.where(inside, self.natural(mean), 0.0)
        psi = n * np.where(inside, np.logaddexp(0.0, theta), 0.0).sum(axis=-1)
        return Ends(theta, psi, high - _ABOVE_ZERO / n * low, n * count * (1 - 2 * ROUNDING))

    def divergence_at_infinity(self, cost: Array, dtype: Any = np.float64) -> Array:
        """Nothing is to be read as +inf: who is excluded is told by ``ends``."""
        return cost


class Bernoulli(Binomial):
    """Binary or fractional data in [0, 1]: binomial with one trial."""

    name = "bernoulli"
    advice = "Binarise or rescale the data to [0, 1], or use divergence='sqeuclidean'."

    def __init__(self):
        super().__init__(n=1)

    def lattice_step(self, dtheta: Array, mean: Array) -> Array:
        """One flip, but at least twice the spread of the projection: a region between two patterns of a few bits
        may hold no third one, and would look like a valley."""
        spread = np.sqrt((mean * dtheta**2).sum(axis=-1))
        return np.maximum(super().lattice_step(dtheta, mean), 2 * spread)
