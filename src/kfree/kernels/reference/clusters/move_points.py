"""Rows that move between clusters one at a time by squared distance."""

import numpy as np

from kfree.kernels.reference.clusters.moving import destination, less


def _rise(x, w, mean, mass):
    """What clusters, whose centres are the columns of ``mean``, cost more with a row."""
    return mass * w / (mass + w) * ((mean - x[:, None]) ** 2).sum(axis=0)


def move_points(x, weight, rows, factor, pseudo, eta, lam, gain, tiny, most, sums, mean, mass, count, labels):
    """Visit rows in order: each moves to the cluster whose cost it raises least, or stands alone if that costs more
    than lam, where it gains more by it than ``gain`` of what is at stake.

    A cluster with the centre c and weight M, pseudo-observations included, costs factor M w / (M + w) |x - c|^2 more
    with a row (w, x), less the same for a cluster without rows. Columns of ``sums`` and ``mean`` are clusters;
    ``count`` are their rows, and there may be ``most`` that have some. ``x`` (m, p) and ``weight`` (m,) are of the
    rows visited, ``rows`` says where their labels are. Returns how many were visited, fewer if there is no place for a
    new cluster, and the weight that moved.
    """
    moved = 0.0
    for t, row in enumerate(rows):
        w, a = weight[t], labels[row]
        alone = float(_rise(x[t], w, pseudo[:, None] / eta, np.array([eta]))[0]) if eta else 0.0
        rise = factor * (_rise(x[t], w, mean, mass) - alone)
        rise[(count == 0) | (np.arange(count.size) == a)] = np.inf
        home = lam
        if count[a] > 1:
            lighter = np.maximum(mass[[a]] - w, 1e-15 * mass[a])
            rest = less(sums[:, [a]], w * x[t][:, None], tiny) / lighter
            home = factor * float(_rise(x[t], w, rest, lighter)[0] - alone)
        best = destination(home, rise, lam, gain, most, count)
        if best < 0:
            continue
        if best == count.size:
            return t, moved
        count[a] -= 1
        sums[:, a], mass[a] = less(sums[:, a], w * x[t], tiny), max(mass[a] - w, 1e-15 * mass[a])
        if count[a] == 0:
            sums[:, a], mass[a] = pseudo, eta
        else:
            mean[:, a] = sums[:, a] / mass[a]
        sums[:, best] += w * x[t]
        mass[best], count[best], labels[row] = mass[best] + w, count[best] + 1, best
        mean[:, best] = sums[:, best] / mass[best]
        moved += w
    return len(rows), moved
