"""The path of K over lam, and the prices between which a number of clusters is best."""

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.assign import Centres, assign
from kfree.inference.clusters.grow import Growth, grow, penalised
from kfree.inference.clusters.table import Table, make_memory
from kfree.inference.loop import Budget


def follow_path(
    table: Table, centres: Centres, lams: Array, tol: float, max_iter: int, budget: Budget
) -> list[tuple[int, float, float]]:
    """Grow at each lam, falling, from the centres of the one before; clusters, inertia and objective of each."""
    points = []
    memory = make_memory(table.n)
    for lam in lams:
        memory.low[:] = -np.inf
        grown = grow(table, centres, memory, Growth(float(lam), tol), budget, phase=f"lam {lam:g}", max_iter=max_iter)
        centres = grown.state.centres
        sums = assign(table, centres, memory, float(lam))
        points.append((int((sums.mass > 0).sum()), sums.cost, penalised(table, centres, sums, float(lam))))
    return points


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
