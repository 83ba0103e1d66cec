"""Assignments of dense rows in one call: one of a span, or several of a short table with the centres moved between."""

import numpy as np

from kfree.kernels.reference.clusters.bounds import near_threshold, open_decisions, unsettled
from kfree.kernels.reference.clusters.nearest import nearest_dense
from kfree.kernels.reference.rows.exact_sums import move_dense, read_sums
from kfree.kernels.reference.rows.sums import distance_dense, tally


def _look(X, rows, shift, scale, look, base, norms, size):
    coef, offset, limits = look
    m = rows.size
    labels, unsure = np.empty(m, np.int32), np.empty(m, np.intp)
    least, second, slack = np.empty(m), np.empty(m), np.empty(m)
    nearest_dense(X, rows, shift, scale, coef, offset, np.zeros(2), labels, least, second, slack)
    count = open_decisions(base, np.array([X.shape[1]]), norms, size, limits, least, second, slack, unsure)
    return labels, base + second - 2 * slack, unsure[: count if coef.shape[0] > 1 else 0]


def _decide(X, rows, shift, scale, mean, factor, looks, base, unit, alone, norms, size, lam, known, before, low, cost):
    """Labels, how many rows were compared and how many of them the first look left open; None if a decision is left
    open. Bounds and costs become those of the labels."""

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
        return None
    cost[:] = own(labels)
    if near_threshold(cost, unit, alone, base, size, lam, list_):
        return None
    low[:] = bound
    return labels, left.size, doubts.size


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
    ledger,
    reach,
):
    """Assign rows to their nearest centres by ``factor`` times squared distance, unless a decision is left open.

    ``looks`` are two forms of the product that gives all costs, single and double precision or twice the same:
    coefficients, offsets, limits (see ``open_decisions``, also for ``norms`` and ``size``). What the first leaves open
    is decided by the second; what that leaves open, or a cost next to the opening threshold (see ``near_threshold``),
    is not this kernel's to decide. If ``known``, rows whose cost at the centre in ``before`` is certainly below
    ``low`` stay there.

    Returns whether a decision is left open, how many rows were compared with all centres, how many of them the first
    look left open, and the weight that changed label. Then ``before``, ``low`` and ``cost`` have become the labels, the
    bounds on all other costs and the costs, rows have been moved between the sums of their labels (see ``move_dense``)
    unless the ledger has room for none, and ``reach`` has been raised to the largest costs. If a decision is left open
    the numbers are zero, labels and sums are as before, bounds that were ``known`` still hold, and ``cost`` and
    ``reach`` mean nothing.
    """

    found = _decide(
        *(X, rows, shift, scale, mean, factor, looks, base, unit, alone, norms, size, lam, known, before, low, cost)
    )
    if found is None:
        return True, 0, 0, 0.0
    labels, compared, doubted = found
    if ledger[2].shape[1]:
        move_dense(X, rows, shift, scale, weight, before, labels, ledger)
    changed, _ = tally(weight, labels, cost, before, reach)
    return False, compared, doubted, changed


def descend_dense(
    X,
    rows,
    shift,
    scale,
    weight,
    base,
    anchor,
    factor,
    lam,
    rule,
    first,
    limits,
    mean,
    labels,
    low,
    cost,
    ledger,
    reach,
    trace,
):
    """Assign rows to their nearest ``mean`` (see ``assign_dense``), move the means, and so on until something else is
    due: a row may open a cluster, next to nothing changes, a cluster has lost its weight, a decision is left open, or
    ``trace`` is full.

    ``rule`` = (pause, wait, tol, whole, may_open): clusters may open if ``may_open`` and there were ``wait`` passes
    since the last opening or at most ``tol`` of the ``whole`` weight changes label. ``first`` is an array of the first
    look's type, ``limits`` has those of both looks. Products are relative to ``anchor``.

    Returns how many passes were made, whether the last assignment was completed, how many rows were compared with all
    centres and how many of them the first look left open. After the last assignment the means are not moved: labels,
    bounds, costs and the sums in ``ledger`` (empty before; see ``move_dense``) are those of ``mean``, unless it was not
    completed: then labels and bounds are of the means before. A line of ``trace`` holds the weighted sum of costs, the
    weight that changed label, and the magnitude of the offsets.
    """
    pause, wait, tol, whole, may_open = rule
    near = lam if lam < np.inf else np.nan
    none = np.empty(0)
    counted = np.full(rows.size, -1, np.int32)
    total, mass = np.empty(mean.shape), np.empty(len(mean))
    compared = doubted = 0
    for t in range(len(trace)):
        coef, square, at_anchor = 2 * factor * (mean - anchor), (mean**2).sum(axis=1), float((anchor**2).sum())
        offset, size = factor * (square - at_anchor), factor * (square.max() + at_anchor)
        norms = 1 / factor, np.sqrt(at_anchor), np.sqrt((coef**2).sum(axis=1).max())
        with np.errstate(over="ignore"):  # what leaves the range of the first look decides nothing
            short = coef.astype(first.dtype), offset.astype(first.dtype)
        looks = (*short, limits[0]), (coef, offset, limits[1])
        reach[:] = 0.0
        table = (X, rows, shift, scale, mean, factor, looks, base, none, none, norms, size, near)
        found = _decide(*table, False, labels, low, cost)
        if found is None:
            return t, False, compared, doubted
        chosen, some, doubts = found
        compared, doubted = compared + some, doubted + doubts
        move_dense(X, rows, shift, scale, weight, counted, chosen, ledger)
        counted = chosen.copy()
        changed, paid = tally(weight, chosen, cost, labels, reach)
        trace[t] = paid, changed, size
        still = changed / whole <= tol
        opens = may_open and reach.max() > lam and (pause >= wait or still)
        if opens or still or t + 1 == len(trace):
            break
        read_sums(ledger, total, mass)
        if mass.min() <= 0:
            break
        mean[:] = total / mass[:, None]
        pause += 1
    return t + 1, True, compared, doubted
