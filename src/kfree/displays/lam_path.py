"""LamPathDisplay: how clear each number of clusters is, and the prices for which it is best."""

import numpy as np

from kfree.displays.drawing import (
    ground,
    is_dark,
    main_colour,
    make_axes,
    second_colour,
    set_title,
    short_number,
    tidy,
)
from kfree.displays.palette import GREY
from kfree.displays.reading import in_words
from kfree.estimators.lam import path_of
from kfree.models.checks import check_choice, check_number

KINDS = ("score", "price")


class LamPathDisplay:
    """How clearly rows belong to their cluster, for each number of clusters; or that number over the price.

    Made by :meth:`from_estimator` or :meth:`from_path`; ``lam_path(X).plot()`` draws it, too.

    Parameters
    ----------
    path : LamPath
    n_clusters : int, default=None
        The number that is marked; by default ``path.best``.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    line_ : Line2D
        Your table ("score"), or the number of clusters over the price ("price").
    null_line_, null_band_ : Line2D and collection
        Tables without groups, on average and two standard deviations around it; None for "price".
    mark_ : Line2D or Polygon
        The chosen number or its window of prices; None if there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import LamPathDisplay, lam_path
    >>> X = np.array([[0.0], [0.2], [5.0], [5.2], [9.0]])
    >>> display = LamPathDisplay.from_path(lam_path(X, max_clusters=3), n_clusters=2, kind="price")
    >>> display.ax_.get_xlabel()
    'price of a cluster (lam)'
    """

    def __init__(self, *, path, n_clusters=None):
        self.path = path
        self.n_clusters = path.best if n_clusters is None else n_clusters

    @classmethod
    def from_estimator(cls, estimator, X, *, sample_weight=None, max_clusters=20, kind="score", ax=None):
        """Draw the path that the clusters of a fitted :class:`DPMeans` are part of.

        Parameters
        ----------
        estimator : fitted DPMeans
        X : array, frame or CSR matrix (n, p)
            The rows of the fit.
        sample_weight : array (n,), default=None
            That of the fit.
        max_clusters : int, default=20
            How far to go.
        kind : {"score", "price"}, default="score"
            As in :meth:`plot`.
        ax : matplotlib Axes, default=None

        Returns
        -------
        LamPathDisplay
        """
        path = path_of(estimator, X, sample_weight, max_clusters)
        return cls(path=path, n_clusters=estimator.n_clusters_).plot(ax, kind=kind)

    @classmethod
    def from_path(cls, path, *, n_clusters=None, kind="score", ax=None):
        """Draw a :class:`LamPath`.

        Parameters
        ----------
        path : LamPath
        n_clusters : int, default=None
            The number that is marked; by default ``path.best``.
        kind : {"score", "price"}, default="score"
            As in :meth:`plot`.
        ax : matplotlib Axes, default=None

        Returns
        -------
        LamPathDisplay
        """
        if n_clusters is not None:
            check_number("n_clusters", n_clusters, least=1, integer=True)
        return cls(path=path, n_clusters=n_clusters).plot(ax, kind=kind)

    def plot(self, ax=None, *, kind="score"):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to; new ones by default.
        kind : {"score", "price"}, default="score"
            "score": how clearly rows belong to their cluster, over the number of clusters, beside tables without
            groups. "price": the number of clusters that is best, over the price of a cluster.

        Returns
        -------
        self
        """
        check_choice("kind", kind, KINDS)
        self.ax_ = ax = make_axes(ax)
        self.figure_ = ax.figure
        self.null_line_ = self.null_band_ = self.mark_ = None
        if kind == "score":
            self._draw_scores()
        else:
            self._draw_prices()
        tidy(ax)
        return self

    def _draw_scores(self) -> None:
        from matplotlib.ticker import MaxNLocator

        ax, path = self.ax_, self.path
        ks, null, spread = path.n_clusters[1:], path.score_without_groups[1:], path.spread_without_groups[1:]
        self.null_band_ = ax.fill_between(ks, null - 2 * spread, null + 2 * spread, color=GREY, alpha=0.35, lw=0)
        (self.null_line_,) = ax.plot(ks, null, color=GREY, lw=1.4, label="tables without groups")
        (self.line_,) = ax.plot(ks, path.score[1:], "o-", color=main_colour(ax), ms=3.5, lw=1.8, label="your table")
        ax.set(xlabel="number of clusters", ylabel="how clearly rows\nbelong to their cluster")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        if self.n_clusters > 1:
            self.mark_ = ax.axvline(self.n_clusters, color=second_colour(), lw=1.6, ls="--", zorder=0)
        ax.legend(frameon=False, fontsize="small")
        set_title(ax, self._why())

    def _why(self) -> str:
        """What is special about the number that is marked."""
        if self.n_clusters != self.path.best:
            return f"{in_words(self.n_clusters, 'clusters')}; the choice would be {self.path.best}"
        if self.n_clusters == 1:
            return "No number of clusters stands out"
        ahead = self.path.choice.furthest == self.n_clusters
        why = "furthest ahead of tables without groups" if ahead else "the best number for groups with a gap"
        return f"{self.n_clusters} clusters are {why}"

    def _draw_prices(self) -> None:
        """A step for each number that is best for some price."""
        from matplotlib.ticker import MaxNLocator

        ax, path = self.ax_, self.path
        held = np.flatnonzero(np.isfinite(path.window[:, 0]))
        ends = path.window[held]
        known = ends[(ends > 0) & np.isfinite(ends)]
        low, high = (known.min() / 1.5, known.max() * 1.5) if known.size else (0.5, 2.0)
        ends = np.clip(ends, low, high)[::-1]
        ks = np.repeat(path.n_clusters[held][::-1], 2)
        (self.line_,) = ax.plot(ends.ravel(), ks, color=main_colour(ax), lw=1.8)
        ax.set(xscale="log", xlim=(low, high), xlabel="price of a cluster (lam)", ylabel="number of clusters")
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        window = path.window[self.n_clusters - 1] if self.n_clusters <= len(path.window) else (np.nan, np.nan)
        if np.isfinite(window[0]):
            alpha = 0.45 if is_dark(ground(ax)) else 0.3
            self.mark_ = ax.axvspan(*np.clip(window, low, high), color=second_colour(), alpha=alpha, lw=0, zorder=0)
        set_title(ax, f"{in_words(self.n_clusters, 'clusters')} {_for_prices(self.n_clusters, *window)}")


def _for_prices(K: int, low: float, high: float) -> str:
    """For which prices so many clusters are best."""
    verb = "is" if K == 1 else "are"
    if not np.isfinite(low):
        return f"{verb} best for no price"
    if np.isinf(high):
        return f"{verb} best for any price above {short_number(low)}"
    return f"{verb} best for prices from {short_number(low)} to {short_number(high)}"
