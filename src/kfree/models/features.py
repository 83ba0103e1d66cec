"""Binary features: rows ready for a fit, and fitted features that can be asked."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.inference.content import merge_copies
from kfree.inference.features.allocation import FeatureState, Means, explicit_inertia, solve
from kfree.inference.features.best_rows import RowRule, allocate
from kfree.inference.features.canonical import canonical, display_order
from kfree.inference.features.feature_goal import FeatureGoal, GivenStart
from kfree.inference.features.feature_numbers import FEATURES
from kfree.inference.features.feature_table import FeatureTable
from kfree.inference.features.isometry import densify, reduce_columns
from kfree.inference.features.restarts import FoundFeatures, Restart, fit_fixed, fit_priced
from kfree.inference.features.stepwise import (
    ChosenPrice,
    Stepper,
    StepwisePath,
    choose_price,
    grow_path,
    price_of,
    survey,
    windows,
)
from kfree.inference.loop import Budget, attempt
from kfree.models.checks import check_weight
from kfree.models.feature_ranges import check_arithmetic, check_evenness, check_length, check_price, largest_of

Seed = np.random.SeedSequence

#: Entries of float32 rows up to which means are published in double precision.
_LEAST_SINGLE = 1e-30


class FeaturePath(NamedTuple):
    """The least inertia found for K = 0, 1, 2, ... features; it serves every lam.

    Attributes
    ----------
    n_components : array (m,)
        K.
    inertia : array (m,)
        J_K, which never rises.
    objective : array (m,)
        J_K + lam K, for the lam of the fit.
    window : array (m, 2)
        Values of lam between which K is best; NaN if it never is. The last one's low end is 0.
    components : list of array (K, p)
        Means of each solution.
    """

    n_components: Array
    inertia: Array
    objective: Array
    window: Array
    components: list[Array]

    def best(self, lam: float) -> int:
        """The number of features with the least objective at another lam."""
        return int(self.n_components[np.argmin(self.inertia + lam * self.n_components)])

    def plot(self, ax: Any = None) -> Any:
        """J_K over K, and the window of lam of each K that has one; returns the two axes.

        See :class:`kfree.FeaturePathDisplay`.
        """
        from kfree.displays.feature_path import FeaturePathDisplay

        return FeaturePathDisplay.from_path(self, ax=ax).axes_


class WeightedRows(NamedTuple):
    """Which rows of a fit have weight."""

    active: Array  # (n,) bool, rows with a positive weight
    weight: Array  # (m,) of those, (0,) for ones
    idle: Any  # (n - m, p) the others


class FeatureModel(NamedTuple):
    """Means, of which a row has none, one or many; and which rows of the fit have which."""

    components: Array  # (K, p) in the precision of the rows
    intercept: Array  # (p,) zeros if none was fitted
    with_intercept: bool
    Z: Array  # (n, K) uint8
    rows: WeightedRows

    @property
    def means(self) -> Means:
        """The means in double precision."""
        return Means(self.components.astype(np.float64), self.intercept.astype(np.float64))

    def allocate(self, X: Any, budget: Budget | None = None) -> Array:
        """The best features of each row; by a sweep of single bits if the time is up."""
        means, budget = self.means, budget or Budget()
        rule = RowRule(exact=not budget.spent)
        check_length(X)
        if self.with_intercept and not sp.issparse(X):  # as in the fit: the offset is taken off first
            means, X = Means(means.A, np.zeros(X.shape[1])), X - means.base
            return allocate(FeatureTable(X, np.empty(0)), means, rule, budget)[0]
        return allocate(FeatureTable(X, np.empty(0), intercept=self.with_intercept), means, rule, budget)[0]

    def inertia(self, X: Any, sample_weight: Any) -> float:
        """Weighted sum of squared residuals of rows with their best features."""
        Z, weight = self.allocate(X), check_weight(sample_weight, X.shape[0])
        with np.errstate(over="ignore"):
            found = explicit_inertia(FeatureTable(X, weight), Z, self.means)
        if not np.isfinite(found):
            raise ValueError("The weighted squares of X overflow. Divide sample_weight by its largest entry.")
        return found

    def compose(self, Z: Array) -> Array:
        """Rows made of features."""
        with np.errstate(over="ignore", invalid="ignore"):
            rows = Z.astype(self.components.dtype) @ self.components + self.intercept
        if not np.isfinite(rows).all():
            raise ValueError(
                f"Z has entries up to {np.abs(Z).max():g}: sums of that many means overflow. Pass 0 and 1."
            )
        return rows

    def canonical(self) -> "FeatureModel":
        """The same rows in the plainest words."""
        active = self.rows.active
        weight = self.rows.weight if self.rows.weight.size else np.ones(int(active.sum()))
        Z, means = canonical(self.Z[active], weight, self.means, self.with_intercept)
        A, base = in_precision(means, self.components.dtype)
        return self._replace(components=A, intercept=base).on_all_rows(Z)

    def on_all_rows(self, Z: Array, budget: Budget | None = None) -> "FeatureModel":
        """With an allocation of the rows that have weight; the others get their best features."""
        active = self.rows.active
        whole = np.zeros((active.size, self.components.shape[0]), np.uint8)
        whole[active] = Z
        if not active.all():
            whole[~active] = self.allocate(self.rows.idle, budget)
        return self._replace(Z=whole)


class HeldFeatures(NamedTuple):
    """Who has features."""

    n: int  # rows
    bare: int  # rows that have none
    counts: Array  # (K,) rows that have each

    @classmethod
    def of(cls, Z: Array) -> "HeldFeatures":
        """Of an allocation."""
        return cls(len(Z), int((~Z.any(axis=1)).sum()), Z.sum(axis=0, dtype=np.int64))


class FittedFeatures(NamedTuple):
    """Features as they are published."""

    model: FeatureModel
    inertia: float
    total: float  # sum of squares of X
    trace: Array  # objective after each step of the best restart
    converged: bool
    restarts: list[Restart]
    held: HeldFeatures
    used: int  # features that some row with weight has
    lam: float | None = None  # None: K was given
    window: tuple[float, float] | None = None  # of lam, in which this K is best; None if no path was followed
    path: FeaturePath | None = None
    chosen: ChosenPrice | None = None  # None: lam or K was given
    rows: Callable[[Any], Array] | None = None  # what rows in blocks have; None: the model says it of all

    @property
    def objective(self) -> float:
        """What was minimised; features that no row has cost nothing."""
        return self.inertia + (0.0 if self.lam is None else self.lam * self.used)


class FeatureProblem(NamedTuple):
    """Rows ready for a fit."""

    table: FeatureTable  # in as few columns as possible, for the search
    full: FeatureTable  # in the user's columns
    rows: WeightedRows
    place: Array  # rows of the tables that the rows with weight are
    shift: Array  # (p,) what was subtracted from the rows, with an intercept
    dtype: Any  # of the published means

    @classmethod
    def of(cls, X: Any, sample_weight: Any, *, intercept: bool, merge: bool, reduce: bool) -> "FeatureProblem":
        """Bind rows; those without weight are left out. ``merge`` copies; ``reduce`` to fewer columns."""
        weight = check_weight(sample_weight, X.shape[0])
        check_length(X)
        active = weight > 0 if weight.size else np.ones(X.shape[0], bool)
        idle = X[~active]
        if not active.all():
            X, weight = X[active], weight[active]
        if weight.size:
            check_evenness(weight.sum(), weight.min())
        X, rows = densify(X), WeightedRows(active, weight, idle)
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        if not sp.issparse(X):
            X = np.ascontiguousarray(X)
        place = np.arange(X.shape[0])
        if merge:
            X, weight, place = merge_copies(X, weight)
        # means next to the least numbers of single precision would have few digits
        single = X.dtype == np.float32 and float(abs(X).max()) > _LEAST_SINGLE
        dtype, shift = np.float32 if single else np.float64, np.zeros(X.shape[1])
        if intercept and not sp.issparse(X):  # features do not see the offset, and neither should rounding
            # weights of about one: the sum of weighted rows must not overflow
            even = np.ldexp(weight, -np.frexp(weight.max())[1]) if weight.size else None
            with np.errstate(over="ignore"):
                shift = np.average(X.astype(np.float64, copy=False), axis=0, weights=even)
            X = X - shift
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            full = FeatureTable(X, weight, intercept=intercept)
        check_arithmetic(full)
        reduced = reduce_columns(X) if reduce else X
        table = full if reduced is X else FeatureTable(reduced, weight, intercept=intercept)
        return cls(table, full, rows, place, shift, dtype)

    @property
    def n(self) -> int:
        """Number of rows that are looked at."""
        return self.full.n

    def start(self, init: Any, K: int | None) -> GivenStart | None:
        """The allocation (and means) to start from, None to draw them; K: the number there must be."""
        n, p, active = self.rows.active.size, self.full.p, self.rows.active
        if isinstance(init, str):
            return GivenStart(np.zeros((self.full.n, 0), np.uint8), None) if init == "empty" else None
        if isinstance(init, tuple) and len(init) != 2:
            raise ValueError(f"init is a tuple of {len(init)}; pass Z, or the two arrays (Z, A).")
        Z, A = init if isinstance(init, tuple) else (init, None)
        Z = Z.toarray() if sp.issparse(Z) else np.asarray(Z)
        if Z.ndim != 2 or Z.shape[0] != n:
            raise ValueError(f"init has shape {Z.shape}, but X has {n} rows. Pass Z (n, K) or (Z, A).")
        if not np.isin(Z, (0, 1)).all():
            raise ValueError("init must hold an allocation of zeros and ones; other values were found.")
        if K is not None and Z.shape[1] != K:
            raise ValueError(f"init has {Z.shape[1]} columns, but n_components={K}.")
        if A is not None:
            A = np.asarray(A, dtype=np.float64)
            if A.shape != (Z.shape[1], p) or not np.isfinite(A).all():
                raise ValueError(f"The means in init have shape {A.shape}; finite ones {(Z.shape[1], p)} are due.")
        return GivenStart(np.ascontiguousarray(Z[active], np.uint8), A)

    def fit_fixed(self, K: int, goal: FeatureGoal, seed: Seed, budget: Budget) -> FittedFeatures:
        """K features."""
        found = fit_fixed(self.table, K, goal, seed.spawn(goal.n_init + 1), None, budget)
        return self._fitted(found, budget)

    def fit_priced(self, goal: FeatureGoal, seed: Seed, budget: Budget) -> FittedFeatures:
        """Features at the price of the goal."""
        assert goal.price is not None
        check_price(goal.price, float(self.full.weight.min()), self.full.total)
        seeds = seed.spawn(2)[0].spawn(goal.n_init + 1)
        return self._fitted(fit_priced(self.table, goal, seeds, None, budget), budget, goal.price)

    def fit_auto(self, goal: FeatureGoal, seed: Seed, budget: Budget) -> FittedFeatures:
        """Features at a price that a path of growing numbers of them suggests."""
        later, first = seed.spawn(2)
        rule, n_init = RowRule.of(self.full.n, exact=True), min(goal.n_init, FEATURES.survey_restarts)
        growing = goal._replace(algorithm="extended", start=None, n_init=n_init, rule=rule)
        path = survey(Stepper(self.table, growing, first, budget), None)
        chosen = self._chosen(path, budget)
        if budget.spent:  # what there is when the time is up
            found = _of_path(path, chosen.n_components, chosen.lam)
        else:
            goal, known = goal._replace(price=chosen.lam), path.runs[chosen.n_components].state
            found = fit_priced(self.table, goal, later.spawn(goal.n_init + 1), known, budget)
        fitted = self._fitted(found, budget, chosen.lam, path)
        return fitted._replace(window=chosen.window, chosen=chosen)

    def fit_stepwise(
        self, lam: float, patience: int, most: int | None, goal: FeatureGoal, seed: Seed, budget: Budget
    ) -> FittedFeatures:
        """Features as long as more of them pay."""
        check_price(lam, float(self.full.weight.min()), self.full.total)
        path = grow_path(Stepper(self.table, goal, seed, budget), lam, patience, most)
        return self._best_of(path, lam, budget)

    def fit_stepwise_auto(self, most: int | None, goal: FeatureGoal, seed: Seed, budget: Budget) -> FittedFeatures:
        """The same at a price that is chosen when some numbers of features have been looked at."""
        path = survey(Stepper(self.table, goal, seed, budget), most)
        chosen = self._chosen(path, budget)
        return self._best_of(path, chosen.lam, budget)._replace(chosen=chosen)

    def _best_of(self, path: StepwisePath, lam: float, budget: Budget) -> FittedFeatures:
        """The best features of a path at a price."""

        def best() -> tuple[FoundFeatures, tuple[float, float]]:
            K = int(np.argmin(path.objective(lam)))
            lo, hi = windows(path)[K]
            restarts = [restart for some in path.restarts for restart in some]
            return _of_path(path, K, lam)._replace(restarts=restarts), (float(lo), float(hi))

        found, window = attempt(best, best, budget)
        return self._fitted(found, budget, lam, path)._replace(window=window)

    def price_of(self, K: int, goal: FeatureGoal, seed: Seed, budget: Budget) -> tuple[float | None, Array]:
        """The price at which K features are best, None if another number always is; and the inertia of each number."""
        price, path = price_of(Stepper(self.table, goal, seed, budget), K)
        return price, path.inertia

    def _chosen(self, path: StepwisePath, budget: Budget) -> ChosenPrice:
        def choose() -> ChosenPrice:
            return choose_price(path, self.table)

        return attempt(choose, choose, budget)

    def _fitted(
        self, found: FoundFeatures, budget: Budget, lam: float | None = None, path: StepwisePath | None = None
    ) -> FittedFeatures:
        """What is published; done again if the user interrupts it."""

        def describe() -> FittedFeatures:
            model, inertia = self._model(found.run.state, budget)
            follows = None if path is None or lam is None else self._path(path, lam)
            trace, converged = np.array(found.run.trace), bool(found.run.converged)
            used = int(model.Z[model.rows.active].any(axis=0).sum())
            seen = found.restarts, HeldFeatures.of(model.Z), used
            return FittedFeatures(model, inertia, self.full.total, trace, converged, *seen, lam, path=follows)

        return attempt(describe, describe, budget)

    def _model(self, state: FeatureState, budget: Budget) -> tuple[FeatureModel, float]:
        """The features of a finished fit, in the user's columns and units; and what they leave."""
        Z = np.ascontiguousarray(state.Z[:, display_order(state.Z, self.full.weight)])
        means = solve(self.full, Z).means
        A, base = in_precision(means._replace(base=means.base + self.shift), self.dtype)
        inertia = explicit_inertia(self.full, Z, Means(A.astype(float), base.astype(float) - self.shift))
        model = FeatureModel(A, base, self.full.intercept, np.empty((0, 0), np.uint8), self.rows)
        return model.on_all_rows(Z[self.place], budget), inertia

    def _path(self, path: StepwisePath, lam: float) -> FeaturePath:
        """A path for the user, means in the user's columns."""
        means = [solve(self.full, run.state.Z).means.A for run in path.runs]
        return FeaturePath(np.arange(len(path.runs)), path.inertia, path.objective(lam), windows(path), means)


def in_precision(means: Means, dtype: Any) -> Means:
    """The means in single precision, if they are to be and it holds them."""
    if max(largest_of(means.A), largest_of(means.base)) > float(np.finfo(dtype).max):
        return means
    return Means(means.A.astype(dtype), means.base.astype(dtype))


def _of_path(path: StepwisePath, K: int, lam: float) -> FoundFeatures:
    """The features of one number of a path."""
    run = path.runs[K]
    trace, converged = [value + lam * K for value in run.trace], run.converged and path.complete
    return FoundFeatures(run._replace(trace=trace, converged=converged), path.restarts[K])
