"""Choosing lam by hand: the value for about k clusters, and the clusters over a range of values."""

from typing import Any, NamedTuple

import numpy as np

from kfree.estimators._sklearn import check_plain_table
from kfree.families import Array
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.how_many.lam_path import follow_path
from kfree.inference.clusters.seeds import farthest_first
from kfree.inference.clusters.table import Table
from kfree.inference.goal import Goal
from kfree.inference.windows import envelope_windows, width_ratios
from kfree.models.checks import as_numbers, check_number
from kfree.models.clusters import Problem
from kfree.rows import set_span_threads


def lam_for_k(
    X: Any,
    k: int,
    *,
    divergence: Any = "sqeuclidean",
    sample_weight: Any = None,
    weighting: str = "none",
    smoothing: float = 0.0,
    smoothing_mean: Any = None,
) -> float:
    """The lam that gives about k clusters, by farthest-first traversal.

    Start from the global centre and open k clusters, each at the row farthest from those before; lam is the
    divergence of the k-th. It is a *radius*: no row is farther than lam from its centre. The number of clusters
    DPMeans then finds is about k, not exactly; outliers take up rounds.

    Parameters
    ----------
    X : array or CSR matrix (n, p)
    k : int
        Number of clusters expected.
    divergence, weighting, smoothing, smoothing_mean
        As in :class:`DPMeans`; sparse histograms need ``smoothing > 0``, since without it all divergences between
        rows with different zeros are infinite.
    sample_weight : array (n,), default=None

    Returns
    -------
    float

    References
    ----------
    .. [1] Kulis & Jordan (2012), Revisiting k-means, Section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import DPMeans, lam_for_k
    >>> X = np.array([[0.0], [0.2], [5.0], [5.2], [9.0]])
    >>> lam = lam_for_k(X, 3)
    >>> DPMeans(lam).fit(X).n_clusters_
    3
    """
    X = check_plain_table(X)
    check_number("k", k, least=1, integer=True)
    if k > X.shape[0]:
        raise ValueError(f"k={k} clusters cannot be opened by {X.shape[0]} rows. Pass k <= {X.shape[0]}.")
    with set_span_threads():
        problem = Problem.of(X, sample_weight, divergence, weighting, smoothing, smoothing_mean)
        radii, _ = farthest_first(problem.table, int(k))
    return _usable(radii, problem.table, divergence)


#: Radii below this share of the largest are rounding, squared: of unit vectors in the same direction, say.
_ROUNDING = 1e-28


def _usable(radii: Array, table: Table, divergence: Any) -> float:
    """The last radius, or the smallest positive one before it; infinite radii are an error."""
    if not np.isfinite(radii[-1]):
        raise ValueError(
            f"The rows are infinitely far from each other under divergence={divergence!r}: they have zeros in "
            "different columns. Pass smoothing > 0 (0.1 to 1 is usual)."
        )
    finite = radii[np.isfinite(radii)]
    positive = finite[finite > _ROUNDING * finite.max(initial=0.0)]
    if not positive.size or table.all_equal:  # what is positive then is rounding
        raise ValueError("All rows are equal: every lam > 0 gives one cluster.")
    return float(positive[-1])


class LamPath(NamedTuple):
    """Clusters over a range of lam, largest lam (fewest clusters) first."""

    lam: Array  # (m,)
    n_clusters: Array  # (m,)
    inertia: Array  # (m,) weighted sum of divergences
    objective: Array  # (m,) inertia + lam * n_clusters, and with smoothing the prior's share
    window: Array  # (m, 2) prices of a cluster between which that many clusters are best; NaN if never

    def plot(self, ax: Any = None) -> Any:
        """Number of clusters over lam, and the window of each number; returns the axes."""
        import matplotlib.pyplot as plt

        if ax is None:
            ax = plt.subplots(figsize=(6.4, 4.0))[1]
        from matplotlib.ticker import LogLocator, StrMethodFormatter

        ax.step(self.lam, self.n_clusters, where="mid", color="#1f4e79", lw=1.8)
        ax.plot(self.lam, self.n_clusters, "o", color="#1f4e79", ms=3.5)
        ax.set(xscale="log", yscale="log", xlabel="lam, as a radius", ylabel="clusters found")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axis.set_minor_formatter("")
        best = self.widest()
        if best is not None:
            ax.axhline(best, color="#c55a11", lw=1.0, ls="--", zorder=0)
            ax.set_title(f"{best} clusters stay best over the widest range of prices", loc="left", fontsize=9)
        ax.grid(True, which="major", alpha=0.25)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        return ax

    def widest(self) -> int | None:
        """The number of clusters with the widest window, as a ratio; None if no window is bounded."""
        ratio = np.where(self.n_clusters > 1, width_ratios(self.window), -np.inf)
        return int(self.n_clusters[ratio.argmax()]) if np.isfinite(ratio.max(initial=-np.inf)) else None


def lam_path(
    X: Any,
    *,
    divergence: Any = "sqeuclidean",
    sample_weight: Any = None,
    weighting: str = "none",
    smoothing: float = 0.0,
    smoothing_mean: Any = None,
    lam: Any = None,
    n_lam: int = 30,
    max_clusters: int = 50,
    tol: float = 1e-4,
    max_iter: int = 100,
) -> LamPath:
    """Fit a falling sequence of lam, each from the centres of the one before.

    Parameters
    ----------
    X : array or CSR matrix (n, p)
    divergence, sample_weight, weighting, smoothing, smoothing_mean
        As in :class:`DPMeans`.
    lam : array, default=None
        Values to fit; by default ``n_lam`` of them, evenly spaced in log, from where one cluster suffices down to
        where farthest-first traversal has opened ``max_clusters``.
    n_lam, max_clusters : int
        Number of values, and how far down they go.
    tol, max_iter
        As in :class:`DPMeans`, for each fit.

    Returns
    -------
    LamPath
        Arrays ``lam``, ``n_clusters``, ``inertia``, ``objective``, ``window``, and ``plot()``.

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import lam_path
    >>> X = np.array([[0.0], [0.2], [5.0], [5.2], [9.0]])
    >>> path = lam_path(X, n_lam=8)
    >>> path.n_clusters[0], bool((np.diff(path.lam) < 0).all())
    (np.int64(1), True)
    """
    X = check_plain_table(X)
    check_number("n_lam", n_lam, least=1, integer=True)
    check_number("max_clusters", max_clusters, least=1, integer=True)
    check_number("max_iter", max_iter, least=1, integer=True)
    check_number("tol", tol, least=0.0)
    with set_span_threads():
        problem = Problem.of(X, sample_weight, divergence, weighting, smoothing, smoothing_mean)
        table = problem.table
        radii, centres = farthest_first(table, min(max_clusters, table.n))
        if lam is None:
            low = _usable(radii, table, divergence)
            high = float(radii[0]) if np.isfinite(radii[0]) else low
            values = np.geomspace(high * 1.001, low / 1.001, n_lam)  # at a radius itself rounding would decide
        else:
            given = as_numbers("lam", lam).ravel()
            wrong = np.flatnonzero(~(given > 0))
            if not given.size or wrong.size:
                where = f"lam[{wrong[0]}] is {given[wrong[0]]:g}" if wrong.size else "it is empty"
                raise ValueError(f"lam must hold positive numbers, but {where}.")
            values = np.sort(given)[::-1]
        goals = [Goal(float(lam), tol=tol, max_iter=max_iter) for lam in values]
        points = follow_path(table, Centres(table.geometry, centres[:1]), goals)
    K, inertia, objective = (np.array(column) for column in zip(*points))
    costs = inertia  # with a prior more than that: the objective without its penalty, which it has none of at lam = inf
    if smoothing:
        costs = objective - np.where(np.isfinite(values), values, 0.0) * K
    return LamPath(values, K, inertia, objective, envelope_windows(K, costs))
