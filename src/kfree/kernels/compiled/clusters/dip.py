"""The dip of sorted samples: how far their distribution is from the nearest unimodal one."""

import numpy as np

from kfree.kernels.compiled.cache import njit


@njit(nogil=True, cache=True)
def _minorant(x, y, first, last, hull, line):
    """Greatest convex minorant of (x, y) on first..last: touching points in ``hull``, values in ``line``."""
    size = 0
    for i in range(first, last + 1):
        while size > 1:
            a, b = hull[size - 2], hull[size - 1]
            if (y[i] - y[a]) * (x[b] - x[a]) > (y[b] - y[a]) * (x[i] - x[a]):
                break
            size -= 1
        hull[size] = i
        size += 1
    line[first] = y[first]
    for s in range(1, size):
        a, b = hull[s - 1], hull[s]
        slope = (y[b] - y[a]) / (x[b] - x[a])
        for i in range(a + 1, b):
            line[i] = y[a] + slope * (x[i] - x[a])
        line[b] = y[b]
    return size


@njit(nogil=True, cache=True)
def _widest(convex, concave, hull, size):
    """Touching point at which the two lines are farthest apart."""
    at = hull[0]
    for s in range(1, size):
        i = hull[s]
        if concave[i] - convex[i] > concave[at] - convex[at]:
            at = i
    return at


@njit(nogil=True, cache=True)
def _dip(sample, x, below, above):
    """Narrow the modal interval until the rest deviates more than it; ``x``, ``below``, ``above`` are scratch."""
    n, k = sample.shape[0], 0
    for i in range(n):
        if i == 0 or sample[i] > sample[i - 1]:
            x[k] = sample[i]
            below[k] = i
            k += 1
        above[k - 1] = -(i + 1)  # turned over, so that its majorant is a minorant
    lower, upper = np.empty(k, np.int64), np.empty(k, np.int64)
    convex, concave = np.empty(k), np.empty(k)
    first, last, worst = 0, k - 1, 1.0
    while True:
        n_lower = _minorant(x, below, first, last, lower, convex)
        n_upper = _minorant(x, above, first, last, upper, concave)
        for i in range(first, last + 1):
            concave[i] = -concave[i]
        left = _widest(convex, concave, lower, n_lower)
        right = _widest(convex, concave, upper, n_upper)
        gap_left, gap_right = concave[left] - convex[left], concave[right] - convex[right]
        if gap_left > gap_right:
            s = 0
            while upper[s] < left:
                s += 1
            right = upper[s]
        else:
            s = n_lower - 1
            while lower[s] > right:
                s -= 1
            left = lower[s]
        if max(gap_left, gap_right) <= worst:
            break
        # the ends of the new interval may still hold the mode, where a jump costs nothing
        for i in range(first, left):
            worst = max(worst, -above[i] - convex[i])
        for i in range(right + 1, last + 1):
            worst = max(worst, concave[i] - below[i])
        if left == first and right == last:
            break
        first, last = left, right
    return worst / (2 * n)


@njit(nogil=True, cache=True)
def dip(values, edges, dips):  # noqa: D103
    longest = 0
    for s in range(dips.shape[0]):
        longest = max(longest, edges[s + 1] - edges[s])
    x, below, above = np.empty(longest), np.empty(longest), np.empty(longest)
    for s in range(dips.shape[0]):
        segment = values[edges[s] : edges[s + 1]]
        dips[s] = _dip(segment, x, below, above) if segment.shape[0] else 0.0
