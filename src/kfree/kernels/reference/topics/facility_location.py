"""Documents as facility location: which topics to open when every open one costs a price."""

import numpy as np


def _total(cost, price, is_open):
    return cost[:, is_open].min(axis=1).sum() + price * is_open.sum()


def _moves(is_open):
    """Every opening, closing and exchange, in the order in which ties are settled."""
    for p in range(is_open.size):
        if is_open[p]:
            if is_open.sum() > 1:
                yield None, p
            continue
        yield p, None
        for q in np.flatnonzero(is_open):
            yield p, q


def _descend(cost, price, is_open):
    total = _total(cost, price, is_open)
    while True:
        best, choice = 0.0, None
        for opened, closed in _moves(is_open):
            new = is_open.copy()
            if opened is not None:
                new[opened] = True
            if closed is not None:
                new[closed] = False
            saved = total - _total(cost, price, new)
            if saved > best:
                best, choice = saved, new
        if choice is None or best <= 1e-10 * (price + cost[:, is_open].min(axis=1).sum()):
            return is_open, total
        is_open, total = choice, _total(cost, price, choice)


def place_documents(data, indices, indptr, first, last, cost, price, labels):
    """Solve documents anew: min over sets U of sum_w n_w min_{p in U} cost[w, p] + price |U|, by local search.

    From the topics a document holds, and from the best single one: the best opening, closing or exchange until none
    saves anything. The labels stay if this is not better.
    """
    G = cost.shape[1]
    for j in range(first, last):
        cells = slice(indptr[j], indptr[j + 1])
        if cells.start == cells.stop:
            continue
        mine = data[cells, None] * cost[indices[cells]]
        held = np.isin(np.arange(G), labels[cells])
        now = mine[np.arange(mine.shape[0]), labels[cells]].sum() + price[j] * held.sum()
        for start in (held, np.arange(G) == mine.sum(axis=0).argmin()):
            is_open, total = _descend(mine, price[j], start.copy())
            if total < now - 1e-10 * (price[j] + now):
                now, open_topics = total, np.flatnonzero(is_open)
                labels[cells] = open_topics[mine[:, open_topics].argmin(axis=1)]
