"""Hard topics: counts by label, changes of the objective by merges, documents solved anew, fold-in."""

import numpy as np

from kfree.kernels.compiled.cache import njit

#: Steps of labels and shares before topics are dropped.
_STEPS = 5
_FAST = {"reassoc", "contract", "nsz"}


@njit(nogil=True, cache=True)
def _entropic(y):
    """y log y, 0 at 0."""
    return y * np.log(y) if y > 0.0 else 0.0


@njit(nogil=True, cache=True)
def count_labels(data, indices, indptr, weight, labels, words, documents):  # noqa: D103
    for j in range(indptr.shape[0] - 1):
        factor = weight[j] if weight.shape[0] else 1.0
        for k in range(indptr[j], indptr[j + 1]):
            p = labels[k]
            words[p, indices[k]] += factor * data[k]
            documents[p, j] += data[k]


@njit(nogil=True, cache=True)
def merge_changes(pairs, words, pseudo, documents, weight, price, mix, change):  # noqa: D103
    for t in range(pairs.shape[0]):
        p, q = pairs[t]
        both = 0.0
        for w in range(words.shape[1]):
            a, b = words[p, w], words[q, w]
            if a > 0.0 and b > 0.0:  # elsewhere nothing changes
                e = pseudo[w]
                both += _entropic(a + b + e) - _entropic(a + e) - _entropic(b + e) + _entropic(e)
        held = 0.0
        for j in range(documents.shape[1]):
            a, b = documents[p, j], documents[q, j]
            if a > 0.0 and b > 0.0:
                saved = mix * (_entropic(a + b) - _entropic(a) - _entropic(b)) + price[j]
                held += saved * weight[j] if weight.shape[0] else saved
        change[t] = -both - held


@njit(nogil=True, cache=True)
def _held_topics(labels, start, stop, own, place, held):
    """List the topics a document holds in the order of their first cells; number its cells' topics by that list."""
    n = 0
    for k in range(start, stop):
        p = labels[k]
        if place[p] < 0:
            place[p], held[n] = n, p
            n += 1
        own[k - start] = place[p]
    for i in range(n):
        place[held[i]] = -1
    return n


@njit(nogil=True, cache=True)
def _gather(indices, start, stop, cost, held, n, near):
    """Costs of the cells in the held topics, side by side: they are looked at many times."""
    for k in range(start, stop):
        row, at = cost[indices[k]], (k - start) * n
        for i in range(n):
            near[at + i] = row[held[i]]


@njit(nogil=True, cache=True)
def _set_tolls(mix, length, data, start, stop, own, n, counts, toll):
    """Tokens of the held topics, and what a token pays in each for its share; returns how many have any."""
    counts[:n] = 0.0
    for k in range(start, stop):
        counts[own[k - start]] += data[k]
    alive = 0
    for i in range(n):
        toll[i] = -mix * np.log(counts[i] / length) if counts[i] > 0.0 else np.inf
        alive += counts[i] > 0.0
    return alive


@njit(nogil=True, cache=True)
def _find_others(cells, near, toll, n, own, target):
    """For every cell the topic but its own in which it costs least, the first of equals."""
    for c in range(cells):
        at, mine = c * n, own[c]
        least, arg = np.inf, -1
        for i in range(n):
            value = near[at + i] + toll[i]
            better = (value < least) & (i != mine)  # no branch, as it could not be foreseen
            least, arg = value if better else least, i if better else arg
        target[c] = arg


@njit(nogil=True, cache=True)
def _relabel(cells, near, toll, own, target, n):
    """Every cell to its best held topic; returns whether any moved."""
    moved = False
    for c in range(cells):
        here, there = c * n + own[c], c * n + target[c]
        if near[there] + toll[target[c]] < near[here] + toll[own[c]]:
            own[c] = target[c]
            moved = True
    return moved


@njit(nogil=True, cache=True)
def _drop_one(data, start, cells, near, mix, price, counts, n, own, target, added, change):
    """Move the cells of the topic whose removal saves most to their best others; False if none saves anything."""
    added[:n, :n] = 0.0
    for i in range(n):
        change[i] = mix * _entropic(counts[i])
    for c in range(cells):
        at, i, other = c * n, own[c], target[c]
        added[i, other] += data[start + c]
        change[i] += data[start + c] * (near[at + other] - near[at + i])
    best, drop = -1e-10 * (1.0 + price), -1
    for i in range(n):
        if counts[i] == 0.0:
            continue
        for q in range(n):
            if added[i, q] > 0.0:
                change[i] += mix * (_entropic(counts[q]) - _entropic(counts[q] + added[i, q]))
        if change[i] - price < best:
            best, drop = change[i] - price, i
    for c in range(cells):
        if own[c] == drop:
            own[c] = target[c]
    return drop >= 0


@njit(nogil=True, cache=True)
def mend_documents(data, indices, indptr, first, last, cost, mix, price, labels):  # noqa: D103
    G, longest = cost.shape[1], 0
    for j in range(first, last):
        longest = max(longest, indptr[j + 1] - indptr[j])
    counts, change, toll, added = np.empty(G), np.empty(G), np.empty(G), np.empty((G, G))
    held, place = np.empty(G, np.int64), np.full(G, -1, np.int64)
    own, target, near = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(0)
    for j in range(first, last):
        start, stop = indptr[j], indptr[j + 1]
        cells, length = stop - start, 0.0
        for k in range(start, stop):
            length += data[k]
        n = _held_topics(labels, start, stop, own, place, held)
        if n < 2:
            continue
        if near.size < cells * n:
            near = np.empty(cells * n)
        _gather(indices, start, stop, cost, held, n, near)
        steps = 0
        while _set_tolls(mix, length, data, start, stop, own, n, counts, toll) > 1:
            _find_others(cells, near, toll, n, own, target)
            if steps < _STEPS:
                steps += 1
                if _relabel(cells, near, toll, own, target, n):
                    continue
                steps = _STEPS
            if not _drop_one(data, start, cells, near, mix, price[j], counts, n, own, target, added, change):
                break
        for k in range(start, stop):
            labels[k] = held[own[k - start]]


@njit(nogil=True, cache=True, fastmath=_FAST)
def fold_in(data, indices, indptr, first, last, topics, prior, max_iter, tol, share):  # noqa: D103
    G = topics.shape[1]
    sums = np.empty(G)
    for j in range(first, last):
        start, stop = indptr[j], indptr[j + 1]
        theta = share[j]
        length = 0.0
        for k in range(start, stop):
            length += data[k]
        theta[:] = 1.0 / G
        for _ in range(max_iter):
            sums[:] = 0.0
            for k in range(start, stop):
                row, total = topics[indices[k]], 0.0
                for p in range(G):
                    total += theta[p] * row[p]
                ratio = data[k] / total
                for p in range(G):
                    sums[p] += ratio * row[p]
            moved = 0.0
            for p in range(G):
                value = (theta[p] * sums[p] + prior / G) / (length + prior)
                moved += abs(value - theta[p])
                theta[p] = value
            if moved < tol:
                break
