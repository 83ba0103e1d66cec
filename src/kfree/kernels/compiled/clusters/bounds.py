"""Which decisions products leave open, and which rows a bound cannot settle."""

import numpy as np

from kfree.kernels.compiled.cache import njit


@njit(nogil=True, cache=True)
def _weigh(i, columns, base, norms, size, limits, least, second, slack):
    """Fill ``slack[i]`` and return whether the decision is open. Reads first and stores last, without a choice between
    places: so the loops over it become vector code."""
    eps, tiny, largest = limits
    per_root, at_anchor, reach = norms
    far, one, two = base[i], least[i], second[i]
    total = slack[i] + far + size + reach * (np.sqrt(far * per_root) * (1 + 1e-9) + at_anchor)
    known = (total < largest) & (abs(one) < np.inf)
    error = (columns + 4) * (eps * total + tiny) if known else np.inf
    one, two = one if known else 0.0, two if known else 0.0
    least[i], second[i], slack[i] = one, two, error
    return not (two - one > 2 * error)


@njit(nogil=True, cache=True)
def open_decisions(base, terms, norms, size, limits, least, second, slack, rows):  # noqa: D103
    count = 0
    if terms.shape[0] == 1:
        columns = terms[0]
        for i in range(base.shape[0]):
            count += _weigh(i, columns, base, norms, size, limits, least, second, slack)
    else:
        for i in range(base.shape[0]):
            count += _weigh(i, terms[i], base, norms, size, limits, least, second, slack)
    if not count:
        return 0
    count = 0
    for i in range(base.shape[0]):
        if not (second[i] - least[i] > 2 * slack[i]):
            rows[count] = i
            count += 1
    return count


@njit(nogil=True, cache=True)
def unsettled(cost, base, size, low, rows):  # noqa: D103
    count = 0
    for i in range(cost.shape[0]):
        if not (cost[i] + 1e-12 * (base[i] + size) < low[i]):
            rows[count] = i
            count += 1
    return count


@njit(nogil=True, cache=True)
def lower_bounds(labels, fall, low):  # noqa: D103
    K = fall.shape[0]
    for i in range(labels.shape[0]):
        k = labels[i]
        low[i] = low[i] + fall[k] if k < K else -np.inf


@njit(nogil=True, cache=True)
def least_changes(drop, lift, length, radius, start, fall):  # noqa: D103
    for a in range(drop.shape[0]):
        least = np.inf
        for k in range(drop.shape[1]):
            spread = radius[start + a] * length[k]
            change = lift[k] - drop[a, k] - spread
            change -= 1e-12 * (abs(lift[k]) + abs(drop[a, k]) + spread)
            if k != start + a and not change >= least:
                least = change if change == change else -np.inf  # NaN: nothing is known
        fall[start + a] = least if least < np.inf else -np.inf


@njit(nogil=True, cache=True)
def relabel(rank, labels):  # noqa: D103
    for i in range(labels.shape[0]):
        labels[i] = rank[labels[i]]


@njit(nogil=True, cache=True)
def _from_threshold(i, cost, unit, alone, lam):
    e = cost[i]
    if unit.shape[0]:
        e = e * unit[i] if unit[i] > 0 else 0.0
    if alone.shape[0]:
        e -= alone[i]
    return abs(e - lam)


@njit(nogil=True, cache=True)
def count_near(cost, unit, alone, base, size, lam):
    """How many rows ``near_threshold`` would list."""
    count = 0
    if not unit.shape[0] and not alone.shape[0]:
        for i in range(cost.shape[0]):  # becomes vector code
            count += abs(cost[i] - lam) <= 1e-10 * (base[i] + lam + size)
        return count
    for i in range(cost.shape[0]):
        count += _from_threshold(i, cost, unit, alone, lam) <= 1e-10 * (base[i] + lam + size)
    return count


@njit(nogil=True, cache=True)
def near_threshold(cost, unit, alone, base, size, lam, rows):  # noqa: D103
    if not count_near(cost, unit, alone, base, size, lam):  # nearly always
        return 0
    count = 0
    for i in range(cost.shape[0]):
        if _from_threshold(i, cost, unit, alone, lam) <= 1e-10 * (base[i] + lam + size):
            rows[count] = i
            count += 1
    return count
