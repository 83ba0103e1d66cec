"""Posteriors of Gaussians with full covariance, and the sticks of their mixture; see the reference for the formulas.

For matrices of a few dozen columns: larger ones are better left to LAPACK.
"""

import math

import numpy as np

from kfree.kernels.compiled.cache import njit


@njit(nogil=True, cache=True)
def digamma(x):
    """Derivative of log gamma, x > 0."""
    value = 0.0
    while x < 10.0:
        value -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132 - y * (691 / 32760 - y / 12))))))
    return value + math.log(x) - 0.5 / x - series


@njit(nogil=True, cache=True)
def _digammas(nu, D):
    total = 0.0
    for d in range(D):
        total += digamma(0.5 * (nu - d))
    return total


@njit(nogil=True, cache=True)
def _log_gammas(nu, D):
    total = 0.0
    for d in range(D):
        total += math.lgamma(0.5 * (nu - d))
    return total


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _lower_factor(matrix, lower):
    """Cholesky factor of a matrix; whether there is one."""
    for c in range(matrix.shape[0]):
        for d in range(c + 1):
            value = matrix[c, d]
            for e in range(d):
                value -= lower[c, e] * lower[d, e]
            if d < c:
                lower[c, d] = value / lower[d, d]
            elif value > 0.0:
                lower[c, c] = math.sqrt(value)
            else:
                return False
    return True


@njit(nogil=True, cache=True, fastmath={"contract"})
def _invert(lower, inverse):
    """Inverse of a lower triangle."""
    for c in range(lower.shape[0]):
        inverse[c] = 0.0
        for d in range(c):
            scale = lower[c, d]
            for e in range(d + 1):
                inverse[c, e] -= scale * inverse[d, e]
        for e in range(c):
            inverse[c, e] /= lower[c, c]
        inverse[c, c] = 1.0 / lower[c, c]


@njit(nogil=True, cache=True)
def wishart_posterior(mass, first, second, about, prior_mean, prior_scale, beta, mean, scale, root, log_det):  # noqa: D103
    K, D = first.shape
    gap, away = np.empty(D), np.empty(D)
    lower, inverse = np.empty((D, D)), np.empty((D, D))
    for k in range(K):
        share, shrunk = mass[k] / (beta + mass[k]), beta * mass[k] / (beta + mass[k])
        for d in range(D):
            gap[d] = first[k, d] / mass[k] if mass[k] > 0.0 else 0.0
            away[d] = about[k, d] + gap[d] - prior_mean[d]
            mean[k, d] = prior_mean[d] + share * away[d]
        for d in range(D):
            for e in range(d + 1):
                own = 0.5 * (second[k, d, e] + second[k, e, d]) - mass[k] * gap[d] * gap[e]
                scale[k, d, e] = scale[k, e, d] = prior_scale[d, e] + own + shrunk * away[d] * away[e]
        if not _lower_factor(scale[k], lower):
            return False
        _invert(lower, inverse)
        log_det[k] = 0.0
        for d in range(D):
            log_det[k] += 2.0 * math.log(lower[d, d])
            for e in range(D):
                root[k, e, d] = inverse[d, e]
    return True


@njit(nogil=True, cache=True)
def wishart_form(beta, nu, root, log_det, scaled, offset):  # noqa: D103
    K, D = root.shape[:2]
    for k in range(K):
        size = math.sqrt(nu[k])
        for d in range(D):
            for e in range(D):
                scaled[k, d, e] = size * root[k, d, e]
        expected = _digammas(nu[k], D) + D * math.log(2.0) - log_det[k]
        offset[k] = 0.5 * (D / beta[k] - expected)


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _row_product(root, d, e):
    """Product of rows d <= e of an upper triangle."""
    total = 0.0
    for c in range(e, root.shape[0]):
        total += root[d, c] * root[e, c]
    return total


@njit(nogil=True, cache=True)
def wishart_divergence(mean, beta, nu, root, log_det, prior_mean, prior_scale, prior, value):  # noqa: D103
    K, D = mean.shape
    beta0, nu0, log_det0 = prior[0], prior[1], prior[2]
    constant = _log_gammas(nu0, D)
    for k in range(K):
        away, trace = 0.0, 0.0
        for e in range(D):
            along = 0.0
            for d in range(e + 1):
                along += (mean[k, d] - prior_mean[d]) * root[k, d, e]
            away += along * along
        for d in range(D):
            for e in range(d, D):
                if prior_scale[d, e] != 0.0:  # mostly a diagonal
                    trace += (1.0 if d == e else 2.0) * prior_scale[d, e] * _row_product(root[k], d, e)
        ratio = beta0 / beta[k]
        own = 0.5 * D * (ratio - math.log(ratio) - 1.0) + 0.5 * beta0 * nu[k] * away
        own += 0.5 * nu0 * (log_det[k] - log_det0) + 0.5 * (nu[k] - nu0) * _digammas(nu[k], D)
        value[k] = own + 0.5 * nu[k] * (trace - D) + constant - _log_gammas(nu[k], D)


@njit(nogil=True, cache=True)
def best_sticks(sizes, a1, a2, sticks):  # noqa: D103
    behind = 0.0
    for i in range(sticks.shape[0] - 1, -1, -1):
        behind += sizes[i + 1]
        sticks[i, 0], sticks[i, 1] = a1 + sizes[i], a2 + behind


@njit(nogil=True, cache=True)
def stick_terms(sticks, a1, a2, expected):  # noqa: D103
    T, past, total = sticks.shape[0], 0.0, 0.0
    prior = math.lgamma(a1) + math.lgamma(a2) - math.lgamma(a1 + a2)
    for i in range(T):
        g1, g2 = sticks[i, 0], sticks[i, 1]
        whole = digamma(g1 + g2)
        here, beyond = digamma(g1) - whole, digamma(g2) - whole
        total += prior - math.lgamma(g1) - math.lgamma(g2) + math.lgamma(g1 + g2)
        total += (g1 - a1) * here + (g2 - a2) * beyond
        expected[i] = past + here
        past += beyond
    whole = digamma(a1 + a2)
    expected[T] = past + digamma(a1) - whole - math.log(-math.expm1(digamma(a2) - whole))
    return total


@njit(nogil=True, cache=True)
def wishart_view(  # noqa: D103
    mean, beta, nu, root, log_det, prior_mean, prior_scale, prior_root, prior, sticks, weights, scaled, offset, expected
):
    T, own = mean.shape[0], np.empty(mean.shape[0])
    wishart_form(beta, nu, root, log_det, scaled[:T], offset[:T])
    wishart_form(prior[0:1], prior[1:2], prior_root, prior[2:3], scaled[T:], offset[T:])
    wishart_divergence(mean, beta, nu, root, log_det, prior_mean, prior_scale, prior, own)
    return stick_terms(sticks, weights[0], weights[1], expected) + own.sum()
