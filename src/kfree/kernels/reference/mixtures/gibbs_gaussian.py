"""Partitions of Gaussian rows: marginals from sums of rows and of their squares."""

import numpy as np
from scipy.special import gammaln

from kfree.kernels.reference.mixtures.gibbs import draw


def _located(mass, sums, prior_mean, rows):
    """What is to be taken off sums of squares of x - prior_mean, as a vector whose square it is, where ``sums`` are
    those of x - prior_mean; and the log of the change of (beta / 2 pi)^(D / 2)."""
    return sums / np.sqrt(rows + mass)[:, None], 0.5 * prior_mean.size * np.log(rows / (rows + mass))


def gibbs_full(X, weight, mean, root, counts, turns, log_alpha, labels, fresh):
    """Normal-Wishart prior: B^-1 = root' root with a lower triangle, beta and nu in ``counts``."""
    (N, D), gaps, (rows, degrees) = X.shape, X - mean, counts
    scale = np.linalg.inv(root.T @ root)
    stats = np.hstack([gaps, (gaps[:, :, None] * gaps[:, None]).reshape(N, D * D)])

    def marginal(mass, sums):
        half, location = _located(mass, sums[:, :D], mean, rows)
        B = scale + sums[:, D:].reshape(-1, D, D) - half[:, :, None] * half[:, None]
        nu = degrees + mass
        gammas = gammaln((nu[:, None] - np.arange(D)) / 2) - gammaln((degrees - np.arange(D)) / 2)
        dets = degrees * np.linalg.slogdet(scale)[1] - nu * np.linalg.slogdet(B)[1]
        return location + gammas.sum(axis=1) + 0.5 * (mass * D * np.log(2.0) + dets)

    return draw(stats, weight, marginal, turns, log_alpha, labels, fresh)


def gibbs_diagonal(X, weight, mean, rate, counts, turns, log_alpha, labels, fresh):
    """Normal-gamma priors, one for each column: beta and the shape in ``counts``."""
    D, gaps, (rows, shape) = X.shape[1], X - mean, counts

    def marginal(mass, sums):
        half, location = _located(mass, sums[:, :D], mean, rows)
        after, rates = shape + mass / 2, rate + 0.5 * (sums[:, D:] - half * half)
        value = gammaln(after) - gammaln(shape)
        return location + D * value + (shape * np.log(rate) - after[:, None] * np.log(rates)).sum(axis=1)

    return draw(np.hstack([gaps, gaps * gaps]), weight, marginal, turns, log_alpha, labels, fresh)


def gibbs_spherical(X, weight, mean, rate, counts, turns, log_alpha, labels, fresh):
    """One precision for all columns."""
    D, gaps, (rows, shape) = X.shape[1], X - mean, counts

    def marginal(mass, sums):
        half, location = _located(mass, sums[:, :D], mean, rows)
        after, rates = shape + mass * D / 2, rate[0] + 0.5 * (sums[:, D] - (half * half).sum(axis=1))
        return location + gammaln(after) - gammaln(shape) + shape * np.log(rate[0]) - after * np.log(rates)

    stats = np.hstack([gaps, (gaps * gaps).sum(axis=1, keepdims=True)])
    return draw(stats, weight, marginal, turns, log_alpha, labels, fresh)


def gibbs_known(X, weight, mean, rows, turns, log_alpha, labels, fresh):
    """Covariance one, a prior of so many rows for the mean."""
    D, gaps = X.shape[1], X - mean

    def marginal(mass, sums):
        half, location = _located(mass, sums[:, :D], mean, rows)
        return location - 0.5 * (sums[:, D] - (half * half).sum(axis=1))

    stats = np.hstack([gaps, (gaps * gaps).sum(axis=1, keepdims=True)])
    return draw(stats, weight, marginal, turns, log_alpha, labels, fresh)
