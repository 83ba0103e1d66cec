"""Nodes of a tree of rows: slices are parted, summed, and their principal directions found."""

import numpy as np

from kfree.kernels.compiled.cache import njit
from kfree.kernels.compiled.simd.products import BROAD, TALL, add_products

# Rows centred at a time: few enough to stay in the first cache.
_ROWS = 64


@njit(nogil=True, cache=True, fastmath={"contract"})
def sum_rows(X, weight, origin, total):  # noqa: D103
    p = X.shape[1]
    largest = np.zeros(p)
    for i in range(X.shape[0]):
        w = weight[i]
        for c in range(p):
            value = np.float64(X[i, c])
            total[c] += w * (value - origin[c])
            largest[c] = max(largest[c], abs(value))
    return largest.max()


@njit(nogil=True, cache=True)
def place_rows(X, shift, scale, beyond, out):  # noqa: D103
    for i in range(X.shape[0]):
        for c in range(X.shape[1]):
            out[i, c] = min(max((X[i, c] - shift[c]) / scale[c], -beyond), beyond)


@njit(nogil=True, cache=True)
def _swap(X, weight, log_h, key, order, i, j):
    for c in range(X.shape[1]):
        X[i, c], X[j, c] = X[j, c], X[i, c]
    order[i], order[j] = order[j], order[i]
    if key.shape[0]:
        key[i], key[j] = key[j], key[i]
    if weight.shape[0]:
        weight[i], weight[j] = weight[j], weight[i]
    if log_h.shape[0]:
        log_h[i], log_h[j] = log_h[j], log_h[i]


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _beyond(X, i, centre, direction, margin):
    product = 0.0
    for c in range(X.shape[1]):
        product += (X[i, c] - centre[c]) * direction[c]
    return product > margin


@njit(nogil=True, cache=True)
def _part(X, weight, log_h, key, order, first, last, centre, direction, margin):
    i, j = first, last - 1
    # many rows: those on the wrong side are noted in blocks, as half of all branches on a side would be guessed wrong
    ahead, behind = np.empty(_ROWS, np.int64), np.empty(_ROWS, np.int64)
    done_ahead, some_ahead, done_behind, some_behind = 0, 0, 0, 0
    while j - i >= 2 * _ROWS:
        if some_ahead == done_ahead:
            done_ahead, some_ahead = 0, 0
            for k in range(i, i + _ROWS):
                ahead[some_ahead] = k
                some_ahead += _beyond(X, k, centre, direction, margin)
        if some_behind == done_behind:
            done_behind, some_behind = 0, 0
            for k in range(j, j - _ROWS, -1):
                behind[some_behind] = k
                some_behind += not _beyond(X, k, centre, direction, margin)
        while done_ahead < some_ahead and done_behind < some_behind:
            _swap(X, weight, log_h, key, order, ahead[done_ahead], behind[done_behind])
            done_ahead += 1
            done_behind += 1
        if done_ahead == some_ahead:
            i += _ROWS
        if done_behind == some_behind:
            j -= _ROWS
    while True:
        while i <= j and not _beyond(X, i, centre, direction, margin):
            i += 1
        while i < j and _beyond(X, j, centre, direction, margin):
            j -= 1
        if i >= j:
            return i
        _swap(X, weight, log_h, key, order, i, j)
        i += 1
        j -= 1


@njit(nogil=True, cache=True)
def _part_widest(X, weight, log_h, key, order, first, last):
    """In the middle of the column with the largest range: only values count, not how often or where they occur."""
    widest, low, high = -1, 0.0, 0.0
    for c in range(X.shape[1]):
        least, most = X[first, c], X[first, c]
        for i in range(first + 1, last):
            least, most = min(least, X[i, c]), max(most, X[i, c])
        if most - least > high - low:
            widest, low, high = c, least, most
    if widest < 0:
        return last
    border = 0.5 * low + 0.5 * high
    centre, direction = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    centre[widest], direction[widest] = border if low <= border < high else low, 1.0
    return _part(X, weight, log_h, key, order, first, last, centre, direction, 0.0)


@njit(nogil=True, cache=True)
def halve_dense(X, weight, log_h, key, order, start, stop, mean, direction, margin, cut):  # noqa: D103
    for t in range(start.shape[0]):
        if cut[t] >= 0:
            continue
        first, last = start[t], stop[t]
        cut[t] = _part(X, weight, log_h, key, order, first, last, mean[t], direction[t], margin[t])
        if cut[t] == first or cut[t] == last:
            cut[t] = _part_widest(X, weight, log_h, key, order, first, last)


@njit(nogil=True, cache=True)
def same_rows(X, i, k):  # noqa: D103
    for c in range(X.shape[1]):  # noqa: SIM110 - compiled
        if X[i, c] != X[k, c]:
            return False
    return True


@njit(nogil=True, cache=True)
def alike_dense(X, start, stop, alike):  # noqa: D103
    for t in range(start.shape[0]):
        alike[t] = True
        for i in range(start[t] + 1, stop[t]):
            if not same_rows(X, i, start[t]):
                alike[t] = False
                break


@njit(nogil=True, cache=True, fastmath={"contract"})
def mean_dense(X, weight, log_h, start, stop, centre, n, mean, level):  # noqa: D103
    p = X.shape[1]
    for t in range(start.shape[0]):
        total, height, mass = np.zeros(p), 0.0, 0.0
        for i in range(start[t], stop[t]):
            w = weight[i] if weight.shape[0] else 1.0
            mass += w
            if log_h.shape[0]:
                height += w * log_h[i]
            for c in range(p):
                total[c] += w * (X[i, c] - centre[t, c])
        n[t], level[t] = mass, height / mass
        for c in range(p):
            mean[t, c] = centre[t, c] + total[c] / mass
        if stop[t] - start[t] == 1:  # a single row is its own mean, to the last bit
            mean[t] = X[start[t]]


@njit(nogil=True, cache=True)
def _scatter(X, weight, first, last, mean, block, scatter):
    """Upper triangle of sum w (x - mean)(x - mean)'; a little of what is below it is filled, too."""
    p = X.shape[1]
    scatter[:] = 0.0
    for s in range(first, last, _ROWS):
        m = min(_ROWS, last - s)
        for i in range(m):
            root = np.sqrt(weight[s + i]) if weight.shape[0] else 1.0
            for c in range(p):
                block[i, c] = (X[s + i, c] - mean[c]) * root
        for c in range(0, p, TALL):
            for d in range(c, p, BROAD):
                add_products(block[:m], c, d, scatter)  # type: ignore[call-arg]


@njit(nogil=True, cache=True)
def second_full(X, weight, start, stop, n, mean, second):  # noqa: D103
    p = X.shape[1]
    padded = p + BROAD  # no tile ends beyond this
    block, scatter = np.zeros((_ROWS, padded)), np.empty((padded, padded))
    for t in range(start.shape[0]):
        _scatter(X, weight, start[t], stop[t], mean[t], block, scatter)
        place = 0
        for c in range(p):
            for d in range(c, p):
                second[t, place] = scatter[c, d] / n[t]
                place += 1


@njit(nogil=True, cache=True, fastmath={"contract"})
def second_diag(X, weight, start, stop, n, mean, second):  # noqa: D103
    p = X.shape[1]
    for t in range(start.shape[0]):
        total = np.zeros(p)
        for i in range(start[t], stop[t]):
            w = weight[i] if weight.shape[0] else 1.0
            for c in range(p):
                gap = X[i, c] - mean[t, c]
                total[c] += w * gap * gap
        second[t] = total / n[t]


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _times(matrix, vector, out):
    for c in range(vector.shape[0]):
        product = 0.0
        for d in range(vector.shape[0]):
            product += matrix[c, d] * vector[d]
        out[c] = product


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _square(matrix, out):
    p = matrix.shape[0]
    for c in range(p):
        for d in range(c, p):
            product = 0.0
            for e in range(p):
                product += matrix[c, e] * matrix[d, e]
            out[c, d] = product
            out[d, c] = product


@njit(nogil=True, cache=True)
def _normalise(vector):
    size = np.sqrt((vector * vector).sum())
    if size > 0.0:
        vector /= size
    return size


@njit(nogil=True, cache=True)
def first_largest(values):
    """The first of the largest values; what rounding tells apart is equal."""
    top = np.max(values)
    for c in range(values.shape[0]):
        if values[c] >= top * (1 - 1e-9):
            return c
    return 0


@njit(nogil=True, cache=True)
def _unpack(packed, matrix):
    p, place = matrix.shape[0], 0
    for c in range(p):
        for d in range(c, p):
            matrix[c, d] = packed[place]
            matrix[d, c] = packed[place]
            place += 1


@njit(nogil=True, cache=True)
def leading_packed(second, squarings, steps, tolerance, direction):  # noqa: D103
    p = direction.shape[1]
    matrix, other, vector = np.empty((p, p)), np.empty((p, p)), np.empty(p)
    for t in range(second.shape[0]):
        direction[t] = 0.0
        _unpack(second[t], matrix)
        trace = np.trace(matrix)
        if not trace > 0.0:
            continue
        matrix /= trace
        for _ in range(squarings):
            _square(matrix, other)
            matrix, other = other, matrix
            matrix /= np.trace(matrix)
        now = matrix[first_largest(np.diag(matrix))].copy()
        _normalise(now)
        for _ in range(steps):
            _times(matrix, now, vector)
            _normalise(vector)
            change = ((vector - now) ** 2).sum()
            now[:] = vector
            if change <= tolerance:
                break
        direction[t] = now


@njit(nogil=True, cache=True)
def part_nodes(  # noqa: D103
    X, weight, log_h, level, key, order, nodes, first, marks, tie, squarings, steps, tolerance,
    start, stop, n, mean, own_log_h, second, left, parent,
):  # fmt: skip
    T, p, count = nodes.shape[0], X.shape[1], first
    begin, end, cut, centre = start[nodes], stop[nodes], np.full(T, -1, np.int64), mean[nodes]
    direction, margin, above = np.empty((T, p)), np.zeros(T), np.empty((2 * T, p))
    leading_packed(second[nodes], squarings, steps, tolerance, direction)
    for t in range(T):
        place = 0
        for c in range(p):
            margin[t] += second[nodes[t], place]
            place += p - c
        margin[t] = tie * np.sqrt(margin[t])
    halve_dense(X, weight, log_h, key, order, begin, end, centre, direction, margin, cut)
    for t in range(T):
        left[nodes[t]] = marks[1]
        if cut[t] < end[t]:
            left[nodes[t]] = count
            for child in (count, count + 1):
                parent[child], above[child - first] = nodes[t], centre[t]
            start[count], stop[count], start[count + 1], stop[count + 1] = begin[t], cut[t], cut[t], end[t]
            count += 2
    born, alike = slice(first, count), np.empty(count - first, np.bool_)
    mean_dense(X, weight, log_h, start[born], stop[born], above, n[born], mean[born], own_log_h[born])
    own_log_h[born] += level
    second_full(X, weight, start[born], stop[born], n[born], mean[born], second[born])
    alike_dense(X, start[born], stop[born], alike)
    for t in range(count - first):
        left[first + t] = marks[1] if alike[t] else marks[0]
    return count - first


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _covariance_times(X, weight, first, last, mean, vector, out):
    """sum w (x - mean) <x - mean, vector>."""
    p = X.shape[1]
    out[:] = 0.0
    for i in range(first, last):
        product = 0.0
        for c in range(p):
            product += (X[i, c] - mean[c]) * vector[c]
        if weight.shape[0]:
            product *= weight[i]
        for c in range(p):
            out[c] += product * (X[i, c] - mean[c])


@njit(nogil=True, cache=True)
def leading_dense(X, weight, start, stop, mean, steps, tolerance, direction):  # noqa: D103
    p = X.shape[1]
    spread, one, vector = np.empty((1, p)), np.ones(1), np.empty(p)
    for t in range(start.shape[0]):
        direction[t] = 0.0
        second_diag(X, weight, start[t : t + 1], stop[t : t + 1], one, mean[t : t + 1], spread)
        widest = first_largest(spread[0])
        if not spread[0, widest] > 0.0:
            continue
        now = np.zeros(p)
        now[widest] = 1.0
        for _ in range(steps):
            _covariance_times(X, weight, start[t], stop[t], mean[t], now, vector)
            if _normalise(vector) == 0.0:
                break
            change = ((vector - now) ** 2).sum()
            now[:] = vector
            if change <= tolerance:
                break
        direction[t] = now
