"""How many components of a Dirichlet process are enough: what stick-breaking leaves after T pieces.

The rest is tau_T = exp(-G / alpha), G ~ Gamma(T, 1), and what is cut off has a squared norm of at most tau_T^2 times
the largest value of the kernel.
"""

import numpy as np
from scipy.special import gammainc

#: What is asked of the squared norm: that its mean, its quantile, or its typical (geometric mean) size is small.
KINDS = ("mean", "probability", "typical")


def enough_pieces(alpha: float, ratio: float, kind: str, chance: float) -> int:
    """Least number of pieces for which the squared norm of the rest is at most 1 / ratio of its bound.

    "mean": E tau^2 = (alpha / (alpha + 2))^T; "probability": except with this chance; "typical": exp(-2 T / alpha).
    """
    logs = float(np.log(ratio))
    if logs <= 0:
        return 1
    if kind == "mean":
        return max(1, int(np.ceil(logs / np.log1p(2 / alpha) * (1 - 1e-12))))
    typical = max(1, int(np.ceil(0.5 * alpha * logs * (1 - 1e-12))))
    return typical if kind == "typical" else _by_quantile(0.5 * alpha * logs, chance)


def _by_quantile(least: float, chance: float) -> int:
    """Least T with P(Gamma(T, 1) < least) <= chance, which falls with T."""
    low, high = 0, 1
    while gammainc(high, least) > chance:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if gammainc(middle, least) > chance else (low, middle)
    return high
