"""The path: for every number of clusters one solution, and from it the number that is best at a price.

Solutions are Bregman k-means on the pilot, forward by new centres and backward by merges. Those of a grid of numbers
are always made, one from the other; any other number is made from its two neighbours on the grid. So the solution of K
is a function of the rows and of K, whoever asks for it: a price, a number, or the choice.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.how_many.how_many_numbers import HOW_MANY
from kfree.inference.clusters.how_many.subsample import Pilot
from kfree.inference.content import uniform
from kfree.inference.loop import Budget, Info
from kfree.inference.windows import envelope_windows
from kfree.rows.threads import in_order


class Solution(NamedTuple):
    """A clustering of the pilot."""

    mean: Array  # (K, p) centres, smoothed
    labels: Array  # (m,) int32
    cost: Array  # (m,) divergence of each row from the centre of its label
    inertia: float  # I(K): weighted sum of them, and the prior's share if the table's objective has one


class Window(NamedTuple):
    """The prices of a cluster between which a number of clusters is best."""

    n_clusters: int
    lo: float
    hi: float

    @property
    def middle(self) -> float:
        """A price well inside."""
        if self.lo > 0 and np.isfinite(self.hi):
            return float(np.sqrt(self.lo * self.hi))
        if self.lo > 0:
            return 2 * self.lo  # one cluster is best at any price above
        return self.hi / 2 if np.isfinite(self.hi) else 1.0


def costs_of(pilot: Pilot, mean: Array) -> Array:
    """Divergences (K, m) of all rows from a few centres."""
    table = pilot.table
    affine = table.geometry.affine(mean)
    cost = np.asarray((pilot.stats @ -affine.coef.T).T, order="C")
    cost += affine.offset[:, None]
    cost += table.base
    return np.maximum(cost, 0.0, out=cost)


def settle(pilot: Pilot, mean: Array, passes: int) -> Solution:
    """A few passes of k-means; clusters that lose all rows are dropped."""
    geometry, weight = pilot.table.geometry, pilot.table.rows.weight
    for _ in range(passes):
        labels = nearest_two(pilot, mean)[0]
        total, mass = pilot.sums(labels, mean.shape[0])
        held = mass > 0
        if not held.all():
            labels = (np.cumsum(held) - 1).astype(np.int32)[labels]
        mean = geometry.centre(total[held], mass[held])
    cost = pilot.own_cost(slice(0, pilot.n), Centres(geometry, mean), labels)
    prior = pilot.charge * float(geometry.prior_cost(mean).sum()) if pilot.charge else 0.0
    return Solution(mean, labels, cost, float((weight * cost).sum()) + prior)


def nearest_two(pilot: Pilot, mean: Array) -> tuple[Array, Array, Array]:
    """The nearest centre of each row, the divergence from it, and that from the next one."""
    table = pilot.table
    affine = table.geometry.affine(mean)
    step = HOW_MANY.share_rows
    pieces = [slice(start, min(start + step, table.n)) for start in range(0, table.n, step)]
    found = list(in_order(lambda piece: table.rows.nearest(piece, table.base[piece], affine)[0], pieces))
    labels, least, second = (np.concatenate(column) for column in list(zip(*found))[:3])
    return labels, np.maximum(table.base + least, 0.0), np.maximum(table.base + second, 0.0)


def with_new_centres(pilot: Pilot, solution: Solution, K: int) -> Array:
    """Centres of a solution and new ones, up to K: rows drawn with probability w D, the best of a few each."""
    table, weight = pilot.table, pilot.table.rows.weight
    mean, cost = [solution.mean], solution.cost.copy()
    for k in range(solution.mean.shape[0], K):
        tries = HOW_MANY.candidates[(k > 16) + (k > 64)]
        speed = weight * cost
        racing = np.flatnonzero(speed > 0)
        if not racing.size:
            break
        with np.errstate(over="ignore"):  # the slowest never arrive
            arrival = -np.log(uniform(pilot.ticket[racing], k)) / speed[racing]
        tries = min(tries, racing.size)
        drawn = racing[np.argpartition(arrival, tries - 1)[:tries]]
        candidates = table.singletons(np.sort(drawn))
        after = np.minimum(costs_of(pilot, candidates), cost)
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
    few = HOW_MANY.contenders
    for _ in range(mean.shape[0] - K):
        size = rise.shape[0]
        first = np.argpartition(rise, min(few, rise.size) - 1, axis=None)[:few]
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


def grid(most: int, first: int = 1) -> list[int]:
    """Numbers of clusters from ``first`` to ``most``: about a fixed ratio apart."""
    ks = [first]
    while ks[-1] < most:
        ks.append(min(most, max(ks[-1] + 1, round(ks[-1] * HOW_MANY.ratio))))
    return ks


class PricePath:
    """The solution for each number of clusters; those of the grid in ``solutions``."""

    def __init__(self, pilot: Pilot, budget: Budget, most: float = np.inf):
        self.pilot, self.budget = pilot, budget
        total, mass = pilot.sums(np.zeros(pilot.n, np.int32), 1)
        mean = pilot.table.geometry.centre(total, mass)
        self.solutions = {1: settle(pilot, mean, 1)}
        self._between: dict[int, Solution | None] = {}
        entries, enough = HOW_MANY.centre_entries
        affordable = max(enough, entries // pilot.table.rows.p)
        #: Numbers that are chosen among, and all that there are solutions for.
        self.most = int(max(1, min(HOW_MANY.clusters, affordable, pilot.n_distinct // HOW_MANY.rows_each, most)))
        #: Numbers of the grid that are made one from the other, forward and backward.
        few = entries // (HOW_MANY.share * pilot.table.rows.p)
        self.settled = int(max(self.most, min(HOW_MANY.settled, pilot.n_distinct, most, few)))
        self.longest = int(max(self.settled, min(pilot.n_distinct, max(HOW_MANY.clusters, pilot.n // HOW_MANY.share))))

    @property
    def ks(self) -> list[int]:
        """The numbers of clusters that there is a solution for, rising."""
        return sorted({*self.solutions, *(K for K, found in self._between.items() if found)})

    def cost(self, K: int) -> float:
        """What K clusters of the whole table cost, penalty apart."""
        return self[K].inertia * self.pilot.scale

    def __getitem__(self, K: int) -> Solution:
        found = self.solutions.get(K) or self._between[K]
        if found is None:
            raise KeyError(K)
        return found

    def trace(self, phase: str = "") -> "PricePath":
        """The solutions of the grid: forward, then backward; told of if the phase has a name."""
        ks = grid(self.settled)[1:]
        steps = [(self.forward, K) for K in ks] + [(self.backward, K) for K in reversed(ks)]
        for made, (step, K) in enumerate(steps, start=1):
            if self.budget.spent:
                break
            step([K])
            if phase:
                self.budget.tell(phase, made, Info(np.nan, 0.0, np.nan, 0, K, of=len(steps)))
        return self

    def forward(self, ks: Iterable[int]) -> None:
        """Solutions by adding centres to the next smaller one of the grid."""
        for K in sorted(ks):
            if self.budget.spent:
                return
            self._keep(self._grown(self.solutions[max(k for k in self.solutions if k < K)], K))

    def backward(self, ks: Iterable[int]) -> None:
        """Solutions by merging clusters of the next larger one of the grid."""
        for K in sorted(ks, reverse=True):
            larger = [k for k in self.solutions if k > K]
            if self.budget.spent:
                return
            if larger:
                self._keep(self._merged(self.solutions[min(larger)], K))

    def look(self, ks: Iterable[int]) -> None:
        """Make solutions for these numbers, as far as the rows have them and the time lasts."""
        for K in sorted(ks):
            self._extend(K)
            if K in self.solutions or K in self._between or self.longest < K or self.budget.spent:
                continue
            self._between[K] = self._made_between(K)

    def best_at(self, price: float) -> Window:
        """The number of clusters that is best at a price of one, and the prices for which it is."""
        best, known = self._search(lambda K: self.cost(K) + price * K, np.inf)
        return self.windows(known).get(best, Window(best, price, price))

    def cheapest(self, cost: Callable[[int], float], most: float) -> int:
        """The number of clusters, at most so many, for which a cost of it is least."""
        return self._search(cost, most)[0]

    def _search(self, cost: Callable[[int], float], most: float) -> tuple[int, set[int]]:
        """The cheapest number, and those that were looked at: first the grid, then around the cheapest one."""
        known = {K for K in self.solutions if min(self.settled, most) >= K}  # not what others have asked for
        asked, cost = set(known), cache(cost)
        while True:
            best = min(sorted(known), key=cost)
            new = [K for K in self._around(best, asked) if most >= K]
            if not new or self.budget.spent:
                return best, known
            self.look(new)
            asked.update(new)
            known.update(K for K in new if self._has(K))

    def window_of(self, K: int) -> Window | None:
        """The prices for which K is the best number, if that is so for any."""
        known = {k for k in self.solutions if self.settled >= k}
        self.look(k for k in (K - 1, K, K + 1) if k >= 1)
        known.update(k for k in (K - 1, K, K + 1) if self._has(k))
        known.update(self.look_beyond(K))
        for _ in range(HOW_MANY.between):
            window = self.windows(known).get(K)
            if window is None or self.budget.spent:
                return None
            best, seen = self._search(lambda k, price=window.middle: self.cost(k) + price * k, np.inf)  # type: ignore[misc]
            if best == K:
                return self.windows(seen)[K]
            known |= seen  # more numbers are known now, so that the window is narrower
        return None

    def look_beyond(self, K: int) -> list[int]:
        """Solutions for numbers up to twice K, without which its window would seem to have no lower end."""
        beyond = [k for k in grid(min(2 * K + 1, self.longest), K)[1:] if k > K]
        self.look(beyond)
        return [k for k in beyond if self._has(k)]

    def _has(self, K: int) -> bool:
        return K in self.solutions or bool(self._between.get(K))

    def windows(self, ks: Iterable[int] | None = None) -> dict[int, Window]:
        """The windows of those of some numbers that are best for some price: vertices of the envelope of the costs."""
        ks = self.ks if ks is None else sorted(ks)
        ends = envelope_windows(np.array(ks), np.array([self.cost(K) for K in ks]))
        return {K: Window(K, float(max(lo, 0.0)), float(hi)) for K, (lo, hi) in zip(ks, ends) if hi > 0}

    def centres(self, K: int) -> Array:
        """Centres of a solution in the geometry of the table, from its rows as they are."""
        table = self.pilot.source
        rows = table.rows.take(self.pilot.origin, self.pilot.table.rows.weight * self.pilot.scale)
        total, mass = rows.sums(self[K].labels, K)
        return table.geometry.centre(total, mass)

    def _around(self, best: int, asked: set[int]) -> list[int]:
        """Numbers to look at next to the best one that have not been asked for."""
        lower, upper = max((k for k in asked if k < best), default=0), min((k for k in asked if k > best), default=0)
        if not upper:
            upper = (grid(self.longest, best)[1] if best < self.longest else best) + 1
        room = [k for k in (*range(lower + 1, best), *range(best + 1, upper)) if k not in asked]
        few = HOW_MANY.between
        return room if len(room) <= few else [room[round(i)] for i in np.linspace(0, len(room) - 1, few)]

    def _extend(self, K: int) -> None:
        """Go on with the grid until it reaches K."""
        last = max(self.solutions)
        for k in grid(self.longest, self.settled)[1:]:
            if k <= last:
                continue
            if last >= K or self.budget.spent:
                return
            found = self._grown(self.solutions[last], k)
            if found.mean.shape[0] < k:
                self.longest = last  # rows differ in content, and not in the divergence
                return
            self.solutions[k], last = found, k

    def _made_between(self, K: int) -> Solution | None:
        """A solution from its neighbours on the grid."""
        lower, upper = (max(k for k in self.solutions if k < K), min((k for k in self.solutions if k > K), default=0))
        tried = [self._grown(self.solutions[lower], K)]
        if upper and upper <= HOW_MANY.clusters:  # merges of more take long
            tried.append(self._merged(self.solutions[upper], K))
        whole = [found for found in tried if found.mean.shape[0] == K]
        return min(whole, key=lambda found: found.inertia) if whole else None

    def _grown(self, smaller: Solution, K: int) -> Solution:
        few, many, _, limit = HOW_MANY.passes
        return settle(self.pilot, with_new_centres(self.pilot, smaller, K), few if limit >= K else many)

    def _merged(self, larger: Solution, K: int) -> Solution:
        return settle(self.pilot, merged_down(self.pilot, larger, K), HOW_MANY.passes[2])

    def _keep(self, solution: Solution) -> None:
        K = solution.mean.shape[0]
        if K not in self.solutions or solution.inertia < self.solutions[K].inertia:
            self.solutions[K] = solution
