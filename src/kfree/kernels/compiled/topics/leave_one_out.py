"""The closing pass over the cells of a document-term table: every cell is judged by the counts of the others."""

import numpy as np

from kfree.kernels.compiled.cache import njit

_FAST = {"reassoc", "contract", "nsz"}
_HALF, _ONE, _TWO = np.float32(0.5), np.float32(1.0), np.float32(2.0)


@njit(nogil=True, cache=True, fastmath=_FAST)
def _raised(value, mix):
    """value ** mix; None is 1 and a type of its own, so that loops without a power are compiled without one."""
    if mix is None:
        return value
    return value**mix


@njit(nogil=True, cache=True, fastmath=_FAST)
def _times(value, mix):
    if mix is None:
        return value
    return value * mix


@njit(nogil=True, cache=True, fastmath=_FAST)
def _without_own(topic, share, tokens, part, scale, floor, mix, least, burst):
    """What a cell would find in one topic without itself; see the reference."""
    own = tokens * topic * _raised(share, mix)
    taken, drawn = own * part * scale, _times(own, mix)
    word = max(topic - taken, floor * scale)
    word = max(word - _TWO * burst * taken, _HALF * word)
    document = max(share - drawn, least)
    document = max(document - _TWO * burst * drawn, _HALF * document)
    return word * _raised(document, mix)


@njit(nogil=True, cache=True, fastmath=_FAST)
def close_documents(data, rows, indptr, topics, share, weight, pseudo, scale, least, mix, burst, own, ratio, total):  # noqa: D103
    G = topics.shape[1]
    found = np.empty(G, np.float32)
    for w in range(topics.shape[0]):
        topic, floor = topics[w], pseudo[w]
        for k in range(indptr[w], indptr[w + 1]):
            theta, part = share[rows[k]], weight[rows[k]]
            chance = np.float32(0.0)
            for p in range(G):
                chance += topic[p] * _raised(theta[p], mix)
            own[k] = tokens = (_ONE + burst * (data[k] - _ONE)) / chance
            chance = np.float32(0.0)
            for p in range(G):
                value = _without_own(topic[p], theta[p], tokens, part, scale[p], floor, mix, least, burst)
                found[p] = value
                chance += value
            ratio[k] = tokens = data[k] / chance
            into = total[rows[k]]
            for p in range(G):
                into[p] += tokens * found[p]


@njit(nogil=True, cache=True, fastmath=_FAST)
def close_words(own, ratio, rows, indptr, first, last, topics, share, weight, pseudo, scale, least, mix, burst, total):  # noqa: D103
    G = topics.shape[1]
    sums = np.empty(G, np.float32)
    for w in range(first, last):
        if indptr[w] == indptr[w + 1]:
            continue
        topic, floor = topics[w], pseudo[w]
        sums[:] = np.float32(0.0)
        for k in range(indptr[w], indptr[w + 1]):
            theta, part, tokens, factor = share[rows[k]], weight[rows[k]], own[k], ratio[k]
            for p in range(G):
                value = _without_own(topic[p], theta[p], tokens, part, scale[p], floor, mix, least, burst)
                sums[p] += factor * value
        row = total[w]
        for p in range(G):
            row[p] += sums[p]
