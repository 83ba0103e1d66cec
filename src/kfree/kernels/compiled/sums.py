"""Costs of rows to their own centres, and sums of rows by label; always in float64."""

from numba import njit

from kfree.kernels.compiled.decide import near_threshold, unsettled
from kfree.kernels.compiled.wide import LANES, wide_distance, wide_product


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
