"""Nearest centres of many rows."""

import numpy as np
import scipy.sparse as sp


def _two_least(costs, labels, least, second):
    """Least and second least entry of each line, and the lowest index of the least."""
    line = np.arange(costs.shape[0])
    labels[:] = costs.argmin(axis=1)
    least[:] = costs[line, labels]
    others = costs.copy()
    others[line, labels] = np.inf
    second[:] = others.min(axis=1)


def _slack(x, reach):
    """Bound on the sum of |x_j coef_kj| over all k: two forms of Hölder's inequality; none is asked for at reach 0."""
    if not reach.any():
        return np.zeros(len(x))
    return np.minimum(np.sqrt((x * x).sum(axis=1)) * reach[0], np.abs(x).sum(axis=1) * reach[1])


def nearest_dense(X, rows, shift, scale, coef, offset, reach, labels, least, second, slack):
    """Two least of ``offset[k] - <x, coef[k]>`` over k, x = (X[i] - shift) * scale[i], for i in ``rows``.

    Fills, one entry per element of ``rows``: ``labels`` (lowest index of the least), ``least``, ``second`` and
    ``slack``, which bounds the magnitude of every product <x, coef[k]> (``reach``: largest 2-norm and largest
    entry of the coefficients). ``scale`` of length 0 stands for ones. Computes in the precision of ``coef``.
    """
    x = X[rows] - shift
    if scale.size:
        x = x * scale[rows, None]
    with np.errstate(over="ignore", invalid="ignore"):  # what leaves the range decides nothing
        x = x.astype(coef.dtype)
        _two_least(offset - x @ coef.T, labels, least, second)
    slack[:] = _slack(x.astype(float), reach)


def nearest_csr(data, indices, indptr, rows, scale, coef_t, offset, reach, labels, least, second, slack):
    """The same for compressed sparse rows (no shift); ``coef_t`` has columns outside, (p, K).

    Centres are padded to a multiple of 256 bytes, with zeros and an offset of +inf.
    """
    x = sp.csr_matrix((data, indices, indptr), shape=(indptr.size - 1, coef_t.shape[0]))[rows].astype(float)
    if scale.size:
        x = sp.csr_matrix(x.multiply(scale[rows, None]))
    with np.errstate(over="ignore", invalid="ignore"):
        _two_least(offset - x.astype(coef_t.dtype) @ coef_t, labels, least, second)
    slack[:] = _slack(x.toarray(), reach)
