"""Nodes of a tree of rows: slices are parted, summed, and their principal directions found."""

import numpy as np


def sum_rows(X, weight, origin, total):
    """Add the weighted sum of rows less an origin to ``total``; returns the size of the largest entry."""
    total += weight @ (X - origin)
    return float(np.abs(X.astype(np.float64)).max())


def place_rows(X, shift, scale, beyond, out):
    """Write ``(X - shift) / scale``, no entry of which is larger than ``beyond``."""
    with np.errstate(over="ignore"):
        np.clip((X - shift) / scale, -beyond, beyond, out=out)


def _exchanges(beyond):
    """Positions to swap so that rows beyond come last: the first of one kind with the last of the other."""
    count = int((~beyond).sum())
    front = np.flatnonzero(beyond[:count])
    back = count + np.flatnonzero(~beyond[count:])[::-1]
    return count, front, back


def _apart_widest(x):
    """Rows beyond the middle of the column with the largest range; none if all rows agree."""
    low, high = x.min(axis=0), x.max(axis=0)
    widest = int(np.argmax(high - low))
    border = 0.5 * low[widest] + 0.5 * high[widest]
    return x[:, widest] > (border if low[widest] <= border < high[widest] else low[widest])


def halve_dense(X, weight, log_h, order, start, stop, mean, direction, margin, cut):
    """Part the rows of each slice by the side of its mean they are on, in place; fills ``cut``, the border.

    Rows with <x - mean, direction> > margin come last. Where that parts nothing, the column with the largest range
    does; if all rows agree, ``cut`` is ``stop``. A ``cut`` that is not negative is given, and nothing moves.
    ``weight``, ``log_h`` (if there are any) and ``order`` move with the rows.
    """
    for t in np.flatnonzero(np.asarray(cut) < 0):
        rows = slice(start[t], stop[t])
        beyond = (X[rows] - mean[t]) @ direction[t] > margin[t]
        if beyond.all() or not beyond.any():
            beyond = _apart_widest(X[rows])
        count, front, back = _exchanges(beyond)
        for array in (X, weight, log_h, order):
            if array.size:
                part = array[rows]
                part[front], part[back] = part[back].copy(), part[front].copy()
        cut[t] = start[t] + count


def alike_dense(X, start, stop, alike):
    """Whether the rows of each slice are copies of one another."""
    for t in range(start.shape[0]):
        alike[t] = (X[start[t] : stop[t]] == X[start[t]]).all()


def mean_dense(X, weight, log_h, start, stop, centre, n, mean, level):
    """Weight, mean and mean log h of each slice; rows are summed about ``centre`` to keep their digits."""
    for t in range(start.shape[0]):
        rows = slice(start[t], stop[t])
        w = weight[rows] if weight.size else np.ones(stop[t] - start[t])
        n[t] = w.sum()
        level[t] = w @ log_h[rows] / n[t] if log_h.size else 0.0
        mean[t] = centre[t] + w @ (X[rows] - centre[t]) / n[t] if len(w) > 1 else X[start[t]]


def _centred(X, weight, first, last, mean):
    w = weight[first:last] if weight.size else np.ones(last - first)
    return w, X[first:last] - mean


def second_full(X, weight, start, stop, n, mean, second):
    """Covariance of each slice, upper triangle row by row."""
    upper = np.triu_indices(X.shape[1])
    for t in range(start.shape[0]):
        w, gap = _centred(X, weight, start[t], stop[t], mean[t])
        second[t] = ((gap * w[:, None]).T @ gap / n[t])[upper]


def second_diag(X, weight, start, stop, n, mean, second):
    """Variances of each slice."""
    for t in range(start.shape[0]):
        w, gap = _centred(X, weight, start[t], stop[t], mean[t])
        second[t] = w @ (gap * gap) / n[t]


def _leading(matrix):
    """Leading eigenvector; zero for a matrix of zeros."""
    if not np.trace(matrix) > 0:
        return np.zeros(matrix.shape[0])
    vector = np.linalg.eigh(matrix)[1][:, -1]
    # the sign a power iteration from the widest column arrives at
    start = matrix[np.argmax(np.diag(matrix))]
    return -vector if vector @ start < 0 else vector


def leading_packed(second, squarings, steps, tolerance, direction):
    """Leading eigenvectors of packed covariances, by so many squarings of the matrix and at most so many steps after.

    Steps end when the square of a change is within ``tolerance``. The twin finds the limit.
    """
    p = direction.shape[1]
    for t in range(second.shape[0]):
        matrix = np.zeros((p, p))
        matrix[np.triu_indices(p)] = second[t]
        direction[t] = _leading(matrix + np.triu(matrix, 1).T)


def part_nodes(
    X, weight, log_h, order, start, stop, mean, second, tie, squarings, steps, tolerance, cut,
    child_start, child_stop, child_n, child_mean, child_log_h, child_second, alike,
):  # fmt: skip
    """Part nodes along the leading directions of their packed covariances, rows within ``tie`` of a spread being on
    the lower side, and measure the children of those that come apart; returns the number of children."""
    direction, p = np.empty_like(mean), mean.shape[1]
    leading_packed(second, squarings, steps, tolerance, direction)
    diagonal = np.cumsum(np.arange(p, 0, -1)) - np.arange(p, 0, -1)
    margin = tie * np.sqrt(second[:, diagonal].sum(axis=1))
    halve_dense(X, weight, log_h, order, start, stop, mean, direction, margin, cut)
    apart = np.flatnonzero(cut < stop)
    count = 2 * apart.size
    child_start[:count] = np.stack([start[apart], cut[apart]], axis=1).ravel()
    child_stop[:count] = np.stack([cut[apart], stop[apart]], axis=1).ravel()
    first, last = child_start[:count], child_stop[:count]
    mean_dense(X, weight, log_h, first, last, np.repeat(mean[apart], 2, axis=0), child_n, child_mean, child_log_h)
    second_full(X, weight, first, last, child_n, child_mean, child_second)
    alike_dense(X, first, last, alike)
    return count


def leading_dense(X, weight, start, stop, mean, steps, tolerance, direction):
    """The same for the covariance of each slice, which is not formed: steps pass over the rows."""
    for t in range(start.shape[0]):
        w, gap = _centred(X, weight, start[t], stop[t], mean[t])
        direction[t] = _leading((gap * w[:, None]).T @ gap)
