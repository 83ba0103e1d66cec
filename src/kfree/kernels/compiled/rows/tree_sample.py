"""Rows that stand for others: chosen by keys that depend on nothing but where a row is among all."""

import numpy as np

from kfree.kernels.compiled.cache import njit
from kfree.kernels.compiled.rows.hashes import mix
from kfree.kernels.compiled.rows.tree import same_rows

_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_ALL = 2.0**32


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def key_rows(X, centre, unit, key):  # noqa: D103
    for i in range(X.shape[0]):
        square = 0.0
        for c in range(X.shape[1]):
            gap = X[i, c] - centre[c]
            square += gap * gap
        steps = min(np.sqrt(square) * unit, 2.0**62)
        key[i] = mix(np.uint64(np.int64(steps))) >> _HALF


@njit(nogil=True, cache=True)
def _least(key, first, last, most, found):
    """Puts the ``most`` least keys of a slice first in ``found``, each with the places of all that have it; their
    number."""
    size = last - first
    limit = (most + 4 * np.sqrt(most)) / size * _ALL
    if size <= most:
        limit = _ALL
    while True:
        count, distinct = 0, 0
        for i in range(size):
            found[count] = (np.uint64(key[first + i]) << _HALF) | np.uint64(i)
            count += key[first + i] < limit
        found[:count] = np.sort(found[:count])
        for i in range(count):
            if i == 0 or found[i] >> _HALF != found[i - 1] >> _HALF:
                if distinct == most:
                    return i
                distinct += 1
        if limit >= _ALL:
            return count
        limit *= 4  # too few: there are copies


@njit(nogil=True, cache=True)
def sample_rows(X, weight, key, start, stop, total, most, merged, first, chosen, n):  # noqa: D103
    found, place = np.empty((stop - start).max(), np.uint64), 0
    for t in range(start.shape[0]):
        first[t], size = place, stop[t] - start[t]
        if size <= most and not merged:
            for row in range(start[t], stop[t]):
                chosen[place], n[place] = row, weight[row] if weight.shape[0] else 1.0
                place += 1
            continue
        count, mass = _least(key, start[t], stop[t], most, found), 0.0
        for i in range(count):
            row = start[t] + np.int64(found[i] & _LOW)
            w = weight[row] if weight.shape[0] else 1.0
            mass += w
            if place > first[t] and key[row] == key[chosen[place - 1]] and same_rows(X, row, chosen[place - 1]):
                n[place - 1] += w
                continue
            chosen[place], n[place] = row, w
            place += 1
        if count < size:
            n[first[t] : place] *= total[t] / mass
    first[start.shape[0]] = place
