"""Assignment of all rows to their nearest centres: exact, in blocks, skipping rows that cannot change.

Products are looked at in single precision first, whatever the data; where their error bound leaves a decision open it
is taken again in float64, and where that leaves it open by the divergence's own formula.
"""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Affine, Array, Geometry
from kfree.inference.clusters.table import Memory, Table
from kfree.kernels import kernels
from kfree.rows import Assigned, Nearest
from kfree.rows.threads import in_order

# Entries of centres from which it is worth while to see which of them have moved.
_LARGE = 20_000
# Entries of a temporary (rows x centres x columns) in the decisive comparison.
_PIECE = 250_000
# Share of rows that single precision may leave open before it is given up.
_TOO_OFTEN = 0.2
#: Entries times centres up to which all products take less time than bounds.
QUICK = 6_000_000
# Rows a thread takes from a list at a time: at least, at most.
_SHARE = (2048, 16384)


class Centres:
    """Centres in the two forms in which they are used; the second is made when it is first asked for."""

    def __init__(self, geometry: Geometry, mean: Array):
        self._geometry = geometry
        self.mean = mean  # (K, p)

    @cached_property
    def affine(self) -> Affine:
        """Coefficients and offsets of the product that gives all costs."""
        return self._geometry.affine(self.mean)

    @cached_property
    def ends(self) -> tuple[Affine, Affine] | None:
        """What tells which rows centres on an end of the domain exclude, where costs do not: see ``Geometry.ends``."""
        return self._geometry.ends(self.mean)

    @property
    def finite(self) -> Affine:
        """Costs of the rows that centres do not exclude."""
        return self.affine if self.ends is None else self.ends[0]

    def some(self, which: slice | Array) -> "Centres":
        """Some of the centres."""
        some = Centres(self._geometry, self.mean[which])
        some.affine = self.affine.some(which)
        return some

    def moved(self, mean: Array, kept: Array) -> "Centres":
        """Centres after a move; ``kept`` gives, for each of the first, its index here. Of those that have not moved the
        second form is not made again."""
        after = Centres(self._geometry, mean)
        if "affine" in self.__dict__ and mean.size >= _LARGE:
            fresh = np.ones(mean.shape[0], bool)
            fresh[: kept.size] = (mean[: kept.size] != self.mean[kept]).any(axis=1)
            if 2 * np.count_nonzero(fresh) < fresh.size:
                known, made = self.affine, self._geometry.affine(mean[fresh])
                source = np.zeros(fresh.size, np.intp)
                source[: kept.size] = kept
                coef, offset = known.coef[source], known.offset[source]
                coef[fresh], offset[fresh] = made.coef, made.offset
                after.affine = Affine(coef, offset, max(known.size, made.size))
        return after

    def joined(self, other: "Centres") -> "Centres":
        """These centres and others."""
        joined, a, b = Centres(self._geometry, np.concatenate([self.mean, other.mean])), self.affine, other.affine
        coef, offset = np.concatenate([a.coef, b.coef]), np.concatenate([a.offset, b.offset])
        joined.affine = Affine(coef, offset, max(a.size, b.size))
        return joined


class Sums(NamedTuple):
    """What an assignment returns: only this crosses a block border."""

    total: Array  # (K, p) weighted sums of rows
    mass: Array  # (K,) weights
    changed: float  # weight of the rows that changed label
    cost: float  # weighted sum of divergences
    tied: int  # rows whose two least costs are exactly equal
    reach: Array  # (K,) largest divergence of a row of each cluster


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
    cost = np.maximum(table.base[rows] + table.rows.own(rows, labels, centres.finite), 0.0)
    if centres.ends is None:
        return family.divergence_at_infinity(cost)
    return np.where(excluded(table, rows, centres, labels), np.inf, cost)


def excluded(table: Table, rows: slice | Array, centres: Centres, labels: Array) -> Array:
    """True for rows that the centres in ``labels``, some of which lie on an end of the domain, exclude."""
    assert centres.ends is not None
    return table.rows.own(rows, labels, centres.ends[1]) > 0


def nearest(table: Table, rows: slice | Array, centres: Centres) -> tuple[Nearest, int]:
    """The two least relative costs of some rows, with every open decision settled; and the number of ties."""
    base = table.base[rows]
    found, unsure = table.rows.nearest(rows, base, centres.affine, norms=table.norms())
    if centres.ends is not None:  # a centre is not the nearest if it excludes the row after all
        unsure = np.union1d(unsure, np.flatnonzero(excluded(table, rows, centres, found.labels)))
    elif centres.mean.shape[0] == 1:
        return found, 0
    if not unsure.size:
        return found, 0
    if isinstance(rows, slice):
        rows = np.arange(rows.start, rows.stop)
    if table.rows.dtype == np.float32:
        note_doubts(table, len(base), unsure.size)
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
        found.least[unsure] = np.nan_to_num(least - base[unsure], nan=np.inf, posinf=np.inf)
        # a centre that excludes a row today may take it in tomorrow, and no finite step leads there: nothing is known
        found.second[unsure] = np.where(second < np.inf, second - base[unsure], -np.inf)
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
    near = lam if lam is not None and np.isfinite(lam) else np.nan  # nothing is near it

    def of_span(span: slice) -> tuple[tuple[Array, Array, Array], float, float, int]:
        before, cost, low = memory.labels[span], memory.cost[span], memory.low[span]
        known = bool(before[0] >= 0 and low.max() > -np.inf)
        sums = np.zeros((K, rows.p)), np.zeros(K), np.zeros(K)
        done = _at_once(table, span, centres, near, (known, before, low, cost), sums)
        if done is not None:
            return sums, done.changed, done.cost, 0
        labels, ties = _one_by_one(table, span, centres, near, (known, before, low, cost))
        for values in sums:
            values[:] = 0.0  # what was given up half-way may have added to them
        changed, paid = rows.tally(span, labels, cost, before, *sums)
        return sums, changed, paid, ties

    total, mass, reach = np.zeros((K, rows.p)), np.zeros(K), np.zeros(K)
    changed, cost, ties = 0.0, 0.0, 0
    for part, span_changed, span_cost, span_ties in rows.each(of_span):
        total += part[0]
        mass += part[1]
        np.maximum(reach, part[2], out=reach)
        changed, cost, ties = changed + span_changed, cost + span_cost, ties + span_ties
    return Sums(total, mass, changed, cost, ties, reach)


def _at_once(
    table: Table,
    span: slice,
    centres: Centres,
    lam: float,
    memory: tuple[bool, Array, Array, Array],
    sums: tuple[Array, Array, Array],
) -> Assigned | None:
    """Assign a span in one call; None if there is no such call, or decisions are left that rounding could reach."""
    factor, norms = table.geometry.family.euclidean_factor, table.norms()
    if factor is None or norms is None:
        return None
    opening = table.base[span], *_of_opening(table, span), lam
    done = table.rows.assign(span, centres.mean, factor, centres.affine, norms, opening, memory, sums)
    if done is None:
        return None
    note_doubts(table, done.compared, done.doubted)
    return None if done.undecided else done


def note_doubts(table: Table, compared: int, doubted: int) -> None:
    """Give up single precision if it decides too little: to look once is then better than to look twice."""
    if table.rows.dtype == np.float32 and doubted > _TOO_OFTEN * compared:
        table.rows.dtype = np.dtype(np.float64)


def _one_by_one(
    table: Table, span: slice, centres: Centres, lam: float, memory: tuple[bool, Array, Array, Array]
) -> tuple[Array, int]:
    """Labels of a span, every open decision taken by the family's formula, and the number of ties; bounds and costs
    are brought up to date."""
    known, before, low, cost = memory
    base = table.base[span]
    if known:
        labels, ties = before.copy(), 0
        left, close = _measure(table, span, centres, labels, lam, low, cost)
        if left.size:
            found, ties = nearest(table, span.start + left, centres)
            labels[left] = found.labels
            low[left] = base[left] + found.second - 2 * found.slack
            fresh = left[labels[left] != before[left]]
            if fresh.size:
                cost[fresh] = own_cost(table, span.start + fresh, centres, labels[fresh])
                close = np.concatenate([close, fresh[_near(table, span.start + fresh, cost[fresh], centres, lam)]])
    else:
        found, ties = nearest(table, span, centres)
        labels = found.labels
        np.multiply(found.slack, -2.0, out=low)
        low += found.second
        low += base
        _, close = _measure(table, span, centres, labels, lam, low, cost)
    if close.size:
        cost[close] = exact_own(table, span.start + close, centres.mean, labels[close])
    return labels, ties


def _measure(
    table: Table, span: slice, centres: Centres, labels: Array, lam: float, low: Array, cost: Array
) -> tuple[Array, Array]:
    """Fill ``cost`` with the divergences of a span from its own centres.

    Returns the rows that another centre could be nearer to, as far as ``low`` tells, and those whose cost comes near
    their opening threshold.
    """
    family, base, size = table.geometry.family, table.base[span], centres.affine.size
    left, close = np.empty(cost.size, np.intp), np.empty(cost.size, np.intp)
    unit, alone = _of_opening(table, span)
    if family.euclidean_factor is not None:
        args = (centres.mean, family.euclidean_factor, base, unit, alone, size, lam, low, cost, left, close)
        counts = table.rows.measure(span, labels, *args)
    else:
        cost[:] = own_cost(table, span, centres, labels)
        counts = (
            kernels().unsettled(cost, base, size, low, left),
            kernels().near_threshold(cost, unit, alone, base, size, lam, close),
        )
    return left[: counts[0]], close[: counts[1]]


def _near(table: Table, rows: Array, cost: Array, centres: Centres, lam: float) -> Array:
    """Positions of the rows whose cost comes near their opening threshold."""
    close = np.empty(cost.size, np.intp)
    size = centres.affine.size
    return close[: kernels().near_threshold(cost, *_of_opening(table, rows), table.base[rows], size, lam, close)]


def _of_opening(table: Table, rows: slice | Array) -> tuple[Array, Array]:
    """What makes the opening thresholds of rows differ: weight of one copy, cost of standing alone."""
    return (
        table.unit[rows] if table.unit.size else table.unit,
        table.alone[rows] if table.alone.size else table.alone,
    )


def all_costs(table: Table, rows: slice | Array, centres: Centres, product: Callable[[Affine], Array]) -> Array:
    """Divergences (m, K) of some rows from all centres, given their products with coefficients."""
    with np.errstate(invalid="ignore", over="ignore"):
        cost = np.maximum(table.base[rows, None] + (centres.finite.offset - product(centres.finite)), 0.0)
    if centres.ends is None:
        return table.geometry.family.divergence_at_infinity(cost)
    return np.where(centres.ends[1].offset - product(centres.ends[1]) > 0, np.inf, cost)


def cost_matrix(table: Table, centres: Centres, dtype: Any) -> Array:
    """Divergences of all rows from all centres, (n, K): what a user asked to see, and nothing else needs."""
    costs = np.empty((table.n, centres.mean.shape[0]), dtype)

    def of_span(span: slice) -> None:
        step = max(1, _PIECE // max(table.rows.p, centres.mean.shape[0]))
        for start in range(span.start, span.stop, step):
            piece = slice(start, min(start + step, span.stop))
            costs[piece] = all_costs(table, piece, centres, partial(_product, table.rows.dense(piece)))

    for _ in table.rows.each(of_span):
        pass
    return costs


def _product(stats: Array, affine: Affine) -> Array:
    return stats @ affine.coef.T


def loosen(
    table: Table, before: Centres, after: Centres, kept: Array, memory: Memory, reach: Array | None = None
) -> None:
    """Make ``memory.low`` hold for the centres ``after``; labels already count in them.

    ``kept`` gives, for each centre of ``after`` that stood in ``before``, its index there; centres beyond
    ``len(kept)`` are new. For a row x of cluster a the cost of another centre k changes by

        d psi_k - <x, d theta_k>  >=  d psi_k - <mu_a, d theta_k> - R_a |d theta_k|,

    with R_a the largest distance of a's rows from mu_a: exact for every affine cost, no triangle inequality.
    New centres are evaluated for all rows. ``reach`` (see ``Sums``) saves measuring R for Euclidean costs. Where the
    centres outweigh the rows this would cost more than it saves, and nothing is known afterwards.
    """
    K_old, K = len(kept), after.mean.shape[0]
    small = table.rows.entries * K <= QUICK
    if K_old == 0 or memory.labels.size == 0 or memory.labels[0] < 0 or small or after.mean.size > table.rows.entries:
        memory.low[:] = -np.inf
        return
    radius = _radius(table, before.mean[kept], memory, None if reach is None else reach[kept])
    fall = _least_changes(before, after, kept, radius)
    fresh = after.affine.some(slice(K_old, None))

    def of_span(span: slice) -> None:
        low = memory.low[span]
        kernels().lower_bounds(memory.labels[span], fall, low)
        if K_old < K:
            base = table.base[span]
            found, _ = table.rows.nearest(span, base, fresh, norms=table.norms())
            np.minimum(low, base + found.least - 2 * found.slack, out=low)

    for _ in table.rows.each(of_span):
        pass


def confirmed(table: Table, before: Centres, after: Centres, memory: Memory, sums: Sums) -> bool:
    """True if the assignment to the centres ``before`` is certainly that to ``after`` too, with equal costs.

    Meant for centres that were only rounded: the bounds of ``loosen`` show it without looking at the rows again.
    """
    K = after.mean.shape[0]
    radius = _radius(table, before.mean, memory, sums.reach)
    step = after.affine.coef - before.affine.coef
    change = np.abs(after.affine.offset - before.affine.offset - (before.mean * step).sum(axis=1))
    change += radius * np.sqrt((step * step).sum(axis=1))
    if not change @ sums.mass <= 1e-10 * sums.cost:
        return False
    change -= _least_changes(before, after, np.arange(K), radius)

    def of_span(span: slice) -> bool:
        cost, base = memory.cost[span] + change[memory.labels[span]], table.base[span]
        return kernels().unsettled(cost, base, after.affine.size, memory.low[span], np.empty(cost.size, np.intp)) == 0

    return all(list(table.rows.each(of_span)))


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
        drop = before.mean[kept[start : start + 64]] @ step.T
        kernels().least_changes(drop, lift, length, radius, start, fall)
    return fall


def _radius(table: Table, mean: Array, memory: Memory, reach: Array | None) -> Array:
    """Largest Euclidean distance of a cluster's rows from its centre, with a little room for rounding."""
    K, factor = mean.shape[0], table.geometry.family.euclidean_factor
    if factor is not None and reach is not None:
        return np.sqrt(reach / factor) * (1 + 1e-9)

    def of_span(span: slice) -> Array:
        labels, squares = memory.labels[span], np.zeros(K)
        mine = np.flatnonzero(labels < K)
        square = table.rows.distance(mine + span.start, labels[mine], mean)
        kernels().tally(np.empty(0), labels[mine], square, labels[mine], squares)
        return squares

    squares = np.zeros(K)
    for part in table.rows.each(of_span):
        np.maximum(squares, part, out=squares)
    return np.sqrt(squares) * (1 + 1e-9)
