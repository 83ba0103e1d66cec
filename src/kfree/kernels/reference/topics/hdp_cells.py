"""The hard HDP on cells, up to the next topic that must be opened.

``prices`` (V, capacity) is -log mu. Document j holds the topics ``held[2 indptr[j] :][: n_held[j]]``, oldest first.
``where`` is the place to go on from and, on return, the place of the opening (True) or the end (False).
"""

import numpy as np
from scipy.special import xlogy


def paper_cells(
    data, indices, indptr, order, cells, prices, pseudo, lam_local, lam_global, best, arg, held, n_held, labels, where
):
    """Cells one by one, documents in ``order``, cells of a document as in ``cells``: each to the cheapest topic.

    A topic costs n prices[w], and lam_local more if the document does not hold it yet; a tie goes to the lower number.
    ``best`` and ``arg`` (V,) are the least price of each word and its topic, of all topics.
    """
    eta = pseudo.sum()
    t, i = where
    while t < order.shape[0]:
        j = order[t]
        while i < indptr[j + 1] - indptr[j]:
            k = cells[indptr[j] + i]
            w, n = indices[k], data[k]
            mine = held[2 * indptr[j] :][: n_held[j]]
            options = [(n * prices[w, q], q) for q in mine]
            if arg[w] not in mine:
                options.append((n * best[w] + lam_local[j], arg[w]))
            low, p = min(options)
            alone = xlogy(n + eta, n + eta) - xlogy(eta, eta)
            alone -= xlogy(n + pseudo[w], n + pseudo[w]) - xlogy(pseudo[w], pseudo[w])
            if low > lam_local[j] + lam_global + alone:
                where[:] = t, i
                return True
            if p not in mine:
                held[2 * indptr[j] + n_held[j]] = p
                n_held[j] += 1
            labels[k] = p
            i += 1
        t, i = t + 1, 0
    where[:] = t, i
    return False


def paper_clusters(data, indices, indptr, prices, n_topics, pseudo, lam_global, held, n_held, before, labels, where):
    """The cells of a topic in a document together, documents ascending, oldest topic first: each to the cheapest.

    ``before`` are the labels that say which cells belong together; a new topic must be opened where the cheapest
    costs more than lam_global and what the cells cost in a topic of their own.
    """
    eta = pseudo.sum()
    j, slot = where
    while j < indptr.shape[0] - 1:
        while slot < n_held[j]:
            mine = np.arange(indptr[j], indptr[j + 1])
            mine = mine[before[mine] == held[2 * indptr[j] + slot]]
            n, e = data[mine], pseudo[indices[mine]]
            cost = (n[:, None] * prices[indices[mine], :n_topics]).sum(axis=0)
            alone = xlogy(n.sum() + eta, n.sum() + eta) - xlogy(eta, eta)
            alone -= (xlogy(n + e, n + e) - xlogy(e, e)).sum()
            if cost.min() > lam_global + alone:
                where[:] = j, slot
                return True
            labels[mine] = cost.argmin()
            slot += 1
        j, slot = j + 1, 0
    where[:] = j, slot
    return False
