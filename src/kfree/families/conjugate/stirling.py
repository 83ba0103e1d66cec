"""What Stirling's formulas leave over, and divergences of counts, without the large numbers that would cancel.

Logs of factorials of counts of 1e9 are sums of 2e10, of which a log-likelihood leaves ten: each function here is the
small number itself.
"""

import numpy as np
from scipy.special import digamma, gammaln

from kfree.families.base import Array

_HALF_LOG_2PI = float(0.5 * np.log(2 * np.pi))
# From here on a few terms of the asymptotic series are exact.
_LARGE = 16.0
# Up to here log(1 + t) - t is summed as a series.
_NEAR = 0.25
_TINY = float(np.finfo(float).tiny)


def stirling_error(a: Array) -> Array:
    """log Gamma(a + 1) - (a + 1/2) log a + a - 1/2 log 2 pi, a > 0."""
    small, large = np.minimum(a, _LARGE), np.maximum(a, _LARGE)
    y = 1 / (large * large)
    series = (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))) / large
    direct = gammaln(small + 1) - (small + 0.5) * np.log(small) + small - _HALF_LOG_2PI
    return np.where(a < _LARGE, direct, series)


def digamma_less_log(a: Array) -> Array:
    """digamma(a) - log a, a > 0."""
    small, large = np.minimum(a, _LARGE), np.maximum(a, _LARGE)
    y = 1 / (large * large)
    series = -0.5 / large - y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y / 132))))
    return np.where(a < _LARGE, digamma(small) - np.log(small), series)


def log_ratio(x: Array, y: Array) -> Array:
    """log(x / y) of positive numbers, to the last digit also where they are nearly equal."""
    gap = x - y
    return np.where(np.abs(gap) < 0.5 * y, np.log1p(np.maximum(gap, -0.5 * y) / y), np.log(x / y))


def count_divergence(x: Array, mean: Array) -> Array:
    """x log(x / mean) - x + mean, x >= 0 and mean > 0: what a count loses under a rate that is not its own."""
    x, mean = np.broadcast_arrays(x, mean)
    safe = np.where(x > 0, x, 1.0)
    gap = np.where(x > 0, mean - x, 0.0)
    near = np.abs(gap) < _NEAR * safe
    t = np.where(near, gap, 0.0) / safe
    r = t / (2 + t)
    s, series = r * r, np.zeros_like(r)
    for odd in range(19, 1, -2):
        series = s * series + 1 / odd
    close = 2 * s * (1 / (1 - r) - r * series) * safe
    ratio = safe / np.maximum(np.where(x > 0, mean, 1.0), _TINY)  # of subnormal counts the log is nothing
    far = safe * np.log(np.maximum(ratio, _TINY)) + gap
    return np.where(x > 0, np.where(near, close, far), mean)


def gamma_rise(a: Array, a0: Array) -> Array:
    """(a - a0) digamma(a) - log Gamma(a) + log Gamma(a0), less a - a0 + a0 log(a0 / a)."""
    return 0.5 * log_ratio(a, a0) + (a - a0) * digamma_less_log(a) + stirling_error(a0) - stirling_error(a)


def log_poisson(x: Array, mean: Array) -> Array:
    """Log-probability of counts under rates > 0."""
    safe = np.where(x > 0, x, 1.0)
    own = stirling_error(safe) + 0.5 * np.log(safe) + _HALF_LOG_2PI
    return -count_divergence(x, mean) - np.where(x > 0, own, 0.0)


def log_negative_binomial(x: Array, a: Array, rate: Array) -> Array:
    """Log-probability of counts whose rates are Gamma(a, rate)."""
    safe, whole = np.where(x > 0, x, 1.0), a + x
    value = -count_divergence(a, whole * rate / (1 + rate)) - count_divergence(safe, whole / (1 + rate))
    value += stirling_error(whole) - stirling_error(a) - stirling_error(safe)
    value += 0.5 * (np.log(a) - np.log(whole) - np.log(safe)) - _HALF_LOG_2PI
    return np.where(x > 0, value, -a * np.log1p(1 / rate))
