"""Means of features and their allocation; the solve for the means, dependent columns included."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.features.feature_numbers import FEATURES
from kfree.inference.features.feature_table import FeatureTable
from kfree.inference.features.least_squares import rotate
from kfree.inference.loop import Budget, repeat
from kfree.kernels import kernels

# Primes below 2^31: products of two residues fit int64.
_PRIMES = (2_147_483_647, 2_147_483_629)


class Means(NamedTuple):
    """What rows are made of: a row of the table is about ``base + z A``."""

    A: Array  # (K, p)
    base: Array  # (p,) zeros without an intercept


class FeatureState(NamedTuple):
    """An allocation with its best means; or, to start from, with means that were not solved for."""

    Z: Array  # (n, K) uint8
    means: Means
    inertia: float = np.inf  # weighted sum of squared residuals; inf: the means were not solved for

    @property
    def K(self) -> int:
        """Number of columns."""
        return int(self.Z.shape[1])

    @property
    def solved(self) -> bool:
        """Whether the means are the best ones."""
        return self.inertia < np.inf

    def as_start(self) -> "FeatureState":
        """The same to start from."""
        return FeatureState(self.Z, self.means)


class SolvedMeans(NamedTuple):
    """The least-squares means of the columns that do not depend on those before them."""

    means: Means  # zero rows where columns were dropped
    keep: Array  # (K,) bool
    inertia: float


def empty_state(table: FeatureTable) -> FeatureState:
    """No features."""
    Z = np.zeros((table.n, 0), np.uint8)
    found = solve(table, Z)
    return FeatureState(Z, found.means, found.inertia)


def solve(table: FeatureTable, Z: Array, sums: tuple[Array, Array] | None = None) -> SolvedMeans:
    """Least squares by Cholesky from the left; a column in the span of those before it is dropped (keep-first)."""
    if not Z.shape[1] and not table.intercept:
        return SolvedMeans(Means(np.zeros((0, table.p)), np.zeros(table.p)), np.zeros(0, bool), table.total)
    if table.uneven:  # sums do not say what light rows do
        return _solve_by_rotations(table, Z, _independent_columns(table, Z))
    S, T = table.sums(Z) if sums is None else sums
    keep, A, dropped = np.zeros(S.shape[0], bool), np.empty_like(T), np.zeros(S.shape[0], bool)
    doubt, gain = kernels().solve_means(S, T, dropped, keep, A)
    if doubt >= 0:  # float64 cannot tell; whole numbers can
        dropped = ~_independent_columns(table, Z)
        doubt, gain = kernels().solve_means(S, T, dropped, keep, A)
        if doubt >= 0:
            return _solve_by_rotations(table, Z, ~dropped)
    return _solved(table, A, keep, max(table.total - gain, 0.0))


def _solved(table: FeatureTable, A: Array, keep: Array, inertia: float) -> SolvedMeans:
    if table.intercept:
        return SolvedMeans(Means(A[1:], A[0]), keep[1:], inertia)
    return SolvedMeans(Means(A, np.zeros(table.p)), keep, inertia)


def _solve_by_rotations(table: FeatureTable, Z: Array, keep: Array) -> SolvedMeans:
    """The same without the sums, in which columns are lost that only light rows tell apart."""
    rotated = rotate(bordered(table, Z)[:, keep], table.weight)
    A = np.zeros((keep.size, table.p))
    A[keep] = rotated.solve(table.combine(np.sqrt(table.weight)[:, None] * rotated.basis))
    found = _solved(table, A, keep, np.inf)
    return found._replace(inertia=explicit_inertia(table, Z, found.means))


def bordered(table: FeatureTable, Z: Array) -> Array:
    """The columns in float64, with the intercept's in front."""
    z = Z.astype(np.float64)
    return np.concatenate([np.ones((table.n, 1)), z], axis=1) if table.intercept else z


def _independent_columns(table: FeatureTable, Z: Array) -> Array:
    z = bordered(table, Z)
    return independent(np.rint(z.T @ z).astype(np.int64))


def independent(S: Array) -> Array:
    """Which columns do not depend on those before them, by elimination of their Gram matrix modulo a prime.

    What is independent there is so in truth. What is not may be so if the prime divides a minor, by a chance of
    one in 2^31: so two primes are asked.
    """
    return max((_pivots(S, prime) for prime in _PRIMES), key=np.count_nonzero)


def _pivots(S: Array, prime: int) -> Array:
    rest, keep = S % prime, np.zeros(len(S), bool)
    for k in range(len(S)):
        pivot = int(rest[k, k])
        if pivot:
            keep[k] = True
            factor = rest[k + 1 :, k] * pow(pivot, -1, prime) % prime
            rest[k + 1 :, k + 1 :] = (rest[k + 1 :, k + 1 :] - factor[:, None] * rest[k, k + 1 :]) % prime
    return keep


def settle(table: FeatureTable, Z: Array, sums: tuple[Array, Array] | None = None) -> FeatureState:
    """Drop dependent columns and solve."""
    found = solve(table, Z, sums)
    if found.keep.all():
        return FeatureState(Z, found.means, found.inertia)
    kept = np.ascontiguousarray(Z[:, found.keep])
    means = Means(np.ascontiguousarray(found.means.A[found.keep]), found.means.base)
    return FeatureState(kept, means, found.inertia)


def settle_with_reseeds(
    table: FeatureTable, Z: Array, budget: Budget, sums: tuple[Array, Array] | None = None
) -> FeatureState:
    """Solve for a fixed number of columns: a dependent one becomes the indicator of the row that is fitted worst.

    It stays empty if nothing is left to be fitted, or if the time is up.
    """
    found = solve(table, Z, sums)
    if found.keep.all():
        return FeatureState(Z, found.means, found.inertia)

    def reseed(now: tuple[Array, SolvedMeans]) -> tuple[tuple[Array, SolvedMeans], bool]:
        Z, found = _emptied(*now), now[1]
        left = residual_squares(table, Z, found.means) * table.weight
        worst = int(left.argmax())
        if left[worst] <= FEATURES.rounding * max(table.total, np.finfo(float).tiny):
            return now, True
        Z[worst, np.flatnonzero(~found.keep)[0]] = 1  # independent of the others: a row they span has no residual
        found = solve(table, Z)
        return (Z, found), bool(found.keep.all())

    # each reseed is one more independent column, so more of them than columns are rounding at work
    (Z, found), _ = repeat(reseed, (Z, found), budget, most=Z.shape[1])
    return FeatureState(_emptied(Z, found), found.means, found.inertia)


def _emptied(Z: Array, found: SolvedMeans) -> Array:
    """A copy in which dependent columns have no members."""
    Z = Z.copy()
    Z[:, ~found.keep] = 0
    return Z


def relative_products(table: FeatureTable, means: Means, rows: slice) -> Array:
    """``(X - base) A'`` of some rows."""
    P = table.products(rows, means.A)
    return P - means.base @ means.A.T if table.intercept else P


def shifted_squares(table: FeatureTable, base: Array) -> Array:
    """Squared lengths of the rows minus the intercept."""
    if not table.intercept:
        return table.square
    square = table.square - 2.0 * table.all_products(base[None])[:, 0] + base @ base
    return np.maximum(square, 0.0, out=square)


def residual_squares(table: FeatureTable, Z: Array, means: Means) -> Array:
    """Squared lengths of the residuals."""
    square = shifted_squares(table, means.base)
    if not Z.shape[1]:
        return square
    z = Z.astype(np.float64)
    P = table.all_products(means.A) - means.base @ means.A.T
    found = square - 2.0 * (P * z).sum(axis=1) + ((z @ (means.A @ means.A.T)) * z).sum(axis=1)
    return np.maximum(found, 0.0, out=found)


def residual(table: FeatureTable, Z: Array, means: Means, n: int) -> Array:
    """The residual of one row, in all its columns."""
    return table.dense([n])[0] - means.base - Z[n].astype(np.float64) @ means.A


def explicit_inertia(table: FeatureTable, Z: Array, means: Means) -> float:
    """Weighted sum of squared residuals, residual by residual."""

    def of_span(span: slice) -> float:
        gap = table.dense(span) - means.base - Z[span].astype(np.float64) @ means.A
        return float(table.weight[span] @ np.einsum("ij,ij->i", gap, gap))

    return sum(table.each(of_span))
