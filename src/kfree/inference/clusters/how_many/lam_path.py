"""The path of K over lam."""

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.assign import Centres, assign
from kfree.inference.clusters.grow import Growth, grow, penalised
from kfree.inference.clusters.table import Table, make_memory
from kfree.inference.loop import Budget


def follow_path(
    table: Table, centres: Centres, lams: Array, tol: float, max_iter: int, budget: Budget
) -> list[tuple[int, float, float]]:
    """Grow at each lam, falling, from the centres of the one before; clusters, inertia and objective of each."""
    points = []
    memory = make_memory(table.n)
    for lam in lams:
        memory.low[:] = -np.inf
        grown = grow(table, centres, memory, Growth(float(lam), tol), budget, phase=f"lam {lam:g}", max_iter=max_iter)
        centres = grown.state.centres
        sums = assign(table, centres, memory, float(lam))
        points.append((int((sums.mass > 0).sum()), sums.cost, penalised(table, centres, sums, float(lam))))
    return points
