"""Rows of binary features: search for all rows of a block, the ordered walk of BP-means, the solve for the means."""

import numpy as np

_MOST = 12


def _all_rows(K):
    """All 2^K rows, the first feature changing fastest."""
    return (np.arange(1 << K)[:, None] >> np.arange(K)) & 1


def _cost(z, p, charge, G):
    z = z.astype(float)
    return z @ G @ z - 2.0 * z @ p + z @ charge


def _sweep(p, charge, G, slack, first, z):
    """One cyclic sweep of single bits; ties keep the bit."""
    changed = False
    for k in range(first, z.size):
        on, off = z.copy(), z.copy()
        on[k], off[k] = 1, 0
        gain = _cost(on, p, charge, G) - _cost(off, p, charge, G)
        if (z[k] == 0 and gain < -slack) or (z[k] == 1 and gain > slack):
            z[k] = 1 - z[k]
            changed = True
    return changed


def _branch(p, charge, G, row, best, cap):
    """Best row by branch and bound from the last feature down; ``row`` is one to begin with.

    The bound of the bits still open is their least value by themselves plus what every pair could save at most.
    """
    K, save = p.size, np.minimum(G, 0.0)
    nodes = 0

    def bound(z, k):
        fixed = z[k:].astype(float)
        value = fixed @ G[k:, k:] @ fixed - 2.0 * fixed @ p[k:] + fixed @ charge[k:]
        own = G.diagonal()[:k] - 2.0 * p[:k] + charge[:k] + 2.0 * G[:k, k:] @ fixed
        own = own + 2.0 * np.triu(save[:k, :k], 1).sum(axis=1)
        return value + np.minimum(own, 0.0).sum()

    def visit(z, k):
        nonlocal best, row, nodes
        nodes += 1
        if nodes > cap or bound(z, k) >= best:
            return
        if k == 0:
            best, row = _cost(z, p, charge, G), z.copy()
            return
        children = []
        for bit in (0, 1):
            child = z.copy()
            child[k - 1] = bit
            children.append((bound(child, k - 1), bit, child))
        for _, _, child in sorted(children, key=lambda some: some[:2]):
            visit(child, k - 1)

    visit(np.zeros(K, np.uint8), K)
    return row, best


def _best(p, charge, G, slack, cap, z):
    """Set z to the best row if that is better; returns whether it did."""
    present = _cost(z, p, charge, G)
    if p.size <= _MOST:
        rows = _all_rows(p.size)
        values = ((rows @ G) * rows).sum(axis=1) + rows @ (charge - 2.0 * p)
        found, value = rows[values.argmin()], values.min()
    else:
        start = z.copy()
        while _sweep(p, charge, G, slack, 0, start):
            pass
        found, value = _branch(p, charge, G, start, _cost(start, p, charge, G), cap)
    if not value < present - slack or np.array_equal(found, z):
        return False
    z[:] = found
    return True


def sweep_rows(P, G, slack, Z, cost):
    """One cyclic sweep of single bits for each row z: ``z G z' - 2 z.P[n]`` falls by more than ``slack[n]`` or the bit
    stays. Fills ``cost`` with the value; returns how many rows changed."""
    none = np.zeros(len(G))
    changed = sum(_sweep(P[n], none, G, slack[n], 0, Z[n]) for n in range(len(P)))
    cost[:] = [_cost(Z[n], P[n], none, G) for n in range(len(P))]
    return changed


def best_rows(P, G, slack, cap, stop, Z, cost):
    """The same with the best of all 2^K rows; above 12 features by branch and bound, at most ``cap`` nodes a row.

    Rows that are not yet looked at when another thread sets ``stop[0]`` stay as they are.
    """
    none = np.zeros(len(G))
    changed = sum(not stop[0] and _best(P[n], none, G, slack[n], cap, Z[n]) for n in range(len(P)))
    cost[:] = [_cost(Z[n], P[n], none, G) for n in range(len(P))]
    return changed


def walk_rows(P, G, proposed, known, redo, weight, square, lam, exact, cap, stop, first, Z, count):
    """Settle rows in order from ``first`` on, as a pass that visits them one by one would.

    A row takes what was proposed for its ``known`` first columns and tests the others; it is searched again if
    ``redo`` says so, if it is the only member of a column (leaving which saves lam), or if the search is exact and
    columns were added. ``count`` are members of the columns. Stops after the first row that emptied a column or
    whose residual may be worth a feature of its own; returns that row (or the number of rows) and how many changed.
    Rows that are not yet looked at when another thread sets ``stop[0]`` stay as they are.
    """
    largest = G.diagonal().max(initial=0.0)
    none, changed = np.zeros(len(G)), 0
    for n in range(first, len(P)):
        if stop[0]:
            break
        z = Z[n].copy()
        slack = 1e-12 * (lam / weight[n] + square[n] + largest)
        alone = (z == 1) & (count == 1)
        charge = np.where(alone, lam / weight[n], 0.0)
        if alone.any() or redo[n] or (exact and known < len(G)):
            _best(P[n], charge, G, slack, cap, z) if exact else _sweep(P[n], charge, G, slack, 0, z)
        else:
            z[:known] = proposed[n]
            _sweep(P[n], charge, G, slack, known, z)
        changed += not np.array_equal(z, Z[n])
        left_some = z < Z[n]
        count += z.astype(count.dtype) - Z[n].astype(count.dtype)
        Z[n] = z
        left = weight[n] * (square[n] + _cost(z, P[n], none, G))
        near = lam - 1e-6 * (lam + weight[n] * (square[n] + largest))
        if (left_some & (count == 0)).any() or left > near:
            return n, changed
    return len(P), changed


def solve_means(S, T, dropped, keep, A):
    """Solve ``S A = T`` for the columns that do not depend on those before them; the others get zero rows.

    ``keep`` says which; the squared distance of column k from the span of those before it must exceed 1e-7 S[k, k].
    Returns (k, gain) where that of column k does not, and it is not ``dropped``, which says which columns are known to
    depend on those before: float64 then cannot tell, nor solve. Else -1. The gain is ``trace(T' A)``, what the fit
    takes off the sum of squares.
    """
    keep[:] = False
    for k in range(len(S)):
        before = np.flatnonzero(keep)
        pivot = S[k, k]
        if before.size:
            pivot = pivot - S[k, before] @ np.linalg.solve(S[np.ix_(before, before)], S[before, k])
        keep[k] = pivot > 1e-7 * S[k, k] and not dropped[k]
        if S[k, k] > 0 and not keep[k] and not dropped[k]:
            return k, 0.0
    A[:] = 0.0
    kept = np.flatnonzero(keep)
    if kept.size:
        A[kept] = np.linalg.solve(S[np.ix_(kept, kept)], T[kept])
    return -1, float((T * A).sum())
