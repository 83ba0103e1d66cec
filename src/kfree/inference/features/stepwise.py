"""Stepwise K-features: one more feature after the other; the prices between which each number is best; lam="auto"."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.features.allocation import FeatureState, empty_state
from kfree.inference.features.feature_goal import FeatureGoal
from kfree.inference.features.feature_numbers import FEATURES
from kfree.inference.features.feature_table import FeatureTable
from kfree.inference.features.restarts import Restart, fit_fixed
from kfree.inference.loop import Budget, Outcome, attempt, repeat
from kfree.inference.windows import envelope_windows, width_ratios


class StepwisePath(NamedTuple):
    """The best features found for K = 0, 1, 2, ..."""

    runs: list[Outcome]
    restarts: list[list[Restart]]  # of each K
    complete: bool = False  # whether it has ended by itself

    @property
    def K(self) -> int:
        """The last number of features."""
        return len(self.runs) - 1

    @property
    def last(self) -> FeatureState:
        """The last solution."""
        state: FeatureState = self.runs[-1].state
        return state

    @property
    def inertia(self) -> Array:
        """J_K."""
        return np.array([run.state.inertia for run in self.runs])

    def objective(self, lam: float) -> Array:
        """F_K = J_K + lam K."""
        return self.inertia + lam * np.arange(len(self.runs))


class ChosenPrice(NamedTuple):
    """A price chosen from a path."""

    lam: float
    window: tuple[float, float]  # prices between which n_components is best
    n_components: int
    clear: bool  # whether the window stands out


class Stepper:
    """Grows a path by one feature at a time; the better of restarts and of the last solution with one more."""

    def __init__(self, table: FeatureTable, goal: FeatureGoal, seed: np.random.SeedSequence, budget: Budget):
        self.table, self.goal, self.seed, self.budget = table, goal, seed, budget

    def exhausted(self, path: StepwisePath) -> bool:
        """Whether more features cannot help."""
        return self.table.n <= path.K or path.last.inertia <= self.table.share(FEATURES.perfect)

    def step(self, path: StepwisePath) -> StepwisePath:
        """One more feature."""
        seeds, last = self.seed.spawn(self.goal.n_init + 1), path.last
        found = fit_fixed(self.table, path.K + 1, self.goal, seeds, last if path.K else None, self.budget)
        run = found.run
        if run.state.inertia > last.inertia:  # rounding only, or the first feature of centred rows
            Z = np.concatenate([last.Z, np.zeros((self.table.n, 1), np.uint8)], axis=1)
            A = np.vstack([last.means.A, np.zeros((1, self.table.p))])
            run = Outcome(FeatureState(Z, last.means._replace(A=A), last.inertia), [last.inertia], run.converged)
        return StepwisePath([*path.runs, run], [*path.restarts, found.restarts])

    def grow(self, enough: Callable[[StepwisePath], bool]) -> StepwisePath:
        """Grow until no more features can help or a path is ``enough``; one feature is looked at in any case."""

        def nothing() -> StepwisePath:
            state = empty_state(self.table)
            return StepwisePath([Outcome(state, [state.inertia], True)], [[]])

        def one_more(path: StepwisePath) -> tuple[StepwisePath, bool]:
            path = self.step(path)
            return path, self.exhausted(path) or enough(path)

        path = attempt(nothing, nothing, self.budget)
        if self.exhausted(path) or enough(path):
            return path._replace(complete=True)
        path, done = repeat(one_more, path, self.budget, always=1)
        return path._replace(complete=done and not self.budget.spent)


def grow_path(stepper: Stepper, lam: float, patience: int, most: int | None) -> StepwisePath:
    """Grow until the objective has risen ``patience`` times in a row; two features are always looked at, as a pair may
    pay where one does not."""

    def enough(path: StepwisePath) -> bool:
        rises = np.diff(path.objective(lam)[-patience - 1 :]) > 0
        risen = rises.size == patience and bool(rises.all())
        return (risen and path.K >= 2) or (most is not None and most <= path.K)

    return stepper.grow(enough)


def survey(stepper: Stepper, most: int | None) -> StepwisePath:
    """Grow as far as a choice of the price needs; to ``most`` features if that is given."""
    limit = max(1, min(FEATURES.survey_most, stepper.table.n // FEATURES.rows_each)) if most is None else most

    def enough(path: StepwisePath) -> bool:
        if most is not None or not path.K or limit <= path.K:
            return limit <= path.K
        K, ratio, _ = widest(path, stepper.table)
        return ratio >= FEATURES.clear and FEATURES.beyond_times * K + FEATURES.beyond_more <= path.K

    return stepper.grow(enough)


def windows(path: StepwisePath) -> Array:
    """(K + 1, 2) prices between which each K is best: the slopes of the lower convex envelope; NaN off it."""
    J = path.inertia
    unit = J[0] if J[0] > 0 else 1.0  # slopes of very small or large numbers must not under- or overflow
    return envelope_windows(np.arange(len(path.runs)), J / unit) * unit


def widest(path: StepwisePath, table: FeatureTable) -> tuple[int, float, tuple[float, float]]:
    """Number of features with the widest window in ratio, the ratio, and the window; (0, 1, ...) if there is none.

    The last K of a path is left out, as its window may end higher, unless it fits perfectly; and so is a single
    feature that all rows have, as what it saves depends on where the origin lies.
    """
    ends = windows(path)
    ratio = width_ratios(ends, FEATURES.deep)
    ratio[0] = -np.inf
    if path.runs[-1].state.inertia > table.share(FEATURES.perfect):
        ratio[-1] = -np.inf
    if path.K and not table.intercept and path.runs[1].state.Z.all():
        ratio[1] = -np.inf
    K = int(ratio.argmax())
    return (K, float(ratio[K]), (float(ends[K, 0]), float(ends[K, 1]))) if ratio[K] > 1 else (0, 1.0, (np.nan, np.nan))


def choose_price(path: StepwisePath, table: FeatureTable) -> ChosenPrice:
    """The price in the middle of the widest window."""
    K, ratio, (lo, hi) = widest(path, table)
    if K:
        return ChosenPrice(_middle(lo, hi), (lo, hi), K, ratio >= FEATURES.narrow)
    J = path.inertia
    if len(J) > 1 and J[0] - J[1] > table.share(FEATURES.perfect):
        lo, hi = (max(float(J[1] - J[2]), 0.0) if len(J) > 2 else 0.0), float(J[0] - J[1])
        return ChosenPrice(_middle(lo, hi), (lo, hi), 1, True)
    return ChosenPrice(table.total if table.total > 0 else 1.0, (0.0, np.inf), 0, True)


def _middle(lo: float, hi: float) -> float:
    """The geometric middle of a window; by two roots, as the product may leave the range of floats."""
    return float(np.sqrt(max(lo, FEATURES.deep * hi)) * np.sqrt(hi))


def price_of(stepper: Stepper, K: int) -> tuple[float | None, StepwisePath]:
    """The price at which K features are best, None if another number always is; and the path that says so."""
    path = stepper.grow(lambda path: K + FEATURES.beyond_more <= path.K)
    lo, hi = windows(path)[K] if path.K >= K else (np.nan, np.nan)
    return (_middle(lo, hi) if hi > 0 else None), path
