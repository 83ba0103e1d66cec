"""What runs beside a block of rows: its table, its labels, which follow a log, and the questions that it answers.

What is done to labels is a log: the last assignment, and what came after it. Labels follow from content and log alone,
so a block whose labels are lost, or were never here, replays it; one that still has them goes on from there.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from kfree.families import Array, Geometry
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.labelling import LocalLabelling, first_of_each
from kfree.inference.clusters.openers import copies_in, farthest_rows
from kfree.inference.clusters.table import Table
from kfree.inference.content import one_of_each, starts
from kfree.inference.race import Entrants, among
from kfree.rows.blocks import Beside, RowBlock
from kfree.rows.exact_sums import CostSum

_NONE = np.empty(0)


class MakeTable(Protocol):
    """Makes the table of a block."""

    @property
    def name(self) -> str:
        """Of the fit: tables of others are made anew."""

    def __call__(self, block: RowBlock) -> Table:
        """Its rows, with what does not change during a fit."""


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
