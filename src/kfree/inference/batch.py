"""``algorithm="batch"``: grow and search on samples chosen by row content, then descend on all rows.

Nothing depends on the order of the rows: samples, races and ties are functions of content, so integer weights
equal repeated rows. Samples only find the starting point; on all rows every pass lowers the objective.
"""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.assign import Centres, assign
from kfree.inference.grow import Grown, Growth, grow, update
from kfree.inference.loop import Budget, Outcome
from kfree.inference.moves import SplitRule, apply_moves
from kfree.inference.table import Memory, Table, make_memory

#: Distinct rows of the first sample, growth of the samples, and how much larger the table must be than a sample.
FIRST_SAMPLE, GROWTH_FACTOR, MARGIN = 2000, 5, 2
#: Share of the weight that may still change label on a sample, and on a sample with extremes.
SAMPLE_TOL, EXTREME_TOL = 0.01, 0.0005
#: Clusters may number at most this share of a sample's rows.
ROWS_PER_CLUSTER = 10
#: Moves are made on samples up to this size, in at most so many rounds.
MOVES_UP_TO, MOVE_ROUNDS = 50_000, 20
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
    samples: bool = True  # False: the start is given, descend from it on all rows


def fit_batch(table: Table, centres: Centres, memory: Memory, settings: BatchSettings, budget: Budget) -> Outcome:
    """Fit from given centres; the outcome's state is a Grown."""
    lam, growth = settings.lam, Growth(settings.lam, settings.tol, settings.max_clusters)
    if not settings.samples:
        return grow(table, centres, memory, growth, budget, phase="all rows", max_iter=settings.max_iter)
    if not settings.moves:
        sums = assign(table, centres, memory, lam)
        farthest = table.excess(memory.cost, lam).max()
        memory.low[:] = -np.inf
        if farthest <= 0 and sums.mass.size == 1:  # "points" keeps K = 1 where no row is beyond lam
            return grow(table, centres, memory, growth, budget, phase="all rows", max_iter=settings.max_iter)
    level = None
    for level in levels(table):
        centres = _fit_sample(level, centres, settings, budget, SAMPLE_TOL, f"sample of {level.n}")
        if budget.spent:
            break
    if level is not None and not budget.spent:
        centres = _extremes(table, level, centres, memory, settings, budget)
    elif level is None and settings.moves:
        return _grow_and_move(table, centres, memory, growth, settings, budget)
    return grow(table, centres, memory, growth, budget, phase="all rows", max_iter=settings.max_iter)


def levels(table: Table):
    """Samples of growing size: all copies of the m distinct rows with the smallest hashes."""
    active = table.rows.weight > 0 if table.rows.weight.size else None
    hashes = np.sort(table.hashes if active is None else table.hashes[active])
    distinct = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]]))
    m = FIRST_SAMPLE
    while m * MARGIN <= distinct.size:
        chosen = table.hashes <= hashes[distinct[m - 1]]
        rows = np.flatnonzero(chosen if active is None else chosen & active)
        yield table.sample(rows, table.rows.weight[rows] if table.rows.weight.size else np.empty(0))
        m *= GROWTH_FACTOR


def _distinct(table: Table) -> int:
    hashes = np.sort(table.hashes)
    return 1 + int((hashes[1:] != hashes[:-1]).sum())


def _fit_sample(
    sample: Table, centres: Centres, settings: BatchSettings, budget: Budget, tol: float, phase: str
) -> Centres:
    """GROW and MOVES on a sample until nothing moves."""
    count = _distinct(sample)
    limit = min(settings.max_clusters, max(1, count // ROWS_PER_CLUSTER))
    growth = Growth(settings.lam, tol, limit)
    memory = make_memory(sample.n)
    for _ in range(MOVE_ROUNDS + 1):
        # extremes weigh less than one row here but open clusters as one: the sample's objective may rise
        outcome = grow(sample, centres, memory, growth, budget, phase=phase, max_iter=_SAMPLE_PASSES, guard=None)
        centres = outcome.state.centres
        if not settings.moves or count > MOVES_UP_TO or budget.spent:
            break
        assign(sample, centres, memory, settings.lam)
        room = limit - centres.mean.shape[0]
        centres, moved = apply_moves(sample, centres, memory, settings.lam, SplitRule(), most_splits=room)
        if not moved:
            break
    return centres


def _grow_and_move(
    table: Table, centres: Centres, memory: Memory, growth: Growth, settings: BatchSettings, budget: Budget
) -> Outcome:
    """The whole table is the sample: moves are part of the fit, and traced."""
    trace: list[float] = []
    for _ in range(MOVE_ROUNDS + 1):
        outcome = grow(
            table, centres, memory, growth, budget, phase="all rows", max_iter=settings.max_iter - len(trace)
        )
        trace += outcome.trace
        outcome = outcome._replace(trace=trace)
        if budget.spent or len(trace) >= settings.max_iter:
            break
        centres = outcome.state.centres
        assign(table, centres, memory, settings.lam)
        room = settings.max_clusters - centres.mean.shape[0]
        centres, moved = apply_moves(table, centres, memory, settings.lam, SplitRule(), most_splits=room)
        if not moved:
            break
        outcome = outcome._replace(state=Grown(centres, outcome.state.pause), converged=False)
    return outcome


def _extremes(
    table: Table, level: Table, centres: Centres, memory: Memory, settings: BatchSettings, budget: Budget
) -> Centres:
    """Add the farthest rows of the whole table to the last sample, so that its clusters hold for all rows."""
    lam = settings.lam
    ratio = level.rows.total_weight() / table.rows.total_weight()
    inside = table.hashes <= level.hashes.max()
    for _ in range(EXTREME_ROUNDS):
        sums = assign(table, centres, memory, lam)
        excess = table.excess(memory.cost, lam)
        chosen = np.empty(0, np.intp)
        if not budget.spent and (excess > 0).any():
            chosen = _far_rows(table, memory.labels, excess, inside, lam, _distinct(level) // EXTREMES_SHARE)
        centres = update(table, centres, sums.total, sums.mass, memory)
        if not chosen.size:
            break
        inside[chosen] = True
        level = level.joined(table.sample(chosen, table.rows.weights(chosen) * ratio))
        fitted = _fit_sample(level, centres, settings, budget, EXTREME_TOL, f"sample of {level.n} with extremes")
        if fitted is not centres:
            memory.low[:] = -np.inf
        centres = fitted
    return centres


def _far_rows(table: Table, labels: Array, excess: Array, inside: Array, lam: float, most: int) -> Array:
    """Rows beyond lam and the farthest few of every cluster, with their copies; at most ``most`` distinct ones."""
    near = np.flatnonzero((excess > -EXTREMES_FROM * lam) & ~inside)
    near = near[np.lexsort((table.hashes[near], -excess[near]))]
    _, first = np.unique(table.hashes[near], return_index=True)
    once = near[np.sort(first)]  # one row for each content, farthest first
    by_cluster = np.argsort(labels[once], kind="stable")
    start = np.searchsorted(labels[once][by_cluster], labels[once][by_cluster])
    rank = np.empty(once.size, np.intp)
    rank[by_cluster] = np.arange(once.size) - start
    once = once[(excess[once] > 0) | (rank < EXTREMES_EACH)][:most]
    return near[np.isin(table.hashes[near], table.hashes[once])]
