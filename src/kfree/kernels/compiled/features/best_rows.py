"""Rows of binary features: search for all rows of a block, the ordered walk of BP-means, the solve for the means."""

import numpy as np

from kfree.kernels.compiled.cache import njit
from kfree.kernels.compiled.features.one_row import (
    LOW,
    MOST,
    cost_of,
    decode_row,
    factor,
    index_of,
    least_row,
    make_tables,
    set_row,
    sweep_row,
)

_MOST, _LOW = MOST, LOW


@njit(nogil=True, cache=True)
def sweep_rows(P, G, slack, Z, cost):  # noqa: D103
    none = np.zeros(G.shape[0])
    changed = 0
    for n in range(P.shape[0]):
        if sweep_row(P[n], none, G, slack[n], 0, Z[n]):
            changed += 1
        cost[n] = cost_of(Z[n], P[n], none, G)
    return changed


@njit(nogil=True, cache=True)
def best_rows(P, G, slack, cap, stop, Z, cost):  # noqa: D103
    K = G.shape[0]
    none = np.zeros(K)
    if K > _MOST:
        return _decode_rows(P, none, G, slack, cap, stop, Z, cost)
    own_low, own_high, shared, least = make_tables(G)
    low, high = np.zeros(1 << _LOW), np.zeros(1 << (_MOST - _LOW))
    changed = 0
    for n in range(P.shape[0]):
        p, z = P[n], Z[n]
        if stop[0]:
            cost[n] = cost_of(z, p, none, G)
            continue
        now = index_of(z)
        row, value = least_row(p, none, own_low, own_high, shared, least, now, low, high)
        if row != now:
            before = cost_of(z, p, none, G)
            if value < before - slack[n]:
                changed += 1
                set_row(row, z)
            else:
                value = before
        cost[n] = value
    return changed


@njit(nogil=True, cache=True)
def _decode_rows(P, none, G, slack, cap, stop, Z, cost):
    order, R = factor(G)
    changed = 0
    for n in range(P.shape[0]):
        if not stop[0] and decode_row(P[n], none, G, order, R, cap, slack[n], Z[n]):
            changed += 1
        cost[n] = cost_of(Z[n], P[n], none, G)
    return changed


@njit(nogil=True, cache=True)
def walk_rows(P, G, proposed, known, redo, weight, square, lam, exact, cap, stop, first, Z, count):  # noqa: D103
    K = G.shape[0]
    charge, free, largest = np.zeros(K), np.zeros(K), 0.0
    for k in range(K):
        largest = max(largest, G[k, k])
    own_low, own_high, shared, least = make_tables(G[:0, :0])
    order, R = np.zeros(0, np.int64), np.zeros((0, 0))
    low, high = np.zeros(1 << _LOW), np.zeros(1 << (_MOST - _LOW))
    built = False
    z = np.zeros(K, np.uint8)
    changed = 0
    for n in range(first, P.shape[0]):
        if stop[0]:
            break
        w = weight[n]
        slack = 1e-12 * (lam / w + square[n] + largest)
        alone = False
        for k in range(K):
            z[k] = Z[n, k]
            charge[k] = 0.0
            if z[k] and count[k] == 1:
                alone, charge[k] = True, lam / w
        if alone or redo[n] or (exact and known < K):
            if exact and not built:
                built = True
                if K <= _MOST:
                    own_low, own_high, shared, least = make_tables(G)
                else:
                    order, R = factor(G)
            if not exact:
                sweep_row(P[n], charge, G, slack, 0, z)
            elif K <= _MOST:
                now = index_of(z)
                row, value = least_row(P[n], charge, own_low, own_high, shared, least, now, low, high)
                if row != now and value < cost_of(z, P[n], charge, G) - slack:
                    set_row(row, z)
            else:
                decode_row(P[n], charge, G, order, R, cap, slack, z)
        else:
            for k in range(known):
                z[k] = proposed[n, k]
            if known < K:
                sweep_row(P[n], charge, G, slack, known, z)
        other, emptied = False, False
        for k in range(K):
            if z[k] != Z[n, k]:
                other = True
                count[k] += 1 if z[k] else -1
                emptied = emptied or count[k] == 0
                Z[n, k] = z[k]
        changed += other
        left = w * (square[n] + cost_of(z, P[n], free, G))
        if emptied or left > lam - 1e-6 * (lam + w * (square[n] + largest)):
            return n, changed
    return P.shape[0], changed


@njit(nogil=True, cache=True)
def solve_means(S, T, dropped, keep, A):  # noqa: D103
    K, p = T.shape
    L = np.zeros((K, K))
    gain = 0.0
    for k in range(K):
        pivot = S[k, k]
        for j in range(k):
            if keep[j]:
                inner = S[k, j]
                for m in range(j):
                    inner -= L[k, m] * L[j, m]
                L[k, j] = inner / L[j, j]
                pivot -= L[k, j] * L[k, j]
        keep[k] = pivot > 1e-7 * S[k, k] and not dropped[k]
        if S[k, k] > 0.0 and not keep[k] and not dropped[k]:
            return k, gain
        if keep[k]:
            L[k, k] = np.sqrt(pivot)
        else:
            L[k, :] = 0.0
    A[:] = 0.0
    rest = np.zeros((K, p))
    for turn in range(2):  # the second solve takes the rounding of the first out
        for k in range(K):
            if not keep[k]:
                continue
            for d in range(p):
                rest[k, d] = T[k, d]
            for j in range(K if turn else 0):
                if keep[j]:
                    _subtract(S[k, j], A, j, rest, k)
            for m in range(k):
                if keep[m]:
                    _subtract(L[k, m], rest, m, rest, k)
            for d in range(p):
                rest[k, d] /= L[k, k]
                if not turn:
                    gain += rest[k, d] * rest[k, d]
        for k in range(K - 1, -1, -1):
            if keep[k]:
                for m in range(k + 1, K):
                    if keep[m]:
                        _subtract(L[m, k], rest, m, rest, k)
                for d in range(p):
                    rest[k, d] /= L[k, k]
                    A[k, d] += rest[k, d]
    return -1, gain


@njit(nogil=True, cache=True)
def _subtract(factor, source, j, target, k):
    """Row k of the target minus a multiple of row j of the source."""
    for d in range(target.shape[1]):
        target[k, d] -= factor * source[j, d]
