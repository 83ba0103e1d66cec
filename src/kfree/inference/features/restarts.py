"""Fits of features: restarts, searched on a sample where the table is long, and the best of them.

An interrupt keeps the restarts that have ended, and what the one under way has come to.
"""

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter, sleep
from typing import NamedTuple, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from kfree.inference.features.allocation import (
    FeatureState,
    Means,
    empty_state,
    settle,
    settle_with_reseeds,
    solve,
)
from kfree.inference.features.best_rows import allocate
from kfree.inference.features.feature_algorithms import FIXED, PRICED
from kfree.inference.features.feature_goal import FeatureGoal, GivenStart
from kfree.inference.features.feature_moves import finish, then, with_seed
from kfree.inference.features.feature_numbers import FEATURES
from kfree.inference.features.feature_sample import FeatureSample, draw_sample
from kfree.inference.features.feature_seeds import seed_fixed, seed_greedy
from kfree.inference.features.feature_table import FeatureTable
from kfree.inference.features.k_features import run_k_features
from kfree.inference.loop import Budget, Info, Outcome, attempt, repeat

T = TypeVar("T")


class Restart(NamedTuple):
    """What one restart came to."""

    objective: float
    n_components: int
    seconds: float


class Ended(NamedTuple):
    """A restart with where it ended."""

    run: Outcome
    restart: Restart


class FoundFeatures(NamedTuple):
    """The best run, and what all came to."""

    run: Outcome
    restarts: list[Restart]


class Origin(NamedTuple):
    """What a restart begins with."""

    turn: int
    seed: np.random.SeedSequence
    warm: FeatureState | None = None  # a solution with fewer features, to be grown


def in_turn(jobs: Sequence[Callable[[], T]], budget: Budget, *, always: int) -> list[T]:
    """What each of some jobs gives; what those gave that ended, if the user interrupts or the time is up."""

    def one(done: list[T]) -> tuple[list[T], bool]:
        return [*done, jobs[len(done)]()], False

    none: list[T] = []
    return repeat(one, none, budget, most=len(jobs), always=always)[0]


class _Board:
    """What threads have begun and ended; other processes only have copies of it."""

    def __init__(self, budget: Budget, number: int) -> None:
        self._budget, self._number = budget, number
        self.begun: list[int] = []
        self.over: list[int] = []
        self.ended: dict[int, Ended] = {}

    def note(self, turn: int, job: Callable[[], Ended]) -> Ended:
        """Do a job, and keep what it gives."""
        self.begun.append(turn)
        try:
            found = self.ended[turn] = job()
        finally:
            self.over.append(turn)
        value, K, _ = found.restart
        self._budget.tell("restart", len(self.ended), Info(value, 0.0, np.nan, 0, K, of=self._number))
        return found

    def wait(self) -> list[Ended]:
        """What has ended when nothing is under way; a second interrupt ends the wait."""

        def look(_: None) -> tuple[None, bool]:
            sleep(FEATURES.look)
            return None, len(self.over) == len(self.begun)

        repeat(look, None, Budget())
        return [self.ended[turn] for turn in sorted(self.ended)]


def spread(jobs: Sequence[Callable[[], Ended]], goal: FeatureGoal, budget: Budget) -> list[Ended]:
    """Restarts in turn, or several at a time: kernels release the GIL, so threads do.

    If the user interrupts threads, those restarts that are under way soon end, as the budget is spent.
    """
    board, workers = _Board(budget, len(jobs)), Parallel(n_jobs=goal.n_jobs, prefer="threads")
    if len(jobs) == 1 or effective_n_jobs(goal.n_jobs) == 1:
        return in_turn([partial(board.note, turn, job) for turn, job in enumerate(jobs)], budget, always=1)
    tasks = (delayed(board.note)(turn, job) for turn, job in enumerate(jobs))
    return attempt(lambda: list(workers(tasks)), board.wait, budget)


def begins_with_mean(table: FeatureTable, goal: FeatureGoal, K: int, turn: int) -> bool:
    """Whether restart ``turn`` begins with the mean: by default in turn, and the mean first where there is one."""
    if goal.first != "in turn":
        return goal.first == "mean"
    if turn % 2:
        return False
    mean = table.mean
    return K >= 2 or bool(table.mass * (mean @ mean) > FEATURES.base_share * table.total)


def given_state(table: FeatureTable, start: GivenStart) -> FeatureState:
    """The user's allocation, with the user's means or the best ones."""
    Z, A = start
    if A is None:
        return FeatureState(Z, solve(table, Z).means)
    if not table.intercept:
        return FeatureState(Z, Means(A, np.zeros(table.p)))
    # the intercept that goes best with given means
    return FeatureState(Z, Means(A, table.mean - (table.weight @ Z.astype(np.float64)) @ A / table.mass))


def fixed_restart(table: FeatureTable, K: int, goal: FeatureGoal, origin: Origin, budget: Budget) -> Ended:
    """K features from one start."""
    clock, rng = perf_counter(), np.random.default_rng(origin.seed)
    if origin.warm is not None:
        start = origin.warm
        for _ in range(start.K, K):
            start = with_seed(table, start, rng)
    elif goal.start is not None:
        start = given_state(table, goal.start)
    else:
        start = seed_fixed(table, K, begins_with_mean(table, goal, K, origin.turn), rng).state
    return _ended(FIXED[goal.algorithm](table, start, goal, budget, rng), goal, clock)


def priced_restart(table: FeatureTable, goal: FeatureGoal, origin: Origin, budget: Budget) -> Ended:
    """Features at a price from one start."""
    assert goal.price is not None
    clock, rng = perf_counter(), np.random.default_rng(origin.seed)
    if goal.start is not None:
        start = given_state(table, goal.start)
    else:
        # the moves add what is missing; too many to begin with only take time
        most = min(FEATURES.most_exhaustive, table.n) if goal.algorithm == "extended" else table.n
        base = begins_with_mean(table, goal, 2, origin.turn)
        start = seed_greedy(table, goal.price, base, most, rng, budget).state
    return _ended(PRICED[goal.algorithm](table, start, goal, budget, rng), goal, clock)


def _ended(run: Outcome, goal: FeatureGoal, clock: float) -> Ended:
    return Ended(run, Restart(goal.objective(run.state), run.state.K, perf_counter() - clock))


class RestartRows(NamedTuple):
    """Where restarts are made: on all rows, or on a sample of a long table; and how the best of them is found."""

    table: FeatureTable  # all rows
    sample: FeatureSample | None  # None: there is none
    goal: FeatureGoal
    budget: Budget

    @classmethod
    def of(cls, table: FeatureTable, goal: FeatureGoal, seed: np.random.SeedSequence, budget: Budget) -> "RestartRows":
        """Draw the sample, if there is to be one."""
        if goal.algorithm != "extended" or goal.start is not None:
            return cls(table, None, goal, budget)

        def draw() -> FeatureSample | None:
            return draw_sample(table, np.random.default_rng(seed))

        return cls(table, attempt(draw, draw, budget), goal, budget)

    @property
    def rows(self) -> FeatureTable:
        """The rows that restarts see."""
        return self.table if self.sample is None else self.sample.table

    def first_best(self, runs: list[Outcome]) -> Outcome:
        """The best run. Of equivalent ones (the same but for rounding) that with the fewest bits, then the first: so
        neither units nor threads choose."""
        same, values = FEATURES.same, [self.goal.objective(run.state) for run in runs]
        least = min(values)
        near = least + same * abs(least) + self.table.share(same)
        equal = [run for run, value in zip(runs, values) if value <= near]
        bits = [float(self.table.weight @ run.state.Z.sum(axis=1, dtype=np.float64)) for run in equal]
        return next(run for run, count in zip(equal, bits) if count <= min(bits) * (1.0 + same))

    def bring(self, state: FeatureState) -> FeatureState:
        """An allocation of the sample brought to all rows: each gets its best features."""
        assert self.sample is not None
        means = self.sample.means(state)
        return FeatureState(allocate(self.table, means, self.goal.while_searching().rule, self.budget)[0], means)

    def all_of(self, jobs: Sequence[Callable[[], T]]) -> list[T]:
        """What all jobs give, or those that ended if the user interrupts; but one at least."""
        return in_turn(jobs, self.budget, always=len(jobs)) or [jobs[0]()]

    def best_fixed(self, ended: list[Ended], warm: Origin | None) -> Outcome:
        """The best K features on all rows."""
        table, goal, budget = self.table, self.goal, self.budget
        if self.sample is None:
            best = self.first_best([some.run for some in ended])
            if goal.algorithm == "paper" or (FEATURES.most_exhaustive >= best.state.K and goal.rule.exact):
                return best
            # once more with rows searched as the user asked; K-features must not find anything
            return then(best, run_k_features(table, best.state, goal, budget))

        def on_all_rows(state: FeatureState) -> Outcome:
            return run_k_features(table, self.bring(state), goal, budget)

        def grown(warm: FeatureState, seed: np.random.SeedSequence) -> Outcome:
            return run_k_features(table, with_seed(table, warm, np.random.default_rng(seed)), goal, budget)

        jobs = [partial(on_all_rows, state) for state in _best_few(ended)]
        if warm is not None and warm.warm is not None:
            # on the whole table, so that its inertia never exceeds that of fewer features
            jobs.append(partial(grown, warm.warm, warm.seed))
        return self.first_best(self.all_of(jobs))

    def best_priced(self, ended: list[Ended], known: FeatureState | None) -> Outcome:
        """The best features at a price on all rows; no features and ``known`` ones are looked at, too."""
        table, goal = self.table, self.goal
        runs = [some.run for some in ended]
        if goal.algorithm != "extended":
            return self.first_best(runs)

        def on_all_rows(state: FeatureState) -> Outcome:
            return Outcome(settle(table, self.bring(state).Z), [], True)

        nothing = _at_rest(empty_state(table), goal)
        if self.sample is not None:
            runs = self.all_of([partial(on_all_rows, state) for state in _best_few(ended)])
        else:
            runs = [self.first_best(runs)]
        runs += [] if known is None else [_at_rest(known, goal)]
        if self.sample is None:
            runs = [self.first_best([*runs, nothing])]
        runs = self.all_of([partial(finish, table, run, goal, self.budget) for run in runs])
        return self.first_best([*runs, nothing])


def _at_rest(state: FeatureState, goal: FeatureGoal, converged: bool = True) -> Outcome:
    return Outcome(state, [goal.objective(state)], converged)


def _best_few(ended: list[Ended]) -> list[FeatureState]:
    """The best few ends that differ."""
    values = [some.restart.objective for some in ended]
    chosen: list[int] = []
    for i in np.argsort(values, kind="stable"):
        if all(abs(values[i] - values[j]) > FEATURES.distinct * abs(values[i]) for j in chosen):
            chosen.append(int(i))
    return [ended[i].run.state for i in chosen[: FEATURES.brought]]


def fit_fixed(
    table: FeatureTable,
    K: int,
    goal: FeatureGoal,
    seeds: list[np.random.SeedSequence],
    warm: FeatureState | None,
    budget: Budget,
) -> FoundFeatures:
    """The best K features of all restarts, and of one that grows ``warm``; of those that ended, if interrupted."""

    def nothing() -> FoundFeatures:
        Z = np.zeros((table.n, K), np.uint8)
        if warm is not None:
            Z[:, : warm.K] = warm.Z
        # the user's budget is spent
        return FoundFeatures(_at_rest(settle_with_reseeds(table, Z, Budget()), goal, False), [])

    def found() -> FoundFeatures:
        where = RestartRows.of(table, goal, seeds[-1], budget)
        origins, last = [Origin(turn, seed) for turn, seed in enumerate(seeds[:-1])], None
        if warm is not None:
            last = Origin(0, seeds[-1], warm)
            origins.append(last if where.sample is None else last._replace(warm=where.sample.part(warm)))
        jobs = [partial(fixed_restart, where.rows, K, goal, origin, budget) for origin in origins]
        ended = spread(jobs, goal, budget)
        if not ended:
            return nothing()
        best = partial(where.best_fixed, ended, last)
        return FoundFeatures(attempt(best, best, budget), [some.restart for some in ended])

    return attempt(found, nothing, budget)


def fit_priced(
    table: FeatureTable,
    goal: FeatureGoal,
    seeds: list[np.random.SeedSequence],
    known: FeatureState | None,
    budget: Budget,
) -> FoundFeatures:
    """The best features at a price; ``known`` is a solution that the best must not be worse than."""

    def nothing() -> FoundFeatures:
        return FoundFeatures(_at_rest(empty_state(table) if known is None else known, goal, False), [])

    def found() -> FoundFeatures:
        where = RestartRows.of(table, goal, seeds[-1], budget)
        assert goal.price is not None
        small = goal._replace(price=goal.price * (where.rows.mass / table.mass))
        origins = [Origin(turn, seed) for turn, seed in enumerate(seeds[:-1])]
        ended = spread([partial(priced_restart, where.rows, small, origin, budget) for origin in origins], goal, budget)
        if not ended:
            return nothing()
        best = partial(where.best_priced, ended, known)
        return FoundFeatures(attempt(best, best, budget), [some.restart for some in ended])

    return attempt(found, nothing, budget)
