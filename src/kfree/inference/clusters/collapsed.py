"""``algorithm="collapsed"``: rows move one at a time and the centres follow at once (MAD-Bayes, Algorithm 2).

A row joins the cluster whose cost it raises least ("closest" in the paper: the nearest centre is not always it), or
stands alone if every rise exceeds lam. Between two moves nothing changes, so a block of rows is evaluated together;
after a move only the two clusters it touched are evaluated again. The result equals one row at a time.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from kfree.families import Array
from kfree.inference.clusters.assign import Centres, Sums, own_cost
from kfree.inference.clusters.grow import penalised
from kfree.inference.clusters.serial import visit
from kfree.inference.clusters.table import Memory, Table
from kfree.inference.loop import Budget, Info, Outcome, run
from kfree.kernels import kernels
from kfree.rows import CsrRows, Rows

#: Rows evaluated together, limited by the size of the temporary (rows x clusters x columns).
_BLOCK, _ENTRIES = 128, 500_000
#: A row leaves its cluster only for a gain above this share of what is at stake.
GAIN = 1e-10
# Share of a part that may be left of a sum without it by rounding.
_TINY = 1e-12
# Rows of counts that are visited in one call, at most, their entropies that are formed in it, and squared distances of
# other rows by column: after it time and interrupts are looked at.
_VISITS, _TERMS, _LOOKS = 128, 2_000_000, 20_000_000
# Rounding of entropies, as a share of lam, with which they still tell where a row belongs.
_ROUNDING = 1e-4


class Collapsed(NamedTuple):
    """State between two passes: the partition is in the memory's labels, the centres follow from it."""

    centres: Centres
    rng: np.random.Generator


def fit_collapsed(
    table: Table,
    centres: Centres,
    memory: Memory,
    lam: float,
    budget: Budget,
    *,
    order: str | Array,
    rng: np.random.Generator,
    max_clusters: float,
    tol: float,
    max_iter: int,
) -> Outcome:
    """Sweep until no row moves; starts from the partition in ``memory``."""
    weight = table.rows.total_weight()

    _, least, _ = _refresh(table, memory, lam)

    def step(state: Collapsed) -> tuple[Collapsed, Info]:
        nonlocal least
        before = memory.labels.copy()
        try:
            moved = move_rows(table, memory, lam, visit(table, order, state.rng), max_clusters, budget)
        except KeyboardInterrupt:  # the labels are a partition at any time
            budget.interrupted, moved = True, weight
        centres, objective, scale = _refresh(table, memory, lam)
        # sums kept up to date row by row carry rounding: what gained nothing is undone
        if moved and objective >= least:
            memory.labels[:] = before
            moved, (centres, objective, scale) = 0.0, _refresh(table, memory, lam)
        least = objective
        changed = 1.0 if budget.spent else moved / weight  # a pass that was cut short tells nothing of the rest
        info = Info(objective, scale, changed, 0, centres.mean.shape[0])
        return Collapsed(centres, state.rng), info

    return run(step, Collapsed(centres, rng), budget, phase="collapsed", tol=tol, max_iter=max_iter)


def _refresh(table: Table, memory: Memory, lam: float) -> tuple[Centres, float, float]:
    """Centres and objective of the partition in ``memory``, from the data; empty clusters go."""
    K = int(memory.labels.max()) + 1
    total, mass = table.rows.sums(memory.labels, K)
    held = mass > 0
    remap = np.zeros(K, np.int32)
    remap[held] = np.arange(held.sum())
    memory.labels[:] = remap[memory.labels]
    memory.low[:] = -np.inf
    centres = Centres(table.geometry, table.geometry.centre(total[held], mass[held]))
    cost = _partition_cost(table, centres, memory)
    sums = Sums(total[held], mass[held], 0.0, cost, 0, np.full(len(centres.mean), np.inf))
    return centres, penalised(table, centres, sums, lam), cost


def _partition_cost(table: Table, centres: Centres, memory: Memory) -> float:
    def of_span(span: slice) -> float:
        cost = own_cost(table, span, centres, memory.labels[span])
        memory.cost[span] = cost
        weight = table.rows.weights(span)
        return float((weight * np.where(weight > 0, cost, 0.0)).sum())

    return float(sum(table.rows.each(of_span)))


def _less(total: Array, part: Array) -> Array:
    """A sum without one of its parts; what is left of nothing is nothing, not rounding."""
    rest = total - part
    return np.where(np.abs(rest) <= _TINY * np.abs(part), 0.0, rest)


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


def move_rows(
    table: Table, memory: Memory, lam: float, order: Array, max_clusters: float, budget: Budget | None = None
) -> float:
    """One sweep over the rows, or as much of it as the budget allows; returns the weight that moved.

    Rows of weight zero stay where they are.
    """
    K = int(memory.labels.max()) + 1
    total, mass = table.rows.sums(memory.labels, K)
    weight = table.rows.weights(slice(0, table.n))
    count = np.bincount(memory.labels[weight > 0], minlength=K)
    order = order[weight[order] > 0]
    tour = Tour(table, memory, lam, order, weight, total, mass, count, float(max_clusters), budget or Budget())
    family = table.geometry.family
    if family.entropic and _tells(tour):
        return _move_counts(tour)
    if family.euclidean_factor is not None and family.smoothable:
        return _move_points(tour, family.euclidean_factor)
    return _move_blocks(tour)


def _tells(tour: Tour) -> bool:
    """Whether rises that are differences of entropies stand out from their rounding."""
    rows, weight = tour.table.rows, tour.weight
    if isinstance(rows, CsrRows):
        sums = np.asarray(rows.X.sum(axis=1), dtype=float).ravel() * (rows.scale if rows.scale.size else 1.0)
    else:
        sums = np.concatenate(list(rows.each(lambda span: rows.dense(span).sum(axis=1))))
    largest, whole = float((weight * sums).max()), float(tour.total.sum())
    return np.finfo(float).eps * largest * (1.0 + abs(np.log(max(whole, 1e-300)))) <= _ROUNDING * tour.lam


def _move_counts(tour: Tour) -> float:
    """A sweep over counts, of which only those columns of a row are looked at that are not zero, compiled."""
    labels, pseudo, eta = tour.memory.labels, tour.pseudo, tour.table.geometry.eta
    total = tour.total + pseudo
    state: tuple[Array, ...] = (total.T.copy(), total.sum(axis=1), tour.mass + eta, tour.members)
    rule = (pseudo, eta, tour.lam, GAIN, _TINY, tour.most)
    entries_each = max(1, tour.table.rows.entries // tour.table.n)

    def visit(some: Array) -> tuple[int, float]:
        nonlocal state
        some = some[: max(1, _TERMS // (entries_each * state[-1].size))]
        theirs, (X, scale) = labels[some], _sparse(tour.table.rows, some)
        entries = (X.data, X.indices, X.indptr, scale, tour.weight[some], np.arange(some.size))
        visited, moved = kernels().move_counts(*entries, *rule, *state, theirs)
        labels[some] = theirs
        if visited < some.size:
            state = _twice(state, (pseudo, pseudo.sum(), eta, 0))
        return visited, moved

    return tour.in_calls(_VISITS, visit)


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
    rule = (factor, pseudo, eta, tour.lam, GAIN, _TINY, tour.most)

    def visit(some: Array) -> tuple[int, float]:
        nonlocal state
        some = some[: max(1, _LOOKS // state[0].size)]
        entries = (rows.dense(some), tour.weight[some], some)
        visited, moved = kernels().move_points(*entries, *rule, *state, tour.memory.labels)
        if visited < some.size:
            state = _twice(state, (pseudo, pseudo, eta, 0))
        return visited, moved

    return tour.in_calls(max(1, _ENTRIES // rows.p), visit)


def _twice(state: tuple[Array, ...], empty: tuple[Any, ...]) -> tuple[Array, ...]:
    """Arrays whose last axis are clusters, with as many more places for new ones as there are."""
    more = (np.broadcast_to(np.expand_dims(value, -1), array.shape) for array, value in zip(state, empty))
    return tuple(np.concatenate([array, places], axis=-1, dtype=array.dtype) for array, places in zip(state, more))


def _move_blocks(tour: Tour) -> float:
    """A sweep for any family, in blocks."""
    clusters = Clusters(tour.total, tour.mass, tour.members)

    def visit(rows: Array) -> tuple[int, float]:
        rows = rows[: max(1, _ENTRIES // max(clusters.total.size, 1))]
        weight = tour.weight[rows]
        return rows.size, _move_block(tour.table, tour.memory, tour.lam, rows, weight, clusters, tour.most)

    return tour.in_calls(_BLOCK, visit)


def _move_block(
    table: Table,
    memory: Memory,
    lam: float,
    rows: Array,
    weight: Array,
    clusters: Clusters,
    max_clusters: float,
) -> float:
    """Visit a block in order. ``rise[t, k]`` is what joining cluster k costs row t beyond standing alone."""
    x = table.rows.dense(rows)
    rise = rises(table, x, weight, clusters, np.arange(clusters.count.size))
    home = home_rises(table, x, weight, clusters, memory.labels[rows], lam)
    moved, t = 0.0, 0
    while True:
        t += _first_mover(rise[t:], home[t:], memory.labels[rows[t:]], lam, clusters.room(max_clusters))
        if t >= rows.size:
            return moved
        a = int(memory.labels[rows[t]])
        rise[t, a] = np.inf
        best = int(rise[t].argmin())
        clusters.take(a, x[t], weight[t])
        b = clusters.slot() if rise[t, best] > lam and clusters.room(max_clusters) else best
        clusters.put(b, x[t], weight[t])
        memory.labels[rows[t]] = b
        moved += weight[t]
        if clusters.count.size > rise.shape[1]:
            more = np.full((rows.size, clusters.count.size - rise.shape[1]), np.inf)
            rise = np.concatenate([rise, more], axis=1)
        t += 1
        rest = slice(t, rows.size)
        touched = np.array([a, b])
        rise[rest, touched] = rises(table, x[rest], weight[rest], clusters, touched)
        stale = t + np.flatnonzero(np.isin(memory.labels[rows[rest]], touched))
        home[stale] = home_rises(table, x[stale], weight[stale], clusters, memory.labels[rows[stale]], lam)


def _first_mover(rise: Array, home: Array, labels: Array, lam: float, room: bool) -> int:
    """How many rows stay before the first that gains by leaving; their own cluster wins ties."""
    away = rise.copy()
    away[np.arange(labels.size), labels] = np.inf
    option = away.min(axis=1, initial=np.inf)
    if room:
        option = np.minimum(option, lam)
    stake = np.where(np.isfinite(home), home, 0.0) + (lam if np.isfinite(lam) else 0.0)
    leaves = np.flatnonzero(option < home - GAIN * stake)
    return int(leaves[0]) if leaves.size else labels.size


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
