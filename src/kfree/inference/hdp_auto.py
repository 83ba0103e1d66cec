"""``lam_local="auto"`` and ``lam_global="auto"``: both from the price of a cluster of the pooled rows.

``choose_lam`` finds a price for which the number of clusters of all rows stays best over the widest range. A cluster
is worth about that price to all groups that hold it together, so to one of them it is worth the price divided by
their number; that is what a local cluster may cost. The rest of the price is paid once.
"""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.assign import assign, make_centres
from kfree.inference.auto import AutoLam, choose_lam
from kfree.inference.groups import Groups, Held, Lams, held_by_both, held_of_labels
from kfree.inference.loop import Budget
from kfree.inference.moves import close_pairs
from kfree.inference.table import Table, make_memory

#: Least share of the price of a cluster that is paid once: below it groups would rather not share.
LEAST_SHARE = 0.5


class AutoLams(NamedTuple):
    """Penalties chosen from the data, and the clustering of the pooled rows they come from."""

    lams: Lams
    pooled: AutoLam
    labels: Array  # (n,) nearest of the pooled centres


def choose_lams(table: Table, groups: Groups, local: float | None, top: float | None, budget: Budget) -> AutoLams:
    """The penalties that are not given."""
    pooled = choose_lam(table, budget)
    memory = make_memory(table.n)
    sums = assign(table, make_centres(table.geometry, pooled.mean), memory)
    labels = memory.labels.copy()
    if table.rows.weight.size:
        labels[table.rows.weight == 0] = -1
    K = pooled.mean.shape[0]
    held = held_of_labels(groups, labels, K)
    if local is None:
        local = pooled.lam * K / max(held.member.size, 1)
    if top is None:
        both = _groups_of_neighbours(table, groups, held, sums.total, sums.mass)
        top = float(np.clip(pooled.lam - local * both, LEAST_SHARE * pooled.lam, pooled.lam))
    return AutoLams(Lams(float(local), top), pooled, labels)


def _groups_of_neighbours(table: Table, groups: Groups, held: Held, total: Array, mass: Array) -> float:
    """In how many groups two clusters next to each other meet, on average."""
    if (mass > 0).sum() < 2:
        return 0.0
    a, b = close_pairs(table, total, mass, 1).T
    return float(held_by_both(held, groups.count, mass.size, a, b).mean())
