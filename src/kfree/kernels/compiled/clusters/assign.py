"""Assignments of dense rows in one call: one of a span, or several of a short table with the centres moved between."""

import numpy as np

from kfree.kernels.compiled.cache import njit
from kfree.kernels.compiled.clusters.bounds import count_near, open_decisions, unsettled
from kfree.kernels.compiled.clusters.nearest import RUN, nearest_packed, pack_dense, panels_of, room_for
from kfree.kernels.compiled.rows.sums import add_dense, distance_dense, tally, tally_dense
from kfree.kernels.compiled.simd.pack import pack

_RUN = RUN
# Entries of rows that are worked on together.
_BLOCK = 16384


@njit(nogil=True, cache=True)
def _sight(look, tiles):
    """What it takes to look at packed rows: the centres as the tile reads them, their number, the limits of the
    precision, and room for what is found: two least costs, errors, open decisions, number of products in a cost."""
    coef, offset, limits = look
    n = _RUN * tiles.shape[2]
    desk = np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.intp), np.full(1, tiles.shape[1], np.int64)
    return panels_of(coef, offset), coef.shape[0], limits, desk


@njit(nogil=True, cache=True)
def _judge(tiles, sight, base, norms, size, labels, bound):
    """Nearest centres of some packed rows and bounds on their costs at all others; returns how many decisions are open:
    their bounds are NaN."""
    centres, K, limits, (least, second, slack, unsure, terms) = sight
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
def _look(X, rows, shift, scale, sight, tiles, base, norms, size, labels, bound):
    """``_judge`` for any number of rows, which are packed into ``tiles``."""
    run, count = tiles.shape[0] * tiles.shape[2], 0
    for start in range(0, rows.shape[0], run):
        part = slice(start, min(start + run, rows.shape[0]))
        pack(X, rows[part], shift, scale, tiles)
        count += _judge(tiles, sight, base[part], norms, size, labels[part], bound[part])
    return count


@njit(nogil=True, cache=True)
def _look_again(doubts, X, rows, shift, scale, look, base, norms, size, labels, bound):
    """Another look at the decisions that the first left open; returns how many still are."""
    if not doubts:
        return 0
    unsure, tiles = np.flatnonzero(np.isnan(bound)), room_for(_RUN, X, look[0])
    again, closer = np.empty(doubts, np.int32), np.empty(doubts)
    sight = _sight(look, tiles)
    still = _look(X, rows[unsure], shift, scale, sight, tiles, base[unsure], norms, size, again, closer)
    labels[unsure], bound[unsure] = again, closer
    return still


@njit(nogil=True, cache=True)
def _own(X, rows, shift, scale, labels, mean, factor, cost):
    """Costs of rows at the centres in ``labels``."""
    distance_dense(X, rows, shift, scale, labels, mean, cost)
    for t in range(cost.shape[0]):
        cost[t] *= factor


@njit(nogil=True, cache=True)
def _some(values, rows):
    """Values of a few rows; empty stays empty."""
    return values[rows] if values.shape[0] else values


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
    tiles = room_for(_RUN, X, looks[0][0])
    sight = _sight(looks[0], tiles)
    labels = before.copy() if known else np.empty(n, np.int32)
    total, mass, reach = sums
    compared, doubted = 0, 0
    block = max(_BLOCK // X.shape[1], _RUN)
    for start in range(0, n, block):  # so that rows stay in the cache until nothing more is asked of them
        part = slice(start, min(start + block, n))
        mine, theirs, far, bound, paid = rows[part], labels[part], base[part], low[part], cost[part]
        once, single = _some(unit, part), _some(alone, part)
        if known:
            _own(X, mine, shift, scale, theirs, mean, factor, paid)
            left = np.empty(mine.shape[0], np.intp)
            left = left[: unsettled(paid, far, size, bound, left)]
            found, closer = np.empty(left.shape[0], np.int32), np.empty(left.shape[0])
            table, near = (X, mine[left], shift, scale), far[left]
            doubts = _look(*table, sight, tiles, near, norms, size, found, closer)
            if _look_again(doubts, *table, looks[1], near, norms, size, found, closer):
                return True, 0, 0, 0.0, 0.0
            fresh = left[found != theirs[left]]
            theirs[left], bound[left] = found, closer
            moved = np.empty(fresh.shape[0])
            _own(X, mine[fresh], shift, scale, theirs[fresh], mean, factor, moved)
            paid[fresh] = moved
            compared += left.shape[0]
        else:
            doubts = _look(X, mine, shift, scale, sight, tiles, far, norms, size, theirs, bound)
            if _look_again(doubts, X, mine, shift, scale, looks[1], far, norms, size, theirs, bound):
                return True, 0, 0, 0.0, 0.0
            _own(X, mine, shift, scale, theirs, mean, factor, paid)
            compared += mine.shape[0]
        doubted += doubts
        if count_near(paid, once, single, far, size, lam):
            return True, 0, 0, 0.0, 0.0
        add_dense(X, mine, shift, scale, weight, theirs, total, mass)
    changed, all_paid = tally(weight, labels, cost, before, reach)
    return False, compared, doubted, changed, all_paid


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
    n, doubted = rows.shape[0], 0
    packed, chosen = pack_dense(X, rows, shift, scale, first), np.empty(rows.shape[0], np.int32)
    for t in range(trace.shape[0]):
        short, long, size, norms = _products(mean, anchor, factor, first)
        total[:], mass[:], reach[:] = 0.0, 0.0, 0.0
        sight, run = _sight((*short, limits[0]), packed), _RUN * packed.shape[2]
        doubts = 0
        for start in range(0, n, run):
            part = slice(start, min(start + run, n))
            tiles = packed[start // packed.shape[2] :]
            doubts += _judge(tiles, sight, base[part], norms, size, chosen[part], low[part])
        doubted += doubts
        look = (*long, limits[1])
        undecided = _look_again(doubts, X, rows, shift, scale, look, base, norms, size, chosen, low)
        if not undecided:
            _own(X, rows, shift, scale, chosen, mean, factor, cost)
            undecided = count_near(cost, none, none, base, size, near)
        if undecided:
            return t, False, (t + 1) * n, doubted
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
    return t + 1, True, (t + 1) * n, doubted
