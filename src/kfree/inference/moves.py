"""Moves of whole clusters: clear splits and paying merges, all clusters at once.

A split is judged on rows that did not choose it (an even bit of the hash fits, an odd one judges): otherwise noise
looks clear when a cluster has few rows for its dimension.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kfree.families import Affine, Array
from kfree.inference.assign import Centres, own_cost
from kfree.inference.table import Memory, Table
from kfree.kernels import kernels
from kfree.rows.threads import in_order

#: Between-sides share of the variance at which a split is clear: 0.64 for a halved Gaussian, 0.8 for two 4 sd apart.
CLARITY = 0.8
#: What chance may add to a share that n rows judge, times sqrt(n); a halved Gaussian's standard error is 0.34.
CHANCE = 0.15
#: Pairs of seeds tried in each cluster.
TRIALS = 4
#: Two-means steps after seeding.
STEPS = 4
#: Share of the smaller cluster that may lie beyond lam of the joint centre when two are merged.
STRAYS = 0.02
#: Two clusters that share less than this of the variance between them are halves of one: 0.64 for a Gaussian.
HALVES = 0.68
#: Others that a cluster may be merged with: its closest ones, and none that this many times lam puts out of reach.
NEIGHBOURS, FAR = 8, 10.0

_JUDGE = np.uint64(0xA5A5A5A5)
_MIN_JUDGES = 8
# Entries of a temporary when pairs of clusters are compared.
_ENTRIES = 200_000


class SplitRule(NamedTuple):
    """When a split is worth it."""

    clarity: float = CLARITY  # 0: any split that pays
    trials: int = TRIALS
    held_out: bool = True  # judge on rows that did not fit


def mix(v: Array) -> Array:
    """Finaliser of splitmix64: spreads the bits of a hash."""
    v = (v ^ (v >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    v = (v ^ (v >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return v ^ (v >> np.uint64(31))


def _uniform(hashes: Array, trial: int) -> Array:
    """Uniform numbers in (0, 1) that depend on row content and trial only."""
    return (mix(hashes + np.uint64(trial + 1)) >> np.uint64(11)).astype(float) * 2.0**-53 + 2.0**-54


class Halves(NamedTuple):
    """A split of every cluster in two."""

    side: Array  # (n,) 0 or 1
    gain: Array  # (K,) fall of the objective, penalty apart; 0 where there is none
    clarity: Array  # (K,) share of the judges' variance that lies between the sides, less what chance may add to it


class Tried(NamedTuple):
    """Clusters of a table that were not split: the same rows need not be tried again."""

    gain: dict[int, float]  # by fingerprint: what their split would have gained
    side: Array  # (n,) int8, and where it would have put their rows


def nothing_tried(n: int) -> Tried:
    """What is known before the first try."""
    return Tried({}, np.zeros(n, np.int8))


class Roles(NamedTuple):
    """Who chooses a split and who judges it; rows of weight zero do neither."""

    fits: Array  # indices of rows
    judges: Array  # indices of rows
    chance: Array  # (K,) what chance may add to the judges' share; inf where there are too few


def halve(table: Table, centres: Centres, memory: Memory, rule: SplitRule, wanted: Array | None = None) -> Halves:
    """Split every wanted cluster (all by default) in two by seeded two-means; keep the best of some trials."""
    K = centres.mean.shape[0]
    which = np.arange(K) if wanted is None else np.flatnonzero(wanted)
    found = Halves(np.zeros(table.n, np.int8), np.zeros(K), np.zeros(K))
    if not which.size:
        return found
    roles = _roles(table, memory, rule, K)
    labels = memory.labels
    if which.size < K:  # the others are left out of everything: their centres alone may be most of the work
        rank = np.full(K, -1, np.int32)
        rank[which] = np.arange(which.size)
        labels = rank[labels]
        fits, judges = (rows[labels[rows] >= 0] for rows in (roles.fits, roles.judges))
        roles = Roles(fits, judges, roles.chance[which])
    best = _best_halves(table, Parted(labels, memory.cost, np.flatnonzero(labels >= 0)), roles, rule.trials)
    found.gain[which], found.clarity[which] = best.gain, best.clarity
    return found._replace(side=best.side)


class Parted(NamedTuple):
    """Clusters that are to be halved."""

    labels: Array  # (n,) int32, -1 for rows of other clusters
    cost: Array  # (n,) divergence from the centre
    members: Array  # indices of the rows of these clusters


def _best_halves(table: Table, parted: Parted, roles: Roles, trials: int) -> Halves:
    """For each cluster the trial that gains most."""
    K, members = roles.chance.size, parted.members
    best = Halves(np.zeros(table.n, np.int8), np.zeros(K), np.zeros(K))
    # small tables spend their time in Python, which does not run in parallel: all trials in one go
    small = table.rows.entries <= _ENTRIES
    goes = [range(trials)] if small and trials else [range(trial, trial + 1) for trial in range(trials)]
    for go in in_order(lambda go: _try(table, parted, roles, go), goes):
        for found in go:
            better = found.gain > best.gain
            chosen = members[better[parted.labels[members]]]
            best.side[chosen] = found.side[chosen]
            best.gain[better], best.clarity[better] = found.gain[better], found.clarity[better]
    return best


def _roles(table: Table, memory: Memory, rule: SplitRule, K: int) -> Roles:
    active = table.rows.weight > 0 if table.rows.weight.size else np.ones(table.n, bool)
    if not rule.held_out:
        everybody = np.flatnonzero(active)
        return Roles(everybody, everybody, np.zeros(K))
    even = (mix(table.hashes ^ _JUDGE) & np.uint64(1)) == 0
    judges = np.flatnonzero(active & ~even)
    count = _distinct_judges(table, memory.labels, judges, K)
    chance = np.where(count >= _MIN_JUDGES, CHANCE / np.sqrt(np.maximum(count, 1)), np.inf)
    return Roles(np.flatnonzero(active & even), judges, chance)


def fingerprints(table: Table, labels: Array, K: int) -> Array:
    """A hash of the rows of each cluster, whatever their order: equal fingerprints, equal clusters."""
    prints = np.zeros(K, np.uint64)
    np.add.at(prints, labels, mix(table.hashes + np.uint64(1)))
    return prints


def _try(table: Table, parted: Parted, roles: Roles, trials: range) -> list[Halves]:
    """Some trials: two seeds in every cluster and a few steps of two-means on the fitting rows.

    To each trial belong clusters of its own, K of them, which hold the same rows.
    """
    T, K = len(trials), roles.chance.size
    fits, judges = _for_each(T, roles.fits), _for_each(T, roles.judges)
    labels = _shifted(T, K, parted.labels[roles.fits])
    mean, usable = _seed(table, parted.cost[fits], fits, labels, K, trials)
    for _ in range(STEPS):
        side = _contrast(table, mean, fits, labels) > 0
        total, mass = np.zeros_like(mean), np.zeros(2 * T * K)
        table.rows.add(fits, (2 * labels + side).astype(np.int32), total, mass)
        usable &= (mass.reshape(T * K, 2) > 0).all(axis=1)
        move = np.repeat(usable, 2)
        mean[move] = table.geometry.centre(total[move], mass[move])
    members = _for_each(T, parted.members)
    labels = _shifted(T, K, parted.labels[parted.members])
    known = usable[labels]
    rows, labels = members[known], labels[known]
    contrast, side = np.zeros((T, table.n)), np.zeros((T, table.n), np.int8)
    contrast[labels // K, rows] = value = _contrast(table, mean, rows, labels)
    side[labels // K, rows] = value > 0
    gain = _gains(table, rows, 2 * labels + (value > 0), usable)
    trial, labels = np.repeat(np.arange(T), roles.judges.size), _shifted(T, K, parted.labels[roles.judges])
    share = _clarity(table.rows.weights(judges), labels, contrast[trial, judges], side[trial, judges], T * K)
    clarity = share - np.tile(roles.chance, T)
    return [Halves(*parts) for parts in zip(side, gain.reshape(T, K), clarity.reshape(T, K))]


def _for_each(T: int, rows: Array) -> Array:
    """The same rows once for each trial."""
    return np.tile(rows, T) if T > 1 else rows


def _shifted(T: int, K: int, labels: Array) -> Array:
    """The labels of the same rows in the clusters of each trial."""
    return (np.arange(T, dtype=np.int32)[:, None] * np.int32(K) + labels).ravel() if T > 1 else labels


def _seed(table: Table, cost: Array, fits: Array, labels: Array, K: int, trials: range) -> tuple[Array, Array]:
    """Two seeds in every cluster by races weighted with the divergence: from the centre, then from the first."""
    hashes = table.hashes[fits[: fits.size // len(trials)]]
    time = -np.log(np.concatenate([_uniform(hashes, trial) for trial in trials]))
    first = _winners(table, fits, labels, cost / time, K * len(trials))
    usable = first >= 0
    a = table.singletons(np.where(usable, first, 0))
    from_a = own_cost(table, fits, Centres(table.geometry, a), labels)
    second = _winners(table, fits, labels, from_a / time, K * len(trials))
    usable &= second >= 0
    b = table.singletons(np.where(usable, second, 0))
    mean = np.empty((2 * len(usable), table.rows.p))
    mean[0::2], mean[1::2] = a, b
    return mean, usable


def _winners(table: Table, rows: Array, labels: Array, pace: Array, K: int) -> Array:
    """In each cluster the row of highest pace; -1 where nobody moves."""
    winners, fastest = np.full(K, -1, np.intp), np.zeros(K)
    none = np.empty(0)
    kernels().farthest(pace, none, none, 0.0, labels, table.hashes[rows], winners, fastest)
    return np.where(winners >= 0, rows[winners], -1) if rows.size else winners


def _contrast(table: Table, mean: Array, rows: slice | Array, labels: Array) -> Array:
    """D(x, c1) - D(x, c2) for the two halves of each row's cluster: the coordinate that decides the side."""
    pairs = Centres(table.geometry, mean)
    if table.geometry.family.euclidean_factor is not None:  # no row is excluded: the difference is one product
        coef, offset, size = pairs.affine.coef, pairs.affine.offset, pairs.affine.size
        return table.rows.own(rows, labels, Affine(coef[0::2] - coef[1::2], offset[0::2] - offset[1::2], size))
    a = own_cost(table, rows, pairs, 2 * labels)
    b = own_cost(table, rows, pairs, 2 * labels + 1)
    with np.errstate(invalid="ignore"):
        contrast = a - b
    contrast[np.isnan(contrast)] = 0.0  # excluded by both
    finite = np.isfinite(contrast)
    if not finite.all():
        far = np.abs(contrast[finite]).max(initial=1.0)
        contrast = np.clip(contrast, -far, far)
    return contrast


def _gains(table: Table, rows: Array, halves: Array, usable: Array) -> Array:
    """What each cluster saves if its ``rows`` go to the two halves 2 k and 2 k + 1."""
    K = usable.size
    total, mass = np.zeros((2 * K, table.rows.p)), np.zeros(2 * K)
    table.rows.add(rows, halves.astype(np.int32), total, mass)
    a, b = np.arange(0, 2 * K, 2), np.arange(1, 2 * K, 2)
    split = np.flatnonzero(usable & (mass[a] > 0) & (mass[b] > 0))
    gain = np.zeros(K)
    if split.size:
        a, b = a[split], b[split]
        gain[split] = table.geometry.join_cost(total[a], mass[a], total[b], mass[b])
    return gain


def _distinct_judges(table: Table, labels: Array, judges: Array, K: int) -> Array:
    """Distinct judging rows of each cluster; copies of a row share its cluster."""
    order = judges[np.argsort(table.hashes[judges])]
    hashes = table.hashes[order]
    first = np.concatenate([[True], hashes[1:] != hashes[:-1]]) if order.size else np.empty(0, bool)
    return np.bincount(labels[order[first]], minlength=K)


def _clarity(weight: Array, cluster: Array, value: Array, side: Array, K: int) -> Array:
    """Between-sides share of the variance of the judges' contrast in each cluster."""
    # centre by cluster first, so that no digits are lost to a common offset
    mass = np.bincount(cluster, weight, K)
    value = value - (np.bincount(cluster, weight * value, K) / np.where(mass > 0, mass, 1.0))[cluster]
    group = 2 * cluster + side
    mass = np.bincount(group, weight, 2 * K)
    mean = np.bincount(group, weight * value, 2 * K) / np.where(mass > 0, mass, 1.0)
    between = (mass * mean**2).reshape(K, 2).sum(axis=1)
    total = np.bincount(cluster, weight * value**2, K)
    return between / np.where(total > 0, total, 1.0)


def paying_merges(
    table: Table, centres: Centres, memory: Memory, lam: float, *, strays: float
) -> list[tuple[int, int]]:
    """Pairs of clusters whose union raises the costs by less than lam, cheapest first, each cluster once."""
    K = centres.mean.shape[0]
    if K < 2:
        return []
    total, mass = table.rows.sums(memory.labels, K)
    pairs = close_pairs(table, total, mass, most=FAR * lam)
    rises = _rises(table, total, mass, pairs)
    pairs, rises = pairs[rises < lam], rises[rises < lam]
    fits = _strays(table, memory.labels, total, mass, lam, pairs) <= strays * mass[pairs].min(axis=1)
    return _disjoint(pairs[fits], rises[fits])


def merge_halves(table: Table, centres: Centres, memory: Memory, lam: float) -> tuple[Centres, int]:
    """Join clusters that are halves of one, whatever it costs: growth may have opened two where one was wanted.

    The objective rises, so this is for samples only. Labels follow. Returns the centres and how many pairs were joined.
    """
    K = centres.mean.shape[0]
    total, mass = table.rows.sums(memory.labels, K)
    if K < 2:
        return centres, 0
    pairs = close_pairs(table, total, mass)
    pairs = pairs[_strays(table, memory.labels, total, mass, lam, pairs) <= STRAYS * mass[pairs].min(axis=1)]
    pairs = pairs[_shares_between(table, centres, memory.labels, pairs) < HALVES]
    merges = _disjoint(pairs, _rises(table, total, mass, pairs))
    if not merges:
        return centres, 0
    return relabelled(table, memory, _targets(K, merges)[memory.labels], K), len(merges)


def _disjoint(pairs: Array, rises: Array) -> list[tuple[int, int]]:
    """Pairs to be merged, cheapest first, each cluster once."""
    used: set[int] = set()
    merges: list[tuple[int, int]] = []
    for a, b in pairs[np.lexsort((pairs[:, 1], pairs[:, 0], rises))].tolist():
        if a not in used and b not in used:
            merges.append((a, b))
            used |= {a, b}
    return merges


def _each_row_of(clusters: Array, labels: Array, K: int) -> Iterator[tuple[Array, Array]]:
    """For a list of clusters, places in the list and the rows of the cluster there; not too many at a time."""
    members = np.argsort(labels, kind="stable")
    edges = np.searchsorted(labels[members], np.arange(K + 1))
    size = edges[clusters + 1] - edges[clusters]
    piece = np.cumsum(size) // _ENTRIES
    for number in np.unique(piece):
        some = np.flatnonzero(piece == number)
        place = np.repeat(some, size[some])
        offset = np.arange(place.size) - np.repeat(np.cumsum(size[some]) - size[some], size[some])
        yield place, members[edges[clusters[place]] + offset]


def _strays(table: Table, labels: Array, total: Array, mass: Array, lam: float, pairs: Array) -> Array:
    """For each pair of clusters the weight of the lighter one's rows that lie beyond lam of the joint centre."""
    a, b = pairs.T
    joint = Centres(table.geometry, table.geometry.centre(total[a] + total[b], mass[a] + mass[b]))
    lost = np.zeros(len(pairs))
    for pair, rows in _each_row_of(np.where(mass[a] < mass[b], a, b), labels, mass.size):
        beyond = table.excess(own_cost(table, rows, joint, pair.astype(np.int32)), lam, rows) > 0
        lost += np.bincount(pair[beyond], table.rows.weights(rows[beyond]), len(pairs))
    return lost


def _shares_between(table: Table, centres: Centres, labels: Array, pairs: Array) -> Array:
    """For each pair of clusters the share of the variance of their contrast that lies between them."""
    count = len(pairs)
    # sums by side of weight, contrast and its square: the contrast changes sign between the sides, so nothing is lost
    sums = np.zeros((3, 2 * count))
    for side, rows in _each_row_of(pairs.ravel(), labels, centres.mean.shape[0]):
        mine, other = pairs.ravel()[side], pairs[:, ::-1].ravel()[side]
        with np.errstate(invalid="ignore"):
            gap = own_cost(table, rows, centres, other.astype(np.int32)) - own_cost(
                table, rows, centres, mine.astype(np.int32)
            )
        gap = np.where(np.isfinite(gap), gap, np.finfo(float).max ** 0.25) * np.where(side % 2, -1.0, 1.0)
        weight = table.rows.weights(rows)
        for line, value in zip(sums, (weight, weight * gap, weight * gap**2)):
            line += np.bincount(side, value, 2 * count)
    mass, first, second = sums.reshape(3, count, 2)
    whole = first.sum(axis=1) ** 2 / mass.sum(axis=1)
    between = (first**2 / mass).sum(axis=1) - whole
    total = second.sum(axis=1) - whole
    return between / np.where(total > 0, total, 1.0)


def _rises(table: Table, total: Array, mass: Array, pairs: Array) -> Array:
    """What the union of each pair of clusters would raise the costs by."""
    rises = np.empty(len(pairs))
    step = max(1, _ENTRIES // total.shape[1])
    for start in range(0, len(pairs), step):
        a, b = pairs[start : start + step].T
        rises[start : start + step] = table.geometry.join_cost(total[a], mass[a], total[b], mass[b])
    return rises


def close_pairs(table: Table, total: Array, mass: Array, count: int = NEIGHBOURS, most: float = np.inf) -> Array:
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
        nearest = np.argsort(score, axis=1, kind="stable")[:, : min(count, held.size - 1)]
        pairs = np.stack([np.repeat(some, nearest.shape[1]), nearest.ravel()], axis=1)
        found.append(pairs[np.take_along_axis(score, nearest, axis=1).ravel() <= most])
    return held[np.unique(np.sort(np.concatenate(found), axis=1), axis=0)]


def apply_moves(
    table: Table,
    centres: Centres,
    memory: Memory,
    lam: float,
    rule: SplitRule,
    *,
    strays: float = STRAYS,
    most_splits: float = np.inf,
    tried: Tried | None = None,
) -> tuple[Centres, int]:
    """One round of splits and merges on disjoint clusters; labels follow. Returns the centres and how many moved.

    Each move lowers the objective by |gain - lam|. ``tried`` is kept between calls with the same table and rule.
    """
    K = centres.mean.shape[0]
    prints = fingerprints(table, memory.labels, K).tolist()
    wanted = np.array([tried is None or print not in tried.gain for print in prints], bool)
    halves = halve(table, centres, memory, rule, wanted)
    margin = 1e-10 * (lam + halves.gain)
    split = np.flatnonzero((halves.gain > lam + margin) & (halves.clarity >= rule.clarity))
    split = split[np.argsort(-halves.gain[split], kind="stable")][: int(max(0, min(most_splits, split.size)))]
    if tried is not None:
        np.copyto(tried.side, halves.side, where=wanted[memory.labels])
        wanted[split] = False
        tried.gain.update((prints[k], float(halves.gain[k])) for k in np.flatnonzero(wanted))
    merges = paying_merges(table, centres, memory, lam, strays=strays)
    merges = [pair for pair in merges if pair[0] not in split and pair[1] not in split]
    if not split.size and not merges:
        return centres, 0
    new = np.full(K, -1)
    new[split] = K + np.arange(split.size)
    away = (halves.side == 1) & (new[memory.labels] >= 0)
    labels = np.where(away, new[memory.labels], _targets(K, merges)[memory.labels])
    return relabelled(table, memory, labels, K + split.size), split.size + len(merges)


def _targets(K: int, merges: list[tuple[int, int]]) -> Array:
    """For each cluster the one that its rows are in after the merges."""
    target = np.arange(K)
    for keep, gone in merges:
        target[gone] = keep
    return target


def relabelled(table: Table, memory: Memory, labels: Array, K: int) -> Centres:
    """Give the rows new labels below K, drop clusters without weight, and return the centres."""
    total, mass = table.rows.sums(labels.astype(np.int32), K)
    held = np.flatnonzero(mass > 0)
    remap = np.zeros(mass.size, np.int32)
    remap[held] = np.arange(held.size)
    memory.labels[:] = remap[labels]
    memory.low[:] = -np.inf
    return Centres(table.geometry, table.geometry.centre(total[held], mass[held]))
