"""Hard HDP, second part of a pass: every local cluster in turn chooses its global one.

The rows of a local cluster act through their centre and its pull alone, so this is one serial sweep of DP-means over
a table of local clusters, in blocks of groups.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.assign import assign
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.exact import own_cost
from kfree.inference.clusters.serial import open_in_order
from kfree.inference.clusters.table import Table, make_memory
from kfree.inference.goal import Goal
from kfree.inference.loop import Budget
from kfree.inference.shared.groups import Groups, Held
from kfree.inference.shared.hdp_numbers import HDP
from kfree.rows import Rows
from kfree.rows.threads import in_order


class MovedParts(NamedTuple):
    """Where the local clusters went."""

    member: Array  # (T,) global cluster of each
    fresh: Array  # (F, p) centres opened; numbered from K on
    gain: float  # by how much the costs of the rows fell


def part_table(table: Table, rows: Rows) -> Table:
    """Local clusters as a table: each is tested with all its weight."""
    span = slice(0, rows.n)
    alone = HDP.part_gain * float(np.mean(table.base)) * rows.weight
    if table.geometry.eta:
        alone += rows.singleton_cost(span, table.geometry, rows.weight)
    return Table(rows, table.geometry, rows.base(span, table.geometry), np.zeros(rows.n, np.uint64), rows.weight, alone)


def group_blocks(table: Table, groups: Groups, held: Held) -> list[slice]:
    """Runs of groups whose local clusters have about as many entries as are held at a time."""
    by_row = table.rows.entries / max(table.n, 1)
    size = np.minimum(np.diff(held.start) * float(table.rows.p), np.diff(groups.start) * by_row)
    block = ((np.cumsum(size) - size) // HDP.part_entries).astype(np.intp)
    edges = np.flatnonzero(np.concatenate([[True], block[1:] != block[:-1], [True]]))
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]


def parts_in_order(table: Table, groups: Groups, held: Held, slot: Array):
    """The tables of local clusters, block after block, and where each block begins."""

    def build(block: slice) -> tuple[int, Table]:
        first, last = int(held.start[block.start]), int(held.start[block.stop])
        inside = slice(int(groups.start[block.start]), int(groups.start[block.stop]))
        labels = (slot[inside] - first).astype(np.int32)
        rows = table.rows.parts(groups.rows[inside], labels, last - first, table.geometry.family)
        return first, part_table(table, rows)

    return in_order(build, group_blocks(table, groups, held))


def move_parts(
    table: Table, groups: Groups, held: Held, slot: Array, centres: Centres, goal: Goal, budget: Budget
) -> MovedParts:
    """Let all local clusters choose, groups rising, oldest first."""
    K, known = centres.mean.shape[0], centres
    member, gain = held.member.copy(), 0.0
    for first, parts in parts_in_order(table, groups, held, slot):
        if not parts.n:
            continue
        memory = make_memory(parts.n)
        assign(parts, known, memory, goal.lam)
        openers, fresh = open_in_order(parts, known, memory, goal, np.arange(parts.n), budget)
        if openers.size:
            known = Centres(table.geometry, np.concatenate([known.mean, fresh.mean]))
        before = held.member[first : first + parts.n]
        after = np.where(parts.unit > 0, memory.labels, before)  # rows that cancel out are at home everywhere
        moved = np.flatnonzero(after != before)
        old = own_cost(parts, moved, known, before[moved])
        new = own_cost(parts, moved, known, after[moved])
        with np.errstate(invalid="ignore"):
            gain += float((parts.unit[moved] * (old - new)).sum())
        member[first : first + parts.n] = after
    return MovedParts(member, known.mean[K:], gain)
