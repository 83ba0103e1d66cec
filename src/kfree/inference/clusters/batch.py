"""``algorithm="batch"``: grow and search on samples chosen by row content, then descend on all rows.

Nothing depends on the order of the rows: samples, races and ties are functions of content, so integer weights
equal repeated rows. Samples only find the starting point; on all rows every pass lowers the objective.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.assign import Centres, assign, own_cost
from kfree.inference.clusters.cuts import SplitRule
from kfree.inference.clusters.gaps import split_at_gaps
from kfree.inference.clusters.grow import Grown, Growth, grow, update
from kfree.inference.clusters.moves import apply_moves, fingerprints, merge_halves, nothing_tried
from kfree.inference.clusters.table import Memory, Table, make_memory
from kfree.inference.loop import Budget, Outcome

#: Distinct rows of the first and the last sample, growth between them, how much larger the table must be, and how much
#: larger a last sample that the table ends must be than the one before.
FIRST_SAMPLE, LAST_SAMPLE, GROWTH_FACTOR, MARGIN, WORTH_WHILE = 2000, 50_000, 5, 2, 3
#: Share of the weight that may still change label on a sample, and on a sample with extremes.
SAMPLE_TOL, EXTREME_TOL = 0.003, 0.0005
#: Clusters may number at most this share of a sample's rows.
ROWS_PER_CLUSTER = 10
#: Moves are made on samples up to this size, in at most so many rounds.
MOVES_UP_TO, MOVE_ROUNDS = 50_000, 20
#: Gaps inside clusters are looked for on samples up to this size.
GAPS_UP_TO = 10_000
#: Extremes: rounds, distinct rows a cluster, how far below lam they start, share of the sample they may make up.
EXTREME_ROUNDS, EXTREMES_EACH, EXTREMES_FROM, EXTREMES_SHARE = 10, 20, 0.1, 4
_SAMPLE_PASSES = 300


class BatchSettings(NamedTuple):
    """What the user chose."""

    lam: float
    tol: float
    max_iter: int
    max_clusters: float
    moves: bool  # clear splits and paying merges on samples


class Level(NamedTuple):
    """A sample of a table."""

    rows: Array  # (m,) indices
    weight: Array  # (m,), or (0,) for ones

    def of(self, table: Table) -> Table:
        """The rows themselves."""
        return table.sample(self.rows, self.weight)


class Settled(NamedTuple):
    """What need not be tried again on a larger sample, unless something opens."""

    whole: Array  # (K,) bool, no split of the cluster; gaps inside are another matter
    tidy: bool  # no two clusters are halves of one
    still: bool = False  # nothing at all: nothing moved or opened


class Stage(NamedTuple):
    """How a sample is fitted."""

    name: str
    tol: float
    gaps: bool = False  # look for gaps inside clusters too
    settled: Settled | None = None  # on a smaller sample


def start_on_samples(
    table: Table, centres: Centres, settings: BatchSettings, budget: Budget
) -> tuple[Centres, Level | None]:
    """Centres found on samples of growing size, and the last sample (None if the table is too small for one)."""
    level = None
    if not settings.moves and not _any_beyond(table, centres, settings.lam):
        return centres, None  # "points" keeps one cluster where no row is beyond lam
    settled = None
    for level in levels(table):
        stage = Stage(f"sample of {level.rows.size}", SAMPLE_TOL, gaps=True, settled=settled)
        centres, settled = _fit_sample(level.of(table), centres, settings, budget, stage)
        if budget.spent or settled.still:  # what a larger sample would only confirm, all rows do
            break
    return centres, level


def _any_beyond(table: Table, centres: Centres, lam: float) -> bool:
    """True if some row would open a cluster beside the first centre."""

    def of_span(span: slice) -> bool:
        cost = own_cost(table, span, centres, np.zeros(span.stop - span.start, np.int32))
        return bool((table.excess(cost, lam, span) > 0).any())

    return any(list(table.rows.each(of_span)))


def fit_batch(
    table: Table, centres: Centres, level: Level | None, memory: Memory, settings: BatchSettings, budget: Budget
) -> Outcome:
    """Fit all rows from the centres of the last sample; the outcome's state is a Grown."""
    growth = Growth(settings.lam, settings.tol, settings.max_clusters)
    if level is not None:
        centres = _extremes(table, level, centres, memory, settings, budget)
    elif settings.moves:
        return _grow_and_move(table, centres, memory, growth, settings, budget)
    return grow(table, centres, memory, growth, budget, phase="all rows", max_iter=settings.max_iter)


def levels(table: Table) -> Iterator[Level]:
    """Samples of growing size: all copies of the m distinct rows with the smallest hashes (without weights, one row
    that weighs as much as its copies)."""
    low, hashes = _smallest_hashes(table, MARGIN * LAST_SAMPLE)
    distinct = hashes[np.concatenate([[True], hashes[1:] != hashes[:-1]])] if hashes.size else hashes
    for m in _sizes(distinct.size):
        rows = low[table.hashes[low] <= distinct[m - 1]]
        weight = table.rows.weight[rows] if table.rows.weight.size else np.empty(0)
        if rows.size > m and not weight.size:
            _, first, copies = np.unique(table.hashes[rows], return_index=True, return_counts=True)
            order = np.argsort(first)
            rows, weight = rows[first[order]], copies[order].astype(float)
        yield Level(rows, weight)


def _sizes(distinct: int) -> list[int]:
    """Distinct rows of each sample, of so many; the last is as large as the table allows, if that is much larger."""
    most = min(LAST_SAMPLE, distinct // MARGIN)
    sizes = []
    m = FIRST_SAMPLE
    while m <= most:
        sizes.append(m)
        m *= GROWTH_FACTOR
    if sizes and most >= WORTH_WHILE * sizes[-1]:
        sizes.append(most)
    return sizes


def _smallest_hashes(table: Table, m: int) -> tuple[Array, Array]:
    """Rows that have weight and hold the m smallest distinct hashes, or a few more (all, if there are fewer), in the
    order of the table; and their hashes, ascending."""
    limit = m + m // 8  # of 2**64 / n: hashes are uniform, so about as many rows lie below as this says
    while True:
        low = np.flatnonzero(table.hashes <= np.uint64(min(2**64 - 1, 2**64 * limit // table.n)))
        if table.rows.weight.size:
            low = low[table.rows.weight[low] > 0]
        hashes = np.sort(table.hashes[low])
        if limit >= table.n or np.count_nonzero(hashes[1:] != hashes[:-1]) + 1 >= m:
            return low, hashes
        limit *= 4


def _distinct(hashes: Array) -> int:
    hashes = np.sort(hashes)
    return 1 + int((hashes[1:] != hashes[:-1]).sum())


def _fit_sample(
    sample: Table, centres: Centres, settings: BatchSettings, budget: Budget, stage: Stage
) -> tuple[Centres, Settled]:
    """GROW and MOVES on a sample until nothing moves; also returns what is settled by that."""
    K, count = centres.mean.shape[0], _distinct(sample.hashes)
    limit = min(settings.max_clusters, max(1, count // ROWS_PER_CLUSTER))
    growth = Growth(settings.lam, stage.tol, limit)
    memory = make_memory(sample.n)
    tried = nothing_tried(sample.n)
    gaps, settled = stage.gaps and count <= GAPS_UP_TO, stage.settled
    if gaps and settled and not settled.still:
        settled = None  # the sample before was small, and did not tell as much
    still, tidy, joined = True, False, 0
    for _ in range(MOVE_ROUNDS + 1):
        # extremes weigh less than one row here but open clusters as one: the sample's objective may rise
        outcome = grow(sample, centres, memory, growth, budget, phase=stage.name, max_iter=_SAMPLE_PASSES, guard=None)
        centres = outcome.state.centres
        if centres.mean.shape[0] != K:
            still, settled = False, None
        if not settings.moves or joined or count > MOVES_UP_TO or budget.spent or (settled and settled.still):
            break
        assign(sample, centres, memory, settings.lam)
        if settled and still:
            whole = fingerprints(sample, memory.labels, K)[settled.whole]
            tried.gain.update(dict.fromkeys(whole.tolist(), 0.0))
            tried.whole.update(whole.tolist())
        room = limit - centres.mean.shape[0]
        centres, moved = apply_moves(sample, centres, memory, settings.lam, SplitRule(), most_splits=room, tried=tried)
        if not moved and gaps:
            centres, moved = split_at_gaps(sample, centres, memory, settings.lam, room=room, tried=tried)
        if not moved and not (still and settled and settled.tidy):
            # halves are joined once, at the end: growth might only open them again
            centres, joined = merge_halves(sample, centres, memory, settings.lam)
        if not moved and not joined:
            tidy = True
            break
        still = False
    prints = fingerprints(sample, memory.labels, centres.mean.shape[0]).tolist()
    return centres, Settled(np.array([print in tried.whole for print in prints], bool), tidy, still)


def _grow_and_move(
    table: Table, centres: Centres, memory: Memory, growth: Growth, settings: BatchSettings, budget: Budget
) -> Outcome:
    """The whole table is the sample: moves are part of the fit, and traced."""
    trace: list[float] = []
    tried = nothing_tried(table.n)
    for _ in range(MOVE_ROUNDS + 1):
        outcome = grow(
            table, centres, memory, growth, budget, phase="all rows", max_iter=settings.max_iter - len(trace)
        )
        trace += outcome.trace
        outcome = outcome._replace(trace=trace)
        if budget.spent or len(trace) >= settings.max_iter:
            break
        centres = outcome.state.centres
        sums = assign(table, centres, memory, settings.lam)
        outcome = outcome._replace(state=outcome.state._replace(sums=sums, moved=False))
        room = settings.max_clusters - centres.mean.shape[0]
        centres, moved = apply_moves(table, centres, memory, settings.lam, SplitRule(), most_splits=room, tried=tried)
        if not moved:
            centres, moved = split_at_gaps(table, centres, memory, settings.lam, room=room, tried=tried)
        if not moved:
            break
        outcome = outcome._replace(state=Grown(centres, outcome.state.pause), converged=False)
    return outcome


def _extremes(
    table: Table, level: Level, centres: Centres, memory: Memory, settings: BatchSettings, budget: Budget
) -> Centres:
    """Add the farthest rows of the whole table to the last sample, so that its clusters hold for all rows."""
    lam, sample, inside = settings.lam, None, np.empty(0, bool)
    for _ in range(EXTREME_ROUNDS):
        sums = assign(table, centres, memory, lam)
        chosen = np.empty(0, np.intp)
        if sums.reach.max() > lam and not budget.spent:  # else no row is beyond lam
            distinct = _distinct(table.hashes[level.rows] if sample is None else sample.hashes)
            inside = inside if inside.size else table.hashes <= table.hashes[level.rows].max()
            chosen = _far_rows(table, memory, inside, lam, distinct // EXTREMES_SHARE)
        centres = update(table, centres, sums.total, sums.mass, memory, sums.reach)
        if not chosen.size:
            break
        inside[chosen] = True
        if sample is None:  # taken out again only now, so as not to be held while all rows are looked at
            sample = level.of(table)
            ratio = sample.rows.total_weight() / table.rows.total_weight()
        sample = sample.joined(table.sample(chosen, table.rows.weights(chosen) * ratio))
        stage = Stage(f"sample of {sample.n} with extremes", EXTREME_TOL)
        fitted, _ = _fit_sample(sample, centres, settings, budget, stage)
        if fitted is not centres:
            memory.low[:] = -np.inf
        centres = fitted
    return centres


def _far_rows(table: Table, memory: Memory, inside: Array, lam: float, most: int) -> Array:
    """Rows beyond lam and the farthest few of every cluster, with their copies; at most ``most`` distinct ones.

    None if no row is beyond lam.
    """

    def of_span(span: slice) -> Array:
        near = table.excess(memory.cost[span], lam, span) > -EXTREMES_FROM * lam
        return span.start + np.flatnonzero(near & ~inside[span])

    near = np.concatenate(list(table.rows.each(of_span)))
    excess = table.excess(memory.cost[near], lam, near)
    if not (excess > 0).any():
        return near[:0]
    order = np.lexsort((table.hashes[near], -excess))
    near, excess = near[order], excess[order]
    first = np.sort(np.unique(table.hashes[near], return_index=True)[1])  # one row for each content, farthest first
    labels = memory.labels[near[first]]
    by_cluster = np.argsort(labels, kind="stable")
    rank = np.empty(first.size, np.intp)
    rank[by_cluster] = np.arange(first.size) - np.searchsorted(labels[by_cluster], labels[by_cluster])
    once = near[first[(excess[first] > 0) | (rank < EXTREMES_EACH)][:most]]
    return near[np.isin(table.hashes[near], table.hashes[once])]
