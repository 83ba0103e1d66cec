"""All rows of a table and the labels they have: what the fit of a table asks of it, wherever its rows lie.

Only sums, largest values and a few rows come out of a labelling, and nobody else writes to it: that is why rows may be
in memory (``LocalLabelling``) or in parts, on other machines (``sharded_labelling.py``), with the same answers to the
last bit.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array, Geometry
from kfree.families.cached import cached_property
from kfree.inference.clusters.assign import assign, note_doubts, partition_cost, sums_by_label, total_cost
from kfree.inference.clusters.bounds import loosen
from kfree.inference.clusters.centres import Centres, Sums
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.inference.clusters.exact import own_cost
from kfree.inference.clusters.fence import fence_of
from kfree.inference.clusters.how_many.subsample import Pilot, draw_pilot
from kfree.inference.clusters.openers import apart, copies_of, farthest_rows
from kfree.inference.clusters.table import Memory, Table, make_memory
from kfree.inference.content import starts
from kfree.inference.loop import Budget
from kfree.rows.exact_sums import ExactSums


class Plain(NamedTuple):
    """Passes in which nothing opens or vanishes, made in one call."""

    mean: Array  # (K, p) centres after them
    trace: Array  # (passes, 3) weighted sums of costs, weights that changed label, magnitudes of the offsets
    last: Sums | None  # of the assignment to these centres, if it has been made; the trace's last line is then its own


class Level(NamedTuple):
    """A sample of a table: all copies of the distinct rows with the smallest hashes."""

    limit: Any  # uint64, the largest of these hashes
    n_distinct: int
    n_rows: int  # rows, copies that weigh as one counted once
    total_weight: float


class Labelling(ABC):
    """All rows with the labels they have; none before the first assignment."""

    geometry: Geometry
    n: int
    p: int
    shift: Array  # (p,) what is subtracted from the users' rows
    total_weight: float
    lightest: float  # least weight above 0

    def as_published(self, mean: Array) -> Array:
        """Centres rounded once to the users' units, and back: those that ``predict`` will use."""
        return (mean + self.shift) - self.shift

    @abstractmethod
    def fresh(self) -> "Labelling":
        """The same rows without labels."""

    @abstractmethod
    def first_centre(self) -> Array:
        """(1, p) The one cluster that holds everything."""

    @abstractmethod
    def assign(self, centres: Centres, lam: float | None = None) -> Sums:
        """Label every row by its nearest centre (ties: lowest index) and return the sums of the clusters; with ``lam``
        the costs near the opening threshold are exact as well."""

    def everything(self) -> Level:
        """All rows as a sample."""
        return Level(_MOST, 0, 0, self.total_weight)

    def plain_passes(self, centres: Centres, lam: float, rule: tuple[int, int, float, bool], room: int) -> Plain | None:
        """Several assignments, centres moved between, in one call where there is one and passes are short. ``rule``
        holds plain passes made since the last opening and needed before the next, the share of the weight that may
        still change label, and whether clusters may open."""
        return None

    @abstractmethod
    def openers(self, lam: float, reach: Array, one_at_a_time: bool, budget: Budget) -> Any:
        """Rows that open clusters, farthest first, in a form that has a length and can be cut; ``reach`` holds the
        largest cost in each cluster."""

    @abstractmethod
    def open(self, openers: Any, K: int) -> tuple[Array, Array]:
        """Give each opener, and the copies of it, a label of its own from K on; return the sums by label."""

    @abstractmethod
    def relabel(self, new: Array, gone: Array) -> None:
        """Every label becomes its new number; of rows with labels that are ``gone`` no bound is known."""

    @abstractmethod
    def loosen(self, before: Centres, after: Centres, kept: Array, reach: Array | None) -> None:
        """Make what is known of the rows hold for centres that have moved: see ``bounds.loosen``."""

    @abstractmethod
    def forget(self) -> None:
        """Nothing is known of other centres than a row's own."""

    @abstractmethod
    def partition_cost(self, centres: Centres) -> float:
        """Weighted divergences of all rows from the centres of their labels, by the family's formula."""

    @abstractmethod
    def fence(self) -> float:
        """How far from their centres rows hardly ever are: see ``fence.fence_of``."""

    @property
    @abstractmethod
    def labels(self) -> Any:
        """(n,) int32, in whatever holds them."""

    @abstractmethod
    def any_beyond(self, centres: Centres, lam: float) -> bool:
        """Whether some row would open a cluster beside the only centre."""

    @abstractmethod
    def levels(self) -> Iterator[Level]:
        """Samples of growing size."""

    @abstractmethod
    def sample(self, level: Level) -> Table:
        """The rows of a sample, in memory."""

    @abstractmethod
    def far_rows(self, level: Level, chosen: Array, lam: float, most: int, share: float) -> Table | None:
        """Rows beyond lam and nearly so, with their copies, farthest first, at most ``most`` distinct ones, that are
        neither in a sample nor ``chosen`` (hashes, ascending); with their weights times ``share``. None if no row is
        beyond lam."""

    @abstractmethod
    def pilot(self) -> Pilot:
        """The rows that the number of clusters is chosen on."""

    @property
    @abstractmethod
    def all_equal(self) -> bool:
        """Whether all rows that have weight are copies of one."""

    @abstractmethod
    def spread(self) -> float:
        """Weighted divergences of all rows from the point that costs are relative to."""


class LocalLabelling(Labelling):
    """Rows in memory, or in a file that is mapped."""

    def __init__(self, table: Table, memory: Memory | None = None) -> None:
        self.table, self.geometry = table, table.geometry
        self.n, self.p, self.shift = table.n, table.rows.p, table.rows.shift
        if memory is not None:
            self.memory = memory

    @cached_property
    def memory(self) -> Memory:
        """What is remembered of each row; made when it is first needed, as samples need the room before."""
        return make_memory(self.table.n)

    @cached_property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return self.table.rows.total_weight()

    @cached_property
    def lightest(self) -> float:
        """Least weight above 0."""
        weight = self.table.rows.weight
        return float(weight.min(where=weight > 0, initial=np.inf)) if weight.size else 1.0

    def fresh(self) -> "LocalLabelling":
        """The same rows without labels."""
        return LocalLabelling(self.table)

    def first_centre(self) -> Array:
        """The one cluster that holds everything."""
        return self.geometry.centre(*self.table.rows.whole)

    def assign(self, centres: Centres, lam: float | None = None) -> Sums:
        """Label every row by its nearest centre."""
        return assign(self.table, centres, self.memory, lam)

    def plain_passes(self, centres: Centres, lam: float, rule: tuple[int, int, float, bool], room: int) -> Plain | None:
        """Several assignments in one call, if passes are so short that it is worth while."""
        table, K = self.table, centres.mean.shape[0]
        plain = table.geometry.plain and not table.unit.size
        if not (plain and table.rows.entries * K <= CLUSTERS.quick and len(table.rows.spans()) == 1):
            return None
        memory, mean = self.memory, centres.mean.copy()
        sums, reach = ExactSums(K, table.rows.grid), np.empty(K)
        known, memory.sums = memory.sums, None
        made, pause, tol, opens = rule
        done = table.rows.descend(
            mean,
            table.geometry,
            table.base,
            lam,
            (made, pause, tol, self.total_weight, opens),
            (memory.labels, memory.low, memory.cost),
            (sums, reach),
            min(room, CLUSTERS.passes_at_once),
        )
        if done is None:
            memory.sums = known
            return None
        note_doubts(table, done.compared, done.doubted)
        if not done.complete:
            memory.forget()  # the bounds are those of the pass before
            return Plain(mean, done.trace, None)
        memory.sums = sums
        cost, changed, _ = done.trace[-1]
        return Plain(mean, done.trace, Sums(*sums.values(), changed, cost, 0, reach))

    def openers(self, lam: float, reach: Array, one_at_a_time: bool, budget: Budget) -> Array:
        """Indices of rows that open clusters."""
        table = self.table
        if not table.unit.size and not reach.max() > lam:  # no row is beyond lam, smoothing or not
            return np.empty(0, np.intp)
        ranked = farthest_rows(table, self.memory, lam, reach.size).rows
        return ranked[apart(table, ranked, lam, one_at_a_time, budget)]

    def open(self, openers: Array, K: int) -> tuple[Array, Array]:
        """Give each opener, and the copies of it, a label of its own."""
        return self.label_copies(copies_of(self.table, openers), K).values()

    def label_copies(self, copies: list[Array], K: int) -> ExactSums:
        """Give rows that are copies of each other a label of their own, from K on."""
        table, memory = self.table, self.memory
        known = sums_by_label(table, memory)
        assert known is not None  # all rows have been assigned
        sums, memory.sums = known.resized(K + len(copies)), None
        rows = np.concatenate([np.empty(0, np.intp), *copies])
        new = np.repeat(np.arange(K, K + len(copies), dtype=np.int32), [same.size for same in copies])
        table.rows.move(rows, memory.labels[rows], new, sums)
        memory.labels[rows] = new
        memory.sums = sums
        return sums

    def relabel(self, new: Array, gone: Array) -> None:
        """Every label becomes its new number."""
        if gone.size:
            self.memory.low[np.isin(self.memory.labels, gone)] = -np.inf
        self.memory.relabel(new)

    def loosen(self, before: Centres, after: Centres, kept: Array, reach: Array | None) -> None:
        """Make bounds hold for centres that have moved."""
        loosen(self.table, before, after, kept, self.memory, reach)

    def forget(self) -> None:
        """Nothing is known of other centres."""
        self.memory.forget()

    def partition_cost(self, centres: Centres) -> float:
        """Weighted divergences of all rows from the centres of their labels."""
        return partition_cost(self.table, centres, self.memory)

    def fence(self) -> float:
        """How far from their centres rows hardly ever are."""
        return fence_of(self.memory.cost, self.table.rows.weight)

    @property
    def labels(self) -> Array:
        """(n,) int32."""
        return self.memory.labels

    def any_beyond(self, centres: Centres, lam: float) -> bool:
        """Whether some row would open a cluster beside the only centre."""
        table = self.table

        def of_span(span: slice) -> bool:
            cost = own_cost(table, span, centres, np.zeros(span.stop - span.start, np.int32))
            return bool((table.excess(cost, lam, span) > 0).any())

        return any(list(table.rows.each(of_span)))

    def levels(self) -> Iterator[Level]:
        """Samples of growing size."""
        low = smallest_hashes(self.table, CLUSTERS.sample_margin * CLUSTERS.last_sample)
        weight = self.table.rows.weight[low] if self.table.rows.weight.size else np.empty(0)
        return levels_of(self.table.hashes[low], weight)

    def sample(self, level: Level) -> Table:
        """The rows of a sample."""
        table = self.table
        rows = np.flatnonzero(table.hashes <= level.limit)
        weight = table.rows.weight
        if weight.size:
            rows = rows[weight[rows] > 0]
            rows = rows[np.lexsort((weight[rows], table.hashes[rows]))]
            return table.sample(rows, weight[rows])
        if rows.size > level.n_distinct:
            _, first, copies = np.unique(table.hashes[rows], return_index=True, return_counts=True)
            return table.sample(rows[first], copies.astype(float))
        return table.sample(rows[np.argsort(table.hashes[rows])], weight)

    def far_rows(self, level: Level, chosen: Array, lam: float, most: int, share: float) -> Table | None:
        """Rows beyond lam and nearly so that are in no sample yet."""
        table = self.table
        near, excess = self.nearly_beyond(level.limit, chosen, lam)
        if not (excess > 0).any():
            return None
        near = near[np.lexsort((table.hashes[near], -excess))]
        kept = near[np.isin(table.hashes[near], first_of_each(table.hashes[near], most))]
        return table.sample(kept, table.rows.weights(kept) * share)

    def nearly_beyond(self, limit: Any, chosen: Array, lam: float) -> tuple[Array, Array]:
        """Rows beyond lam and nearly so, and how far they are, that are in no sample: neither have their hashes come up
        to a limit, nor were they ``chosen``."""
        table, memory = self.table, self.memory

        def of_span(span: slice) -> tuple[Array, Array]:
            excess, hashes = table.excess(memory.cost[span], lam, span), table.hashes[span]
            near = np.flatnonzero(excess > -CLUSTERS.extremes_from * lam)
            near = near[(hashes[near] > limit) & ~np.isin(hashes[near], chosen)]
            return span.start + near, excess[near]

        rows, excess = zip(*table.rows.each(of_span))
        return np.concatenate(rows), np.concatenate(excess)

    def pilot(self) -> Pilot:
        """The rows that the number of clusters is chosen on."""
        return draw_pilot(self.table)

    @property
    def all_equal(self) -> bool:
        """Whether all rows that have weight are copies of one."""
        return self.table.all_equal

    def spread(self) -> float:
        """Weighted divergences of all rows from the point that costs are relative to."""
        base, weight = self.table.base, self.table.rows.weight
        return total_cost(self.table, base, float(base.max(where=weight > 0 if weight.size else True, initial=0.0)))


def first_of_each(hashes: Array, most: int) -> Array:
    """The first of some hashes, each once."""
    first = np.sort(np.unique(hashes, return_index=True)[1])
    return hashes[first[:most]]


def levels_of(hashes: Array, weight: Array) -> Iterator[Level]:
    """Samples of rows that have weight and the smallest hashes (at least as many as are needed); weights (m,), or (0,)
    for ones."""
    if weight.size:
        order = np.argsort(hashes)
        hashes, weight = hashes[order], weight[order]
    else:
        hashes = np.sort(hashes)
    distinct = np.flatnonzero(starts(hashes))
    for m in _sizes(distinct.size):
        limit = hashes[distinct[m - 1]]
        n = int(np.searchsorted(hashes, limit, side="right"))
        total = float(np.sort(weight[:n]).sum()) if weight.size else float(n)
        yield Level(limit, m, n if weight.size else m, total)


def _sizes(distinct: int) -> list[int]:
    """Distinct rows of each sample, of so many; the last is as large as the table allows, if that is much larger."""
    most = min(CLUSTERS.last_sample, distinct // CLUSTERS.sample_margin)
    sizes = []
    m = CLUSTERS.first_sample
    while m <= most:
        sizes.append(m)
        m *= CLUSTERS.sample_growth
    if sizes and most >= CLUSTERS.sample_worth_while * sizes[-1]:
        sizes.append(most)
    return sizes


def smallest_hashes(table: Table, m: int) -> Array:
    """Rows that have weight and hold the m smallest distinct hashes, or a few more; all, if there are fewer."""
    for limit in limits_of_hashes(m, table.n):
        low = np.flatnonzero(table.hashes <= limit)
        if table.rows.weight.size:
            low = low[table.rows.weight[low] > 0]
        if limit == _MOST or np.count_nonzero(starts(np.sort(table.hashes[low]))) >= m:
            return low
    raise AssertionError  # the last limit is above all hashes


_MOST = np.uint64(2**64 - 1)


def limits_of_hashes(m: int, n: int) -> Iterator[Any]:
    """Limits that about m of n hashes lie below, if all rows differ; larger ones follow, the last above all."""
    few = m + m // 8  # hashes are uniform, so about as many rows lie below as this says
    while few < n:
        yield np.uint64(min(2**64 - 1, 2**64 * few // n))
        few *= 4
    yield _MOST


class Clustering(NamedTuple):
    """Clusters of all rows of a table, as an algorithm leaves them."""

    centres: Centres
    labelling: Any  # a Labelling; a LocalLabelling where rows move one by one
    sums: Sums | None = None  # of the last assignment, if its clusters are still those of the centres
    moved: bool = True  # the centres have moved since
