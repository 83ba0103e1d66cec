"""Collapsed moves of the hard HDP: one row at a time, the centres and the local clusters follow at once.

As in ``collapsed``, with two more terms: a cluster that the row's group does not hold costs lam_local, and a row that
is alone in its local cluster gives lam_local back when it leaves.
"""

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.inference.clusters.collapsed import Clusters, may_leave, move_block
from kfree.inference.clusters.table import Table
from kfree.inference.goal import Goal
from kfree.inference.loop import Budget
from kfree.inference.shared.groups import Groups
from kfree.inference.shared.hdp_numbers import HDP


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


def move_shared_rows(table: Table, groups: Groups, labels: Array, goal: Goal, order: Array, budget: Budget) -> float:
    """One sweep over the rows, or as much of it as the budget allows; labels are changed in place. Returns the weight
    that moved."""
    K = int(labels.max()) + 1
    total, mass = table.rows.sums(labels, K)
    clusters = Clusters(total, mass, np.bincount(labels[groups.rows], minlength=K))
    order = order[may_leave(table.rows.weights(slice(0, table.n)))[order]]
    moved, start = 0.0, 0
    while start < order.size and not budget.spent:
        size = max(1, min(HDP.row_block, CLUSTERS.row_entries // max(clusters.total.size, 1)))
        rows = order[start : start + size]
        company = _Company(groups, labels, rows, clusters.count.size)
        moved += move_block(table, rows, labels, clusters, goal, company)
        start += rows.size
    return moved
