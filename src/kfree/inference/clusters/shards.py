"""A labelling of rows that lie in blocks elsewhere, with the answers of the same rows in memory to the last bit.

What is done to labels is a log: the last assignment, and what came after it. Labels follow from content and log alone,
so a block whose labels are lost, or were never here, replays it; one that still has them goes on from there.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from operator import or_
from typing import Any, NamedTuple, Protocol

import numpy as np

from kfree.families import Array, Geometry
from kfree.inference.clusters.centres import Centres, Sums
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.inference.clusters.fence import fence_between, least_weight
from kfree.inference.clusters.how_many.how_many_numbers import HOW_MANY
from kfree.inference.clusters.how_many.subsample import Pilot, draw, make_pilot, most_drawn
from kfree.inference.clusters.labelling import (
    Labelling,
    Level,
    LocalLabelling,
    first_of_each,
    levels_of,
    limits_of_hashes,
)
from kfree.inference.clusters.openers import apart, copies_in, farthest_rows
from kfree.inference.clusters.table import Table
from kfree.inference.content import count_distinct, one_of_each, starts
from kfree.inference.loop import Budget
from kfree.inference.race import Entrants, among, race
from kfree.rows.blocks import Beside, Blocks, RowBlock
from kfree.rows.exact_sums import CostSum, ExactSums, Grid, WeightRange

_NONE = np.empty(0)
_NO_HASHES = np.empty(0, np.uint64)
# Bits of a cost that a round of counting tells.
_BITS = 13


class Facts(NamedTuple):
    """What is known of all rows before they are labelled."""

    geometry: Geometry
    shift: Array  # (p,)
    n: int
    entries: int  # stored entries of a row, on average
    total: Array  # (1, p) sum of all rows
    mass: Array  # (1,) its weight
    total_weight: float
    weights: WeightRange
    weighted: bool
    grid: Grid
    all_equal: bool


class MakeTable(Protocol):
    """Makes the table of a block."""

    @property
    def name(self) -> str:
        """Of the fit: tables of others are made anew."""

    def __call__(self, block: RowBlock) -> Table:
        """Its rows, with what does not change during a fit."""


# -- on the side of a block --------------------------------------------------------------------------------------------


class Given(NamedTuple):
    """Centres, as they are sent."""

    mean: Array
    size: float  # of the product form: it may come from larger centres, and decides which costs are exact

    @classmethod
    def of(cls, centres: Centres) -> "Given":
        """What is to be sent."""
        return cls(centres.mean, centres.affine.size)

    def centres(self, geometry: Geometry) -> Centres:
        """The same centres."""
        centres = Centres(geometry, self.mean)
        centres.affine = replace(centres.affine, size=self.size)
        return centres


class Shard:
    """The rows of a block with their labels, as far as the log has been followed."""

    def __init__(self, table: Table, name: str, last: int) -> None:
        self.labelling, self.name = LocalLabelling(table), name
        self.last = last  # the number of the step that was followed last
        self.centres: Centres | None = None  # those that bounds are of


class Assigned(NamedTuple):
    """What comes of an assignment; parts are added."""

    limbs: Array  # exact sums
    reach: Array  # (K,)
    active: float  # largest cost of a row that has weight
    changed: float
    tied: int
    cost: Array  # (3,) limbs of the sum of costs, if none exceeds what was guessed

    def joined(self, other: "Assigned") -> "Assigned":
        """Of the rows of both."""
        return Assigned(
            self.limbs + other.limbs,
            np.maximum(self.reach, other.reach),
            max(self.active, other.active),
            self.changed + other.changed,
            self.tied + other.tied,
            self.cost + other.cost,
        )


class Assigning(NamedTuple):
    """Label every row by its nearest centre."""

    given: Given | None  # None: the centres that bounds were loosened to
    lam: float | None
    guess: float  # no cost exceeds it, probably

    def apply(self, shard: Shard) -> Assigned:
        """Do it."""
        labelling = shard.labelling
        if self.given is not None:
            shard.centres = self.given.centres(labelling.geometry)
        assert shard.centres is not None
        sums = labelling.assign(shard.centres, self.lam)
        exact = labelling.memory.sums
        assert exact is not None
        return Assigned(
            exact.limbs.copy(), sums.reach, _active(labelling), sums.changed, sums.tied, _costs(labelling, self.guess)
        )


class OpeningContents(NamedTuple):
    """Rows of some contents get labels of their own."""

    hashes: Array  # (m,)
    stats: Array  # (m, p)
    K: int

    def apply(self, shard: Shard) -> Array:
        """Do it; the exact sums after it."""
        copies = copies_in(shard.labelling.table, self.hashes, self.stats)
        return shard.labelling.label_copies(copies, self.K).limbs.copy()


class Relabelling(NamedTuple):
    """Labels become other numbers."""

    new: Array
    gone: Array

    def apply(self, shard: Shard) -> None:
        """Do it."""
        shard.labelling.relabel(self.new, self.gone)


class Loosening(NamedTuple):
    """Bounds follow centres that have moved."""

    after: Given
    kept: Array
    reach: Array | None

    def apply(self, shard: Shard) -> None:
        """Do it."""
        after = self.after.centres(shard.labelling.geometry)
        assert shard.centres is not None
        shard.labelling.loosen(shard.centres, after, self.kept, self.reach)
        shard.centres = after


class Forgetting(NamedTuple):
    """Nothing is known of other centres."""

    def apply(self, shard: Shard) -> None:
        """Do it."""
        shard.labelling.forget()


class Costing(NamedTuple):
    """Costs by the family's formula."""

    given: Given
    guess: float

    def apply(self, shard: Shard) -> Assigned:
        """Do it; only what is said of costs matters."""
        labelling = shard.labelling
        labelling.partition_cost(self.given.centres(labelling.geometry))
        reach = np.array([labelling.memory.cost.max(initial=0.0)])
        limbs = _costs(labelling, self.guess)
        return Assigned(np.zeros(1, np.int64), reach, _active(labelling), 0.0, 0, limbs)


Step = Assigning | OpeningContents | Relabelling | Loosening | Forgetting | Costing


def _active(labelling: LocalLabelling) -> float:
    cost, weight = labelling.memory.cost, labelling.table.rows.weight
    return float(cost.max(where=weight > 0, initial=0.0) if weight.size else cost.max(initial=0.0))


def _costs(labelling: LocalLabelling, largest: float) -> Array:
    """Limbs of the weighted sum of costs; zeros where one exceeds ``largest``, so that it has to be asked again."""
    table, cost = labelling.table, labelling.memory.cost
    if not _active(labelling) <= largest:
        return np.zeros(3, np.int64)
    return CostSum(largest, table.rows.weight_range).limbs(cost, table.rows.weight)


class Log(NamedTuple):
    """What has been done to labels: the last assignment, and what came after it.

    Every step has a number of its own, also one that was interrupted and is in no log: what a block did for it is then
    no state that another step may start from.
    """

    name: str  # of the labelling
    before: int  # the number of the step before the first
    steps: tuple[tuple[int, "Step"], ...]

    def after(self, last: int) -> list[tuple[int, "Step"]] | None:
        """The steps that follow one; None if it is not among them."""
        numbers = [self.before, *(number for number, _ in self.steps)]
        return list(self.steps[numbers.index(last) :]) if last in numbers else None


def follow(block: RowBlock, beside: Beside, make: MakeTable, log: Log, number: int, query: Any) -> Any:
    """Bring the labels of a block to the end of a log, and ask; a step that is asked for gets the number."""
    with _table_of(block, beside, make) as table:
        shard: Shard | None = beside.pop("shard", None)  # not there while it is between two states
        left = None if shard is None or shard.name != log.name else log.after(shard.last)
        if shard is None or left is None:
            shard, left = Shard(table, log.name, log.before), list(log.steps)
        for shard.last, step in left:
            step.apply(shard)
        if isinstance(query, Step):
            said, shard.last = query.apply(shard), number
        else:
            said = query(shard.labelling)
        beside["shard"] = shard
        return said


def ask_table(block: RowBlock, beside: Beside, make: MakeTable, query: Any) -> Any:
    """Ask the rows of a block, whatever their labels."""
    with _table_of(block, beside, make) as table:
        return query(table)


@contextmanager
def _table_of(block: RowBlock, beside: Beside, make: MakeTable) -> Iterator[Table]:
    """The table of a block. What was computed of it is kept, its values are not: whoever holds them may need the
    room."""
    name, table = beside.get("table", ("", None))
    if name == make.name:
        if not table.rows.made:
            table.rows.bind(block.X)
    else:
        beside.pop("shard", None)
        table = make(block)
        beside["table"] = make.name, table
    yield table
    if not table.rows.made:
        table.rows.release()


class Lowest(NamedTuple):
    """Rows that have weight and hashes up to a limit: these hashes, ascending, and their weights."""

    limit: Any

    def __call__(self, table: Table) -> tuple[Array, Array]:
        """Of a block."""
        rows = np.flatnonzero(table.hashes <= self.limit)
        weight = table.rows.weight
        if not weight.size:
            return table.hashes[rows], _NONE
        rows = rows[weight[rows] > 0]
        return table.hashes[rows], weight[rows]


class Sampling(NamedTuple):
    """Rows of a sample; without weights one row of each content, which weighs as much as its copies."""

    limit: Any

    def __call__(self, table: Table) -> Table:
        """Of a block."""
        rows, weight = np.flatnonzero(table.hashes <= self.limit), table.rows.weight
        if weight.size:
            rows = rows[weight[rows] > 0]
            return table.sample(rows, weight[rows])
        _, first, copies = np.unique(table.hashes[rows], return_index=True, return_counts=True)
        return table.sample(rows[first], copies.astype(float))


class OfEntrants(NamedTuple):
    """Asks the rows as they take part in a race."""

    query: Callable[[Entrants], Any]

    def __call__(self, table: Table) -> Any:
        """Of a block."""
        return self.query(entrants(table))


def entrants(table: Table) -> Entrants:
    """The rows of a table as they take part in a race."""
    return Entrants(table.hashes, table.rows.weight, table.copies)


class Taking(NamedTuple):
    """One row of each of some contents."""

    hashes: Array  # ascending

    def __call__(self, table: Table) -> Table:
        """Of a block."""
        rows = entrants(table).named(self.hashes)
        rows = rows[one_of_each(table.hashes[rows])]
        return table.sample(rows, np.ones(rows.size))._replace(rows=table.rows.part(rows))


class Beyond(NamedTuple):
    """Whether some row would open a cluster beside the only centre."""

    given: Given
    lam: float

    def __call__(self, table: Table) -> bool:
        """In a block."""
        return LocalLabelling(table).any_beyond(self.given.centres(table.geometry), self.lam)


class SpreadOfRows(NamedTuple):
    """How far rows are from the anchor: the largest that has weight, and the sum if none exceeds what was guessed."""

    guess: float

    def __call__(self, table: Table) -> Assigned:
        """Of a block."""
        base, weight = table.base, table.rows.weight
        active = float(base.max(where=weight > 0 if weight.size else True, initial=0.0))
        limbs = np.zeros(3, np.int64)
        if active <= self.guess:
            limbs = CostSum(self.guess, table.rows.weight_range).limbs(base, weight)
        return Assigned(np.zeros(1, np.int64), np.array([active]), active, 0.0, 0, limbs)


class FarthestOf(NamedTuple):
    """Of each cluster the row that would open one of its own first."""

    lam: float
    K: int

    def __call__(self, labelling: LocalLabelling) -> "FarRows":
        """In a block."""
        table = labelling.table
        found = farthest_rows(table, labelling.memory, self.lam, self.K)
        return FarRows(found.excess, labelling.labels[found.rows], table.sample(found.rows, np.ones(found.rows.size)))


class FarRows(NamedTuple):
    """Some rows and how far they are beyond their thresholds."""

    excess: Array
    labels: Array
    table: Table

    def joined(self, other: "FarRows") -> "FarRows":
        """One row of each cluster: of equally far ones that with the smaller hash."""
        excess = np.concatenate([self.excess, other.excess])
        labels, table = np.concatenate([self.labels, other.labels]), self.table.joined(other.table)
        order = np.lexsort((table.hashes, -excess, labels))
        kept = order[starts(labels[order])]
        return FarRows(excess[kept], labels[kept], table.sample(kept, np.ones(kept.size)))


class FarKeys(NamedTuple):
    """Which rows are beyond lam and nearly so."""

    far: bool  # some row is beyond
    excess: Array
    hashes: Array
    most: int

    def first(self) -> "FarKeys":
        """One entry for each content, farthest first, as many as are wanted."""
        order = np.lexsort((self.hashes, -self.excess))
        wanted = order[np.isin(self.hashes[order], first_of_each(self.hashes[order], self.most))]
        first = wanted[np.sort(np.unique(self.hashes[wanted], return_index=True)[1])]
        return self._replace(excess=self.excess[first], hashes=self.hashes[first])

    def joined(self, other: "FarKeys") -> "FarKeys":
        """Of these rows and others."""
        excess, hashes = np.concatenate([self.excess, other.excess]), np.concatenate([self.hashes, other.hashes])
        return FarKeys(self.far or other.far, excess, hashes, self.most).first()


class FarKeysOf(NamedTuple):
    """The same in a block: see ``LocalLabelling.far_rows``."""

    limit: Any
    chosen: Array
    lam: float
    most: int

    def __call__(self, labelling: LocalLabelling) -> FarKeys:
        """In a block."""
        rows, excess = labelling.nearly_beyond(self.limit, self.chosen, self.lam)
        return FarKeys(bool((excess > 0).any()), excess, labelling.table.hashes[rows], self.most).first()


class FarRowsOf(NamedTuple):
    """The rows that these keys are of, with their copies."""

    keys: FarKeysOf
    hashes: Array  # ascending

    def __call__(self, labelling: LocalLabelling) -> "Gathered":
        """In a block."""
        table = labelling.table
        rows, excess = labelling.nearly_beyond(self.keys.limit, self.keys.chosen, self.keys.lam)
        mine = among(table.hashes[rows], self.hashes)
        return Gathered(excess[mine], table.sample(rows[mine], table.rows.weights(rows[mine])))


class Gathered(NamedTuple):
    """Rows with how far they are beyond their thresholds."""

    excess: Array
    table: Table

    def joined(self, other: "Gathered") -> "Gathered":
        """These and others."""
        return Gathered(np.concatenate([self.excess, other.excess]), self.table.joined(other.table))


class Counting(NamedTuple):
    """How much weight there is by the next bits of costs, as whole numbers that are in their order."""

    known: tuple[int, ...]  # the bits before, one for each value that is looked for
    shift: int  # bits after
    bits: int

    def __call__(self, labelling: LocalLabelling) -> Array:
        """In a block."""
        keys, weight = _cost_keys(labelling.memory.cost), labelling.table.rows.weight
        counts = np.zeros((len(self.known), 2**self.bits))
        for line, known in zip(counts, self.known):
            mine = np.flatnonzero(keys >> np.uint64(self.shift + self.bits) == np.uint64(known))
            then = (keys[mine] >> np.uint64(self.shift)) & np.uint64(2**self.bits - 1)
            line += np.bincount(then.astype(np.intp), weight[mine] if weight.size else None, 2**self.bits)
        return counts


def _cost_keys(cost: Array) -> Array:
    """Whole numbers in the order of costs; those that are infinite count as 0."""
    return np.where(np.isfinite(cost), cost, 0.0).view(np.uint64)


def largest_cost(labelling: LocalLabelling) -> float:
    """The largest finite cost of a row that has weight."""
    cost, weight = labelling.memory.cost, labelling.table.rows.weight
    usable = np.isfinite(cost) & ((weight > 0) if weight.size else True)
    return float(cost.max(where=usable, initial=0.0))


def labels_of(labelling: LocalLabelling) -> Array:
    """The labels of a block."""
    return labelling.labels.copy()


class Costs(NamedTuple):
    """The sum of costs, none of which exceeds the largest."""

    largest: float

    def __call__(self, labelling: LocalLabelling) -> Array:
        """In a block."""
        return _costs(labelling, self.largest)


# -- on the side of whoever asks ---------------------------------------------------------------------------------------


class Chosen:
    """Rows that open clusters."""

    def __init__(self, hashes: Array, stats: Array) -> None:
        self.hashes, self.stats = hashes, stats

    def __len__(self) -> int:
        return self.hashes.size

    def __getitem__(self, some: slice) -> "Chosen":
        return Chosen(self.hashes[some], self.stats[some])


class Shards(Labelling):
    """Rows in blocks."""

    def __init__(self, blocks: Blocks, make: MakeTable, facts: Facts) -> None:
        self.blocks, self._make, self._facts = blocks, make, facts
        self.geometry, self.shift, self.n, self.p = facts.geometry, facts.shift, facts.n, facts.shift.size
        self.total_weight, self.lightest = facts.total_weight, facts.weights.lightest
        self._log, self._numbers = Log(uuid.uuid4().hex, 0, ()), count(1)
        self._largest = 0.0  # of the costs when they were last summed
        self._loosened: Centres | None = None  # what bounds hold for

    def fresh(self) -> "Shards":
        """The same rows without labels."""
        return Shards(self.blocks, self._make, self._facts)

    def first_centre(self) -> Array:
        """The one cluster that holds everything."""
        return self.geometry.centre(self._facts.total, self._facts.mass)

    def assign(self, centres: Centres, lam: float | None = None) -> Sums:
        """Label every row by its nearest centre."""
        given, number, guess = Given.of(centres), next(self._numbers), _below_power(self._largest)
        sent = Assigning(None if centres is self._loosened else given, lam, guess)
        said = self._follow(number, sent, _joined)
        last = self._log.steps[-1][0] if self._log.steps else self._log.before
        self._log = Log(self._log.name, last, ((number, Assigning(given, lam, guess)),))
        self._loosened = centres
        sums = ExactSums.of_limbs(self._facts.grid, said.limbs)
        return Sums(*sums.values(), said.changed, self._cost(said, guess), said.tied, said.reach)

    def openers(self, lam: float, reach: Array, one_at_a_time: bool, budget: Budget) -> Chosen:
        """Rows that open clusters."""
        if self.lightest >= 1.0 and not reach.max() > lam:
            return Chosen(_NO_HASHES, np.empty((0, self.p)))
        far = self._ask(FarthestOf(lam, reach.size), _joined)
        ranked = np.lexsort((far.table.hashes, -far.excess))
        opening = ranked[apart(far.table, ranked, lam, one_at_a_time, budget)]
        return Chosen(far.table.hashes[opening], far.table.rows.dense(opening))

    def open(self, openers: Chosen, K: int) -> tuple[Array, Array]:
        """Give each opener, and the copies of it, a label of its own."""
        number, step = next(self._numbers), OpeningContents(openers.hashes, openers.stats, K)
        limbs = self._follow(number, step, np.add)
        self._note(step, number)
        return ExactSums.of_limbs(self._facts.grid, limbs).values()

    def relabel(self, new: Array, gone: Array) -> None:
        """Every label becomes its new number."""
        self._note(Relabelling(new, gone))

    def loosen(self, before: Centres, after: Centres, kept: Array, reach: Array | None) -> None:
        """Make bounds hold for centres that have moved; before an assignment there are none."""
        if not self._log.steps:
            return
        self._note(Loosening(Given.of(after), kept, reach))
        self._loosened = after

    def forget(self) -> None:
        """Nothing is known of other centres."""
        self._note(Forgetting())

    def partition_cost(self, centres: Centres) -> float:
        """Weighted divergences of all rows from the centres of their labels."""
        number, guess = next(self._numbers), _below_power(self._largest)
        step = Costing(Given.of(centres), guess)
        said = self._follow(number, step, _joined)
        self._note(step, number)
        return self._cost(said, guess)

    def fence(self) -> float:
        """How far from their centres rows hardly ever are."""
        shares = CLUSTERS.quartiles
        known, below, shift = [0] * len(shares), [0.0] * len(shares), 63  # no cost has a sign
        while shift:
            bits = min(_BITS, shift)
            shift -= bits
            counts = self._ask(Counting(tuple(known), shift, bits), np.add)
            for place, share in enumerate(shares):
                sums = below[place] + np.cumsum(counts[place])
                wanted = least_weight(share, self.total_weight, whole=not self._facts.weighted)
                here = min(int(np.searchsorted(sums, wanted)), sums.size - 1)
                below[place] = float(sums[here] - counts[place][here])
                known[place] = (known[place] << bits) | here
        low, high = np.sqrt(np.array(known, np.uint64).view(float)).tolist()
        return fence_between(low, high, lambda: float(np.sqrt(self._ask(largest_cost, max))))

    @property
    def labels(self) -> Any:
        """(n,) int32, where the rows are."""
        return self.blocks.keep(follow, (self._make, self._log, 0, labels_of))

    def any_beyond(self, centres: Centres, lam: float) -> bool:
        """Whether some row would open a cluster beside the only centre."""
        return self._ask_tables(Beyond(Given.of(centres), lam), or_)

    def levels(self) -> Iterator[Level]:
        """Samples of growing size."""
        wanted = CLUSTERS.sample_margin * CLUSTERS.last_sample
        for limit in limits_of_hashes(wanted, self.n):
            hashes, weight = self._ask_tables(Lowest(limit), _concatenated)
            if count_distinct(hashes) >= wanted:
                break
        return levels_of(hashes, weight)

    def sample(self, level: Level) -> Table:
        """The rows of a sample, in memory."""
        table = self._ask_tables(Sampling(level.limit), Table.joined)
        weight = table.rows.weight
        if self._facts.weighted:
            order = np.lexsort((weight, table.hashes))
            return table.sample(order, weight[order])
        order = np.argsort(table.hashes, kind="stable")
        first = np.flatnonzero(starts(table.hashes[order]))
        copies = np.add.reduceat(weight[order], first)
        return table.sample(order[first], copies if copies.sum() > level.n_distinct else _NONE)

    def far_rows(self, level: Level, chosen: Array, lam: float, most: int, share: float) -> Table | None:
        """Rows beyond lam and nearly so that are in no sample yet."""
        wanted = FarKeysOf(level.limit, chosen, lam, most)
        keys = self._ask(wanted, _joined)
        if not keys.far:
            return None
        found = self._ask(FarRowsOf(wanted, np.sort(keys.hashes)), _joined)
        order = np.lexsort((found.table.hashes, -found.excess))
        return found.table.sample(order, found.table.rows.weight[order] * share)

    def pilot(self) -> Pilot:
        """The rows that the number of clusters is chosen on."""
        contents = race(
            lambda query, merge: self._ask_tables(OfEntrants(query), merge),
            HOW_MANY.contents,
            blocks=self.blocks.count,
            weighted=self._facts.weighted,
            total=self.total_weight,
            lightest=self.lightest,
        )
        index, ticket, weight = draw(contents, most_drawn(self._facts.entries))
        hashes = contents.hashes[index]
        table = self._ask_tables(Taking(np.unique(hashes)), Table.joined)
        order = one_of_each(table.hashes)
        place = order[np.searchsorted(table.hashes[order], hashes)]
        return make_pilot(table, place, ticket, weight, self.total_weight)

    @property
    def all_equal(self) -> bool:
        """Whether all rows that have weight are copies of one."""
        return self._facts.all_equal

    def spread(self) -> float:
        """Weighted divergences of all rows from the point that costs are relative to."""
        largest = self._ask_tables(SpreadOfRows(0.0), _joined).active
        return self._sum(largest, self._ask_tables(SpreadOfRows(largest), _joined).cost)

    def _cost(self, said: Assigned, guess: float) -> float:
        """The sum of costs, asked for again if the guess was wrong."""
        # a row without weight may cost any amount
        largest = said.active if self._facts.weighted else float(said.reach.max())
        if not np.isfinite(largest):
            return largest
        self._largest = largest
        if _below_power(largest) == guess:
            return self._sum(largest, said.cost)
        return self._sum(largest, self._ask(Costs(largest), np.add))

    def _sum(self, largest: float, limbs: Array) -> float:
        total = CostSum(largest, self._facts.weights)
        total.add(limbs)
        return total.value

    def _note(self, step: Step, number: int | None = None) -> None:
        """A step at the end of the log."""
        logged = (next(self._numbers) if number is None else number, step)
        self._log = self._log._replace(steps=(*self._log.steps, logged))

    def _follow(self, number: int, query: Any, merge: Any) -> Any:
        return self.blocks.ask(follow, (self._make, self._log, number, query), merge)

    def _ask(self, query: Any, merge: Any) -> Any:
        return self._follow(0, query, merge)

    def _ask_tables(self, query: Any, merge: Any) -> Any:
        return self.blocks.ask(ask_table, (self._make, query), merge)


def _joined(one: Any, other: Any) -> Any:
    return one.joined(other)


def _concatenated(one: Any, other: Any) -> Any:
    return tuple(map(np.concatenate, zip(one, other)))


def _below_power(value: float) -> float:
    """The largest number with the exponent of a value: sums of costs hang on nothing else of the largest."""
    return float(np.nextafter(np.ldexp(1.0, int(np.frexp(value)[1])), 0.0))
