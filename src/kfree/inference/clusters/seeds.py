"""Where a fit starts, and the values of lam that farthest-first traversal gives."""

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.inference.clusters.exact import exact_costs, own_cost
from kfree.inference.clusters.labelling import Labelling, LocalLabelling
from kfree.inference.clusters.table import Table
from kfree.inference.goal import Goal, Start
from kfree.inference.loop import Budget, repeat


def global_centre(table: Table) -> Array:
    """The one cluster that holds everything, (1, p)."""
    return table.geometry.centre(*table.rows.whole)


class _Cover:
    """Excess over the singleton cost of every row to the nearest of a growing set of centres."""

    def __init__(self, table: Table):
        self.table = table
        self.means = [global_centre(table)]
        self.cost = np.full(table.n, np.inf)
        self.apart = True  # every centre that was opened excludes all rows but copies of the one it was opened by
        self._see(self.means[0])

    def _see(self, mean: Array) -> Array:
        centres, cost = Centres(self.table.geometry, mean), np.empty(self.table.n)

        def of_span(span: slice) -> None:
            cost[span] = own_cost(self.table, span, centres, np.zeros(span.stop - span.start, np.int32))
            np.minimum(self.cost[span], cost[span], out=self.cost[span])

        for _ in self.table.rows.each(of_span):
            pass
        return cost

    def excess(self) -> Array:
        """v D - s of every row; a row of weight zero never counts."""
        return self.table.excess(self.cost, 0.0)

    def farthest(self) -> tuple[int, float]:
        """The row of largest excess, and that excess by the divergence's own formula, which decides at a threshold.

        Of rows that only rounding tells apart the one with the least hash is taken: their order is nobody's business.
        """
        excess, hashes = self.excess(), self.table.hashes
        most = float(excess.max())
        near = np.flatnonzero(excess >= (most - CLUSTERS.equally_far * abs(most) if np.isfinite(most) else most))
        near = near[np.unique(hashes[near], return_index=True)[1]]  # one of each content, least hash first
        cost = exact_costs(self.table, near, np.concatenate(self.means)).min(axis=1)
        cost[self.cost[near] == 0] = 0.0
        return int(near[0]), float(self.table.excess(cost, 0.0, near).max())

    def with_centre(self, row: int) -> "_Cover":
        """Open a cluster at a row; it and its copies are then at distance zero from it, rounding or not."""
        mean = self.table.singletons(np.array([row]))
        cost = self._see(mean)
        self.apart = self.apart and _excludes_others(self.table, row, cost)
        self.means.append(mean)
        if not self.table.alone.size:
            self.cost[self.table.hashes == self.table.hashes[row]] = 0.0
        return self


def farthest_first(table: Table, k: int) -> tuple[Array, Array]:
    """Radii delta_1 >= ... >= delta_k of a farthest-first traversal from the global centre, and the k centres
    (the global one first) that cover the data within the last radius."""
    cover, radii = _Cover(table), np.empty(k)
    for r in range(k):
        row, radii[r] = cover.farthest()
        if r < k - 1:
            cover.with_centre(row)
    if k > 1 and cover.apart and not table.all_equal and _all_exclude(table):
        radii[1:] = np.inf  # no radius covers the data
        return radii, np.concatenate(cover.means)
    return np.minimum.accumulate(radii), np.concatenate(cover.means)


def _all_exclude(table: Table) -> bool:
    """Whether clusters opened by rows, as far as a few tell, exclude every other row."""
    weight = table.rows.weights(slice(0, table.n))
    some = np.argsort(np.where(weight > 0, table.hashes, np.iinfo(np.uint64).max), kind="stable")[: CLUSTERS.probes]
    every = np.arange(table.n)
    labels = np.zeros(table.n, np.int32)
    return all(
        _excludes_others(table, row, own_cost(table, every, Centres(table.geometry, mean[None]), labels))
        for row, mean in zip(some, table.singletons(some))
    )


def _excludes_others(table: Table, row: int, cost: Array) -> bool:
    """Whether a centre at a row is infinitely far from all rows that have weight, but for copies of it."""
    reached = np.isfinite(cost) & (table.hashes != table.hashes[row])
    return not (reached & (table.rows.weights(slice(0, table.n)) > 0)).any()


def covering_centres(table: Table, goal: Goal, budget: Budget) -> Array:
    """Farthest-first centres until every row is within lam of one."""

    def one_more(cover: _Cover) -> tuple[_Cover, bool]:
        row, excess = cover.farthest()
        if excess <= goal.lam:
            return cover, True
        return cover.with_centre(row), False

    cover, _ = repeat(one_more, _Cover(table), budget, most=min(goal.max_clusters, table.n) - 1)
    return np.concatenate(cover.means)


def seeded_centres(table: Table, goal: Goal, budget: Budget, rng: np.random.Generator) -> Array:
    """Centres drawn with probability proportional to w D (as k-means++) until every row is within lam of one."""
    weight = table.rows.weights(slice(0, table.n))

    def one_more(cover: _Cover) -> tuple[_Cover, bool]:
        far = np.flatnonzero(cover.excess() > goal.lam)
        if not far.size:
            return cover, True
        chance = weight[far] * np.where(np.isfinite(cover.cost[far]), cover.cost[far], 0.0)
        if chance.sum() == 0:  # only rows that every centre excludes are left
            chance = weight[far]
        row = int(far[np.searchsorted(np.cumsum(chance), rng.random() * chance.sum(), side="right")])
        return cover.with_centre(row), False

    cover, _ = repeat(one_more, _Cover(table), budget, most=min(goal.max_clusters, table.n) - 1)
    return np.concatenate(cover.means)


def first_centres(labelling: Labelling, goal: Goal, budget: Budget, rng: np.random.Generator) -> Array:
    """The centres (K, p) that a fit starts from."""
    if goal.start is Start.MEAN:
        return labelling.first_centre()
    if not isinstance(goal.start, Start):
        return goal.start
    assert isinstance(labelling, LocalLabelling)  # each centre takes a pass over all rows: refused elsewhere
    if goal.start is Start.FARTHEST_FIRST:
        return covering_centres(labelling.table, goal, budget)
    return seeded_centres(labelling.table, goal, budget, rng)
