"""Nearest centres of many rows."""

import numpy as np
from numba import njit

from kfree.kernels.compiled.tile import GROUP, STRIP, WIDTH, sparse_costs, two_least

_GROUP = GROUP
_WIDTH = WIDTH
_STRIP = STRIP


@njit(nogil=True, cache=True)
def _panels(coef, offset):
    """Centres in groups of GROUP with columns outside, the order in which the tile reads them."""
    K, p = coef.shape
    P = (K + _GROUP - 1) // _GROUP
    panels = np.zeros((P, p, _GROUP), coef.dtype)
    padded = np.full((P, _GROUP), np.inf, coef.dtype)
    for k in range(K):
        padded[k // _GROUP, k % _GROUP] = offset[k]
        for j in range(p):
            panels[k // _GROUP, j, k % _GROUP] = coef[k, j]
    return panels, padded


@njit(nogil=True, cache=True)
def nearest_dense(X, rows, shift, scale, coef, offset, reach, labels, least, second, slack):  # noqa: D103
    n, p = rows.shape[0], X.shape[1]
    lanes = _WIDTH // coef.itemsize
    panels, padded = _panels(coef, offset)
    tile = np.zeros((p, lanes), coef.dtype)
    last_labels, last_least, last_second = np.empty(lanes, np.int32), np.empty(lanes), np.empty(lanes)
    one_norm, two_norm = np.empty(lanes), np.empty(lanes)
    bounded = reach[0] > 0 or reach[1] > 0
    for start in range(0, n, lanes):
        m = min(lanes, n - start)
        for r in range(m):
            i = rows[start + r]
            factor = scale[i] if scale.shape[0] else 1.0
            for j in range(p):
                tile[j, r] = (X[i, j] - shift[j]) * factor
        if m == lanes:
            two_least(tile, panels, padded, start, labels, least, second)  # type: ignore[call-arg]
        else:
            two_least(tile, panels, padded, 0, last_labels, last_least, last_second)  # type: ignore[call-arg]
            labels[start:], least[start:], second[start:] = last_labels[:m], last_least[:m], last_second[:m]
        slack[start : start + m] = 0.0
        if bounded:
            one_norm[:], two_norm[:] = 0.0, 0.0
            for j in range(p):
                for r in range(lanes):
                    value = np.float64(tile[j, r])  # its square may leave the range of float32
                    one_norm[r] += abs(value)
                    two_norm[r] += value * value
            for r in range(m):
                slack[start + r] = min(np.sqrt(two_norm[r]) * reach[0], one_norm[r] * reach[1])


@njit(nogil=True, cache=True)
def pack_dense(X, rows, shift, scale, first):
    """Rows as the tile reads them, (tiles, p, lanes) of the type of ``first``: for tables that are read many times."""
    n, p = rows.shape[0], X.shape[1]
    lanes = _WIDTH // first.itemsize
    packed = np.zeros(((n + lanes - 1) // lanes, p, lanes), first.dtype)
    for t in range(n):
        i = rows[t]
        factor = scale[i] if scale.shape[0] else 1.0
        for j in range(p):
            packed[t // lanes, j, t % lanes] = (X[i, j] - shift[j]) * factor
    return packed


@njit(nogil=True, cache=True)
def nearest_packed(packed, coef, offset, labels, least, second):
    """``nearest_dense`` of packed rows; ``labels``, ``least`` and ``second`` have room for whole tiles."""
    panels, padded = _panels(coef, offset)
    for b in range(packed.shape[0]):
        start = b * packed.shape[2]
        two_least(packed[b], panels, padded, start, labels, least, second)  # type: ignore[call-arg]


@njit(nogil=True, cache=True)
def nearest_csr(data, indices, indptr, rows, scale, coef_t, offset, reach, labels, least, second, slack):  # noqa: D103
    K = offset.shape[0]
    width = _STRIP * (_WIDTH // coef_t.itemsize)
    costs = np.empty(width, coef_t.dtype)
    bounded = reach[0] > 0 or reach[1] > 0
    for t in range(rows.shape[0]):
        i = rows[t]
        first, last = indptr[i], indptr[i + 1]
        factor = scale[i] if scale.shape[0] else 1.0
        low, low2, arg = np.inf, np.inf, 0
        for centre in range(0, K, width):
            sparse_costs(data, indices, first, last, factor, coef_t, offset, centre, costs)  # type: ignore[call-arg]
            for k in range(width):
                cost = np.float64(costs[k])
                if cost < low2:
                    if cost < low:
                        low2, low, arg = low, cost, centre + k
                    else:
                        low2 = cost
        labels[t], least[t], second[t] = arg, low, low2
        slack[t] = 0.0
        if bounded:
            one_norm, two_norm = 0.0, 0.0
            for q in range(first, last):
                value = data[q] * factor
                one_norm += abs(value)
                two_norm += value * value
            slack[t] = min(np.sqrt(two_norm) * reach[0], one_norm * reach[1])
