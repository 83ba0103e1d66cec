"""Costs of rows to their own centres, and sums of rows by label; always in float64."""

import numpy as np
import scipy.sparse as sp

from kfree.kernels.reference.clusters.bounds import near_threshold, unsettled


def _dense(X, rows, shift, scale):
    x = X[rows].astype(float) - shift
    return x * scale[rows, None] if scale.size else x


def _csr(data, indices, indptr, rows, scale, p):
    x = sp.csr_matrix((data, indices, indptr), shape=(indptr.size - 1, p))[rows].astype(float).toarray()
    return x * scale[rows, None] if scale.size else x


def own_dense(X, rows, shift, scale, labels, coef, offset, cost):
    """``offset[k] - <x, coef[k]>`` for row i = rows[t] and k = labels[t]; fills ``cost``."""
    cost[:] = offset[labels] - (_dense(X, rows, shift, scale) * coef[labels]).sum(axis=1)


def own_csr(data, indices, indptr, rows, scale, labels, coef, offset, cost):
    """The same for compressed sparse rows."""
    x = _csr(data, indices, indptr, rows, scale, coef.shape[1])
    cost[:] = offset[labels] - (x * coef[labels]).sum(axis=1)


def _add(x, rows, weight, labels, total, mass):
    keep = labels >= 0
    w = weight[rows[keep]] if weight.size else np.ones(int(keep.sum()))
    np.add.at(mass, labels[keep], w)
    np.add.at(total, labels[keep], x[keep] * w[:, None])


def add_dense(X, rows, shift, scale, weight, labels, total, mass):
    """Add w x to ``total[k]`` and w to ``mass[k]``, k = labels[t] (skipped if negative), in the order of rows."""
    _add(_dense(X, rows, shift, scale), rows, weight, labels, total, mass)


def add_csr(data, indices, indptr, rows, scale, weight, labels, total, mass):
    """The same for compressed sparse rows."""
    _add(_csr(data, indices, indptr, rows, scale, total.shape[1]), rows, weight, labels, total, mass)


def distance_dense(X, rows, shift, scale, labels, mean, square):
    """Squared Euclidean distance of each row from the mean of its label; fills ``square``."""
    gap = _dense(X, rows, shift, scale) - mean[labels]
    square[:] = (gap * gap).sum(axis=1)


def measure_dense(X, rows, shift, scale, labels, mean, factor, base, unit, alone, size, lam, low, cost, left, close):
    """``factor`` times the squared distance of each row from the mean of its label; fills ``cost``.

    Also lists what ``unsettled`` and ``near_threshold`` list of it, and returns their two counts.
    """
    distance_dense(X, rows, shift, scale, labels, mean, cost)
    cost *= factor
    return unsettled(cost, base, size, low, left), near_threshold(cost, unit, alone, base, size, lam, close)


def tally(weight, labels, cost, before, reach):
    """Raise ``reach[k]`` to the largest cost of the rows of label k, and set ``before`` to ``labels``.

    Returns the weight of the rows whose label changed, and the weighted sum of costs.
    """
    w = weight if weight.size else np.ones(labels.size)
    changed = w[labels != before].sum()
    before[:] = labels
    np.maximum.at(reach, labels, cost)
    return float(changed), float((w[w > 0] * cost[w > 0]).sum())


def distance_csr(data, indices, indptr, rows, scale, labels, mean, norm, square):
    """The same for compressed sparse rows; ``norm`` holds the squared norms of the means."""
    gap = _csr(data, indices, indptr, rows, scale, mean.shape[1]) - mean[labels]
    square[:] = (gap * gap).sum(axis=1)


def two_means_dense(X, rows, shift, scale, weight, labels, steps, mean, usable):
    """Two-means in many clusters at once: ``steps`` times each row of cluster c goes to the nearer of ``mean[2 c]`` and
    ``mean[2 c + 1]`` (a tie to the first), and both move to the means of their rows. A cluster one of whose sides
    has no weight is no longer ``usable``, and its means stay where they are."""
    for _ in range(steps):
        square = np.empty((2, rows.size))
        for side in (0, 1):
            distance_dense(X, rows, shift, scale, 2 * labels + side, mean, square[side])
        total, mass = np.zeros_like(mean), np.zeros(mean.shape[0])
        add_dense(X, rows, shift, scale, weight, 2 * labels + (square[0] > square[1]), total, mass)
        usable &= (mass.reshape(-1, 2) > 0).all(axis=1)
        move = np.repeat(usable, 2)
        mean[move] = total[move] / mass[move, None]
