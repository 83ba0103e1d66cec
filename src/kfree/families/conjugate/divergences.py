"""Divergences of gamma, beta and Dirichlet distributions, which several families need."""

import numpy as np
from scipy.special import betaln, digamma, gammaln

from kfree.families.base import Array


def gamma_divergence(a: Array, b: Array, a0: Array, b0: Array) -> Array:
    """KL(Gamma(a, rate b) || Gamma(a0, rate b0)), entry by entry."""
    shape = (a - a0) * digamma(a) - gammaln(a) + gammaln(a0)
    return shape + a0 * (np.log(b) - np.log(b0)) + a * (b0 - b) / b


def beta_divergence(a: Array, b: Array, a0: Array, b0: Array) -> Array:
    """KL(Beta(a, b) || Beta(a0, b0)), entry by entry."""
    whole = digamma(a + b)
    return betaln(a0, b0) - betaln(a, b) + (a - a0) * (digamma(a) - whole) + (b - b0) * (digamma(b) - whole)


def dirichlet_divergence(g: Array, g0: Array) -> Array:
    """KL(Dirichlet(g_k) || Dirichlet(g0)) of rows, (K,)."""
    total = g.sum(axis=1)
    value = gammaln(total) - gammaln(g0.sum(axis=1)) - (gammaln(g) - gammaln(g0)).sum(axis=1)
    return value + ((g - g0) * (digamma(g) - digamma(total)[:, None])).sum(axis=1)
