"""Rows that move between clusters one at a time by squared distance; see the reference for the formulas."""

import numpy as np

from kfree.kernels.compiled.cache import njit
from kfree.kernels.compiled.clusters.moving import destination, less


@njit(nogil=True, cache=True)
def _home(x, w, sums, mass, tiny):
    """What the cluster that holds a row costs more with it than without."""
    lighter, square = max(mass - w, 1e-15 * mass), 0.0
    for j in range(x.shape[0]):
        gap = less(sums[j], w * x[j], tiny) / lighter - x[j]
        square += gap * gap
    return lighter * w / (lighter + w) * square


@njit(nogil=True, cache=True)
def _squares(x, mean, squares):
    """Squared distances from all centres; columns outside, so that the centres are taken several at a time."""
    squares[:] = 0.0
    for j in range(x.shape[0]):
        for k in range(squares.shape[0]):
            gap = mean[j, k] - x[j]
            squares[k] += gap * gap


@njit(nogil=True, cache=True)
def move_points(  # noqa: D103
    x, weight, rows, factor, pseudo, eta, lam, gain, tiny, most, sums, mean, mass, count, labels
):
    moved, held, K, p = 0.0, np.count_nonzero(count), count.shape[0], x.shape[1]
    squares = np.empty(K)
    for t in range(x.shape[0]):
        w, a, alone = weight[t], labels[rows[t]], 0.0
        if eta > 0.0:
            for j in range(p):
                gap = pseudo[j] / eta - x[t, j]
                alone += gap * gap
            alone *= eta * w / (eta + w)
        home = factor * (_home(x[t], w, sums[:, a], mass[a], tiny) - alone) if count[a] > 1 else lam
        _squares(x[t], mean, squares)
        best, least = -1, np.inf
        for k in range(K):
            if k != a and count[k] > 0:
                rise = factor * (mass[k] * w / (mass[k] + w) * squares[k] - alone)
                if rise < least:
                    best, least = k, rise
        best = destination(home, best, least, lam, gain, held < most, count)
        if best < 0:
            continue
        if best == K:
            return t, moved
        count[a] -= 1
        mass[a] = max(mass[a] - w, 1e-15 * mass[a])
        for j in range(p):
            sums[j, a] = less(sums[j, a], w * x[t, j], tiny)
        if count[a] == 0:  # exactly empty: no rounding may be left behind
            sums[:, a], mass[a] = pseudo, eta
            held -= 1
        else:
            mean[:, a] = sums[:, a] / mass[a]
        if count[best] == 0:
            held += 1
        count[best] += 1
        mass[best] += w
        sums[:, best] += w * x[t]
        mean[:, best] = sums[:, best] / mass[best]
        labels[rows[t]] = best
        moved += w
    return x.shape[0], moved
