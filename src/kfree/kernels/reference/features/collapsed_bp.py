"""Collapsed BP-means: every visit chooses a row with the means solved for; here by least squares, candidate by
candidate.
"""

import numpy as np

_MOST = 12
DONE, BIRTH, REPLACED = 0, 1, 2
GOING, RESTS, DEPENDENT = 0, 1, 2


def run_collapsed(X, weight, square, exact, stop, Z, A, trace):
    """Passes in place that visit every row once, until one changes no row or ``trace`` (inertia after each) is full.

    Returns the number of passes and 1 if it rests, 2 if columns of Z depend on earlier ones (they are the caller's; A
    is then that of the pass before), 0 if ``trace`` is full or another thread has set ``stop[0]``.
    """
    K = Z.shape[1]
    for count in range(len(trace)):
        if np.linalg.matrix_rank(Z) < K:
            return count, DEPENDENT
        G = _means(X, weight, Z) @ _means(X, weight, Z).T
        _, _, changed, _ = _visit(X, weight, square, np.inf, 0, exact, stop, 0, Z, G)
        A[:] = _means(X, weight, Z)
        trace[count] = _rest(Z, X, weight)
        if stop[0]:
            return count + 1, GOING
        if not changed:
            return count + 1, RESTS
    return len(trace), GOING


def rebuild(S, T, M, A, G):
    """Fill M = S^-1, A = M T, G = A A'; returns whether S was positive definite."""
    if len(S):
        try:
            np.linalg.cholesky(S)
        except np.linalg.LinAlgError:
            return False
        M[:] = np.linalg.inv(S)
    A[:] = M @ T
    G[:] = A @ A.T
    return True


def _means(X, weight, Z):
    """The least-squares means."""
    root = np.sqrt(weight)[:, None]
    return np.linalg.lstsq(root * Z, root * X, rcond=None)[0] if Z.shape[1] else np.zeros((0, X.shape[1]))


def _rest(Z, X, weight):
    """Weighted sum of squared residuals of the least-squares fit."""
    return float((weight[:, None] * (X - Z @ _means(X, weight, Z)) ** 2).sum())


def _cost(n, y, Z, X, weight, others):
    """What row y at place n adds to the residuals of the others."""
    changed = Z.copy()
    changed[n] = y
    return _rest(changed, X, weight) - others


def _choose(n, y, Z, X, weight, fixed, exact, slack):
    """The best row (or one sweep of bits) and its cost; ties keep the present one."""
    others = _rest(np.delete(Z, n, axis=0), np.delete(X, n, axis=0), np.delete(weight, n))
    present = _cost(n, y, Z, X, weight, others)
    K = y.size - fixed
    if exact and K <= _MOST:
        rows = np.hstack([np.ones((1 << K, fixed), int), (np.arange(1 << K)[:, None] >> np.arange(K)) & 1])
        values = [_cost(n, row, Z, X, weight, others) for row in rows]
        best = int(np.argmin(values))
        return (rows[best], values[best]) if values[best] < present - slack else (y, present)
    y = y.copy()
    for k in range(fixed, y.size):
        other = y.copy()
        other[k] = 1 - y[k]
        value = _cost(n, other, Z, X, weight, others)
        if value < present - slack:
            y, present = other, value
    return y, present


def _first_dependent(Z):
    """The last column that depends on those before it, -1 if none does."""
    found = -1
    for k in range(Z.shape[1]):
        if np.linalg.matrix_rank(Z[:, : k + 1]) == np.linalg.matrix_rank(Z[:, :k]):
            found = k
    return found


def collapsed_rows(X, weight, square, lam, fixed, exact, stop, first, Z, S, T, M, A, G):
    """Visit rows in order from ``first`` on; each takes the row that is best with the means solved for.

    ``fixed`` columns in front are never changed. A row that the other rows' means depend on is replaced only if a
    column can be dropped for it and its new row costs less than lam. Returns (row, event, rows changed, column): 0
    at the end, 1 if the row is worth a feature of its own, 2 if it was replaced and the column is to be dropped, 3
    if the sums should be formed anew. The sums and the means are those of Z when it returns; ``lam=inf`` keeps the
    number of features. Rows that are not yet visited when another thread sets ``stop[0]`` stay as they are.
    """
    n, event, changed, drop = _visit(X, weight, square, lam, fixed, exact, stop, first, Z, G)
    if event != REPLACED:
        wz = weight[:, None] * Z
        S[:], T[:] = wz.T @ Z, wz.T @ X
        rebuild(S, T, M, A, G)
    return n, event, changed, drop


def _visit(X, weight, square, lam, fixed, exact, stop, first, Z, G):
    changed, finite = 0, lam if lam < np.inf else 0.0
    largest = G.diagonal().max(initial=0.0)
    for n in range(first, len(X)):
        if stop[0]:
            break
        slack = 1e-12 * (finite + weight[n] * (square[n] + largest))
        rest = np.delete(Z, n, axis=0)
        drop = _first_dependent(rest)
        if drop >= 0:
            if lam == np.inf or drop < fixed:
                continue
            y, cost = _choose(n, np.delete(Z[n], drop), np.delete(Z, drop, axis=1), X, weight, fixed, exact, slack)
            if cost < lam - slack:
                Z[n] = np.insert(y, drop, 0)
                return n, REPLACED, changed + 1, drop
            continue
        y, cost = _choose(n, Z[n].copy(), Z, X, weight, fixed, exact, slack)
        changed += not np.array_equal(y, Z[n])
        Z[n] = y
        if cost > lam + slack:
            return n, BIRTH, changed, -1
    return len(X), DONE, changed, -1
