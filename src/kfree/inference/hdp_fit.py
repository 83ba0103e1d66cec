"""One fit of the hard HDP from start to published result: passes, search, closing assignment."""

from collections.abc import Callable

from kfree.families import Array
from kfree.inference.groups import Groups
from kfree.inference.hdp import Fitted, Plan, Shared, close, run_passes
from kfree.inference.hdp_search import improve
from kfree.inference.loop import Budget, Outcome
from kfree.inference.table import Table, make_memory


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
            outcome = improve(table, groups, outcome, memory, plan, budget)
    except KeyboardInterrupt:
        budget.interrupted = True
        outcome = Outcome(state if budget.best is None else budget.best, [], False)
        memory = make_memory(table.n)
    return close(table, groups, outcome.state, memory, plan, publish, outcome)
