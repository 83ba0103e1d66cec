"""One fit of DP-means from start to published result: start, algorithm, search, closing assignment."""

from itertools import count
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.assign import Centres, Sums, assign, confirmed, loosen
from kfree.inference.clusters.batch import BatchSettings, fit_batch, levels, start_on_samples
from kfree.inference.clusters.collapsed import fit_collapsed
from kfree.inference.clusters.grow import Grown, Growth, grow, penalised
from kfree.inference.clusters.search import Search, improve
from kfree.inference.clusters.serial import Sweep, fit_serial
from kfree.inference.clusters.table import Memory, Table, make_memory
from kfree.inference.loop import Budget, Outcome
from kfree.kernels import kernels

#: Above this many rows a stronger search for a price is made on a sample.
SEARCH_UP_TO = 100_000
#: A search that ends with more than this many times the clusters of a price's own solution has run away.
RUNAWAY = 1.25
# Times that clusters are put in canonical order, which decides ties, which decide their weights.
_ORDERINGS = 5

ALGORITHMS = ("batch", "serial", "delayed", "collapsed")
SEARCHES = ("auto", "points", "polish", "full")


class Plan(NamedTuple):
    """What the user chose, resolved."""

    lam: float
    algorithm: str
    search: str  # "points", "clear" (batch's own moves on samples), "polish" or "full"
    order: str | Array
    tol: float
    max_iter: int
    max_clusters: float
    given_start: bool = False  # the start is more than the global centre: batch takes no samples to find one
    price: bool = False  # lam is a price that was found together with the start: its number of clusters is meant


class Fitted(NamedTuple):
    """A finished fit, clusters in canonical order."""

    mean: Array  # (K, p) in the geometry of the table
    mass: Array  # (K,) weights
    total: Array  # (K, p) weighted sums of rows
    labels: Array  # (n,) int32
    reach: float  # largest divergence of a row that has weight from its centre
    inertia: float  # weighted sum of divergences
    objective: float  # with the prior's share and the penalty
    trace: list[float]  # objective after each pass, the closing assignment included
    n_iter: int
    converged: bool


def fit(table: Table, start: Array, plan: Plan, budget: Budget, rng: np.random.Generator, publish: Any) -> Fitted:
    """Fit from the centres ``start`` (K, p).

    ``publish`` maps centres to what users will see of them and back, so that the closing assignment is made with
    exactly the centres that ``predict`` will use.
    """
    centres = Centres(table.geometry, start)
    budget.best = None
    try:
        outcome, memory = _run(table, centres, plan, budget, rng)
    except KeyboardInterrupt:
        budget.interrupted = True
        last = centres if budget.best is None else budget.best.centres
        outcome, memory = Outcome(Grown(last, 0), [], False), make_memory(table.n)
    fitted, changed = _finish(table, outcome, memory, plan, budget, publish)
    while _ties_were_decided_anew(table, fitted, changed, plan) and not budget.spent:
        before = fitted._replace(labels=fitted.labels.copy(), converged=False)
        growth, room = Growth(plan.lam, plan.tol, plan.max_clusters), plan.max_iter - len(fitted.trace)
        try:
            outcome = grow(
                table,
                Centres(table.geometry, fitted.mean),
                memory,
                growth,
                budget,
                phase="all rows",
                max_iter=room,
                guard=fitted.objective,
            )
        except KeyboardInterrupt:
            budget.interrupted = True
            return before
        outcome = outcome._replace(trace=[*fitted.trace, *outcome.trace])
        fitted, changed = _finish(table, outcome, memory, plan, budget, publish)
        if not fitted.objective < before.objective:
            break
    return fitted


def _ties_were_decided_anew(table: Table, fitted: Fitted, changed: float, plan: Plan) -> bool:
    """True if the centres' last digits or their order made rows change label after a last pass that changed none."""
    if not changed or not fitted.converged or len(fitted.trace) >= plan.max_iter:
        return False
    weight = table.rows.weight
    least = float(weight.min(where=weight > 0, initial=np.inf)) if weight.size else 1.0
    return plan.tol * table.rows.total_weight() < least  # else that pass may have changed some, and has moved centres


def _finish(
    table: Table, outcome: Outcome, memory: Memory, plan: Plan, budget: Budget, publish: Any
) -> tuple[Fitted, float]:
    """Assign all rows to the centres that users will see; also returns the weight that changed label by that."""
    state = outcome.state if isinstance(outcome.state, Grown) else Grown(outcome.state.centres, 0)
    final = Centres(table.geometry, publish(state.centres.mean))
    try:
        return close(table, final, _closing(table, final, state, memory, plan), memory, plan, outcome)
    except KeyboardInterrupt:  # only the last assignment is left: a fit that is done is not given up
        budget.interrupted = True
        memory = make_memory(table.n)
        return close(table, final, assign(table, final, memory, plan.lam), memory, plan, outcome)


def _closing(table: Table, final: Centres, state: Grown, memory: Memory, plan: Plan) -> Sums:
    """Assign all rows to the final centres, if that has not been done."""
    last, sums = state.centres, state.sums
    if sums is None or state.moved or not confirmed(table, last, final, memory, sums):
        # without a prior means stay within the reach of their clusters: rows are at most twice as far as they were
        reach = None if sums is None or table.geometry.eta else 4 * sums.reach
        loosen(table, last, final, np.arange(len(final.mean)), memory, reach)
        return assign(table, final, memory, plan.lam)
    return sums._replace(changed=0.0)


def _run(
    table: Table, centres: Centres, plan: Plan, budget: Budget, rng: np.random.Generator
) -> tuple[Outcome, Memory]:
    """Run the algorithm and the search; the memory of all rows is made once the samples are done with."""
    growth = Growth(plan.lam, plan.tol, plan.max_clusters)
    sampled = plan.algorithm == "batch" and not plan.given_start
    settings = BatchSettings(
        plan.lam, plan.tol, plan.max_iter, plan.max_clusters, moves=sampled and plan.search == "clear"
    )
    level = None
    if sampled:
        centres, level = start_on_samples(table, centres, settings, budget)
    elif plan.price and plan.search == "full" and table.n > SEARCH_UP_TO:
        centres = _search_sample(table, centres, plan, budget, rng)
    memory = make_memory(table.n)
    if plan.algorithm == "batch":
        outcome = fit_batch(table, centres, level, memory, settings, budget)
    elif plan.algorithm == "delayed":
        one = growth._replace(pause=0, one_at_a_time=True)
        outcome = grow(table, centres, memory, one, budget, phase="all rows", max_iter=plan.max_iter)
    elif plan.algorithm == "serial":
        sweep = Sweep(plan.lam, plan.order, plan.tol, plan.max_clusters)
        outcome = fit_serial(table, centres, memory, sweep, budget, rng=rng, max_iter=plan.max_iter)
    else:
        assign(table, centres, memory, plan.lam)
        outcome = fit_collapsed(
            table,
            centres,
            memory,
            plan.lam,
            budget,
            order=plan.order,
            rng=rng,
            max_clusters=plan.max_clusters,
            tol=plan.tol,
            max_iter=plan.max_iter,
        )
    if plan.search in ("polish", "full") and not (plan.price and table.n > SEARCH_UP_TO):
        outcome = _search(table, outcome, memory, plan, budget, rng)
    return outcome, memory


def _search(
    table: Table, outcome: Outcome, memory: Memory, plan: Plan, budget: Budget, rng: np.random.Generator
) -> Outcome:
    """Stronger search; with a price that came with its number of clusters, splits may not run away from it."""
    search = Search(plan.lam, plan.search == "full", plan.order, plan.tol, plan.max_iter, plan.max_clusters)
    if not (plan.price and search.splits):
        return improve(table, outcome, memory, search, budget, rng)
    most = int(RUNAWAY * outcome.state.centres.mean.shape[0]) + 1
    found = improve(table, outcome, memory, search._replace(max_clusters=min(most, plan.max_clusters)), budget, rng)
    if found.state.centres.mean.shape[0] < most or budget.spent:
        return found
    memory.low[:] = -np.inf  # the price was too low for what a better search can do: keep to moves of rows and merges
    return improve(table, outcome, memory, search._replace(splits=False), budget, rng)


def _search_sample(table: Table, centres: Centres, plan: Plan, budget: Budget, rng: np.random.Generator) -> Centres:
    """Search on the largest sample at its share of the price: moves of whole clusters need no more rows."""
    *_, level = levels(table)
    sample = level.of(table)
    share = sample.rows.total_weight() / table.rows.total_weight()
    plan = plan._replace(lam=plan.lam * share)
    memory, growth = make_memory(sample.n), Growth(plan.lam, plan.tol, plan.max_clusters)
    outcome = grow(sample, centres, memory, growth, budget, phase="sample", max_iter=plan.max_iter)
    return _search(sample, outcome, memory, plan, budget, rng).state.centres


def close(
    table: Table, centres: Centres, sums: Sums, memory: Memory, plan: Plan, outcome: Outcome
) -> tuple[Fitted, float]:
    """Drop clusters nobody chose in the final assignment, and put the rest in canonical order; also returns the weight
    that changed label in the final assignment and after."""
    changed = sums.changed
    mean = centres.mean
    for attempt in count():
        if attempt:
            memory.low[:] = -np.inf
            centres = Centres(table.geometry, mean)
            sums = assign(table, centres, memory, plan.lam)
            changed += sums.changed
        # with many ties the order may not settle: then it stays, but for those nobody chose
        order = canonical_order(mean, sums.mass) if attempt < _ORDERINGS else np.flatnonzero(sums.mass > 0)
        in_place = np.array_equal(order, np.arange(mean.shape[0]))
        rank = np.zeros(mean.shape[0], np.int32)
        rank[order] = np.arange(order.size)
        kernels().relabel(rank, memory.labels)
        mean, total, mass = mean[order], sums.total[order], sums.mass[order]
        # only exact ties depend on the order of the centres, and only rows without weight on those dropped
        if in_place or (not sums.tied and order.size == rank.size):
            break
    objective = penalised(table, centres, sums, plan.lam)
    result = Fitted(
        mean,
        mass,
        total,
        memory.labels,
        _reach(table, memory, sums),
        sums.cost,
        objective,
        [*outcome.trace, objective],
        len(outcome.trace),
        outcome.converged,
    )
    return result, changed


def _reach(table: Table, memory: Memory, sums: Sums) -> float:
    if not table.rows.weight.size:
        return float(sums.reach.max())
    return float(memory.cost.max(where=table.rows.weight > 0, initial=0.0))


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
