"""``lam="auto"``: count the groups that have a real gap between them, then take the penalty for which about that
many clusters stay best over the widest range. If no gap is found anywhere the answer is one cluster.
"""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.how_many.inertia_curve import FINE_UP_TO, MOST_CLUSTERS, Curve, Solution
from kfree.inference.clusters.how_many.modes import count_groups
from kfree.inference.clusters.how_many.subsample import Pilot, draw_pilot
from kfree.inference.clusters.table import Table
from kfree.inference.loop import Budget
from kfree.inference.windows import envelope_windows
from kfree.rows.threads import in_order

#: Rounds in which the K between the neighbours of the best one are looked at.
REFINEMENTS = 2
#: Where this share of the clusters are groups of their own, no more than FINE_UP_TO clusters are looked at.
PLAIN = 0.9
#: Clusters may be this many times the groups.
SLACK = 1.5
#: Windows with a smaller ratio of their ends are narrow.
NARROW = 1.75
#: Windows suggested where no gap is found.
SUGGESTIONS = 3


class Window(NamedTuple):
    """The range of lam over which a number of clusters is best."""

    n_clusters: int
    lo: float
    hi: float


class AutoLam(NamedTuple):
    """A penalty chosen from the data, and where it comes from."""

    lam: float  # price of a cluster of the whole table
    window: tuple[float, float]  # (lo, hi) over which the chosen number of clusters is best
    n_groups: int  # groups with a real gap between them (1: none found)
    mean: Array  # (K, p) centres of the chosen solution
    suggestions: list[Window]  # without a gap: the widest windows of more than one cluster, widest first


def choose_lam(table: Table, budget: Budget) -> AutoLam:
    """The penalty, by the gaps and the inertia curve of at most 10 000 rows."""
    pilot = draw_pilot(table)
    curve = Curve(pilot, budget)
    curve.trace()
    groups, seen_at = _most_groups(pilot, curve, budget)
    if groups > 1:
        curve.fill(range(groups - 1, int(SLACK * groups) + 2))
    windows = _windows(curve)
    if groups == 1 or not windows:
        return _one_cluster(table, pilot, curve, windows)
    best = _best_window(windows, groups, seen_at)
    lo, hi = best.lo * pilot.scale, best.hi * pilot.scale
    mean = _centres(table, pilot, curve.solutions[best.n_clusters])
    return AutoLam(float(np.sqrt(lo * hi)), (lo, hi), groups, mean, [])


def _most_groups(pilot: Pilot, curve: Curve, budget: Budget) -> tuple[int, int]:
    """The largest number of groups seen at any K, and the smallest such K."""
    seen: dict[int, int] = {1: 1}

    def look(up_to: int) -> int:
        new = [int(K) for K in curve.ks if K not in seen and up_to >= K]
        found = in_order(lambda K: 0 if budget.spent else count_groups(pilot, curve.solutions[K]), new)
        seen.update((K, groups) for K, groups in zip(new, found) if groups)
        return min(seen, key=lambda K: (-seen[K], K))

    best = look(FINE_UP_TO)
    if seen[best] < PLAIN * best or 2 * best > FINE_UP_TO:
        best = look(MOST_CLUSTERS)
    for _ in range(REFINEMENTS if seen[best] > 1 else 0):
        ks = np.array(sorted(seen))
        at = int(np.searchsorted(ks, best))
        curve.fill(range(ks[max(at - 1, 0)] + 1, ks[min(at + 1, ks.size - 1)]))
        best = look(MOST_CLUSTERS if best > FINE_UP_TO else FINE_UP_TO)
    return seen[best], best


def _windows(curve: Curve) -> list[Window]:
    """Windows of the K >= 2 that are best for some lam: the vertices of the lower convex envelope of I(K)."""
    ends = envelope_windows(curve.ks, curve.inertia)
    floor = 1e-9 * max(np.nanmax(ends[1:, 1], initial=0.0), 0.0)  # below it is rounding, or the prior's charge
    return [Window(int(K), float(lo), float(hi)) for K, (lo, hi) in zip(curve.ks, ends) if lo > floor and hi < np.inf]


def _best_window(windows: list[Window], groups: int, seen_at: int) -> Window:
    """The widest window of about as many clusters as there are groups.

    Where all are narrow their widths say little (groups of unequal spread have none that is wide), and the number of
    clusters that showed the gaps is taken, if it is one of these.
    """
    near = [window for window in windows if groups <= window.n_clusters <= SLACK * groups]
    if not near:
        return min(windows, key=lambda window: abs(np.log(window.n_clusters / groups)))
    widest = max(near, key=lambda window: window.hi / window.lo)
    if widest.hi / widest.lo >= NARROW:
        return widest
    return next((window for window in near if window.n_clusters == seen_at), widest)


def _one_cluster(table: Table, pilot: Pilot, curve: Curve, windows: list[Window]) -> AutoLam:
    """No gap: one cluster, at twice the least lam for which that is best."""
    ks, inertia = curve.ks, curve.inertia
    lo = float(((inertia[0] - inertia[1:]) / (ks[1:] - 1)).max(initial=0.0)) * pilot.scale
    widest = sorted(windows, key=lambda window: -window.hi / window.lo)[:SUGGESTIONS]
    suggestions = [Window(K, lower * pilot.scale, upper * pilot.scale) for K, lower, upper in widest]
    mean = _centres(table, pilot, curve.solutions[1])
    if table.all_equal:
        return AutoLam(1.0, (0.0, np.inf), 1, mean, [])
    if lo <= 0:
        # too few rows for a second cluster: no cluster saves more than the whole inertia
        weight = table.rows.weights(slice(0, table.n))
        lo = float((weight * np.where(weight > 0, table.base, 0.0)).sum())
        return AutoLam(2 * lo if lo > 0 else 1.0, (lo, np.inf), 1, mean, suggestions)
    return AutoLam(2 * lo, (lo, np.inf), 1, mean, suggestions)


def _centres(table: Table, pilot: Pilot, solution: Solution) -> Array:
    """Centres in the table's own geometry, from the rows as they are."""
    rows = table.rows.take(pilot.origin, pilot.table.rows.weight * pilot.scale)
    total, mass = rows.sums(solution.labels, solution.mean.shape[0])
    return table.geometry.centre(total, mass)
