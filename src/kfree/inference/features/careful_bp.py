"""The visits of collapsed BP-means where weights are so uneven that sums of all rows cannot do without one of them.

The other rows are solved for at every visit, which takes as long as a pass does otherwise.
"""

import numpy as np

from kfree.families import Array
from kfree.inference.features.allocation import independent
from kfree.inference.features.best_rows import all_rows
from kfree.inference.features.feature_goal import FeatureGoal
from kfree.inference.features.feature_numbers import FEATURES
from kfree.inference.features.feature_table import FeatureTable
from kfree.inference.features.least_squares import Rotated, rotate

DONE, BIRTH, REPLACED = 0, 1, 2


class _Others:
    """The means of all rows but one, and what that row would cost."""

    def __init__(self, table: FeatureTable, X: Array, Z: Array, n: int, keep: Array):
        others = np.arange(table.n) != n
        weight, columns = table.weight[others], Z[others][:, keep].astype(np.float64)
        self.x, self.w = X[n], table.weight[n]
        self.rotated: Rotated | None = rotate(columns, weight) if columns.size else None
        self.A = np.zeros((int(keep.sum()), table.p))
        if self.rotated is not None:
            self.A = self.rotated.solve((np.sqrt(weight)[:, None] * self.rotated.basis).T @ X[others])
        largest = np.einsum("ij,ij->i", self.A, self.A).max(initial=0.0)
        self.slack = FEATURES.tie * self.w * (table.square[n] + largest)

    def costs(self, rows: Array) -> Array:
        """By how much each of some rows of bits raises the inertia of the others."""
        gap = self.x - rows @ self.A
        shared = self.rotated.leverages(rows.astype(np.float64)) if self.rotated is not None else 0.0
        return self.w * np.einsum("ij,ij->i", gap, gap) / (1.0 + self.w * shared)

    def choose(self, z: Array, fixed: int, exact: bool, slack: float) -> tuple[Array, float]:
        """The best row of bits, or one sweep of single bits, and its cost; ties keep the present one."""
        present = float(self.costs(z[None])[0])
        if exact and z.size - fixed <= FEATURES.most_exhaustive:
            rows = all_rows(z.size - fixed)
            rows = np.concatenate([np.ones((len(rows), fixed), np.uint8), rows], axis=1)
            values = self.costs(rows)
            best = int(values.argmin())
            return (rows[best], float(values[best])) if values[best] < present - slack else (z, present)
        z = z.copy()
        for k in range(fixed, z.size):
            z[k] ^= 1
            value = float(self.costs(z[None])[0])
            if value < present - slack:
                present = value
            else:
                z[k] ^= 1
        return z, present


def careful_rows(
    table: FeatureTable, X: Array, goal: FeatureGoal, price: float, stop: Array, first: int, Z: Array
) -> tuple[int, int, int, int]:
    """As the kernel ``collapsed_rows``; Z has the intercept's column in front."""
    fixed, changed = int(table.intercept), 0
    counts = Z.astype(np.int64)
    gram = counts.T @ counts
    finite = FEATURES.tie * price if price < np.inf else 0.0
    for n in range(first, table.n):
        if stop[0]:
            break
        keep = independent(gram - np.outer(counts[n], counts[n]))
        lost = np.flatnonzero(~keep)  # the column, if any, that only this row has told from the others
        if lost.size and (price == np.inf or lost[0] < fixed):
            continue
        others = _Others(table, X, Z, n, keep)
        slack = finite + others.slack
        y, cost = others.choose(Z[n, keep], fixed, goal.rule.exact, slack)
        if lost.size:
            if cost < price - slack:
                Z[n], Z[n, keep] = 0, y
                return n, REPLACED, changed + 1, int(lost[0])
            continue
        if not np.array_equal(y, Z[n]):
            changed += 1
            gram += np.outer(y, y).astype(np.int64) - np.outer(counts[n], counts[n])
            Z[n], counts[n] = y, y
        if cost > price + slack:
            return n, BIRTH, changed, -1
    return table.n, DONE, changed, -1
