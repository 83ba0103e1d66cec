"""``lam_local="auto"`` and ``lam_global="auto"``: both from the price of a cluster of the pooled rows.

``choose_lam`` finds a price for the clusters of all rows. A cluster is worth about that price to the groups that hold
it, together; so each of them may pay the price divided by their number. How many hold a cluster depends on what that
costs, so the two are found together. What the groups do not pay twice is paid once.
"""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.assign import assign
from kfree.inference.clusters.centres import Centres, Sums
from kfree.inference.clusters.exact import own_cost
from kfree.inference.clusters.how_many.choose import AutoLam, choose_lam
from kfree.inference.clusters.how_many.price_path import PricePath
from kfree.inference.clusters.labelling import LocalLabelling
from kfree.inference.clusters.moves import close_pairs
from kfree.inference.clusters.table import Table, make_memory
from kfree.inference.loop import Budget, repeat
from kfree.inference.shared.groups import Groups, Lams, group_rows, held_by_both, held_of_labels
from kfree.inference.shared.hdp_numbers import HDP
from kfree.inference.shared.hdp_search import regroup, state_of
from kfree.inference.shared.row_choices import SharedState


class AutoLams(NamedTuple):
    """Penalties chosen from the data, and the path of the pooled rows they come from."""

    lams: Lams
    pooled: AutoLam


class PooledStart(NamedTuple):
    """A clustering of the pooled rows from which a fit with given penalties starts."""

    mean: Array  # (K, p)
    labels: Array  # (n,) nearest of them; -1 for rows of no group


def choose_lams(table: Table, groups: Groups, given: tuple[float | None, float | None], budget: Budget) -> AutoLams:
    """The penalties, local and global, that are not given."""
    local, top = given
    pooled = choose_lam(LocalLabelling(table), budget)
    start, sums = _assigned(table, groups, pooled.centres())
    K = int((sums.mass > 0).sum())
    if local is None:
        local = _share_of_a_group(table, groups, start.labels, pooled.lam * K, budget)
    if top is None:
        both = _groups_of_neighbours(table, groups, start.labels, sums.total, sums.mass)
        top = float(np.clip(pooled.lam - local * both, HDP.least_share * pooled.lam, pooled.lam))
    return AutoLams(Lams(local, top), pooled)


def best_start(table: Table, groups: Groups, path: PricePath, lams: Lams, most: float) -> PooledStart:
    """The solution of the pooled rows, of at most so many clusters, that costs least with these penalties.

    A function of the rows and the penalties alone: penalties that were chosen find the same clusters again.
    """
    some, rng = _some_groups(groups), np.random.default_rng(0)  # of which nothing is drawn
    share = table.rows.weights(some.rows).sum() / table.rows.total_weight()

    def cost(K: int) -> float:
        labels = np.full(table.n, -1, np.int32)
        labels[some.rows] = _assigned(table, some, path.centres(K))[0].labels[some.rows]
        state = regroup(table, some, state_of(table, some, labels, rng), lams)  # groups hold no more than pays
        costs = table.rows.weights(some.rows) @ own_cost(table, some.rows, state.centres, state.labels[some.rows])
        return float(costs) + lams.local * state.held.member.size + share * lams.top * K

    K = path.cheapest(cost, most)
    return _assigned(table, groups, path.centres(K))[0]


def _assigned(table: Table, groups: Groups, mean: Array) -> tuple[PooledStart, Sums]:
    memory = make_memory(table.n)
    sums = assign(table, Centres(table.geometry, mean), memory)
    labels = np.full(table.n, -1, np.int32)
    labels[groups.rows] = memory.labels[groups.rows]
    return PooledStart(mean, labels), sums


def _share_of_a_group(table: Table, groups: Groups, labels: Array, price: float, budget: Budget) -> float:
    """The lam_local that all local clusters together pay the price of all global ones with, at that lam_local.

    Few local clusters make it large, and a large one makes them few: it rises from where every group holds what is
    nearest to any of its rows to the first value that fits.
    """
    some = _some_groups(groups)
    part = np.full(table.n, -1, np.int32)
    part[some.rows] = labels[some.rows]
    state = state_of(table, some, part, np.random.default_rng(0))
    price *= table.rows.weights(some.rows).sum() / table.rows.total_weight()
    local = price / state.held.member.size

    def one_round(last: tuple[SharedState, float]) -> tuple[tuple[SharedState, float], bool]:
        state, before = last
        state = regroup(table, some, state, Lams(before, np.inf))
        local = max(before, price / state.held.member.size)
        return (state, local), local <= HDP.price_fits * before

    found, _ = repeat(one_round, (state, local), budget, most=HDP.price_rounds)
    return float(found[1])


def _some_groups(groups: Groups) -> Groups:
    """Every so-maniest group of a large table."""
    step = groups.rows.size // HDP.price_rows + 1
    if step == 1:
        return groups
    chosen = groups.code[groups.rows] % step == 0
    return group_rows(groups.code, groups.rows[chosen], groups.n_groups) if chosen.any() else groups


def _groups_of_neighbours(table: Table, groups: Groups, labels: Array, total: Array, mass: Array) -> float:
    """In how many groups two clusters next to each other meet, on average."""
    if (mass > 0).sum() < 2:
        return 0.0
    held = held_of_labels(groups, labels, mass.size)
    a, b = close_pairs(table, total, mass, 1).T
    return float(held_by_both(held, groups.n_groups, mass.size, a, b).mean())
