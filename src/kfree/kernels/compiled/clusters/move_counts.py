"""Rows of counts that move between clusters one at a time; see the reference for the formulas."""

import math

import numpy as np

from kfree.kernels.compiled.cache import njit
from kfree.kernels.compiled.clusters.moving import destination, less


@njit(nogil=True, cache=True)
def _grown(y, d):
    """h(y + d) - h(y) with h(y) = y log y, for d > 0."""
    return y * math.log1p(d / y) + d * math.log(y + d) if y > 0.0 else d * math.log(d)


@njit(nogil=True, cache=True)
def _join(data, indices, first, last, factor, k, sums, size, mass, s, w):
    """What cluster k, which does not hold the row, costs more with it; up to what is the same for all clusters."""
    rise = size * math.log1p(w / mass) + s * math.log(mass + w)
    for q in range(first, last):
        if data[q] > 0.0:
            rise -= _grown(sums[indices[q], k], data[q] * factor)
    return rise


@njit(nogil=True, cache=True)
def _alone(data, indices, first, last, factor, pseudo, eta, s, w):
    """What the row costs as a cluster of its own, likewise."""
    size = pseudo.sum()
    cost = (size + s) * math.log(eta + w) - (size * math.log(eta) if eta > 0.0 else 0.0)
    for q in range(first, last):
        if data[q] > 0.0:
            cost -= _grown(pseudo[indices[q]], data[q] * factor)
    return cost


@njit(nogil=True, cache=True)
def _home(data, indices, first, last, factor, k, sums, size, mass, s, w, tiny):
    """As ``_join`` for the cluster that holds the row."""
    rest, lighter = max(size - s, 0.0), max(mass - w, 1e-15 * mass)
    rise = rest * math.log1p(w / lighter) + s * math.log(lighter + w)
    for q in range(first, last):
        if data[q] > 0.0:
            d = data[q] * factor
            rise -= _grown(less(sums[indices[q], k], d, tiny), d)
    return rise


@njit(nogil=True, cache=True)
def move_counts(  # noqa: D103
    data, indices, indptr, scale, weight, order, pseudo, eta, lam, gain, tiny, most, sums, size, mass, count, labels
):
    moved, held, K = 0.0, np.count_nonzero(count), count.shape[0]
    for t in range(order.shape[0]):
        i = order[t]
        first, last, w, a = indptr[i], indptr[i + 1], weight[i], labels[i]
        factor, s = w * (scale[i] if scale.shape[0] else 1.0), 0.0
        for q in range(first, last):
            s += data[q] * factor
        alone = _alone(data, indices, first, last, factor, pseudo, eta, s, w)
        home = lam
        if count[a] > 1:
            home = _home(data, indices, first, last, factor, a, sums, size[a], mass[a], s, w, tiny) - alone
        best, least = -1, np.inf
        for k in range(K):
            if k != a and count[k] > 0:
                rise = _join(data, indices, first, last, factor, k, sums, size[k], mass[k], s, w) - alone
                if rise < least:
                    best, least = k, rise
        best = destination(home, best, least, lam, gain, held < most, count)
        if best < 0:
            continue
        if best == K:
            return t, moved
        count[a] -= 1
        for q in range(first, last):
            sums[indices[q], a] = less(sums[indices[q], a], data[q] * factor, tiny)
        size[a], mass[a] = max(size[a] - s, 0.0), max(mass[a] - w, 1e-15 * mass[a])
        if count[a] == 0:  # exactly empty: no rounding may be left behind
            sums[:, a], size[a], mass[a] = pseudo, pseudo.sum(), eta
            held -= 1
        if count[best] == 0:
            held += 1
        for q in range(first, last):
            sums[indices[q], best] += data[q] * factor
        size[best], mass[best], count[best], labels[i] = size[best] + s, mass[best] + w, count[best] + 1, best
        moved += w
    return order.shape[0], moved
