"""A labelling of rows that lie in blocks elsewhere, with the answers of the same rows in memory to the last bit."""

import uuid
from collections.abc import Iterator
from itertools import count
from operator import or_
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array, Geometry
from kfree.inference.clusters.block_answers import (
    Assigned,
    Assigning,
    Beyond,
    Costing,
    Costs,
    Counting,
    FarKeysOf,
    FarRowsOf,
    FarthestOf,
    Forgetting,
    Given,
    Log,
    Loosening,
    Lowest,
    MakeTable,
    OfEntrants,
    OpeningContents,
    Relabelling,
    Sampling,
    SpreadOfRows,
    Step,
    Taking,
    ask_table,
    follow,
    labels_of,
    largest_cost,
)
from kfree.inference.clusters.centres import Centres, Sums
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.inference.clusters.fence import fence_between, least_weight
from kfree.inference.clusters.how_many.how_many_numbers import HOW_MANY
from kfree.inference.clusters.how_many.subsample import Pilot, draw, make_pilot, most_drawn
from kfree.inference.clusters.labelling import Labelling, Level, levels_of, limits_of_hashes
from kfree.inference.clusters.openers import apart
from kfree.inference.clusters.table import Table
from kfree.inference.content import count_distinct, one_of_each, starts
from kfree.inference.loop import Budget
from kfree.inference.race import race
from kfree.rows.blocks import Blocks
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
