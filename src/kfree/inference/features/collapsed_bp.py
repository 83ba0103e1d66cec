"""Collapsed BP-means (Algorithm 3): rows one at a time, with the means solved for at every visit."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.features.allocation import FeatureState, Means, settle
from kfree.inference.features.careful_bp import BIRTH, DONE, REPLACED, careful_rows
from kfree.inference.features.feature_goal import FeatureGoal
from kfree.inference.features.feature_numbers import FEATURES
from kfree.inference.features.feature_table import FeatureTable
from kfree.inference.features.k_features import PassesMade, runs_compiled
from kfree.inference.loop import Budget, Info, Outcome, check_fall, repeat, run
from kfree.kernels import kernels

# How the compiled passes end.
_RESTS, _DEPENDENT = 1, 2


class Visits(NamedTuple):
    """How far a pass has come."""

    state: FeatureState
    changed: int = 0  # rows that changed, and features born
    rows: int = 0  # rows that were visited


def collapsed_pass(
    table: FeatureTable, X: Array, state: FeatureState, goal: FeatureGoal, budget: Budget
) -> tuple[FeatureState, int]:
    """Visit every row once; the state, and how many rows changed."""

    def some_rows(now: Visits) -> tuple[Visits, bool]:
        Z, event, changed, rows = _visit(table, X, goal, now, budget)
        state = settle(table, Z)
        before, after = goal.objective(now.state), goal.objective(state)
        check_fall(before, after, table.total, "in a pass of collapsed BP-means")
        return Visits(state, now.changed + changed, rows), event == DONE or rows >= table.n

    done, _ = repeat(some_rows, Visits(state), budget, always=1)
    return done.state, done.changed


def _visit(
    table: FeatureTable, X: Array, goal: FeatureGoal, now: Visits, budget: Budget
) -> tuple[Array, int, int, int]:
    """Visit rows until a feature comes or goes, or rounding must be cleared away.

    Returns the allocation, what happened, the rows that changed, and how many have been visited.
    """
    fixed = int(table.intercept)
    Z = np.concatenate([np.ones((table.n, fixed), np.uint8), now.state.Z], axis=1)
    S, T = table.sums(now.state.Z) if Z.shape[1] else (np.zeros((0, 0)), np.zeros((0, table.p)))
    M, A, G = np.zeros_like(S), np.zeros_like(T), np.zeros_like(S)
    price = np.inf if goal.price is None else goal.price  # that no feature comes or goes
    if table.uneven or not kernels().rebuild(S, T, M, A, G):
        n, event, changed, drop = careful_rows(table, X, goal, price, budget.stop, now.rows, Z)
    else:
        n, event, changed, drop = kernels().collapsed_rows(
            X, table.weight, table.square, price, fixed, goal.rule.exact, budget.stop, now.rows, Z, S, T, M, A, G
        )
    if event == REPLACED:
        Z = np.delete(Z, drop, axis=1)
    elif event == BIRTH:
        column = np.zeros((table.n, 1), np.uint8)
        column[n] = 1
        Z, changed = np.concatenate([Z, column], axis=1), changed + 1
    return np.ascontiguousarray(Z[:, fixed:]), event, changed, n + 1


def run_collapsed_bp(table: FeatureTable, start: FeatureState, goal: FeatureGoal, budget: Budget) -> Outcome:
    """Passes until nothing changes; without a price the number of features stays."""
    X = np.ascontiguousarray(table.dense(slice(0, table.n)))
    if not start.Z.any(axis=0).all():
        start = settle(table, start.Z)  # empty columns have no inverse

    if runs_compiled(table, start) and goal.price is None:
        return _compiled(table, X, start, goal, budget)

    def one_pass(state: FeatureState) -> tuple[FeatureState, Info]:
        state, changed = collapsed_pass(table, X, state, goal, budget)
        return state, Info(goal.objective(state), table.total, changed / table.n, 0, state.K)

    return run(one_pass, start, budget, phase="collapsed", tol=0.0, max_iter=goal.max_iter)


def _compiled(table: FeatureTable, X: Array, start: FeatureState, goal: FeatureGoal, budget: Budget) -> Outcome:
    """The same without a price for a table that fits the cache, some passes in one call."""

    def some_passes(now: PassesMade) -> tuple[PassesMade, Info]:
        state, scale = now.state, table.total
        Z, A = state.Z.copy(), state.means.A.copy()
        room = np.empty(min(FEATURES.visits_together, goal.max_iter - now.made))
        passes, ended = kernels().run_collapsed(X, table.weight, table.square, goal.rule.exact, budget.stop, Z, A, room)
        trace, changed = room[:passes].tolist(), int(ended != _RESTS)
        if ended == _DEPENDENT:
            state, changed = collapsed_pass(table, X, settle(table, Z), goal, budget)
            trace.append(state.inertia)
        else:
            state = FeatureState(Z, Means(A, state.means.base), trace[-1])
        earlier = tuple([Info(value, scale, 1.0, 0, state.K) for value in trace[:-1]])
        last = Info(trace[-1], scale, changed / table.n, 0, state.K, earlier)
        return PassesMade(state, now.made + len(trace)), last

    done = run(some_passes, PassesMade(start, 0), budget, phase="collapsed", tol=0.0, max_iter=goal.max_iter)
    return Outcome(done.state.state, done.trace, done.converged)
