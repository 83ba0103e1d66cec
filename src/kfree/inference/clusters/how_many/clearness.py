"""How clearly rows belong to their cluster, and how clearly they would in tables without groups."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.inference.clusters.how_many.how_many_numbers import HOW_MANY
from kfree.inference.clusters.how_many.price_path import PricePath, Solution, nearest_two
from kfree.inference.clusters.how_many.subsample import Pilot, pilot_of
from kfree.inference.clusters.how_many.surrogates import Surrogates
from kfree.inference.loop import Budget, Info
from kfree.rows.threads import over


def clearness(pilot: Pilot, solution: Solution) -> float:
    """Mean over the rows of 1 - sqrt(D1 / D2), D1 from the nearest centre and D2 from the next; 0 to 1.

    Rows of clusters of few rows count 0, and all do if fewer than two clusters have more: one outlier is clear.
    """
    labels, first, second = nearest_two(pilot, solution.mean)
    large = np.bincount(labels, minlength=solution.mean.shape[0]) >= HOW_MANY.fewest
    if np.count_nonzero(large) < 2:
        return 0.0
    counts = large[labels] & (second > 0)
    ratio = np.minimum(first / np.where(second > 0, second, 1.0), 1.0)
    weight = pilot.table.rows.weight
    return float(weight @ np.where(counts, 1.0 - np.sqrt(ratio), 0.0) / weight.sum())


class Null(NamedTuple):
    """Clearness of tables without groups."""

    ks: Array  # (g,) numbers of clusters, rising
    mean: Array  # (g,)
    sd: Array  # (g,)

    def mean_at(self, K: Array) -> Array:
        """For any number: linear in its logarithm."""
        return np.interp(np.log(K), np.log(self.ks), self.mean)


def pooled(nulls: list[Null | None]) -> Null | None:
    """That of the mean over views that know nothing of each other."""
    known = [null for null in nulls if null is not None]
    if len(known) < len(nulls):
        return None
    if len(known) == 1:
        return known[0]
    ks = np.array(sorted(set.intersection(*(set(null.ks.tolist()) for null in known))))
    if not ks.size:
        return None
    rows = [np.searchsorted(null.ks, ks) for null in known]
    mean = np.mean([null.mean[at] for null, at in zip(known, rows)], axis=0)
    variance = np.mean([null.sd[at] ** 2 for null, at in zip(known, rows)], axis=0) / len(known)
    return Null(ks, mean, np.sqrt(variance))


def without_groups(pilot: Pilot, scale: Array, budget: Budget) -> Null | None:
    """The clearness of tables made up; ``scale`` holds what rows were multiplied by. None if there was no time."""
    weight, n = pilot.table.rows.weight, pilot.n
    stats = pilot.stats.toarray() if sp.issparse(pilot.stats) else pilot.stats
    surrogates = Surrogates(stats / scale[:, None] if scale.size else stats, weight)
    few = n if n <= 2 * HOW_MANY.small else HOW_MANY.small
    kinds = [(size, radii) for size in dict.fromkeys((n, few)) for radii in (True, False)]  # the long ones first
    draws = [kind for kind in kinds for _ in range(HOW_MANY.draws if kind[0] == few else HOW_MANY.full_draws)]

    def scores(seed: int) -> dict[int, float]:
        if budget.spent:
            return {}
        path = PricePath(_made_up(pilot, surrogates, draws[seed], bool(scale.size), seed), budget).trace()
        return {K: clearness(path.pilot, path[K]) for K in path.ks if 1 < K <= path.most and not budget.spent}

    # where a table is small most of the work is Python's, and threads would only wait for each other
    made = []
    for found in over(list(range(len(draws))), scores, float(n) * pilot.table.rows.p):
        made.append(found)
        if found:
            budget.tell("table without groups", len(made), Info(np.nan, 0.0, np.nan, 0, -1, of=len(draws)))
    by_kind = {kind: [found for draw, found in zip(draws, made) if draw == kind and found] for kind in kinds}
    if any(len(by_kind[few, radii]) < 2 or not by_kind[n, radii] for radii in (True, False)):
        return None
    at = np.array(sorted(set.intersection(*(set(one) for radii in (True, False) for one in by_kind[few, radii]))))
    ks = np.array(sorted(set.intersection(*(set(one) for radii in (True, False) for one in by_kind[n, radii]))))
    if not at.size or not ks.size:
        return None
    spread = [np.var([[one[K] for K in at] for one in by_kind[few, radii]], axis=0, ddof=1) for radii in (True, False)]
    sd = np.sqrt(np.mean(spread, axis=0))
    sd = np.interp(np.log(ks), np.log(at), np.maximum(sd, np.median(sd)))
    mean = [np.mean([[one[K] for K in ks] for one in by_kind[n, radii]], axis=0) for radii in (True, False)]
    return Null(ks, np.max(mean, axis=0), np.maximum(sd, 1e-12))  # the clearer of both kinds


def _made_up(pilot: Pilot, surrogates: Surrogates, kind: tuple[int, bool], normalised: bool, seed: int) -> Pilot:
    """A table without groups, so many rows with or without radii, prepared as the pilot is."""
    rng, (n, radii) = np.random.default_rng(seed), kind
    stats, weight = surrogates.draw(n, rng, radii=radii)
    family = pilot.table.geometry.family
    if normalised or family.lower == 0:
        empty = ~stats.any(axis=1)
        stats[empty] = stats[~empty].mean(axis=0) if not empty.all() else 1.0
    if normalised:
        size = stats.sum(axis=1) if family.normalise == "sum" else np.linalg.norm(stats, axis=1)
        stats /= np.where(size > 0, size, 1.0)[:, None]
    ticket = rng.integers(2**63, size=n).astype(np.uint64)
    return pilot_of(stats, weight, ticket, pilot.table.geometry, pilot.charge)
