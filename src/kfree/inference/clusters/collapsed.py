"""``algorithm="collapsed"``: rows move one at a time and the centres follow at once (MAD-Bayes, Algorithm 2).

A row joins the cluster whose cost it raises least ("closest" in the paper: the nearest centre is not always it), or
stands alone if every rise exceeds lam. Between two moves nothing changes, so a block of rows is evaluated together;
after a move only the two clusters it touched are evaluated again. The result equals one row at a time.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import csr_matrix

from kfree.families import Array
from kfree.inference.clusters.assign import partition_cost
from kfree.inference.clusters.centres import Centres, Sums
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.inference.clusters.grow import penalised
from kfree.inference.clusters.labelling import Clustering, LocalLabelling
from kfree.inference.clusters.serial import visit
from kfree.inference.clusters.table import Memory, Table
from kfree.inference.goal import Goal
from kfree.inference.labels import compact
from kfree.inference.loop import Budget, Info, Outcome, attempt, run
from kfree.kernels import kernels
from kfree.rows import CsrRows, Rows, cells_of


class CollapsedState(NamedTuple):
    """State between two passes: the partition is in the memory's labels, the centres follow from it."""

    centres: Centres
    rng: np.random.Generator


def fit_collapsed(
    labelling: LocalLabelling, centres: Centres, goal: Goal, budget: Budget, rng: np.random.Generator
) -> Outcome:
    """Assign all rows, then sweep until no row moves; the outcome's state is a Clustering."""
    labelling.assign(centres, goal.lam)
    return move_until_still(Clustering(centres, labelling), goal, budget, rng)


def move_until_still(start: Clustering, goal: Goal, budget: Budget, rng: np.random.Generator) -> Outcome:
    """Sweep until no row moves; starts from the labels that rows have."""
    labelling = start.labelling
    table, memory, weight = labelling.table, labelling.memory, labelling.total_weight
    _, least, _ = _refresh(table, memory, goal.lam)

    def step(state: CollapsedState) -> tuple[CollapsedState, Info]:
        nonlocal least
        before = memory.labels.copy()
        order = visit(table, goal.order, state.rng)
        # a sweep that is interrupted leaves a partition, too
        moved = attempt(lambda: move_rows(table, memory, goal, order, budget), lambda: weight, budget)
        centres, objective, scale = _refresh(table, memory, goal.lam)
        # sums kept up to date row by row carry rounding: what gained nothing is undone
        if moved and objective >= least:
            memory.labels[:] = before
            moved, (centres, objective, scale) = 0.0, _refresh(table, memory, goal.lam)
        least = objective
        changed = 1.0 if budget.spent else moved / weight  # a pass that was cut short tells nothing of the rest
        return CollapsedState(centres, state.rng), Info(objective, scale, changed, 0, centres.mean.shape[0])

    first = CollapsedState(start.centres, rng)
    outcome = run(step, first, budget, phase="collapsed", tol=goal.tol, max_iter=goal.max_iter)
    return outcome._replace(state=Clustering(outcome.state.centres, labelling))


def _refresh(table: Table, memory: Memory, lam: float) -> tuple[Centres, float, float]:
    """Centres and objective of the partition in ``memory``, from the data; empty clusters go."""
    K = int(memory.labels.max()) + 1
    memory.sums = table.rows.exact_sums(memory.labels, K)
    total, mass = memory.sums.values()
    held = mass > 0
    memory.relabel(compact(held))
    memory.forget()
    centres = Centres(table.geometry, table.geometry.centre(total[held], mass[held]))
    cost = partition_cost(table, centres, memory)
    sums = Sums(total[held], mass[held], 0.0, cost, 0, np.full(len(centres.mean), np.inf))
    return centres, penalised(table.geometry, centres, sums, lam), cost


def _less(total: Array, part: Array) -> Array:
    """A sum without one of its parts; what is left of nothing is nothing, not rounding."""
    rest = total - part
    return np.where(np.abs(rest) <= CLUSTERS.nothing_left * np.abs(part), 0.0, rest)


class Clusters:
    """Sums of the clusters, kept up to date; slots of vanished clusters are used again."""

    def __init__(self, total: Array, mass: Array, count: Array):
        self.total, self.mass, self.count = total, mass, count

    def put(self, k: int, x: Array, w: float) -> None:
        """A row joins."""
        self.total[k] += w * x
        self.mass[k] += w
        self.count[k] += 1

    def take(self, k: int, x: Array, w: float) -> None:
        """A row leaves."""
        self.count[k] -= 1
        if self.count[k] == 0:  # exactly empty: no rounding may be left behind
            self.total[k], self.mass[k] = 0.0, 0.0
        else:
            self.total[k] = _less(self.total[k], w * x)
            self.mass[k] = max(self.mass[k] - w, 1e-15 * self.mass[k])

    def room(self, most: float) -> bool:
        """Whether one more cluster is allowed."""
        return (self.count > 0).sum() < most

    def slot(self) -> int:
        """Where a new cluster goes."""
        empty = np.flatnonzero(self.count == 0)
        if empty.size:
            return int(empty[0])
        self.total = np.concatenate([self.total, np.zeros_like(self.total)])
        self.mass = np.concatenate([self.mass, np.zeros_like(self.mass)])
        self.count = np.concatenate([self.count, np.zeros_like(self.count)])
        return int(self.count.size // 2)


class Tour(NamedTuple):
    """Rows that are to be visited, and the clusters they are in."""

    table: Table
    memory: Memory
    lam: float
    order: Array  # rows, all of which have weight
    weight: Array  # (n,)
    total: Array  # (K, p)
    mass: Array  # (K,)
    members: Array  # (K,) rows that have weight
    most: float  # clusters that there may be
    budget: Budget

    @property
    def pseudo(self) -> Array:
        """What the prior adds to the sums of every cluster, (p,)."""
        geometry = self.table.geometry
        return np.zeros(self.table.rows.p) if geometry.prior_mean is None else geometry.eta * geometry.prior_mean

    def in_calls(self, size: int, visit: Callable[[Array], tuple[int, float]]) -> float:
        """Visit the rows in order, ``size`` in a call, as long as the budget allows. A call tells how many it visited,
        if not all, and the weight that moved; returns that of all calls."""
        moved, start = 0.0, 0
        while start < self.order.size and not self.budget.spent:
            visited, weight = visit(self.order[start : start + size])
            start, moved = start + visited, moved + weight
        return moved


def move_rows(table: Table, memory: Memory, goal: Goal, order: Array, budget: Budget) -> float:
    """One sweep over the rows, or as much of it as the budget allows; returns the weight that moved.

    Rows without weight, and those that are too heavy, stay where they are.
    """
    K = int(memory.labels.max()) + 1
    total, mass = table.rows.sums(memory.labels, K)
    weight = table.rows.weights(slice(0, table.n))
    count = np.bincount(memory.labels[weight > 0], minlength=K)
    order = order[may_leave(weight)[order]]
    tour = Tour(table, memory, goal.lam, order, weight, total, mass, count, float(goal.max_clusters), budget)
    family = table.geometry.family
    if family.entropic and _tells(tour):
        return _move_counts(tour)
    if family.euclidean_factor is not None and family.smoothable:
        return _move_points(tour, family.euclidean_factor)
    return _move_blocks(tour)


def may_leave(weight: Array) -> Array:
    """Mask of the rows that move one at a time: those that have weight, and not so much that sums would lose what they
    leave behind."""
    lightest = float(weight.min(where=weight > 0, initial=np.inf))
    return (weight > 0) & (weight <= CLUSTERS.too_heavy * lightest)


def _tells(tour: Tour) -> bool:
    """Whether rises that are differences of entropies stand out from their rounding."""
    rows, weight = tour.table.rows, tour.weight
    if isinstance(rows, CsrRows):
        sums = np.asarray(rows.X.sum(axis=1), dtype=float).ravel() * (rows.scale if rows.scale.size else 1.0)
    else:
        sums = np.concatenate(list(rows.each(lambda span: rows.dense(span).sum(axis=1))))
    largest, whole = float((weight * sums).max()), float(tour.total.sum())
    return (
        np.finfo(float).eps * largest * (1.0 + abs(np.log(max(whole, 1e-300)))) <= CLUSTERS.entropy_rounding * tour.lam
    )


def _move_counts(tour: Tour) -> float:
    """A sweep over counts, of which only those columns of a row are looked at that are not zero, compiled."""
    labels, pseudo, eta = tour.memory.labels, tour.pseudo, tour.table.geometry.eta
    total = tour.total + pseudo
    state: tuple[Array, ...] = (total.T.copy(), total.sum(axis=1), tour.mass + eta, tour.members)
    rule = (pseudo, eta, tour.lam, CLUSTERS.least_gain, CLUSTERS.nothing_left, tour.most)
    entries_each = max(1, tour.table.rows.entries // tour.table.n)

    def visit(some: Array) -> tuple[int, float]:
        nonlocal state
        some = some[: max(1, CLUSTERS.entropies // (entries_each * state[-1].size))]
        theirs, (X, scale) = labels[some], _sparse(tour.table.rows, some)
        entries = (*cells_of(X), scale, tour.weight[some], np.arange(some.size))
        visited, moved = kernels().move_counts(*entries, *rule, *state, theirs)
        labels[some] = theirs
        if visited < some.size:
            state = _twice(state, (pseudo, pseudo.sum(), eta, 0))
        return visited, moved

    return tour.in_calls(CLUSTERS.row_block, visit)


def _sparse(rows: Rows, some: Array) -> tuple[csr_matrix, Array]:
    """Some rows without their zeros, and what they are to be multiplied by, if anything."""
    if isinstance(rows, CsrRows):
        part = rows.take(some, np.empty(0))
        return part.X, part.scale
    return csr_matrix(rows.dense(some)), np.empty(0)


def _move_points(tour: Tour, factor: float) -> float:
    """A sweep by squared distance, compiled."""
    rows, pseudo, eta = tour.table.rows, tour.pseudo, tour.table.geometry.eta
    sums, mass = (tour.total + pseudo).T.copy(), tour.mass + eta
    state: tuple[Array, ...] = (sums, sums / np.where(mass > 0, mass, 1.0), mass, tour.members)
    rule = (factor, pseudo, eta, tour.lam, CLUSTERS.least_gain, CLUSTERS.nothing_left, tour.most)

    def visit(some: Array) -> tuple[int, float]:
        nonlocal state
        some = some[: max(1, CLUSTERS.distances // state[0].size)]
        entries = (rows.dense(some), tour.weight[some], some)
        visited, moved = kernels().move_points(*entries, *rule, *state, tour.memory.labels)
        if visited < some.size:
            state = _twice(state, (pseudo, pseudo, eta, 0))
        return visited, moved

    return tour.in_calls(max(1, CLUSTERS.row_entries // rows.p), visit)


def _twice(state: tuple[Array, ...], empty: tuple[Any, ...]) -> tuple[Array, ...]:
    """Arrays whose last axis are clusters, with as many more places for new ones as there are."""
    more = (np.broadcast_to(np.expand_dims(value, -1), array.shape) for array, value in zip(state, empty))
    return tuple(np.concatenate([array, places], axis=-1, dtype=array.dtype) for array, places in zip(state, more))


def _move_blocks(tour: Tour) -> float:
    """A sweep for any family, in blocks."""
    clusters = Clusters(tour.total, tour.mass, tour.members)
    goal = Goal(tour.lam, max_clusters=tour.most)

    def visit(rows: Array) -> tuple[int, float]:
        rows = rows[: max(1, CLUSTERS.row_entries // max(clusters.total.size, 1))]
        return rows.size, move_block(tour.table, rows, tour.memory.labels, clusters, goal)

    return tour.in_calls(CLUSTERS.row_block, visit)


class Company(Protocol):
    """How the rows of a block are spread over the clusters that their groups hold."""

    def widen(self, K: int) -> None:
        """There are K clusters now."""

    def move(self, t: int, a: int, b: int) -> None:
        """A row has left cluster a for b."""

    def joining(self, t: slice) -> Array:
        """(m, K) 1 where the group of a row does not hold a cluster yet."""

    def leaving(self, t: slice, labels: Array) -> Array:
        """(m,) 1 for rows that are alone in their local cluster."""


def move_block(
    table: Table, rows: Array, labels: Array, clusters: Clusters, goal: Goal, company: Company | None = None
) -> float:
    """Visit a block of rows in order; labels are changed in place. Returns the weight that moved.

    ``rise[t, k]`` is what joining cluster k costs row t beyond standing alone. With ``company`` a cluster that the
    row's group does not hold costs lam_local more, and a row that is alone in its local cluster gives that back.
    """
    x, weight = table.rows.dense(rows), table.rows.weights(rows)
    rise = rises(table, x, weight, clusters, np.arange(clusters.count.size))
    home = home_rises(table, x, weight, clusters, labels[rows], goal.lam)
    moved, t = 0.0, 0
    while True:
        t, best = _next_mover(slice(t, rows.size), rise, home, labels[rows], _alone(clusters, goal), goal, company)
        if t >= rows.size:
            return moved
        a = int(labels[rows[t]])
        clusters.take(a, x[t], weight[t])
        b = clusters.slot() if best < 0 else best
        clusters.put(b, x[t], weight[t])
        if clusters.count.size > rise.shape[1]:
            more = np.full((rows.size, clusters.count.size - rise.shape[1]), np.inf)
            rise = np.concatenate([rise, more], axis=1)
            if company is not None:
                company.widen(clusters.count.size)
        if company is not None:
            company.move(t, a, b)
        labels[rows[t]] = b
        moved += weight[t]
        t += 1
        rest, touched = slice(t, rows.size), np.array([a, b])
        rise[rest, touched] = rises(table, x[rest], weight[rest], clusters, touched)
        stale = t + np.flatnonzero(np.isin(labels[rows[rest]], touched))
        home[stale] = home_rises(table, x[stale], weight[stale], clusters, labels[rows[stale]], goal.lam)


def _alone(clusters: Clusters, goal: Goal) -> float:
    """What a cluster of its own costs a row; +inf where there is no room for one."""
    return goal.lam_local + goal.lam if clusters.room(goal.max_clusters) else np.inf


def _next_mover(
    rest: slice, rise: Array, home: Array, labels: Array, alone: float, goal: Goal, company: Company | None
) -> tuple[int, int]:
    """The next row that gains by leaving, and where it goes (-1: a cluster of its own); its own cluster wins ties."""
    away, here = rise[rest].copy(), home[rest]
    if company is not None:
        away += goal.lam_local * company.joining(rest)
        here = here + goal.lam_local * company.leaving(rest, labels[rest])
    away[np.arange(away.shape[0]), labels[rest]] = np.inf
    option = away.min(axis=1, initial=np.inf)
    stake = np.where(np.isfinite(here), here, 0.0) + goal.lam_local + (goal.lam if np.isfinite(goal.lam) else 0.0)
    leaves = np.flatnonzero(np.minimum(option, alone) < here - CLUSTERS.least_gain * stake)
    if not leaves.size:
        return labels.size, -1
    t = int(leaves[0])
    return rest.start + t, int(away[t].argmin()) if option[t] <= alone else -1


def rises(table: Table, x: Array, weight: Array, clusters: Clusters, which: Array) -> Array:
    """join_cost of each row, as a cluster of its own, with some clusters; +inf for empty ones."""
    rise = np.full((x.shape[0], which.size), np.inf)
    held = np.flatnonzero(clusters.count[which] > 0)
    if held.size and x.shape[0]:
        k = which[held]
        rise[:, held] = table.geometry.join_cost(
            clusters.total[k][None], clusters.mass[k][None], (weight[:, None] * x)[:, None], weight[:, None]
        )
    return rise


def home_rises(table: Table, x: Array, weight: Array, clusters: Clusters, labels: Array, lam: float) -> Array:
    """What it costs each row to be where it is: join_cost with the rest of its cluster, or lam if it is alone (without
    a price, nothing)."""
    home = np.full(x.shape[0], lam if np.isfinite(lam) else 0.0)
    company = np.flatnonzero(clusters.count[labels] > 1)
    if company.size:
        k, wx = labels[company], weight[company, None] * x[company]
        mass = np.maximum(clusters.mass[k] - weight[company], 1e-15 * clusters.mass[k])
        home[company] = table.geometry.join_cost(_less(clusters.total[k], wx), mass, wx, weight[company])
    return home
