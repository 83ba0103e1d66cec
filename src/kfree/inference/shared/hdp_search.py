"""Stronger search for the hard HDP: moves of whole groups' shares, of local clusters, of rows, merges and splits.

Every accepted move lowers J by its exact change. The three-part passes go on from there, until nothing pays.
"""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.assign import assign
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.inference.clusters.collapsed import move_rows
from kfree.inference.clusters.cuts import Halves, SplitRule, halve
from kfree.inference.clusters.exact import own_cost
from kfree.inference.clusters.moves import close_pairs
from kfree.inference.clusters.table import Memory, Table, make_memory
from kfree.inference.content import starts
from kfree.inference.goal import Goal, Order, Search
from kfree.inference.labels import compact
from kfree.inference.loop import Budget, Outcome, repeat
from kfree.inference.merges import disjoint
from kfree.inference.shared.groups import Groups, Lams, find_slots, held_by_both, held_of_labels, make_groups
from kfree.inference.shared.hdp_numbers import HDP
from kfree.inference.shared.hdp_pass import run_passes
from kfree.inference.shared.local_clusters import part_table
from kfree.inference.shared.row_choices import SharedState, make_block, turns
from kfree.inference.shared.row_moves import move_shared_rows
from kfree.kernels import kernels
from kfree.kernels.splitmix import mix
from kfree.rows.threads import cut, in_order


def state_of(table: Table, groups: Groups, labels: Array, rng: np.random.Generator) -> SharedState:
    """Centres and local clusters of a labelling; clusters without rows go."""
    total, mass = table.rows.sums(labels, int(labels.max()) + 1)
    used = mass > 0
    labels = np.where(labels >= 0, compact(used)[labels], -1).astype(np.int32)
    centres = Centres(table.geometry, table.geometry.centre(total[used], mass[used]))
    return SharedState(centres, labels, held_of_labels(groups, labels, int(used.sum())), rng)


def improve(table: Table, groups: Groups, outcome: Outcome, memory: Memory, goal: Goal, budget: Budget) -> Outcome:
    """Search from an outcome whose state is a SharedState; its trace goes on."""

    def one_round(last: Outcome) -> tuple[Outcome, bool]:
        before = last.trace[-1]
        state = regroup(table, groups, last.state, Lams.of(goal))
        state = move_local_clusters(table, groups, state, goal, budget)
        state = move_single_rows(table, groups, state, goal, budget)
        state = state if budget.spent else merge_and_split(table, groups, state, goal)
        memory.labels[:] = -1
        memory.forget()
        rest = goal._replace(max_iter=goal.max_iter - len(last.trace))
        settled = run_passes(table, groups, state, memory, rest, budget, before)
        if not settled.trace:  # stopped before the first pass: what was there is better known
            return last._replace(converged=False), True
        trace = [*last.trace, *settled.trace]
        done = trace[-1] >= before - HDP.least_gain * abs(before)
        late = len(trace) >= goal.max_iter and not done
        return Outcome(settled.state, trace, settled.converged and not late), done or late

    if not outcome.trace or len(outcome.trace) >= goal.max_iter:
        return outcome._replace(converged=False)
    found, done = repeat(one_round, outcome, budget, most=HDP.search_rounds)
    return found._replace(converged=False) if budget.spent and not done else found


def regroup(table: Table, groups: Groups, state: SharedState, lams: Lams) -> SharedState:
    """Every group adds the cluster that saves its rows most beyond lam_local, or gives up the one that saves least,
    for as long as that pays; centres stand still meanwhile."""
    K, labels = state.centres.mean.shape[0], state.labels.copy()
    size = np.diff(groups.start)
    rows_at_once = max(1, HDP.cost_entries // K)
    block = (np.cumsum(size) - size) // rows_at_once
    edges = np.flatnonzero(np.concatenate([[True], block[1:] != block[:-1], [True]]))

    def of_block(which: tuple[int, int]) -> tuple[Array, Array]:
        rows = groups.rows[groups.start[which[0]] : groups.start[which[1]]]
        return rows, _regroup_rows(table, groups, rows, state, lams, rows_at_once)

    for rows, found in in_order(of_block, zip(edges[:-1].tolist(), edges[1:].tolist())):
        labels[rows] = np.where(found >= 0, found, labels[rows])
    return state_of(table, groups, labels, state.rng)


def best_shares(table: Table, groups: Groups, state: SharedState, lams: Lams) -> SharedState:
    """Give every group the shares of given centres that suit it, from all that are nearest to some row of it."""
    memory = make_memory(table.n)
    assign(table, state.centres, memory)
    labels = np.full(table.n, -1, np.int32)
    labels[groups.rows] = memory.labels[groups.rows]
    held = held_of_labels(groups, labels, state.centres.mean.shape[0])
    return regroup(table, groups, state._replace(labels=labels, held=held), lams)


def _regroup_rows(table: Table, groups: Groups, rows: Array, state: SharedState, lams: Lams, at_once: int) -> Array:
    """Clusters of the rows of some groups after their shares have changed."""
    K = state.centres.mean.shape[0]
    which, group = np.unique(groups.code[rows], return_inverse=True)
    held, weight = state.held.mask(which, K), table.rows.weights(rows)
    pieces = [slice(start, start + at_once) for start in range(0, rows.size, at_once)]
    kept = make_block(table, rows, state.centres, lams).cost if len(pieces) == 1 else None
    labels = np.empty(rows.size, np.int32)
    for _ in range(2 * K if kept is not None else HDP.share_changes):
        add, drop = np.zeros(held.shape), np.zeros(held.shape)
        for piece in pieces:
            cost = kept if kept is not None else make_block(table, rows[piece], state.centres, lams).cost
            kernels().share_gains(cost, weight[piece], group[piece], held, add, drop, labels[piece])
        if not _change_shares(held, add, drop, lams.local):
            return labels
    for piece in pieces:
        cost = kept if kept is not None else make_block(table, rows[piece], state.centres, lams).cost
        kernels().share_gains(cost, weight[piece], group[piece], held, add, drop, labels[piece])
    return labels


def _change_shares(held: Array, add: Array, drop: Array, local: float) -> bool:
    """Make the best change of each group, if it pays; True if any did."""
    add[held], drop[~held] = -np.inf, np.inf
    line = np.arange(held.shape[0])
    best_add, best_drop = add.argmax(axis=1), drop.argmin(axis=1)
    gain_add = add[line, best_add] - local * (1 + HDP.least_gain)
    gain_drop = local * (1 - HDP.least_gain) - drop[line, best_drop]
    adds = np.flatnonzero((gain_add > 0) & (gain_add >= gain_drop))
    drops = np.flatnonzero((gain_drop > 0) & (gain_drop > gain_add))
    held[adds, best_add[adds]] = True
    held[drops, best_drop[drops]] = False
    return bool(adds.size or drops.size)


class AllParts(NamedTuple):
    """All local clusters as a table."""

    table: Table
    slot: Array  # (m,) local cluster of each of ``groups.rows``


def _all_parts(table: Table, groups: Groups, state: SharedState) -> AllParts:
    K, T = state.centres.mean.shape[0], state.held.member.size
    slot = find_slots(groups, state.held, state.labels, K)
    rows = table.rows.parts(groups.rows, slot.astype(np.int32), T, table.geometry.family)
    prints = np.full(T, 2**64 - 1, np.uint64)  # the least hash of its rows: copies of a row change nothing
    np.minimum.at(prints, slot, mix(table.hashes[groups.rows] + np.uint64(1)))
    return AllParts(part_table(table, rows)._replace(hashes=prints), slot)


def _spread(parts: AllParts, groups: Groups, state: SharedState, member: Array) -> Array:
    """Labels of rows from clusters of local clusters."""
    labels = state.labels.copy()
    labels[groups.rows] = member[parts.slot]
    return labels


def move_local_clusters(table: Table, groups: Groups, state: SharedState, goal: Goal, budget: Budget) -> SharedState:
    """Collapsed moves of local clusters: one at a time, the centres follow."""
    T, (K, p) = state.held.member.size, state.centres.mean.shape
    if T * K * p > HDP.one_by_one or not np.isfinite(goal.lam):
        return state
    parts = _all_parts(table, groups, state)
    memory = make_memory(T)
    memory.labels[:] = state.held.member
    order = np.argsort(mix(parts.table.hashes), kind="stable")
    if not move_rows(parts.table, memory, goal, order, budget):
        return state
    return state_of(table, groups, _spread(parts, groups, state, memory.labels), state.rng)


def move_single_rows(table: Table, groups: Groups, state: SharedState, goal: Goal, budget: Budget) -> SharedState:
    """Collapsed moves of rows, on tables where one row weighs something; copies in a group move as one, so that
    integer weights equal repeated rows."""
    if table.n * state.centres.mean.size > HDP.one_by_one:
        return state
    rows, labels = groups.rows, state.labels.copy()
    order = np.lexsort((table.hashes[rows], groups.code[rows]))
    code, hashes = groups.code[rows[order]], table.hashes[rows[order]]
    first = starts(code) | starts(hashes)
    which = np.cumsum(first) - 1
    once = rows[order[first]]
    sample = table.sample(once, np.bincount(which, table.rows.weights(rows[order])))
    own, grouped = labels[once], make_groups(groups.code[once], sample.rows, groups.n_groups)
    turn = turns(sample, grouped, Order.CONTENT, state.rng)

    def sweep(own: Array) -> tuple[Array, bool]:
        own = own.copy()
        return own, not move_shared_rows(sample, grouped, own, goal, turn, budget)

    own, _ = repeat(sweep, own, budget, most=HDP.search_rounds)
    labels[rows[order]] = own[which]
    return state_of(table, groups, labels, state.rng)


def merge_and_split(table: Table, groups: Groups, state: SharedState, goal: Goal) -> SharedState:
    """One round of merges and splits on disjoint clusters."""
    K, lams, labels = state.centres.mean.shape[0], Lams.of(goal), state.labels.copy()
    split = np.empty(0, np.intp)
    if goal.search is Search.FULL and np.isfinite(goal.lam) and goal.max_clusters > K:
        found = best_splits(table, groups, state, lams)
        gain = found.gain - lams.top
        chosen = np.flatnonzero(gain > HDP.least_gain * (lams.top + found.gain))
        split = chosen[np.argsort(-gain[chosen], kind="stable")][: int(min(goal.max_clusters - K, chosen.size))]
        for number, k in enumerate(split, K):
            labels[(state.labels == k) & found.away] = number
    merges = disjoint(*paying_merges(table, groups, state, lams), taken=split.tolist())
    for keep, gone in merges:
        labels[state.labels == gone] = keep
    return state_of(table, groups, labels, state.rng) if split.size or merges else state


def paying_merges(table: Table, groups: Groups, state: SharedState, lams: Lams) -> tuple[Array, Array]:
    """Pairs (m, 2) of clusters whose union lowers J, and by how much it changes: one lam_global is saved, and lam_local
    in every group that holds both."""
    K = state.centres.mean.shape[0]
    if K < 2 or not np.isfinite(lams.top):
        return np.empty((0, 2), np.intp), np.empty(0)
    total, mass = table.rows.sums(state.labels, K)
    every = HDP.all_pairs >= K
    pairs = np.stack(np.triu_indices(K, 1), axis=1) if every else close_pairs(table, total, mass, CLUSTERS.neighbours)
    rise = np.concatenate([_joins(table, total, mass, pairs[part]) for part in cut(len(pairs), HDP.pair_block)])
    saved = lams.local * held_by_both(state.held, groups.n_groups, K, *pairs.T) + lams.top
    pays = rise < saved - HDP.least_gain * (saved + lams.local)
    return pairs[pays], (rise - saved)[pays]


def _joins(table: Table, total: Array, mass: Array, pairs: Array) -> Array:
    a, b = pairs.T
    return table.geometry.join_cost(total[a], mass[a], total[b], mass[b])


class Splits(NamedTuple):
    """The best split found of every cluster."""

    gain: Array  # (K,) fall of J, lam_global apart
    away: Array  # (n,) rows that would leave


def best_splits(table: Table, groups: Groups, state: SharedState, lams: Lams) -> Splits:
    """Split clusters between local clusters, and through them, whatever saves more."""
    found = _split_rows(table, groups, state, lams)
    if state.held.member.size * table.rows.p > HDP.split_entries:
        return found
    other = _split_parts(table, groups, state)
    better = other.gain > found.gain
    rows = better[np.maximum(state.labels, 0)]
    return Splits(np.where(better, other.gain, found.gain), np.where(rows, other.away, found.away))


def _split_parts(table: Table, groups: Groups, state: SharedState) -> Splits:
    """Two-means on the local clusters of each cluster: no group holds both halves."""
    parts = _all_parts(table, groups, state)
    memory = make_memory(parts.table.n)
    memory.labels[:] = state.held.member
    memory.cost[:] = own_cost(parts.table, slice(0, parts.table.n), state.centres, memory.labels)
    halves = _halve_all(parts.table, memory, state.centres.mean.shape[0])
    away = np.zeros(table.n, bool)
    away[groups.rows] = halves.side[parts.slot] == 1
    return Splits(halves.gain, away)


def _halve_all(table: Table, memory: Memory, K: int) -> Halves:
    """Every cluster cut in two, whether that is clear or not."""
    return halve(table, memory, SplitRule.PAYING, np.ones(K, bool), CLUSTERS.trials)


def _split_rows(table: Table, groups: Groups, state: SharedState, lams: Lams) -> Splits:
    """Two-means on the rows of each cluster; then each local cluster goes whole to one half, unless it pays
    lam_local for being in both."""
    K = state.centres.mean.shape[0]
    memory = make_memory(table.n)
    memory.labels[:] = np.maximum(state.labels, 0)
    memory.cost[:] = own_cost(table, slice(0, table.n), state.centres, memory.labels)
    halves = _halve_all(table, memory, K)
    rows, slot = groups.rows, find_slots(groups, state.held, state.labels, K)
    label, side = memory.labels[rows], halves.side[rows].astype(np.int32)
    for _ in range(2):
        side = _whole_or_both(table, rows, slot, label, side, state, lams.local)
    pairs = np.full(table.n, -1, np.int32)
    pairs[rows] = 2 * label + side
    total, mass = table.rows.sums(pairs, 2 * K)
    split = np.flatnonzero((mass[0::2] > 0) & (mass[1::2] > 0))
    gain = np.zeros(K)
    if split.size:
        a, b = 2 * split, 2 * split + 1
        gain[split] = table.geometry.join_cost(total[a], mass[a], total[b], mass[b])
    T = state.held.member.size
    left, right = np.bincount(slot[side == 0], minlength=T) > 0, np.bincount(slot[side == 1], minlength=T) > 0
    gain -= lams.local * np.bincount(state.held.member[left & right], minlength=K)
    away = np.zeros(table.n, bool)
    away[rows] = side == 1
    return Splits(gain, away)


def _whole_or_both(
    table: Table, rows: Array, slot: Array, label: Array, side: Array, state: SharedState, local: float
) -> Array:
    """Sides of rows, given the centres of the present sides: cheapest for each local cluster."""
    K, T = state.centres.mean.shape[0], state.held.member.size
    pairs = np.full(table.n, -1, np.int32)
    pairs[rows] = 2 * label + side
    total, mass = table.rows.sums(pairs, 2 * K)
    mean = np.repeat(state.centres.mean, 2, axis=0)
    full = mass > 0
    mean[full] = table.geometry.centre(total[full], mass[full])
    halves = Centres(table.geometry, mean)
    weight = table.rows.weights(rows)
    cost = np.stack([weight * own_cost(table, rows, halves, (2 * label + s).astype(np.int32)) for s in (0, 1)])
    cost = np.minimum(cost, 1e300)
    nearer = (cost[1] < cost[0]).astype(np.int32)
    whole = np.stack([np.bincount(slot, cost[s], T) for s in (0, 1)])
    both = np.bincount(slot, cost.min(axis=0), T) + local
    better = (whole[1] < whole[0]).astype(np.int32)
    return np.where((both < whole.min(axis=0))[slot], nearer, better[slot]).astype(np.int32)
