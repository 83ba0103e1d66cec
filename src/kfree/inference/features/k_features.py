"""K-features (Algorithm 4 of Broderick, Kulis & Jordan 2013): rows, then means, until no bit changes."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.features.allocation import Means, State, settle_with_reseeds
from kfree.inference.features.best_rows import Rule, sweep
from kfree.inference.features.feature_table import Table
from kfree.inference.loop import Budget, Info, ObjectiveRose
from kfree.kernels import kernels

_RESTS, _DEPENDENT = 1, 2
# Passes over a small table between looks at the clock.
_TOGETHER = 50


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
    if table.plain and len(table.spans) == 1 and Z.shape[1] and not budget.told:
        return _refine_small(table, Z, means, rule, max_iter, budget)
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


def _refine_small(table: Table, Z: Array, means: Means, rule: Rule, max_iter: int, budget: Budget) -> Run:
    """The same for a table that fits the cache, many passes in one call; reseeds come back here."""
    Z, A, trace = Z.copy(), means.A.copy(), np.empty(max_iter)
    done, solved = 0, False
    while done < max_iter and not (done and budget.spent):
        rest = trace[done : done + _TOGETHER]
        passes, ended = kernels().run_features(
            table.X, table.weight, table.square, rule.exact, rule.nodes, solved, Z, A, rest
        )
        done += passes
        if ended == _RESTS:
            break
        if ended != _DEPENDENT:
            solved = True
            continue
        state = settle_with_reseeds(table, Z)
        Z, A, solved = state.Z.copy(), state.means.A.copy(), True
        trace[done] = state.inertia
        done += 1
    falls = np.diff(trace[:done])
    if falls.size and falls.max() > 0:
        at = int(falls.argmax())
        check_fall(trace[at], trace[at + 1], table.total)
    return Run(State(Z, Means(A, means.base), float(trace[done - 1])), trace[:done].tolist(), ended == _RESTS)
