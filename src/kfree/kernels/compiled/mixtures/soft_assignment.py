"""Soft assignments to the components of a mixture and the sums they need; see the reference for the formulas."""

import numpy as np

from kfree.kernels.compiled.cache import njit

# exp of this is below 1e-16: nothing next to 1.
_NEGLIGIBLE = -37.0


@njit(nogil=True, cache=True)
def subtract_squares(products, shift, first, scores):  # noqa: D103
    D, K = shift.shape
    total = np.empty(K)
    for i in range(products.shape[0]):
        total[:] = 0.0
        for d in range(D):
            start = d * K
            for k in range(K):
                gap = products[i, start + k] - shift[d, k]
                total[k] += gap * gap
        for k in range(K):
            scores[i, first + k] -= 0.5 * total[k]


@njit(nogil=True, cache=True)
def weighted_scores(rows, precision, mean, offset, scores):  # noqa: D103
    D, K = mean.shape
    total = np.empty(K)
    for i in range(rows.shape[0]):
        total[:] = 0.0
        for d in range(D):
            x = rows[i, d]
            for k in range(K):
                gap = x - mean[d, k]
                total[k] += precision[d, k] * gap * gap
        for k in range(K):
            scores[i, k] = -0.5 * total[k] - offset[k]


@njit(nogil=True, cache=True)
def soften(scores, log_weight, resp, lse):  # noqa: D103
    m, K = scores.shape
    row = np.empty(K)
    for i in range(m):
        top = -np.inf
        for k in range(K):
            row[k] = scores[i, k] + log_weight[k]
            top = max(top, row[k])
        total = 0.0
        for k in range(K):
            gap = row[k] - top
            row[k] = np.exp(gap) if gap > _NEGLIGIBLE else 0.0
            total += row[k]
        lse[i] = top + np.log(total)
        for k in range(K):
            resp[k, i] = row[k] / total


@njit(nogil=True, cache=True)
def collect(rows, weight, resp, centre, out):  # noqa: D103
    D, count = rows.shape[1], 0
    for i in range(rows.shape[0]):
        w = weight[i] * resp[i]
        if w > 0.0:
            root = np.sqrt(w)
            out[count, 0] = root
            for d in range(D):
                out[count, d + 1] = root * (rows[i, d] - centre[d])
            count += 1
    return count


@njit(nogil=True, cache=True)
def add_squares(rows, weight, resp, centre, mass, first, second):  # noqa: D103
    D = rows.shape[1]
    for k in range(centre.shape[0]):
        for i in range(rows.shape[0]):
            w = weight[i] * resp[k, i]
            if w > 0.0:
                mass[k] += w
                for d in range(D):
                    gap = rows[i, d] - centre[k, d]
                    first[k, d] += w * gap
                    second[k, d] += w * gap * gap
