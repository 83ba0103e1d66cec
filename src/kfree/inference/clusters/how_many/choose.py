"""``lam="auto"``: the number of clusters for which rows belong to their cluster most clearly, compared with tables
without groups; one cluster if nothing stands out. The price is one for which about that number is best.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.assign import total_cost
from kfree.inference.clusters.how_many.clearness import Null, clearness, pooled, without_groups
from kfree.inference.clusters.how_many.how_many_numbers import HOW_MANY
from kfree.inference.clusters.how_many.modes import count_groups
from kfree.inference.clusters.how_many.price_path import PricePath, Window
from kfree.inference.clusters.how_many.subsample import draw_pilot
from kfree.inference.clusters.how_many.wide import on_axes
from kfree.inference.clusters.table import Table
from kfree.inference.loop import Budget
from kfree.rows.threads import in_order


class Choice(NamedTuple):
    """How many clusters, and why."""

    best: int  # the number that stands out most, of those with no fewer clusters than ``least``; 1 if none does
    clearness: float  # standard deviations by which it does, at the number where that is most
    n_clusters: Array  # (m,) numbers looked at, rising
    score: Array  # (m,) how clearly rows belong to their cluster, 0 to 1
    score_without_groups: Array  # (m,) the same of tables without groups, on average
    spread_without_groups: Array  # (m,) and their standard deviation
    gain: Array  # (m,) the difference, less what more clusters must gain
    inertia: Array  # (m,)
    window: Array  # (m, 2) prices between which a number is best; NaN if never
    least: int  # groups with a gap between them that about as many clusters show: no fewer clusters are chosen
    n_groups: int  # groups with a gap between them that any number of clusters shows
    n_rows: int  # rows looked at
    complete: bool  # there was time for all of it

    @property
    def furthest(self) -> int:
        """The number that is furthest ahead of tables without groups."""
        return int(self.n_clusters[np.argmax(np.where(np.isfinite(self.gain), self.gain, -np.inf))])

    @property
    def suggestions(self) -> list[int]:
        """Other numbers that are best for some price, by how much they gain: those to try next."""
        usable = np.flatnonzero(np.isfinite(self.window[:, 0]) & (self.n_clusters > 1) & (self.n_clusters != self.best))
        return self.n_clusters[usable[np.argsort(-self.gain[usable], kind="stable")]].tolist()


class AutoLam(NamedTuple):
    """A price chosen from the data, and where it comes from."""

    lam: float  # price of a cluster of the whole table
    path: PricePath
    evidence: "Evidence"
    choice: Choice

    def centres(self, table: Table) -> Array:
        """Centres (K, p) of the solution that is best at the price."""
        return self.path.centres(self.path.best_at(self.lam).n_clusters, table)


def choose_lam(table: Table, budget: Budget) -> AutoLam:
    """The price, from at most 10 000 rows."""
    pilot = draw_pilot(table)
    path = PricePath(pilot, budget).trace("path, step")
    evidence = Evidence(_views(path, budget))
    scale = table.rows.scale[pilot.origin] if table.rows.scale.size and evidence.seen_as_is(path) else np.empty(0)
    null = pooled([without_groups(view.pilot, scale, budget) for view in evidence.views])
    best, clear = (
        _stands_out(evidence.scores, null) if null is not None else (_widest(path) if budget.spent else 1, 0.0)
    )
    groups = _groups(path, {1: 1}, budget)
    least = 1
    while best > 1 and null is not None:
        best = _best(evidence, null, max(least, 2))
        groups = _groups(path, groups, budget)
        coarse = max(count for K, count in groups.items() if HOW_MANY.coarse * best >= K)
        if coarse <= best or coarse <= least:
            break
        least = coarse  # groups with a gap between them are not one cluster
    if best > 1:
        path.look(k for k in (best - 1, best, best + 1) if k > 1)
        evidence.look(K for K in path.ks if path.most >= K and (evidence.seen_as_is(path) or abs(K - best) <= 1))
    choice = _record(path, evidence.scores, null, (best, clear), (least, max(groups.values())), budget)
    return AutoLam(_price(table, path, choice), path, evidence, choice)


def _views(path: PricePath, budget: Budget) -> list[PricePath]:
    """Where rows are looked at: as they are, or, if they are wide, each half on the axes of the other."""
    if path.pilot.table.rows.p <= HOW_MANY.wide:
        return [path]
    seen = [view for half in (False, True) if (view := on_axes(path.pilot, half, budget)) is not None]
    return [PricePath(view, budget).trace() for view in seen] or [path]


class Evidence:
    """How clearly rows belong to their clusters, for some numbers of clusters: the mean over all views."""

    def __init__(self, views: list[PricePath]):
        self.views, self.scores = views, dict[int, float]()
        self.look(K for K in views[0].ks if all(K in view.ks and view.most >= K for view in views))

    def seen_as_is(self, path: PricePath) -> bool:
        """Whether rows are looked at as they are."""
        return self.views[0] is path

    def look(self, ks: Iterable[int]) -> None:
        """Score further numbers."""
        for K in sorted(k for k in ks if k > 1 and k not in self.scores):
            for view in self.views:
                view.look([K])
            if all(K in view.ks for view in self.views):
                self.scores[K] = float(np.mean([clearness(view.pilot, view[K]) for view in self.views]))


def _widest(path: PricePath) -> int:
    """The number that is best over the widest range of prices: all that can be said without more time."""
    bounded = [w for w in path.windows().values() if w.lo > 0 and np.isfinite(w.hi) and w.n_clusters <= path.most]
    return max(bounded, key=lambda w: w.hi / w.lo).n_clusters if bounded else 1


def _stands_out(scores: dict[int, float], null: Null) -> tuple[int, float]:
    """The number of clusters on the grid that gains most, and by how many deviations tables without groups are
    surpassed; 1 if that could be chance."""
    at = np.flatnonzero(np.isin(null.ks, list(scores)))
    if not at.size:
        return 1, 0.0
    ks = null.ks[at]
    ahead = np.array([scores[K] for K in ks]) - null.mean[at]
    gain = ahead - HOW_MANY.doubling * np.log2(ks)
    clear = float((ahead / null.sd[at]).max(where=gain > 0, initial=0.0))  # one cluster gains 0
    return (int(ks[gain.argmax()]) if clear >= HOW_MANY.clear else 1), clear


def _gains(scores: dict[int, float], null: Null) -> dict[int, float]:
    """What each number gains, as far as tables without groups were looked at."""
    ks = np.array([K for K in sorted(scores) if null.ks[-1] >= K])
    value = np.array([scores[K] for K in ks]) - null.mean_at(ks) - HOW_MANY.doubling * np.log2(ks)
    return dict(zip(ks.tolist(), value.tolist()))


def _best(evidence: Evidence, null: Null, least: int) -> int:
    """The number of clusters, at least so many, that gains most; those between its neighbours are looked at, twice."""

    def most() -> int:
        gain = _gains(evidence.scores, null)
        return max((K for K in sorted(gain) if least <= K), key=lambda K: gain[K], default=max(gain))

    for _ in range(2):
        best, ks = most(), sorted(evidence.scores)
        at = ks.index(best)
        between = np.arange(max(ks[max(at - 1, 0)] + 1, least), ks[min(at + 1, len(ks) - 1)])
        if between.size > HOW_MANY.between:
            between = np.unique(np.rint(np.linspace(between[0], between[-1], HOW_MANY.between)).astype(int))
        evidence.look(between.tolist())
    return most()


def _groups(path: PricePath, known: dict[int, int], budget: Budget) -> dict[int, int]:
    """For each number of clusters looked at the groups with a gap between them that they show."""
    ks = [K for K in path.ks if K not in known and path.most >= K]
    found = in_order(lambda K: 1 if budget.spent else count_groups(path.pilot, path[K]), ks)
    return known | dict(zip(ks, found))


def _record(
    path: PricePath,
    scores: dict[int, float],
    null: Null | None,
    found: tuple[int, float],
    groups: tuple[int, int],
    budget: Budget,
) -> Choice:
    """What was looked at."""
    ks = np.array([K for K in path.ks if path.most >= K])
    windows = path.windows(ks.tolist())
    score = np.array([scores.get(K, np.nan) for K in ks.tolist()])
    score[ks == 1] = 0.0
    mean, sd = np.full(ks.size, np.nan), np.full(ks.size, np.nan)
    if null is not None:
        inside = (ks >= null.ks[0]) & (ks <= null.ks[-1])
        mean[inside] = null.mean_at(ks[inside])
        sd[inside] = np.interp(np.log(ks[inside]), np.log(null.ks), null.sd)
    mean[ks == 1], sd[ks == 1] = 0.0, 0.0
    return Choice(
        *found,
        ks,
        score,
        mean,
        sd,
        score - mean - HOW_MANY.doubling * np.log2(ks),
        np.array([path.cost(K) for K in ks.tolist()]),
        np.array([windows[K][1:] if K in windows else (np.nan, np.nan) for K in ks.tolist()]),
        *groups,
        path.pilot.n,
        not budget.spent,
    )


def _price(table: Table, path: PricePath, choice: Choice) -> float:
    """A price for which about the chosen number is best."""
    windows = [Window(int(K), lo, hi) for K, (lo, hi) in zip(choice.n_clusters, choice.window) if np.isfinite(lo)]
    floor = 1e-9 * max((w.hi for w in windows if np.isfinite(w.hi)), default=0.0)  # what is gained below is rounding
    several = [w for w in windows if w.n_clusters > 1 and w.hi > floor]
    if choice.best > 1 and several:
        gain = dict(zip(choice.n_clusters.tolist(), choice.gain.tolist()))
        ratio = HOW_MANY.ratio
        near = [w for w in several if choice.best / ratio <= w.n_clusters <= choice.best * ratio]
        near = [w for w in near if np.isfinite(gain[w.n_clusters])]
        near = [w for w in near if w.n_clusters >= choice.least] or near
        if near:
            return max(near, key=lambda w: (w.n_clusters == choice.best, gain[w.n_clusters])).middle
        return min(several, key=lambda w: abs(np.log(w.n_clusters / choice.best))).middle
    if table.all_equal:
        return 1.0
    lo = max((w.lo for w in windows if w.n_clusters == 1), default=0.0)
    if lo > 0:
        return 2 * lo
    # too few rows for a second cluster: no cluster saves more than the whole inertia
    most = total_cost(table, table.base, float(table.base.max()))
    return 2 * most if most > 0 else 1.0
