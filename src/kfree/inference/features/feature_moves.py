"""Moves beyond the paper: take a feature out, put a new one in, polish, and keep what is better."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.features.allocation import FeatureState, residual_squares, settle, settle_with_reseeds, solve
from kfree.inference.features.bp_means import run_bp_means
from kfree.inference.features.collapsed_bp import run_collapsed_bp
from kfree.inference.features.feature_goal import FeatureGoal
from kfree.inference.features.feature_numbers import FEATURES
from kfree.inference.features.feature_seeds import Seeding, add_feature
from kfree.inference.features.feature_table import FeatureTable
from kfree.inference.features.k_features import run_k_features
from kfree.inference.loop import Budget, Outcome, attempt, repeat


def polishable(table: FeatureTable) -> bool:
    """Whether the collapsed moves are tried: they look at dense rows, many times; at uneven ones too slowly."""
    small = table.n <= FEATURES.polish_rows and not (table.sparse and table.n * table.p > FEATURES.polish_entries)
    return small and not table.uneven


def removal_costs(table: FeatureTable, state: FeatureState) -> Array:
    """By how much the inertia rises if a feature is taken out, the bits of the others staying."""
    if table.uneven:  # sums of all rows do not say what light ones do
        cost = np.array([without(table, state, k).inertia for k in range(state.K)]) - state.inertia
        return np.maximum(cost, 0.0)
    return costs_of_removal(table.sums(state.Z)[0], state.means.A, intercept=table.intercept)


def costs_of_removal(S: Array, A: Array, *, intercept: bool) -> Array:
    """The same from sums of bits (with an intercept its column is the first) and the means."""
    whole = S.diagonal().max(initial=0.0) or 1.0  # weights may be so small that one over them overflows
    inverse = np.linalg.pinv(S / whole, hermitian=True).diagonal()[1 if intercept else 0 :]
    length = np.einsum("ij,ij->i", A, A)
    return np.where(length > 0, whole * length / np.maximum(inverse, np.finfo(float).tiny), 0.0)


def without(table: FeatureTable, state: FeatureState, k: int) -> FeatureState:
    """The best means without feature k."""
    Z = np.ascontiguousarray(np.delete(state.Z, k, axis=1))
    found = solve(table, Z)
    return FeatureState(Z, found.means, found.inertia)


def with_seed(table: FeatureTable, state: FeatureState, rng: np.random.Generator) -> FeatureState:
    """A drawn residual as one more feature, for all rows that it brings nearer."""
    left = residual_squares(table, state.Z, state.means)
    return add_feature(table, Seeding(state.Z, state.means, left), rng).state


def draw_feature(cost: Array, rng: np.random.Generator) -> int:
    """A feature, the more likely the less it costs to take it out."""
    chance = 1.0 / np.maximum(cost, FEATURES.least_cost * max(cost.max(), np.finfo(float).tiny))
    chance = np.cumsum(chance / chance.max())
    return int(min(np.searchsorted(chance, rng.random() * chance[-1], side="right"), cost.size - 1))


def then(before: Outcome, after: Outcome) -> Outcome:
    """Two runs as one."""
    return Outcome(after.state, before.trace + after.trace, after.converged)


def prune(table: FeatureTable, state: FeatureState, goal: FeatureGoal, budget: Budget) -> FeatureState:
    """Take out features that save less than their price, the cheapest first; none is without one."""
    if goal.price is None:
        return state
    least = goal.price - FEATURES.better * goal.price - table.share(FEATURES.better)

    def one_less(state: FeatureState) -> tuple[FeatureState, bool]:
        cost = removal_costs(table, state)
        k = int(cost.argmin())
        return (without(table, state, k), False) if cost[k] < least else (state, True)

    return repeat(one_less, state, budget, most=state.K, always=state.K)[0]


def polish(table: FeatureTable, state: FeatureState, goal: FeatureGoal, budget: Budget) -> Outcome:
    """Single rows with the means solved for, then (with a price) features that do not pay; until neither helps.

    Features of single rows are left to ``finish`` unless there are few rows: a poor allocation would get one for each
    row that it fits badly, where a shared one is due.
    """
    rows = goal if not goal.priced or table.n <= FEATURES.few_rows else goal._replace(price=None)

    def one_round(sofar: Outcome) -> tuple[Outcome, bool]:
        found = run_collapsed_bp(table, sofar.state, rows, budget)
        found = Outcome(found.state, [*sofar.trace, goal.objective(found.state)], found.converged)
        return _pruned(table, found, goal, budget)

    polished = Outcome(state, [goal.objective(state)], True)
    if polishable(table):
        polished, _ = repeat(one_round, polished, budget, always=1)
    owed = 0 if goal.priced else state.K - polished.state.K  # columns that became dependent
    if owed:
        padded = np.concatenate([polished.state.Z, np.zeros((table.n, owed), np.uint8)], axis=1)
        whole = settle_with_reseeds(table, padded, budget)
        polished = then(polished, Outcome(whole, [goal.objective(whole)], polished.converged))
    return polished


def _pruned(table: FeatureTable, run: Outcome, goal: FeatureGoal, budget: Budget) -> tuple[Outcome, bool]:
    """A run without the features that do not pay, and whether there was none: else what is left may do better."""
    kept = prune(table, run.state, goal, budget)
    if kept.K == run.state.K:
        return run, True
    return then(run, Outcome(kept, [goal.objective(kept)], False)), False


def descend(table: FeatureTable, start: FeatureState, goal: FeatureGoal, budget: Budget) -> Outcome:
    """K-features, then the polish."""
    run = run_k_features(table, start, goal, budget)

    def polished() -> Outcome:
        # what does not pay need not be polished
        state = prune(table, settle(table, run.state.Z), goal, budget) if goal.priced else run.state
        found = polish(table, state, goal, budget)
        return Outcome(found.state, found.trace, found.converged and (run.converged or polishable(table)))

    return attempt(polished, lambda: Outcome(run.state, [goal.objective(run.state)], False), budget)


def _trial(
    table: FeatureTable, state: FeatureState, move: str, goal: FeatureGoal, rng: np.random.Generator, budget: Budget
) -> Outcome:
    if move != "grow" and state.K:
        state = without(table, state, draw_feature(removal_costs(table, state), rng))
    return descend(table, state if move == "shrink" else with_seed(table, state, rng), goal, budget)


class _Tries(NamedTuple):
    """The best so far, and the moves that did not better it."""

    best: Outcome
    failures: int = 0  # in a row
    turn: int = 0  # in all


def try_moves(
    table: FeatureTable, start: Outcome, goal: FeatureGoal, rng: np.random.Generator, budget: Budget
) -> Outcome:
    """Moves until so many in a row have failed: swaps, and with a price one feature more or less, too."""
    moves = FEATURES.moves if goal.priced else ("swap",)

    def hopeless(best: Outcome) -> bool:
        return not goal.priced and (best.state.inertia <= FEATURES.exhausted * table.total or not best.state.K)

    def one_move(now: _Tries) -> tuple[_Tries, bool]:
        best, turn = now.best, now.turn
        trial = _trial(table, best.state, moves[turn % len(moves)], goal, rng, budget)
        value = goal.objective(trial.state)
        if value < goal.objective(best.state) - table.share(FEATURES.better):
            best = Outcome(trial.state, [*best.trace, value], trial.converged)
            return _Tries(best, 0, turn), hopeless(best)  # and the same move again
        return _Tries(best, now.failures + 1, turn + 1), now.failures + 1 >= FEATURES.patience

    return start if hopeless(start) else repeat(one_move, _Tries(start), budget)[0].best


def finish(table: FeatureTable, run: Outcome, goal: FeatureGoal, budget: Budget) -> Outcome:
    """BP-means, its collapsed form and prunes until none helps."""

    def one_round(run: Outcome) -> tuple[Outcome, bool]:
        run = then(run, run_bp_means(table, run.state, goal, budget))
        before = run.state
        if polishable(table):
            run = then(run, run_collapsed_bp(table, before, goal, budget))
        # with many features the collapsed form tries single bits only, and rows may have better combinations again
        fell = goal.objective(run.state) < goal.objective(before) - table.share(FEATURES.better)
        pruned, paid = _pruned(table, run, goal, budget)
        if paid and FEATURES.most_exhaustive < before.K and fell:
            return then(run, Outcome(run.state, [goal.objective(run.state)], False)), False
        return pruned, paid

    return repeat(one_round, run, budget, always=1)[0]
