"""Stronger search for the hard HDP: moves of whole groups' shares, of local clusters, of rows, merges and splits.

Every accepted move lowers J by its exact change. The three-part passes go on from there, until nothing pays.
"""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.assign import Centres, assign, own_cost
from kfree.inference.clusters.collapsed import move_rows
from kfree.inference.clusters.cuts import SplitRule, halve
from kfree.inference.clusters.moves import close_pairs
from kfree.inference.clusters.table import Memory, Table, make_memory
from kfree.inference.loop import Budget, Outcome
from kfree.inference.shared.groups import Groups, Lams, find_slots, held_by_both, held_of_labels, make_groups
from kfree.inference.shared.hdp_pass import Plan, Shared, run_passes
from kfree.inference.shared.local_clusters import part_table
from kfree.inference.shared.row_choices import MOST_ENTRIES, make_block, turns
from kfree.inference.shared.row_moves import move_shared_rows
from kfree.kernels import kernels
from kfree.kernels.splitmix import mix
from kfree.rows.threads import in_order

#: Rounds of moves and passes.
ROUNDS = 30
#: Entries (rows x clusters x columns) up to which rows and local clusters are moved one at a time.
ONE_BY_ONE = 2e8
#: Entries of all local clusters up to which splits between them are looked for.
PARTS = 5e7
#: Clusters up to which every pair is tried for a merge; above, the closest of each.
ALL_PAIRS = 100
#: Shares that a group too large for one block may change in a round.
_CHANGES = 4
# What a move must gain, as a share of what is at stake.
_GAIN = 1e-9


def state_of(table: Table, groups: Groups, labels: Array, rng: np.random.Generator) -> Shared:
    """Centres and local clusters of a labelling; clusters without rows go."""
    total, mass = table.rows.sums(labels, int(labels.max()) + 1)
    used = mass > 0
    name = (np.cumsum(used) - 1).astype(np.int32)
    labels = np.where(labels >= 0, name[labels], -1).astype(np.int32)
    centres = Centres(table.geometry, table.geometry.centre(total[used], mass[used]))
    return Shared(centres, labels, held_of_labels(groups, labels, int(used.sum())), rng)


def improve(
    table: Table, groups: Groups, outcome: Outcome, memory: Memory, plan: Plan, budget: Budget, *, splits: bool = True
) -> Outcome:
    """Search from an outcome whose state is a Shared; its trace goes on."""
    state, trace, converged = outcome.state, list(outcome.trace), outcome.converged
    for _ in range(ROUNDS):
        if budget.spent or len(trace) >= plan.max_iter or not trace:
            return Outcome(state, trace, False)
        before = trace[-1]
        state = regroup(table, groups, state, plan.lams)
        state = move_local_clusters(table, groups, state, plan)
        state = move_single_rows(table, groups, state, plan)
        state = merge_and_split(table, groups, state, plan, splits=splits)
        memory.labels[:], memory.low[:] = -1, -np.inf
        limit = plan.max_iter - len(trace)
        settled = run_passes(table, groups, state, memory, plan, budget, max_iter=limit, guard=before)
        state, converged = settled.state, settled.converged
        trace += settled.trace
        if trace[-1] >= before - _GAIN * abs(before):
            break
    return Outcome(state, trace, converged)


def regroup(table: Table, groups: Groups, state: Shared, lams: Lams) -> Shared:
    """Every group adds the cluster that saves its rows most beyond lam_local, or gives up the one that saves least,
    for as long as that pays; centres stand still meanwhile."""
    K, labels = state.centres.mean.shape[0], state.labels.copy()
    size = np.diff(groups.start)
    rows_at_once = max(1, MOST_ENTRIES // K)
    block = (np.cumsum(size) - size) // rows_at_once
    edges = np.flatnonzero(np.concatenate([[True], block[1:] != block[:-1], [True]]))

    def of_block(which: tuple[int, int]) -> tuple[Array, Array]:
        rows = groups.rows[groups.start[which[0]] : groups.start[which[1]]]
        return rows, _regroup_rows(table, groups, rows, state, lams, rows_at_once)

    for rows, found in in_order(of_block, zip(edges[:-1].tolist(), edges[1:].tolist())):
        labels[rows] = np.where(found >= 0, found, labels[rows])
    return state_of(table, groups, labels, state.rng)


def best_shares(table: Table, groups: Groups, state: Shared, lams: Lams) -> Shared:
    """Give every group the shares of given centres that suit it, from all that are nearest to some row of it."""
    memory = make_memory(table.n)
    assign(table, state.centres, memory)
    labels = np.full(table.n, -1, np.int32)
    labels[groups.rows] = memory.labels[groups.rows]
    held = held_of_labels(groups, labels, state.centres.mean.shape[0])
    return regroup(table, groups, state._replace(labels=labels, held=held), lams)


def _regroup_rows(table: Table, groups: Groups, rows: Array, state: Shared, lams: Lams, at_once: int) -> Array:
    """Clusters of the rows of some groups after their shares have changed."""
    K = state.centres.mean.shape[0]
    which, group = np.unique(groups.code[rows], return_inverse=True)
    held, weight = state.held.mask(which, K), table.rows.weights(rows)
    pieces = [slice(start, start + at_once) for start in range(0, rows.size, at_once)]
    kept = make_block(table, rows, state.centres, lams).cost if len(pieces) == 1 else None
    labels = np.empty(rows.size, np.int32)
    for _ in range(2 * K if kept is not None else _CHANGES):
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
    gain_add = add[line, best_add] - local * (1 + _GAIN)
    gain_drop = local * (1 - _GAIN) - drop[line, best_drop]
    adds = np.flatnonzero((gain_add > 0) & (gain_add >= gain_drop))
    drops = np.flatnonzero((gain_drop > 0) & (gain_drop > gain_add))
    held[adds, best_add[adds]] = True
    held[drops, best_drop[drops]] = False
    return bool(adds.size or drops.size)


class Parts(NamedTuple):
    """All local clusters as a table."""

    table: Table
    slot: Array  # (m,) local cluster of each of ``groups.rows``


def _all_parts(table: Table, groups: Groups, state: Shared) -> Parts:
    K, T = state.centres.mean.shape[0], state.held.member.size
    slot = find_slots(groups, state.held, state.labels, K)
    rows = table.rows.parts(groups.rows, slot.astype(np.int32), T, table.geometry.family)
    prints = np.full(T, 2**64 - 1, np.uint64)  # the least hash of its rows: copies of a row change nothing
    np.minimum.at(prints, slot, mix(table.hashes[groups.rows] + np.uint64(1)))
    return Parts(part_table(table, rows)._replace(hashes=prints), slot)


def _spread(parts: Parts, groups: Groups, state: Shared, member: Array) -> Array:
    """Labels of rows from clusters of local clusters."""
    labels = state.labels.copy()
    labels[groups.rows] = member[parts.slot]
    return labels


def move_local_clusters(table: Table, groups: Groups, state: Shared, plan: Plan) -> Shared:
    """Collapsed moves of local clusters: one at a time, the centres follow."""
    T, (K, p) = state.held.member.size, state.centres.mean.shape
    if T * K * p > ONE_BY_ONE or not np.isfinite(plan.lams.top):
        return state
    parts = _all_parts(table, groups, state)
    memory = make_memory(T)
    memory.labels[:] = state.held.member
    order = np.argsort(mix(parts.table.hashes), kind="stable")
    if not move_rows(parts.table, memory, plan.lams.top, order, plan.max_clusters):
        return state
    return state_of(table, groups, _spread(parts, groups, state, memory.labels), state.rng)


def move_single_rows(table: Table, groups: Groups, state: Shared, plan: Plan) -> Shared:
    """Collapsed moves of rows, on tables where one row weighs something; copies in a group move as one, so that
    integer weights equal repeated rows."""
    if table.n * state.centres.mean.size > ONE_BY_ONE:
        return state
    rows, labels = groups.rows, state.labels.copy()
    order = np.lexsort((table.hashes[rows], groups.code[rows]))
    code, hashes = groups.code[rows[order]], table.hashes[rows[order]]
    first = np.concatenate([[True], (code[1:] != code[:-1]) | (hashes[1:] != hashes[:-1])])
    which = np.cumsum(first) - 1
    once = rows[order[first]]
    sample = table.sample(once, np.bincount(which, table.rows.weights(rows[order])))
    own, grouped = labels[once], make_groups(groups.code[once], sample.rows, groups.n_groups)
    turn = turns(sample, grouped, "content", state.rng)
    for _ in range(ROUNDS):
        if not move_shared_rows(sample, grouped, own, plan.lams, turn, plan.max_clusters):
            break
    labels[rows[order]] = own[which]
    return state_of(table, groups, labels, state.rng)


def merge_and_split(table: Table, groups: Groups, state: Shared, plan: Plan, *, splits: bool) -> Shared:
    """One round of merges and splits on disjoint clusters."""
    K = state.centres.mean.shape[0]
    labels, free = state.labels.copy(), np.ones(K, bool)
    number, room = K, plan.max_clusters - K
    if splits and np.isfinite(plan.lams.top) and room > 0:
        found = best_splits(table, groups, state, plan.lams)
        gain = found.gain - plan.lams.top
        stake = plan.lams.top + found.gain
        chosen = np.flatnonzero(gain > _GAIN * stake)
        for k in chosen[np.argsort(-gain[chosen], kind="stable")][: int(min(room, chosen.size))]:
            labels[(state.labels == k) & found.away] = number
            free[k], number = False, number + 1
    for keep, gone in paying_merges(table, groups, state, plan.lams):
        if free[keep] and free[gone]:
            labels[state.labels == gone] = keep
            free[[keep, gone]] = False
    return state if free.all() else state_of(table, groups, labels, state.rng)


def paying_merges(table: Table, groups: Groups, state: Shared, lams: Lams) -> list[tuple[int, int]]:
    """Pairs of clusters whose union lowers J, best first: one lam_global is saved, and lam_local in every group that
    holds both."""
    K = state.centres.mean.shape[0]
    if K < 2 or not np.isfinite(lams.top):
        return []
    total, mass = table.rows.sums(state.labels, K)
    pairs = np.stack(np.triu_indices(K, 1), axis=1) if K <= ALL_PAIRS else close_pairs(table, total, mass)
    a, b = pairs.T
    rise = np.concatenate([_joins(table, total, mass, pairs[start : start + 4096]) for start in range(0, len(a), 4096)])
    saved = lams.local * held_by_both(state.held, groups.n_groups, K, a, b) + lams.top
    pays = np.flatnonzero(rise < saved - _GAIN * (saved + lams.local))
    order = pays[np.lexsort((b[pays], a[pays], (rise - saved)[pays]))]
    return [(int(a[q]), int(b[q])) for q in order]


def _joins(table: Table, total: Array, mass: Array, pairs: Array) -> Array:
    a, b = pairs.T
    return table.geometry.join_cost(total[a], mass[a], total[b], mass[b])


class Splits(NamedTuple):
    """The best split found of every cluster."""

    gain: Array  # (K,) fall of J, lam_global apart
    away: Array  # (n,) rows that would leave


def best_splits(table: Table, groups: Groups, state: Shared, lams: Lams) -> Splits:
    """Split clusters between local clusters, and through them, whatever saves more."""
    found = _split_rows(table, groups, state, lams)
    if state.held.member.size * table.rows.p > PARTS:
        return found
    other = _split_parts(table, groups, state)
    better = other.gain > found.gain
    rows = better[np.maximum(state.labels, 0)]
    return Splits(np.where(better, other.gain, found.gain), np.where(rows, other.away, found.away))


def _split_parts(table: Table, groups: Groups, state: Shared) -> Splits:
    """Two-means on the local clusters of each cluster: no group holds both halves."""
    parts = _all_parts(table, groups, state)
    memory = make_memory(parts.table.n)
    memory.labels[:] = state.held.member
    memory.cost[:] = own_cost(parts.table, slice(0, parts.table.n), state.centres, memory.labels)
    halves = halve(parts.table, state.centres.mean.shape[0], memory, SplitRule(clarity=0.0, held_out=False))
    away = np.zeros(table.n, bool)
    away[groups.rows] = halves.side[parts.slot] == 1
    return Splits(halves.gain, away)


def _split_rows(table: Table, groups: Groups, state: Shared, lams: Lams) -> Splits:
    """Two-means on the rows of each cluster; then each local cluster goes whole to one half, unless it pays
    lam_local for being in both."""
    K = state.centres.mean.shape[0]
    memory = make_memory(table.n)
    memory.labels[:] = np.maximum(state.labels, 0)
    memory.cost[:] = own_cost(table, slice(0, table.n), state.centres, memory.labels)
    halves = halve(table, state.centres.mean.shape[0], memory, SplitRule(clarity=0.0, held_out=False))
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
    table: Table, rows: Array, slot: Array, label: Array, side: Array, state: Shared, local: float
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
