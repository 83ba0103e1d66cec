"""The path of K over lam."""

from collections.abc import Iterable

from kfree.inference.clusters.assign import assign
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.grow import Phase, grow, penalised
from kfree.inference.clusters.table import Table, make_memory
from kfree.inference.goal import Goal
from kfree.inference.loop import Budget


def follow_path(table: Table, centres: Centres, goals: Iterable[Goal]) -> list[tuple[int, float, float]]:
    """Grow for each goal from the centres of the one before; clusters, inertia and objective of each."""
    points, memory, budget = [], make_memory(table.n), Budget()
    for goal in goals:
        memory.forget()
        centres = grow(table, centres, memory, goal, budget, Phase(f"lam {goal.lam:g}")).state.centres
        if budget.interrupted:
            raise KeyboardInterrupt  # part of a path would pass for the whole
        sums = assign(table, centres, memory, goal.lam)
        points.append((int((sums.mass > 0).sum()), sums.cost, penalised(table, centres, sums, goal.lam)))
    return points
