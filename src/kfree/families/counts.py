"""Counts and histograms: KL, Poisson and negative binomial, whose natural parameter is a logarithm."""

import numpy as np
from scipy.special import logsumexp, softmax, xlogy

from kfree.families.base import MINUS_INF, Array, Separable, i_divergence, positive

_ADVICE = "Clip or shift the data, or use divergence='sqeuclidean'."


def _log(values: Array) -> Array:
    """Logarithm with a finite stand-in for log 0."""
    with np.errstate(divide="ignore"):
        logs = np.log(values)
    return np.maximum(logs, MINUS_INF, out=logs)


class Poisson(Separable):
    r"""Poisson counts, independent over columns; the divergence is the generalised KL divergence.

    .. math:: \phi(x) = \sum_j x_j \log x_j - x_j, \qquad D = \sum_j x_j \log (x_j / \mu_j) - x_j + \mu_j
    """

    name = "poisson"
    lower = 0.0
    counts = True
    entropic = True
    advice = _ADVICE

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


class KL(Separable):
    r"""Kullback-Leibler divergence of histograms: rows are divided by their sums.

    .. math:: \phi(x) = \sum_j x_j \log x_j, \qquad D = \sum_j x_j \log (x_j / \mu_j)

    The small-variance limit of a multinomial mixture (Jiang, Kulis & Jordan 2012) and, with unweighted rows,
    the DPM-LSA of Nguyen et al.
    """

    name = "kl"
    lower = 0.0
    normalise = "sum"
    counts = True
    entropic = True
    advice = _ADVICE

    def phi(self, stats: Array) -> Array:
        """Negative entropy."""
        return xlogy(stats, stats).sum(axis=-1)

    def psi(self, theta: Array) -> Array:
        """Log of the sum of exponentials, 0 on the simplex."""
        return logsumexp(theta, axis=-1)

    def psi_at(self, mean: Array, theta: Array) -> Array:
        """Log of the sum: 0 but for rounding."""
        return np.log(mean.sum(axis=-1))

    def natural(self, mean: Array) -> Array:
        """Logarithm of the mean."""
        return _log(mean)

    def mean(self, theta: Array) -> Array:
        """Softmax of theta."""
        return softmax(theta, axis=-1)

    def terms(self, stats: Array, mean: Array) -> Array:
        """x log(x / mu) - x + mu: the two last sums cancel on the simplex and keep every term >= 0."""
        return i_divergence(stats, mean)


class NegativeBinomial(Separable):
    r"""Negative binomial counts with r fixed (r = 1: geometric from 0); overdispersed Poisson.

    .. math:: \phi(x) = \sum_j x_j \log x_j - (x_j + r) \log (x_j + r) + r \log r
    """

    name = "negative_binomial"
    lower = 0.0
    counts = True
    advice = _ADVICE

    def __init__(self, r: float = 1.0):
        self.r = positive("NegativeBinomial", "r", r)

    def phi(self, stats: Array) -> Array:
        """Sum of x log x - (x + r) log (x + r) + r log r."""
        r = self.r
        return (xlogy(stats, stats) - xlogy(stats + r, stats + r) + r * np.log(r)).sum(axis=-1)

    def psi(self, theta: Array) -> Array:
        """Sum of -r log(1 - exp theta)."""
        return -self.r * np.log(-np.expm1(theta)).sum(axis=-1)

    def natural(self, mean: Array) -> Array:
        """log(mu / (mu + r)); at mu = 0 the stand-in for log 0."""
        return np.where(mean > 0, -np.log1p(self.r / np.maximum(mean, 1e-300 * (1 + self.r))), MINUS_INF)

    def mean(self, theta: Array) -> Array:
        """r exp(theta) / (1 - exp(theta))."""
        return self.r * np.exp(theta) / -np.expm1(theta)

    def terms(self, stats: Array, mean: Array) -> Array:
        """x log(x / mu) - (x + r) log((x + r) / (mu + r)), clipped at zero against rounding."""
        return np.maximum(i_divergence(stats, mean) - i_divergence(stats + self.r, mean + self.r), 0.0)
