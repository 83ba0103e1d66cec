"""Nodes that stand for many rows under Gaussians with full covariance; covariances are packed upper triangles."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _half_square(row, centre, root, whitened):
    """Half the squared length of (row - centre)' root; root is upper triangular."""
    D = row.shape[0]
    whitened[:] = 0.0
    for d in range(D):
        gap = row[d] - centre[d]
        for e in range(d, D):
            whitened[e] += gap * root[d, e]
    total = 0.0
    for e in range(D):
        total += whitened[e] * whitened[e]
    return 0.5 * total


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _product(a, b):
    total = 0.0
    for q in range(a.shape[0]):
        total += a[q] * b[q]
    return total


@njit(nogil=True, cache=True)
def half_precisions(root, packed):  # noqa: D103
    D = root.shape[1]
    for k in range(root.shape[0]):
        place = 0
        for d in range(D):
            for e in range(d, D):
                value = _product(root[k, d, e:], root[k, e, e:])  # rows of an upper triangle
                packed[k, place] = 0.5 * value if d == e else value
                place += 1


@njit(nogil=True, cache=True)
def node_scores(mean, second, root, packed, centre, offset, scores):  # noqa: D103
    whitened = np.empty(mean.shape[1])
    for i in range(mean.shape[0]):
        for k in range(offset.shape[0]):
            distance = _half_square(mean[i], centre[k], root[k], whitened)
            scores[i, k] = -distance - _product(second[i], packed[k]) - offset[k]


@njit(nogil=True, cache=True, fastmath={"contract"})
def node_sums(mean, second, n, resp, centre, mass, first, packed):  # noqa: D103
    D = mean.shape[1]
    gap = np.empty(D)
    for k in range(centre.shape[0]):
        for i in range(mean.shape[0]):
            w = n[i] * resp[k, i]
            if not w > 0.0:
                continue
            mass[k] += w
            for d in range(D):
                gap[d] = mean[i, d] - centre[k, d]
                first[k, d] += w * gap[d]
            place = 0
            for d in range(D):
                scaled = w * gap[d]
                for e in range(d, D):
                    packed[k, place] += w * second[i, place] + scaled * gap[e]
                    place += 1
