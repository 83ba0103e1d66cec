"""Stronger search from a partition: collapsed moves, merges and splits, until none of them pays.

Every accepted move lowers the penalised objective. Where the number of clusters is settled, one is split where two
others are merged. With a radius "full" rightly lowers the objective by breaking up the clusters one wanted (see
docs/guide/lam.md).
"""

from collections.abc import Callable

import numpy as np

from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.inference.clusters.collapsed import move_until_still
from kfree.inference.clusters.cuts import SplitRule
from kfree.inference.clusters.grow import Phase, grow
from kfree.inference.clusters.labelling import Clustering, LocalLabelling
from kfree.inference.clusters.moves import apply_moves, swap
from kfree.inference.clusters.table import Memory
from kfree.inference.goal import Goal, Order, Search
from kfree.inference.loop import Budget, Outcome, attempt, repeat


def improve(outcome: Outcome, goal: Goal, budget: Budget, rng: np.random.Generator) -> Outcome:
    """Search from an outcome whose state is a Clustering; its trace goes on."""
    if goal.paired and goal.search is Search.FULL:
        return _keeping_the_number(outcome, goal, budget, rng)
    labelling, rule = outcome.state.labelling, SplitRule.PAYING if goal.search is Search.FULL else SplitRule.NONE

    def move(centres: Centres) -> tuple[Centres, int]:
        return apply_moves(labelling.table, centres, labelling.memory, goal, rule)

    return _in_rounds(outcome, goal, move, budget, rng)


def _keeping_the_number(outcome: Outcome, goal: Goal, budget: Budget, rng: np.random.Generator) -> Outcome:
    """Search among as many clusters as there are: none is cheaper or dearer then."""
    labelling, made = outcome.state.labelling, len(outcome.trace)
    K = outcome.state.centres.mean.shape[0]
    fixed = goal._replace(lam=0.0, max_clusters=K, max_iter=max(0, goal.max_iter - made))

    def move(centres: Centres) -> tuple[Centres, int]:
        return swap(labelling.table, centres, labelling.memory)

    found = _in_rounds(outcome._replace(trace=[]), fixed, move, budget, rng)
    return found._replace(trace=[*outcome.trace, *(value + goal.lam * K for value in found.trace)])


def _in_rounds(
    outcome: Outcome,
    goal: Goal,
    move: Callable[[Centres], tuple[Centres, int]],
    budget: Budget,
    rng: np.random.Generator,
) -> Outcome:
    """Rounds of rows that move one by one, of moves of whole clusters, and of descent."""
    labelling = outcome.state.labelling
    labelling.forget()  # it may be that of another search from here
    labelling.assign(outcome.state.centres, goal.lam)

    def one_round(last: Outcome) -> tuple[Outcome, bool]:
        before, moved = _one_by_one(last.state, goal, budget, rng)
        if budget.interrupted:  # labels may be of a sweep that was not complete
            return Outcome(Clustering(before.centres, labelling), last.trace, False), True
        centres, whole = before.centres, 0
        if not budget.spent:
            centres, whole = move(centres)
        descent = goal._replace(max_iter=max(1, goal.max_iter - len(last.trace)))
        guard = last.trace[-1] if last.trace else np.inf
        settled = grow(labelling, centres, descent, budget, Phase("search", guard))
        trace = [*last.trace, *settled.trace]
        if not budget.spent:
            attempt(lambda: labelling.assign(settled.state.centres, goal.lam), lambda: None, budget)
        if budget.spent:
            return Outcome(settled.state, trace, False), True
        done = not moved and not whole
        late = len(trace) >= goal.max_iter and not done
        state = Clustering(settled.state.centres, labelling)
        return Outcome(state, trace, settled.converged and not late), done or late

    if len(outcome.trace) >= goal.max_iter:
        return Outcome(Clustering(outcome.state.centres, labelling), outcome.trace, False)
    found, done = repeat(one_round, outcome, budget, most=CLUSTERS.rounds)
    return found._replace(converged=False) if budget.spent and not done else found


def _one_by_one(state: Clustering, goal: Goal, budget: Budget, rng: np.random.Generator) -> tuple[Clustering, bool]:
    """Collapsed moves of rows; all copies of a row move as one where the order is by content, so that integer weights
    equal repeated rows."""
    if goal.order is not Order.CONTENT:
        return _rows_one_by_one(state, goal, budget, rng)
    table, memory = state.labelling.table, state.labelling.memory
    weight = table.rows.weights(slice(0, table.n))
    active = np.flatnonzero(weight > 0)
    active = active[np.lexsort((weight[active], table.hashes[active]))]  # copies are added up in the same order always
    _, first, which = np.unique(table.hashes[active], return_index=True, return_inverse=True)
    if first.size == table.n:
        return _rows_one_by_one(state, goal, budget, rng)
    once = active[first]
    sample = table.sample(once, np.bincount(which, weight[active]))
    own = Memory(memory.labels[once], memory.cost[once], memory.low[once])
    found, moved = _rows_one_by_one(Clustering(state.centres, LocalLabelling(sample, own)), goal, budget, rng)
    memory.labels[active], memory.cost[active] = own.labels[which], own.cost[which]
    memory.labels[weight == 0] = 0
    memory.written()
    return Clustering(found.centres, state.labelling), moved


def _rows_one_by_one(
    state: Clustering, goal: Goal, budget: Budget, rng: np.random.Generator
) -> tuple[Clustering, bool]:
    """The same for single rows; on large tables of those that two clusters compete for."""
    memory, work = state.labelling.memory, state.labelling.n * state.centres.mean.size
    before, order = memory.labels.copy(), goal.order
    if work > CLUSTERS.every_row:
        order = np.flatnonzero(memory.low < CLUSTERS.contested * memory.cost)
        if work > CLUSTERS.no_row * CLUSTERS.every_row or order.size * state.centres.mean.size > CLUSTERS.every_row:
            return state, False  # one row weighs next to nothing among so many
    outcome = move_until_still(state, goal._replace(order=order, tol=0.0), budget, rng)
    return outcome.state, bool((before != memory.labels).any())
