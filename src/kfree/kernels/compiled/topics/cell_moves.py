"""Moves of single cells between topics by the exact change of the objective; see the reference for the formulas."""

import numpy as np

from kfree.kernels.compiled.cache import njit


@njit(nogil=True, cache=True)
def _grown(y, n):
    """X(y + n) - X(y) with X(y) = y log y."""
    after = y + n
    return (after * np.log(after) if after > 0.0 else 0.0) - (y * np.log(y) if y > 0.0 else 0.0)


@njit(nogil=True, cache=True)
def _to(q, w, j, n, m, factor, words, size, documents, pseudo, eta, mix, price):
    """What cell (j, w) adds to the objective in topic q, which does not hold it."""
    change = _grown(size[q] + eta, m) - _grown(words[w, q] + pseudo[w], m) - factor * mix * _grown(documents[j, q], n)
    return change + (factor * price[j] if documents[j, q] == 0.0 else 0.0)


@njit(nogil=True, cache=True)
def collapse_cells(data, indices, indptr, weight, pseudo, mix, price, top, tiny, words, size, documents, labels):  # noqa: D103
    eta, moved, G = pseudo.sum(), 0, size.shape[0]
    for j in range(indptr.shape[0] - 1):
        factor = weight[j] if weight.shape[0] else 1.0
        if factor == 0.0:
            continue
        for k in range(indptr[j], indptr[j + 1]):
            w, p, n = indices[k], labels[k], data[k]
            m = factor * n
            # without the cell; what is left of rounding is nothing
            words[w, p] = words[w, p] - m if words[w, p] - m > tiny * m else 0.0
            size[p] = size[p] - m if size[p] - m > tiny * m else 0.0
            documents[j, p] = documents[j, p] - n if documents[j, p] - n > tiny * n else 0.0
            stay = _to(p, w, j, n, m, factor, words, size, documents, pseudo, eta, mix, price)
            stay += top if size[p] == 0.0 else 0.0
            best, arg = stay - tiny * (1.0 + abs(stay)), p
            for q in range(G):
                if q != p and size[q] > 0.0:
                    value = _to(q, w, j, n, m, factor, words, size, documents, pseudo, eta, mix, price)
                    if value < best:
                        best, arg = value, q
            words[w, arg] += m
            size[arg] += m
            documents[j, arg] += n
            labels[k] = arg
            moved += arg != p
    return moved
