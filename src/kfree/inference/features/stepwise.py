"""Stepwise K-features: one more feature after the other; the prices between which each number is best; lam="auto"."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.features.allocation import State, empty_state
from kfree.inference.features.feature_table import Table
from kfree.inference.features.k_features import Run
from kfree.inference.features.restarts import Plan, Restart, Spread, fit_fixed
from kfree.inference.loop import Budget
from kfree.inference.windows import envelope_windows

#: Most features looked at where the price is to be chosen, and rows there must be for each.
MOST, ROWS_EACH = 20, 3
#: A window this wide ends the search at half as many features more, and a few.
CLEAR, BEYOND = 3.0, 3
#: Inertia below this share of the sum of squares is a perfect fit; windows reach down to this share of their top.
PERFECT, DEEP = 1e-12, 1e-6
#: A widest window narrower than this says little.
NARROW = 1.5


class Path(NamedTuple):
    """The best features found for K = 0, 1, 2, ..."""

    runs: list[Run]
    restarts: list[list[Restart]]  # of each K

    @property
    def inertia(self) -> Array:
        """J_K."""
        return np.array([run.state.inertia for run in self.runs])

    def objective(self, lam: float) -> Array:
        """F_K = J_K + lam K."""
        return self.inertia + lam * np.arange(len(self.runs))


class Choice(NamedTuple):
    """A price chosen from a path."""

    lam: float
    window: tuple[float, float]  # prices between which n_components is best
    n_components: int
    clear: bool  # whether the window stands out


class Stepper:
    """Grows the path by one feature at a time; the better of restarts and of the last solution with one more."""

    def __init__(self, table: Table, plan: Plan, seed: np.random.SeedSequence, spread: Spread, budget: Budget):
        self.table, self.plan, self.seed, self.spread, self.budget = table, plan, seed, spread, budget
        nothing = empty_state(table)
        self.path = Path([Run(nothing, [nothing.inertia], True)], [[]])

    @property
    def K(self) -> int:
        """The last number of features."""
        return len(self.path.runs) - 1

    @property
    def last(self) -> State:
        """The last solution."""
        return self.path.runs[-1].state

    @property
    def exhausted(self) -> bool:
        """Whether more features cannot help."""
        return self.table.n <= self.K or self.last.inertia <= self.table.share(PERFECT)

    def step(self) -> None:
        """One more feature."""
        seeds = self.seed.spawn(self.plan.n_init + 1)
        warm = self.last if self.K else None
        fitted = fit_fixed(self.table, self.K + 1, self.plan, seeds, warm, self.spread, self.budget)
        run = fitted.run
        if run.state.inertia > self.last.inertia:  # rounding only, or the first feature of centred rows
            Z = np.concatenate([self.last.Z, np.zeros((self.table.n, 1), np.uint8)], axis=1)
            A = np.vstack([self.last.means.A, np.zeros((1, self.table.p))])
            state = State(Z, self.last.means._replace(A=A), self.last.inertia)
            run = Run(state, [state.inertia], run.converged)
        self.path.runs.append(run)
        self.path.restarts.append(fitted.restarts)


def grow_path(stepper: Stepper, lam: float, patience: int, most: int | None) -> Path:
    """Grow until the objective has risen ``patience`` times in a row; two features are always looked at, as a pair may
    pay where one does not."""
    rises = 0
    while (rises < patience or stepper.K < 2) and not stepper.exhausted and (most is None or most > stepper.K):
        if stepper.budget.spent and stepper.K:
            break
        stepper.step()
        value = stepper.path.objective(lam)
        rises = rises + 1 if value[-1] > value[-2] else 0
    return stepper.path


def survey(stepper: Stepper, most: int | None) -> Path:
    """Grow as far as a choice of the price needs."""
    limit = max(1, min(MOST, stepper.table.n // ROWS_EACH)) if most is None else most
    while limit > stepper.K and not stepper.exhausted and not (stepper.budget.spent and stepper.K):
        stepper.step()
        if most is None:
            K, ratio = widest(stepper.path, stepper.table)[:2]
            if ratio >= CLEAR and stepper.K >= 1.5 * K + BEYOND:
                break
    return stepper.path


def windows(path: Path) -> Array:
    """(K + 1, 2) prices between which each K is best: the slopes of the lower convex envelope; NaN off it."""
    J = path.inertia
    unit = J[0] if J[0] > 0 else 1.0  # slopes of very small or large numbers must not under- or overflow
    return envelope_windows(np.arange(len(path.runs)), J / unit) * unit


def widest(path: Path, table: Table) -> tuple[int, float, tuple[float, float]]:
    """Number of features with the widest window in ratio, the ratio, and the window; (0, 1, ...) if there is none.

    The last K of a path is left out, as its window may end higher, unless it fits perfectly; and so is a single
    feature that all rows have, as what it saves depends on where the origin lies.
    """
    best = (0, 1.0, (np.nan, np.nan))
    for K, (lo, hi) in enumerate(windows(path)):
        state = path.runs[K].state
        perfect = state.inertia <= table.share(PERFECT)
        if K == 0 or np.isnan(lo) or not hi > 0 or (len(path.runs) - 1 == K and not perfect):
            continue
        if K == 1 and not table.intercept and state.Z.all():
            continue
        low = max(lo, DEEP * hi)
        if hi / low > best[1]:
            best = (K, hi / low, (float(lo), float(hi)))
    return best


def choose_lam(path: Path, table: Table) -> Choice:
    """The price in the middle of the widest window."""
    K, ratio, (lo, hi) = widest(path, table)
    if K:
        return Choice(float(np.sqrt(max(lo, DEEP * hi)) * np.sqrt(hi)), (lo, hi), K, ratio >= NARROW)
    J = path.inertia
    if len(J) > 1 and J[0] - J[1] > table.share(PERFECT):
        lo, hi = (max(float(J[1] - J[2]), 0.0) if len(J) > 2 else 0.0), float(J[0] - J[1])
        return Choice(float(np.sqrt(max(lo, DEEP * hi)) * np.sqrt(hi)), (lo, hi), 1, True)
    return Choice(table.total if table.total > 0 else 1.0, (0.0, np.inf), 0, True)


def window_of(path: Path, K: int) -> tuple[float, float]:
    """The window of one number of features; NaN if it is never best."""
    lo, hi = windows(path)[K]
    return float(lo), float(hi)
