"""The best row of features for one row of data: parts that the kernels share.

A row z costs ``z G z' - 2 z.p + charge.z`` besides its square, where G = A A' and p = A x.
"""

import numpy as np

from kfree.kernels.compiled.cache import njit

#: Up to this many features all rows are looked at; the table has 2^LOW columns.
MOST, LOW = 12, 6
# A pivot below this share of its diagonal stands for a feature that the earlier ones span.
_FLAT = 1e-10


@njit(nogil=True, cache=True)
def _subset_sums(step, total):
    """``total[y]`` = sum of the steps of the bits of y."""
    total[0] = 0.0
    for b in range(step.shape[0]):
        half = 1 << b
        for y in range(half):
            total[half + y] = total[y] + step[b]


@njit(nogil=True, cache=True)
def _squares(G):
    """``z G z'`` of all rows z of a few features."""
    K = G.shape[0]
    value, cross = np.zeros(1 << K), np.zeros(1 << K)
    for b in range(K):
        _subset_sums(G[b, :b], cross)
        half = 1 << b
        for y in range(half):
            value[half + y] = value[y] + G[b, b] + 2.0 * cross[y]
    return value


@njit(nogil=True, cache=True)
def make_tables(G):
    """All 2^K rows in two halves: ``z G z'`` of the first LOW features, of the others, and twice what they share.

    The last output is the least of what each row of the others shares with any row of the first.
    """
    K = G.shape[0]
    bits = min(K, LOW)
    own_low, own_high = _squares(G[:bits, :bits]), _squares(G[bits:, bits:])
    shared, least = np.zeros((own_high.shape[0], own_low.shape[0])), np.zeros(own_high.shape[0])
    step = np.zeros(bits)
    for j in range(own_high.shape[0]):
        step[:] = 0.0
        for b in range(K - bits):
            if (j >> b) & 1:
                step += 2.0 * G[bits + b, :bits]
        _subset_sums(step, shared[j])
        least[j] = shared[j].min()
    return own_low, own_high, shared, least


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz"})
def _least_sum(table, j, b):
    """Least entry of row j of a table plus b (there are no NaN, and saying so lets it run in lanes)."""
    best = table[j, 0] + b[0]
    for i in range(1, table.shape[1]):
        value = table[j, i] + b[i]
        best = value if value < best else best
    return best


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz"})
def _half_costs(p, charge, first, stop, own, cost):
    """Cost of all rows of one half on its own; returns the least."""
    cost[0] = 0.0
    half = 1
    for b in range(first, stop):
        step = charge[b] - 2.0 * p[b]
        for y in range(half):
            cost[half + y] = cost[y] + step
        half *= 2
    best = np.inf
    for y in range(half):
        value = cost[y] + own[y]
        cost[y] = value
        best = value if value < best else best
    return best


@njit(nogil=True, cache=True)
def least_row(p, charge, own_low, own_high, shared, least, guess, low, high):
    """Index and cost of the best row, ``guess`` if that is one; ``low`` and ``high`` are work space.

    Halves that cannot be better than the best so far, whatever stands in the other half, are skipped.
    """
    bits = min(p.shape[0], LOW)
    bottom = _half_costs(p, charge, 0, bits, own_low, low)
    if p.shape[0] > bits:
        _half_costs(p, charge, bits, p.shape[0], own_high, high)
    row = guess >> bits
    inner = _least_sum(shared, row, low)
    best = high[row] + inner
    for j in range(own_high.shape[0]):
        if high[j] + least[j] + bottom < best:
            value = _least_sum(shared, j, low)
            if high[j] + value < best:
                best, row, inner = high[j] + value, j, value
    i = guess & ((1 << bits) - 1)
    if row == guess >> bits and shared[row, i] + low[i] == inner:
        return guess, best
    for i in range(own_low.shape[0]):
        if shared[row, i] + low[i] == inner:
            break
    return (row << bits) + i, best


@njit(nogil=True, cache=True)
def index_of(z):
    """A row as a number, first feature lowest."""
    index = 0
    for k in range(z.shape[0]):
        index |= int(z[k]) << k
    return index


@njit(nogil=True, cache=True)
def set_row(index, z):
    """The opposite of ``index_of``."""
    for k in range(z.shape[0]):
        z[k] = (index >> k) & 1


@njit(nogil=True, cache=True)
def cost_of(z, p, charge, G):
    """Cost of one row."""
    total = 0.0
    for k in range(z.shape[0]):
        if z[k]:
            inner = charge[k] - 2.0 * p[k]
            for j in range(z.shape[0]):
                if z[j]:
                    inner += G[k, j]
            total += inner
    return total


@njit(nogil=True, cache=True)
def sweep_row(p, charge, G, slack, first, z):
    """One cyclic sweep of single bits from ``first`` on; returns whether a bit changed."""
    changed = False
    for k in range(first, z.shape[0]):
        inner = 0.0
        for j in range(z.shape[0]):
            if z[j] and j != k:
                inner += G[k, j]
        gain = G[k, k] + 2.0 * inner - 2.0 * p[k] + charge[k]  # of switching it on
        if (z[k] == 0 and gain < -slack) or (z[k] == 1 and gain > slack):
            z[k] = 1 - z[k]
            changed = True
    return changed


@njit(nogil=True, cache=True)
def factor(G):
    """Order of the features (short ones first) and R with R'R = G in that order; rows without a pivot are zero."""
    K = G.shape[0]
    order = np.argsort(np.diag(G).copy(), kind="mergesort")
    R = np.zeros((K, K))
    for i in range(K):
        pivot = G[order[i], order[i]]
        for m in range(i):
            pivot -= R[m, i] * R[m, i]
        if pivot <= _FLAT * G[order[i], order[i]]:
            continue
        R[i, i] = np.sqrt(pivot)
        for j in range(i + 1, K):
            inner = G[order[i], order[j]]
            for m in range(i):
                inner -= R[m, i] * R[m, j]
            R[i, j] = inner / R[i, i]
    return order, R


@njit(nogil=True, cache=True)
def _level(R, c, z, i, bit, extra):
    """What the bit of level i adds, those above it given."""
    gap = c[i]
    for j in range(i + 1, z.shape[0]):
        if z[j]:
            gap -= R[i, j]
    if bit:
        gap -= R[i, i]
        return gap * gap + extra
    return gap * gap


@njit(nogil=True, cache=True)
def decode_row(p, charge, G, order, R, cap, slack, z):
    """Sphere decoder: depth first with the better bit first, from the row that sweeps end in; at most ``cap`` nodes.

    Sets z to a row that costs less by more than ``slack``, if it finds one; returns whether it did.
    """
    K = z.shape[0]
    start = z.copy()
    before = cost_of(z, p, charge, G)
    for _ in range(K):
        if not sweep_row(p, charge, G, slack, 0, z):
            break
    best = cost_of(z, p, charge, G)
    c, offset = np.zeros(K), 0.0
    for i in range(K):
        if R[i, i] > 0.0:
            inner = p[order[i]]
            for m in range(i):
                inner -= R[m, i] * c[m]
            c[i] = inner / R[i, i]
            offset += c[i] * c[i]
    state, tried, first = np.zeros(K, np.uint8), np.zeros(K, np.uint8), np.zeros(K, np.uint8)
    partial = np.zeros(K + 1)
    trial = np.zeros(K, np.uint8)
    i, nodes = K - 1, 0
    while i < K:
        if tried[i] == 2 or nodes >= cap:
            tried[i] = 0
            state[i] = 0
            i += 1
            continue
        extra = charge[order[i]]
        if tried[i] == 0:
            first[i] = 1 if _level(R, c, state, i, 1, extra) < _level(R, c, state, i, 0, extra) else 0
        bit = first[i] if tried[i] == 0 else 1 - first[i]
        tried[i] += 1
        nodes += 1
        state[i] = bit
        partial[i] = partial[i + 1] + _level(R, c, state, i, bit, extra)
        if partial[i] >= best + offset - slack:
            if tried[i] == 1:
                tried[i] = 2  # the other bit is no better
            continue
        if i > 0:
            i -= 1
            continue
        for j in range(K):
            trial[order[j]] = state[j]
        value = cost_of(trial, p, charge, G)  # not the sum along the path: what is compared is always this form
        if value < best:
            best = value
            z[:] = trial
    if best < before - slack:
        return True
    z[:] = start
    return False
