"""All allocations of a few rows, and their exact posterior."""

import itertools
from collections import Counter

import numpy as np
from scipy.special import gammaln
from scipy.stats import multivariate_normal


def name_of(Z):
    """An allocation without the order of its columns: how often each column occurs, as a sorted tuple of numbers."""
    return tuple(sorted(int(column) for column in (Z.T.astype(int) @ (1 << np.arange(len(Z))))))


def allocation(name, n):
    """The opposite of ``name_of``."""
    return ((np.array(name, dtype=int).reshape(1, -1) >> np.arange(n)[:, None]) & 1).astype(np.uint8)


def log_prior(name, n, gamma):
    """The Indian buffet process, column order ignored; term by term."""
    H = sum(1 / i for i in range(1, n + 1))
    value = len(name) * np.log(gamma) - gamma * H
    value -= sum(gammaln(many + 1) for many in Counter(name).values())
    for column in name:
        m = bin(column).count("1")
        value += gammaln(m) + gammaln(n - m + 1) - gammaln(n + 1)
    return value


def log_likelihood(X, Z, noise, scale):
    """Of rows whose features are integrated out: each column is N(0, noise I + scale Z Z')."""
    n = len(X)
    covariance = noise * np.eye(n) + scale * Z.astype(float) @ Z.T
    return sum(multivariate_normal(np.zeros(n), covariance).logpdf(column) for column in X.T)


def posterior(X, gamma, noise, scale, most):
    """Probability of each allocation of up to ``most`` features, by name."""
    n = len(X)
    names = [name for K in range(most + 1) for name in itertools.combinations_with_replacement(range(1, 1 << n), K)]
    value = np.array(
        [log_prior(name, n, gamma) + log_likelihood(X, allocation(name, n), noise, scale) for name in names]
    )
    value = np.exp(value - value.max())
    return dict(zip(names, value / value.sum()))


def total_variation(exact, found):
    """Between two laws given as dictionaries."""
    return 0.5 * sum(abs(exact.get(name, 0.0) - found.get(name, 0.0)) for name in set(exact) | set(found))
