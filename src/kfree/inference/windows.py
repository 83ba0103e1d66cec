"""The prices between which a number of clusters, or of features, is best."""

import numpy as np

from kfree.families import Array


def envelope_windows(K: Array, costs: Array) -> Array:
    """For each point the prices (lo, hi) between which its K minimises costs + price * K; NaN off the envelope.

    These are the slopes of the lower convex envelope of the least costs over K.
    """
    best: dict[int, float] = {}
    for k, cost in zip(K, costs):
        best[int(k)] = min(best.get(int(k), np.inf), float(cost))
    hull: list[tuple[int, float]] = []
    for point in sorted(best.items()):
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) <= _slope(hull[-2], point):
            hull.pop()
        hull.append(point)
    windows = {}
    for i, (k, cost) in enumerate(hull):
        hi = _slope(hull[i - 1], (k, cost)) if i else np.inf
        lo = _slope((k, cost), hull[i + 1]) if i + 1 < len(hull) else 0.0
        windows[k] = (lo, hi)
    return np.array([windows.get(int(k), (np.nan, np.nan)) for k in K], dtype=float).reshape(-1, 2)


def width_ratios(windows: Array, deepest: float = 0.0) -> Array:
    """(m,) ratio of the ends of each window (m, 2): how wide it is; -inf where it is none, or not bounded. A low end
    counts as no less than ``deepest`` times the high one."""
    lo, hi = windows[:, 0], windows[:, 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = hi / np.maximum(lo, deepest * hi)
    return np.where(np.isfinite(ratio) & (hi > 0), ratio, -np.inf)


def _slope(a: tuple[int, float], b: tuple[int, float]) -> float:
    """Fall of the costs per cluster between two points."""
    return (a[1] - b[1]) / (b[0] - a[0])
