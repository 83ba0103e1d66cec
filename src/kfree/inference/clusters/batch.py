"""``algorithm="batch"``: grow and search on samples chosen by row content, then descend on all rows.

Nothing depends on the order of the rows: samples, races and ties are functions of content, so integer weights
equal repeated rows. Samples only find the starting point; on all rows every pass lowers the objective.
"""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.inference.clusters.cuts import SplitRule
from kfree.inference.clusters.gaps import split_at_gaps
from kfree.inference.clusters.grow import Phase, grow, update
from kfree.inference.clusters.labelling import Clustering, Labelling, Level, LocalLabelling
from kfree.inference.clusters.moves import apply_moves, fingerprints, merge_halves, nothing_tried
from kfree.inference.clusters.table import Table
from kfree.inference.content import count_distinct
from kfree.inference.goal import Goal, Search
from kfree.inference.loop import Budget, Outcome, attempt, repeat


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


def fit_batch(labelling: Labelling, centres: Centres, goal: Goal, budget: Budget, rng: np.random.Generator) -> Outcome:
    """Look for a start on samples, if that is wanted, then fit all rows; the outcome's state is a Clustering."""
    start = Sampled(centres)
    if goal.samples:
        start = attempt(lambda: start_on_samples(labelling, centres, goal, budget), lambda: start, budget)

    def descend() -> Outcome:
        if start.level is None and goal.samples and goal.search is Search.CLEAR:
            return _on_few_contents(labelling, start.centres, goal, budget)
        covering = start.centres
        if start.level is not None:
            covering = _extremes(labelling, start.level, start.centres, goal, budget)
        return grow(labelling, covering, goal, budget, Phase("all rows"))

    nothing = Outcome(Clustering(start.centres, labelling.fresh()), [], False)
    return attempt(descend, lambda: nothing, budget)


def fit_delayed(
    labelling: Labelling, centres: Centres, goal: Goal, budget: Budget, rng: np.random.Generator
) -> Outcome:
    """Open one cluster a pass, at the farthest row of all (PDC-DP-means); the outcome's state is a Clustering."""
    return grow(labelling, centres, goal, budget, Phase("all rows"), delayed=True)


class Sampled(NamedTuple):
    """What samples of growing size have come to."""

    centres: Centres
    level: Level | None = None  # the last sample; None if the table is too small for one
    settled: Settled | None = None


def start_on_samples(labelling: Labelling, centres: Centres, goal: Goal, budget: Budget) -> Sampled:
    """Centres found on samples of growing size."""
    start = Sampled(centres)
    if goal.search is not Search.CLEAR and not labelling.any_beyond(centres, goal.lam):
        return start  # without moves one cluster stays one where no row is beyond lam
    samples = labelling.levels()

    def next_sample(last: Sampled) -> tuple[Sampled, bool]:
        level = next(samples, None)
        if level is None:
            return last, True
        stage = Stage(f"sample of {level.n_rows}", CLUSTERS.sample_tol, gaps=True, settled=last.settled)
        centres, settled = _fit_sample(labelling.sample(level), last.centres, goal, budget, stage)
        return Sampled(centres, level, settled), settled.still  # what a larger sample would only confirm, all rows do

    return repeat(next_sample, start, budget, always=1)[0]


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
    labelling, tried = LocalLabelling(sample), nothing_tried(sample.n)
    memory = labelling.memory

    def one_round(state: Round) -> tuple[Round, bool]:
        # extremes weigh less than one row here but open clusters as one: the sample's objective may rise
        grown = grow(labelling, state.centres, goal, budget, Phase(stage.name, guard=None))
        state = state._replace(centres=grown.state.centres)
        if state.centres.mean.shape[0] != K:
            state = state._replace(still=False, settled=None)
        if not moves or state.joined or budget.spent or (state.settled and state.settled.still):
            return state, True
        return attempt(lambda: move(state), lambda: (state, True), budget)

    def move(state: Round) -> tuple[Round, bool]:
        labelling.assign(state.centres, goal.lam)
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


def _on_few_contents(labelling: Labelling, start: Centres, goal: Goal, budget: Budget) -> Outcome:
    """There is no sample, as so few rows differ: moves are made on all rows, or on one of each content of many."""
    if isinstance(labelling, LocalLabelling) and labelling.n <= CLUSTERS.search_up_to:
        return _grow_and_move(labelling, start, goal, budget)
    contents = LocalLabelling(labelling.sample(labelling.everything()))
    found = _grow_and_move(contents, start, goal, budget)
    return grow(labelling, found.state.centres, goal, budget, Phase("all rows"))


def _grow_and_move(labelling: LocalLabelling, start: Centres, goal: Goal, budget: Budget) -> Outcome:
    """The whole table is the sample: moves are part of the fit, and traced."""
    table, memory, tried = labelling.table, labelling.memory, nothing_tried(labelling.n)

    def move(grown: Outcome) -> tuple[Outcome, bool]:
        sums = labelling.assign(grown.state.centres, goal.lam)
        centres, moved = apply_moves(table, grown.state.centres, memory, goal, SplitRule.CLEAR, tried)
        if not moved and not budget.spent:
            centres, moved = split_at_gaps(table, centres, memory, goal, tried)
        if not moved:
            return grown._replace(state=grown.state._replace(sums=sums, moved=False)), True
        return Outcome(Clustering(centres, labelling), grown.trace, False), False

    def one_round(last: Outcome) -> tuple[Outcome, bool]:
        rest = goal._replace(max_iter=goal.max_iter - len(last.trace))
        grown = grow(labelling, last.state.centres, rest, budget, Phase("all rows"))
        grown = grown._replace(trace=[*last.trace, *grown.trace])
        if budget.spent or len(grown.trace) >= goal.max_iter:
            return grown, True
        return attempt(lambda: move(grown), lambda: (grown._replace(converged=False), True), budget)

    first = Outcome(Clustering(start, labelling), [], False)
    return repeat(one_round, first, budget, most=CLUSTERS.rounds, always=1)[0]


class Reached(NamedTuple):
    """A sample that holds more and more of the farthest rows of a table."""

    centres: Centres
    sample: Table | None = None  # None until there are such rows
    chosen: Array = np.empty(0, np.uint64)  # hashes of these rows, ascending


def _extremes(labelling: Labelling, level: Level, centres: Centres, goal: Goal, budget: Budget) -> Centres:
    """Add the farthest rows of the whole table to the last sample, so that its clusters hold for all rows."""
    share = level.total_weight / labelling.total_weight

    def one_round(state: Reached) -> tuple[Reached, bool]:
        sums, far = labelling.assign(state.centres, goal.lam), None
        if sums.reach.max() > goal.lam and not budget.spent:  # else no row is beyond lam
            distinct = level.n_distinct if state.sample is None else count_distinct(state.sample.hashes)
            far = labelling.far_rows(level, state.chosen, goal.lam, distinct // CLUSTERS.extremes_share, share)
        centres = update(labelling, state.centres, sums.total, sums.mass, sums.reach)
        if far is None or not far.n:
            return Reached(centres, state.sample, state.chosen), True
        # taken only now, so as not to be held while all rows are looked at
        sample = (labelling.sample(level) if state.sample is None else state.sample).joined(far)
        stage = Stage(f"sample of {sample.n} with extremes", CLUSTERS.extreme_tol)
        fitted, _ = _fit_sample(sample, centres, goal, budget, stage)
        if fitted is not centres:
            labelling.forget()
        return Reached(fitted, sample, np.union1d(state.chosen, far.hashes)), False

    return repeat(one_round, Reached(centres), budget, most=CLUSTERS.rounds)[0].centres
