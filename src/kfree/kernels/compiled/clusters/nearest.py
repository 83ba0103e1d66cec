"""Nearest centres of many rows."""

import numpy as np

from kfree.kernels.compiled.cache import njit
from kfree.kernels.compiled.simd.pack import pack
from kfree.kernels.compiled.simd.tile import GROUP, STRIP, WIDTH, sparse_costs, two_least

_GROUP = GROUP
_WIDTH = WIDTH
_STRIP = STRIP
#: Tiles packed before they are read: what was just stored in small pieces is slow to load in large ones.
RUN = 16
_RUN = RUN


@njit(nogil=True, cache=True)
def panels_of(coef, offset):
    """Centres in groups of GROUP with columns outside, the order in which the tile reads them, and their offsets."""
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
def room_for(tiles, X, coef):
    """Room for so many tiles of rows, packed in the precision of the coefficients; zeros, as lanes may stay unused."""
    return np.zeros((tiles, X.shape[1], _WIDTH // coef.itemsize), coef.dtype)


@njit(nogil=True, cache=True)
def nearest_packed(tiles, centres, labels, least, second):
    """Two least costs of as many packed rows as there are ``labels``; ``centres`` as made by ``panels_of``."""
    panels, offset = centres
    n, lanes = labels.shape[0], tiles.shape[2]
    for b in range(n // lanes):
        two_least(tiles[b], panels, offset, b * lanes, labels, least, second)  # type: ignore[call-arg]
    whole = n - n % lanes
    if whole < n:
        last, low, low2 = np.empty(lanes, np.int32), np.empty(lanes), np.empty(lanes)
        two_least(tiles[n // lanes], panels, offset, 0, last, low, low2)  # type: ignore[call-arg]
        for r in range(n - whole):
            labels[whole + r], least[whole + r], second[whole + r] = last[r], low[r], low2[r]


@njit(nogil=True, cache=True)
def _magnitudes(tiles, reach, slack):
    """Bounds on the products of packed rows with coefficients of this reach: two forms of Hölder's inequality."""
    lanes = tiles.shape[2]
    one_norm, two_norm = np.empty(lanes), np.empty(lanes)
    for start in range(0, slack.shape[0], lanes):
        one_norm[:], two_norm[:] = 0.0, 0.0
        tile = tiles[start // lanes]
        for j in range(tile.shape[0]):
            for r in range(lanes):
                value = np.float64(tile[j, r])  # its square may leave the range of float32
                one_norm[r] += abs(value)
                two_norm[r] += value * value
        for r in range(min(lanes, slack.shape[0] - start)):
            slack[start + r] = min(np.sqrt(two_norm[r]) * reach[0], one_norm[r] * reach[1])


@njit(nogil=True, cache=True)
def nearest_dense(X, rows, shift, scale, coef, offset, reach, labels, least, second, slack):  # noqa: D103
    centres, tiles = panels_of(coef, offset), room_for(_RUN, X, coef)
    run = tiles.shape[0] * tiles.shape[2]
    for start in range(0, rows.shape[0], run):
        part = slice(start, min(start + run, rows.shape[0]))
        pack(X, rows[part], shift, scale, tiles)
        nearest_packed(tiles, centres, labels[part], least[part], second[part])
        if reach[0] > 0 or reach[1] > 0:
            _magnitudes(tiles, reach, slack[part])
        else:
            slack[part] = 0.0


@njit(nogil=True, cache=True)
def pack_dense(X, rows, shift, scale, first):
    """Rows packed in the precision of ``first``: for tables that are read many times."""
    tiles = room_for(-(-rows.shape[0] // (_WIDTH // first.itemsize)), X, first)
    pack(X, rows, shift, scale, tiles)
    return tiles


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
