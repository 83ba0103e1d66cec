"""Assignments of dense rows in one call: one of a span, or several of a short table with the centres moved between."""

import numpy as np
from numba import njit

from kfree.kernels.compiled.decide import count_near, open_decisions
from kfree.kernels.compiled.nearest import RUN, nearest_packed, pack_dense, panels_of, room_for
from kfree.kernels.compiled.pack import pack
from kfree.kernels.compiled.sums import distance_dense, measure_dense, tally_dense

_RUN = RUN


@njit(nogil=True, cache=True)
def _some(values, rows):
    """Values of a few rows; empty stays empty."""
    return values[rows] if values.shape[0] else values


@njit(nogil=True, cache=True)
def _desk(tiles):
    """Room for what is found of the rows of some tiles: two least costs, their errors, open decisions; and the number
    of products in a cost."""
    n = tiles.shape[0] * tiles.shape[2]
    return np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.intp), np.full(1, tiles.shape[1], np.int64)


@njit(nogil=True, cache=True)
def _judge(tiles, centres, K, limits, base, norms, size, desk, labels, bound):
    """Nearest centres of some packed rows and bounds on their costs at all others; returns how many decisions are open:
    their bounds are NaN."""
    least, second, slack, unsure, terms = desk
    m = base.shape[0]
    nearest_packed(tiles, centres, labels, least, second)
    slack[:m] = 0.0
    count = open_decisions(base, terms, norms, size, limits, least[:m], second[:m], slack[:m], unsure)
    for t in range(m):
        bound[t] = second[t] + base[t] - 2 * slack[t]
    if K == 1:
        return 0
    for t in range(count):
        bound[unsure[t]] = np.nan
    return count


@njit(nogil=True, cache=True)
def _look(X, rows, shift, scale, look, base, norms, size, labels, bound):
    """``_judge`` for rows that are not packed, by the products of a look."""
    coef, offset, limits = look
    centres, tiles = panels_of(coef, offset), room_for(_RUN, X, coef)
    desk, run, count = _desk(tiles), tiles.shape[0] * tiles.shape[2], 0
    for start in range(0, rows.shape[0], run):
        part = slice(start, min(start + run, rows.shape[0]))
        pack(X, rows[part], shift, scale, tiles)
        judged = base[part], norms, size, desk, labels[part], bound[part]
        count += _judge(tiles, centres, coef.shape[0], limits, *judged)
    return count


@njit(nogil=True, cache=True)
def _look_packed(packed, desk, look, base, norms, size, labels, bound):
    """The same for rows that are."""
    coef, offset, limits = look
    centres, run, count = panels_of(coef, offset), _RUN * packed.shape[2], 0
    for start in range(0, base.shape[0], run):
        part, tiles = slice(start, min(start + run, base.shape[0])), packed[start // packed.shape[2] :]
        judged = base[part], norms, size, desk, labels[part], bound[part]
        count += _judge(tiles, centres, coef.shape[0], limits, *judged)
    return count


@njit(nogil=True, cache=True)
def _look_again(doubts, X, rows, shift, scale, look, base, norms, size, labels, bound):
    """A second look at the decisions that the first left open; returns how many still are."""
    if not doubts:
        return 0
    unsure = np.flatnonzero(np.isnan(bound))
    again, closer = np.empty(doubts, np.int32), np.empty(doubts)
    still = _look(X, rows[unsure], shift, scale, look, base[unsure], norms, size, again, closer)
    labels[unsure], bound[unsure] = again, closer
    return still


@njit(nogil=True, cache=True)
def _own(X, rows, shift, scale, labels, mean, factor, base, unit, alone, size, lam, cost):
    """Costs of rows at the centres in ``labels``; returns how many come near their threshold."""
    distance_dense(X, rows, shift, scale, labels, mean, cost)
    for t in range(cost.shape[0]):
        cost[t] *= factor
    return count_near(cost, unit, alone, base, size, lam)


@njit(nogil=True, cache=True)
def assign_dense(  # noqa: D103
    X,
    rows,
    shift,
    scale,
    weight,
    mean,
    factor,
    looks,
    base,
    unit,
    alone,
    norms,
    size,
    lam,
    known,
    before,
    low,
    cost,
    sums,
):
    n = rows.shape[0]
    if known:
        labels = before.copy()
        left, close = np.empty(n, np.intp), np.empty(n, np.intp)
        some, near = measure_dense(
            X, rows, shift, scale, before, mean, factor, base, unit, alone, size, lam, low, cost, left, close
        )
        if near:
            return near, 0, 0, 0.0, 0.0
        left = left[:some]
        mine, part = rows[left], base[left]
        chosen, bound = np.empty(some, np.int32), np.empty(some)
        doubts = _look(X, mine, shift, scale, looks[0], part, norms, size, chosen, bound)
        unsure = _look_again(doubts, X, mine, shift, scale, looks[1], part, norms, size, chosen, bound)
        if unsure:
            return unsure, some, doubts, 0.0, 0.0
        for t in range(some):
            labels[left[t]] = chosen[t]
        fresh = left[chosen != before[left]]
        theirs = np.empty(fresh.shape[0])
        table = (X, rows[fresh], shift, scale, labels[fresh], mean, factor, base[fresh])
        near = _own(*table, _some(unit, fresh), _some(alone, fresh), size, lam, theirs)
        if near:
            return near, some, doubts, 0.0, 0.0
        low[left] = bound
        cost[fresh] = theirs
    else:
        some, labels = n, np.empty(n, np.int32)
        doubts = _look(X, rows, shift, scale, looks[0], base, norms, size, labels, low)
        unsure = _look_again(doubts, X, rows, shift, scale, looks[1], base, norms, size, labels, low)
        if unsure:
            return unsure, some, doubts, 0.0, 0.0
        near = _own(X, rows, shift, scale, labels, mean, factor, base, unit, alone, size, lam, cost)
        if near:
            return near, some, doubts, 0.0, 0.0
    changed, paid = tally_dense(X, rows, shift, scale, weight, labels, cost, before, *sums)
    return 0, some, doubts, changed, paid


@njit(nogil=True, cache=True)
def _products(mean, anchor, factor, first):
    """The two looks' coefficients and offsets, the magnitude of the offsets and the largest norm of a coefficient."""
    K, p = mean.shape
    coef, offset = np.empty((K, p)), np.empty(K)
    at_anchor, size, longest = 0.0, 0.0, 0.0
    for j in range(p):
        at_anchor += anchor[j] * anchor[j]
    for k in range(K):
        square, norm = 0.0, 0.0
        for j in range(p):
            coef[k, j] = 2 * factor * (mean[k, j] - anchor[j])
            square += mean[k, j] * mean[k, j]
            norm += coef[k, j] * coef[k, j]
        offset[k] = factor * (square - at_anchor)
        size, longest = max(size, factor * square), max(longest, norm)
    short = coef.astype(first.dtype), offset.astype(first.dtype)
    return short, (coef, offset), size + factor * at_anchor, (1 / factor, np.sqrt(at_anchor), np.sqrt(longest))


@njit(nogil=True, cache=True)
def descend_dense(  # noqa: D103
    X, rows, shift, scale, weight, base, anchor, factor, lam, rule, first, limits, mean, labels, low, cost, sums, trace
):
    pause, wait, tol, whole, may_open = rule
    near = lam if lam < np.inf else np.nan
    none = np.empty(0)
    total, mass, reach = sums
    doubted = 0
    packed, chosen = pack_dense(X, rows, shift, scale, first), np.empty(rows.shape[0], np.int32)
    desk = _desk(packed[:_RUN])
    for t in range(trace.shape[0]):
        short, long, size, norms = _products(mean, anchor, factor, first)
        total[:], mass[:], reach[:] = 0.0, 0.0, 0.0
        doubts = _look_packed(packed, desk, (*short, limits[0]), base, norms, size, chosen, low)
        doubted += doubts
        look = (*long, limits[1])
        undecided = _look_again(doubts, X, rows, shift, scale, look, base, norms, size, chosen, low)
        if not undecided:
            undecided = _own(X, rows, shift, scale, chosen, mean, factor, base, none, none, size, near, cost)
        if undecided:
            return t, False, (t + 1) * rows.shape[0], doubted
        changed, paid = tally_dense(X, rows, shift, scale, weight, chosen, cost, labels, *sums)
        trace[t, 0], trace[t, 1], trace[t, 2] = paid, changed, size
        still = changed / whole <= tol
        opens = may_open and reach.max() > lam and (pause >= wait or still)
        if opens or still or mass.min() <= 0 or t + 1 == trace.shape[0]:
            break
        for k in range(mean.shape[0]):
            for j in range(mean.shape[1]):
                mean[k, j] = total[k, j] / mass[k]
        pause += 1
    return t + 1, True, (t + 1) * rows.shape[0], doubted
