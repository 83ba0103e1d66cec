"""The Indian buffet process: a prior of binary allocations with any number of features.

The first row has Poisson(gamma) features; row i has each earlier feature with probability m / i, where m rows before it
have it, and Poisson(gamma / i) features of its own. Rows may come in any order, features have none.
"""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Array = NDArray[Any]


class IndianBuffet(NamedTuple):
    """The prior of the allocation of n rows."""

    n: int

    @property
    def harmonic(self) -> float:
        """H_n = 1 + 1/2 + ... + 1/n: gamma times this is the expected number of features."""
        return float((1.0 / np.arange(1, self.n + 1)).sum())

    def log_prior(self, Z: Array, gamma: float) -> float:
        """Log probability of an allocation (n, K), whatever the order of its columns; each has a member."""
        counts = Z.sum(axis=0, dtype=np.int64)
        columns = np.packbits(Z, axis=0)
        equal = Counter(columns[:, k].tobytes() for k in range(counts.size))
        orders = sum(float(gammaln(many + 1)) for many in equal.values() if many > 1)
        sizes = gammaln(counts) + gammaln(self.n - counts + 1) - gammaln(self.n + 1)
        return float(counts.size * np.log(gamma) - gamma * self.harmonic - orders + sizes.sum())

    def draw(self, gamma: float, rng: np.random.Generator) -> Array:
        """An allocation (n, K), uint8."""
        columns: list[Array] = []
        for i in range(self.n):
            for column in columns:
                column[i] = rng.random() < column[:i].sum() / (i + 1)
            for _ in range(rng.poisson(gamma / (i + 1))):
                column = np.zeros(self.n, np.uint8)
                column[i] = 1
                columns.append(column)
        return np.stack(columns, axis=1) if columns else np.zeros((self.n, 0), np.uint8)
