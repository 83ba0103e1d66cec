"""Moves of single cells between topics by the exact change of the objective."""

import numpy as np
from scipy.special import xlogy


def _grown(y, n):
    return xlogy(y + n, y + n) - xlogy(y, y)


def collapse_cells(data, indices, indptr, weight, pseudo, mix, price, top, tiny, words, size, documents, labels):
    """Move every cell, one after the other, to the topic in which it costs least; returns how many moved.

    Counts ``words`` (V, G), ``size`` (G,) and ``documents`` (D, G) follow at once. A cell of n tokens in a document
    of weight f adds to topic q, with X(y) = y log y, m = f n and dX(y, n) = X(y + n) - X(y),
    dX(size + eta, m) - dX(words + pseudo, m) - f mix dX(documents, n), and f price if the document does not hold the
    topic yet; to its own topic also ``top`` if it is alone there. Other topics that are empty are not looked at, and
    a cell stays if it would gain less than rounding, ``tiny``.
    """
    eta, moved = pseudo.sum(), 0
    for j in range(indptr.shape[0] - 1):
        factor = weight[j] if weight.shape[0] else 1.0
        for k in range(indptr[j], indptr[j + 1]) if factor > 0 else ():
            w, p, n = indices[k], labels[k], data[k]
            m = factor * n
            for table, at, tokens in ((words, (w, p), m), (size, p, m), (documents, (j, p), n)):
                table[at] = table[at] - tokens if table[at] - tokens > tiny * tokens else 0.0
            cost = _grown(size + eta, m) - _grown(words[w] + pseudo[w], m) - factor * mix * _grown(documents[j], n)
            cost = cost + np.where(documents[j] == 0, factor * price[j], 0.0)
            stay = cost[p] + (top if size[p] == 0 else 0.0)
            cost[size == 0] = np.inf
            cost[p] = stay - tiny * (1.0 + abs(stay))
            q = p if cost.min() == cost[p] else int(cost.argmin())
            words[w, q] += m
            size[q] += m
            documents[j, q] += n
            labels[k] = q
            moved += q != p
    return moved
