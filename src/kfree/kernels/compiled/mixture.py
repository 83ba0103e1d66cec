"""Soft assignments to the components of a mixture and the sums they need; see the reference for the formulas."""

import numpy as np
from numba import njit

# exp of this is below 1e-16: nothing next to 1.
_NEGLIGIBLE = -37.0
# Rows that are handled side by side.
_LANES = 32


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


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _lane_scores(block, centre, lower, height, top, gap, along, scores):
    """Scores of a block of rows, a row in each lane, under one component; too high where all are negligible beside
    ``top``, but still negligible. An even number of columns: two at a time keep sums in registers for longer."""
    for i in range(_LANES):
        scores[i] = height
    for e in range(0, block.shape[0], 2):
        for i in range(_LANES):
            gap[e, i], gap[e + 1, i] = block[e, i] - centre[e], block[e + 1, i] - centre[e + 1]
            along[0, i] = lower[e, e] * gap[e, i]
            along[1, i] = lower[e + 1, e] * gap[e, i] + lower[e + 1, e + 1] * gap[e + 1, i]
        for d in range(0, e, 2):
            a, b, f, g = lower[e, d], lower[e, d + 1], lower[e + 1, d], lower[e + 1, d + 1]
            for i in range(_LANES):
                one, two = gap[d, i], gap[d + 1, i]
                along[0, i] += a * one + b * two
                along[1, i] += f * one + g * two
        for i in range(_LANES):
            scores[i] -= 0.5 * (along[0, i] * along[0, i] + along[1, i] * along[1, i])
        if e % 4 == 2:
            alive = 0
            for i in range(_LANES):
                alive += scores[i] - top[i] > _NEGLIGIBLE
            if alive == 0:
                return


@njit(nogil=True, cache=True)
def assign_rows(rows, lower, centre, height, labels, lse):  # noqa: D103
    n, D = rows.shape
    K, even, likeliest = height.shape[0], D + D % 2, 0
    padded, middle = np.zeros((K, even, even)), np.zeros((K, even))
    padded[:, :D, :D], middle[:, :D] = lower, centre
    block, gap, scores = np.zeros((even, _LANES)), np.empty((even, _LANES)), np.empty((K, _LANES))
    top, along, best, total = np.empty(_LANES), np.empty((2, _LANES)), np.empty(_LANES, np.int64), np.empty(_LANES)
    for start in range(0, n, _LANES):
        m = min(_LANES, n - start)
        for i in range(m):
            for d in range(D):
                block[d, i] = rows[start + i, d]
        for i in range(m, _LANES):  # copies of the last row
            block[:, i] = block[:, m - 1]
        top[:], best[:], total[:] = -np.inf, 0, 0.0
        k = likeliest
        for step in range(K):  # that of the last row first, as neighbours may be alike; the last component last
            _lane_scores(block, middle[k], padded[k], height[k], top, gap, along, scores[k])
            for i in range(_LANES):
                better = scores[k, i] > top[i] or (scores[k, i] == top[i] and k < best[i])
                best[i] = k if better and k < K - 1 else best[i]
                top[i] = scores[k, i] if better else top[i]
            k = step + 1 if step >= likeliest else step
        for k in range(K):
            for i in range(_LANES):
                beside = scores[k, i] - top[i]
                if beside > _NEGLIGIBLE:
                    total[i] += np.exp(beside)
        for i in range(m):
            labels[start + i], lse[start + i] = best[i], top[i] + np.log(total[i])
        likeliest = best[m - 1]
