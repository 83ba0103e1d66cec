"""Rows between pairs of clusters."""

import numpy as np

from kfree.kernels.compiled.cache import njit


@njit(nogil=True, cache=True)
def three_least(products, offset, first, least):  # noqa: D103
    n, K = products.shape
    count = first.shape[1]
    for i in range(n):
        for t in range(count):
            least[i, t] = np.inf
            first[i, t] = t
        for k in range(K):
            value = offset[k] - products[i, k]
            if not value < least[i, count - 1]:
                continue
            t = count - 1
            while t > 0 and value < least[i, t - 1]:
                least[i, t], first[i, t] = least[i, t - 1], first[i, t - 1]
                t -= 1
            least[i, t], first[i, t] = value, k


@njit(nogil=True, cache=True)
def _side(first, i, a, b):
    return 0 if first[i, 0] == a else (1 if first[i, 0] == b else 2)


@njit(nogil=True, cache=True)
def rows_of_pairs(first, least, pairs, start, incident, edges, rows, third):  # noqa: D103
    n, count = first.shape
    fill = np.zeros(edges.shape[0], np.int64)
    for turn in range(2):  # count, then place
        for i in range(n):
            for t in range(count):
                k = first[i, t]
                for q in range(start[k], start[k + 1]):
                    e = incident[q]
                    a, b = pairs[e, 0], pairs[e, 1]
                    other = b if a == k else a
                    seen = False
                    for s in range(t):
                        seen |= first[i, s] == other
                    if seen:
                        continue
                    key = 3 * e + _side(first, i, a, b)
                    if turn == 0:
                        fill[key + 1] += 1
                        continue
                    at = fill[key]
                    fill[key] += 1
                    rows[at] = i
                    third[at] = np.inf
                    for s in range(count):
                        if first[i, s] != a and first[i, s] != b:
                            third[at] = least[i, s]
                            break
        if turn == 0:
            fill[:] = np.cumsum(fill)
            edges[:] = fill


@njit(nogil=True, cache=True)
def sort_segments(edges, values):  # noqa: D103
    for s in range(edges.shape[0] - 1):
        values[edges[s] : edges[s + 1]].sort()


@njit(nogil=True, cache=True)
def lower_medians(values, start, stop, medians):  # noqa: D103
    for s in range(start.shape[0]):
        count = stop[s] - start[s]
        if count > 0:
            middle = (count - 1) // 2
            medians[s] = np.partition(values[start[s] : stop[s]], middle)[middle]
