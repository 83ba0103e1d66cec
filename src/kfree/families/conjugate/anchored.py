"""Poisson and multinomial rows of large counts: log-likelihoods beside those under a reference.

``log_base`` is the log-likelihood of a row under the reference and forms hold what differs from it, so that no digits
are lost to logs of factorials. The same families otherwise, to rounding.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfree.families.base import Array
from kfree.families.components import Linear
from kfree.families.conjugate.discrete import Dirichlet, Gammas, Multinomial, PoissonCounts, totals
from kfree.families.conjugate.stirling import (
    count_divergence,
    digamma_less_log,
    gamma_rise,
    log_negative_binomial,
    log_poisson,
    log_ratio,
)

# Rates for totals below this would overflow; any rate will do for them.
_LEAST_TOTAL = 1e-200


class AnchoredPoisson(PoissonCounts):
    """Independent counts beside rates near the mean of all rows."""

    def __init__(self, mean: Array):
        self.rates = mean + 0.5

    def form(self, params: Gammas) -> Linear:
        """Expected log-rates and rates, less those of the reference; both of the same rounded mean."""
        mean = self.means(params)
        return Linear(log_ratio(mean, self.rates) + digamma_less_log(params.shape), (mean - self.rates).sum(axis=1))

    def divergence(self, params: Gammas, prior: Gammas) -> Array:
        """KL of gamma distributions."""
        apart = prior.rate[:, None] * count_divergence(self.means(prior), self.means(params))
        return (apart + gamma_rise(params.shape, prior.shape)).sum(axis=1)

    def log_base(self, X: Any) -> Array:
        """Log-likelihood under the reference."""
        zeros = np.full(X.shape[0], -self.rates.sum())
        return _sum_over_columns(X, lambda x, i, j: log_poisson(x, self.rates[j]), zeros)

    def log_predictive(self, params: Gammas, X: Any) -> Array:
        """Negative binomials."""
        value = np.empty((X.shape[0], params.rate.size))
        for k, (a, rate) in enumerate(zip(*params)):
            zeros = np.full(X.shape[0], -a.sum() * np.log1p(1 / rate))
            value[:, k] = _sum_over_columns(X, lambda x, i, j: log_negative_binomial(x, a[j], rate), zeros)  # noqa: B023
        return value


class AnchoredMultinomial(Multinomial):
    """Counts given their total beside probabilities near those of all rows."""

    def __init__(self, mean: Array):
        self.shares = (mean + 0.5) / (mean + 0.5).sum()

    def form(self, params: Dirichlet) -> Linear:
        """Expected log-probabilities less those of the reference."""
        mean, whole = self.means(params), params.counts.sum(axis=1, keepdims=True)
        coef = log_ratio(mean, self.shares) + digamma_less_log(params.counts) - digamma_less_log(whole)
        # rounded means do not quite sum to one, and counts of 1e15 would feel it
        return Linear(coef - (mean - self.shares).sum(axis=1, keepdims=True), np.zeros(mean.shape[0]))

    def divergence(self, params: Dirichlet, prior: Dirichlet) -> Array:
        """KL of Dirichlet distributions."""
        whole, whole0 = params.counts.sum(axis=1), prior.counts.sum(axis=1)
        apart = whole0 * count_divergence(self.means(prior), self.means(params)).sum(axis=1)
        return apart + gamma_rise(params.counts, prior.counts).sum(axis=1) - gamma_rise(whole, whole0)

    def log_base(self, X: Any) -> Array:
        """Log-likelihood under the reference: of Poisson counts, given their sum."""
        total = totals(X)
        found = _sum_over_columns(X, lambda x, i, j: log_poisson(x, total[i] * self.shares[j]), -total)
        return found - log_poisson(total, total)

    def log_predictive(self, params: Dirichlet, X: Any) -> Array:
        """Dirichlet-multinomial: negative binomials of one rate, given their sum."""
        total, value = totals(X), np.empty((X.shape[0], params.counts.shape[0]))
        for k, a in enumerate(params.counts):
            whole = a.sum()
            rate = whole / np.maximum(total, _LEAST_TOTAL)
            zeros = -whole * np.log1p(1 / rate)
            found = _sum_over_columns(X, lambda x, i, j: log_negative_binomial(x, a[j], rate[i]), zeros)  # noqa: B023
            value[:, k] = found - log_negative_binomial(total, whole, rate)
        return value


def _sum_over_columns(X: Any, value: Callable[[Array, Array, Array], Array], zeros: Array) -> Array:
    """Sum over columns j of ``value(x, i, j)`` for every row i; ``zeros`` are the sums of rows of zeros."""
    n, p = X.shape
    if not sp.issparse(X):
        return value(np.asarray(X, dtype=np.float64), np.arange(n)[:, None], np.arange(p)[None]).sum(axis=1)
    data, i, j = X.data.astype(np.float64), np.repeat(np.arange(n), np.diff(X.indptr)), X.indices
    present = np.bincount(i, weights=value(np.zeros_like(data), i, j), minlength=n)
    return np.bincount(i, weights=value(data, i, j), minlength=n) + (zeros - present)
