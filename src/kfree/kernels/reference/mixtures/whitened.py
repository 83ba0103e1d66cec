"""Single rows under Gaussians with full covariance: ``W[i, k] = height[k] - 1/2 |lower_k (rows_i - centre_k)|^2``."""

import numpy as np
from scipy.special import logsumexp, xlogy


def _scores(rows, lower, centre, height):
    scores = np.empty((rows.shape[0], height.shape[0]))
    for k in range(height.shape[0]):
        gap = (rows - centre[k]) @ lower[k].T
        scores[:, k] = height[k] - 0.5 * (gap * gap).sum(axis=1)
    return scores


def assign_rows(rows, lower, centre, height, labels, lse):
    """Fill the argmax of all W but the last, and the logs of the sums of their exponentials."""
    scores = _scores(rows, lower, centre, height)
    labels[:], lse[:] = scores[:, :-1].argmax(axis=1), logsumexp(scores, axis=1)


def gains_apart(rows, n, first, lower, centre, height, share, gains):
    """Node t is the rows first[t]..first[t + 1], of weights n: fill what these gain, on average, by shares of their
    own instead of ``share[:, t]`` for all: ``logsumexp(W_i) - sum_k share_k (W_ik - log share_k)``."""
    scores, common = _scores(rows, lower, centre, height), np.repeat(share.T, np.diff(first), axis=0)
    gain = logsumexp(scores, axis=1) - (common * scores).sum(axis=1) + xlogy(common, common).sum(axis=1)
    gains[:] = np.add.reduceat(n * gain, first[:-1]) / np.add.reduceat(n, first[:-1])
