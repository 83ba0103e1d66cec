"""Soft assignments to the components of a mixture and the sums they need."""

import numpy as np


def subtract_squares(products, shift, first, scores):
    """``scores[i, first + k] -= 1/2 sum_d (products[i, d K + k] - shift[d, k])^2``."""
    D, K = shift.shape
    gap = products.reshape(-1, D, K) - shift
    scores[:, first : first + K] -= 0.5 * (gap * gap).sum(axis=1)


def weighted_scores(rows, precision, mean, offset, scores):
    """``scores[i, k] = -1/2 sum_d precision[d, k] (rows[i, d] - mean[d, k])^2 - offset[k]``."""
    gap = rows[:, :, None] - mean
    scores[:] = -0.5 * (precision * gap * gap).sum(axis=1) - offset


def soften(scores, log_weight, resp, lse):
    """Fill ``lse[i] = log sum_k exp(scores[i, k] + log_weight[k])`` and ``resp[k, i]``, the shares of its terms.

    Shares below 1e-16 of the largest are zero: they change no sum by more than rounding does.
    """
    values = scores + log_weight
    top = values.max(axis=1)
    gap = values - top[:, None]
    terms = np.where(gap > -37.0, np.exp(gap), 0.0)
    total = terms.sum(axis=1)
    lse[:] = top + np.log(total)
    resp[:] = (terms / total[:, None]).T


def collect(rows, weight, resp, centre, out):
    """Write ``sqrt(w) (1, row - centre)``, ``w = weight * resp``, of the rows with w > 0 to ``out``; their number."""
    w = weight * resp
    some = np.flatnonzero(w > 0)
    root = np.sqrt(w[some])[:, None]
    out[: some.size, :1] = root
    out[: some.size, 1:] = root * (rows[some] - centre)
    return some.size


def add_squares(rows, weight, resp, centre, mass, first, second):
    """Add the sums of w, w (x - centre_k) and w (x - centre_k)^2, ``w = weight * resp[k]``, for every component."""
    for k in range(centre.shape[0]):
        w, gap = (weight * resp[k])[:, None], rows - centre[k]
        mass[k] += w.sum()
        first[k] += (w * gap).sum(axis=0)
        second[k] += (w * gap * gap).sum(axis=0)
