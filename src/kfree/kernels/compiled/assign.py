"""Assignments of dense rows in one call: one of a span, or several of a short table with the centres moved between."""

import numpy as np
from numba import njit

from kfree.kernels.compiled.decide import near_threshold, open_decisions
from kfree.kernels.compiled.nearest import nearest_dense
from kfree.kernels.compiled.sums import distance_dense, measure_dense, tally_dense


@njit(nogil=True, cache=True)
def _some(values, rows):
    """Values of a few rows; empty stays empty."""
    return values[rows] if values.shape[0] else values


@njit(nogil=True, cache=True)
def _look(X, rows, shift, scale, look, base, norms, size):
    """The nearest centres of rows in the precision of a look, bounds on all others, and which decisions are open."""
    coef, offset, limits = look
    m = rows.shape[0]
    labels, unsure = np.empty(m, np.int32), np.empty(m, np.intp)
    least, second, slack = np.empty(m), np.empty(m), np.empty(m)
    nearest_dense(X, rows, shift, scale, coef, offset, np.zeros(2), labels, least, second, slack)
    terms = np.full(1, X.shape[1], np.int64)
    count = open_decisions(base, terms, norms, size, limits, least, second, slack, unsure)
    for t in range(m):
        second[t] += base[t] - 2 * slack[t]
    return labels, second, unsure[: count if coef.shape[0] > 1 else 0]


@njit(nogil=True, cache=True)
def _decide(X, rows, shift, scale, looks, base, norms, size):
    """Labels of rows and bounds on their costs at all other centres; how many one look and both leave open."""
    labels, bound, unsure = _look(X, rows, shift, scale, looks[0], base, norms, size)
    if not unsure.shape[0]:
        return labels, bound, 0, 0
    again, closer, still = _look(X, rows[unsure], shift, scale, looks[1], base[unsure], norms, size)
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
        chosen, bound, doubts, unsure = _decide(X, rows[left], shift, scale, looks, base[left], norms, size)
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
        labels, bound, doubts, unsure = _decide(X, rows, shift, scale, looks, base, norms, size)
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
    compared, doubted = 0, 0
    for t in range(trace.shape[0]):
        short, long, size, norms = _products(mean, anchor, factor, first)
        looks = ((short[0], short[1], limits[0]), (long[0], long[1], limits[1]))
        total[:], mass[:], reach[:] = 0.0, 0.0, 0.0
        table = (X, rows, shift, scale, weight, mean, factor, looks, base, none, none, norms, size, near)
        undecided, some, doubts, changed, paid = assign_dense(*table, False, labels, low, cost, sums)
        compared, doubted = compared + some, doubted + doubts
        if undecided:
            return t, False, compared, doubted
        trace[t, 0], trace[t, 1], trace[t, 2] = paid, changed, size
        still = changed / whole <= tol
        opens = may_open and reach.max() > lam and (pause >= wait or still)
        if opens or still or mass.min() <= 0 or t + 1 == trace.shape[0]:
            break
        for k in range(mean.shape[0]):
            for j in range(mean.shape[1]):
                mean[k, j] = total[k, j] / mass[k]
        pause += 1
    return t + 1, True, compared, doubted
