"""Documents as facility location: which topics to open when every open one costs a price."""

import numpy as np

from kfree.kernels.compiled.cache import njit


@njit(nogil=True, cache=True)
def _settle(cost, is_open, best, second, arg):
    """The two least costs of every cell among open topics; returns their sum."""
    total = 0.0
    for t in range(cost.shape[0]):
        best[t], second[t], arg[t] = np.inf, np.inf, -1
        for p in range(cost.shape[1]):
            if not is_open[p]:
                continue
            value = cost[t, p]
            if value < best[t]:
                second[t], best[t], arg[t] = best[t], value, p
            elif value < second[t]:
                second[t] = value
        total += best[t]
    return total


@njit(nogil=True, cache=True)
def _best_move(cost, price, is_open, best, second, arg, gain, loss):
    """The opening, closing or exchange that saves most: saving, topic to open, topic to close (-1: none)."""
    u, G = cost.shape
    gain[:] = 0.0
    loss[:] = 0.0
    n_open = 0
    for p in range(G):
        n_open += is_open[p]
    for t in range(u):
        low, high, mine = best[t], second[t], loss[arg[t]]
        row = cost[t]
        for p in range(G):
            gain[p] += max(0.0, low - row[p])
            mine[p] += min(high, max(row[p], low)) - low
    top, opened, closed = 0.0, -1, -1
    for p in range(G):
        if is_open[p]:
            # to exchange p for itself is to close it: its cells go to their second best
            if n_open > 1:
                lost = 0.0
                for t in range(u):
                    if arg[t] == p:
                        lost += second[t] - best[t]
                if price - lost > top:
                    top, opened, closed = price - lost, -1, p
            continue
        if gain[p] - price > top:
            top, opened, closed = gain[p] - price, p, -1
        for q in range(G):
            if is_open[q] and gain[p] - loss[q, p] > top:
                top, opened, closed = gain[p] - loss[q, p], p, q
    return top, opened, closed


@njit(nogil=True, cache=True)
def _descend(cost, price, is_open, best, second, arg, gain, loss):
    """Best moves until none saves anything; returns the cost with the price of the open topics."""
    total = _settle(cost, is_open, best, second, arg)
    while True:
        saved, opened, closed = _best_move(cost, price, is_open, best, second, arg, gain, loss)
        if (opened < 0 and closed < 0) or saved <= 1e-10 * (price + total):
            break
        if opened >= 0:
            is_open[opened] = True
        if closed >= 0:
            is_open[closed] = False
        total = _settle(cost, is_open, best, second, arg)
    n_open = 0
    for p in range(cost.shape[1]):
        n_open += is_open[p]
    return total + price * n_open


@njit(nogil=True, cache=True)
def place_documents(data, indices, indptr, first, last, cost, price, labels):  # noqa: D103
    G, longest = cost.shape[1], 0
    for j in range(first, last):
        longest = max(longest, indptr[j + 1] - indptr[j])
    mine = np.empty((longest, G))
    best, second, arg = np.empty(longest), np.empty(longest), np.empty(longest, np.int64)
    gain, loss, is_open, held = np.empty(G), np.empty((G, G)), np.zeros(G, np.bool_), np.zeros(G, np.bool_)
    for j in range(first, last):
        start, u = indptr[j], indptr[j + 1] - indptr[j]
        if u == 0:
            continue
        held[:] = False
        for t in range(u):
            for p in range(G):
                mine[t, p] = data[start + t] * cost[indices[start + t], p]
            held[labels[start + t]] = True
        now = 0.0
        for t in range(u):
            now += mine[t, labels[start + t]]
        for p in range(G):
            now += price[j] * held[p]
        best_single, least = 0, np.inf
        for p in range(G):
            total = 0.0
            for t in range(u):
                total += mine[t, p]
            if total < least:
                best_single, least = p, total
        for attempt in range(2):
            if attempt == 0:
                is_open[:] = held
            else:
                is_open[:] = False
                is_open[best_single] = True
            total = _descend(mine[:u], price[j], is_open, best, second, arg, gain, loss)
            if total < now - 1e-10 * (price[j] + now):
                now = total
                for t in range(u):
                    labels[start + t] = arg[t]
