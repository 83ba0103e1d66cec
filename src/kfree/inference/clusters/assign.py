"""Assignment of all rows to their nearest centres: exact, in blocks, skipping rows that cannot change.

Products are looked at in single precision first, whatever the data; where their error bound leaves a decision open it
is taken again in float64, and where that leaves it open by the divergence's own formula.
"""

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.centres import Centres, Sums
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.inference.clusters.exact import exact_costs, exact_own, excluded, own_cost
from kfree.inference.clusters.table import Memory, Table
from kfree.kernels import kernels
from kfree.rows import Assigned, Nearest
from kfree.rows.exact_sums import CostSum, ExactSums, Grid, Shares
from kfree.rows.threads import in_order


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
    share = int(np.clip(rows.size // 4, *CLUSTERS.list_share))
    pieces = [rows[start : start + share] for start in range(0, max(rows.size, 1), share)]
    parts = [found for found, _ in in_order(lambda piece: nearest(table, piece, centres), pieces)]
    return parts[0] if len(parts) == 1 else Nearest(*map(np.concatenate, zip(*parts)))


def assign(table: Table, centres: Centres, memory: Memory, lam: float | None = None) -> Sums:
    """Assign every row to its nearest centre (ties: lowest index) and return the sums of the clusters.

    With ``lam`` the costs near the opening threshold are exact as well. ``memory.low`` must hold for ``centres``
    (see ``loosen``); rows whose own cost stays below it are not compared with any other centre.
    """
    rows, K = table.rows, centres.mean.shape[0]
    earlier = sums_by_label(table, memory)
    shares = Shares(ExactSums(K, rows.grid) if earlier is None else earlier.resized(max(K, earlier.K)))
    reach, changed, ties = _pass(table, centres, memory, lam, shares)
    memory.sums = shares.total().resized(K)
    return Sums(*memory.sums.values(), changed, total_cost(table, memory.cost, float(reach.max())), ties, reach)


def label(table: Table, centres: Centres, memory: Memory) -> float:
    """Assign rows where nobody asks for the sums of the clusters; the largest cost."""
    nothing = ExactSums(0, Grid(np.zeros(table.rows.p + 1, int), True))
    reach, _, _ = _pass(table, centres, memory, None, Shares(nothing))
    return float(reach.max())


def _pass(
    table: Table, centres: Centres, memory: Memory, lam: float | None, shares: Shares
) -> tuple[Array, float, int]:
    """One pass over all rows: the largest cost in each cluster, the weight that changed label, and the number of
    ties."""
    rows, K = table.rows, centres.mean.shape[0]
    near = lam if lam is not None and np.isfinite(lam) else np.nan  # nothing is near it
    memory.sums = None  # an interrupt leaves labels that nobody knows the sums of

    def of_span(span: slice) -> tuple[Array, float, int]:
        before, cost, low = memory.labels[span], memory.cost[span], memory.low[span]
        known, reach = bool(before[0] >= 0 and low.max() > -np.inf), np.zeros(K)
        with shares.one() as sums:
            done = _at_once(table, span, centres, near, (known, before, low, cost), (sums, reach))
            if done is not None:
                return reach, done.changed, 0
            labels, ties = _one_by_one(table, span, centres, near, (known, before, low, cost))
            reach[:] = 0.0  # what was given up half-way may have raised it
            return reach, rows.tally(span, labels, cost, before, sums, reach), ties

    reach, changed, ties = np.zeros(K), 0.0, 0
    for span_reach, span_changed, span_ties in rows.each(of_span):
        np.maximum(reach, span_reach, out=reach)
        changed, ties = changed + span_changed, ties + span_ties
    return reach, changed, ties


def sums_by_label(table: Table, memory: Memory) -> ExactSums | None:
    """The sums of the rows by the labels they have; None if they have none yet."""
    if memory.sums is not None or memory.labels[0] < 0:
        return memory.sums
    return table.rows.exact_sums(memory.labels, int(memory.labels.max()) + 1)


def total_cost(table: Table, cost: Array, largest: float) -> float:
    """The weighted sum of costs, none of which exceeds ``largest``."""
    weight = table.rows.weight
    if weight.size:  # a row without weight may cost any amount
        largest = float(cost.max(where=weight > 0, initial=0.0))
    total = CostSum(largest, table.rows.weight_range)
    for part in table.rows.each(lambda span: total.limbs(cost[span], weight[span] if weight.size else weight)):
        total.add(part)
    return total.value


def partition_cost(table: Table, centres: Centres, memory: Memory) -> float:
    """Weighted divergences of all rows from the centres of their labels, by ``own_cost``; they are remembered."""

    def of_span(span: slice) -> float:
        memory.cost[span] = own_cost(table, span, centres, memory.labels[span])
        return float(memory.cost[span].max())

    return total_cost(table, memory.cost, max(table.rows.each(of_span)))


def _at_once(
    table: Table,
    span: slice,
    centres: Centres,
    lam: float,
    memory: tuple[bool, Array, Array, Array],
    sums: tuple[ExactSums, Array],
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
    if table.rows.dtype == np.float32 and doubted > CLUSTERS.doubts * compared:
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
