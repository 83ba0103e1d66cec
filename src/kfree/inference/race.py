"""A sample of rows by a race of their contents, wherever the rows are: the same for any order and any blocks of them.

Every content arrives at -log(u) / w, where u is a function of the content and w the weight of all its copies, and those
that come first are in: that is sampling without replacement by weight. Blocks name the contents that may arrive in
time, and are then asked for the weight that each of them holds.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.inference.content import hash_rows, one_of_each, starts, uniform, union
from kfree.rows.blocks import Beside, Blocks, RowBlock

# The stream of random numbers that contents race by.
_CONTENTS = 2_000_000
# Of all rows, when a row of weight 1 has arrived whatever its number: -log of the smallest of them is below it.
_LAST = 64.0
# Rows in memory that are looked at together.
_TOGETHER = 2**18
_NONE, _NO_HASHES = np.empty(0), np.empty(0, np.uint64)


class Contents(NamedTuple):
    """Rows that have weight, in the order of their content."""

    hashes: Array  # (m,) uint64, ascending
    weight: Array  # (m,) of all copies that a row stands for
    copies: Array  # (m,) how many these are

    @classmethod
    def of(cls, hashes: Array, weight: Array, copies: Array) -> tuple["Contents", Array]:
        """Of rows in any order, and where they stand in it. Without weights (0,) rows of one content are one."""
        if not weight.size:
            order = np.argsort(hashes)
            first = np.flatnonzero(starts(hashes[order]))
            count = np.diff(np.append(first, hashes.size)).astype(float)
            return cls(hashes[order[first]], count, count), order[first]
        index = np.flatnonzero(weight > 0)
        index = index[np.lexsort((weight[index], hashes[index]))]
        return cls(hashes[index], weight[index], copies[index] if copies.size else np.ones(index.size)), index

    def totals(self) -> tuple[Array, Array]:
        """The first row of each content, and the weight of all of them."""
        first = np.flatnonzero(starts(self.hashes))
        return first, np.add.reduceat(self.weight, first)

    def some(self, rows: Array) -> "Contents":
        """Some of the rows."""
        return Contents(self.hashes[rows], self.weight[rows], self.copies[rows])

    def joined(self, other: "Contents") -> "Contents":
        """These rows and others, in no order."""
        return Contents(*map(np.concatenate, zip(self, other)))

    def in_order(self, weighted: bool) -> "Contents":
        """Joined rows in the order of their content; without weights, rows of one content are one."""
        ordered = self.some(np.lexsort((self.weight, self.hashes)))
        if weighted or not ordered.hashes.size:
            return ordered
        first, total = ordered.totals()
        return Contents(ordered.hashes[first], total, total)


def arrivals(hashes: Array, weight: Array) -> Array:
    """When contents of so much weight arrive in a race whose clocks are hashes."""
    with np.errstate(over="ignore"):  # the slowest never arrive
        return -np.log(uniform(hashes, _CONTENTS)) / weight


def among(hashes: Array, some: Array) -> Array:
    """Which hashes are among some that are ascending."""
    if not some.size:
        return np.zeros(hashes.size, bool)
    order, found = np.argsort(hashes), np.empty(hashes.size, bool)
    ordered = hashes[order]  # what is looked for in turn is found near what was looked for before, in the cache
    found[order] = some[np.minimum(np.searchsorted(some, ordered), some.size - 1)] == ordered
    return found


class Entrants(NamedTuple):
    """Rows that take part."""

    hashes: Array  # (n,) uint64
    weight: Array  # (n,), or (0,) for ones
    copies: Array = _NONE  # (n,) how many copies a row stands for, or (0,) for ones

    def contents(self) -> tuple[Array, Array]:
        """Hashes of all contents that have weight, ascending, and their weights."""
        if self.weight.size:
            contents, _ = Contents.of(*self)
            first, total = contents.totals()
            return contents.hashes[first], total
        ordered = np.sort(self.hashes)
        first = np.flatnonzero(starts(ordered))
        return ordered[first], np.diff(first, append=ordered.size)

    def named(self, hashes: Array) -> Array:
        """Places of the rows that have weight and one of some hashes, which are ascending."""
        same = among(self.hashes, hashes)
        return np.flatnonzero(same & (self.weight > 0) if self.weight.size else same)


class Racing(NamedTuple):
    """Contents that may arrive in time, although other blocks hold some of their weight.

    Of all blocks one has at least its share, 1 / blocks, of the weight of a content, and so names it.
    """

    time: float
    blocks: int  # of the whole table

    def __call__(self, rows: Entrants) -> Array:
        """Their hashes, ascending."""
        hashes, total = rows.contents()
        return hashes[arrivals(hashes, total * self.blocks) <= self.time]


class Records(NamedTuple):
    """The rows of some contents."""

    hashes: Array  # ascending

    def __call__(self, rows: Entrants) -> Contents:
        """Of a block."""
        some = rows.named(self.hashes)
        return Contents.of(*(part[some] if part.size else part for part in rows))[0]


def race(
    ask: Callable[[Any, Any], Any],
    enough: int,
    *,
    blocks: int,
    weighted: bool,
    total: float,
    lightest: float,
) -> Contents:
    """The first ``enough`` contents of a race and those that arrive soon after them; or all. ``ask(query, merge)``
    asks all blocks, ``total`` is about the weight of all rows, ``lightest`` that of the lightest."""
    time = 1.1 * enough / total  # so many arrive by then if none has much of the weight
    while True:
        racers = ask(Racing(time, blocks), union)
        contents = ask(Records(racers), Contents.joined).in_order(weighted)
        first, weight = contents.totals()
        in_time = np.count_nonzero(arrivals(contents.hashes[first], weight) <= time)
        if in_time > enough or time == np.inf:
            return contents
        # nobody is left if the last one came so early that all weight has arrived
        time = 2.0 * time if time < _LAST / lightest else np.inf


def first_contents(rows: Entrants, enough: int) -> tuple[Contents, Array]:
    """Contents of rows in memory that arrive first, one more than enough if there are so many, and where they stand; of
    a short table all are given.

    Rows are sorted once, and then looked at some at a time: all contents of a table may take more room than its labels.
    """
    if rows.hashes.size <= _TOGETHER:
        return Contents.of(*rows)
    order = np.argsort(rows.hashes)
    kept, places = Contents(_NO_HASHES, _NONE, _NONE), np.empty(0, np.intp)
    for part in _parts_of_contents(rows.hashes, order):
        own = order[part]
        contents, place = Contents.of(*(entries[own] if entries.size else entries for entries in rows))
        kept, places = kept.joined(contents), np.concatenate([places, own[place]])
        first, total = kept.totals()
        arrival = arrivals(kept.hashes[first], total)
        if first.size > enough + 1:
            late = arrival > np.partition(arrival, enough)[enough]
            some = np.flatnonzero(~np.repeat(late, np.diff(np.append(first, kept.hashes.size))))
            kept, places = kept.some(some), places[some]
    return kept, places


def _parts_of_contents(hashes: Array, order: Array) -> Iterator[slice]:
    """Parts of the order of hashes, none of which ends among equal ones."""
    start, n = 0, order.size
    while start < n:
        stop = min(start + _TOGETHER, n)
        last, more = hashes[order[stop - 1]], _TOGETHER
        while more == _TOGETHER:
            more = int(np.searchsorted(hashes[order[stop : stop + _TOGETHER]], last, side="right"))
            stop += more
        yield slice(start, stop)
        start = stop


class Drawn(NamedTuple):
    """Different rows of a table, in the order of their hashes."""

    X: Any  # (m, p) array or CSR matrix
    weight: Array  # (m,) what each stands for: sums over the sample are those over the table, but for chance
    complete: bool  # whether these are all the different rows that have weight
    own: Array  # (m,) weight of their copies


def sample_by_content(blocks: Blocks, most: int) -> Drawn:
    """Draw different rows without replacement, with probability about proportional to the weight of their copies."""
    total, lightest, weighted = blocks.ask(_weigh, (), _weighed)
    if not total:
        raise ValueError("sample_weight is zero for every row: there is nothing to fit. Give some row a weight.")

    def ask(query: Any, merge: Any) -> Any:
        return blocks.ask(_ask, (query,), merge)

    contents = race(ask, most, blocks=blocks.count, weighted=weighted, total=total, lightest=lightest)
    first, weight = contents.totals()
    hashes, own = contents.hashes[first], weight
    complete = hashes.size <= most
    if not complete:
        arrival = arrivals(hashes, weight)
        order = np.argpartition(arrival, most)
        chosen, next_one = np.sort(order[:most]), arrival[order[most]]
        # given when the next one arrives, a row is in with this chance
        hashes, own = hashes[chosen], weight[chosen]
        weight = own / -np.expm1(-own * next_one)
    found = blocks.ask(_take, (hashes,), _Rows.joined)
    return Drawn(found.X[one_of_each(found.hashes)], weight, complete, own)


class _Rows(NamedTuple):
    hashes: Array
    X: Any

    def joined(self, other: "_Rows") -> "_Rows":
        stacked = sp.vstack([self.X, other.X], "csr") if sp.issparse(self.X) else np.concatenate([self.X, other.X])
        return _Rows(np.concatenate([self.hashes, other.hashes]), stacked)


def _weigh(block: RowBlock, beside: Beside) -> tuple[float, float, bool]:
    """Weight of all rows, that of the lightest, and whether there are weights."""
    weight = block.weight
    if not weight.size:
        return float(block.X.shape[0]), 1.0, False
    return float(weight.sum()), float(weight.min(where=weight > 0, initial=np.inf)), True


def _weighed(one: tuple[float, float, bool], other: tuple[float, float, bool]) -> tuple[float, float, bool]:
    return one[0] + other[0], min(one[1], other[1]), one[2] or other[2]


def _entrants(block: RowBlock, beside: Beside) -> Entrants:
    if "entrants" not in beside:
        X = block.X if sp.issparse(block.X) else np.ascontiguousarray(block.X, dtype=_kind(block.X.dtype))
        beside["entrants"] = hash_rows(X)
    return Entrants(beside["entrants"], block.weight)


def _kind(dtype: Any) -> Any:
    return np.float32 if dtype == np.float32 else np.float64


def _ask(block: RowBlock, beside: Beside, query: Callable[[Entrants], Any]) -> Any:
    return query(_entrants(block, beside))


def _take(block: RowBlock, beside: Beside, hashes: Array) -> _Rows:
    """One row of each of some contents."""
    rows = _entrants(block, beside)
    some = rows.named(hashes)
    some = some[one_of_each(rows.hashes[some])]
    X = block.X[some]
    return _Rows(rows.hashes[some], X if sp.issparse(X) else np.asarray(X, dtype=_kind(X.dtype)))
