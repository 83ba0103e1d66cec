"""K-features (Algorithm 4 of Broderick, Kulis & Jordan 2013): rows, then means, until no bit changes."""

from typing import NamedTuple

import numpy as np

from kfree.inference.features.allocation import FeatureState, Means, settle_with_reseeds
from kfree.inference.features.best_rows import improve_all_rows
from kfree.inference.features.feature_goal import FeatureGoal
from kfree.inference.features.feature_numbers import FEATURES
from kfree.inference.features.feature_table import FeatureTable
from kfree.inference.loop import Budget, Info, Outcome, run
from kfree.kernels import kernels

# How the compiled passes end.
_RESTS, _DEPENDENT = 1, 2


def runs_compiled(table: FeatureTable, start: FeatureState) -> bool:
    """Whether a table is small and plain enough for many passes in one call."""
    return bool(table.plain and len(table.spans) == 1 and start.K and not table.uneven)


def run_k_features(table: FeatureTable, start: FeatureState, goal: FeatureGoal, budget: Budget) -> Outcome:
    """Run K-features from an allocation and means (which need not be its best); the price plays no part."""
    # both come to the same bits, and whoever listens may want to stop after any pass
    passes = _compiled if runs_compiled(table, start) and not budget.told else _pass_by_pass
    done = passes(table, start.as_start(), goal, budget)
    if not done.state.solved:  # interrupted before the end of the first pass
        state = settle_with_reseeds(table, start.Z, budget)
        return Outcome(state, [state.inertia], False)
    return done


def _pass_by_pass(table: FeatureTable, start: FeatureState, goal: FeatureGoal, budget: Budget) -> Outcome:
    def one_pass(state: FeatureState) -> tuple[FeatureState, Info]:
        Z = state.Z.copy()
        found = improve_all_rows(table, Z, state.means, goal.rule, budget)
        if state.solved and not found.changed:
            return state, Info(state.inertia, table.total, 0.0, 0, state.K, idle=True)
        new = settle_with_reseeds(table, Z, budget, found.sums)
        return new, Info(new.inertia, table.total, found.changed / table.n, int(not state.solved), new.K)

    return run(one_pass, start, budget, phase="K-features", tol=0.0, max_iter=goal.max_iter, always=1)


class PassesMade(NamedTuple):
    """A state, and the passes that led to it."""

    state: FeatureState
    made: int


def _compiled(table: FeatureTable, start: FeatureState, goal: FeatureGoal, budget: Budget) -> Outcome:
    """The same for a table that fits the cache, many passes in one call; reseeds come back here."""

    def some_passes(now: PassesMade) -> tuple[PassesMade, Info]:
        state, rule = now.state, goal.rule
        Z, A = state.Z.copy(), state.means.A.copy()
        room = np.empty(min(FEATURES.passes_together, goal.max_iter - now.made))
        passes, ended = kernels().run_features(
            table.X, table.weight, table.square, rule.exact, rule.nodes, budget.stop, state.solved, Z, A, room
        )
        trace = room[:passes].tolist()
        if passes:
            state = FeatureState(Z, Means(A, state.means.base), trace[-1])
        if ended == _DEPENDENT:
            state = settle_with_reseeds(table, Z, budget)
        if ended in (_RESTS, _DEPENDENT):
            trace.append(state.inertia)
        scale, K = table.total, start.K
        earlier = tuple([Info(value, scale, 1.0, 0, K) for value in trace[:-1]])
        last = Info(trace[-1], scale, float(ended != _RESTS), 0, K, earlier, idle=ended == _RESTS)
        return PassesMade(state, now.made + len(trace)), last

    done = run(some_passes, PassesMade(start, 0), budget, phase="K-features", tol=0.0, max_iter=goal.max_iter, always=1)
    return Outcome(done.state.state, done.trace, done.converged)
