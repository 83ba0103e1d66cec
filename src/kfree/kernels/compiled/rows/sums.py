"""Costs of rows to their own centres, and sums of rows by label; always in float64."""

import numpy as np

from kfree.kernels.compiled.cache import njit
from kfree.kernels.compiled.clusters.bounds import near_threshold, unsettled
from kfree.kernels.compiled.simd.wide_rows import LANES, wide_distance, wide_product


@njit(nogil=True, cache=True, fastmath={"contract"})
def own_dense(X, rows, shift, scale, labels, coef, offset, cost):  # noqa: D103
    p = X.shape[1]
    stop = p - p % LANES
    for t in range(rows.shape[0]):
        i, k = rows[t], labels[t]
        factor = scale[i] if scale.shape[0] else 1.0
        product = wide_product(X, i, shift, factor, coef, k, stop) if stop else 0.0  # type: ignore[call-arg]
        for j in range(stop, p):
            product += (X[i, j] - shift[j]) * factor * coef[k, j]
        cost[t] = offset[k] - product


@njit(nogil=True, cache=True, fastmath={"contract"})
def own_csr(data, indices, indptr, rows, scale, labels, coef, offset, cost):  # noqa: D103
    for t in range(rows.shape[0]):
        i, k = rows[t], labels[t]
        factor = scale[i] if scale.shape[0] else 1.0
        product = 0.0
        for q in range(indptr[i], indptr[i + 1]):
            product += data[q] * factor * coef[k, indices[q]]
        cost[t] = offset[k] - product


@njit(nogil=True, cache=True, fastmath={"contract"})
def add_dense(X, rows, shift, scale, weight, labels, total, mass):  # noqa: D103
    p = X.shape[1]
    if not weight.shape[0] and not scale.shape[0]:
        for t in range(rows.shape[0]):
            i, k = rows[t], labels[t]
            if k >= 0:
                mass[k] += 1.0
                for j in range(p):
                    total[k, j] += X[i, j] - shift[j]
        return
    for t in range(rows.shape[0]):
        i, k = rows[t], labels[t]
        if k < 0:
            continue
        w = weight[i] if weight.shape[0] else 1.0
        factor = w * (scale[i] if scale.shape[0] else 1.0)
        mass[k] += w
        for j in range(p):
            total[k, j] += (X[i, j] - shift[j]) * factor


@njit(nogil=True, cache=True, fastmath={"contract"})
def add_csr(data, indices, indptr, rows, scale, weight, labels, total, mass):  # noqa: D103
    for t in range(rows.shape[0]):
        i, k = rows[t], labels[t]
        if k < 0:
            continue
        w = weight[i] if weight.shape[0] else 1.0
        factor = w * (scale[i] if scale.shape[0] else 1.0)
        mass[k] += w
        for q in range(indptr[i], indptr[i + 1]):
            total[k, indices[q]] += data[q] * factor


@njit(nogil=True, cache=True, fastmath={"contract"})
def distance_dense(X, rows, shift, scale, labels, mean, square):  # noqa: D103
    p = X.shape[1]
    stop = p - p % LANES
    for t in range(rows.shape[0]):
        i, k = rows[t], labels[t]
        factor = scale[i] if scale.shape[0] else 1.0
        total = wide_distance(X, i, shift, factor, mean, k, stop) if stop else 0.0  # type: ignore[call-arg]
        for j in range(stop, p):
            gap = (X[i, j] - shift[j]) * factor - mean[k, j]
            total += gap * gap
        square[t] = total


@njit(nogil=True, cache=True, fastmath={"contract"})
def measure_dense(  # noqa: D103
    X, rows, shift, scale, labels, mean, factor, base, unit, alone, size, lam, low, cost, left, close
):
    distance_dense(X, rows, shift, scale, labels, mean, cost)
    for t in range(rows.shape[0]):
        cost[t] *= factor
    # one call where there could be three: other threads wait at every return to Python
    return unsettled(cost, base, size, low, left), near_threshold(cost, unit, alone, base, size, lam, close)


@njit(nogil=True, cache=True)
def tally(weight, labels, cost, before, reach):  # noqa: D103
    changed, paid = 0.0, 0.0
    weighted = weight.shape[0] > 0
    for t in range(labels.shape[0]):
        k, c = labels[t], cost[t]
        w = weight[t] if weighted else 1.0
        if k != before[t]:
            before[t] = k
            changed += w
        if w > 0:
            paid += w * c
        if not c <= reach[k]:
            reach[k] = c
    return changed, paid


@njit(nogil=True, cache=True, fastmath={"contract"})
def tally_dense(X, rows, shift, scale, weight, labels, cost, before, total, mass, reach):  # noqa: D103
    add_dense(X, rows, shift, scale, weight, labels, total, mass)
    return tally(weight, labels, cost, before, reach)


@njit(nogil=True, cache=True, fastmath={"contract"})
def distance_csr(data, indices, indptr, rows, scale, labels, mean, norm, square):  # noqa: D103
    for t in range(rows.shape[0]):
        i, k = rows[t], labels[t]
        factor = scale[i] if scale.shape[0] else 1.0
        total = norm[k]
        for q in range(indptr[i], indptr[i + 1]):
            centre = mean[k, indices[q]]
            gap = data[q] * factor - centre
            total += gap * gap - centre * centre
        square[t] = max(total, 0.0)


@njit(nogil=True, cache=True, fastmath={"contract"})
def two_means_dense(X, rows, shift, scale, weight, labels, steps, mean, usable):  # noqa: D103
    C, p = usable.shape[0], mean.shape[1]
    coef, offset, value = np.empty((C, p)), np.empty(C), np.empty(rows.shape[0])
    total, mass, side = np.empty_like(mean), np.empty(2 * C), np.empty(rows.shape[0], np.int32)
    for _ in range(steps):
        for c in range(C):
            offset[c] = 0.0
            for j in range(p):
                gap = mean[2 * c, j] - mean[2 * c + 1, j]
                coef[c, j] = 2 * gap
                offset[c] += gap * (mean[2 * c, j] + mean[2 * c + 1, j])
        own_dense(X, rows, shift, scale, labels, coef, offset, value)
        for t in range(rows.shape[0]):
            side[t] = 2 * labels[t] + (value[t] > 0)
        total[:], mass[:] = 0.0, 0.0
        add_dense(X, rows, shift, scale, weight, side, total, mass)
        for c in range(C):
            usable[c] = usable[c] and mass[2 * c] > 0 and mass[2 * c + 1] > 0
            if usable[c]:
                for k in range(2 * c, 2 * c + 2):
                    for j in range(p):
                        mean[k, j] = total[k, j] / mass[k]
