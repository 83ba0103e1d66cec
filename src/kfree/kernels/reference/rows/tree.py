"""Nodes of a tree of rows: slices are parted, summed, and their principal directions found."""

import numpy as np


def sum_rows(X, weight, origin, total):
    """Add the weighted sum of rows less an origin to ``total``; returns the size of the largest entry."""
    with np.errstate(over="ignore", invalid="ignore"):  # entries that are too large are refused later
        total += weight @ (X - origin)
    return float(np.abs(X.astype(np.float64)).max())


def place_rows(X, shift, scale, beyond, out):
    """Write ``(X - shift) / scale``, with a shift and a scale for each column; no entry is larger than ``beyond``."""
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


def halve_dense(X, weight, log_h, key, order, start, stop, mean, direction, margin, cut):
    """Part the rows of each slice by the side of its mean they are on, in place; fills ``cut``, the border.

    Rows with <x - mean, direction> > margin come last. Where that parts nothing, the column with the largest range
    does; if all rows agree, ``cut`` is ``stop``. A ``cut`` that is not negative is given, and nothing moves.
    ``weight``, ``log_h``, ``key`` (if there are any) and ``order`` move with the rows.
    """
    for t in np.flatnonzero(np.asarray(cut) < 0):
        rows = slice(start[t], stop[t])
        beyond = (X[rows] - mean[t]) @ direction[t] > margin[t]
        if beyond.all() or not beyond.any():
            beyond = _apart_widest(X[rows])
        count, front, back = _exchanges(beyond)
        for array in (X, weight, log_h, key, order):
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


def _leading(matrix, squarings=0):
    """Leading eigenvector; zero for a matrix of zeros."""
    if not np.trace(matrix) > 0:
        return np.zeros(matrix.shape[0])
    vector = np.linalg.eigh(matrix)[1][:, -1]
    # the sign a power iteration arrives at from the widest column of the matrix, or of its power
    for _ in range(squarings):
        matrix = matrix @ matrix
        matrix /= np.trace(matrix)
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
        direction[t] = _leading(matrix + np.triu(matrix, 1).T, squarings)


def part_nodes(
    X, weight, log_h, level, key, order, nodes, first, marks, tie, squarings, steps, tolerance,
    start, stop, n, mean, own_log_h, second, left, parent,
):  # fmt: skip
    """Part nodes along the leading directions of their packed covariances, rows within ``tie`` of a spread being on
    the lower side, and write the children of those that come apart from place ``first`` on; how many there are.
    ``marks`` stand for nodes that have no children yet, and for those that have none."""
    begin, end, centre, p = start[nodes], stop[nodes], mean[nodes], X.shape[1]
    direction, cut = np.empty_like(centre), np.full(nodes.size, -1, np.intp)
    leading_packed(second[nodes], squarings, steps, tolerance, direction)
    diagonal = np.cumsum(np.arange(p, 0, -1)) - np.arange(p, 0, -1)
    margin = tie * np.sqrt(second[nodes][:, diagonal].sum(axis=1))
    halve_dense(X, weight, log_h, key, order, begin, end, centre, direction, margin, cut)
    apart = np.flatnonzero(cut < end)
    born, alike = slice(first, first + 2 * apart.size), np.empty(2 * apart.size, bool)
    start[born] = np.stack([begin[apart], cut[apart]], axis=1).ravel()
    stop[born] = np.stack([cut[apart], end[apart]], axis=1).ravel()
    above = np.repeat(centre[apart], 2, axis=0)
    mean_dense(X, weight, log_h, start[born], stop[born], above, n[born], mean[born], own_log_h[born])
    own_log_h[born] += level
    second_full(X, weight, start[born], stop[born], n[born], mean[born], second[born])
    alike_dense(X, start[born], stop[born], alike)
    left[nodes], left[nodes[apart]] = marks[1], first + 2 * np.arange(apart.size)
    left[born], parent[born] = np.where(alike, marks[1], marks[0]), np.repeat(nodes[apart], 2)
    return 2 * apart.size


def leading_dense(X, weight, start, stop, mean, steps, tolerance, direction):
    """The same for the covariance of each slice, which is not formed: steps pass over the rows."""
    for t in range(start.shape[0]):
        w, gap = _centred(X, weight, start[t], stop[t], mean[t])
        direction[t] = _leading((gap * w[:, None]).T @ gap)
