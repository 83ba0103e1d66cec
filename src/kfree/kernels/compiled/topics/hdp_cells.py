"""The hard HDP on cells, up to the next topic that must be opened; see the reference for what each does."""

import numpy as np

from kfree.kernels.compiled.cache import njit


@njit(nogil=True, cache=True)
def _entropic(y):
    return y * np.log(y) if y > 0.0 else 0.0


@njit(nogil=True, cache=True)
def paper_cells(  # noqa: D103
    data, indices, indptr, order, cells, prices, pseudo, lam_local, lam_global, best, arg, held, n_held, labels, where
):
    eta = pseudo.sum()
    t, i = where
    while t < order.shape[0]:
        j = order[t]
        first = 2 * indptr[j]
        while i < indptr[j + 1] - indptr[j]:
            k = cells[indptr[j] + i]
            w, n = indices[k], data[k]
            low, p, outside = np.inf, -1, True
            for h in range(first, first + n_held[j]):
                q = held[h]
                outside = outside and q != arg[w]
                value = n * prices[w, q]
                if value < low or (value == low and q < p):
                    low, p = value, q
            # outside the document only the best of all can win: where that is held, so is the winner
            value = n * best[w] + lam_local[j]
            opens = outside and (value < low or (value == low and arg[w] < p))
            if opens:
                low, p = value, arg[w]
            alone = _entropic(n + eta) - _entropic(eta) - _entropic(n + pseudo[w]) + _entropic(pseudo[w])
            if low > lam_local[j] + lam_global + alone:
                where[0], where[1] = t, i
                return True
            if opens:
                held[first + n_held[j]] = p
                n_held[j] += 1
            labels[k] = p
            i += 1
        t, i = t + 1, 0
    where[0], where[1] = t, i
    return False


@njit(nogil=True, cache=True, fastmath={"contract"})
def paper_clusters(  # noqa: D103
    data, indices, indptr, prices, n_topics, pseudo, lam_global, held, n_held, before, labels, where
):
    eta = pseudo.sum()
    cost = np.empty(n_topics)
    j, slot = where
    while j < indptr.shape[0] - 1:
        while slot < n_held[j]:
            p = held[2 * indptr[j] + slot]
            cost[:] = 0.0
            size, alone = 0.0, -_entropic(eta)
            for k in range(indptr[j], indptr[j + 1]):
                if before[k] != p:
                    continue
                row, n, e = prices[indices[k]], data[k], pseudo[indices[k]]
                for q in range(n_topics):
                    cost[q] += n * row[q]
                size += n
                alone += _entropic(e) - _entropic(n + e)
            alone += _entropic(size + eta)
            low, best = np.inf, -1
            for q in range(n_topics):
                if cost[q] < low:
                    low, best = cost[q], q
            if low > lam_global + alone:
                where[0], where[1] = j, slot
                return True
            for k in range(indptr[j], indptr[j + 1]):
                if before[k] == p:
                    labels[k] = best
            slot += 1
        j, slot = j + 1, 0
    where[0], where[1] = j, slot
    return False
