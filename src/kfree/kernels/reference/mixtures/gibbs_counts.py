"""Partitions of counts, bits and positive numbers: marginals from sums of rows."""

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from kfree.kernels.reference.mixtures.gibbs import draw


def _dense(table, p):
    values, columns, starts = table
    return sp.csr_matrix((values, columns, starts), shape=(len(starts) - 1, p)).toarray()


def _rises(count, more):
    """Sums over columns of log gamma(count + more) - log gamma(count)."""
    return (gammaln(count + more) - gammaln(count)).sum(axis=1)


def gibbs_multinomial(table, weight, counts, turns, log_alpha, labels, fresh):
    """Counts given their total, a Dirichlet prior."""
    whole = counts.sum()

    def marginal(mass, sums):
        return _rises(counts, sums) - (gammaln(whole + sums.sum(axis=1)) - gammaln(whole))

    return draw(_dense(table, counts.size), weight, marginal, turns, log_alpha, labels, fresh)


def gibbs_poisson(table, weight, shape, rate, turns, log_alpha, labels, fresh):
    """Independent counts, gamma priors with one rate."""

    def marginal(mass, sums):
        prior = shape.sum()
        return _rises(shape, sums) + prior * np.log(rate) - (prior + sums.sum(axis=1)) * np.log(rate + mass)

    return draw(_dense(table, shape.size), weight, marginal, turns, log_alpha, labels, fresh)


def gibbs_bernoulli(table, weight, ones, zeros, turns, log_alpha, labels, fresh):
    """Zeros and ones, beta priors."""
    p = ones.size
    X = _dense(table, p)

    def marginal(mass, sums):
        whole = _rises(ones + zeros, np.broadcast_to(mass[:, None], (mass.size, p)))
        return _rises(ones, sums[:, :p]) + _rises(zeros, sums[:, p:]) - whole

    return draw(np.hstack([X, 1.0 - X]), weight, marginal, turns, log_alpha, labels, fresh)


def gibbs_positive(X, weight, rate, count, shape, turns, log_alpha, labels, fresh):
    """Gamma rows of known shape, a prior that counts as so many rows."""

    def marginal(mass, sums):
        power = shape * count + 1
        after = power + shape * mass
        value = X.shape[1] * (gammaln(after) - gammaln(power))
        return value + power * np.log(rate).sum() - after * np.log(rate + sums).sum(axis=1)

    return draw(X, weight, marginal, turns, log_alpha, labels, fresh)
