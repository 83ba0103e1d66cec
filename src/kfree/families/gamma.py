"""Itakura-Saito: positive data with multiplicative noise (gamma, exponential), blind to scale."""

import numpy as np

from kfree.families.base import Array, Separable, positive


class ItakuraSaito(Separable):
    r"""Gamma family with fixed shape k (k = 1: exponential).

    .. math:: \phi(x) = \sum_j -k \log x_j + k \log k - k, \qquad D = \sum_j k (x_j / \mu_j - \log (x_j / \mu_j) - 1)

    Scaling a column changes nothing. Zeros have infinite phi and are rejected.
    """

    name = "itakura_saito"
    lower = 0.0
    lower_open = True
    smallest, largest = 1e-150, 1e150  # what a row is to any centre is then a number
    advice = "Add a small positive constant, drop those rows, or use divergence='poisson'."

    def __init__(self, shape: float = 1.0):
        self.shape = positive("ItakuraSaito", "shape", shape)

    def phi(self, stats: Array) -> Array:
        """Sum of -k log x, up to a constant."""
        k = self.shape
        return (k * np.log(k) - k - k * np.log(stats)).sum(axis=-1)

    def psi(self, theta: Array) -> Array:
        """Sum of -k log(-theta)."""
        return -self.shape * np.log(-theta).sum(axis=-1)

    def natural(self, mean: Array) -> Array:
        """-k / mu."""
        return -self.shape / mean

    def mean(self, theta: Array) -> Array:
        """-k / theta."""
        return -self.shape / theta

    def within(self, mean: Array) -> Array:
        """Means that rounding has not pushed out of the domain."""
        return np.maximum(mean, self.smallest)

    def terms(self, stats: Array, mean: Array) -> Array:
        """k (r - log r - 1) of the ratio r, without cancellation near r = 1 or overflow of the log near 0."""
        excess = (stats - mean) / mean
        with np.errstate(divide="ignore", over="ignore"):  # a zero, as sparse rows imply, is infinitely far
            far = np.log(stats / mean)
        log_ratio = np.where(np.abs(excess) < 0.5, np.log1p(np.maximum(excess, -0.5)), far)
        return self.shape * np.maximum(excess - log_ratio, 0.0)
