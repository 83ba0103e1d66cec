"""One fit of the hard HDP from start to published result: passes, search, closing assignment."""

from collections.abc import Callable

from kfree.families import Array
from kfree.inference.clusters.table import Memory, Table, make_memory
from kfree.inference.loop import Budget, Outcome
from kfree.inference.shared.groups import Groups
from kfree.inference.shared.hdp_pass import Fitted, Plan, Shared, close, run_passes
from kfree.inference.shared.hdp_search import improve

#: A search that ends with more than this many times the clusters of a price's own solution has run away.
RUNAWAY = 1.25


def _search(table: Table, groups: Groups, outcome: Outcome, memory: Memory, plan: Plan, budget: Budget) -> Outcome:
    """Stronger search; with prices that came with a number of clusters, splits may not run away from it."""
    if not plan.price:
        return improve(table, groups, outcome, memory, plan, budget)
    most = int(RUNAWAY * outcome.state.centres.mean.shape[0]) + 1
    bounded = plan._replace(max_clusters=min(most, plan.max_clusters))
    found = improve(table, groups, outcome, memory, bounded, budget)
    if found.state.centres.mean.shape[0] < most or budget.spent:
        return found
    return improve(table, groups, outcome, memory, plan, budget, splits=False)


def fit(
    table: Table,
    groups: Groups,
    state: Shared,
    plan: Plan,
    budget: Budget,
    publish: Callable[[Array], Array],
) -> Fitted:
    """Fit from a starting state; ``publish`` rounds centres to what users will see of them."""
    budget.best = None
    memory = make_memory(table.n)
    try:
        outcome = run_passes(table, groups, state, memory, plan, budget)
        if plan.search == "full":
            outcome = _search(table, groups, outcome, memory, plan, budget)
    except KeyboardInterrupt:
        budget.interrupted = True
        outcome = Outcome(state if budget.best is None else budget.best, [], False)
        memory = make_memory(table.n)
    return close(table, groups, outcome.state, memory, plan, publish, outcome)
