"""First features, in the manner of k-means++: a residual drawn by its square becomes a mean."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.features.allocation import FeatureState, Means, residual, residual_squares, shifted_squares
from kfree.inference.features.feature_numbers import FEATURES
from kfree.inference.features.feature_table import FeatureTable
from kfree.inference.loop import Budget, repeat
from kfree.kernels import kernels


class Seeding(NamedTuple):
    """Features as they were drawn: the means are residuals, not yet least squares."""

    Z: Array  # (n, K) uint8
    means: Means
    left: Array  # (n,) squared residuals

    @property
    def K(self) -> int:
        """Number of features."""
        return int(self.Z.shape[1])

    @property
    def state(self) -> FeatureState:
        """The same to start from."""
        return FeatureState(self.Z, self.means)


def no_seeds(table: FeatureTable) -> Seeding:
    """No features; the intercept, if there is one, is the mean."""
    base = table.mean if table.intercept else np.zeros(table.p)
    means = Means(np.zeros((0, table.p)), base)
    return Seeding(np.zeros((table.n, 0), np.uint8), means, shifted_squares(table, base))


def base_seed(table: FeatureTable) -> Seeding:
    """One feature that all rows have: the mean."""
    Z, means = np.ones((table.n, 1), np.uint8), Means(table.mean[None], np.zeros(table.p))
    return Seeding(Z, means, residual_squares(table, Z, means))


def add_feature(table: FeatureTable, seeding: Seeding, rng: np.random.Generator) -> Seeding:
    """A residual as a new mean, for all rows that it brings nearer; the rest stays as it is.

    The row is drawn with probability proportional to its weighted squared residual; any row if all are fitted.
    """
    if table.plain:
        return _add_many(table, seeding, 1, rng)
    Z, means, left = seeding
    uniform, mass = rng.random(), np.cumsum(table.weight * left)
    fitted = not mass[-1] > FEATURES.rounding * table.total
    n = int(uniform * table.n) if fitted else np.searchsorted(mass, uniform * mass[-1], side="right")
    r = residual(table, Z, means, min(int(n), table.n - 1))
    along = table.all_products(r[None])[:, 0] - means.base @ r - Z.astype(np.float64) @ (means.A @ r)
    change = r @ r - 2.0 * along
    column = (change < 0).astype(np.uint8)
    left = np.maximum(left + np.where(column, change, 0.0), 0.0)
    return Seeding(np.concatenate([Z, column[:, None]], axis=1), Means(np.vstack([means.A, r]), means.base), left)


def _add_many(table: FeatureTable, seeding: Seeding, more: int, rng: np.random.Generator) -> Seeding:
    """Several such features in one call."""
    K = seeding.K
    Z, A, left = np.zeros((table.n, K + more), np.uint8), np.zeros((K + more, table.p)), seeding.left.copy()
    Z[:, :K], A[:K] = seeding.Z, seeding.means.A
    kernels().seed_features(table.X, table.weight, rng.random(more), FEATURES.rounding * table.total, K, left, Z, A)
    return Seeding(Z, Means(A, seeding.means.base), left)


def seed_fixed(table: FeatureTable, K: int, base: bool, rng: np.random.Generator) -> Seeding:
    """K features; with ``base`` the first is the mean."""
    seeding = base_seed(table) if base and not table.intercept and K else no_seeds(table)
    if table.plain and seeding.K < K:
        return _add_many(table, seeding, K - seeding.K, rng)
    for _ in range(seeding.K, K):
        seeding = add_feature(table, seeding, rng)
    return seeding


def seed_greedy(
    table: FeatureTable, price: float, base: bool, most: int, rng: np.random.Generator, budget: Budget
) -> Seeding:
    """Features as long as each lowers the objective; the first that does not is left out."""

    def cost(seeding: Seeding) -> float:
        return float(table.weight @ seeding.left) + price * seeding.K

    def one_more(seeding: Seeding) -> tuple[Seeding, bool]:
        more = add_feature(table, seeding, rng)
        return (more, False) if cost(more) < cost(seeding) else (seeding, True)

    seeding = no_seeds(table)
    if base and not table.intercept and most:
        first = base_seed(table)
        if cost(first) < cost(seeding):
            seeding = first
    return repeat(one_more, seeding, budget, most=most - seeding.K)[0]
