"""Collapsed moves of the hard HDP: one row at a time, the centres and the local clusters follow at once.

As in ``collapsed``, with two more terms: a cluster that the row's group does not hold costs lam_local, and a row that
is alone in its local cluster gives lam_local back when it leaves.
"""

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.collapsed import GAIN, Clusters, home_rises, rises
from kfree.inference.clusters.table import Table
from kfree.inference.shared.groups import Groups, Lams

#: Rows evaluated together, limited by the size of the temporary (rows x clusters x columns).
BLOCK, ENTRIES = 512, 500_000


class _Company:
    """How many rows of each group of a block are in each cluster."""

    def __init__(self, groups: Groups, labels: Array, rows: Array, K: int):
        code, self.group = np.unique(groups.code[rows], return_inverse=True)
        self.count = np.zeros((code.size, K), np.intp)
        for line, g in enumerate(code):
            own = labels[groups.rows[groups.start[g] : groups.start[g + 1]]]
            self.count[line] = np.bincount(own, minlength=K)

    def widen(self, K: int) -> None:
        more = np.zeros((self.count.shape[0], K - self.count.shape[1]), np.intp)
        self.count = np.concatenate([self.count, more], axis=1)

    def move(self, t: int, a: int, b: int) -> None:
        self.count[self.group[t], a] -= 1
        self.count[self.group[t], b] += 1

    def joining(self, t: slice) -> Array:
        """1 where the group of a row does not hold a cluster yet."""
        return (self.count[self.group[t]] == 0).astype(float)

    def leaving(self, t: slice, labels: Array) -> Array:
        """1 for rows that are alone in their local cluster."""
        return (self.count[self.group[t], labels] == 1).astype(float)


def move_shared_rows(table: Table, groups: Groups, labels: Array, lams: Lams, order: Array, most: float) -> float:
    """One sweep over the rows; labels are changed in place. Returns the weight that moved."""
    K = int(labels.max()) + 1
    total, mass = table.rows.sums(labels, K)
    clusters = Clusters(total, mass, np.bincount(labels[groups.rows], minlength=K))
    moved, start = 0.0, 0
    while start < order.size:
        size = max(1, min(BLOCK, ENTRIES // max(clusters.total.size, 1)))
        rows = order[start : start + size]
        moved += _move_block(table, groups, labels, lams, rows, clusters, most)
        start += rows.size
    return moved


def _move_block(
    table: Table, groups: Groups, labels: Array, lams: Lams, rows: Array, clusters: Clusters, most: float
) -> float:
    x, weight = table.rows.dense(rows), table.rows.weights(rows)
    rise = rises(table, x, weight, clusters, np.arange(clusters.count.size))
    home = home_rises(table, x, weight, clusters, labels[rows], lams.top)
    company = _Company(groups, labels, rows, clusters.count.size)
    moved, t = 0.0, 0
    while True:
        t, best = _next_mover(t, rise, home, labels[rows], company, lams, clusters.room(most))
        if t >= rows.size:
            return moved
        a = int(labels[rows[t]])
        clusters.take(a, x[t], weight[t])
        b = clusters.slot() if best < 0 else best
        clusters.put(b, x[t], weight[t])
        if clusters.count.size > rise.shape[1]:
            more = np.full((rows.size, clusters.count.size - rise.shape[1]), np.inf)
            rise = np.concatenate([rise, more], axis=1)
            company.widen(clusters.count.size)
        company.move(t, a, b)
        labels[rows[t]] = b
        moved += weight[t]
        t += 1
        rest, touched = slice(t, rows.size), np.array([a, b])
        rise[rest, touched] = rises(table, x[rest], weight[rest], clusters, touched)
        stale = t + np.flatnonzero(np.isin(labels[rows[rest]], touched))
        home[stale] = home_rises(table, x[stale], weight[stale], clusters, labels[rows[stale]], lams.top)


def _next_mover(
    first: int, rise: Array, home: Array, labels: Array, company: _Company, lams: Lams, room: bool
) -> tuple[int, int]:
    """The next row that gains by leaving, and where it goes (-1: a cluster of its own); its own cluster wins ties."""
    rest = slice(first, labels.size)
    away = rise[rest] + lams.local * company.joining(rest)
    away[np.arange(away.shape[0]), labels[rest]] = np.inf
    option = away.min(axis=1, initial=np.inf)
    alone = lams.both if room else np.inf
    here = home[rest] + lams.local * company.leaving(rest, labels[rest])
    stake = np.where(np.isfinite(here), here, 0.0) + lams.local + (lams.top if np.isfinite(lams.top) else 0.0)
    leaves = np.flatnonzero(np.minimum(option, alone) < here - GAIN * stake)
    if not leaves.size:
        return labels.size, -1
    t = int(leaves[0])
    return first + t, int(away[t].argmin()) if option[t] <= alone else -1
