"""Nodes of a tree of compressed sparse rows: only the order of the rows changes, never the table."""

import numpy as np
import scipy.sparse as sp

from kfree.kernels.reference.rows.tree import _apart_widest, _exchanges, _leading


def _rows(data, indices, indptr, rows, p):
    return sp.csr_matrix((data, indices, indptr), shape=(indptr.size - 1, p))[rows].astype(float).toarray()


def halve_csr(data, indices, indptr, order, start, stop, mean, direction, margin, cut):
    """Part the rows of each slice of ``order`` by the side of its mean they are on; as ``halve_dense``."""
    for t in range(start.shape[0]):
        part = order[start[t] : stop[t]]
        x = _rows(data, indices, indptr, part, mean.shape[1])
        beyond = x @ direction[t] - mean[t] @ direction[t] > margin[t]
        if beyond.all() or not beyond.any():
            beyond = _apart_widest(x)
        count, front, back = _exchanges(beyond)
        part[front], part[back] = part[back].copy(), part[front].copy()
        cut[t] = start[t] + count


def alike_csr(data, indices, indptr, order, start, stop, alike):
    """Whether the rows of each slice of ``order`` are copies of one another; there are no stored zeros."""
    p = int(indices.max(initial=-1)) + 1
    for t in range(start.shape[0]):
        x = _rows(data, indices, indptr, order[start[t] : stop[t]], p)
        alike[t] = (x == x[:1]).all()


def mean_csr(data, indices, indptr, weight, log_h, order, start, stop, n, mean, level):
    """Weight, mean and mean log h of each slice of ``order``."""
    for t in range(start.shape[0]):
        rows = order[start[t] : stop[t]]
        w = weight[rows] if weight.size else np.ones(rows.size)
        n[t] = w.sum()
        level[t] = w @ log_h[rows] / n[t] if log_h.size else 0.0
        mean[t] = w @ _rows(data, indices, indptr, rows, mean.shape[1]) / n[t]


def leading_csr(data, indices, indptr, weight, order, start, stop, mean, steps, tolerance, direction):
    """Leading eigenvector of the covariance of each slice of ``order``; as ``leading_dense``."""
    for t in range(start.shape[0]):
        rows = order[start[t] : stop[t]]
        w = weight[rows] if weight.size else np.ones(rows.size)
        gap = _rows(data, indices, indptr, rows, mean.shape[1]) - mean[t]
        direction[t] = _leading((gap * w[:, None]).T @ gap)
