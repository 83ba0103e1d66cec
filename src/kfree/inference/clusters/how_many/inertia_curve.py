"""The inertia curve I(K): Bregman k-means for many K, forward by new centres and backward by merges."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.how_many.subsample import Pilot
from kfree.inference.content import uniform
from kfree.inference.loop import Budget
from kfree.rows.threads import in_order

#: Most clusters looked at, and distinct rows there must be for each.
MOST_CLUSTERS, ROWS_EACH = 256, 15
#: Entries of the centres in all, but not fewer clusters for that than ...
MOST_ENTRIES, ENOUGH_CLUSTERS = 400_000, 32
#: The grid is fine up to here and coarse above it.
FINE_UP_TO, FINE, COARSE_FORWARD, COARSE_BACKWARD = 64, 1.15, 1.5, 1.2
#: Passes after centres were added (up to FINE_UP_TO, above), and after merges.
PASSES_FORWARD, PASSES_ABOVE, PASSES_BACKWARD = 3, 2, 4
#: Candidates for each new centre, for K up to ...
CANDIDATES = ((16, 8), (64, 4), (np.inf, 2))
#: Pairs whose merge is evaluated exactly before the cheapest is made.
_CONTENDERS = 4
# Rows a thread takes at a time.
_SHARE = 2500


class Solution(NamedTuple):
    """A clustering of the pilot."""

    mean: Array  # (K, p) centres, smoothed
    labels: Array  # (m,) int32
    cost: Array  # (m,) divergence of each row from the centre of its label
    inertia: float  # I(K), without the prior's share: that would be a charge on every cluster beside lam


def _costs(pilot: Pilot, mean: Array) -> Array:
    """Divergences (K, m) of all rows from a few centres."""
    table = pilot.table
    affine = table.geometry.affine(mean)
    cost = np.asarray((pilot.stats @ -affine.coef.T).T, order="C")
    cost += affine.offset[:, None]
    cost += table.base
    return np.maximum(cost, 0.0, out=cost)


def settle(pilot: Pilot, mean: Array, passes: int) -> Solution:
    """A few passes of k-means; clusters that lose all rows are dropped."""
    table = pilot.table
    for _ in range(passes):
        labels = _nearest(pilot, mean)
        total, mass = pilot.sums(labels, mean.shape[0])
        held = mass > 0
        if not held.all():
            labels = (np.cumsum(held) - 1).astype(np.int32)[labels]
        mean = table.geometry.centre(total[held], mass[held])
    cost = pilot.own_cost(slice(0, table.n), Centres(table.geometry, mean), labels)
    inertia = float((table.rows.weight * cost).sum())
    return Solution(mean, labels, cost, inertia)


def _nearest(pilot: Pilot, mean: Array) -> Array:
    table = pilot.table
    affine = table.geometry.affine(mean)
    pieces = [slice(start, min(start + _SHARE, table.n)) for start in range(0, table.n, _SHARE)]
    parts = in_order(lambda piece: table.rows.nearest(piece, table.base[piece], affine)[0].labels, pieces)
    return np.concatenate(list(parts))


def with_new_centres(pilot: Pilot, solution: Solution, K: int) -> Array:
    """Centres of a solution and new ones, up to K: rows drawn with probability w D, the best of a few each."""
    table, weight = pilot.table, pilot.table.rows.weight
    mean, cost = [solution.mean], solution.cost.copy()
    for k in range(solution.mean.shape[0], K):
        tries = next(count for limit, count in CANDIDATES if k <= limit)
        speed = weight * cost
        racing = np.flatnonzero(speed > 0)
        if not racing.size:
            break
        with np.errstate(over="ignore"):  # the slowest never arrive
            arrival = -np.log(uniform(pilot.ticket[racing], k)) / speed[racing]
        tries = min(tries, racing.size)
        drawn = racing[np.argpartition(arrival, tries - 1)[:tries]]
        candidates = table.singletons(np.sort(drawn))
        after = np.minimum(_costs(pilot, candidates), cost)
        best = int((after @ weight + table.geometry.prior_cost(candidates)).argmin())
        mean.append(candidates[best : best + 1])
        cost = after[best]
    return np.concatenate(mean)


def merged_down(pilot: Pilot, solution: Solution, K: int) -> Array:
    """Centres left after the cheapest merges, down to K.

    W_a W_b / (W_a + W_b) <mu_a - mu_b, theta_a - theta_b> / 2 ranks the pairs: it is exact for squared distances and
    one product for all. The first few are then compared by what their merge really costs.
    """
    geometry = pilot.table.geometry
    total, mass = pilot.sums(solution.labels, solution.mean.shape[0])
    mean = solution.mean.copy()
    theta = geometry.affine(mean).coef
    cross = mean @ theta.T
    rise = _rises(cross, mass)
    for _ in range(mean.shape[0] - K):
        size = rise.shape[0]
        first = np.argpartition(rise, min(_CONTENDERS, rise.size) - 1, axis=None)[:_CONTENDERS]
        a, b = np.unravel_index(first, rise.shape)
        a, b = a[np.isfinite(rise[a, b])], b[np.isfinite(rise[a, b])]
        best = geometry.join_cost(total[a], mass[a], total[b], mass[b]).argmin()
        keep, gone = min(a[best], b[best]), max(a[best], b[best])
        total[keep] += total[gone]
        mass[keep] += mass[gone]
        rest = np.arange(size) != gone
        total, mass, mean, theta = total[rest], mass[rest], mean[rest], theta[rest]
        cross, rise = cross[np.ix_(rest, rest)], rise[np.ix_(rest, rest)]
        mean[keep] = geometry.centre(total[keep : keep + 1], mass[keep : keep + 1])[0]
        theta[keep] = geometry.affine(mean[keep : keep + 1]).coef[0]
        cross[keep], cross[:, keep] = theta @ mean[keep], mean @ theta[keep]
        line = _rises_of(cross, mass, keep)
        rise[keep, keep + 1 :], rise[:keep, keep] = line[keep + 1 :], line[:keep]
    return mean


def _rises(cross: Array, mass: Array) -> Array:
    """Ranking value of every pair a < b; +inf elsewhere."""
    own = np.diag(cross)
    gap = np.maximum(own[:, None] + own[None] - cross - cross.T, 0.0) / 2
    rise = mass[:, None] * mass[None] / (mass[:, None] + mass[None]) * gap
    rise[np.tril_indices(mass.size)] = np.inf
    return rise


def _rises_of(cross: Array, mass: Array, k: int) -> Array:
    own = np.diag(cross)
    gap = np.maximum(own[k] + own - cross[k] - cross[:, k], 0.0) / 2
    return mass[k] * mass / (mass[k] + mass) * gap


def grid(most: int, coarse: float) -> list[int]:
    """Numbers of clusters up to ``most``, all of the small ones, then by a fixed ratio."""
    ks = [1]
    while ks[-1] < most:
        ratio = FINE if ks[-1] < FINE_UP_TO else coarse
        step = max(ks[-1] + 1, round(ks[-1] * ratio))
        ks.append(min(step, most, FINE_UP_TO if ks[-1] < FINE_UP_TO else most))
    return ks


class Curve:
    """The best solution known for each K."""

    def __init__(self, pilot: Pilot, budget: Budget):
        self.pilot, self.budget = pilot, budget
        total, mass = pilot.sums(np.zeros(pilot.n, np.int32), 1)
        mean = pilot.table.geometry.centre(total, mass)
        self.solutions: dict[int, Solution] = {}
        self._keep(settle(pilot, mean, 1))
        affordable = max(ENOUGH_CLUSTERS, MOST_ENTRIES // pilot.table.rows.p)
        self.most = max(1, min(MOST_CLUSTERS, affordable, pilot.n_distinct // ROWS_EACH))

    def _keep(self, solution: Solution) -> None:
        K = solution.mean.shape[0]
        if K not in self.solutions or solution.inertia < self.solutions[K].inertia:
            self.solutions[K] = solution

    @property
    def ks(self) -> Array:
        """The numbers of clusters for which there is a solution, rising."""
        return np.array(sorted(self.solutions))

    @property
    def inertia(self) -> Array:
        """I(K) of them."""
        return np.array([self.solutions[K].inertia for K in sorted(self.solutions)])

    def forward(self, ks: Iterable[int]) -> None:
        """Solutions by adding centres to the next smaller one known."""
        for K in sorted(ks):
            if self.budget.spent:
                return
            smaller = self.solutions[max(k for k in self.solutions if k < K)]
            mean = with_new_centres(self.pilot, smaller, K)
            self._keep(settle(self.pilot, mean, PASSES_FORWARD if K <= FINE_UP_TO else PASSES_ABOVE))

    def backward(self, ks: Iterable[int]) -> None:
        """Solutions by merging clusters of the next larger one known."""
        for K in sorted(ks, reverse=True):
            larger = [k for k in self.solutions if k > K]
            if self.budget.spent:
                return
            if larger:
                mean = merged_down(self.pilot, self.solutions[min(larger)], K)
                self._keep(settle(self.pilot, mean, PASSES_BACKWARD))

    def trace(self) -> None:
        """The whole curve, on the grid."""
        coarse = grid(self.most, COARSE_FORWARD)[1:]
        self.forward(coarse)
        # those that many centres were added for at a time, too: they are far from settled
        self.backward({*coarse, *grid(self.most, COARSE_BACKWARD)[1:]})

    def fill(self, ks: Iterable[int]) -> None:
        """Further values of K."""
        missing = [k for k in ks if 1 < k <= self.most and k not in self.solutions]
        self.forward(missing)
        self.backward(missing)
