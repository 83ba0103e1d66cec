"""Stronger search from a partition: collapsed moves, merges and splits, until none of them pays.

Every accepted move lowers the penalised objective. With a price lam this is the way to good minima; with a radius
lam "full" rightly lowers the objective by breaking up the clusters one wanted (see docs/lam.md).
"""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.assign import Centres, assign
from kfree.inference.clusters.collapsed import fit_collapsed
from kfree.inference.clusters.cuts import TRIALS, SplitRule
from kfree.inference.clusters.grow import Grown, Growth, grow
from kfree.inference.clusters.moves import apply_moves
from kfree.inference.clusters.table import Memory, Table
from kfree.inference.loop import Budget, Outcome

#: Rounds of collapsed moves, merges, splits and descent.
ROUNDS = 30
# Entries (rows x clusters x columns) up to which every row is tried one at a time; above it, only contested ones.
_ALL_ROWS = 2e8
_CONTESTED = 2.0


class Search(NamedTuple):
    """What the user chose."""

    lam: float
    splits: bool  # "full"; otherwise "polish"
    order: str | Array
    tol: float
    max_iter: int
    max_clusters: float


def improve(
    table: Table, outcome: Outcome, memory: Memory, search: Search, budget: Budget, rng: np.random.Generator
) -> Outcome:
    """Search from an outcome whose state holds centres; its trace goes on."""
    centres, trace = outcome.state.centres, list(outcome.trace)
    growth = Growth(search.lam, search.tol, search.max_clusters)
    rule = SplitRule(clarity=0.0, trials=TRIALS if search.splits else 0, held_out=False)
    converged = outcome.converged
    assign(table, centres, memory, search.lam)
    for _ in range(ROUNDS):
        if budget.spent or len(trace) >= search.max_iter:
            return Outcome(Grown(centres, 0), trace, False)
        centres, moved = _one_by_one(table, centres, memory, search, budget, rng)
        left = search.max_clusters - centres.mean.shape[0]
        centres, whole = apply_moves(table, centres, memory, search.lam, rule, strays=1.0, most_splits=left)
        settled = grow(
            table,
            centres,
            memory,
            growth,
            budget,
            phase="search",
            max_iter=max(1, search.max_iter - len(trace)),
            guard=trace[-1] if trace else np.inf,
        )
        centres, converged = settled.state.centres, settled.converged
        trace += settled.trace
        assign(table, centres, memory, search.lam)
        if not moved and not whole:
            break
    return Outcome(Grown(centres, 0), trace, converged)


def _one_by_one(
    table: Table, centres: Centres, memory: Memory, search: Search, budget: Budget, rng: np.random.Generator
) -> tuple[Centres, bool]:
    """Collapsed moves of rows; on large tables of those that two clusters compete for."""
    if isinstance(search.order, str) and search.order == "content":
        return _contents_one_by_one(table, centres, memory, search, budget, rng)
    return _rows_one_by_one(table, centres, memory, search, budget, rng)


def _contents_one_by_one(
    table: Table, centres: Centres, memory: Memory, search: Search, budget: Budget, rng: np.random.Generator
) -> tuple[Centres, bool]:
    """The same with all copies of a row moved as one, so that integer weights equal repeated rows."""
    weight = table.rows.weights(slice(0, table.n))
    active = np.flatnonzero(weight > 0)
    _, first, which = np.unique(table.hashes[active], return_index=True, return_inverse=True)
    if first.size == table.n:
        return _rows_one_by_one(table, centres, memory, search, budget, rng)
    total = np.bincount(which, weight[active])
    once = active[first]
    sample = table.sample(once, total)
    own = Memory(memory.labels[once], memory.cost[once], memory.low[once])
    found, moved = _rows_one_by_one(sample, centres, own, search, budget, rng)
    memory.labels[active], memory.cost[active] = own.labels[which], own.cost[which]
    memory.labels[weight == 0] = 0
    memory.low[:] = -np.inf
    return found, moved


def _rows_one_by_one(
    table: Table, centres: Centres, memory: Memory, search: Search, budget: Budget, rng: np.random.Generator
) -> tuple[Centres, bool]:
    before = memory.labels.copy()
    order: str | Array = search.order
    if table.n * centres.mean.size > _ALL_ROWS:
        order = np.flatnonzero(memory.low < _CONTESTED * memory.cost)
        if table.n * centres.mean.size > 100 * _ALL_ROWS or order.size * centres.mean.size > _ALL_ROWS:
            return centres, False  # one row weighs next to nothing among so many
    outcome = fit_collapsed(
        table,
        centres,
        memory,
        search.lam,
        budget,
        order=order,
        rng=rng,
        max_clusters=search.max_clusters,
        tol=0.0,
        max_iter=max(1, search.max_iter),
    )
    return outcome.state.centres, bool((before != memory.labels).any())
