"""Splits of a cluster into several groups at once, where there are real gaps between them.

Many groups in one cluster look like one cloud to any cut in two. So a cluster is halved, and its halves again, as
long as that gains enough. A part of a log-concave cloud is never clearly two, however small it is; if one is, there
are groups. Then parts without a valley between them are joined again, and if what is left pays for itself the cluster
is split into it.
"""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.inference.clusters.cuts import SplitRule, distinct_rows, halve
from kfree.inference.clusters.exact import own_cost
from kfree.inference.clusters.how_many.how_many_numbers import HOW_MANY
from kfree.inference.clusters.how_many.modes import find_groups
from kfree.inference.clusters.how_many.subsample import Pilot, make_pilot
from kfree.inference.clusters.moves import Tried, fingerprints, relabelled
from kfree.inference.clusters.table import Memory, Table
from kfree.inference.dip import FEWEST
from kfree.inference.goal import Goal
from kfree.inference.labels import compact

# Distinct rows of a part: fewer show no valley.
_ROWS_EACH = 2 * FEWEST


class GapParts(NamedTuple):
    """Parts of clusters."""

    labels: Array  # (n,) int32, part of each row
    parent: Array  # (P,) cluster that the part is of
    clear: Array  # (K,) True for a cluster if one of its parts is clearly two


class GapGroups(NamedTuple):
    """Groups of rows inside clusters."""

    rows: Array  # (r,) indices
    group: Array  # (r,) of each of them
    parent: Array  # (G,) cluster that the group is of


def split_at_gaps(table: Table, centres: Centres, memory: Memory, goal: Goal, tried: Tried) -> tuple[Centres, int]:
    """Split clusters into the groups between which there are gaps, if that pays; labels follow.

    Returns the centres and how many clusters were split. Only those are looked at, once, for which a cut in two pays
    although it is not clear.
    """
    K, lam = centres.mean.shape[0], goal.lam
    prints = fingerprints(table, memory.labels, K).tolist()
    gain = np.array([tried.gain.get(print, 0.0) for print in prints])
    if not (gain > CLUSTERS.gap_gain * lam).any():
        return centres, 0
    once = distinct_rows(table)
    most_entries, enough = HOW_MANY.entries
    if table.rows.entries == table.n * table.rows.p and once.size > max(enough, most_entries // table.rows.p):
        return centres, 0  # copies of so many wide rows are too much
    parts = _shatter(table, memory, lam, gain, tried.side, once)
    chosen, later = _affordable(parts, gain)
    tried.gain.update((print, 0.0) for k, print in enumerate(prints) if k not in later)
    once = once[np.isin(memory.labels[once], chosen)]
    if not once.size:
        return centres, 0
    return _split(table, centres, memory, goal, _find(table, memory, parts, once))


def _shatter(table: Table, memory: Memory, lam: float, gain: Array, side: Array, once: Array) -> GapParts:
    """Halve clusters that gain enough by it, the first time to the known sides, and the halves again."""
    rule, clear, parent = SplitRule.CLEAR, np.zeros(gain.size, bool), np.arange(gain.size)
    labels, cost = memory.labels.copy(), memory.cost.copy()
    for _ in range(int(np.log2(CLUSTERS.gap_parts))):
        split = np.flatnonzero(gain > CLUSTERS.gap_gain * lam)
        if not split.size:
            break
        new = np.full(parent.size, -1, np.int32)
        new[split] = parent.size + np.arange(split.size)
        away = (side == 1) & (new[labels] >= 0)
        labels[away] = new[labels[away]]
        parent = np.concatenate([parent, parent[split]])
        wanted = np.isin(np.arange(parent.size), np.concatenate([split, new[split]]))
        wanted &= np.bincount(labels[once], minlength=parent.size) >= 2 * _ROWS_EACH
        if not wanted.any():
            break
        _measure(table, labels, wanted, cost)
        halves = halve(table, Memory(labels, cost, memory.low), rule, wanted, CLUSTERS.gap_trials)
        gain, side = halves.gain, halves.side
        clear[parent[(gain > lam) & halves.worth_while(rule)]] = True
    return GapParts(labels, parent, clear)


def _measure(table: Table, labels: Array, wanted: Array, cost: Array) -> None:
    """Write the divergences of the rows of some parts from their centres."""
    rows = np.flatnonzero(wanted[labels])
    rank = compact(wanted)[labels[rows]]
    total, mass = np.zeros((np.count_nonzero(wanted), table.rows.p)), np.zeros(np.count_nonzero(wanted))
    table.rows.add(rows, rank, total, mass)
    cost[rows] = own_cost(table, rows, Centres(table.geometry, table.geometry.centre(total, mass)), rank)


def _affordable(parts: GapParts, gain: Array) -> tuple[Array, set[int]]:
    """Clusters with groups, those that gain most by a cut in two first, as many as have few parts; and the others."""
    clear = np.flatnonzero(parts.clear)
    clear = clear[np.argsort(-gain[clear], kind="stable")]
    count = np.cumsum(np.bincount(parts.parent, minlength=gain.size)[clear])
    first = max(1, int(np.searchsorted(count, CLUSTERS.gap_parts, side="right")))
    return clear[:first], set(clear[first:].tolist())


def _find(table: Table, memory: Memory, parts: GapParts, once: Array) -> GapGroups:
    """The groups of the clusters that some distinct rows, all of their clusters, are in."""
    mine = np.flatnonzero(np.isin(table.hashes, table.hashes[once]) & (table.rows.weights(slice(0, table.n)) > 0))
    which = np.searchsorted(table.hashes[once], table.hashes[mine])
    weight = np.bincount(which, table.rows.weights(mine))
    pilot = make_pilot(table, once, table.hashes[once], weight, table.rows.total_weight())
    cluster = memory.labels[once]
    part, labels = np.unique(parts.labels[once], return_inverse=True)
    parent = parts.parent[part]
    for _ in range(CLUSTERS.gap_passes):
        size = np.bincount(labels, minlength=parent.size)
        by_size = np.lexsort((-size, parent))
        largest = by_size[np.unique(parent[by_size], return_index=True)[1]]
        held = size >= _ROWS_EACH
        held[largest] = True  # small parts are dissolved, but something must be left of a cluster
        total, mass = pilot.sums(labels.astype(np.int32), parent.size)
        parent, mean = parent[held], pilot.table.geometry.centre(total[held], mass[held])
        labels = _nearest_own(pilot, mean, parent, cluster)
    group = find_groups(pilot, mean, parent)[0] if np.unique(parent).size < parent.size else np.arange(parent.size)
    of_group = np.empty(group.max() + 1, np.intp)
    of_group[group] = parent
    return GapGroups(mine, group[labels][which], of_group)


def _nearest_own(pilot: Pilot, mean: Array, parent: Array, cluster: Array) -> Array:
    """The nearest part of each row among those of its cluster."""
    affine = pilot.table.geometry.affine(mean)
    cost = affine.offset - np.asarray(pilot.stats @ affine.coef.T)
    cost[parent[None] != cluster[:, None]] = np.inf
    return cost.argmin(axis=1)


def _split(table: Table, centres: Centres, memory: Memory, goal: Goal, found: GapGroups) -> tuple[Centres, int]:
    """Make the splits that pay, those of largest gain first."""
    K, G, lam = centres.mean.shape[0], found.parent.size, goal.lam
    total, mass = np.zeros((G, table.rows.p)), np.zeros(G)
    table.rows.add(found.rows, found.group.astype(np.int32), total, mass)
    members = {int(k): np.flatnonzero((found.parent == k) & (mass > 0)) for k in np.unique(found.parent)}
    gain = {k: _gain(table, total[groups], mass[groups]) - lam * (groups.size - 1) for k, groups in members.items()}
    target, new, moved = found.parent.copy(), K, 0
    for k in sorted(gain, key=lambda k: (-gain[k], k)):
        more = members[k].size - 1
        if gain[k] > CLUSTERS.least_gain * lam * more and more <= goal.max_clusters - new:
            target[members[k][1:]] = new + np.arange(more)
            new, moved = new + more, moved + 1
    if not moved:
        return centres, 0
    labels = memory.labels.copy()
    labels[found.rows] = target[found.group]
    return relabelled(table, memory, labels, new), moved


def _gain(table: Table, total: Array, mass: Array) -> float:
    """What the objective, penalty apart, would rise by if these clusters became one: one after the other."""
    before = np.cumsum(total, axis=0)[:-1], np.cumsum(mass)[:-1]
    return float(table.geometry.join_cost(*before, total[1:], mass[1:]).sum()) if mass.size > 1 else 0.0
