"""Whole runs of K-features, and seeds."""

import numpy as np

from kfree.kernels.reference.features.best_rows import best_rows, solve_means, sweep_rows

GOING, RESTS, DEPENDENT = 0, 1, 2


def run_features(X, weight, square, exact, cap, stop, solved, Z, A, trace):
    """K-features in place: rows, then means, until no row changes or ``trace`` (inertia after each pass) is full.

    ``solved`` says whether A is the best for Z, so that the first look may already find that nothing changes.
    Returns the number of passes and 1 if it rests, 2 if columns of Z have become dependent on earlier ones (they are
    the caller's; A is then that of the pass before), 0 if ``trace`` is full or another thread has set ``stop[0]``.
    """
    for count in range(len(trace)):
        G, P = A @ A.T, X @ A.T
        slack, cost = 1e-12 * (square + G.diagonal().max(initial=0.0)), np.empty(len(X))
        changed = best_rows(P, G, slack, cap, stop, Z, cost) if exact else sweep_rows(P, G, slack, Z, cost)
        if not changed and solved:
            return count, RESTS
        wz = weight[:, None] * Z
        keep, solution = np.zeros(len(A), bool), np.empty_like(A)
        doubt, gain = solve_means(wz.T @ Z, wz.T @ X, np.zeros(len(A), bool), keep, solution)
        if doubt >= 0 or not keep.all():
            return count, DEPENDENT
        A[:], solved = solution, True
        trace[count] = max(weight @ square - gain, 0.0)
        if stop[0]:
            return count + 1, GOING
    return len(trace), GOING


def seed_features(X, weight, uniforms, floor, first, left, Z, A):
    """Fill the columns of Z and the rows of A from ``first`` on, one for each of ``uniforms``.

    Each draws a row with probability ~ weight * left (any row if that sums to no more than ``floor``); its residual is
    the new mean, and the rows that it brings nearer get the feature, which lowers their squared residuals ``left``.
    """
    for new, uniform in enumerate(uniforms, first):
        mass = np.cumsum(weight * left)
        chosen = int(uniform * len(X))
        if mass[-1] > floor:
            chosen = int(np.searchsorted(mass, uniform * mass[-1], side="right"))
        chosen = min(chosen, len(X) - 1)
        A[new] = X[chosen] - Z[chosen, :new] @ A[:new]
        change = A[new] @ A[new] - 2.0 * (X - Z[:, :new] @ A[:new]) @ A[new]
        Z[:, new] = change < 0
        left[:] = np.maximum(left + np.where(change < 0, change, 0.0), 0.0)
