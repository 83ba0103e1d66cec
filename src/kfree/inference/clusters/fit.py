"""One fit of DP-means from start to published result: start, algorithm, search, closing assignment."""

from collections import deque
from itertools import count
from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.assign import assign
from kfree.inference.clusters.batch import fit_batch, fit_delayed, levels
from kfree.inference.clusters.bounds import confirmed, loosen
from kfree.inference.clusters.centres import Centres, Sums
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.inference.clusters.collapsed import fit_collapsed, partition_cost
from kfree.inference.clusters.fence import fence_of
from kfree.inference.clusters.grow import Clustering, Phase, grow, penalised
from kfree.inference.clusters.search import improve
from kfree.inference.clusters.seeds import first_centres, global_centre
from kfree.inference.clusters.serial import fit_serial
from kfree.inference.clusters.table import Memory, Table, make_memory
from kfree.inference.goal import Goal, Search
from kfree.inference.loop import Budget, Outcome, attempt, repeat

#: Ways to fit all rows: ``algorithm(table, centres, goal, budget, rng)`` gives an Outcome whose state is a Clustering.
ALGORITHMS = {"batch": fit_batch, "serial": fit_serial, "delayed": fit_delayed, "collapsed": fit_collapsed}

#: Those whose result does not depend on the order of the rows.
FREE_OF_ORDER = {"batch", "delayed"}


class Fitted(NamedTuple):
    """A finished fit, clusters in canonical order."""

    mean: Array  # (K, p) in the geometry of the table
    mass: Array  # (K,) weights
    total: Array  # (K, p) weighted sums of rows
    labels: Array  # (n,) int32
    fence: float  # divergence from their centres that rows hardly ever exceed
    inertia: float  # weighted sum of divergences
    objective: float  # with the prior's share and the penalty
    trace: list[float]  # objective after each pass, the closing assignment included
    n_iter: int
    converged: bool


class Finish(NamedTuple):
    """A finished fit, and what its closing assignment did."""

    fitted: Fitted
    changed: float  # weight of the rows that changed label by it


def fit(table: Table, goal: Goal, budget: Budget, rng: np.random.Generator) -> Fitted:
    """Fit from where the goal says."""
    start = attempt(
        lambda: Centres(table.geometry, first_centres(table, goal, budget, rng)),
        lambda: Centres(table.geometry, global_centre(table)),
        budget,
    )
    outcome = _find(table, start, goal, budget, rng)
    finish = _finish(table, outcome, goal, budget)
    if not finish.changed:
        return finish.fitted
    own = _own(finish)
    return attempt(lambda: _settle_ties(table, own, outcome.state.memory, goal, budget), lambda: own.fitted, budget)


def _settle_ties(table: Table, finish: Finish, memory: Memory, goal: Goal, budget: Budget) -> Fitted:
    """Go on for as long as the centres' last digits, or their order, decide ties anew."""

    def once_more(last: Finish) -> tuple[Finish, bool]:
        fitted = last.fitted
        rest, phase = goal._replace(max_iter=goal.max_iter - len(fitted.trace)), Phase("all rows", fitted.objective)
        found = grow(table, Centres(table.geometry, fitted.mean), memory, rest, budget, phase)
        after = _own(_finish(table, found._replace(trace=[*fitted.trace, *found.trace]), goal, budget))
        lower = after.fitted.objective < fitted.objective
        return after, not (lower and _ties_were_decided_anew(table, after, goal))

    if not _ties_were_decided_anew(table, finish, goal):
        return finish.fitted
    return repeat(once_more, finish, budget)[0].fitted


def _own(finish: Finish) -> Finish:
    """The same with labels that no further pass writes to."""
    return finish._replace(fitted=finish.fitted._replace(labels=finish.fitted.labels.copy()))


def _ties_were_decided_anew(table: Table, finish: Finish, goal: Goal) -> bool:
    """True if the centres' last digits or their order made rows change label after a last pass that changed none."""
    if not finish.changed or not finish.fitted.converged or len(finish.fitted.trace) >= goal.max_iter:
        return False
    weight = table.rows.weight
    least = float(weight.min(where=weight > 0, initial=np.inf)) if weight.size else 1.0
    return goal.tol * table.rows.total_weight() < least  # else that pass may have changed some, and has moved centres


def _find(table: Table, centres: Centres, goal: Goal, budget: Budget, rng: np.random.Generator) -> Outcome:
    """Run the algorithm, then the search; each goes on from what the one before it came to."""
    on_sample = goal.paired and table.n > CLUSTERS.search_up_to  # there a search for a price is made on a sample

    def search_sample() -> Centres:
        wanted = on_sample and goal.search is Search.FULL
        return _search_sample(table, centres, goal, budget, rng) if wanted else centres

    def search(outcome: Outcome) -> Outcome:
        if on_sample or goal.search not in (Search.POLISH, Search.FULL):
            return outcome
        return improve(table, outcome, goal, budget, rng) if not budget.spent else outcome._replace(converged=False)

    start = attempt(search_sample, lambda: centres, budget)
    found = attempt(
        lambda: ALGORITHMS[goal.algorithm](table, start, goal, budget, rng),
        lambda: Outcome(Clustering(start, make_memory(0)), [], False),
        budget,
    )
    return attempt(lambda: search(found), lambda: found._replace(converged=False), budget)


def _search_sample(table: Table, centres: Centres, goal: Goal, budget: Budget, rng: np.random.Generator) -> Centres:
    """Search on the largest sample for as many clusters: moves of whole clusters need no more rows."""
    largest = deque(levels(table), maxlen=1)
    if not largest:  # so few rows differ that the path has seen all of them
        return centres
    sample = largest[0].of(table)
    goal = goal._replace(lam=0.0, max_clusters=centres.mean.shape[0])
    outcome = grow(sample, centres, make_memory(sample.n), goal, budget, Phase("sample"))
    return improve(sample, outcome, goal, budget, rng).state.centres


def _finish(table: Table, outcome: Outcome, goal: Goal, budget: Budget) -> Finish:
    """Assign all rows to the centres that users will see."""

    def from_scratch() -> Finish:  # what is remembered of the rows may be half of one pass and half of another
        final, memory = _published(table, outcome), make_memory(table.n)
        return close(table, final, assign(table, final, memory, goal.lam), memory, goal, outcome)

    def from_memory() -> Finish:
        if budget.interrupted:
            return from_scratch()
        final, state = _published(table, outcome), outcome.state
        return close(table, final, _closing(table, final, state, goal), state.memory, goal, outcome)

    return attempt(from_memory, from_scratch, budget)  # a fit that is done is not given up for its last assignment


def _published(table: Table, outcome: Outcome) -> Centres:
    """The centres as users will see them."""
    return Centres(table.geometry, table.as_published(outcome.state.centres.mean))


def _closing(table: Table, final: Centres, state: Clustering, goal: Goal) -> Sums:
    """Assign all rows to the final centres, if that has not been done."""
    last, sums, memory = state.centres, state.sums, state.memory
    if sums is None or state.moved or not confirmed(table, last, final, memory, sums):
        # without a prior means stay within the reach of their clusters: rows are at most twice as far as they were
        reach = None if sums is None or table.geometry.eta else 4 * sums.reach
        loosen(table, last, final, np.arange(len(final.mean)), memory, reach)
        return assign(table, final, memory, goal.lam)
    return sums._replace(changed=0.0)


def close(table: Table, centres: Centres, sums: Sums, memory: Memory, goal: Goal, outcome: Outcome) -> Finish:
    """Drop clusters nobody chose in the final assignment, and put the rest in canonical order."""
    changed = sums.changed
    mean = centres.mean
    for turn in count():
        if turn:
            memory.forget()
            centres = Centres(table.geometry, mean)
            sums = assign(table, centres, memory, goal.lam)
            changed += sums.changed
        # with many ties the order may not settle: then it stays, but for those nobody chose
        order = canonical_order(mean, sums.mass) if turn < CLUSTERS.orderings else np.flatnonzero(sums.mass > 0)
        in_place = np.array_equal(order, np.arange(mean.shape[0]))
        rank = np.zeros(mean.shape[0], np.int32)
        rank[order] = np.arange(order.size)
        memory.relabel(rank)
        mean, total, mass = mean[order], sums.total[order], sums.mass[order]
        # only exact ties depend on the order of the centres, and only rows without weight on those dropped
        if in_place or (not sums.tied and order.size == rank.size):
            break
    family = table.geometry.family
    if family.translates and family.euclidean_factor is None:
        sums = sums._replace(cost=partition_cost(table, Centres(table.geometry, mean), memory))
    objective = penalised(table, centres, sums, goal.lam)
    result = Fitted(
        mean,
        mass,
        total,
        memory.labels,
        fence_of(memory.cost, table.rows.weight),
        sums.cost,
        objective,
        [*outcome.trace, objective],
        len(outcome.trace),
        outcome.converged,
    )
    return Finish(result, changed)


def canonical_order(mean: Array, mass: Array) -> Array:
    """Clusters that hold weight, heaviest first; equally heavy ones by their centres, column after column."""
    held = mass > 0
    # weights that differ by the rounding of their sums are equal
    mass = np.rint(mass / max(float(mass.sum()), 1e-300) * 2.0**40)
    order = np.argsort(-mass, kind="stable")
    order = order[held[order]]
    start = 0
    while start < order.size:
        stop = int(np.searchsorted(-mass[order], -mass[order[start]], side="right"))
        if stop - start > 1:
            tied = order[start:stop]
            size = np.abs(mean[tied]).max(axis=0)  # of each column: rounding must not tell centres apart, either
            columns = np.rint(mean[tied] / np.where(size > 0, size, 1.0) * 2.0**40)
            order[start:stop] = tied[np.lexsort(columns.T[::-1])]
        start = stop
    return order
