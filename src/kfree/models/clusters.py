"""Clusters: rows bound to a divergence, what is to be found in them, and centres that can be asked about rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array, Family, Geometry
from kfree.inference.clusters.assign import label, total_cost
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.exact import cost_matrix, margins, strengths
from kfree.inference.clusters.fit import Fitted, fit
from kfree.inference.clusters.labelling import Labelling, LocalLabelling
from kfree.inference.clusters.stream import Known, absorb, part_at_gaps
from kfree.inference.clusters.table import Table, make_memory, make_table
from kfree.inference.content import count_distinct
from kfree.inference.goal import Goal, Order, Start
from kfree.inference.loop import Budget, Info, repeat
from kfree.models.checks import (
    Ends,
    as_numbers,
    check_domain,
    check_entries,
    check_family,
    check_weight,
    make_geometry,
    make_rows,
    row_scale,
    summarise,
    weighted_mean,
)
from kfree.models.ranges import (
    Reach,
    check_far,
    check_lam_range,
    check_means,
    check_prior_range,
    check_reach,
    check_shares,
)

# Rows nearer to their centres than this share of the distance of two centres are at them, up to rounding.
_AT_CENTRES = 1e-9


class Problem(ABC):
    """Checked rows with their geometry, wherever they lie."""

    family: Family
    shift: Array  # (p,)
    unit: float  # length of a row that weighs 1 with relative weighting
    geometry: Geometry
    n: int

    @abstractmethod
    def labelling(self) -> Labelling:
        """The rows, without labels."""

    @abstractmethod
    def check_reach(self, squares: str = "") -> None:
        """Whether divergences, or their squares, which what ``squares`` says needs, are in the range of floats."""

    @property
    @abstractmethod
    def n_active(self) -> int:
        """Number of rows that have weight."""

    @abstractmethod
    def count_different(self, enough: int) -> int:
        """How many different rows have weight; of more than enough it need not be known."""

    def goal(self, wish: dict[str, Any], lam: float, init: Any, name: str = "lam") -> Goal:
        """What to fit: the user's wish (fields of a goal) with what opens a cluster and ``init`` resolved."""
        start = self.check_start(init, wish["max_clusters"])
        check_lam_range(lam, self.n, name)
        return Goal(lam, start=start, samples=start is Start.MEAN, **wish)

    def check_start(self, init: Any, most: float, number: int | None = None) -> Start | Array:
        """Where a fit starts: at most so many centres, or exactly a number."""
        if isinstance(init, str):
            return Start.MEAN if init == "auto" else Start(init)
        start = self.check_centres(init)
        if number is not None and start.shape[0] != number:
            raise ValueError(f"init has {start.shape[0]} centres, but n_clusters={number}. Pass as many.")
        if start.shape[0] > most:
            raise ValueError(f"init has {start.shape[0]} centres, more than max_clusters={most}.")
        return start

    def check_centres(self, init: Any) -> Array:
        """First centres in the geometry of the table."""
        centres = as_numbers("init", init)
        p = self.shift.size
        if centres.ndim != 2 or centres.shape[1] != p or centres.shape[0] < 1:
            raise ValueError(f"init has shape {centres.shape}, but centres of shape (K, {p}) are needed.")
        check_entries("init", centres)
        check_domain(centres, self.family, name="init")
        scale, _ = row_scale(centres, self.family, "init")
        return (centres * scale[:, None] if scale.size else centres) - self.shift

    def check_order(self, order: Any) -> Order | Array:
        """The order of the rows; an explicit one must be a permutation of them."""
        if isinstance(order, str):
            return Order(order)
        order, n = np.asarray(order), self.n
        if order.shape != (n,) or order.dtype.kind not in "iu" or not np.array_equal(np.sort(order), np.arange(n)):
            raise ValueError(
                f"order must be 'random', 'index' or a permutation of 0 .. {n - 1}, "
                f"got an array of shape {order.shape} that is not one."
            )
        return order

    def fit(self, goal: Goal, budget: Budget, seeds: Iterable[int]) -> Fitted:
        """The best of some fits, one for each seed."""
        return best_of_seeds(lambda rng: fit(self.labelling(), goal, budget, rng), seeds, budget)


@dataclass(frozen=True)
class LocalProblem(Problem):
    """Rows in memory, or in a file that is mapped."""

    table: Table
    family: Family
    shift: Array
    unit: float

    @classmethod
    def of(
        cls, X: Any, sample_weight: Any, divergence: Any, weighting: str, smoothing: float, smoothing_mean: Any
    ) -> "LocalProblem":
        """Check X for the divergence and bind it."""
        family = check_family(divergence, X)
        weight = check_weight(sample_weight, X.shape[0])
        check_domain(X, family)
        if type(family).adapt is not Family.adapt:
            domain = family.lower, family.upper
            family = family.adapt(summarise(X, weight, weighted_mean(X, weight, row_scale(X, family)[0])))
            if (family.lower, family.upper) != domain:  # rows without weight may lie outside of what the others gave
                check_domain(X, family)
        prepared = make_rows(X, family, weight, None, weighting=weighting)
        rows, shift, tiny = prepared.rows, prepared.shift, prepared.ends.tiny
        geometry = make_geometry(family, rows.whole, shift, tiny, smoothing, smoothing_mean)
        problem = cls(make_table(rows, geometry, prepared.once), family, shift, prepared.unit)
        problem.check_reach()
        check_prior_range(geometry)
        weights = rows.weight_range.lightest, rows.total_weight()
        check_shares(geometry, *weights, prepared.ends.least, prepared.ends.short)
        return problem

    def check_reach(self, squares: str = "") -> None:
        """Whether divergences, or their squares, which what ``squares`` says needs, are in the range of floats."""
        rows, geometry = self.table.rows, self.table.geometry
        if self.family.translates:
            check_means(np.concatenate([self.shift, geometry.anchor]))
        check_reach(Reach.of(self.table), geometry, rows.weight_range.lightest, rows.total_weight(), squares=squares)

    def labelling(self) -> Labelling:
        """The rows, without labels."""
        return LocalLabelling(self.table)

    def count_different(self, enough: int) -> int:
        """How many different rows have weight."""
        weight, hashes = self.table.rows.weight, self.table.hashes
        return count_distinct(hashes[weight > 0] if weight.size else hashes)

    @property
    def n_active(self) -> int:
        """Number of rows that have weight."""
        weight = self.table.rows.weight
        return int(np.count_nonzero(weight)) if weight.size else self.table.n

    @property
    def geometry(self) -> Geometry:  # type: ignore[override]
        """How far rows are from centres."""
        return self.table.geometry

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return self.table.n


def best_of_seeds(fit: Callable[[np.random.Generator], Any], seeds: Iterable[int], budget: Budget) -> Any:
    """The fit with the least objective, one for each seed, as many as the budget allows; the first of equal ones."""
    left = list(seeds)
    number = len(left)

    def one_more(best: Any) -> tuple[Any, bool]:
        found = fit(np.random.default_rng(left.pop(0)))
        if number > 1:
            budget.tell("fit", number - len(left), Info(found.objective, 0.0, np.nan, 0, -1, of=number))
        return found if best is None or found.objective < best.objective else best, not left

    best, _ = repeat(one_more, None, budget, always=1)
    if best is None:  # interrupted before there was anything
        raise KeyboardInterrupt
    return best


class Model(NamedTuple):
    """Centres that can be asked about rows, and can learn from more of them."""

    geometry: Geometry
    shift: Array  # (p,)
    centres: Array  # (K, p) in the users' units
    total: Array  # (K, p) weighted sums of the rows seen, in the geometry
    mass: Array  # (K,)
    unit: float  # length of a row that weighs 1 with relative weighting
    fence: float  # divergence from their centres that rows of the fit hardly ever exceed, if that was told

    @classmethod
    def of(cls, problem: Problem, fitted: Any, fence: float = np.inf) -> "Model":
        """The model of a finished fit."""
        return cls(
            problem.geometry,
            problem.shift,
            fitted.mean + problem.shift,
            fitted.total,
            fitted.mass,
            problem.unit,
            fence,
        )

    def table(
        self, X: Any, weight: Array, weighting: str = "none", *, opens: bool = False, ends: Ends | None = None
    ) -> Table:
        """Rows as the fit saw its own, without hashes; ``ends`` are those of all rows, where these are some of them."""
        family = check_family(self.geometry.family, X)
        check_domain(X, family)
        prepared = make_rows(X, family, weight, self.shift, weighting=weighting, unit=self.unit, ends=ends)
        move = self.shift - prepared.shift  # sparse rows are not centred, though those of the fit may have been
        prior = None if self.geometry.prior_mean is None else self.geometry.prior_mean + move
        tiny = self.geometry.tiny or prepared.ends.tiny
        geometry = replace(self.geometry, anchor=self.geometry.anchor + move, prior_mean=prior, tiny=tiny)
        table = make_table(prepared.rows, geometry, prepared.once, hashes=False, opens=opens)
        check_far(table.base, family)
        return table

    def inside(self, table: Table) -> Centres:
        """The centres in the geometry of the rows."""
        return Centres(table.geometry, self.centres - table.rows.shift)

    def nearest(self, X: Any) -> tuple[Array, Array]:
        """Labels and divergences of rows."""
        table = self.table(X, np.empty(0))
        memory = make_memory(table.n)
        label(table, self.inside(table), memory)
        return memory.labels, memory.cost

    def divergences(self, X: Any) -> Array:
        """Divergences (n, K)."""
        table = self.table(X, np.empty(0))
        centres = self.inside(table)
        if X.dtype != np.float32:
            return cost_matrix(table, centres, np.float64)
        costs = cost_matrix(table, centres, np.float32)
        if np.isfinite(costs).all():
            return costs
        exact = cost_matrix(table, centres, np.float64)
        return exact if exact.max(where=np.isfinite(exact), initial=0.0) > np.finfo(np.float32).max else costs

    def score(self, X: Any, sample_weight: Any, weighting: str) -> float:
        """Minus the weighted mean divergence."""
        table = self.table(X, check_weight(sample_weight, X.shape[0]), weighting)
        cost, largest = self.costs(table)
        return -total_cost(table, cost, largest) / table.rows.total_weight()

    def costs(self, table: Table) -> tuple[Array, float]:
        """Divergences of rows from their nearest centres, and the largest."""
        memory = make_memory(table.n)
        largest = label(table, self.inside(table), memory)
        return memory.cost, largest

    def reordered(self, order: Array) -> "Model":
        """The same clusters with other numbers."""
        return self._replace(centres=self.centres[order], total=self.total[order], mass=self.mass[order])

    def strengths(self, table: Table, labels: Array, radius: float) -> Array:
        """How strongly rows belong to their clusters: 1 at the centre, 0 at the radius and beyond."""
        return strengths(table, self.inside(table), labels, radius)

    def radius(self) -> float:
        """How far from every centre a row is novel: beyond the fence of the rows of the fit and, where the next centre
        is farther than that, as many times beyond it as the next centre is beyond this; with one centre twice it."""
        mean = self.centres - self.shift
        between = self.geometry.divergence(mean[:, None], mean[None])
        np.fill_diagonal(between, np.inf)
        gap = float(between.min())
        if not np.isfinite(gap):
            return 2 * self.fence
        if self.fence <= _AT_CENTRES * gap:
            return gap / 2
        return float(np.sqrt(self.fence) * np.sqrt(gap)) if self.fence < gap else self.fence

    def absorb(self, X: Any, sample_weight: Any, weighting: str, stream: "StreamRule", budget: Budget) -> "Learned":
        """The model after one more batch."""
        table = self.table(X, check_weight(sample_weight, X.shape[0]), weighting, opens=True)
        shift, model = table.rows.shift, self
        move = self.shift - shift
        known = Known(self.centres - shift, self.total + self.mass[:, None] * move, self.mass)
        goal = Goal(stream.radius, max_clusters=stream.most)
        if stream.estimated:
            parted, fence = part_at_gaps(table, known, goal, budget)
            if parted is not known:
                known = parted
                model = self._replace(centres=known.mean + shift, fence=min(self.fence, fence))
                goal = goal._replace(lam=model.radius())
        found = absorb(table, known, goal, budget)
        total = found.total - found.mass[:, None] * move
        model = model._replace(centres=found.mean + shift, total=total, mass=found.mass)
        strength = margins(found.cost, np.array(goal.lam))
        return Learned(model, goal.lam, found.labels, strength, found.inertia, found.prior, found.complete)


class StreamRule(NamedTuple):
    """How batches are learned from."""

    radius: float  # rows farther than this from every centre open clusters
    most: float  # clusters
    estimated: bool  # the radius is a guess, which gaps inside of clusters correct


class Learned(NamedTuple):
    """What a batch has brought."""

    model: Model
    radius: float
    labels: Array  # (n,) int32, of the batch
    strengths: Array  # (n,) with which its rows belong to their clusters
    inertia: float  # of the batch
    prior: float  # the prior's share in its objective
    complete: bool  # the budget sufficed
