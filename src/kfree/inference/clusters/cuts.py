"""Cuts of clusters in two, all clusters at once, and which of them are clear.

A cut is clear if much of the variance across it lies between its sides and there is a valley at it. It is judged on
rows that did not choose it (an even bit of the hash fits, an odd one judges): otherwise noise looks clear when a
cluster has few rows for its dimension. Copies of a row are one judge.
"""

from enum import Enum
from typing import NamedTuple

import numpy as np

from kfree.families import Affine, Array
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.inference.clusters.exact import own_cost
from kfree.inference.clusters.table import Memory, Table
from kfree.inference.content import as_uniform, dither, one_of_each
from kfree.inference.dip import FEWEST, p_values
from kfree.inference.labels import compact
from kfree.kernels import kernels
from kfree.kernels.splitmix import mix
from kfree.rows import DenseRows
from kfree.rows.threads import in_order

_JUDGE = np.uint64(0xA5A5A5A5)


class SplitRule(Enum):
    """Which splits are looked for."""

    CLEAR = "clear"  # those that rows which did not choose them call clear
    PAYING = "paying"  # any that pays, chosen and judged by all rows
    NONE = "none"


class Halves(NamedTuple):
    """A split of every cluster in two."""

    side: Array  # (n,) bool, True for the second one
    gain: Array  # (K,) fall of the objective, penalty apart; 0 where there is none
    clarity: Array  # (K,) share of the judges' variance that lies between the sides
    valley: Array  # (K,) how often a cloud without a valley would show one like the judges; 0 or 1 if they cannot tell
    whole: Array  # (K,) bool, more rows would not call it clear

    def worth_while(self, rule: SplitRule) -> Array:
        """Clusters (K,) whose split a rule lets pass, if it pays."""
        if rule is SplitRule.PAYING:
            return np.ones(self.gain.size, bool)
        return (self.clarity >= CLUSTERS.clarity) & (self.valley <= CLUSTERS.valley)


class Roles(NamedTuple):
    """Who chooses a split and who judges it; rows of weight zero do neither."""

    fits: Array  # indices of rows
    judges: Array  # indices of rows


def halve(table: Table, memory: Memory, rule: SplitRule, wanted: Array, trials: int) -> Halves:
    """Split the wanted ones of K clusters (bool mask) in two by seeded two-means; keep the best of some trials."""
    K, which = wanted.size, np.flatnonzero(wanted)
    found = Halves(np.zeros(table.n, bool), np.zeros(K), np.zeros(K), np.ones(K), np.zeros(K, bool))
    if not which.size:
        return found
    labels = memory.labels
    if which.size < K:  # the others are left out of everything: their centres alone may be most of the work
        labels = np.where(wanted, compact(wanted), -1).astype(np.int32)[labels]
    parted = Parted(which.size, labels, memory.cost, np.flatnonzero(labels >= 0))
    best = _best_halves(table, parted, _roles(table, rule, parted.members), trials)
    for mine, theirs in zip(found[1:], best[1:]):
        mine[which] = theirs
    return found._replace(side=best.side)


class Parted(NamedTuple):
    """Clusters that are to be halved."""

    K: int
    labels: Array  # (n,) int32, -1 for rows of other clusters
    cost: Array  # (n,) divergence from the centre
    members: Array  # indices of the rows of these clusters


def _best_halves(table: Table, parted: Parted, roles: Roles, trials: int) -> Halves:
    """For each cluster the trial that gains most."""
    K, members = parted.K, parted.members
    best = Halves(np.zeros(table.n, bool), np.zeros(K), np.zeros(K), np.ones(K), np.zeros(K, bool))
    # small tables spend their time in Python, which does not run in parallel: all trials in one go
    small = table.rows.entries <= CLUSTERS.trial_entries
    goes = [range(trials)] if small else [range(trial, trial + 1) for trial in range(trials)]
    for go in in_order(lambda go: _try(table, parted, roles, go), goes):
        for found in go:
            better = found.gain > best.gain
            chosen = members[better[parted.labels[members]]]
            best.side[chosen] = found.side[chosen]
            for mine, theirs in zip(best[1:], found[1:]):
                mine[better] = theirs[better]
    return best


def _roles(table: Table, rule: SplitRule, members: Array) -> Roles:
    """Who of some rows does what."""
    members = _active(table, members)
    if rule is SplitRule.PAYING:
        return Roles(members, members)
    even = (mix(table.hashes[members] ^ _JUDGE) & np.uint64(1)) == 0
    return Roles(members[even], _once(table, members[~even]))


def _active(table: Table, rows: Array) -> Array:
    """Those of some rows that have weight."""
    return rows[table.rows.weight[rows] > 0] if table.rows.weight.size else rows


def distinct_rows(table: Table) -> Array:
    """One row for each content that has weight, in the order of their hashes."""
    return _once(table, _active(table, np.arange(table.n)))


def can_tell(table: Table) -> bool:
    """Whether rows can tell a valley: not counts and others that may not be dithered, nor where it takes too much."""
    return bool(table.geometry.family.translates and table.n * table.rows.p <= CLUSTERS.dither_entries)


def dithered(table: Table, rows: Array) -> DenseRows:
    """Some rows with the rounding of their columns dithered away."""
    none = np.empty(0)
    stats = dither(table.rows.dense(rows), mix(table.hashes[rows]), coarse=CLUSTERS.coarse)
    return DenseRows(stats, weight=none, scale=none, shift=np.zeros(table.rows.p))


def _once(table: Table, rows: Array) -> Array:
    """One of the rows for each content, in the order of their hashes; copies share a cluster."""
    return rows[one_of_each(table.hashes[rows])]


def _try(table: Table, parted: Parted, roles: Roles, trials: range) -> list[Halves]:
    """Some trials: two seeds in every cluster and a few steps of two-means on the fitting rows.

    To each trial belong clusters of its own, K of them, which hold the same rows.
    """
    T, K = len(trials), parted.K
    fits = _for_each(T, roles.fits)
    labels = _shifted(T, K, parted.labels[roles.fits])
    whole = np.tile(_whole(table, parted), (T, 1))
    mean, usable = _seed(table, parted.cost[fits], fits, labels, whole, K, trials)
    if not (table.geometry.plain and table.rows.two_means(fits, labels, CLUSTERS.steps, mean, usable)):
        _two_means(table, fits, labels, whole, mean, usable)
        mean = _softened(mean, whole)
    members = _for_each(T, parted.members)
    labels = _shifted(T, K, parted.labels[parted.members])
    known = usable[labels]
    rows, labels = members[known], labels[known]
    contrast = np.zeros((T, table.n))
    contrast[labels // K, rows] = value = _contrast(table, mean, rows, labels)
    gain = _gains(table, rows, 2 * labels + (value > 0), usable)
    judged = contrast[:, roles.judges].ravel()
    cluster = _shifted(T, K, parted.labels[roles.judges])
    clarity = clarities(cluster, judged, T * K)
    valley = np.full(T * K, np.nan)
    if can_tell(table):
        valley = np.ones(T * K)
        may = usable & (clarity >= CLUSTERS.clarity)
        mine = np.flatnonzero(may[cluster])
        if mine.size:
            affine = Centres(table.geometry, mean).affine
            coef, offset = affine.coef[0::2] - affine.coef[1::2], affine.offset[0::2] - affine.offset[1::2]
            which, place = np.unique(mine % roles.judges.size, return_inverse=True)
            smooth = dithered(table, roles.judges[which]).own(place, cluster[mine], Affine(coef, offset, affine.size))
            valley = valleys(cluster[mine], smooth, may)
    count = np.bincount(cluster, minlength=T * K)
    error = CLUSTERS.share_error / np.sqrt(np.maximum(count, 1))
    sure = (clarity - error >= CLUSTERS.clarity) & (count >= FEWEST)
    valley = np.where(np.isnan(valley), np.where(sure, 0.0, 1.0), valley)
    whole = clarity + 2 * error < CLUSTERS.clarity
    many, a_column = CLUSTERS.many_judges
    whole &= count >= max(many, a_column * table.rows.p)
    by_trial = (values.reshape(T, K) for values in (gain, clarity, valley, whole))
    return [Halves(*parts) for parts in zip(contrast > 0, *by_trial)]


def _whole(table: Table, parted: Parted) -> Array:
    """Centres (K, p) of the clusters that are to be halved, if centres of their halves may exclude rows; else none."""
    family, rows = table.geometry.family, parted.members
    if table.geometry.eta > 0 or (family.lower == -np.inf and family.upper == np.inf):
        return np.empty((0, table.rows.p))
    total, mass = np.zeros((parted.K, table.rows.p)), np.zeros(parted.K)
    table.rows.add(rows, parted.labels[rows], total, mass)
    return table.geometry.centre(total, np.where(mass > 0, mass, 1.0))


def _softened(mean: Array, whole: Array) -> Array:
    """One centre or more in each cluster with a share of the whole mixed in: so they exclude no row of their cluster,
    and tell by how much each is nearer."""
    return mean + CLUSTERS.soft * (np.repeat(whole, len(mean) // len(whole), axis=0) - mean) if len(whole) else mean


def _two_means(table: Table, fits: Array, labels: Array, whole: Array, mean: Array, usable: Array) -> None:
    """A few steps in every usable cluster, for any divergence; ``mean`` holds the two centres of each."""
    for _ in range(CLUSTERS.steps):
        side = _contrast(table, _softened(mean, whole), fits, labels) > 0
        total, mass = np.zeros_like(mean), np.zeros(mean.shape[0])
        table.rows.add(fits, (2 * labels + side).astype(np.int32), total, mass)
        usable &= (mass.reshape(-1, 2) > 0).all(axis=1)
        move = np.repeat(usable, 2)
        mean[move] = table.geometry.centre(total[move], mass[move])


def _for_each(T: int, rows: Array) -> Array:
    """The same rows once for each trial."""
    return np.tile(rows, T) if T > 1 else rows


def _shifted(T: int, K: int, labels: Array) -> Array:
    """The labels of the same rows in the clusters of each trial."""
    return (np.arange(T, dtype=np.int32)[:, None] * np.int32(K) + labels).ravel() if T > 1 else labels


def _seed(
    table: Table, cost: Array, fits: Array, labels: Array, whole: Array, K: int, trials: range
) -> tuple[Array, Array]:
    """Two seeds in every cluster by races weighted with the divergence: from the centre, then from the first."""
    hashes = table.hashes[fits[: fits.size // len(trials)]]
    time = -np.log(np.concatenate([as_uniform(mix(hashes + np.uint64(trial + 1))) for trial in trials]))
    first = _winners(table, fits, labels, cost / time, K * len(trials))
    usable = first >= 0
    a = table.singletons(np.where(usable, first, 0))
    from_a = own_cost(table, fits, Centres(table.geometry, _softened(a, whole)), labels)
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
    if table.geometry.family.euclidean_factor is not None or table.geometry.eta > 0:
        # no row is excluded: the difference is one product
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


def clarities(cluster: Array, value: Array, K: int) -> Array:
    """Share of the variance of the values in each cluster that lies between those above 0 and those below."""
    side = value > 0
    largest = np.zeros(K)
    np.maximum.at(largest, cluster, np.abs(value))
    value = value / np.where(largest > 0, largest, 1.0)[cluster]  # squares of squares may leave the range
    # centre by cluster first, so that no digits are lost to a common offset
    value = value - (np.bincount(cluster, value, K) / np.maximum(np.bincount(cluster, minlength=K), 1))[cluster]
    group = 2 * cluster + side
    count = np.bincount(group, minlength=2 * K)
    mean = np.bincount(group, value, 2 * K) / np.maximum(count, 1)
    between = (count * mean**2).reshape(K, 2).sum(axis=1)
    total = np.bincount(cluster, value**2, K)
    return between / np.where(total > 0, total, 1.0)


def valleys(cluster: Array, value: Array, wanted: Array) -> Array:
    """How often values of a cloud without a valley at 0 would show one like those of each wanted cluster, nan where
    there is no telling; 1 for the others."""
    valley = np.ones(wanted.size)
    if wanted.any():
        mine = wanted[cluster]
        valley[wanted] = p_values(compact(wanted)[cluster[mine]], value[mine], int(wanted.sum()))
    return valley
