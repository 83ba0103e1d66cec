"""Stick-breaking weights of infinitely many components, of which the first T have been moved off the prior.

The sticks are v_i ~ Beta(a1, a2), the weights pi_i = v_i prod_{j<i} (1 - v_j); (1, alpha) is the Dirichlet process.
Beyond T every stick keeps its prior, so that the tail is a geometric series, summed exactly.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma

Array = NDArray[Any]


class StickBreaking(NamedTuple):
    """The prior Beta(a1, a2) of every stick; posteriors are arrays (T, 2)."""

    a1: float = 1.0
    a2: float = 1.0

    def posterior(self, sizes: Array) -> Array:
        """Best sticks (T, 2) for sizes (T + 1,), the last of which is the tail's."""
        behind = np.cumsum(sizes[::-1])[::-1][1:]  # from behind: a difference of sums could turn negative
        return np.stack([self.a1 + sizes[:-1], self.a2 + behind], axis=1)

    def expected_log(self, sticks: Array) -> Array:
        """E[log pi_i] of the first T components and the log of what the E[log pi] of all others sum to, (T + 1,)."""
        whole = digamma(sticks.sum(axis=1))
        here, past = digamma(sticks[:, 0]) - whole, digamma(sticks[:, 1]) - whole
        passed = np.concatenate([[0.0], np.cumsum(past)])
        ratio = digamma(self.a2) - digamma(self.a1 + self.a2)  # log of the ratio of the series
        tail = digamma(self.a1) - digamma(self.a1 + self.a2) - np.log(-np.expm1(ratio))
        return passed + np.append(here, tail)

    def divergence(self, sticks: Array) -> float:
        """Sum of KL(q(v_i) || p(v))."""
        g1, g2 = sticks[:, 0], sticks[:, 1]
        whole = digamma(g1 + g2)
        terms = betaln(self.a1, self.a2) - betaln(g1, g2)
        terms += (g1 - self.a1) * (digamma(g1) - whole) + (g2 - self.a2) * (digamma(g2) - whole)
        return float(terms.sum())

    def terms(self, sticks: Array) -> float:
        """Size of the terms that the divergence is a sum of, about: its rounding scales with it."""
        whole = sticks.sum(axis=1)
        return float((1 + whole * np.log1p(whole)).sum())

    def weights(self, sticks: Array) -> Array:
        """Expected weights of the first T components and of all others together, (T + 1,); they sum to one."""
        whole = sticks.sum(axis=1)
        left = np.concatenate([[1.0], np.cumprod(sticks[:, 1] / whole)])
        return left * np.append(sticks[:, 0] / whole, 1.0)

    def deviations(self, sticks: Array) -> Array:
        """Standard deviations of the weights of the first T components, (T,)."""
        g1, g2 = sticks[:, 0], sticks[:, 1]
        whole = g1 + g2
        squares = whole * (whole + 1)
        left = np.concatenate([[1.0], np.cumprod(g2 * (g2 + 1) / squares)[:-1]])
        mean = self.weights(sticks)[:-1]
        return np.sqrt(np.maximum(left * g1 * (g1 + 1) / squares - mean**2, 0.0))

    def draw(self, sticks: Array, count: int, rng: np.random.Generator) -> Array:
        """Weights (count, T) of the first T components; what is missing to one is the tail's."""
        here = rng.beta(sticks[:, 0], sticks[:, 1], (count, sticks.shape[0]))
        left = np.cumprod(1 - here, axis=1)
        return here * np.concatenate([np.ones((count, 1)), left[:, :-1]], axis=1)


def by_size(sizes: Array) -> Array:
    """The order of components that costs least at given sizes: decreasing; those that only rounding tells apart stay as
    they were."""
    total = float(sizes.sum())
    return np.argsort(-np.rint(sizes * (2.0**40 / total)) if total > 0 else -sizes, kind="stable")
