"""Fits of features: restarts, searched on a sample where the table is long, and the best of them."""

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.features.allocation import Means, State, empty_state, settle, settle_with_reseeds, solve
from kfree.inference.features.best_rows import MOST_EXHAUSTIVE, Rule, allocate
from kfree.inference.features.bp_means import run_bp
from kfree.inference.features.collapsed_bp import run_collapsed
from kfree.inference.features.feature_moves import Search, chain, close, improve, with_seed
from kfree.inference.features.feature_sample import Sample, draw_sample
from kfree.inference.features.feature_seeds import Seeding, seed_fixed, seed_greedy
from kfree.inference.features.feature_table import Table
from kfree.inference.features.k_features import Run, refine
from kfree.inference.loop import Budget

#: Nodes of the sphere decoder while moves are tried; what they end in is settled with all that were asked for.
SEARCH_NODES = 500
#: Objectives that differ by less than this share of the sum of squares are equal.
SAME = 1e-10
#: Searches of the sample that are brought to the whole table.
BROUGHT = 3

Spread = Callable[[Callable[..., Any], Iterable[tuple[Any, ...]]], list[Any]]


class Restart(NamedTuple):
    """What one restart came to."""

    objective: float
    n_components: int
    seconds: float


class Plan(NamedTuple):
    """What the user asked for."""

    algorithm: str  # "extended", "paper" or "collapsed"
    rule: Rule
    base: bool | None  # True: the first feature is the mean; None: in turn
    max_iter: int
    n_init: int
    shuffle: bool = False
    start: tuple[Array, Array | None] | None = None  # Z, and means if given

    def search(self, lam: float = np.inf) -> Search:
        """The settings of the moves: many trials, so the decoder gets less time for each."""
        return Search(self.rule._replace(nodes=min(self.rule.nodes, SEARCH_NODES)), self.max_iter, lam)


class Fitted(NamedTuple):
    """The best run, and what all came to."""

    run: Run
    restarts: list[Restart]


def one_by_one(function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Restarts without helpers."""
    return [function(*some) for some in arguments]


def base_of(table: Table, plan: Plan, K: int, turn: int) -> bool:
    """Whether restart ``turn`` begins with the mean: by default in turn, and the mean first where there is one."""
    if plan.base is not None:
        return plan.base
    if turn % 2:
        return False
    mean = table.mean
    return K >= 2 or bool(table.mass * (mean @ mean) > 1e-8 * table.total)


def _timed(search: Search, budget: Budget, call: Callable[[], Run]) -> tuple[Run, Restart]:
    start = perf_counter()
    run = call()
    seconds = perf_counter() - start
    found = run, Restart(search.objective(run.state), run.state.K, seconds)
    if isinstance(budget.best, list):  # what is left if the user interrupts the others
        budget.best.append(found)
    return found


def _sample_for(table: Table, plan: Plan, seed: np.random.SeedSequence) -> Sample | None:
    """The rows to search with, None for all."""
    if plan.algorithm != "extended" or plan.start is not None:
        return None
    return draw_sample(table, np.random.default_rng(seed))


def _rescued(table: Table, sample: Sample | None, plan: Plan, budget: Budget, nothing: Callable[[], State]) -> Fitted:
    """The best restart that had ended when the user interrupted; ``nothing`` makes a state if there is none."""
    budget.interrupted = True
    found: list[tuple[Run, Restart]] = list(budget.best or [])
    if not found:
        state = nothing()
        return Fitted(Run(state, [state.inertia], False), [])
    run = min(found, key=lambda some: some[1].objective)[0]
    if sample is not None:
        state = settle(table, allocate(table, sample.means(run.state), plan.search().rule)[0])
        run = Run(state, [state.inertia], False)
    return Fitted(run._replace(converged=False), [restart for _, restart in found])


def fixed_restart(
    table: Table, K: int, plan: Plan, turn: int, seed: np.random.SeedSequence, warm: State | None, budget: Budget
) -> tuple[Run, Restart]:
    """K features from one start; ``warm`` is a solution with fewer, to be grown."""
    rng, search = np.random.default_rng(seed), plan.search()

    def call() -> Run:
        if warm is not None:
            Z, means = warm.Z, warm.means
            while Z.shape[1] < K:
                Z, means = with_seed(table, State(Z, means, np.nan), rng)
        elif plan.start is not None:
            Z, means = first_state(table, plan.start)
        else:
            seeding = seed_fixed(table, K, base_of(table, plan, K, turn), rng)
            Z, means = seeding.Z, seeding.means
        if plan.algorithm == "paper":
            return refine(table, Z, means, plan.rule, plan.max_iter, budget)
        return chain(table, improve(table, Z, means, search, budget), search, rng, budget)

    return _timed(search, budget, call)


def first_state(table: Table, start: tuple[Array, Array | None]) -> tuple[Array, Means]:
    """The user's allocation, with the user's means or the best ones."""
    Z, A = start
    if A is not None:
        return Z, Means(A, _base_of(table, Z, A) if table.intercept else np.zeros(table.p))
    return Z, solve(table, Z).means


def _base_of(table: Table, Z: Array, A: Array) -> Array:
    """The intercept that goes best with given means."""
    weight = table.weight
    return table.mean - (weight @ Z.astype(np.float64)) @ A / table.mass


def priced_restart(
    table: Table, lam: float, plan: Plan, turn: int, seed: np.random.SeedSequence, budget: Budget
) -> tuple[Run, Restart]:
    """Features at a price from one start."""
    rng, search = np.random.default_rng(seed), plan.search(lam)

    def call() -> Run:
        if plan.start is not None:
            Z, means = first_state(table, plan.start)
        else:
            # the moves add what is missing; too many to begin with only take time
            most = MOST_EXHAUSTIVE if plan.algorithm == "extended" else table.n
            base = base_of(table, plan, 2, turn)
            seeding: Seeding = seed_greedy(table, lam, base, min(most, table.n), rng, budget)
            Z, means = seeding.Z, seeding.means
        if plan.algorithm == "paper":
            return _in_order(table, Z, means, plan, rng, lam, budget)
        if plan.algorithm == "collapsed":
            return _collapsed(table, Z, plan, rng, lam, budget)
        return chain(table, improve(table, Z, means, search, budget), search, rng, budget)

    return _timed(search, budget, call)


def _shuffled(table: Table, plan: Plan, rng: np.random.Generator) -> tuple[Table, Array]:
    """The table in the order of the visits, and the places of its rows in that order."""
    if not plan.shuffle:
        return table, np.arange(table.n)
    order = rng.permutation(table.n)
    weight = table.weight[order] if table.weighted else np.empty(0)
    place = np.empty(table.n, np.intp)
    place[order] = np.arange(table.n)
    return Table(table.X[order], weight, intercept=table.intercept), place


def _in_order(
    table: Table, Z: Array, means: Means, plan: Plan, rng: np.random.Generator, lam: float, budget: Budget
) -> Run:
    view, place = _shuffled(table, plan, rng)
    run = run_bp(view, Z[np.argsort(place)], means, lam, plan.rule, plan.max_iter, budget)
    return run._replace(state=run.state._replace(Z=np.ascontiguousarray(run.state.Z[place])))


def _collapsed(table: Table, Z: Array, plan: Plan, rng: np.random.Generator, lam: float, budget: Budget) -> Run:
    view, place = _shuffled(table, plan, rng)
    run = run_collapsed(view, settle(view, Z[np.argsort(place)]), lam, plan.rule, plan.max_iter, budget)
    return run._replace(state=run.state._replace(Z=np.ascontiguousarray(run.state.Z[place])))


def _first_best(runs: list[Run], search: Search, table: Table) -> Run:
    """The best run. Of equivalent ones (the same but for rounding) that with the fewest bits, then the first: so
    neither units nor threads choose."""
    values = [search.objective(run.state) for run in runs]
    least = min(values)
    equal = [run for run, value in zip(runs, values) if value <= least + SAME * abs(least) + table.share(SAME)]
    bits = [float(table.weight @ run.state.Z.sum(axis=1, dtype=np.float64)) for run in equal]
    return next(run for run, count in zip(equal, bits) if count <= min(bits) * (1.0 + SAME))


def _brought(found: list[tuple[Run, Restart]]) -> list[Run]:
    """The best few runs that differ."""
    order = np.argsort([restart.objective for _, restart in found], kind="stable")
    chosen: list[int] = []
    for i in order:
        value = found[i][1].objective
        if all(abs(value - found[j][1].objective) > 1e-9 * (1.0 + abs(value)) for j in chosen):
            chosen.append(int(i))
    return [found[i][0] for i in chosen[:BROUGHT]]


def fit_fixed(
    table: Table,
    K: int,
    plan: Plan,
    seeds: list[np.random.SeedSequence],
    warm: State | None,
    spread: Spread,
    budget: Budget,
) -> Fitted:
    """The best K features of all restarts, and of one that grows ``warm``; of those that ended, if interrupted."""

    def nothing() -> State:
        Z = np.zeros((table.n, K), np.uint8)
        if warm is not None:
            Z[:, : warm.K] = warm.Z
        return settle_with_reseeds(table, Z)

    budget.best, sample = [], None
    try:
        sample = _sample_for(table, plan, seeds[-1])
        return _fit_fixed(table, sample, K, plan, seeds, warm, spread, budget)
    except KeyboardInterrupt:
        return _rescued(table, sample, plan, budget, nothing)


def _fit_fixed(
    table: Table,
    sample: Sample | None,
    K: int,
    plan: Plan,
    seeds: list[np.random.SeedSequence],
    warm: State | None,
    spread: Spread,
    budget: Budget,
) -> Fitted:
    small = table if sample is None else sample.table
    warm_small = warm if warm is None or sample is None else sample.part(warm)
    arguments: list[tuple[Any, ...]] = [(small, K, plan, i, seed, None, budget) for i, seed in enumerate(seeds[:-1])]
    if warm is not None:
        arguments.append((small, K, plan, 0, seeds[-1], warm_small, budget))
    found = spread(fixed_restart, arguments)
    restarts = [restart for _, restart in found]
    if sample is None:
        best = _first_best([run for run, _ in found], plan.search(), table)
        return Fitted(best if plan.algorithm == "paper" else _settled(table, best, plan, budget), restarts)
    whole = []
    for run in _brought(found):
        means = sample.means(run.state)
        Z = allocate(table, means, plan.search().rule)[0]
        whole.append(refine(table, Z, means, plan.rule, plan.max_iter, budget))
    if warm is not None:  # on the whole table, so that its inertia never exceeds that of fewer features
        rng = np.random.default_rng(seeds[-1])
        whole.append(refine(table, *with_seed(table, warm, rng), plan.rule, plan.max_iter, budget))
    return Fitted(_first_best(whole, plan.search(), table), restarts)


def _settled(table: Table, run: Run, plan: Plan, budget: Budget) -> Run:
    """The end of a chain once more, with rows searched as the user asked; K-features must not find anything."""
    if run.state.K <= MOST_EXHAUSTIVE and plan.rule.exact:
        return run
    last = refine(table, run.state.Z, run.state.means, plan.rule, plan.max_iter, budget)
    return Run(last.state, run.trace + last.trace, last.converged)


def fit_priced(
    table: Table,
    lam: float,
    plan: Plan,
    seeds: list[np.random.SeedSequence],
    spread: Spread,
    budget: Budget,
    known: State | None = None,
) -> Fitted:
    """The best features at a price; ``known`` is a solution to start one more restart from."""
    budget.best, sample = [], None
    try:
        sample = _sample_for(table, plan, seeds[-1])
        return _fit_priced(table, sample, lam, plan, seeds, spread, budget, known)
    except KeyboardInterrupt:
        return _rescued(table, sample, plan, budget, lambda: empty_state(table) if known is None else known)


def _fit_priced(
    table: Table,
    sample: Sample | None,
    lam: float,
    plan: Plan,
    seeds: list[np.random.SeedSequence],
    spread: Spread,
    budget: Budget,
    known: State | None,
) -> Fitted:
    small = table if sample is None else sample.table
    price = lam * small.mass / table.mass
    found = spread(priced_restart, [(small, price, plan, i, seed, budget) for i, seed in enumerate(seeds[:-1])])
    restarts = [restart for _, restart in found]
    if plan.algorithm != "extended":
        return Fitted(_first_best([run for run, _ in found], plan.search(lam), table), restarts)
    search = plan.search(lam)._replace(rule=plan.rule)
    if sample is None:
        starts = [_first_best([run for run, _ in found], search, table)]
    else:
        rows = [allocate(table, sample.means(run.state), plan.search().rule)[0] for run in _brought(found)]
        starts = [Run(settle(table, Z), [], True) for Z in rows]
    starts += [Run(known, [search.objective(known)], True)] if known is not None else []
    nothing = empty_state(table)
    starts.append(Run(nothing, [nothing.inertia], True))
    best = _first_best(starts, search, table)
    whole = [close(table, run, search, budget) for run in (starts[:-1] if sample is not None else [best])]
    whole.append(starts[-1])
    return Fitted(_first_best(whole, search, table), restarts)
