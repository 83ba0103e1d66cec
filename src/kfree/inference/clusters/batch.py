"""``algorithm="batch"``: grow and search on samples chosen by row content, then descend on all rows.

Nothing depends on the order of the rows: samples, races and ties are functions of content, so integer weights
equal repeated rows. Samples only find the starting point; on all rows every pass lowers the objective.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.assign import assign
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.inference.clusters.cuts import SplitRule
from kfree.inference.clusters.exact import own_cost
from kfree.inference.clusters.gaps import split_at_gaps
from kfree.inference.clusters.grow import Clustering, Phase, grow, update
from kfree.inference.clusters.moves import apply_moves, fingerprints, merge_halves, nothing_tried
from kfree.inference.clusters.table import Memory, Table, make_memory
from kfree.inference.content import count_distinct, starts
from kfree.inference.goal import Goal, Search
from kfree.inference.loop import Budget, Outcome, attempt, repeat


class Level(NamedTuple):
    """A sample of a table."""

    rows: Array  # (m,) indices
    weight: Array  # (m,), or (0,) for ones

    @property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return float(self.weight.sum()) if self.weight.size else float(self.rows.size)

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


def fit_batch(table: Table, centres: Centres, goal: Goal, budget: Budget, rng: np.random.Generator) -> Outcome:
    """Look for a start on samples, if that is wanted, then fit all rows; the outcome's state is a Clustering."""
    start = Sampled(centres)
    if goal.samples:
        start = attempt(lambda: start_on_samples(table, centres, goal, budget), lambda: start, budget)

    def descend() -> Outcome:
        memory = make_memory(table.n)  # only now: samples need the room
        if start.level is None and goal.samples and goal.search is Search.CLEAR:
            return _grow_and_move(table, Clustering(start.centres, memory), goal, budget)
        covering = start.centres
        if start.level is not None:
            covering = _extremes(table, start.level, start.centres, memory, goal, budget)
        return grow(table, covering, memory, goal, budget, Phase("all rows"))

    nothing = Outcome(Clustering(start.centres, make_memory(0)), [], False)
    return attempt(descend, lambda: nothing, budget)


def fit_delayed(table: Table, centres: Centres, goal: Goal, budget: Budget, rng: np.random.Generator) -> Outcome:
    """Open one cluster a pass, at the farthest row of all (PDC-DP-means); the outcome's state is a Clustering."""
    return grow(table, centres, make_memory(table.n), goal, budget, Phase("all rows"), delayed=True)


class Sampled(NamedTuple):
    """What samples of growing size have come to."""

    centres: Centres
    level: Level | None = None  # the last sample; None if the table is too small for one
    settled: Settled | None = None


def start_on_samples(table: Table, centres: Centres, goal: Goal, budget: Budget) -> Sampled:
    """Centres found on samples of growing size."""
    start = Sampled(centres)
    if goal.search is not Search.CLEAR and not _any_beyond(table, centres, goal.lam):
        return start  # without moves one cluster stays one where no row is beyond lam
    samples = levels(table)

    def next_sample(last: Sampled) -> tuple[Sampled, bool]:
        level = next(samples, None)
        if level is None:
            return last, True
        stage = Stage(f"sample of {level.rows.size}", CLUSTERS.sample_tol, gaps=True, settled=last.settled)
        centres, settled = _fit_sample(level.of(table), last.centres, goal, budget, stage)
        return Sampled(centres, level, settled), settled.still  # what a larger sample would only confirm, all rows do

    return repeat(next_sample, start, budget, always=1)[0]


def _any_beyond(table: Table, centres: Centres, lam: float) -> bool:
    """True if some row would open a cluster beside the first centre."""

    def of_span(span: slice) -> bool:
        cost = own_cost(table, span, centres, np.zeros(span.stop - span.start, np.int32))
        return bool((table.excess(cost, lam, span) > 0).any())

    return any(list(table.rows.each(of_span)))


def levels(table: Table) -> Iterator[Level]:
    """Samples of growing size: all copies of the m distinct rows with the smallest hashes (without weights, one row
    that weighs as much as its copies)."""
    low, hashes = _smallest_hashes(table, CLUSTERS.sample_margin * CLUSTERS.last_sample)
    distinct = hashes[starts(hashes)]
    for m in _sizes(distinct.size):
        rows = low[table.hashes[low] <= distinct[m - 1]]
        weight = table.rows.weight[rows] if table.rows.weight.size else np.empty(0)
        if rows.size > m and not weight.size:
            _, first, copies = np.unique(table.hashes[rows], return_index=True, return_counts=True)
            rows, weight = rows[first], copies.astype(float)
        else:
            order = np.lexsort((*([weight] if weight.size else []), table.hashes[rows]))
            rows, weight = rows[order], weight[order] if weight.size else weight
        yield Level(rows, weight)


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


def _smallest_hashes(table: Table, m: int) -> tuple[Array, Array]:
    """Rows that have weight and hold the m smallest distinct hashes, or a few more (all, if there are fewer), in the
    order of the table; and their hashes, ascending."""
    limit = m + m // 8  # of 2**64 / n: hashes are uniform, so about as many rows lie below as this says
    while True:
        low = np.flatnonzero(table.hashes <= np.uint64(min(2**64 - 1, 2**64 * limit // table.n)))
        if table.rows.weight.size:
            low = low[table.rows.weight[low] > 0]
        hashes = np.sort(table.hashes[low])
        if limit >= table.n or np.count_nonzero(starts(hashes)) >= m:
            return low, hashes
        limit *= 4


class Round(NamedTuple):
    """What rounds of growth and moves on a sample have come to."""

    centres: Centres
    settled: Settled | None  # on a smaller sample, as long as it holds
    still: bool = True  # nothing has moved or opened
    tidy: bool = False  # no two clusters are halves of one
    joined: bool = False  # halves were joined: growth might only open them again


def _fit_sample(sample: Table, centres: Centres, goal: Goal, budget: Budget, stage: Stage) -> tuple[Centres, Settled]:
    """GROW and MOVES on a sample until nothing moves; also returns what is settled by that."""
    K, count = centres.mean.shape[0], count_distinct(sample.hashes)
    limit = min(goal.max_clusters, max(1, count // CLUSTERS.rows_per_cluster))
    goal = goal._replace(tol=stage.tol, max_clusters=limit, max_iter=CLUSTERS.sample_passes)
    moves = goal.search is Search.CLEAR and count <= CLUSTERS.last_sample
    gaps = stage.gaps and count <= CLUSTERS.gaps_up_to
    memory, tried = make_memory(sample.n), nothing_tried(sample.n)

    def one_round(state: Round) -> tuple[Round, bool]:
        # extremes weigh less than one row here but open clusters as one: the sample's objective may rise
        grown = grow(sample, state.centres, memory, goal, budget, Phase(stage.name, guard=None))
        state = state._replace(centres=grown.state.centres)
        if state.centres.mean.shape[0] != K:
            state = state._replace(still=False, settled=None)
        if not moves or state.joined or budget.spent or (state.settled and state.settled.still):
            return state, True
        return attempt(lambda: move(state), lambda: (state, True), budget)

    def move(state: Round) -> tuple[Round, bool]:
        assign(sample, state.centres, memory, goal.lam)
        if state.settled and state.still:
            whole = fingerprints(sample, memory.labels, K)[state.settled.whole]
            tried.gain.update(dict.fromkeys(whole.tolist(), 0.0))
            tried.whole.update(whole.tolist())
        centres, moved = apply_moves(sample, state.centres, memory, goal, SplitRule.CLEAR, tried)
        if not moved and gaps and not budget.spent:
            centres, moved = split_at_gaps(sample, centres, memory, goal, tried)
        joined = 0
        if not moved and not budget.spent and not (state.still and state.settled and state.settled.tidy):
            # halves are joined once, at the end
            centres, joined = merge_halves(sample, centres, memory, goal.lam)
        if not moved and not joined:
            return state._replace(centres=centres, tidy=True), True
        return Round(centres, state.settled, still=False, joined=bool(joined)), False

    settled = stage.settled
    if gaps and settled and not settled.still:
        settled = None  # the sample before was small, and did not tell as much
    found, _ = repeat(one_round, Round(centres, settled), budget, most=CLUSTERS.rounds, always=1)
    if budget.interrupted:  # the labels may be of a round that was not complete
        return found.centres, Settled(np.zeros(found.centres.mean.shape[0], bool), False)
    prints = fingerprints(sample, memory.labels, found.centres.mean.shape[0]).tolist()
    return found.centres, Settled(np.array([print in tried.whole for print in prints], bool), found.tidy, found.still)


def _grow_and_move(table: Table, start: Clustering, goal: Goal, budget: Budget) -> Outcome:
    """The whole table is the sample: moves are part of the fit, and traced."""
    tried, memory = nothing_tried(table.n), start.memory

    def move(grown: Outcome) -> tuple[Outcome, bool]:
        sums = assign(table, grown.state.centres, memory, goal.lam)
        centres, moved = apply_moves(table, grown.state.centres, memory, goal, SplitRule.CLEAR, tried)
        if not moved and not budget.spent:
            centres, moved = split_at_gaps(table, centres, memory, goal, tried)
        if not moved:
            return grown._replace(state=grown.state._replace(sums=sums, moved=False)), True
        return Outcome(Clustering(centres, memory), grown.trace, False), False

    def one_round(last: Outcome) -> tuple[Outcome, bool]:
        rest = goal._replace(max_iter=goal.max_iter - len(last.trace))
        grown = grow(table, last.state.centres, memory, rest, budget, Phase("all rows"))
        grown = grown._replace(trace=[*last.trace, *grown.trace])
        if budget.spent or len(grown.trace) >= goal.max_iter:
            return grown, True
        return attempt(lambda: move(grown), lambda: (grown._replace(converged=False), True), budget)

    first = Outcome(start, [], False)
    return repeat(one_round, first, budget, most=CLUSTERS.rounds, always=1)[0]


class Reached(NamedTuple):
    """A sample that holds more and more of the farthest rows of a table."""

    centres: Centres
    sample: Table | None  # None until there are such rows
    inside: Array  # (n,) bool, rows of the table that are in it, or (0,) before that is asked


def _extremes(table: Table, level: Level, centres: Centres, memory: Memory, goal: Goal, budget: Budget) -> Centres:
    """Add the farthest rows of the whole table to the last sample, so that its clusters hold for all rows."""

    def one_round(state: Reached) -> tuple[Reached, bool]:
        sums, inside = assign(table, state.centres, memory, goal.lam), state.inside
        chosen = np.empty(0, np.intp)
        if sums.reach.max() > goal.lam and not budget.spent:  # else no row is beyond lam
            distinct = count_distinct(table.hashes[level.rows] if state.sample is None else state.sample.hashes)
            inside = inside if inside.size else table.hashes <= table.hashes[level.rows].max()
            chosen = _far_rows(table, memory, inside, goal.lam, distinct // CLUSTERS.extremes_share)
        centres = update(table, state.centres, sums.total, sums.mass, memory, sums.reach)
        if not chosen.size:
            return Reached(centres, state.sample, inside), True
        inside[chosen] = True
        # taken out again only now, so as not to be held while all rows are looked at
        sample = level.of(table) if state.sample is None else state.sample
        share = level.total_weight / table.rows.total_weight()
        sample = sample.joined(table.sample(chosen, table.rows.weights(chosen) * share))
        stage = Stage(f"sample of {sample.n} with extremes", CLUSTERS.extreme_tol)
        fitted, _ = _fit_sample(sample, centres, goal, budget, stage)
        if fitted is not centres:
            memory.forget()
        return Reached(fitted, sample, inside), False

    start = Reached(centres, None, np.empty(0, bool))
    return repeat(one_round, start, budget, most=CLUSTERS.rounds)[0].centres


def _far_rows(table: Table, memory: Memory, inside: Array, lam: float, most: int) -> Array:
    """Rows beyond lam and nearly so, with their copies, farthest first; at most ``most`` distinct ones.

    None if no row is beyond lam.
    """

    def of_span(span: slice) -> Array:
        near = table.excess(memory.cost[span], lam, span) > -CLUSTERS.extremes_from * lam
        return span.start + np.flatnonzero(near & ~inside[span])

    near = np.concatenate(list(table.rows.each(of_span)))
    excess = table.excess(memory.cost[near], lam, near)
    if not (excess > 0).any():
        return near[:0]
    near = near[np.lexsort((table.hashes[near], -excess))]
    first = np.sort(np.unique(table.hashes[near], return_index=True)[1])  # one row for each content, farthest first
    return near[np.isin(table.hashes[near], table.hashes[near[first[:most]]])]
