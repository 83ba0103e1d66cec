"""Feature learning one row at a time in plain numpy: slow, and obviously right."""

import itertools

import numpy as np


def draw_features(rng, n=12, p=4, K=3, noise=0.3, weighted=False):
    """Rows that are sums of features; weights or none."""
    X = rng.integers(2, size=(n, K)) @ (2 * rng.normal(size=(K, p))) + noise * rng.normal(size=(n, p))
    return X, rng.uniform(0.5, 2.0, size=n) if weighted else np.ones(n)


def all_rows(K):
    """All rows of K bits, the first one changing fastest."""
    return np.array([bits[::-1] for bits in itertools.product((0, 1), repeat=K)], np.uint8).reshape(1 << K, K)


def inertia(X, Z, A, w):
    """Weighted sum of squared residuals, residual by residual."""
    return float((w[:, None] * (X - Z @ A) ** 2).sum())


def projected(X, Z, w):
    """Least inertia over all means, by the pseudo-inverse."""
    root = np.sqrt(w)[:, None]
    return float(((root * X - (root * Z) @ (np.linalg.pinv(root * Z) @ (root * X))) ** 2).sum())


def keep_first(Z):
    """Columns that do not depend on those before them."""
    kept = []
    for k in range(Z.shape[1]):
        if np.linalg.matrix_rank(Z[:, [*kept, k]]) > len(kept):
            kept.append(k)
    return kept


def means_of(X, Z, w):
    """Least squares."""
    root = np.sqrt(w)[:, None]
    return np.linalg.lstsq(root * Z, root * X, rcond=None)[0] if Z.shape[1] else np.zeros((0, X.shape[1]))


def best_row(x, z, A, charge, exact, tie):
    """The row of bits that costs least; ties keep the present one."""

    def cost(y):
        return float(((x - y @ A) ** 2).sum() + charge @ y)

    if exact:
        rows = all_rows(len(A))
        values = np.array([cost(row) for row in rows])
        return rows[values.argmin()] if values.min() < cost(z) - tie else z
    z = z.copy()
    for k in range(len(A)):
        other = z.copy()
        other[k] = 1 - z[k]
        if cost(other) < cost(z) - tie:
            z = other
    return z


def bp_pass(X, Z, A, w, lam, exact):
    """One pass of BP-means, row after row; Z, A and whether anything changed."""
    Z, A, changed = Z.copy(), A.copy(), False
    for n in range(len(X)):
        alone = (Z[n] == 1) & (Z.sum(axis=0) == 1)
        size = (X[n] ** 2).sum() + (A**2).sum(axis=1).max(initial=0.0)
        charge = np.where(alone, lam / w[n], 0.0)
        z = best_row(X[n], Z[n], A, charge, exact, 1e-12 * (lam / w[n] + size))
        changed |= not np.array_equal(z, Z[n])
        Z[n] = z
        held = Z.any(axis=0)
        Z, A = Z[:, held], A[held]
        r = X[n] - Z[n] @ A
        if w[n] * (r @ r) > lam + 1e-12 * (lam + w[n] * size):
            column = np.zeros((len(X), 1), np.uint8)
            column[n] = 1
            Z, A, changed = np.hstack([Z, column]), np.vstack([A, r]), True
    return Z, A, changed


def bp_means(X, Z, A, w, lam, exact, max_iter=200):
    """Algorithm 1 to its end; Z, A and the objective after each pass."""
    trace, last = [], np.inf
    for _ in range(max_iter):
        Z, A, changed = bp_pass(X, Z, A, w, lam, exact)
        Z = Z[:, keep_first(Z)]
        A = means_of(X, Z, w)
        trace.append(inertia(X, Z, A, w) + lam * Z.shape[1])
        if not changed and last - trace[-1] <= 1e-9 * (1 + trace[-1]):
            break
        last = trace[-1]
    return Z, A, trace


def k_features(X, Z, A, exact, max_iter=200):
    """Algorithm 4 to its end, row after row; a dependent column becomes the indicator of the worst row."""
    tie = 1e-12 * ((X**2).sum(axis=1).max() + (A**2).sum(axis=1).max())
    none = np.zeros(len(A))
    for count in range(max_iter):
        new = np.array([best_row(X[n], Z[n], A, none, exact, tie) for n in range(len(X))], np.uint8)
        if count and np.array_equal(new, Z):
            break
        Z, A = _reseeded(X, new)
    return Z, A


def _reseeded(X, Z):
    """Means of all columns, dependent ones replaced one after the other."""
    w, Z = np.ones(len(X)), Z.copy()
    while len(kept := keep_first(Z)) < Z.shape[1]:
        lost = [k for k in range(Z.shape[1]) if k not in kept]
        Z[:, lost] = 0
        left = ((X - Z[:, kept] @ means_of(X, Z[:, kept], w)) ** 2).sum(axis=1)
        Z[left.argmax(), lost[0]] = 1
    return Z, means_of(X, Z, w)


def collapsed_pass(X, Z, w, lam):
    """One pass of Algorithm 3: at each visit every row is tried with the means solved for."""
    Z = Z.copy()
    for n in range(len(X)):
        rest = np.delete(Z, n, axis=0)
        kept = keep_first(rest)
        others = projected(np.delete(X, n, axis=0), rest, np.delete(w, n))
        trial = Z[:, kept]
        costs = []
        for row in all_rows(len(kept)):
            trial[n] = row
            costs.append(projected(X, trial, w) - others)
        best = int(np.argmin(costs))
        if len(kept) < Z.shape[1]:  # the row has a dimension of its own: is it worth lam?
            if costs[best] < lam - 1e-9:
                Z = Z[:, kept]
                Z[n] = all_rows(len(kept))[best]
            continue
        present = costs[int(sum(int(bit) << k for k, bit in enumerate(Z[n])))]
        if costs[best] < present - 1e-9:
            Z[n] = all_rows(len(kept))[best]
        if min(costs[best], present) > lam + 1e-9:
            column = np.zeros((len(X), 1), np.uint8)
            column[n] = 1
            Z = np.hstack([Z, column])
    return Z


def least_objective(X, w, lam):
    """The least objective over all allocations of at most n independent features, by enumeration."""
    columns = all_rows(len(X))[1:]
    best = float((w[:, None] * X**2).sum())
    for K in range(1, len(X) + 1):
        for chosen in itertools.combinations(range(len(columns)), K):
            best = min(best, projected(X, columns[list(chosen)].T, w) + lam * K)
    return best
