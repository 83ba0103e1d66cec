"""How far from their centres rows hardly ever are."""

from collections.abc import Callable

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.cluster_numbers import CLUSTERS


def fence_of(cost: Array, weight: Array) -> float:
    """Tukey's outer fence of the roots of divergences: three times the distance of their quartiles beyond the upper.

    A few rows far away do not move it, as they would the largest; where three quarters of the rows are at their centres
    it is the largest all the same. Weights (n,), or (0,) for ones.
    """
    if weight.size:
        cost, weight = cost[weight > 0], weight[weight > 0]
    root = np.where(np.isfinite(cost), cost, 0.0)
    np.sqrt(root, out=root)
    if not root.size:
        return 0.0
    low, high = (_quantile(root, weight, share) for share in CLUSTERS.quartiles)
    return fence_between(low, high, lambda: float(root.max()))


def fence_between(low: float, high: float, largest: Callable[[], float]) -> float:
    """The fence of roots with these quartiles; ``largest`` gives the largest of them."""
    fence = high + CLUSTERS.fence * (high - low)
    return float(min(fence, 1e150) ** 2) if fence > 0 else largest() ** 2


def least_weight(share: float, total: float, whole: bool) -> float:
    """The weight that lies at or below a quantile, at least; ``whole`` where rows weigh 1."""
    return max(1.0, float(np.ceil(share * total))) if whole else share * total * (1 - 1e-12)


def _quantile(values: Array, weight: Array, share: float) -> float:
    """The least value at or below which a share of the weight lies; without weights values are put in another order."""
    if not weight.size:
        place = int(least_weight(share, values.size, whole=True)) - 1
        values.partition(place)
        return float(values[place])
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weight[order])
    return float(values[order[np.searchsorted(below, least_weight(share, float(below[-1]), whole=False))]])
