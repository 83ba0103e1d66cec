"""Whole runs of K-features and seeds for tables that fit the cache, where calling from Python would cost the most."""

import numpy as np

from kfree.kernels.compiled.cache import njit
from kfree.kernels.compiled.features.best_rows import best_rows, solve_means, sweep_rows

GOING, RESTS, DEPENDENT = 0, 1, 2
_FRESH = 10  # passes after which the sums are formed anew, so that rounding does not gather


@njit(nogil=True, cache=True)
def run_features(X, weight, square, exact, cap, stop, solved, Z, A, trace):  # noqa: D103
    n, K = Z.shape
    total = np.dot(weight, square)
    slack, cost, z = np.empty(n), np.empty(n), np.empty((n, K))
    dropped, keep, solution = np.zeros(K, np.bool_), np.zeros(K, np.bool_), np.empty_like(A)
    before, S, T = Z.copy(), np.zeros((K, K)), np.zeros_like(A)
    for count in range(trace.shape[0]):
        G, P = np.dot(A, A.T), np.dot(X, A.T)
        largest = 0.0
        for k in range(K):
            largest = max(largest, G[k, k])
        for i in range(n):
            slack[i] = 1e-12 * (square[i] + largest)
        changed = best_rows(P, G, slack, cap, stop, Z, cost) if exact else sweep_rows(P, G, slack, Z, cost)
        if changed == 0 and solved:
            return count, RESTS
        if count % _FRESH == 0 or 4 * changed > n:
            z[:] = Z
            wz = z * weight.reshape(n, 1)
            S, T = np.dot(wz.T, z), np.dot(wz.T, X)
        else:
            _update_sums(X, weight, before, Z, S, T)
        before[:] = Z
        doubt, gain = solve_means(S, T, dropped, keep, solution)
        if doubt >= 0 or not keep.all():
            return count, DEPENDENT
        A[:] = solution
        solved = True
        trace[count] = max(total - gain, 0.0)
        if stop[0]:
            return count + 1, GOING
    return trace.shape[0], GOING


@njit(nogil=True, cache=True)
def _update_sums(X, weight, before, Z, S, T):
    """Bring the sums from one allocation to another that differs in few rows."""
    K = Z.shape[1]
    for i in range(Z.shape[0]):
        other = False
        for k in range(K):
            if Z[i, k] != before[i, k]:
                other = True
                step = weight[i] if Z[i, k] else -weight[i]
                for d in range(X.shape[1]):
                    T[k, d] += step * X[i, d]
        if other:
            for k in range(K):
                for j in range(K):
                    if Z[i, k] and Z[i, j]:
                        S[k, j] += weight[i]
                    if before[i, k] and before[i, j]:
                        S[k, j] -= weight[i]


@njit(nogil=True, cache=True)
def seed_features(X, weight, uniforms, floor, first, left, Z, A):  # noqa: D103
    n = X.shape[0]
    for new in range(first, first + uniforms.shape[0]):
        mass, uniform = np.dot(weight, left), uniforms[new - first]
        chosen = min(int(uniform * n), n - 1)
        if mass > floor:
            target, sofar = uniform * mass, 0.0
            chosen = n - 1
            for i in range(n):
                sofar += weight[i] * left[i]
                if sofar > target:
                    chosen = i
                    break
        r = A[new]
        r[:] = X[chosen]
        for k in range(new):
            if Z[chosen, k]:
                r -= A[k]
        along, shared = np.dot(X, r), np.dot(A, r)
        length = np.dot(r, r)
        for i in range(n):
            change = length - 2.0 * along[i]
            for k in range(new):
                if Z[i, k]:
                    change += 2.0 * shared[k]
            Z[i, new] = change < 0.0
            if change < 0.0:
                left[i] = max(left[i] + change, 0.0)
