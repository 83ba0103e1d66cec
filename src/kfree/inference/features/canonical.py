"""The plainest of the equivalent allocations: a base, and features that fewer than half of the rows have."""

import numpy as np

from kfree.families import Array
from kfree.inference.features.allocation import Means


def display_order(Z: Array, weight: Array) -> Array:
    """Columns by decreasing weight of their rows, then lexicographically (a column with an earlier row first)."""
    if not Z.shape[1]:
        return np.zeros(0, np.intp)
    packed = np.packbits(Z, axis=0)  # bytes compare as the bits do
    keys = [packed[:, k].tobytes() for k in range(Z.shape[1])]
    mass = weight @ Z
    order = sorted(range(Z.shape[1]), key=lambda k: keys[k], reverse=True)
    return np.array(sorted(order, key=lambda k: -mass[k]), np.intp)


def _complementary(Z: Array) -> tuple[int, int] | None:
    """The first pair of columns of which every row has exactly one."""
    K = Z.shape[1]
    for j in range(K):
        for k in range(j + 1, K):
            if (Z[:, j] != Z[:, k]).all():
                return j, k
    return None


def canonical(Z: Array, weight: Array, means: Means, intercept: bool) -> tuple[Array, Means]:
    """An equivalent allocation and its means; ``base + Z A`` stays the same."""
    half = weight.sum() / 2
    Z, A, base = Z.copy(), means.A.copy(), means.base.copy()
    anchor = -1  # the column that all rows have; the intercept does as well
    if not intercept:
        full = np.flatnonzero(Z.all(axis=0)) if len(Z) else np.zeros(0, int)
        pair = None if full.size else _complementary(Z)
        if pair is not None:
            j, k = pair
            A[j] -= A[k]
            Z[:, k] = 1
            anchor = k
        elif full.size:
            anchor = int(full[0])
    if intercept or anchor >= 0:
        for k in range(Z.shape[1]):
            if k == anchor:
                continue
            mass = weight @ Z[:, k]
            if mass > half or (mass == half and Z[0, k]):
                Z[:, k] = 1 - Z[:, k]
                if intercept:
                    base += A[k]
                else:
                    A[anchor] += A[k]
                A[k] = -A[k]
    order = display_order(Z, weight)
    return np.ascontiguousarray(Z[:, order]), Means(A[order], base)
