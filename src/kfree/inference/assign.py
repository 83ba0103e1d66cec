"""Assignment of all rows to their nearest centres: exact, in blocks, skipping rows that cannot change.

Products are looked at in single precision first, whatever the data; where their error bound leaves a decision open it
is taken again in float64, and where that leaves it open by the divergence's own formula.
"""

from typing import Any, NamedTuple

import numpy as np

from kfree.families import Affine, Array, Geometry
from kfree.inference.table import Memory, Table
from kfree.kernels import kernels
from kfree.rows.base import Nearest, add_up
from kfree.rows.threads import in_order

# Entries of a temporary (rows x centres x columns) in the decisive comparison.
_PIECE = 250_000
# Share of rows that single precision may leave open before it is given up.
_TOO_OFTEN = 0.2
# Rows a thread takes from a list at a time: at least, at most.
_SHARE = (2048, 16384)


class Centres(NamedTuple):
    """Centres in the two forms in which they are used."""

    mean: Array  # (K, p)
    affine: Affine


def make_centres(geometry: Geometry, mean: Array) -> Centres:
    """Centres with their affine form."""
    return Centres(mean, geometry.affine(mean))


class Sums(NamedTuple):
    """What an assignment returns: only this crosses a block border."""

    total: Array  # (K, p) weighted sums of rows
    mass: Array  # (K,) weights
    changed: float  # weight of the rows that changed label
    cost: float  # weighted sum of divergences
    tied: int  # rows whose two least costs are exactly equal


def exact_costs(table: Table, rows: Array, mean: Array) -> Array:
    """Divergences (m, K) of a few rows by the family's formula."""
    costs = np.empty((len(rows), mean.shape[0]))
    step = max(1, _PIECE // max(mean.size, 1))
    for start in range(0, len(rows), step):
        piece = slice(start, start + step)
        costs[piece] = table.geometry.divergence(table.rows.dense(rows[piece])[:, None, :], mean[None])
    return costs


def exact_own(table: Table, rows: Array, mean: Array, labels: Array) -> Array:
    """Divergences (m,) of a few rows from one centre each, by the family's formula."""
    costs = np.empty(len(rows))
    step = max(1, _PIECE // max(mean.shape[1], 1))
    for start in range(0, len(rows), step):
        piece = slice(start, start + step)
        costs[piece] = table.geometry.divergence(table.rows.dense(rows[piece]), mean[labels[piece]])
    return costs


def own_cost(table: Table, rows: slice | Array, centres: Centres, labels: Array) -> Array:
    """Divergences (m,) of rows from the centres in ``labels``, float64; +inf where a centre excludes a row."""
    family = table.geometry.family
    if family.euclidean_factor is not None:
        return family.euclidean_factor * table.rows.distance(rows, labels, centres.mean)
    cost = table.base[rows] + table.rows.own(rows, labels, centres.affine)
    return family.divergence_at_infinity(np.maximum(cost, 0.0))


def nearest(table: Table, rows: slice | Array, centres: Centres) -> tuple[Nearest, int]:
    """The two least relative costs of some rows, with every open decision settled; and the number of ties."""
    base = table.base[rows]
    found, unsure = table.rows.nearest(rows, base, centres.affine, norms=table.norms())
    if centres.mean.shape[0] == 1 or not unsure.size:
        return found, 0
    if isinstance(rows, slice):
        rows = np.arange(rows.start, rows.stop)
    if table.rows.dtype == np.float32:
        if unsure.size > _TOO_OFTEN * len(base):  # single precision decides too little here: look once, not twice
            table.rows.dtype = np.dtype(np.float64)
        again, still = table.rows.nearest(rows[unsure], base[unsure], centres.affine, np.float64)
        for mine, theirs in zip(found, again):
            mine[unsure] = theirs
        unsure = unsure[still]
    if not unsure.size:
        return found, 0
    costs = exact_costs(table, rows[unsure], centres.mean)
    line = np.arange(unsure.size)
    best = costs.argmin(axis=1)
    least = costs[line, best]
    costs[line, best] = np.inf
    second = costs.min(axis=1)
    found.labels[unsure] = best
    with np.errstate(invalid="ignore"):  # inf - inf: a row that every centre excludes
        found.least[unsure] = np.nan_to_num(least - base[unsure], nan=np.inf)
        found.second[unsure] = np.nan_to_num(second - base[unsure], nan=np.inf)
    return found, int((least == second).sum())


def nearest_spread(table: Table, rows: Array, centres: Centres) -> Nearest:
    """``nearest`` of a list of rows, in parallel (not to be called from within a span)."""
    share = int(np.clip(rows.size // 4, *_SHARE))
    pieces = [rows[start : start + share] for start in range(0, max(rows.size, 1), share)]
    parts = [found for found, _ in in_order(lambda piece: nearest(table, piece, centres), pieces)]
    return parts[0] if len(parts) == 1 else Nearest(*map(np.concatenate, zip(*parts)))


def assign(table: Table, centres: Centres, memory: Memory, lam: float | None = None) -> Sums:
    """Assign every row to its nearest centre (ties: lowest index) and return the sums of the clusters.

    With ``lam`` the costs near the opening threshold are exact as well. ``memory.low`` must hold for ``centres``
    (see ``loosen``); rows whose own cost stays below it are not compared with any other centre.
    """
    rows, K = table.rows, centres.mean.shape[0]

    def of_span(span: slice) -> tuple[tuple[Array, Array], float, float, int]:
        before, base = memory.labels[span], table.base[span]
        labels, cost, low = before.copy(), memory.cost[span], memory.low[span]
        ties = 0
        if before[0] >= 0 and np.isfinite(low).any():
            cost[:] = own_cost(table, span, centres, labels)
            rows_left = np.empty(base.size, np.intp)
            left = rows_left[: kernels().unsettled(cost, base, centres.affine.size, low, rows_left)]
            if left.size:
                found, ties = nearest(table, span.start + left, centres)
                labels[left] = found.labels
                low[left] = base[left] + found.second - 2 * found.slack
                fresh = left[labels[left] != before[left]]
                if fresh.size:
                    cost[fresh] = own_cost(table, span.start + fresh, centres, labels[fresh])
        else:
            found, ties = nearest(table, span, centres)
            labels = found.labels
            low[:] = base + found.second - 2 * found.slack
            cost[:] = own_cost(table, span, centres, labels)
        if lam is not None and np.isfinite(lam):
            _settle_thresholds(table, span, centres, labels, cost, lam)
        weight = rows.weight[span] if rows.weight.size else None
        moved = labels != before
        changed = float(np.count_nonzero(moved) if weight is None else weight[moved].sum())
        memory.labels[span] = labels
        total, mass = np.zeros((K, rows.p)), np.zeros(K)
        rows.add(span, labels, total, mass)
        paid = cost if weight is None else weight[weight > 0] * cost[weight > 0]
        return (total, mass), changed, float(paid.sum()), ties

    changed, cost, ties = 0.0, 0.0, 0

    def parts():
        nonlocal changed, cost, ties
        for part, span_changed, span_cost, span_ties in rows.each(of_span):
            changed, cost, ties = changed + span_changed, cost + span_cost, ties + span_ties
            yield part

    total, mass = add_up(parts(), K, rows.p)
    return Sums(total, mass, changed, cost, ties)


def _settle_thresholds(table: Table, span: slice, centres: Centres, labels: Array, cost: Array, lam: float) -> None:
    """Measure rows whose cost comes near their opening threshold by the decisive formula."""
    unit = table.unit[span] if table.unit.size else table.unit
    alone = table.alone[span] if table.alone.size else table.alone
    rows = np.empty(cost.size, np.intp)
    count = kernels().near_threshold(cost, unit, alone, table.base[span], centres.affine.size, lam, rows)
    close = rows[:count]
    if count:
        cost[close] = exact_own(table, span.start + close, centres.mean, labels[close])


def cost_matrix(table: Table, centres: Centres, dtype: Any) -> Array:
    """Divergences of all rows from all centres, (n, K): what a user asked to see, and nothing else needs."""
    costs = np.empty((table.n, centres.mean.shape[0]), dtype)
    infinity = table.geometry.family.divergence_at_infinity

    def of_span(span: slice) -> None:
        step = max(1, _PIECE // max(table.rows.p, centres.mean.shape[0]))
        for start in range(span.start, span.stop, step):
            piece = slice(start, min(start + step, span.stop))
            product = table.rows.dense(piece) @ centres.affine.coef.T
            costs[piece] = infinity(np.maximum(table.base[piece, None] + centres.affine.offset - product, 0.0))

    for _ in table.rows.each(of_span):
        pass
    return costs


def loosen(table: Table, before: Centres, after: Centres, kept: Array, memory: Memory) -> None:
    """Make ``memory.low`` hold for the centres ``after``; labels already count in them.

    ``kept`` gives, for each centre of ``after`` that stood in ``before``, its index there; centres beyond
    ``len(kept)`` are new. For a row x of cluster a the cost of another centre k changes by

        d psi_k - <x, d theta_k>  >=  d psi_k - <mu_a, d theta_k> - R_a |d theta_k|,

    with R_a the largest distance of a's rows from mu_a: exact for every affine cost, no triangle inequality.
    New centres are evaluated for all rows. Where the centres outweigh the rows this would cost more than it saves,
    and nothing is known afterwards.
    """
    K_old, K = len(kept), after.mean.shape[0]
    if K_old == 0 or memory.labels.size == 0 or memory.labels[0] < 0 or after.mean.size > table.rows.entries:
        memory.low[:] = -np.inf
        return
    radius = _radius(table, before.mean[kept], memory, K_old)
    fall = _least_changes(before, after, kept, radius)
    fresh = after.affine.some(slice(K_old, None))

    def of_span(span: slice) -> None:
        labels = memory.labels[span]
        old = labels < K_old
        low = memory.low[span]
        low[old] += fall[labels[old]]
        low[~old] = -np.inf
        if K_old < K:
            base = table.base[span]
            found, _ = table.rows.nearest(span, base, fresh, norms=table.norms())
            np.minimum(low, base + found.least - 2 * found.slack, out=low)

    for _ in table.rows.each(of_span):
        pass


def _least_changes(before: Centres, after: Centres, kept: Array, radius: Array) -> Array:
    """For each cluster a: the least change of any other centre's cost for a row within radius_a of mu_a."""
    K = len(kept)
    if K == 1:
        return np.zeros(1)
    step = after.affine.coef[:K] - before.affine.coef[kept]
    length = np.sqrt((step * step).sum(axis=1))
    lift = after.affine.offset[:K] - before.affine.offset[kept]
    fall = np.empty(K)
    for start in range(0, K, 64):  # a few clusters at a time: nothing of size K x K
        some = np.arange(start, min(start + 64, K))
        drop = before.mean[kept[some]] @ step.T
        spread = np.outer(radius[some], length)
        change = lift[None] - drop - spread
        change -= 1e-12 * (np.abs(lift)[None] + np.abs(drop) + spread)
        change[some - start, some] = np.inf
        fall[some] = change.min(axis=1)
    return np.where(np.isfinite(fall), fall, -np.inf)


def _radius(table: Table, mean: Array, memory: Memory, K: int) -> Array:
    """Largest Euclidean distance of a cluster's rows from its centre, with a little room for rounding."""

    factor = table.geometry.family.euclidean_factor
    if factor is not None and memory.labels.max() < K:
        squares, none = np.zeros(K), np.empty(0)
        kernels().farthest(memory.cost, none, none, 0.0, memory.labels, table.hashes, np.full(K, -1), squares)
        return np.sqrt(squares / factor) * (1 + 1e-9)

    def of_span(span: slice) -> Array:
        labels, squares = memory.labels[span], np.zeros(K)
        mine = np.flatnonzero(labels < K)
        square = table.rows.distance(mine + span.start, labels[mine], mean)
        np.maximum.at(squares, labels[mine], square)
        return squares

    squares = np.zeros(K)
    for part in table.rows.each(of_span):
        np.maximum(squares, part, out=squares)
    return np.sqrt(squares) * (1 + 1e-9)
