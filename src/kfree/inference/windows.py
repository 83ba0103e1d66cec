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


def _slope(a: tuple[int, float], b: tuple[int, float]) -> float:
    """Fall of the costs per cluster between two points."""
    return (a[1] - b[1]) / (b[0] - a[0])
