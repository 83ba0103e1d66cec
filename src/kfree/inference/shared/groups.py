"""Groups of rows, and the clusters that each group holds.

A local cluster is a pair (group, global cluster): two local clusters of one group with the same centre would be one.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.inference.goal import Goal
from kfree.kernels import kernels
from kfree.rows import Rows


class Lams(NamedTuple):
    """What a cluster costs."""

    local: float  # in each group that holds it
    top: float  # once, however many groups hold it

    @classmethod
    def of(cls, goal: Goal) -> "Lams":
        """The prices of a goal."""
        return cls(goal.lam_local, goal.lam)

    @property
    def both(self) -> float:
        """A cluster nobody held before, held by one group."""
        return self.local + self.top


class Groups(NamedTuple):
    """Which rows belong together."""

    code: Array  # (n,) int32, group of each row
    rows: Array  # (m,) rows that have weight, group after group, rising inside
    start: Array  # (J + 1,) where the rows of each group begin

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return self.start.size - 1


def make_groups(code: Array, rows: Rows, count: int) -> Groups:
    """Groups from the number of the group of each row."""
    active = np.flatnonzero(rows.weight > 0) if rows.weight.size else np.arange(rows.n)
    return group_rows(code, active, count)


def group_rows(code: Array, rows: Array, count: int) -> Groups:
    """Groups that consist of some of the rows."""
    start = np.concatenate([[0], np.cumsum(np.bincount(code[rows], minlength=count))])
    return Groups(code, arranged(rows, code, start), start)


def arranged(order: Array, bins: Array, start: Array) -> Array:
    """Rows in the order of their bins, otherwise in the order given."""
    out = np.empty_like(order)
    kernels().arrange(order, bins, start, out)
    return out


class Held(NamedTuple):
    """The global clusters that each group holds, oldest first."""

    start: Array  # (J + 1,) where those of each group begin
    member: Array  # (T,) int32

    @property
    def group(self) -> Array:
        """The group of each local cluster, (T,)."""
        return np.repeat(np.arange(self.start.size - 1), np.diff(self.start))

    def some(self, keep: Array) -> "Held":
        """The local clusters of a mask."""
        return Held(_starts(self.group[keep], self.start.size - 1), self.member[keep])

    def grown(self, group: Array, member: Array) -> "Held":
        """With further local clusters, youngest last."""
        every = np.concatenate([self.group, group])
        order = np.argsort(every, kind="stable")
        return Held(_starts(every, self.start.size - 1), np.concatenate([self.member, member])[order].astype(np.int32))

    def renamed(self, member: Array) -> "Held":
        """With other global clusters; equal ones of a group become one, as old as the oldest."""
        key = self.group * (int(member.max(initial=0)) + 1) + member
        first = np.sort(np.unique(key, return_index=True)[1])
        return Held(_starts(self.group[first], self.start.size - 1), member[first].astype(np.int32))

    def sorted(self) -> "Held":
        """By number inside each group."""
        return Held(self.start, self.member[np.lexsort((self.member, self.group))])

    def joined(self, other: "Held", K: int) -> "Held":
        """What either says that a group holds, by number inside each group."""
        key = np.union1d(self.group * K + self.member, other.group * K + other.member)
        return Held(_starts(key // K, self.start.size - 1), (key % K).astype(np.int32))

    def mask(self, groups: Array, K: int) -> Array:
        """Boolean (len(groups), K): which of some groups holds what."""
        count = np.diff(self.start)[groups]
        line = np.repeat(np.arange(groups.size), count)
        offset = np.arange(line.size) - np.repeat(np.cumsum(count) - count, count)
        table = np.zeros((groups.size, K), bool)
        table[line, self.member[self.start[groups][line] + offset]] = True
        return table


def _starts(group: Array, count: int) -> Array:
    return np.concatenate([[0], np.cumsum(np.bincount(group, minlength=count))])


def held_by_all(count: int) -> Held:
    """Every group holds the first cluster."""
    return Held(np.arange(count + 1), np.zeros(count, np.int32))


def held_by_none(count: int) -> Held:
    """No group holds anything."""
    return Held(np.zeros(count + 1, np.intp), np.empty(0, np.int32))


def find_slots(groups: Groups, held: Held, labels: Array, K: int) -> Array:
    """Local cluster, as an index into ``held.member``, of each of ``groups.rows``; -1 where the group lacks it."""
    slot = np.empty(groups.rows.size, np.intp)
    place = np.full(K, -1, np.intp)
    kernels().find_slots(groups.rows, groups.start, labels, held.start, held.member, place, slot)
    return slot


def held_in_use(groups: Groups, held: Held, labels: Array, K: int) -> Held:
    """What is left when local clusters without rows go."""
    slot = find_slots(groups, held, labels, K)
    used = np.bincount(slot[slot >= 0], minlength=held.member.size) > 0
    return held if used.all() else held.some(used)


def held_of_labels(groups: Groups, labels: Array, K: int) -> Held:
    """The local clusters of a labelling, by number inside each group."""
    key = np.unique(groups.code[groups.rows].astype(np.int64) * K + labels[groups.rows])
    return Held(_starts(key // K, groups.n_groups), (key % K).astype(np.int32))


def held_by_both(held: Held, count: int, K: int, a: Array, b: Array) -> Array:
    """How many of the groups hold both clusters of each pair (a, b)."""
    holds = sp.csr_matrix((np.ones(held.member.size), held.member, held.start), shape=(count, K))
    return np.asarray((holds.T @ holds).tocsr()[a, b]).ravel()
