"""Hard topics: counts by label, changes of the objective by merges, documents solved anew, fold-in."""

import numpy as np
from numba import njit

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
def gain_of_seeds(data, rows, indptr, seed_words, seed_values, seed_starts, gain):  # noqa: D103
    for s in range(seed_starts.shape[0] - 1):
        for t in range(seed_starts[s], seed_starts[s + 1]):
            w, value = seed_words[t], seed_values[t]
            for k in range(indptr[w], indptr[w + 1]):
                gain[s, rows[k]] += data[k] * value


@njit(nogil=True, cache=True)
def _held_topics(labels, start, stop, data, counts, held):
    """Count the tokens of the topics a document holds; list them in the order of their first cells."""
    n = 0
    for k in range(start, stop):
        if counts[labels[k]] == 0.0:
            held[n] = labels[k]
            n += 1
        counts[labels[k]] += data[k]
    return n


@njit(nogil=True, cache=True)
def _set_tolls(mix, length, counts, held, n, toll):
    """What a token pays in each held topic for the share of the topic."""
    for i in range(n):
        toll[held[i]] = -mix * np.log(counts[held[i]] / length)


@njit(nogil=True, cache=True)
def _relabel(indices, start, stop, cost, toll, held, n, labels):
    """Every cell to its best held topic; returns how many moved."""
    moved = 0
    for k in range(start, stop):
        row, arg = cost[indices[k]], labels[k]
        best = row[arg] + toll[arg]
        for i in range(n):
            value = row[held[i]] + toll[held[i]]
            if value < best:
                best, arg = value, held[i]
        moved += arg != labels[k]
        labels[k] = arg
    return moved


@njit(nogil=True, cache=True)
def _without(p, indices, data, start, stop, cost, mix, toll, counts, held, n, labels, added, target):
    """Change of the objective, but for the price, if the cells of topic p go to their best others."""
    change = mix * _entropic(counts[p])
    for i in range(n):
        added[held[i]] = 0.0
    for k in range(start, stop):
        if labels[k] != p:
            continue
        row, best, arg = cost[indices[k]], np.inf, -1
        for i in range(n):
            q = held[i]
            if q != p and row[q] + toll[q] < best:
                best, arg = row[q] + toll[q], q
        target[k - start] = arg
        added[arg] += data[k]
        change += data[k] * (row[arg] - row[p])
    for i in range(n):
        q = held[i]
        if added[q] > 0.0:
            change += mix * (_entropic(counts[q]) - _entropic(counts[q] + added[q]))
    return change


@njit(nogil=True, cache=True)
def _drop_one(indices, data, start, stop, cost, mix, price, toll, counts, held, n, labels, added, target, chosen):
    """Move the cells of the topic whose removal saves most; False if none saves anything."""
    best, drop = -1e-10 * (1.0 + price), -1
    for i in range(n):
        p = held[i]
        change = _without(p, indices, data, start, stop, cost, mix, toll, counts, held, n, labels, added, target)
        if change - price < best:
            best, drop = change - price, p
            chosen[: stop - start] = target[: stop - start]
    if drop < 0:
        return False
    for k in range(start, stop):
        if labels[k] == drop:
            labels[k] = chosen[k - start]
    return True


@njit(nogil=True, cache=True)
def mend_documents(data, indices, indptr, first, last, cost, mix, price, labels):  # noqa: D103
    G, longest = cost.shape[1], 0
    for j in range(first, last):
        longest = max(longest, indptr[j + 1] - indptr[j])
    counts, added, toll, held = np.zeros(G), np.zeros(G), np.empty(G), np.empty(G, np.int64)
    target, chosen = np.empty(longest, np.int64), np.empty(longest, np.int64)
    for j in range(first, last):
        start, stop = indptr[j], indptr[j + 1]
        length, steps = 0.0, 0
        for k in range(start, stop):
            length += data[k]
        while start < stop:
            n = _held_topics(labels, start, stop, data, counts, held)
            _set_tolls(mix, length, counts, held, n, toll)
            again = False
            if steps < _STEPS:
                steps += 1
                again = _relabel(indices, start, stop, cost, toll, held, n, labels) > 0
            if not again:
                steps = _STEPS
                again = n > 1 and _drop_one(
                    indices,
                    data,
                    start,
                    stop,
                    cost,
                    mix,
                    price[j],
                    toll,
                    counts,
                    held,
                    n,
                    labels,
                    added,
                    target,
                    chosen,
                )
            for i in range(n):
                counts[held[i]] = 0.0
            if not again:
                break


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
