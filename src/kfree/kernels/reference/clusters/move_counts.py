"""Rows of counts that move between clusters one at a time."""

import numpy as np
import scipy.sparse as sp
from scipy.special import xlogy

from kfree.kernels.reference.clusters.moving import destination, less


def _value(sums, mass):
    """M phi(sums / M) for phi(x) = sum x log x, cluster by cluster."""
    size = sums.sum(axis=0)
    return xlogy(sums, sums).sum(axis=0) - xlogy(size, np.where(mass > 0, mass, 1.0))


def move_counts(
    data, indices, indptr, scale, weight, order, pseudo, eta, lam, gain, tiny, most, sums, size, mass, count, labels
):
    """Visit rows in order: each moves to the cluster whose cost it raises least, or stands alone if that costs more
    than lam, where it gains more by it than ``gain`` of what is at stake.

    A cluster with sums T (p,) and weight M, pseudo-counts included, costs - M phi(T / M) up to what no move changes, so
    that a row (w, x) raises it by value(T, M) - value(T + w x, M + w), less the same for a cluster without rows. The
    columns of ``sums`` are clusters; ``count`` are their rows, of weight, and there may be ``most`` that have some.
    Returns how many rows were visited, fewer if there is no place for a new cluster, and the weight that moved.
    """
    table = sp.csr_matrix((data, indices, indptr), shape=(indptr.size - 1, sums.shape[0]))
    moved = 0.0
    for t, i in enumerate(order):
        w, a = weight[i], labels[i]
        x = np.zeros(sums.shape[0])
        x[table[i].indices] = table[i].data * (w * (scale[i] if scale.size else 1.0))
        alone = _value(pseudo[:, None], np.array([eta])) - _value((pseudo + x)[:, None], np.array([eta + w]))
        rise = _value(sums, mass) - _value(sums + x[:, None], mass + w) - alone
        rise[(count == 0) | (np.arange(count.size) == a)] = np.inf
        home = lam
        if count[a] > 1:
            rest, lighter = less(sums[:, [a]], x[:, None], tiny), np.maximum(mass[[a]] - w, 1e-15 * mass[a])
            home = float((_value(rest, lighter) - _value(rest + x[:, None], lighter + w) - alone)[0])
        best = destination(home, rise, lam, gain, most, count)
        if best < 0:
            continue
        if best == count.size:
            return t, moved
        count[a] -= 1
        sums[:, a], size[a] = less(sums[:, a], x, tiny), max(size[a] - x.sum(), 0.0)
        mass[a] = max(mass[a] - w, 1e-15 * mass[a])
        if count[a] == 0:
            sums[:, a], mass[a], size[a] = pseudo, eta, pseudo.sum()
        sums[:, best] += x
        mass[best], size[best], count[best], labels[i] = mass[best] + w, size[best] + x.sum(), count[best] + 1, best
        moved += w
    return len(order), moved
