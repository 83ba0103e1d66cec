"""One fit of the hard HDP from start to published result: passes, search, closing assignment."""

from collections.abc import Callable

from kfree.inference.clusters.table import Memory, Table, make_memory
from kfree.inference.goal import Goal, Search
from kfree.inference.loop import Budget, Outcome, attempt
from kfree.inference.shared.groups import Groups
from kfree.inference.shared.hdp_numbers import HDP
from kfree.inference.shared.hdp_pass import SharedFit, close, run_passes
from kfree.inference.shared.hdp_search import improve
from kfree.inference.shared.row_choices import SharedState


def fit_shared(table: Table, groups: Groups, state: SharedState, goal: Goal, budget: Budget) -> SharedFit:
    """Fit from a starting state."""
    memory = make_memory(table.n)
    nothing = Outcome(state, [], False)
    outcome = attempt(lambda: run_passes(table, groups, state, memory, goal, budget), lambda: nothing, budget)
    if goal.search is Search.FULL and not budget.interrupted:
        outcome = attempt(
            lambda: _search(table, groups, outcome, memory, goal, budget),
            lambda: outcome._replace(converged=False),
            budget,
        )

    def from_scratch() -> SharedFit:  # what is remembered of the rows may be half of one pass and half of another
        return close(table, groups, make_memory(table.n), goal, outcome)

    if budget.interrupted:
        return from_scratch()
    return attempt(lambda: close(table, groups, memory, goal, outcome), from_scratch, budget)


def _keep_in_bounds(search: Callable[[Goal], Outcome], found: int, goal: Goal, budget: Budget) -> Outcome:
    """Search; where lam came with a number of clusters, splits may not run away from it.

    If they do, the price was too low for what a better search can do: it keeps to moves of rows and merges.
    """
    if not (goal.paired and goal.search is Search.FULL):
        return search(goal)
    most = int(HDP.runaway * found) + 1
    outcome = search(goal._replace(max_clusters=min(most, goal.max_clusters)))
    if outcome.state.centres.mean.shape[0] < most or budget.spent:
        return outcome
    return search(goal._replace(search=Search.POLISH))


def _search(table: Table, groups: Groups, outcome: Outcome, memory: Memory, goal: Goal, budget: Budget) -> Outcome:
    """Stronger search from an outcome."""
    found = outcome.state.centres.mean.shape[0]
    return _keep_in_bounds(lambda goal: improve(table, groups, outcome, memory, goal, budget), found, goal, budget)
