"""The algorithms of feature learning one row at a time in plain numpy: the yardstick of the features table."""

import numpy as np


def all_rows(K):
    """All 2^K rows, as floats."""
    return ((np.arange(1 << K)[:, None] >> np.arange(K)) & 1).astype(float)


def seeds(X, rng, K=None, lam=None):
    """The mean, then residuals drawn by their squares: K of them, or as long as they pay."""
    Z, A = np.ones((len(X), 1)), X.mean(axis=0)[None]
    R = X - A
    while K is None or len(A) < K:
        left = (R**2).sum(axis=1)
        r = R[rng.choice(len(X), p=left / left.sum())]
        column = (2 * R @ r > r @ r).astype(float)
        after = R - np.outer(column, r)
        if K is None and (after**2).sum() + lam >= left.sum():
            break
        Z, A, R = np.column_stack([Z, column]), np.vstack([A, r]), after
    return Z, A


def solve(X, Z):
    """Least squares without the columns that depend on earlier ones."""
    kept = []
    for k in range(Z.shape[1]):
        if np.linalg.matrix_rank(Z[:, [*kept, k]]) > len(kept):
            kept.append(k)
    Z = Z[:, kept]
    return Z, np.linalg.solve(Z.T @ Z, Z.T @ X) if kept else np.zeros((0, X.shape[1]))


def k_features(X, K, rng):
    """One restart of Algorithm 4 with exact rows; inertia."""
    Z, A = seeds(X, rng, K)
    while True:
        before = Z.copy()
        rows = all_rows(len(A))
        means = rows @ A
        for n in range(len(X)):
            Z[n] = rows[((X[n] - means) ** 2).sum(axis=1).argmin()]
        if np.array_equal(before, Z):
            return float(((X - Z @ A) ** 2).sum())
        Z, A = solve(X, Z)


def bp_means(X, lam, rng):
    """One run of Algorithm 1, bit by bit; objective and number of features."""
    Z, A = seeds(X, rng, lam=lam)
    last = np.inf
    while True:
        before = Z
        Z = Z.copy()
        for n in range(len(X)):
            for k in range(len(A)):
                on, off = Z[n].copy(), Z[n].copy()
                on[k], off[k] = 1, 0
                alone = lam if Z[n, k] and Z[:, k].sum() == 1 else 0.0
                gain = ((X[n] - on @ A) ** 2).sum() + alone - ((X[n] - off @ A) ** 2).sum()
                if abs(gain) > 1e-9:
                    Z[n, k] = gain < 0
            held = Z.any(axis=0)
            Z, A = Z[:, held], A[held]
            r = X[n] - Z[n] @ A
            if r @ r > lam + 1e-9:
                Z, A = np.column_stack([Z, np.arange(len(X)) == n]), np.vstack([A, r])
        same = before.shape == Z.shape and np.array_equal(before, Z)
        Z, A = solve(X, Z)
        value = float(((X - Z @ A) ** 2).sum()) + lam * len(A)
        if same and last - value <= 1e-9:
            return value, len(A)
        last = value


def collapsed(X, lam, rng):
    """One run of Algorithm 3 by rank-one updates, all rows y tried at each visit; objective and features."""
    Z, A = solve(X, seeds(X, rng, lam=lam)[0])
    square = (X**2).sum(axis=1)
    while True:
        changed = False
        for n in range(len(X)):
            M, rows = np.linalg.inv(Z.T @ Z), all_rows(len(A))
            z, x = Z[n], X[n]
            v = M @ z
            rest = 1 - z @ v
            if rest < 1e-9:
                Z, A, moved = _essential(X, Z, A, n, lam)
                changed |= moved
                continue
            r, u = x - z @ A, v / rest
            M, A_ = M + np.outer(v, v) / rest, A - np.outer(u, r)
            G, p = A_ @ A_.T, A_ @ x
            top = square[n] - 2 * rows @ p + ((rows @ G) * rows).sum(axis=1)
            cost = top / (1 + ((rows @ M) * rows).sum(axis=1))
            best = int(cost.argmin())
            if cost[best] < r @ r / rest - 1e-9:
                Z[n], changed = rows[best], True
            if cost[best] > lam + 1e-9:
                Z, changed = np.column_stack([Z, np.arange(len(X)) == n]), True
            if changed:
                Z, A = solve(X, Z)
        if not changed:
            return float(((X - Z @ A) ** 2).sum()) + lam * len(A), len(A)


def _essential(X, Z, A, n, lam):
    """A row whose means nobody else determines: without one column, if its new row then costs less than lam."""
    others = np.delete(Z, n, axis=0)
    kept = []
    for k in range(Z.shape[1]):
        if np.linalg.matrix_rank(others[:, [*kept, k]]) > len(kept):
            kept.append(k)
    M = np.linalg.inv(others[:, kept].T @ others[:, kept])
    A_ = M @ others[:, kept].T @ np.delete(X, n, axis=0)
    rows = all_rows(len(kept))
    cost = ((X[n] - rows @ A_) ** 2).sum(axis=1) / (1 + ((rows @ M) * rows).sum(axis=1))
    if not cost.min() < lam - 1e-9:
        return Z, A, False
    Z = Z[:, kept].copy()
    Z[n] = rows[cost.argmin()]
    return *solve(X, Z), True
