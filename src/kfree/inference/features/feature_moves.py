"""Moves beyond the paper: take a feature out, put a new one in, polish, and keep what is better."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.features.allocation import Means, State, residual_squares, settle, settle_with_reseeds, solve
from kfree.inference.features.best_rows import MOST_EXHAUSTIVE, Rule
from kfree.inference.features.bp_means import run_bp
from kfree.inference.features.collapsed_bp import run_collapsed
from kfree.inference.features.feature_seeds import Seeding, add_feature
from kfree.inference.features.feature_table import Table
from kfree.inference.features.k_features import Run, refine
from kfree.inference.loop import Budget

#: Failures in a row after which a chain of moves ends.
PATIENCE = 15
#: Moves of BP-means, in turn.
MOVES = ("swap", "swap", "grow", "swap", "shrink")
#: Rows up to which a polish may give single rows features of their own.
FEW_ROWS = 64
#: Rows up to which an allocation is polished with the means solved for at every visit.
POLISH_ROWS = 8192
#: Entries up to which sparse rows are made dense for that.
POLISH_ENTRIES = 20_000_000
# A trial must be better by this share of the sum of squares.
_BETTER = 1e-9


class Search(NamedTuple):
    """How a fit searches."""

    rule: Rule
    max_iter: int
    lam: float = np.inf  # price of a feature; inf: their number is fixed
    patience: int = PATIENCE

    def objective(self, state: State) -> float:
        """What is minimised."""
        return state.inertia + (self.lam * state.K if self.lam < np.inf else 0.0)


def polishable(table: Table) -> bool:
    """Whether the collapsed moves are tried: they look at dense rows, many times."""
    return table.n <= POLISH_ROWS and not (table.sparse and table.n * table.p > POLISH_ENTRIES)


def removal_costs(table: Table, state: State) -> Array:
    """By how much the inertia rises if a feature is taken out, the bits of the others staying."""
    S, _ = table.sums(state.Z)
    inverse = np.linalg.pinv(S, hermitian=True).diagonal()[1 if table.intercept else 0 :]
    length = np.einsum("ij,ij->i", state.means.A, state.means.A)
    return np.where(length > 0, length / np.maximum(inverse, np.finfo(float).tiny), 0.0)


def without(table: Table, state: State, k: int) -> State:
    """The best means without feature k."""
    Z = np.ascontiguousarray(np.delete(state.Z, k, axis=1))
    found = solve(table, Z)
    return State(Z, found.means, found.inertia)


def with_seed(table: Table, state: State, rng: np.random.Generator) -> tuple[Array, Means]:
    """A drawn residual as one more feature, for all rows that it brings nearer."""
    left = residual_squares(table, state.Z, state.means)
    seeding = add_feature(table, Seeding(state.Z, state.means, left), rng)
    return seeding.Z, seeding.means


def draw_feature(cost: Array, rng: np.random.Generator) -> int:
    """A feature, the more likely the less it costs to take it out."""
    chance = 1.0 / np.maximum(cost, 1e-12 * max(cost.max(), np.finfo(float).tiny))
    chance = np.cumsum(chance / chance.max())
    return int(min(np.searchsorted(chance, rng.random() * chance[-1], side="right"), cost.size - 1))


def prune(table: Table, state: State, lam: float) -> State:
    """Take out features that cost less than lam to do without, the cheapest first."""
    while state.K:
        cost = removal_costs(table, state)
        k = int(cost.argmin())
        if not cost[k] < lam - _BETTER * lam - table.share(_BETTER):
            break
        state = without(table, state, k)
    return state


def polish(table: Table, state: State, search: Search, budget: Budget) -> Run:
    """Single rows with the means solved for, then (with a price) features that do not pay; until neither helps.

    Features of single rows are left to ``close`` unless there are few rows: a poor allocation would get one for each
    row that it fits badly, where a shared one is due.
    """
    run, K = Run(state, [search.objective(state)], True), state.K
    lam = search.lam if table.n <= FEW_ROWS else np.inf
    while polishable(table):
        found = run_collapsed(table, run.state, lam, search.rule, search.max_iter, budget)
        run = Run(found.state, [*run.trace, search.objective(found.state)], found.converged)
        kept = prune(table, run.state, search.lam) if search.lam < np.inf else run.state
        if kept.K == run.state.K or budget.spent:
            break
        run = _then(run, Run(kept, [search.objective(kept)], True))
    if search.lam == np.inf and run.state.K < K:  # columns that became dependent are owed
        padded = np.concatenate([run.state.Z, np.zeros((table.n, K - run.state.K), np.uint8)], axis=1)
        run = run._replace(state=settle_with_reseeds(table, padded))
    return run


def _then(before: Run, after: Run) -> Run:
    """Two runs as one."""
    return Run(after.state, before.trace + after.trace, after.converged)


def improve(table: Table, Z: Array, means: Means, search: Search, budget: Budget) -> Run:
    """K-features, then the polish."""
    run = refine(table, Z, means, search.rule, search.max_iter, budget)
    state = run.state
    if search.lam < np.inf:
        state = prune(table, settle(table, state.Z), search.lam)  # what does not pay need not be polished
    polished = polish(table, state, search, budget)
    return Run(polished.state, polished.trace, polished.converged and (run.converged or polishable(table)))


def _trial(table: Table, state: State, move: str, search: Search, rng: np.random.Generator, budget: Budget) -> Run:
    if move != "grow" and state.K:
        state = without(table, state, draw_feature(removal_costs(table, state), rng))
    Z, means = (state.Z, state.means) if move == "shrink" else with_seed(table, state, rng)
    return improve(table, Z, means, search, budget)


def chain(table: Table, run: Run, search: Search, rng: np.random.Generator, budget: Budget) -> Run:
    """Moves until so many in a row have failed: swaps, and with a price one feature more or less, too."""
    failures, turn = 0, 0
    moves = MOVES if search.lam < np.inf else ("swap",)
    while failures < search.patience and not budget.spent:
        if run.state.inertia <= 1e-13 * table.total and search.lam == np.inf:
            break
        if not run.state.K and search.lam == np.inf:
            break
        try:
            trial = _trial(table, run.state, moves[turn % len(moves)], search, rng, budget)
        except KeyboardInterrupt:  # what the chain has so far is kept
            budget.interrupted = True
            break
        value = search.objective(trial.state)
        if value < search.objective(run.state) - table.share(_BETTER):
            run, failures = Run(trial.state, [*run.trace, value], trial.converged), 0  # and the same move again
        else:
            failures, turn = failures + 1, turn + 1
    return run


def close(table: Table, run: Run, search: Search, budget: Budget) -> Run:
    """BP-means, its collapsed form and prunes until none helps."""
    while True:
        run = _then(run, run_bp(table, run.state.Z, run.state.means, search.lam, search.rule, search.max_iter, budget))
        before = run.state
        if polishable(table):
            run = _then(run, run_collapsed(table, before, search.lam, search.rule, search.max_iter, budget))
        kept = prune(table, run.state, search.lam)
        # with many features the collapsed form tries single bits only, and rows may have better combinations again
        fell = search.objective(run.state) < search.objective(before) - table.share(_BETTER)
        moved = before.K > MOST_EXHAUSTIVE and fell
        if (kept.K == run.state.K and not moved) or budget.spent:
            return run
        run = _then(run, Run(kept, [search.objective(kept)], run.converged))
