"""All numbers of clusters: the path of solutions, the price for k clusters, the papers' radius for about k."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kfree.estimators._sklearn import check_plain_table, weight_of
from kfree.estimators.dp_means import DPMeans
from kfree.families import Array
from kfree.inference.clusters.how_many.choose import Choice
from kfree.inference.clusters.how_many.price_path import Window
from kfree.inference.clusters.seeds import farthest_first
from kfree.inference.clusters.table import Table
from kfree.inference.loop import Budget
from kfree.inference.windows import width_ratios
from kfree.models.checks import check_number
from kfree.models.clusters import LocalProblem
from kfree.models.how_many import find_path, find_price
from kfree.models.parameter_tables import DP_MEANS
from kfree.models.parameters import check_parameters
from kfree.rows import set_span_threads

#: Radii below this share of the largest are rounding, squared: of unit vectors in the same direction, say.
_ROUNDING = 1e-28


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
    """A price for which k clusters are best: ``DPMeans(lam=lam_for_k(X, k))`` finds them.

    Where k clusters are best for no price (two steps at once may save more for each than one) it is the price of the
    nearest number that is for some; ``DPMeans(n_clusters=k)`` finds exactly k all the same.

    Parameters
    ----------
    X : array or CSR matrix (n, p)
    k : int
        Number of clusters.
    divergence, weighting, smoothing, smoothing_mean
        As in :class:`DPMeans`.
    sample_weight : array (n,), default=None

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import DPMeans, lam_for_k
    >>> X = np.array([[0.0], [0.2], [5.0], [5.2], [9.0]])
    >>> DPMeans(lam=lam_for_k(X, 3)).fit(X).n_clusters_
    3
    """
    X, sample_weight = check_plain_table(X), weight_of(X, sample_weight)
    check_number("k", k, least=1, integer=True)
    if k > X.shape[0]:
        raise ValueError(f"{X.shape[0]} rows cannot be k={k} clusters. Pass k <= {X.shape[0]}.")
    with set_span_threads():
        problem = _bind(X, sample_weight, divergence, weighting, smoothing, smoothing_mean)
        return find_price(problem, int(k))


def radius_for_k(
    X: Any,
    k: int,
    *,
    divergence: Any = "sqeuclidean",
    sample_weight: Any = None,
    weighting: str = "none",
    smoothing: float = 0.0,
    smoothing_mean: Any = None,
) -> float:
    """The papers' radius for about k clusters, by farthest-first traversal.

    Start from the global centre and open k clusters, each at the row farthest from those before; the radius is the
    divergence of the k-th. The number of clusters that ``DPMeans(radius=...)`` then finds is about k, not exactly:
    outliers take up rounds.

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
    >>> from kfree import DPMeans, radius_for_k
    >>> X = np.array([[0.0], [0.2], [5.0], [5.2], [9.0]])
    >>> DPMeans(radius=radius_for_k(X, 3)).fit(X).n_clusters_
    3
    """
    X, sample_weight = check_plain_table(X), weight_of(X, sample_weight)
    check_number("k", k, least=1, integer=True)
    if k > X.shape[0]:
        raise ValueError(f"k={k} clusters cannot be opened by {X.shape[0]} rows. Pass k <= {X.shape[0]}.")
    with set_span_threads():
        problem = _bind(X, sample_weight, divergence, weighting, smoothing, smoothing_mean)
        radii, _ = farthest_first(problem.table, int(k))
    return _usable(radii, problem.table, divergence)


def _bind(
    X: Any, sample_weight: Any, divergence: Any, weighting: str, smoothing: float, smoothing_mean: Any
) -> LocalProblem:
    """Rows as DPMeans sees them, with parameters that are checked as its own are."""
    check_parameters(DP_MEANS, {"divergence": divergence, "weighting": weighting, "smoothing": smoothing})
    return LocalProblem.of(X, sample_weight, divergence, weighting, smoothing, smoothing_mean)


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
        raise ValueError("All rows are equal: every radius > 0 gives one cluster.")
    return float(positive[-1])


@dataclass(frozen=True, eq=False, repr=False)
class LamPath:
    """For every number of clusters the best solution known, and the prices for which that number is best.

    Made by :func:`lam_path`.

    Attributes
    ----------
    n_clusters : array (m,)
        1, 2, 3, ...
    window : array (m, 2)
        Prices between which that many clusters are best; NaN if never.
    inertia : array (m,)
        Weighted sum of divergences (of large tables an estimate, from the rows looked at).
    objective : array (m,)
        The same with the penalty, at the middle of the window; NaN if there is none.
    score : array (m,)
        How clearly rows belong to their cluster, 0 to 1.
    score_without_groups : array (m,)
        The same of tables without groups, on average.
    spread_without_groups : array (m,)
        And their standard deviation.
    choice : Choice
        What ``lam="auto"`` makes of it.
    """

    n_clusters: Array
    window: Array
    inertia: Array
    objective: Array
    score: Array
    score_without_groups: Array
    spread_without_groups: Array
    choice: Choice = field(repr=False)
    _fit: Any = field(repr=False)  # a function: the model of so many clusters
    _models: dict[int, Any] = field(repr=False, default_factory=dict)

    @property
    def best(self) -> int:
        """The number of clusters that ``lam="auto"`` chooses."""
        return self.choice.best

    def labels(self, n_clusters: int) -> Array:
        """Labels (n,) of so many clusters: those of ``DPMeans(n_clusters=...)``."""
        if n_clusters not in self._models:
            self._models[n_clusters] = self._fit(n_clusters)
        return self._models[n_clusters].labels_

    def parents(self, n_clusters: int) -> Array:
        """For each of so many clusters the one of the solution with one fewer that most of its rows come from."""
        if n_clusters < 2:
            raise ValueError(f"One cluster has no parents; pass n_clusters >= 2, got {n_clusters!r}.")
        here, before = self.labels(n_clusters), self.labels(n_clusters - 1)
        shared = np.bincount(here * np.intp(n_clusters - 1) + before, minlength=n_clusters * (n_clusters - 1))
        return shared.reshape(n_clusters, n_clusters - 1).argmax(axis=1)

    def widest(self) -> int | None:
        """The number of clusters with the widest window, as a ratio; None if no window is bounded."""
        ratio = np.where(self.n_clusters > 1, width_ratios(self.window), -np.inf)
        return int(self.n_clusters[ratio.argmax()]) if np.isfinite(ratio.max(initial=-np.inf)) else None

    def __repr__(self) -> str:
        ahead = np.argsort(-np.where(np.isfinite(self.choice.gain), self.choice.gain, -np.inf), kind="stable")[:3]
        ks = ", ".join(str(K) for K in self.choice.n_clusters[ahead])
        lines = [
            f"LamPath of 1 to {self.n_clusters[-1]} clusters ({self.choice.n_rows} rows looked at)",
            f"  chosen: {self.best}; furthest ahead of tables without groups: {ks}",
        ]
        if (widest := self.widest()) is not None:
            lo, hi = self.window[widest - 1]
            lines.append(f"  widest window of prices: {widest} clusters, {lo:.4g} to {hi:.4g}")
        return "\n".join(lines)

    def plot(self, ax: Any = None, *, kind: str = "score") -> Any:
        """How clear each number of clusters is ("score"), or for which prices it is best ("price"); returns the axes.

        See :class:`kfree.LamPathDisplay`.
        """
        from kfree.displays.lam_path import LamPathDisplay

        return LamPathDisplay.from_path(self, kind=kind, ax=ax).ax_


def lam_path(
    X: Any,
    *,
    divergence: Any = "sqeuclidean",
    sample_weight: Any = None,
    weighting: str = "none",
    smoothing: float = 0.0,
    smoothing_mean: Any = None,
    max_clusters: int = 20,
) -> LamPath:
    """The best solution known for 1, 2, 3, ... clusters, and the prices for which each number is best.

    Parameters
    ----------
    X : array or CSR matrix (n, p)
    divergence, sample_weight, weighting, smoothing, smoothing_mean
        As in :class:`DPMeans`.
    max_clusters : int, default=20
        How far to go; further, if more are chosen.

    Returns
    -------
    LamPath
        Arrays ``n_clusters``, ``window``, ``inertia``, ``objective``, ``score``, ``score_without_groups``; ``best``,
        ``widest()``, ``labels(K)``, ``parents(K)`` and ``plot()``.

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import lam_path
    >>> X = np.array([[0.0], [0.2], [5.0], [5.2], [9.0]])
    >>> path = lam_path(X, max_clusters=3)
    >>> path.n_clusters
    array([1, 2, 3])
    >>> path.labels(2)
    array([1, 1, 0, 0, 0], dtype=int32)
    """
    X, sample_weight = check_plain_table(X), weight_of(X, sample_weight)
    check_number("max_clusters", max_clusters, least=1, integer=True)
    with set_span_threads():
        problem = _bind(X, sample_weight, divergence, weighting, smoothing, smoothing_mean)
        looked = find_path(problem, int(max_clusters), Budget())
    ks = looked.n_clusters
    price = [Window(int(K), *ends).middle if np.isfinite(ends[0]) else np.nan for K, ends in zip(ks, looked.window)]

    def fit(n_clusters: int) -> DPMeans:
        model = DPMeans(
            n_clusters=n_clusters,
            divergence=divergence,
            weighting=weighting,
            smoothing=smoothing,
            smoothing_mean=smoothing_mean,
        )
        return model.fit(X, sample_weight=sample_weight)

    return LamPath(
        ks,
        looked.window,
        looked.inertia,
        looked.inertia + np.array(price) * ks,
        looked.score,
        looked.score_without_groups,
        looked.spread_without_groups,
        looked.choice,
        fit,
    )


def path_of(model: Any, X: Any, sample_weight: Any, max_clusters: int) -> LamPath:
    """The path that the clusters of a fitted ``DPMeans`` are part of, at least as long as there are clusters."""
    if not isinstance(model, DPMeans):
        raise TypeError(f"A path over the number of clusters is one of DPMeans, got {type(model).__name__}.")
    check_is_fitted(model)
    return lam_path(
        X,
        divergence=model.divergence,
        sample_weight=sample_weight,
        weighting=model.weighting,
        smoothing=model.smoothing,
        smoothing_mean=model.smoothing_mean,
        max_clusters=max(max_clusters, model.n_clusters_),
    )
