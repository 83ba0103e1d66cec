"""Means of features and their allocation; the solve for the means, dependent columns included."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.features.feature_table import Table
from kfree.kernels import kernels

# A residual below this share of the sum of squares counts as none.
NOTHING = 1e-14


class Means(NamedTuple):
    """What rows are made of: a row of the table is about ``base + z A``."""

    A: Array  # (K, p)
    base: Array  # (p,) zeros without an intercept


class State(NamedTuple):
    """An allocation with its best means."""

    Z: Array  # (n, K) uint8
    means: Means
    inertia: float  # weighted sum of squared residuals

    @property
    def K(self) -> int:
        """Number of columns."""
        return int(self.Z.shape[1])


class Solution(NamedTuple):
    """The least-squares means of the columns that do not depend on those before them."""

    means: Means  # zero rows where columns were dropped
    keep: Array  # (K,) bool
    inertia: float


def empty_state(table: Table) -> State:
    """No features."""
    Z = np.zeros((table.n, 0), np.uint8)
    found = solve(table, Z)
    return State(Z, found.means, found.inertia)


def solve(table: Table, Z: Array, sums: tuple[Array, Array] | None = None) -> Solution:
    """Least squares by Cholesky from the left; a column in the span of those before it is dropped (keep-first)."""
    if not Z.shape[1] and not table.intercept:
        return Solution(Means(np.zeros((0, table.p)), np.zeros(table.p)), np.zeros(0, bool), table.total)
    S, T = table.sums(Z) if sums is None else sums
    keep, A, forced = np.zeros(S.shape[0], bool), np.empty_like(T), np.full(S.shape[0], -1, np.int8)
    doubt, gain = kernels().solve_means(S, T, forced, keep, A)
    if doubt >= 0:  # float64 cannot tell; whole numbers can
        forced[:] = independent(gram(table, Z))
        _, gain = kernels().solve_means(S, T, forced, keep, A)
    inertia = max(table.total - gain, 0.0)
    if table.intercept:
        return Solution(Means(A[1:], A[0]), keep[1:], inertia)
    return Solution(Means(A, np.zeros(table.p)), keep, inertia)


def gram(table: Table, Z: Array) -> Array:
    """Unweighted ``Z'Z`` as whole numbers, with the intercept's column in front."""
    z = Z.astype(np.int64)
    if table.intercept:
        z = np.concatenate([np.ones((table.n, 1), np.int64), z], axis=1)
    return z.T @ z


def independent(S: Array) -> Array:
    """Which columns do not depend on those before them, by exact elimination of their Gram matrix."""
    rows = [[Fraction(int(value)) for value in row] for row in S]
    keep = np.zeros(len(rows), bool)
    for k in range(len(rows)):
        if rows[k][k] == 0:  # the Schur complement of a Gram matrix: its row and column are zero, too
            continue
        keep[k] = True
        for i in range(k + 1, len(rows)):
            factor = rows[i][k] / rows[k][k]
            if factor:
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k])]
    return keep


def settle(table: Table, Z: Array, sums: tuple[Array, Array] | None = None) -> State:
    """Drop dependent columns and solve."""
    found = solve(table, Z, sums)
    if found.keep.all():
        return State(Z, found.means, found.inertia)
    kept = np.ascontiguousarray(Z[:, found.keep])
    means = Means(np.ascontiguousarray(found.means.A[found.keep]), found.means.base)
    return State(kept, means, found.inertia)


def settle_with_reseeds(table: Table, Z: Array, sums: tuple[Array, Array] | None = None) -> State:
    """Solve for a fixed number of columns: a dependent one becomes the indicator of the row that is fitted worst."""
    found = solve(table, Z, sums)
    while not found.keep.all():
        k = int(np.flatnonzero(~found.keep)[0])
        Z = Z.copy()
        Z[:, ~found.keep] = 0
        left = residual_squares(table, Z, found.means) * table.weight
        worst = int(left.argmax())
        if left[worst] <= NOTHING * max(table.total, np.finfo(float).tiny):
            return State(Z, found.means, found.inertia)
        Z[worst, k] = 1  # independent of the others: a row they span has no residual
        found = solve(table, Z)
    return State(Z, found.means, found.inertia)


def relative_products(table: Table, means: Means, rows: slice) -> Array:
    """``(X - base) A'`` of some rows."""
    P = table.products(rows, means.A)
    return P - means.base @ means.A.T if table.intercept else P


def shifted_squares(table: Table, base: Array) -> Array:
    """Squared lengths of the rows minus the intercept."""
    if not table.intercept:
        return table.square
    square = table.square - 2.0 * table.all_products(base[None])[:, 0] + base @ base
    return np.maximum(square, 0.0, out=square)


def residual_squares(table: Table, Z: Array, means: Means) -> Array:
    """Squared lengths of the residuals."""
    square = shifted_squares(table, means.base)
    if not Z.shape[1]:
        return square
    z = Z.astype(np.float64)
    P = table.all_products(means.A) - means.base @ means.A.T
    found = square - 2.0 * (P * z).sum(axis=1) + ((z @ (means.A @ means.A.T)) * z).sum(axis=1)
    return np.maximum(found, 0.0, out=found)


def residual(table: Table, Z: Array, means: Means, n: int) -> Array:
    """The residual of one row, in all its columns."""
    return table.dense([n])[0] - means.base - Z[n].astype(np.float64) @ means.A


def explicit_inertia(table: Table, Z: Array, means: Means) -> float:
    """Weighted sum of squared residuals, residual by residual."""

    def of_span(span: slice) -> float:
        gap = table.dense(span) - means.base - Z[span].astype(np.float64) @ means.A
        return float(table.weight[span] @ np.einsum("ij,ij->i", gap, gap))

    return sum(table.each(of_span))
