"""Assignments of dense rows in one call: one of a span, or several of a short table with the centres moved between."""

import numpy as np
from numba import njit

from kfree.kernels.compiled.decide import near_threshold, open_decisions
from kfree.kernels.compiled.nearest import nearest_dense, nearest_packed, pack_dense
from kfree.kernels.compiled.sums import distance_dense, measure_dense, tally_dense


@njit(nogil=True, cache=True)
def _some(values, rows):
    """Values of a few rows; empty stays empty."""
    return values[rows] if values.shape[0] else values


@njit(nogil=True, cache=True)
def _open(labels, least, second, terms, look, base, norms, size):
    """The nearest centres of rows by their two least costs, bounds on all others, and which decisions are open."""
    coef, _, limits = look
    m = base.shape[0]
    slack, unsure = np.zeros(m), np.empty(m, np.intp)
    count = open_decisions(base, np.full(1, terms, np.int64), norms, size, limits, least, second, slack, unsure)
    for t in range(m):
        second[t] += base[t] - 2 * slack[t]
    return labels, second, unsure[: count if coef.shape[0] > 1 else 0]


@njit(nogil=True, cache=True)
def _look(X, rows, shift, scale, look, base, norms, size):
    """What the precision of a look tells of rows."""
    m = rows.shape[0]
    labels, least, second = np.empty(m, np.int32), np.empty(m), np.empty(m)
    nearest_dense(X, rows, shift, scale, look[0], look[1], np.zeros(2), labels, least, second, np.empty(m))
    return _open(labels, least, second, X.shape[1], look, base, norms, size)


@njit(nogil=True, cache=True)
def _look_packed(packed, look, base, norms, size):
    """The same of packed rows."""
    n, m = base.shape[0], packed.shape[0] * packed.shape[2]
    labels, least, second = np.empty(m, np.int32), np.empty(m), np.empty(m)
    nearest_packed(packed, look[0], look[1], labels, least, second)
    return _open(labels[:n], least[:n], second[:n], packed.shape[1], look, base, norms, size)


@njit(nogil=True, cache=True)
def _decide(found, X, rows, shift, scale, look, base, norms, size):
    """Labels of rows and bounds on their costs at all other centres, after a second look at what the first left open;
    how many one look and both leave open."""
    labels, bound, unsure = found
    if not unsure.shape[0]:
        return labels, bound, 0, 0
    again, closer, still = _look(X, rows[unsure], shift, scale, look, base[unsure], norms, size)
    for t in range(unsure.shape[0]):
        labels[unsure[t]], bound[unsure[t]] = again[t], closer[t]
    return labels, bound, unsure.shape[0], still.shape[0]


@njit(nogil=True, cache=True)
def _own(X, rows, shift, scale, labels, mean, factor, base, unit, alone, size, lam, cost):
    """Costs of rows at the centres in ``labels``; returns how many come near their threshold."""
    distance_dense(X, rows, shift, scale, labels, mean, cost)
    for t in range(cost.shape[0]):
        cost[t] *= factor
    return near_threshold(cost, unit, alone, base, size, lam, np.empty(cost.shape[0], np.intp))


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
        found = _look(X, mine, shift, scale, looks[0], part, norms, size)
        chosen, bound, doubts, unsure = _decide(found, X, mine, shift, scale, looks[1], part, norms, size)
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
        some = n
        found = _look(X, rows, shift, scale, looks[0], base, norms, size)
        labels, bound, doubts, unsure = _decide(found, X, rows, shift, scale, looks[1], base, norms, size)
        if unsure:
            return unsure, some, doubts, 0.0, 0.0
        near = _own(X, rows, shift, scale, labels, mean, factor, base, unit, alone, size, lam, cost)
        if near:
            return near, some, doubts, 0.0, 0.0
        low[:] = bound
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
    packed = pack_dense(X, rows, shift, scale, first)
    for t in range(trace.shape[0]):
        short, long, size, norms = _products(mean, anchor, factor, first)
        total[:], mass[:], reach[:] = 0.0, 0.0, 0.0
        found = _look_packed(packed, (short[0], short[1], limits[0]), base, norms, size)
        look = (long[0], long[1], limits[1])
        chosen, bound, doubts, undecided = _decide(found, X, rows, shift, scale, look, base, norms, size)
        doubted += doubts
        if not undecided:
            undecided = _own(X, rows, shift, scale, chosen, mean, factor, base, none, none, size, near, cost)
        if undecided:
            return t, False, (t + 1) * rows.shape[0], doubted
        low[:] = bound
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
