"""K-features (Algorithm 4 of Broderick, Kulis & Jordan 2013): rows, then means, until no bit changes."""

from typing import NamedTuple

from kfree.families import Array
from kfree.inference.features.model import Means, State, settle_with_reseeds
from kfree.inference.features.rows import Rule, sweep
from kfree.inference.features.table import Table
from kfree.inference.loop import Budget, Info, ObjectiveRose


class Run(NamedTuple):
    """How a run ended."""

    state: State
    trace: list[float]  # objective after each pass
    converged: bool


def check_fall(before: float, after: float, scale: float) -> None:
    """The objective never rises: a rise is a bug."""
    if after > before + 1e-9 * (abs(before) + scale):
        raise ObjectiveRose(
            f"The objective rose from {before!r} to {after!r}. This is a bug in kfree; please report it with the data."
        )


def refine(table: Table, Z: Array, means: Means, rule: Rule, max_iter: int, budget: Budget) -> Run:
    """Run K-features from an allocation and means (which need not be its best)."""
    Z = Z.copy()
    state: State | None = None
    trace: list[float] = []
    for count in range(max_iter + 1):
        if count and (count == max_iter or budget.spent):
            break
        found = sweep(table, Z, means, rule)
        if state is not None and not found.changed:
            return Run(state, trace, True)
        new = settle_with_reseeds(table, Z, found.sums)
        if state is not None:
            check_fall(state.inertia, new.inertia, table.total)
        state, means = new, new.means
        Z = state.Z.copy()
        trace.append(state.inertia)
        budget.tell("K-features", count + 1, Info(state.inertia, table.total, found.changed / table.n, 0, state.K))
    assert state is not None
    return Run(state, trace, False)
