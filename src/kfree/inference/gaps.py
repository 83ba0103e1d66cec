"""Splits of a cluster in several parts at once, where there are real gaps between them.

Many groups in one cluster look like one cloud to any cut in two. So a cluster is halved, and its halves again, as
long as that pays; then parts without a valley between them are joined again. What is left are groups, and if they
pay for themselves the cluster is split into them.
"""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.assign import Centres, own_cost
from kfree.inference.moves import SplitRule, fingerprints, halve, relabelled
from kfree.inference.pilot import Pilot, make_pilot
from kfree.inference.table import Memory, Table
from kfree.inference.valleys import find_groups

#: Halvings of a cluster one after the other.
DEPTH = 8
#: Distinct rows of a part, at least: fewer show no valley.
ROWS_EACH = 16
#: Pairs of seeds tried in each halving.
TRIALS = 2
#: Passes of k-means over the parts of each cluster.
PASSES = 3


class Parts(NamedTuple):
    """Parts of some clusters."""

    labels: Array  # (n,) int32, part of each row
    parent: Array  # (P,) cluster that the part is of


def split_at_gaps(
    table: Table, centres: Centres, memory: Memory, lam: float, *, room: float, seen: set[int]
) -> tuple[Centres, int]:
    """Split clusters into the groups between which there are gaps, if that pays; labels follow.

    Returns the centres and how many clusters were split. ``seen`` remembers clusters that were looked at.
    """
    K = centres.mean.shape[0]
    prints = fingerprints(table, memory.labels, K).tolist()
    wanted = np.array([print not in seen for print in prints], bool)
    seen.update(prints)
    active = table.rows.weight > 0 if table.rows.weight.size else np.ones(table.n, bool)
    parts = _shatter(table, centres, memory, lam, wanted, active)
    chosen = np.flatnonzero(np.bincount(parts.parent, minlength=K) > 1)
    if not chosen.size:
        return centres, 0
    mine = np.flatnonzero(active & np.isin(memory.labels, chosen))
    _, first, which = np.unique(table.hashes[mine], return_index=True, return_inverse=True)
    once, weight = mine[first], np.bincount(which, table.rows.weights(mine))
    pilot = make_pilot(table, once, table.hashes[once], weight)
    group = _groups(pilot, parts, once, memory.labels[once])
    return _split(table, centres, memory, lam, Found(mine, group[which]), room)


def _shatter(table: Table, centres: Centres, memory: Memory, lam: float, wanted: Array, active: Array) -> Parts:
    """Halve every wanted cluster, and the halves again, as long as that pays."""
    K = centres.mean.shape[0]
    rule = SplitRule(clarity=0.0, trials=TRIALS, held_out=False)
    labels, cost, parent = memory.labels.copy(), memory.cost.copy(), np.arange(K)
    order = np.argsort(table.hashes, kind="stable")
    order = order[active[order]]
    once = order[np.concatenate([[True], table.hashes[order][1:] != table.hashes[order][:-1]])]
    for _ in range(DEPTH):
        P = parent.size
        wanted = wanted & (np.bincount(labels[once], minlength=P) >= 2 * ROWS_EACH)
        if not wanted.any():
            break
        halves = halve(table, centres, Memory(labels, cost, memory.low), rule, wanted)
        split = np.flatnonzero(wanted & (halves.gain > lam))
        new = np.full(P, -1, np.int32)
        new[split] = P + np.arange(split.size)
        away = (halves.side == 1) & (new[labels] >= 0)
        labels[away] = new[labels[away]]
        parent = np.concatenate([parent, parent[split]])
        wanted = np.zeros(parent.size, bool)
        wanted[split], wanted[P:] = True, True
        total, mass = table.rows.sums(labels, parent.size)
        mean = np.tile(table.geometry.anchor, (parent.size, 1))
        mean[mass > 0] = table.geometry.centre(total[mass > 0], mass[mass > 0])
        centres = Centres(table.geometry, mean)
        moved = np.flatnonzero(wanted[labels])
        cost[moved] = own_cost(table, moved, centres, labels[moved])
    return Parts(labels, parent)


def _groups(pilot: Pilot, parts: Parts, once: Array, cluster: Array) -> Array:
    """Group of each row of the pilot: its nearest part of its own cluster, joined with those it has no gap to."""
    part, labels = np.unique(parts.labels[once], return_inverse=True)
    parent = parts.parent[part]
    for _ in range(PASSES):
        held = np.bincount(labels, minlength=parent.size) >= ROWS_EACH
        # a cluster keeps its largest part, whatever its size
        largest = np.lexsort((-np.bincount(labels, minlength=parent.size), parent))
        held[largest[np.unique(parent[largest], return_index=True)[1]]] = True
        total, mass = pilot.sums(labels.astype(np.int32), parent.size)
        parent, mean = parent[held], pilot.table.geometry.centre(total[held], mass[held])
        labels = _nearest_own(pilot, mean, parent, cluster)
    if np.unique(parent).size == parent.size:
        return labels
    group, _ = find_groups(pilot, mean, parent)
    return group[labels]


def _nearest_own(pilot: Pilot, mean: Array, parent: Array, cluster: Array) -> Array:
    """The nearest part of each row among those of its cluster."""
    affine = pilot.table.geometry.affine(mean)
    cost = np.asarray(pilot.stats @ -affine.coef.T) + affine.offset
    cost[parent[None] != cluster[:, None]] = np.inf
    return cost.argmin(axis=1)


class Found(NamedTuple):
    """Groups that were found."""

    rows: Array  # (r,) indices
    group: Array  # (r,) group of each, no group in two clusters


def _split(table: Table, centres: Centres, memory: Memory, lam: float, found: Found, room: float) -> tuple[Centres, int]:
    """Make the splits that pay, those of largest gain first."""
    K = centres.mean.shape[0]
    group, of_row = np.unique(found.group, return_inverse=True)
    parent = np.empty(group.size, np.intp)
    parent[of_row] = memory.labels[found.rows]
    total, mass = np.zeros((group.size, table.rows.p)), np.zeros(group.size)
    table.rows.add(found.rows, of_row.astype(np.int32), total, mass)
    gains = {}
    for k in np.unique(parent):
        members = np.flatnonzero(parent == k)
        net = -lam * (members.size - 1)
        for m in range(1, members.size):
            a, b = members[:m], members[m : m + 1]
            net += float(
                table.geometry.join_cost(
                    total[a].sum(axis=0, keepdims=True), mass[a].sum(keepdims=True), total[b], mass[b]
                )[0]
            )
        if members.size > 1 and net > 1e-10 * lam * members.size:
            gains[int(k)] = (net, members)
    labels, new, moved = memory.labels.copy(), K, 0
    for k in sorted(gains, key=lambda k: (-gains[k][0], k)):
        members = gains[k][1]
        if members.size - 1 > room:
            continue
        room -= members.size - 1
        target = np.full(group.size, -1)
        target[members] = [k, *range(new, new + members.size - 1)]
        new, moved = new + members.size - 1, moved + 1
        here = target[of_row] >= 0
        labels[found.rows[here]] = target[of_row[here]]
    if not moved:
        return centres, 0
    return relabelled(table, memory, labels, new), moved
