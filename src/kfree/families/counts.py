"""Counts and histograms: KL, Poisson and negative binomial, whose natural parameter is a logarithm."""

import numpy as np
from scipy.special import logsumexp, softmax, xlogy

from kfree.families.base import LARGEST, MINUS_INF, Array, Ends, Separable, i_divergence, positive

_ADVICE = "Clip or shift the data, or use divergence='sqeuclidean'."


def _log(values: Array) -> Array:
    """Logarithm with a finite stand-in for log 0."""
    with np.errstate(divide="ignore"):
        logs = np.log(values)
    return np.maximum(logs, MINUS_INF, out=logs)


def _excess(e: Array, log: Array) -> Array:
    """e - log(1 + e), which is never negative; ``log`` is that logarithm, to be used where e is not near 0."""
    return np.maximum(e - np.where(np.abs(e) < 0.5, np.log1p(np.maximum(e, -0.5)), log), 0.0)


class _Logarithmic(Separable):
    """A family whose natural parameter is a logarithm, with MINUS_INF for that of 0."""

    lower = 0.0
    largest = LARGEST
    counts = True
    advice = _ADVICE

    def zero_ends(self, mean: Array) -> Ends | None:
        """Rows that are not 0 where a centre is are excluded, however small they are."""
        zero = mean <= 0
        if not zero.any():
            return None
        theta = self.natural(mean)
        return Ends(np.where(zero, 0.0, theta), self.psi_at(mean, theta), -1.0 * zero, np.zeros(len(mean)))


class Poisson(_Logarithmic):
    r"""Poisson counts, independent over columns; the divergence is the generalised KL divergence.

    .. math:: \phi(x) = \sum_j x_j \log x_j - x_j, \qquad D = \sum_j x_j \log (x_j / \mu_j) - x_j + \mu_j
    """

    name = "poisson"
    entropic = True

    def phi(self, stats: Array) -> Array:
        """Sum of x log x - x."""
        return (xlogy(stats, stats) - stats).sum(axis=-1)

    def psi(self, theta: Array) -> Array:
        """Sum of exponentials."""
        return np.exp(theta).sum(axis=-1)

    def natural(self, mean: Array) -> Array:
        """Logarithm of the mean."""
        return _log(mean)

    def mean(self, theta: Array) -> Array:
        """Exponential of theta."""
        return np.exp(theta)

    def terms(self, stats: Array, mean: Array) -> Array:
        """x log(x / mu) - x + mu; +inf where mu = 0 < x."""
        return i_divergence(stats, mean)


class KL(_Logarithmic):
    r"""Kullback-Leibler divergence of histograms: rows are divided by their sums.

    .. math:: \phi(x) = \sum_j x_j \log x_j, \qquad D = \sum_j x_j \log (x_j / \mu_j)

    The small-variance limit of a multinomial mixture (Jiang, Kulis & Jordan 2012) and, with unweighted rows,
    the DPM-LSA of Nguyen et al.
    """

    name = "kl"
    largest = np.inf
    normalise = "sum"
    entropic = True

    def phi(self, stats: Array) -> Array:
        """Negative entropy."""
        return xlogy(stats, stats).sum(axis=-1)

    def psi(self, theta: Array) -> Array:
        """Log of the sum of exponentials, 0 on the simplex."""
        return logsumexp(theta, axis=-1)

    def psi_at(self, mean: Array, theta: Array) -> Array:
        """Log of the sum: 0 but for rounding."""
        return np.log(mean.sum(axis=-1))

    def magnitude(self, mean: Array, theta: Array, psi: Array) -> Array:
        """Entropies, and the sum that psi is the logarithm of."""
        return super().magnitude(mean, theta, psi) + mean.sum(axis=-1)

    def natural(self, mean: Array) -> Array:
        """Logarithm of the mean."""
        return _log(mean)

    def mean(self, theta: Array) -> Array:
        """Softmax of theta."""
        return softmax(theta, axis=-1)

    def terms(self, stats: Array, mean: Array) -> Array:
        """x log(x / mu) - x + mu: the two last sums cancel on the simplex and keep every term >= 0."""
        return i_divergence(stats, mean)


class NegativeBinomial(_Logarithmic):
    r"""Negative binomial counts with r fixed (r = 1: geometric from 0); overdispersed Poisson.

    .. math:: \phi(x) = \sum_j x_j \log x_j - (x_j + r) \log (x_j + r) + r \log r
    """

    name = "negative_binomial"

    def __init__(self, r: float = 1.0):
        self.r = positive("NegativeBinomial", "r", r)

    def phi(self, stats: Array) -> Array:
        """Sum of x log x - (x + r) log (x + r) + r log r."""
        r = self.r
        return (xlogy(stats, stats) - xlogy(stats + r, stats + r) + r * np.log(r)).sum(axis=-1)

    def psi(self, theta: Array) -> Array:
        """Sum of -r log(1 - exp theta)."""
        return -self.r * np.log(-np.expm1(theta)).sum(axis=-1)

    def psi_at(self, mean: Array, theta: Array) -> Array:
        """Sum of r log(1 + mu / r), which keeps its digits for small means."""
        return self.r * np.log1p(mean / self.r).sum(axis=-1)

    def natural(self, mean: Array) -> Array:
        """log(mu / (mu + r)); at mu = 0 the stand-in for log 0."""
        return np.where(mean > 0, -np.log1p(self.r / np.maximum(mean, 1e-300 * (1 + self.r))), MINUS_INF)

    def mean(self, theta: Array) -> Array:
        """r exp(theta) / (1 - exp(theta))."""
        return self.r * np.exp(theta) / -np.expm1(theta)

    def terms(self, stats: Array, mean: Array) -> Array:
        """x log(x / mu) - (x + r) log((x + r) / (mu + r)), without cancellation.

        With the shares s = x / (x + r) and m = mu / (mu + r) it is x + r times the divergence of (s, 1 - s) from
        (m, 1 - m), hence x g(m / s - 1) + r g((1 - m) / (1 - s) - 1) with g(e) = e - log(1 + e) >= 0.
        """
        r, gap = self.r, stats - mean
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # zeros, and what is next to them
            log_rest = np.log(stats + r) - np.log(mean + r)
            log_own = np.log(mean) - np.log(stats) + log_rest
            rest = r * _excess(gap / (mean + r), log_rest)
            own = stats * _excess(-r * gap / (stats * (mean + r)), log_own)
        return rest + np.where(stats > 0, own, r * mean / (mean + r))
