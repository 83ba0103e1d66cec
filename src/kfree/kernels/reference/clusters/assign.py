"""Assignments of dense rows in one call: one of a span, or several of a short table with the centres moved between."""

import numpy as np

from kfree.kernels.reference.clusters.bounds import near_threshold, open_decisions, unsettled
from kfree.kernels.reference.clusters.nearest import nearest_dense
from kfree.kernels.reference.rows.sums import distance_dense, tally_dense


def _look(X, rows, shift, scale, look, base, norms, size):
    coef, offset, limits = look
    m = rows.size
    labels, unsure = np.empty(m, np.int32), np.empty(m, np.intp)
    least, second, slack = np.empty(m), np.empty(m), np.empty(m)
    nearest_dense(X, rows, shift, scale, coef, offset, np.zeros(2), labels, least, second, slack)
    count = open_decisions(base, np.array([X.shape[1]]), norms, size, limits, least, second, slack, unsure)
    return labels, base + second - 2 * slack, unsure[: count if coef.shape[0] > 1 else 0]


def assign_dense(
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
    """Assign rows to their nearest centres by ``factor`` times squared distance, unless a decision is left open.

    ``looks`` are two forms of the product that gives all costs, single and double precision or twice the same:
    coefficients, offsets, limits (see ``open_decisions``, also for ``norms`` and ``size``). What the first leaves open
    is decided by the second; what that leaves open, or a cost next to the opening threshold (see ``near_threshold``),
    is not this kernel's to decide. If ``known``, rows whose cost at the centre in ``before`` is certainly below
    ``low`` stay there.

    Returns whether a decision is left open, how many rows were compared with all centres, how many of them the first
    look left open, the weight that changed label and the weighted sum of costs. Then ``before``, ``low`` and ``cost``
    have become the labels, the bounds on all other costs and the costs, and ``sums`` has been added to (see
    ``tally_dense``). If a decision is left open the numbers are zero, labels are as before, bounds that were ``known``
    still hold, and ``cost`` and ``sums`` mean nothing.
    """

    def own(labels):
        square = np.empty(rows.size)
        distance_dense(X, rows, shift, scale, labels, mean, square)
        return factor * square

    labels, bound, list_ = before.copy(), low.copy(), np.empty(rows.size, np.intp)
    if known:
        cost[:] = own(before)
        left = list_[: unsettled(cost, base, size, low, list_)].copy()
    else:
        left = np.arange(rows.size)
    labels[left], bound[left], unsure = _look(X, rows[left], shift, scale, looks[0], base[left], norms, size)
    doubts = left[unsure]
    labels[doubts], bound[doubts], unsure = _look(X, rows[doubts], shift, scale, looks[1], base[doubts], norms, size)
    if unsure.size:
        return True, 0, 0, 0.0, 0.0
    cost[:] = own(labels)
    if near_threshold(cost, unit, alone, base, size, lam, list_):
        return True, 0, 0, 0.0, 0.0
    low[:] = bound
    changed, paid = tally_dense(X, rows, shift, scale, weight, labels, cost, before, *sums)
    return False, left.size, doubts.size, changed, paid


def descend_dense(
    X, rows, shift, scale, weight, base, anchor, factor, lam, rule, first, limits, mean, labels, low, cost, sums, trace
):
    """Assign rows to their nearest ``mean`` (see ``assign_dense``), move the means, and so on until something else is
    due: a row may open a cluster, next to nothing changes, a cluster has lost its weight, a decision is left open, or
    ``trace`` is full.

    ``rule`` = (pause, wait, tol, whole, may_open): clusters may open if ``may_open`` and there were ``wait`` passes
    since the last opening or at most ``tol`` of the ``whole`` weight changes label. ``first`` is an array of the first
    look's type, ``limits`` has those of both looks. Products are relative to ``anchor``.

    Returns how many passes were made, whether the last assignment was completed, how many rows were compared with all
    centres and how many of them the first look left open. After the last assignment the means are not moved: labels,
    bounds, costs and ``sums`` are those of ``mean``, unless it was not completed: then labels and bounds are of the
    means before. A line of ``trace`` holds the weighted sum of costs, the weight that changed label, and the magnitude
    of the offsets.
    """
    pause, wait, tol, whole, may_open = rule
    near = lam if lam < np.inf else np.nan
    none = np.empty(0)
    total, mass, reach = sums
    compared = doubted = 0
    for t in range(len(trace)):
        coef, square, at_anchor = 2 * factor * (mean - anchor), (mean**2).sum(axis=1), float((anchor**2).sum())
        offset, size = factor * (square - at_anchor), factor * (square.max() + at_anchor)
        norms = 1 / factor, np.sqrt(at_anchor), np.sqrt((coef**2).sum(axis=1).max())
        with np.errstate(over="ignore"):  # what leaves the range of the first look decides nothing
            short = coef.astype(first.dtype), offset.astype(first.dtype)
        looks = (*short, limits[0]), (coef, offset, limits[1])
        for values in sums:
            values[:] = 0.0
        table = (X, rows, shift, scale, weight, mean, factor, looks, base, none, none, norms, size, near)
        undecided, some, doubts, changed, paid = assign_dense(*table, False, labels, low, cost, sums)
        compared, doubted = compared + some, doubted + doubts
        if undecided:
            return t, False, compared, doubted
        trace[t] = paid, changed, size
        still = changed / whole <= tol
        opens = may_open and reach.max() > lam and (pause >= wait or still)
        if opens or still or mass.min() <= 0 or t + 1 == len(trace):
            break
        mean[:] = total / mass[:, None]
        pause += 1
    return t + 1, True, compared, doubted
