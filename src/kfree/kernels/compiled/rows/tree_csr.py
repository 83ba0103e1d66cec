"""Nodes of a tree of compressed sparse rows: only the order of the rows changes, never the table."""

import numpy as np

from kfree.kernels.compiled.cache import njit
from kfree.kernels.compiled.rows.tree import _normalise, first_largest


@njit(nogil=True, cache=True, fastmath={"contract"})
def _product(data, indices, indptr, i, vector):
    product = 0.0
    for q in range(indptr[i], indptr[i + 1]):
        product += data[q] * vector[indices[q]]
    return product


@njit(nogil=True, cache=True)
def _differs(data, indices, indptr, i, k):
    m = indptr[i + 1] - indptr[i]
    if m != indptr[k + 1] - indptr[k]:
        return True
    for q in range(m):
        if indices[indptr[i] + q] != indices[indptr[k] + q] or data[indptr[i] + q] != data[indptr[k] + q]:
            return True
    return False


@njit(nogil=True, cache=True)
def _part(beyond, order, first):
    i, j = 0, beyond.shape[0] - 1
    while True:
        while i <= j and not beyond[i]:
            i += 1
        while i < j and beyond[j]:
            j -= 1
        if i >= j:
            return first + i
        order[first + i], order[first + j] = order[first + j], order[first + i]
        i += 1
        j -= 1


@njit(nogil=True, cache=True)
def _widest_range(data, indices, indptr, order, first, last, p):
    """Column of the largest range, the first if there are several, and a value that parts it; -1 if all rows agree."""
    low, high, stored = np.full(p, np.inf), np.full(p, -np.inf), np.zeros(p, np.int64)
    for s in range(first, last):
        for q in range(indptr[order[s]], indptr[order[s] + 1]):
            c = indices[q]
            low[c], high[c] = min(low[c], data[q]), max(high[c], data[q])
            stored[c] += 1
    widest, least, most = -1, 0.0, 0.0
    for c in range(p):
        if stored[c] < last - first:
            low[c], high[c] = min(low[c], 0.0), max(high[c], 0.0)
        if high[c] - low[c] > most - least:
            widest, least, most = c, low[c], high[c]
    border = 0.5 * least + 0.5 * most
    return widest, border if least <= border < most else least


@njit(nogil=True, cache=True)
def _entry(data, indices, indptr, i, c):
    for q in range(indptr[i], indptr[i + 1]):
        if indices[q] == c:
            return data[q]
    return 0.0


@njit(nogil=True, cache=True)
def halve_csr(data, indices, indptr, order, start, stop, mean, direction, margin, cut):  # noqa: D103
    for t in range(start.shape[0]):
        first, last = start[t], stop[t]
        beyond = np.empty(last - first, np.bool_)
        middle = (mean[t] * direction[t]).sum()
        for i in range(last - first):
            beyond[i] = _product(data, indices, indptr, order[first + i], direction[t]) - middle > margin[t]
        cut[t] = _part(beyond, order, first)
        if cut[t] == first or cut[t] == last:
            widest, border = _widest_range(data, indices, indptr, order, first, last, mean.shape[1])
            for i in range(last - first):
                beyond[i] = widest >= 0 and _entry(data, indices, indptr, order[first + i], widest) > border
            cut[t] = _part(beyond, order, first)


@njit(nogil=True, cache=True)
def alike_csr(data, indices, indptr, order, start, stop, alike):  # noqa: D103
    for t in range(start.shape[0]):
        alike[t] = True
        for i in range(start[t] + 1, stop[t]):
            if _differs(data, indices, indptr, order[i], order[start[t]]):
                alike[t] = False
                break


@njit(nogil=True, cache=True)
def mean_csr(data, indices, indptr, weight, log_h, order, start, stop, n, mean, level):  # noqa: D103
    for t in range(start.shape[0]):
        mass, height = 0.0, 0.0
        mean[t] = 0.0
        for s in range(start[t], stop[t]):
            i = order[s]
            w = weight[i] if weight.shape[0] else 1.0
            mass += w
            if log_h.shape[0]:
                height += w * log_h[i]
            for q in range(indptr[i], indptr[i + 1]):
                mean[t, indices[q]] += w * data[q]
        n[t], level[t] = mass, height / mass
        mean[t] /= mass


@njit(nogil=True, cache=True)
def _covariance_times(data, indices, indptr, weight, order, first, last, mean, vector, out):
    """sum w (x - mean) <x - mean, vector>."""
    middle, total = (mean * vector).sum(), 0.0
    out[:] = 0.0
    for s in range(first, last):
        i = order[s]
        product = _product(data, indices, indptr, i, vector) - middle
        if weight.shape[0]:
            product *= weight[i]
        total += product
        for q in range(indptr[i], indptr[i + 1]):
            out[indices[q]] += product * data[q]
    out -= total * mean


@njit(nogil=True, cache=True)
def _widest(data, indices, indptr, weight, order, first, last, mean):
    """The column of the largest variance, or -1 if all are zero."""
    square, mass = np.zeros(mean.shape[0]), 0.0
    for s in range(first, last):
        i = order[s]
        w = weight[i] if weight.shape[0] else 1.0
        mass += w
        for q in range(indptr[i], indptr[i + 1]):
            c = indices[q]
            square[c] += w * data[q] * (data[q] - 2.0 * mean[c])
    square += mass * mean * mean
    widest = first_largest(square)
    return widest if square[widest] > 0.0 else -1


@njit(nogil=True, cache=True)
def leading_csr(data, indices, indptr, weight, order, start, stop, mean, steps, tolerance, direction):  # noqa: D103
    vector = np.empty(mean.shape[1])
    for t in range(start.shape[0]):
        direction[t] = 0.0
        widest = _widest(data, indices, indptr, weight, order, start[t], stop[t], mean[t])
        if widest < 0:
            continue
        now = np.zeros(mean.shape[1])
        now[widest] = 1.0
        for _ in range(steps):
            _covariance_times(data, indices, indptr, weight, order, start[t], stop[t], mean[t], now, vector)
            if _normalise(vector) == 0.0:
                break
            change = ((vector - now) ** 2).sum()
            now[:] = vector
            if change <= tolerance:
                break
        direction[t] = now
