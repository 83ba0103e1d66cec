"""Learning from batches: clusters keep their numbers, new ones are appended, nothing seen is kept but sums."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.assign import assign, label, total_cost
from kfree.inference.clusters.batch import fit_batch
from kfree.inference.clusters.bounds import loosen
from kfree.inference.clusters.centres import Centres, Sums
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.inference.clusters.fence import fence_of
from kfree.inference.clusters.gaps import split_at_gaps
from kfree.inference.clusters.labelling import LocalLabelling
from kfree.inference.clusters.moves import clear_splits, nothing_tried
from kfree.inference.clusters.seeds import global_centre
from kfree.inference.clusters.table import Memory, Table, make_memory
from kfree.inference.content import starts
from kfree.inference.goal import Goal, Search
from kfree.inference.loop import Budget, attempt, repeat


class Absorbed(NamedTuple):
    """Clusters after a batch, and where its rows went."""

    mean: Array  # (K, p)
    total: Array  # (K, p) weighted sums of all rows seen
    mass: Array  # (K,)
    labels: Array  # (n,) int32, of the batch
    cost: Array  # (n,) divergences of the batch from the final centres
    inertia: float  # their weighted sum
    prior: float  # the prior's share in the objective
    complete: bool  # the budget sufficed to open all that was needed


class Known(NamedTuple):
    """Clusters that a batch meets."""

    mean: Array  # (K, p)
    total: Array  # (K, p) weighted sums of all rows seen
    mass: Array  # (K,)


class Met(NamedTuple):
    """A batch, assigned to the clusters it needs."""

    centres: Centres
    sums: Sums
    memory: Memory
    complete: bool  # the budget sufficed to open all that was needed


def absorb(table: Table, known: Known, goal: Goal, budget: Budget) -> Absorbed:
    """Open what a batch needs, then let all clusters move to the mean of everything they have seen."""

    def work() -> Absorbed:
        return _settle(table, known, _meet(table, known.mean, goal, budget))

    return attempt(work, work, budget)  # once more if interrupted late: then nothing opens, and it is short


def _settle(table: Table, known: Known, met: Met) -> Absorbed:
    """Clusters after a batch has been assigned."""
    geometry = table.geometry
    opened, memory = met.centres.mean.shape[0] - known.mass.size, met.memory
    total = np.concatenate([known.total, np.zeros((opened, table.rows.p))]) + met.sums.total
    mass = np.concatenate([known.mass, np.zeros(opened)]) + met.sums.mass
    # a cluster opened in this batch may have lost all its rows to another one
    keep = np.flatnonzero((mass > 0) | (np.arange(mass.size) < known.mean.shape[0]))
    total, mass, moved = total[keep], mass[keep], met.centres.mean[keep]
    held = mass > 0
    moved[held] = geometry.centre(total[held], mass[held])
    after = Centres(geometry, table.as_published(moved))
    if keep.size == met.centres.mean.shape[0]:
        loosen(table, met.centres, after, keep, memory, met.sums.reach)
    else:
        memory.forget()
    inertia = total_cost(table, memory.cost, label(table, after, memory))
    prior = float(geometry.prior_costs(after.mean, after.affine).sum())
    return Absorbed(after.mean, total, mass, memory.labels, memory.cost, inertia, prior, met.complete)


def _meet(table: Table, mean: Array, goal: Goal, budget: Budget) -> Met:
    """Assign a batch, and open clusters for what lies beyond lam, until nothing does."""
    memory = make_memory(table.n)
    met: Met | None = None

    def one_round(mean: Array) -> tuple[Array, bool]:
        nonlocal met, table
        centres = Centres(table.geometry, mean)
        sums = assign(table, centres, memory, goal.lam)
        met = Met(centres, sums, memory, True)
        # weights and smoothing only make rows open less
        if not sums.reach.max() > goal.lam or mean.shape[0] >= goal.max_clusters:
            return mean, True
        novel = np.flatnonzero(table.excess(memory.cost, goal.lam) > 0)
        if not novel.size:
            return mean, True
        if budget.spent:
            met = met._replace(complete=False)
            return mean, True
        room = goal._replace(max_clusters=goal.max_clusters - mean.shape[0])
        table = table.hashed()
        mean = np.concatenate([mean, _open(table, novel, room, budget)])
        memory.forget()
        return mean, False

    mean, done = repeat(one_round, mean, budget, most=CLUSTERS.rounds, always=1)
    if done and met is not None:
        return met
    memory = make_memory(table.n)  # the rounds, the time, or the user's patience ended
    centres = Centres(table.geometry, mean)
    sums = assign(table, centres, memory, goal.lam)
    return Met(centres, sums, memory, not (budget.spent and sums.reach.max() > goal.lam))


def _open(table: Table, novel: Array, goal: Goal, budget: Budget) -> Array:
    """Centres of the clusters that the rows beyond lam form among themselves, as far as the budget goes."""
    sample = table.sample(novel, table.rows.weights(novel))
    labelling, start = LocalLabelling(sample), Centres(table.geometry, global_centre(sample))
    goal = goal._replace(tol=CLUSTERS.stream_tol, max_iter=CLUSTERS.stream_passes, search=Search.CLEAR, samples=True)
    rng = np.random.default_rng(0)  # "batch" draws nothing
    return attempt(
        lambda: fit_batch(labelling, start, goal, budget, rng).state.centres.mean,
        lambda: start.mean[:0],
        budget,
    )


def part_at_gaps(table: Table, known: Known, goal: Goal, budget: Budget) -> tuple[Known, float]:
    """Part clusters whose rows in a batch have a clear gap between them, for as long as there are any; new ones are
    appended. Also returns the fence of the rows that are not novel, infinite if nothing was parted."""
    table, fence = table.hashed(), np.inf

    def one_round(known: Known) -> tuple[Known, bool]:
        nonlocal fence
        memory = make_memory(table.n)
        label(table, Centres(table.geometry, known.mean), memory)
        near = np.flatnonzero(~(table.excess(memory.cost, goal.lam) > 0))
        weight = table.rows.weights(near)
        if not near.size:
            return known, True
        if known is not first:
            fence = fence_of(memory.cost[near], weight)
        seen = Memory(memory.labels[near], memory.cost[near], np.full(near.size, -np.inf))
        parted = _part(table.sample(near, weight), known, seen, goal)
        return (known, True) if parted is None else (parted, False)

    first = known
    return repeat(one_round, known, budget, most=CLUSTERS.rounds)[0], fence


def _part(table: Table, known: Known, memory: Memory, goal: Goal) -> Known | None:
    """Clusters after one round of parting; None if there is no gap.

    Of what such a cluster has seen before only the sum is known. It is shared out as the batch is: the parts have the
    means and the shares that they have there.
    """
    K, before, tried = known.mass.size, memory.labels.copy(), nothing_tried(table.n)
    split, side = clear_splits(table, K, memory, goal, tried)
    if split.size:
        new = np.full(K, -1, np.int32)
        new[split] = K + np.arange(split.size)
        memory.labels[:] = np.where(side & (new[before] >= 0), new[before], before)
    else:
        split_at_gaps(table, Centres(table.geometry, known.mean), memory, goal, tried)
    part, first, which = np.unique(memory.labels, return_index=True, return_inverse=True)
    total, mass = table.rows.sums(which.astype(np.int32), part.size)
    parent = before[first]
    order = np.lexsort((-mass, parent))
    later = order[~starts(parent[order])]  # the heaviest part of a cluster keeps its number, the others are appended
    if not later.size:
        return None
    among = np.bincount(parent, mass, K)[parent]
    share = mass / np.where(among > 0, among, 1.0) * known.mass[parent]
    centre = total / np.where(mass > 0, mass, 1.0)[:, None]
    parted = np.isin(parent, parent[later])
    mean, sums, masses = known.mean.copy(), known.total.copy(), known.mass.copy()
    kept = np.flatnonzero(parted & ~np.isin(np.arange(part.size), later))
    mean[parent[kept]], masses[parent[kept]] = centre[kept], share[kept]
    sums[parent[kept]] = share[kept, None] * centre[kept]
    mean = table.geometry.centre(np.concatenate([mean, centre[later]]), np.ones(K + later.size))
    sums = np.concatenate([sums, share[later, None] * centre[later]])
    return Known(table.as_published(mean), sums, np.concatenate([masses, share[later]]))
