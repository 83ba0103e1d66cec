"""One fit of DP-means from start to published result: start, algorithm, search, closing assignment."""

from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.batch import fit_batch, fit_delayed
from kfree.inference.clusters.centres import Centres, Sums
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.inference.clusters.collapsed import fit_collapsed
from kfree.inference.clusters.grow import Phase, grow, penalised
from kfree.inference.clusters.labelling import Clustering, Labelling, LocalLabelling
from kfree.inference.clusters.search import improve
from kfree.inference.clusters.seeds import first_centres
from kfree.inference.clusters.serial import fit_serial
from kfree.inference.goal import Goal, Search
from kfree.inference.loop import Budget, Outcome, attempt, repeat

#: Ways to fit all rows: ``algorithm(labelling, centres, goal, budget, rng)`` gives an Outcome whose state is a
#: Clustering. Where rows move one by one the labelling is a LocalLabelling.
ALGORITHMS: dict[str, Callable[..., Outcome]] = {
    "batch": fit_batch,
    "serial": fit_serial,
    "delayed": fit_delayed,
    "collapsed": fit_collapsed,
}

#: Those whose result does not depend on the order of the rows.
FREE_OF_ORDER = {"batch", "delayed"}


class Fitted(NamedTuple):
    """A finished fit, clusters in canonical order."""

    mean: Array  # (K, p) in the geometry of the table
    mass: Array  # (K,) weights
    total: Array  # (K, p) weighted sums of rows
    labels: Any  # (n,) int32, in whatever holds them
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


def fit(labelling: Labelling, goal: Goal, budget: Budget, rng: np.random.Generator) -> Fitted:
    """Fit from where the goal says."""
    geometry = labelling.geometry
    start = attempt(
        lambda: Centres(geometry, first_centres(labelling, goal, budget, rng)),
        lambda: Centres(geometry, labelling.first_centre()),
        budget,
    )
    outcome = _find(labelling, start, goal, budget, rng)
    finish = _finish(outcome, goal, budget)
    if not finish.changed:
        return finish.fitted
    own = _own(finish)
    return attempt(lambda: _settle_ties(outcome.state.labelling, own, goal, budget), lambda: own.fitted, budget)


def _settle_ties(labelling: Labelling, finish: Finish, goal: Goal, budget: Budget) -> Fitted:
    """Go on for as long as the centres' last digits, or their order, decide ties anew."""

    def once_more(last: Finish) -> tuple[Finish, bool]:
        fitted = last.fitted
        rest, phase = goal._replace(max_iter=goal.max_iter - len(fitted.trace)), Phase("all rows", fitted.objective)
        found = grow(labelling, Centres(labelling.geometry, fitted.mean), rest, budget, phase)
        after = _own(_finish(found._replace(trace=[*fitted.trace, *found.trace]), goal, budget))
        lower = after.fitted.objective < fitted.objective
        return after, not (lower and _ties_were_decided_anew(labelling, after, goal))

    if not _ties_were_decided_anew(labelling, finish, goal):
        return finish.fitted
    return repeat(once_more, finish, budget)[0].fitted


def _own(finish: Finish) -> Finish:
    """The same with labels that no further pass writes to."""
    return finish._replace(fitted=finish.fitted._replace(labels=finish.fitted.labels.copy()))


def _ties_were_decided_anew(labelling: Labelling, finish: Finish, goal: Goal) -> bool:
    """True if the centres' last digits or their order made rows change label after a last pass that changed none."""
    if not finish.changed or not finish.fitted.converged or len(finish.fitted.trace) >= goal.max_iter:
        return False
    return (
        goal.tol * labelling.total_weight < labelling.lightest
    )  # else that pass may have changed some, and has moved centres


def _find(labelling: Labelling, centres: Centres, goal: Goal, budget: Budget, rng: np.random.Generator) -> Outcome:
    """Run the algorithm, then the search; each goes on from what the one before it came to."""
    on_sample = goal.paired and labelling.n > CLUSTERS.search_up_to  # there a search for a price is made on a sample

    def search_sample() -> Centres:
        wanted = on_sample and goal.search is Search.FULL
        return _search_sample(labelling, centres, goal, budget, rng) if wanted else centres

    def search(outcome: Outcome) -> Outcome:
        if on_sample or goal.search not in (Search.POLISH, Search.FULL):
            return outcome
        return improve(outcome, goal, budget, rng) if not budget.spent else outcome._replace(converged=False)

    start = attempt(search_sample, lambda: centres, budget)
    found = attempt(
        lambda: ALGORITHMS[goal.algorithm](labelling, start, goal, budget, rng),
        lambda: Outcome(Clustering(start, labelling.fresh()), [], False),
        budget,
    )
    return attempt(lambda: search(found), lambda: found._replace(converged=False), budget)


def _search_sample(
    labelling: Labelling, centres: Centres, goal: Goal, budget: Budget, rng: np.random.Generator
) -> Centres:
    """Search on the largest sample for as many clusters: moves of whole clusters need no more rows."""
    largest = deque(labelling.levels(), maxlen=1)
    if not largest:  # so few rows differ that the path has seen all of them
        return centres
    sample = LocalLabelling(labelling.sample(largest[0]))
    goal = goal._replace(lam=0.0, max_clusters=centres.mean.shape[0])
    outcome = grow(sample, centres, goal, budget, Phase("sample"))
    return improve(outcome, goal, budget, rng).state.centres


def _finish(outcome: Outcome, goal: Goal, budget: Budget) -> Finish:
    """Assign all rows to the centres that users will see."""
    state, labelling = outcome.state, outcome.state.labelling

    def published() -> Centres:
        return Centres(labelling.geometry, labelling.as_published(state.centres.mean))

    def from_scratch() -> Finish:  # what is remembered of the rows may be half of one pass and half of another
        final, fresh = published(), labelling.fresh()
        return close(fresh, final, fresh.assign(final, goal.lam), goal, outcome)

    def from_memory() -> Finish:
        if budget.interrupted:
            return from_scratch()
        final = published()
        return close(labelling, final, _closing(labelling, final, state, goal), goal, outcome)

    return attempt(from_memory, from_scratch, budget)  # a fit that is done is not given up for its last assignment


def _closing(labelling: Labelling, final: Centres, state: Clustering, goal: Goal) -> Sums:
    """Assign all rows to the final centres, if that has not been done."""
    last, sums = state.centres, state.sums
    if sums is not None and not state.moved and np.array_equal(last.mean, final.mean):
        return sums._replace(changed=0.0)
    # without a prior means stay within the reach of their clusters: rows are at most twice as far as they were
    reach = None if sums is None or labelling.geometry.eta else 4 * sums.reach
    labelling.loosen(last, final, np.arange(len(final.mean)), reach)
    return labelling.assign(final, goal.lam)


def close(labelling: Labelling, centres: Centres, sums: Sums, goal: Goal, outcome: Outcome) -> Finish:
    """Drop clusters nobody chose in the final assignment, and put the rest in canonical order."""
    changed = sums.changed
    mean = centres.mean
    for turn in count():
        if turn:
            labelling.forget()
            centres = Centres(labelling.geometry, mean)
            sums = labelling.assign(centres, goal.lam)
            changed += sums.changed
        # with many ties the order may not settle: then it stays, but for those nobody chose
        order = canonical_order(mean, sums.mass) if turn < CLUSTERS.orderings else np.flatnonzero(sums.mass > 0)
        in_place = np.array_equal(order, np.arange(mean.shape[0]))
        rank = np.zeros(mean.shape[0], np.int32)
        rank[order] = np.arange(order.size)
        labelling.relabel(rank, np.empty(0, np.intp))
        mean, total, mass = mean[order], sums.total[order], sums.mass[order]
        # only exact ties depend on the order of the centres, and only rows without weight on those dropped
        if in_place or (not sums.tied and order.size == rank.size):
            break
    family = labelling.geometry.family
    if family.translates and family.euclidean_factor is None:
        sums = sums._replace(cost=labelling.partition_cost(Centres(labelling.geometry, mean)))
    objective = penalised(labelling.geometry, centres, sums, goal.lam)
    result = Fitted(
        mean,
        mass,
        total,
        labelling.labels,
        labelling.fence(),
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
