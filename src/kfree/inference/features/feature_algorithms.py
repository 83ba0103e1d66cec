"""The algorithms by name, all with one signature: from a start to where it leads."""

from collections.abc import Callable

import numpy as np

from kfree.families import Array
from kfree.inference.features.allocation import FeatureState, settle
from kfree.inference.features.bp_means import run_bp_means
from kfree.inference.features.collapsed_bp import run_collapsed_bp
from kfree.inference.features.feature_goal import FeatureGoal
from kfree.inference.features.feature_moves import descend, try_moves
from kfree.inference.features.feature_table import FeatureTable
from kfree.inference.features.k_features import run_k_features
from kfree.inference.loop import Budget, Outcome

Algorithm = Callable[[FeatureTable, FeatureState, FeatureGoal, Budget, np.random.Generator], Outcome]


def extended(
    table: FeatureTable, start: FeatureState, goal: FeatureGoal, budget: Budget, rng: np.random.Generator
) -> Outcome:
    """K-features and a polish, then moves."""
    goal = goal.while_searching()
    return try_moves(table, descend(table, start, goal, budget), goal, rng, budget)


def k_features(
    table: FeatureTable, start: FeatureState, goal: FeatureGoal, budget: Budget, rng: np.random.Generator
) -> Outcome:
    """Algorithm 4 of the paper."""
    return run_k_features(table, start, goal, budget)


def bp_means(
    table: FeatureTable, start: FeatureState, goal: FeatureGoal, budget: Budget, rng: np.random.Generator
) -> Outcome:
    """Algorithm 1 of the paper."""
    view, order = _visited(table, goal, rng)
    return _put_back(run_bp_means(view, start._replace(Z=start.Z[order]), goal, budget), order)


def collapsed_bp_means(
    table: FeatureTable, start: FeatureState, goal: FeatureGoal, budget: Budget, rng: np.random.Generator
) -> Outcome:
    """Algorithm 3 of the paper."""
    view, order = _visited(table, goal, rng)
    return _put_back(run_collapsed_bp(view, settle(view, start.Z[order]), goal, budget), order)


#: Algorithms for a number of features that is given.
FIXED: dict[str, Algorithm] = {"extended": extended, "paper": k_features}
#: Algorithms for features that have a price.
PRICED: dict[str, Algorithm] = {"extended": extended, "paper": bp_means, "collapsed": collapsed_bp_means}


def _visited(table: FeatureTable, goal: FeatureGoal, rng: np.random.Generator) -> tuple[FeatureTable, Array]:
    """The table in the order of the visits, and that order."""
    if not goal.shuffle:
        return table, np.arange(table.n)
    order = rng.permutation(table.n)
    weight = table.weight[order] if table.weighted else np.empty(0)
    return FeatureTable(table.X[order], weight, intercept=table.intercept), order


def _put_back(run: Outcome, order: Array) -> Outcome:
    """The rows of a run in the order of the table."""
    Z = np.empty_like(run.state.Z)
    Z[order] = run.state.Z
    return run._replace(state=run.state._replace(Z=Z))
