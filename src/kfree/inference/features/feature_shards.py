"""Features of rows that lie in blocks elsewhere: passes over all of them, which follow from the means alone.

A pass finds the best features of every row from scratch, so that nothing needs to be kept of it. What it says of a row
is the same whatever rows stand beside it: products and residuals are formed row by row, not by BLAS, whose order of
sums hangs on how many rows there are. And all that is added up is added exactly.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Affine, Array
from kfree.inference.content import hash_rows
from kfree.inference.features.allocation import Means, independent
from kfree.inference.features.best_rows import RowRule, search_rows, slack_of
from kfree.inference.features.feature_moves import costs_of_removal
from kfree.inference.features.feature_numbers import FEATURES
from kfree.inference.loop import Budget, Info, Outcome, attempt, check_fall, run
from kfree.kernels import kernels
from kfree.rows import CsrRows, DenseRows, Rows
from kfree.rows.blocks import Beside, RowBlock
from kfree.rows.exact_sums import CostSum, ExactSums, Grid, Shares, WeightRange
from kfree.rows.threads import cut, over

_NONE = np.empty(0)


class FeatureQuestion(NamedTuple):
    """All that the answers of rows follow from."""

    means: Means
    intercept: bool
    rule: RowRule
    grid: Grid  # of sums of rows
    weights: WeightRange  # of all rows
    dearest: float  # no row is farther from what it is made of


class WorstRow(NamedTuple):
    """The row that is farthest from what it is made of; of several the one with the least hash."""

    square: float  # how far: squared, not weighted
    rank: int  # minus its hash
    x: tuple[float, ...]
    z: tuple[int, ...]


class Allocated(NamedTuple):
    """What rows say in a pass; parts are joined. With an intercept there is a feature that all have, in front."""

    rows: Array  # (parts, K, p + 1) limbs of Z'WX
    bits: Array  # (parts, K, K + 1) limbs of Z'WZ
    both: Array  # (K, K) int64 rows with weight that have two features
    held: Array  # (K,) int64 rows that have a feature, whatever they weigh
    n: int
    bare: int  # rows that have none
    cost: Array  # (3,) limbs of the weighted squared residuals
    worst: WorstRow | None  # of the rows with weight, if there are any

    def joined(self, other: "Allocated") -> "Allocated":
        """Of these rows and others."""
        return Allocated(
            self.rows + other.rows,
            self.bits + other.bits,
            self.both + other.both,
            self.held + other.held,
            self.n + other.n,
            self.bare + other.bare,
            self.cost + other.cost,
            max((worst for worst in (self.worst, other.worst) if worst is not None), default=None),
        )


# -- on the side of a block --------------------------------------------------------------------------------------------


class SpanFeatures(NamedTuple):
    """Some rows with their best features."""

    rows: slice
    Z: Array  # (m, K) uint8
    square: Array  # (m,) of their residuals


def _rows_of(X: Any, weight: Array, shift: Array) -> Rows:
    """Rows of a block; sparse ones are not shifted."""
    if sp.issparse(X):
        return CsrRows(X, weight=weight, scale=_NONE)
    return DenseRows(X, weight=weight, scale=_NONE, shift=shift)


class RowsInSight:
    """Rows as means see them."""

    def __init__(self, X: Any, means: Means) -> None:
        self.n, p = X.shape
        self._means, sparse = means, sp.issparse(X)
        # what all dense rows share is taken off first; sparse ones would have no zeros left
        self._origin = means.base if sparse else np.zeros(p)
        self._shift = (means.base * means.A).sum(axis=1) if sparse else np.zeros(len(means.A))
        self._rows = _rows_of(X, _NONE, means.base)
        self.spans = cut(self.n, max(FEATURES.least_span, FEATURES.span_entries // max(p, 1)))
        self._affine = Affine(np.ascontiguousarray(means.A), np.zeros(len(means.A)), 0.0)
        self._G = np.array([(means.A * row).sum(axis=1) for row in means.A]).reshape(len(means.A), len(means.A))

    def allocate(self, span: slice, rule: RowRule) -> SpanFeatures:
        """The best features of some rows."""
        P, square = self._products(span), self._distances(span, np.zeros((1, 0), np.uint8))
        Z, _ = search_rows(P, self._G, slack_of(square, self._G), rule, np.zeros(1, bool))
        return SpanFeatures(span, Z, self._distances(span, Z))

    def _products(self, span: slice) -> Array:
        """Products with the means, less those of the intercept."""
        m, K = span.stop - span.start, len(self._means.A)
        P = np.empty((m, K))
        for k in range(K):
            P[:, k] = -self._rows.own(span, np.full(m, k, np.int32), self._affine) - self._shift[k]
        return P

    def _distances(self, span: slice, Z: Array) -> Array:
        """Squared distances from what features make: each row's own, or the same for all."""
        m, made = span.stop - span.start, np.repeat(self._origin[None], len(Z), axis=0)
        for k in range(Z.shape[1]):
            made += Z[:, k : k + 1] * self._means.A[k]
        labels = np.arange(m, dtype=np.int32) if len(Z) == m else np.zeros(m, np.int32)
        return self._rows.distance(span, labels, made)


def best_features(X: Any, means: Means, rule: RowRule) -> Array:
    """Which of the rows of a block has which feature."""
    sight, Z = RowsInSight(X, means), np.zeros((X.shape[0], len(means.A)), np.uint8)
    for span in sight.spans:
        Z[span] = sight.allocate(span, rule).Z
    return Z


def pass_rows(block: RowBlock, beside: Beside, asked: FeatureQuestion) -> Allocated:
    """The best features of the rows of a block, and sums over these."""
    sums = _Sums(block, asked)
    sight = RowsInSight(block.X, asked.means)

    def of_span(span: slice) -> Allocated:
        return sums.of(sight.allocate(span, asked.rule))

    found = sums.nothing()
    for part in over(sight.spans, of_span, FEATURES.entry_work * block.X.shape[0] * block.X.shape[1]):
        found = found.joined(part)
    rows, bits = sums.limbs()
    return found._replace(rows=rows, bits=bits)


class _Sums:
    """Sums over the rows of a block; of rows and of bits several threads make shares."""

    def __init__(self, block: RowBlock, asked: FeatureQuestion) -> None:
        self._X, self._weight, self._asked = block.X, block.weight, asked
        self._columns = len(asked.means.A) + asked.intercept
        self._rows = _rows_of(block.X, block.weight, np.zeros(block.X.shape[1]))
        self._of_rows = Shares(ExactSums(self._columns, asked.grid))
        self._of_bits = Shares(ExactSums(self._columns, bit_grid(self._columns, asked.weights)))
        self._cost = CostSum(asked.dearest, asked.weights)

    def nothing(self) -> Allocated:
        """Of no rows."""
        K, zero = self._columns, np.zeros((), np.int64)
        held = np.zeros(len(self._asked.means.A), np.int64)
        return Allocated(zero, zero, np.zeros((K, K), np.int64), held, 0, 0, np.zeros(3, np.int64), None)

    def limbs(self) -> tuple[Array, Array]:
        """Sums of all rows, and of their bits."""
        return self._of_rows.total().limbs, self._of_bits.total().limbs

    def of(self, some: SpanFeatures) -> Allocated:
        """Add the sums of some rows; what there is besides."""
        Z, asked = some.Z, self._asked
        weight = self._weight[some.rows] if self._weight.size else self._weight
        bits = np.concatenate([np.ones((len(Z), 1)), Z], axis=1) if asked.intercept else Z.astype(np.float64)
        of_bits = DenseRows(bits, weight=weight, scale=_NONE, shift=np.zeros(self._columns))
        with self._of_rows.one() as rows, self._of_bits.one() as pairs:
            for k in range(self._columns):
                labels = np.where(bits[:, k] > 0, k, -1).astype(np.int32)
                before = np.full(len(Z), -1, np.int32)
                self._rows.move(some.rows, before, labels, rows)
                of_bits.move(slice(0, len(Z)), before, labels, pairs)
        active = bits[weight > 0] if weight.size else bits
        zero = np.zeros((), np.int64)
        return Allocated(
            zero,
            zero,
            np.rint(active.T @ active).astype(np.int64),
            Z.sum(axis=0, dtype=np.int64),
            len(Z),
            int((~Z.any(axis=1)).sum()),
            self._cost.limbs(some.square, weight),
            self._worst(some, weight),
        )

    def _worst(self, some: SpanFeatures, weight: Array) -> WorstRow | None:
        square = np.where(weight > 0, some.square, -1.0) if weight.size else some.square
        most = float(square.max(initial=-1.0))
        if most < 0:
            return None
        tied = np.flatnonzero(square == most)
        rows = self._X[some.rows][tied]
        hashes = hash_rows(rows if sp.issparse(rows) else np.ascontiguousarray(rows, dtype=_kind(rows.dtype)))
        i = int(hashes.argmin())
        row = rows[[i]].toarray()[0] if sp.issparse(rows) else rows[i]
        return WorstRow(most, -int(hashes[i]), tuple(row.astype(float).tolist()), tuple(some.Z[tied[i]].tolist()))


def _kind(dtype: Any) -> Any:
    return np.float32 if dtype == np.float32 else np.float64


def bit_grid(K: int, weights: WeightRange) -> Grid:
    """What sums of bits are measured in."""
    return Grid.of(np.ones(K), weights)


# -- on the side of whoever asks ---------------------------------------------------------------------------------------


class FeatureClosing(NamedTuple):
    """What passes over all rows are to do."""

    ask: Callable[[Means], tuple[Allocated, float]]  # what rows say of means, and what they cost
    grid: Grid  # of the sums of rows
    weights: WeightRange  # of all rows
    intercept: bool
    shift: Array  # (p,) what is subtracted from all rows, so that rounding does not see it
    price: float | None  # of a feature; None: their number is fixed
    scale: float  # what the rounding of the objective scales with: the sum of squares
    least: float  # a fall of the objective that is worth a pass
    rounded: Callable[[Means], Means]  # means in the precision in which they are published
    exact: bool  # rows are looked at with every allocation, so that the objective cannot rise
    max_iter: int


class FeatureStatistics(NamedTuple):
    """Sums over all rows, about the shift; with an intercept its column is the first."""

    S: Array  # (K, K) Z'WZ
    T: Array  # (K, p) Z'WX
    both: Array  # (K, K) rows with weight that have two features

    def without(self, k: int) -> "FeatureStatistics":
        """The same without a column."""
        S, both = (np.delete(np.delete(some, k, axis=0), k, axis=1) for some in (self.S, self.both))
        return FeatureStatistics(S, np.delete(self.T, k, axis=0), both)


class SolvedStatistics(NamedTuple):
    """Means from sums alone."""

    A: Array  # (K, p) zeros where columns were dropped
    keep: Array  # (K,) bool: which do not depend on those before them
    lossy: bool  # a column was dropped that differs from others by less than rounding allows


class AllocatedEverywhere(NamedTuple):
    """What a pass over all rows has shown of means."""

    means: Means
    sums: FeatureStatistics
    said: Allocated
    inertia: float
    objective: float

    @property
    def mass(self) -> Array:
        """(K,) weight of the rows of each feature."""
        return self.sums.S.diagonal()[len(self.sums.S) - len(self.means.A) :]

    @property
    def used(self) -> int:
        """How many features some row with weight has."""
        return int(np.count_nonzero(self.mass))


def solve_statistics(sums: FeatureStatistics) -> SolvedStatistics:
    """Least squares as in memory; a column that float64 cannot tell from those before it is dropped."""
    K, lossy = len(sums.S), False
    keep, A, dropped = np.zeros(K, bool), np.zeros_like(sums.T), np.zeros(K, bool)
    if not K:
        return SolvedStatistics(A, keep, lossy)
    doubt, _ = kernels().solve_means(sums.S, sums.T, dropped, keep, A)
    if doubt >= 0:
        dropped = ~independent(sums.both)
        doubt, _ = kernels().solve_means(sums.S, sums.T, dropped, keep, A)
    while doubt >= 0:
        dropped[doubt], lossy = True, True
        doubt, _ = kernels().solve_means(sums.S, sums.T, dropped, keep, A)
    return SolvedStatistics(A, keep, lossy)


def close_on_all_rows(closing: FeatureClosing, first: Means, budget: Budget) -> Outcome:
    """K-features over all rows from given means, as long as the objective falls; at a price, features that do not pay
    are taken out on the way."""

    def look(means: Means) -> AllocatedEverywhere:
        said, inertia = closing.ask(means)
        sums = _statistics(closing, said)
        found = AllocatedEverywhere(means, sums, said, inertia, 0.0)
        return found._replace(objective=inertia + (closing.price or 0.0) * found.used)

    def step(state: AllocatedEverywhere) -> tuple[AllocatedEverywhere, Info]:
        means, lossy = _next_means(closing, state)
        new = look(means)
        if not new.objective < state.objective:
            if closing.exact and not lossy:
                check_fall(state.objective, new.objective, closing.scale, "in a pass over all rows")
            return state, Info(state.objective, closing.scale, 0.0, 0, state.used, idle=True)
        fell = state.objective - new.objective > closing.least
        return new, Info(new.objective, closing.scale, float(fell), 0, new.used)

    def begin() -> AllocatedEverywhere:
        return look(closing.rounded(first))

    start = attempt(begin, begin, budget)
    outcome = run(step, start, budget, phase="all rows", tol=0.0, max_iter=closing.max_iter)
    state = outcome.state

    def finish() -> AllocatedEverywhere:
        """The features in the order of their weight; at a price only those that some row has."""
        order = _by_weight(state.mass, state.means.A)
        order = [k for k in order if closing.price is None or state.mass[k] > 0]
        if order == list(range(len(state.means.A))):
            return state
        return look(state.means._replace(A=np.ascontiguousarray(state.means.A[order])))

    end = attempt(finish, finish, budget)
    return Outcome(end, [start.objective, *outcome.trace], outcome.converged)


def _statistics(closing: FeatureClosing, said: Allocated) -> FeatureStatistics:
    """Sums as numbers."""
    rows = ExactSums.of_limbs(closing.grid, said.rows)
    T = rows.less(closing.shift) if closing.shift.any() else rows.values()[0]
    S = ExactSums.of_limbs(bit_grid(len(said.both), closing.weights), said.bits).values()[0]
    return FeatureStatistics(np.ascontiguousarray(S), np.ascontiguousarray(T), said.both)


def _next_means(closing: FeatureClosing, state: AllocatedEverywhere) -> tuple[Means, bool]:
    """The best means of the allocation: without features that do not pay, or, where their number is fixed, with the
    worst row in the place of one that no row wants."""
    sums, found = state.sums, solve_statistics(state.sums)
    front = int(closing.intercept)
    if closing.price is not None:
        sums, found = _without_the_idle(closing, sums, found)
    base = found.A[0] + closing.shift if front else state.means.base
    A = found.A[front:]
    if closing.price is None and not found.keep[front:].all():
        A = _with_the_worst(state, A, base, int(np.flatnonzero(~found.keep[front:])[0]))
    order = _by_weight(sums.S.diagonal()[front:], A)
    return closing.rounded(Means(np.ascontiguousarray(A[order]), base)), found.lossy


def _without_the_idle(
    closing: FeatureClosing, sums: FeatureStatistics, found: SolvedStatistics
) -> tuple[FeatureStatistics, SolvedStatistics]:
    """Only features that save their price, the cheapest of the others taken out first."""
    assert closing.price is not None
    front, lossy = int(closing.intercept), found.lossy
    least = closing.price - FEATURES.better * closing.price - closing.least
    while len(sums.S) > front:
        drop = np.flatnonzero(~found.keep[front:])
        if not drop.size:
            cost = costs_of_removal(sums.S, found.A[front:], intercept=closing.intercept)
            drop = np.flatnonzero(cost == cost.min())[-1:] if cost.min() < least else drop
        if not drop.size:
            break
        sums = sums.without(front + int(drop[-1]))
        found = solve_statistics(sums)
        lossy |= found.lossy
    return sums, found._replace(lossy=lossy)


def _with_the_worst(state: AllocatedEverywhere, A: Array, base: Array, k: int) -> Array:
    """What is left of the row that is fitted worst as a mean: rows are free not to have it."""
    worst = state.said.worst
    if worst is None or worst.square <= 0:
        return A
    made = (np.array(worst.z, float)[:, None] * A).sum(axis=0)
    A = A.copy()
    A[k] = np.array(worst.x) - base - made
    return A


def _by_weight(mass: Array, A: Array) -> list[int]:
    """Features by decreasing weight of their rows, equal ones by their means."""
    return sorted(range(len(A)), key=lambda k: (-mass[k], A[k].tolist()))
