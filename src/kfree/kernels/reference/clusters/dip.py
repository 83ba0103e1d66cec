"""The dip of sorted samples: how far their distribution is from the nearest unimodal one."""

import numpy as np


def _minorant(x, y):
    """Greatest convex minorant of the points (x, y), at every x; x rises strictly."""
    hull: list[int] = []
    for i in range(x.size):
        while len(hull) > 1 and (y[i] - y[hull[-2]]) * (x[hull[-1]] - x[hull[-2]]) <= (y[hull[-1]] - y[hull[-2]]) * (
            x[i] - x[hull[-2]]
        ):
            hull.pop()
        hull.append(i)
    return np.interp(x, x[hull], y[hull]), np.array(hull)


def _dip(sample):
    """Hartigan & Hartigan (1985), section 4: narrow the modal interval until the rest deviates more than it."""
    x, counts = np.unique(sample, return_counts=True)
    n = sample.size
    above = np.cumsum(counts).astype(float)
    below = above - counts
    first, last, worst = 0, x.size - 1, 1.0
    while True:
        part = slice(first, last + 1)
        convex, lower = _minorant(x[part], below[part])
        concave, upper = _minorant(x[part], -above[part])
        concave = -concave
        gap = concave - convex
        at_lower, at_upper = lower[gap[lower].argmax()], upper[gap[upper].argmax()]
        if gap[at_lower] > gap[at_upper]:
            left, right = at_lower, upper[np.searchsorted(upper, at_lower)]
        else:
            left, right = lower[np.searchsorted(lower, at_upper, side="right") - 1], at_upper
        if gap.max() <= worst:
            break
        # the ends of the new interval may still hold the mode, where a jump costs nothing
        outside = np.concatenate([(above[part] - convex)[:left], (concave - below[part])[right + 1 :], [worst]])
        worst = outside.max()
        if left == 0 and right == last - first:
            break
        first, last = first + left, first + right
    return worst / (2 * n)


def dip(values, edges, dips):
    """Dip of each sorted segment ``values[edges[s]:edges[s + 1]]``; 0 for an empty one. Fills ``dips``."""
    for s in range(dips.size):
        segment = values[edges[s] : edges[s + 1]]
        dips[s] = _dip(segment) if segment.size else 0.0
