"""The path of K over lam."""

from kfree.families import Array
from kfree.inference.clusters.assign import assign
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.grow import Phase, grow, penalised
from kfree.inference.clusters.table import Table, make_memory
from kfree.inference.goal import Goal
from kfree.inference.loop import Budget


def follow_path(
    table: Table, centres: Centres, lams: Array, goal: Goal, budget: Budget
) -> list[tuple[int, float, float]]:
    """Grow at each lam, falling, from the centres of the one before; clusters, inertia and objective of each."""
    points = []
    memory = make_memory(table.n)
    for lam in lams:
        memory.forget()
        goal = goal._replace(lam=float(lam))
        centres = grow(table, centres, memory, goal, budget, Phase(f"lam {lam:g}")).state.centres
        sums = assign(table, centres, memory, float(lam))
        points.append((int((sums.mass > 0).sum()), sums.cost, penalised(table, centres, sums, float(lam))))
    return points
