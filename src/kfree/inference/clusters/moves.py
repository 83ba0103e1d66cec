"""Moves of whole clusters: clear splits and paying merges, all clusters at once."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from kfree.families import Affine, Array
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.inference.clusters.cuts import (
    SplitRule,
    can_tell,
    clarities,
    distinct_rows,
    dithered,
    halve,
    valleys,
)
from kfree.inference.clusters.exact import own_cost
from kfree.inference.clusters.table import Memory, Table
from kfree.inference.goal import Goal
from kfree.inference.labels import compact
from kfree.inference.merges import disjoint
from kfree.kernels.splitmix import mix
from kfree.rows.threads import in_order


class Tried(NamedTuple):
    """Clusters of a table that were not split: the same rows need not be tried again."""

    gain: dict[int, float]  # by fingerprint: what their split would have gained
    side: Array  # (n,) int8, and where it would have put their rows
    whole: set[int]  # fingerprints of those that more rows would not split either


def nothing_tried(n: int) -> Tried:
    """What is known before the first try."""
    return Tried({}, np.zeros(n, np.int8), set())


def fingerprints(table: Table, labels: Array, K: int) -> Array:
    """A hash of the rows of each cluster, whatever their order: equal fingerprints, equal clusters."""
    prints = np.zeros(K, np.uint64)
    np.add.at(prints, labels, mix(table.hashes + np.uint64(1)))
    return prints


def paying_merges(table: Table, centres: Centres, memory: Memory, lam: float, strays: float) -> list[tuple[int, int]]:
    """Pairs of clusters whose union raises the costs by less than lam, cheapest first, each cluster once; of the
    smaller one at most ``strays`` may lie beyond lam of the joint centre."""
    K = centres.mean.shape[0]
    if K < 2 or not np.isfinite(lam):  # without a price there is nothing to save
        return []
    total, mass = table.rows.sums(memory.labels, K)
    pairs = close_pairs(table, total, mass, CLUSTERS.neighbours, CLUSTERS.out_of_reach * lam)
    if table.geometry.family.entropic:
        pairs = pairs[_rough_rises(table, total, mass, pairs) < CLUSTERS.rough_rise * lam]
    rises = _rises(table, total, mass, pairs)
    pairs, rises = pairs[rises < lam], rises[rises < lam]
    fits = _strays(table, memory.labels, total, mass, lam, pairs) <= strays * mass[pairs].min(axis=1)
    return disjoint(pairs[fits], rises[fits])


def merge_halves(table: Table, centres: Centres, memory: Memory, lam: float) -> tuple[Centres, int]:
    """Join clusters that are halves of one, whatever it costs: growth may have opened two where one was wanted.

    The objective rises, so this is for samples only. Labels follow. Returns the centres and how many pairs were joined.
    """
    K = centres.mean.shape[0]
    total, mass = table.rows.sums(memory.labels, K)
    if K < 2:
        return centres, 0
    pairs = close_pairs(table, total, mass, CLUSTERS.closest)
    pairs = _halves_of_one(table, centres, memory.labels, pairs)
    pairs = pairs[_strays(table, memory.labels, total, mass, lam, pairs) <= CLUSTERS.strays * mass[pairs].min(axis=1)]
    merges = disjoint(pairs, _rises(table, total, mass, pairs))
    if not merges:
        return centres, 0
    return relabelled(table, memory, _targets(K, merges)[memory.labels], K), len(merges)


def _by_label(labels: Array, K: int) -> Array:
    """The order of labels below K; equal ones stay as they are."""
    short = K < 2**15  # such numbers are sorted by their digits, which is quick
    return np.argsort(labels.astype(np.int16) if short else labels, kind="stable")


def _each_row_of(clusters: Array, rows: Array, labels: Array, K: int) -> Iterator[tuple[Array, Array]]:
    """For a list of clusters, places in the list and those of some labelled rows that are of the cluster there; not too
    many at a time."""
    order = _by_label(labels, K)
    edges = np.searchsorted(labels[order], np.arange(K + 1))
    size = edges[clusters + 1] - edges[clusters]
    piece = np.cumsum(size) // CLUSTERS.pair_entries
    for number in np.unique(piece):
        some = np.flatnonzero(piece == number)
        place = np.repeat(some, size[some])
        offset = np.arange(place.size) - np.repeat(np.cumsum(size[some]) - size[some], size[some])
        yield place, rows[order[edges[clusters[place]] + offset]]


def _strays(table: Table, labels: Array, total: Array, mass: Array, lam: float, pairs: Array) -> Array:
    """For each pair of clusters the weight of the lighter one's rows that lie beyond lam of the joint centre."""
    if not len(pairs):
        return np.zeros(0)
    a, b = pairs.T
    joint = Centres(table.geometry, table.geometry.centre(total[a] + total[b], mass[a] + mass[b]))
    lost = np.zeros(len(pairs))
    for pair, rows in _each_row_of(np.where(mass[a] < mass[b], a, b), np.arange(table.n), labels, mass.size):
        beyond = table.excess(own_cost(table, rows, joint, pair.astype(np.int32)), lam, rows) > 0
        lost += np.bincount(pair[beyond], table.rows.weights(rows[beyond]), len(pairs))
    return lost


def _halves_of_one(table: Table, centres: Centres, labels: Array, pairs: Array) -> Array:
    """Those of the pairs of clusters that are halves of one."""
    K, rows = centres.mean.shape[0], distinct_rows(table)
    rows = rows[_by_label(labels[rows], K)]
    rank = np.arange(rows.size) - np.searchsorted(labels[rows], np.arange(K))[labels[rows]]
    few, many = CLUSTERS.halves_rows
    pairs = _not_apart(table, centres, labels, pairs, rows[rank < few], 2.0)  # most are, and a few rows tell
    rows = rows[rank < many]
    pairs = _not_apart(table, centres, labels, pairs, rows, 0.0)
    if not can_tell(table):
        return pairs
    rows = rows[np.isin(labels[rows], pairs)]
    pair, place = _places(pairs, rows, labels, K)
    a, b, affine = *pairs.T, centres.affine
    along = Affine(affine.coef[b] - affine.coef[a], affine.offset[b] - affine.offset[a], affine.size)
    smooth = dithered(table, rows).own(place, pair.astype(np.int32), along)
    valley = valleys(pair, smooth, np.ones(len(pairs), bool))
    return pairs[np.isnan(valley) | (valley > CLUSTERS.valley)]


def _not_apart(table: Table, centres: Centres, labels: Array, pairs: Array, rows: Array, errors: float) -> Array:
    """Those of the pairs whose share of variance, less so many standard errors, is below that of two clusters."""
    which, value = _contrasts(table, centres, labels, pairs, rows)
    count = np.bincount(which, minlength=len(pairs))
    share = clarities(which, value, len(pairs))
    share -= errors * CLUSTERS.share_error / np.sqrt(np.maximum(count, 1))
    return pairs[share < CLUSTERS.clarity]


def _places(pairs: Array, rows: Array, labels: Array, K: int) -> tuple[Array, Array]:
    """For those of some rows that are of a cluster of a pair: which pair, and the place of the row in the list."""
    parts = [(side // 2, place) for side, place in _each_row_of(pairs.ravel(), np.arange(rows.size), labels[rows], K)]
    none = np.empty(0, np.intp)
    pair, place = (np.concatenate(part) for part in zip(*parts)) if parts else (none, none)
    return pair, place


def _contrasts(table: Table, centres: Centres, labels: Array, pairs: Array, rows: Array) -> tuple[Array, Array]:
    """For those of some rows that are of a cluster of a pair a, b: which pair, and D(x, b) - D(x, a)."""
    ends, others = pairs.ravel(), pairs[:, ::-1].ravel()
    which, value = [np.empty(0, np.intp)], [np.empty(0)]
    for side, mine in _each_row_of(ends, rows, labels[rows], centres.mean.shape[0]):
        with np.errstate(invalid="ignore"):
            gap = own_cost(table, mine, centres, others[side].astype(np.int32))
            gap -= own_cost(table, mine, centres, ends[side].astype(np.int32))
        gap = np.where(np.isfinite(gap), gap, np.finfo(float).max ** 0.25)
        which.append(side // 2)
        value.append(gap * np.where(side % 2, -1.0, 1.0))
    return np.concatenate(which), np.concatenate(value)


def _rises(table: Table, total: Array, mass: Array, pairs: Array) -> Array:
    """What the union of each pair of clusters would raise the costs by."""
    return _by_pieces(lambda a, b: table.geometry.join_cost(total[a], mass[a], total[b], mass[b]), total, pairs)


def _rough_rises(table: Table, total: Array, mass: Array, pairs: Array) -> Array:
    """The same as a difference of costs: few logarithms, but where costs are large digits are lost."""
    cost, alone = table.geometry.cluster_cost, np.zeros(mass.size)
    used = np.unique(pairs)
    alone[used] = cost(total[used], mass[used])
    joint = _by_pieces(lambda a, b: cost(total[a] + total[b], mass[a] + mass[b]), total, pairs)
    return joint - alone[pairs].sum(axis=1)


def _by_pieces(function: Callable[[Array, Array], Array], total: Array, pairs: Array) -> Array:
    """A function of pairs of clusters, not too many at a time."""
    step = max(1, CLUSTERS.pair_entries // total.shape[1])
    pieces = [pairs[start : start + step] for start in range(0, max(1, len(pairs)), step)]
    return np.concatenate(list(in_order(lambda some: function(*some.T), pieces)))


def close_pairs(table: Table, total: Array, mass: Array, count: int, most: float = np.inf) -> Array:
    """Pairs of close clusters, the lower number first.

    For each cluster the few others that W_a W_b / (W_a + W_b) times the lesser divergence, at most ``most``, puts
    closest: it is the rise itself for squared distances, and one product for all pairs.
    """
    held = np.flatnonzero(mass > 0)
    mean, weight = table.geometry.centre(total[held], mass[held]), mass[held]
    affine, base = table.geometry.affine(mean), table.geometry.from_anchor(mean)
    found = []
    for start in range(0, held.size, 64):
        some = np.arange(start, min(start + 64, held.size))
        to_others = base[some, None] + affine.offset - mean[some] @ affine.coef.T
        from_others = base + affine.offset[some, None] - affine.coef[some] @ mean.T
        score = np.minimum(to_others, from_others) / (1 / weight[some, None] + 1 / weight)
        score[some - start, some] = np.inf
        near, other = np.nonzero(_among_least(score, min(count, held.size - 1)) & (score <= most))
        found.append(np.stack([start + near, other], axis=1))
    return held[np.unique(np.sort(np.concatenate(found), axis=1), axis=0)]


def _among_least(score: Array, count: int) -> Array:
    """Whether entries are among the so many least of their line; of equal ones the first are."""
    if count < 1:
        return np.zeros(score.shape, bool)
    last = np.partition(score, count - 1, axis=1)[:, count - 1 : count]
    less, tied = score < last, score == last
    return less | (tied & (np.cumsum(tied, axis=1) <= count - less.sum(axis=1, keepdims=True)))


def apply_moves(
    table: Table,
    centres: Centres,
    memory: Memory,
    goal: Goal,
    rule: SplitRule,
    tried: Tried | None = None,
) -> tuple[Centres, int]:
    """One round of splits and merges on disjoint clusters; labels follow. Returns the centres and how many moved.

    Each move lowers the objective by |gain - lam|. ``tried`` is kept between calls with the same table and rule.
    """
    K = centres.mean.shape[0]
    split, side = _paying_splits(table, K, memory, goal, rule, tried)
    # clear moves keep what lam covers together; where the objective alone counts, strays are paid for
    strays = CLUSTERS.strays if rule is SplitRule.CLEAR else 1.0
    merges = paying_merges(table, centres, memory, goal.lam, strays)
    merges = [pair for pair in merges if pair[0] not in split and pair[1] not in split]
    return _made(table, centres, memory, split, side, merges)


def swap(table: Table, centres: Centres, memory: Memory) -> tuple[Centres, int]:
    """Split some clusters and merge as many pairs of others where that lowers the costs; labels follow.

    The number of clusters stays. Returns the centres and how many swaps were made.
    """
    K = centres.mean.shape[0]
    if K < 3:  # one to split and two to merge
        return centres, 0
    halves = halve(table, memory, SplitRule.PAYING, np.ones(K, bool), CLUSTERS.trials)
    total, mass = table.rows.sums(memory.labels, K)
    pairs = close_pairs(table, total, mass, CLUSTERS.neighbours)
    rises = _rises(table, total, mass, pairs)
    split: list[int] = []
    merges: list[tuple[int, int]] = []
    best = [int(k) for k in np.argsort(-halves.gain, kind="stable") if halves.gain[k] > 0]
    for e in np.argsort(rises, kind="stable"):
        pair = int(pairs[e, 0]), int(pairs[e, 1])
        taken = {*split, *(k for made in merges for k in made)}
        if pair[0] in taken or pair[1] in taken:
            continue
        k = next((k for k in best if k not in taken and k not in pair), None)
        if k is None or not halves.gain[k] * (1 - CLUSTERS.least_gain) > rises[e] * (1 + CLUSTERS.least_gain):
            break
        split.append(k)
        merges.append(pair)
    found, _ = _made(table, centres, memory, np.array(split, np.intp), halves.side, merges)
    return found, len(split)


def _made(
    table: Table, centres: Centres, memory: Memory, split: Array, side: Array, merges: list[tuple[int, int]]
) -> tuple[Centres, int]:
    """Make splits, by the side of each row, and merges; labels follow. Returns the centres and how many moved."""
    if not split.size and not merges:
        return centres, 0
    K = centres.mean.shape[0]
    new = np.full(K, -1)
    new[split] = K + np.arange(split.size)
    away = side & (new[memory.labels] >= 0)
    labels = np.where(away, new[memory.labels], _targets(K, merges)[memory.labels])
    return relabelled(table, memory, labels, K + split.size), split.size + len(merges)


def clear_splits(table: Table, K: int, memory: Memory, goal: Goal, tried: Tried) -> tuple[Array, Array]:
    """Clusters with a clear cut that pays, and the side of each row; what is known of the others is remembered."""
    return _paying_splits(table, K, memory, goal, SplitRule.CLEAR, tried)


def _paying_splits(
    table: Table, K: int, memory: Memory, goal: Goal, rule: SplitRule, tried: Tried | None
) -> tuple[Array, Array]:
    """Clusters whose split pays, best first, as many as there is room for; and the side of each row of theirs."""
    if rule is SplitRule.NONE:
        return np.empty(0, np.intp), np.zeros(table.n, bool)
    prints = fingerprints(table, memory.labels, K).tolist()
    wanted = np.array([tried is None or print not in tried.gain for print in prints], bool)
    halves = halve(table, memory, rule, wanted, CLUSTERS.trials)
    margin = CLUSTERS.least_gain * (goal.lam + halves.gain)
    split = np.flatnonzero((halves.gain > goal.lam + margin) & halves.worth_while(rule))
    room = int(max(0, min(goal.max_clusters - K, split.size)))
    split = split[np.argsort(-halves.gain[split], kind="stable")][:room]
    if tried is not None:
        np.copyto(tried.side, halves.side, where=wanted[memory.labels])
        wanted[split] = False
        tried.gain.update((prints[k], float(halves.gain[k])) for k in np.flatnonzero(wanted))
        tried.whole.update(prints[k] for k in np.flatnonzero(wanted & halves.whole))
    return split, halves.side


def _targets(K: int, merges: list[tuple[int, int]]) -> Array:
    """For each cluster the one that its rows are in after the merges."""
    target = np.arange(K)
    for keep, gone in merges:
        target[gone] = keep
    return target


def relabelled(table: Table, memory: Memory, labels: Array, K: int) -> Centres:
    """Give the rows new labels below K, drop clusters without weight, and return the centres."""
    sums = table.rows.exact_sums(labels.astype(np.int32), K)
    total, mass = sums.values()
    held = mass > 0
    new = compact(held)
    memory.labels[:] = new[labels]
    memory.written(sums.relabelled(new, int(held.sum())))
    return Centres(table.geometry, table.geometry.centre(total[held], mass[held]))
