"""Where a fit starts, and the values of lam that farthest-first traversal gives."""

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.assign import Centres, exact_costs, own_cost
from kfree.inference.clusters.table import Table
from kfree.inference.loop import Budget


def global_centre(table: Table) -> Array:
    """The one cluster that holds everything, (1, p)."""
    return table.geometry.centre(*table.rows.whole)


# Rows that are asked whether they exclude all others.
_PROBES = 16


class _Cover:
    """Excess over the singleton cost of every row to the nearest of a growing set of centres."""

    def __init__(self, table: Table):
        self.table = table
        self.means = [global_centre(table)]
        self.cost = np.full(table.n, np.inf)
        self.within_reach = 0  # largest number of rows at a finite divergence from an opened centre
        self._see(self.means[0])

    def _see(self, mean: Array) -> int:
        centres = Centres(self.table.geometry, mean)

        def of_span(span: slice) -> int:
            cost = own_cost(self.table, span, centres, np.zeros(span.stop - span.start, np.int32))
            np.minimum(self.cost[span], cost, out=self.cost[span])
            return int(np.isfinite(cost).sum())

        return sum(self.table.rows.each(of_span))

    def excess(self) -> Array:
        """v D - s of every row; a row of weight zero never counts."""
        return self.table.excess(self.cost, 0.0)

    def exact_excess(self, row: int) -> float:
        """The same for one row by the divergence's own formula, which is the one that decides at a threshold."""
        index = np.array([row])
        cost = exact_costs(self.table, index, np.concatenate(self.means)).min(axis=1)
        return float(self.table.excess(cost, 0.0, index)[0])

    def add(self, row: int) -> None:
        """Open a cluster at a row; it is then at distance zero from itself, rounding or not."""
        mean = self.table.singletons(np.array([row]))
        self.within_reach = max(self.within_reach, self._see(mean))
        self.means.append(mean)
        if not self.table.alone.size:
            self.cost[row] = 0.0


def farthest_first(table: Table, k: int) -> tuple[Array, Array]:
    """Radii delta_1 >= ... >= delta_k of a farthest-first traversal from the global centre, and the k centres
    (the global one first) that cover the data within the last radius."""
    cover, radii = _Cover(table), np.empty(k)
    for r in range(k):
        row = int(cover.excess().argmax())
        radii[r] = cover.exact_excess(row)
        if r < k - 1:
            cover.add(row)
    if k > 1 and cover.within_reach <= 1 < table.n and _all_exclude(table):
        radii[1:] = np.inf  # no radius covers the data
        return radii, np.concatenate(cover.means)
    return np.minimum.accumulate(radii), np.concatenate(cover.means)


def _all_exclude(table: Table) -> bool:
    """Whether clusters opened by rows, as far as a few tell, exclude every other row."""
    weight = table.rows.weights(slice(0, table.n))
    some = np.argsort(np.where(weight > 0, table.hashes, np.iinfo(np.uint64).max), kind="stable")[:_PROBES]
    every = np.arange(table.n)
    labels = np.zeros(table.n, np.int32)
    return all(
        np.isfinite(own_cost(table, every, Centres(table.geometry, mean[None]), labels)).sum() <= 1
        for mean in table.singletons(some)
    )


def covering_centres(table: Table, lam: float, most: float, budget: Budget) -> Array:
    """Farthest-first centres until every row is within lam of one."""
    cover = _Cover(table)
    try:
        while len(cover.means) < min(most, table.n) and not budget.spent:
            row = int(cover.excess().argmax())
            if cover.exact_excess(row) <= lam:
                break
            cover.add(row)
    except KeyboardInterrupt:
        budget.interrupted = True
    return np.concatenate(cover.means)


def seeded_centres(table: Table, lam: float, most: float, budget: Budget, rng: np.random.Generator) -> Array:
    """Centres drawn with probability proportional to w D (as k-means++) until every row is within lam of one."""
    cover = _Cover(table)
    weight = table.rows.weights(slice(0, table.n))
    try:
        while len(cover.means) < min(most, table.n) and not budget.spent:
            far = np.flatnonzero(cover.excess() > lam)
            if not far.size:
                break
            chance = weight[far] * np.where(np.isfinite(cover.cost[far]), cover.cost[far], 0.0)
            if chance.sum() == 0:  # only rows that every centre excludes are left
                chance = weight[far]
            cover.add(int(far[np.searchsorted(np.cumsum(chance), rng.random() * chance.sum(), side="right")]))
    except KeyboardInterrupt:
        budget.interrupted = True
    return np.concatenate(cover.means)
