"""ClusterTreeDisplay: which clusters part as there are more of them."""

from typing import Any, NamedTuple

import numpy as np

from kfree.displays.drawing import (
    fold,
    ground,
    height_of,
    ink,
    is_dark,
    line_height,
    make_axes,
    second_colour,
    set_title,
    short_number,
    small_font,
    width_of,
)
from kfree.displays.palette import colours
from kfree.displays.reading import check_names, in_words, names_of
from kfree.estimators._sklearn import refuse_dask
from kfree.estimators.lam import LamPath, path_of
from kfree.families import Array
from kfree.models.checks import check_number, check_weight

#: Room between two clusters beside each other, as a share of the width.
_GAP = 0.012
#: Height of a cluster, of the 1 from a level to the next; those of the chosen level are as high as their names.
_BAR = 0.22
#: Lines that a name may have, and inches of a figure from which on prices are told.
_LINES, _WIDE = 3, 3.6
#: Bands of a smaller share of the rows are not drawn.
_LEAST = 0.002
#: Levels drawn beyond the chosen one, if the path is as long.
_BEYOND = 4


class Level(NamedTuple):
    """The clusters of one number of them, side by side."""

    left: Array  # (K,) where each begins
    width: Array  # (K,) its share of the rows
    order: Array  # (K,) clusters from left to right
    shade: Array  # (K,) number of the colour
    top: float  # where its clusters begin and end, downwards
    bottom: float


class ClusterTreeDisplay:
    """Clusters of 1, 2, 3, ... levels from top to bottom, and which rows go from which to which.

    The width of a cluster is its share of the rows; a band between two levels holds the rows that are in both of its
    clusters. As the price of a cluster falls one moves down. Colours are those of the clusters of the chosen level, so
    that the same cluster has the same colour in a :class:`ClusterMapDisplay`.

    Made by :meth:`from_estimator`, :meth:`from_path` or :meth:`from_predictions`.

    Parameters
    ----------
    labels : list of arrays (n,)
        Labels of the rows, 0 to K-1, for each level, coarsest first; -1 rows are left out of a level.
    chosen : int, default=None
        Position of the level that is marked; the last by default.
    names : sequence of str, default=None
        Names of the clusters of that level; their numbers by default.
    window : array (m, 2), default=None
        Prices between which each level is best; NaN where there are none.
    sample_weight : array (n,), default=None
    noun : str, default="rows"
        What the rows are, for the title.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    levels_ : list of Level
        Where the clusters of each level are: ``left``, ``width``, ``top``, ``bottom``; ``order`` and ``shade``.
    bars_ : list of list of Rectangle
        The clusters of each level.
    bands_ : list of PathPatch
    names_ : list of Text
        Names of the clusters of the chosen level.

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import ClusterTreeDisplay
    >>> two, three = np.array([0, 0, 1, 1, 1]), np.array([0, 0, 1, 1, 2])
    >>> display = ClusterTreeDisplay.from_predictions([two, three])
    >>> len(display.bands_)
    3
    """

    def __init__(self, *, labels, chosen=None, names=None, window=None, sample_weight=None, noun="rows"):
        self.labels = [np.asarray(some) for some in labels]
        self.chosen = len(self.labels) - 1 if chosen is None else chosen
        self.names = check_names(names, self._count(self.chosen))
        self.window = window
        self.sample_weight = check_weight(sample_weight, len(self.labels[0]))
        self.noun = noun

    @classmethod
    def from_estimator(
        cls, estimator, X, *, levels=None, names=None, sample_weight=None, max_clusters=20, noun="rows", ax=None
    ):
        """Draw how the clusters of a fitted :class:`DPMeans` come from fewer, and part into more.

        Parameters
        ----------
        estimator : fitted DPMeans
        X : array, frame or CSR matrix (n, p)
            The rows of the fit.
        levels : sequence of int, default=None
            Numbers of clusters to draw, rising; by default all up to four more than there are.
        names : sequence of str, default=None
            Names of the clusters; by default those of the profile if the columns have names, or numbers.
        sample_weight : array (n,), default=None
            That of the fit.
        max_clusters : int, default=20
            How far the path goes.
        noun : str, default="rows"
            What the rows are, for the title.
        ax : matplotlib Axes, default=None

        Returns
        -------
        ClusterTreeDisplay
        """
        refuse_dask(X)
        path = path_of(estimator, X, sample_weight, max_clusters)
        names = names_of(estimator, X, names, estimator.n_clusters_)
        found = estimator.n_clusters_
        return cls._of(path, levels, found, names, sample_weight, noun, {found: estimator.predict(X)}).plot(ax)

    @classmethod
    def from_path(cls, path, *, levels=None, n_clusters=None, names=None, sample_weight=None, noun="rows", ax=None):
        """Draw the clusters of a :class:`LamPath`.

        Parameters
        ----------
        path : LamPath
        levels, names, sample_weight, noun, ax
            As in :meth:`from_estimator`.
        n_clusters : int, default=None
            The level that is marked; by default ``path.best``.

        Returns
        -------
        ClusterTreeDisplay
        """
        found = path.best if n_clusters is None else n_clusters
        return cls._of(path, levels, found, names, sample_weight, noun, {}).plot(ax)

    @classmethod
    def from_predictions(cls, labels, *, chosen=None, names=None, sample_weight=None, noun="rows", ax=None):
        """Draw how any labels follow from each other: those of another clusterer at several resolutions, say.

        Parameters
        ----------
        labels : list of arrays (n,) of int
            Coarsest first; -1 for rows without a cluster.
        chosen : int, default=None
            Position of the level that is marked; the last by default.
        names, sample_weight, noun, ax
            As in :meth:`from_estimator`.

        Returns
        -------
        ClusterTreeDisplay
        """
        _check_labels(labels)
        return cls(labels=labels, chosen=chosen, names=names, sample_weight=sample_weight, noun=noun).plot(ax)

    @classmethod
    def _of(cls, path: LamPath, levels, found, names, sample_weight, noun, known):
        """The labels of the levels; ``known`` are those that need no fit."""
        most = int(path.n_clusters[-1])
        if levels is None:
            levels = range(1, max(found, min(most, found + _BEYOND)) + 1)
        levels = sorted({*map(int, levels), int(found)})
        check_number("levels[0]", levels[0], least=1, integer=True)
        window = [path.window[K - 1] if most >= K else (np.nan, np.nan) for K in levels]
        return cls(
            labels=[known[K] if K in known else path.labels(K) for K in levels],
            chosen=levels.index(found),
            names=names,
            window=np.array(window),
            sample_weight=sample_weight,
            noun=noun,
        )

    def plot(self, ax=None):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to; new ones by default.

        Returns
        -------
        self
        """
        height = 1.0 + 0.42 * len(self.labels)
        self.ax_ = ax = make_axes(ax, (6.4, max(3.2, height)))
        self.figure_ = ax.figure
        shared = [self._shared(upper, lower) for upper, lower in zip(self.labels, self.labels[1:])]
        self.levels_ = self._arrange(shared)
        shades = colours(self._count(self.chosen))
        self.bands_ = [band for i, rows in enumerate(shared) for band in self._draw_bands(i, rows, shades)]
        self.bars_ = [self._draw_bars(i, level, shades) for i, level in enumerate(self.levels_)]
        self._label_levels()
        self.names_ = self._draw_names(shades)
        set_title(ax, self._title())
        return self

    def _count(self, i: int) -> int:
        """Clusters of a level."""
        return int(self.labels[i].max(initial=-1)) + 1

    def _unit(self) -> float:
        """Width of all rows: what the gaps of the level with the most clusters leave."""
        return 1.0 - self._gap() * (max(map(self._count, range(len(self.labels)))) - 1)

    def _gap(self) -> float:
        """Room between two clusters; all of it together takes no more than half of a level."""
        return min(_GAP, 0.5 / max(map(self._count, range(len(self.labels)))))

    def _shared(self, upper: Array, lower: Array) -> Array:
        """Shares of the rows (K, L) that are in a cluster of one level and a cluster of the next."""
        both = (upper >= 0) & (lower >= 0)
        weight = self.sample_weight if self.sample_weight.size else np.ones(len(upper))
        table = np.zeros((int(upper.max(initial=-1)) + 1, int(lower.max(initial=-1)) + 1))
        np.add.at(table, (upper[both], lower[both]), weight[both])
        return table / weight.sum()

    def _arrange(self, shared: list[Array]) -> list[Level]:
        """Clusters of each level below those that their rows come from."""
        kinds = [self._shared(labels, self.labels[self.chosen]).argmax(axis=1) for labels in self.labels]
        levels: list[Level] = []
        tops, bottoms = self._heights()
        for i, labels in enumerate(self.labels):
            width = self._unit() * self._shared(labels, labels).sum(axis=1)
            order = self._order(shared[i - 1], levels[-1]) if i else self._first_order(shared, len(width))
            left = np.empty(len(width))
            room = width[order].sum() + self._gap() * (len(width) - 1)
            left[order] = (1 - room) / 2 + np.concatenate([[0.0], np.cumsum(width[order] + self._gap())[:-1]])
            levels.append(Level(left, width, order, kinds[i], tops[i], bottoms[i]))
        return levels

    def _heights(self) -> tuple[Array, Array]:
        """Where each level begins and ends."""
        count = len(self.labels)
        inches = height_of(self.ax_) / count  # of a level, about
        lines = 1 if self.names == check_names(None, len(self.names)) else _LINES
        tall = (lines + 0.4) * line_height(small_font(self.ax_)) / inches
        height = np.full(count, _BAR)
        height[self.chosen] = max(_BAR, tall if lines == 1 else min(tall, 0.3 * count))
        top = np.concatenate([[0.0], np.cumsum(height + 1 - _BAR)[:-1]])
        return top, top + height

    def _first_order(self, shared: list[Array], count: int) -> Array:
        """Clusters of the first level, similar ones beside each other as far as the second level tells."""
        if count < 3 or not shared:
            return np.arange(count)
        return np.argsort((shared[0] @ np.arange(shared[0].shape[1])) / np.maximum(shared[0].sum(axis=1), 1e-300))

    def _order(self, shared: Array, above: Level) -> Array:
        """Clusters by the place of the one above that most of their rows come from, then by that of all of them."""
        middle = above.left + above.width / 2
        total = np.maximum(shared.sum(axis=0), 1e-300)
        return np.lexsort((middle @ shared / total, middle[shared.argmax(axis=0)]))

    def _draw_bars(self, i: int, level: Level, shades: list[str]) -> list[Any]:
        """The clusters of a level."""
        edge, high = ink(self.ax_) if i == self.chosen else "none", level.bottom - level.top
        return [
            self.ax_.bar(x, high, w, level.top, align="edge", color=shades[shade], ec=edge, lw=1.0, zorder=3)[0]
            for x, w, shade in zip(level.left, level.width, level.shade)
        ]

    def _draw_bands(self, i: int, shared: Array, shades: list[str]) -> list[Any]:
        """What goes from a level to the next: bands leave and enter in the order of where they come from and go to."""
        upper, lower = self.levels_[i], self.levels_[i + 1]
        unit = self._unit()
        start, end, bands = upper.left.copy(), lower.left.copy(), []
        for a in upper.order:
            for b in lower.order:
                width = unit * shared[a, b]
                if shared[a, b] > _LEAST:
                    colour = shades[upper.shade[a] if i >= self.chosen else lower.shade[b]]
                    bands.append(self._band(start[a], end[b], width, i, colour))
                start[a] += width
                end[b] += width
        return bands

    def _band(self, x: float, y: float, width: float, i: int, colour: str) -> Any:
        """A band from ``x`` on one level to ``y`` on the next."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        top, bottom = self.levels_[i].bottom, self.levels_[i + 1].top
        half = (top + bottom) / 2
        corners = [(x, top), (x, half), (y, half), (y, bottom), (y + width, bottom)]
        corners += [(y + width, half), (x + width, half), (x + width, top), (x, top)]
        codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY]
        alpha = 0.5 if is_dark(ground(self.ax_)) else 0.35
        return self.ax_.add_patch(PathPatch(Path(corners, codes), fc=colour, lw=0, alpha=alpha, zorder=2))

    def _label_levels(self) -> None:
        """Numbers of clusters on the left, prices on the right, as many as there is room for."""
        ax, count = self.ax_, len(self.labels)
        low = self.levels_[-1].bottom + 0.1
        ax.set(xlim=(-0.01, 1.01), ylim=(low, -0.1), xticks=[], ylabel="number of clusters")
        every = int(np.ceil(line_height("medium") * low / height_of(ax)))
        shown = [i for i in range(count) if i == self.chosen or (i % every == 0 and abs(i - self.chosen) >= every)]
        places = [(self.levels_[i].top + self.levels_[i].bottom) / 2 for i in shown]
        ax.set_yticks(places, [str(self._count(i)) for i in shown])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.get_yticklabels()[shown.index(self.chosen)].set(color=second_colour(), fontweight="bold")
        if self.window is None or not np.isfinite(self.window).any() or width_of(ax) < _WIDE:
            return
        right = ax.secondary_yaxis("right")
        right.set_yticks(places, [_price(*self.window[i]) for i in shown], fontsize="small")
        right.tick_params(length=0)
        right.spines[:].set_visible(False)
        right.set_ylabel("best for prices")

    def _draw_names(self, shades: list[str]) -> list[Any]:
        """Names of the clusters of the chosen level, in their rectangles; numbers where these are narrow."""
        level, size = self.levels_[self.chosen], small_font(self.ax_)
        self.figure_.draw_without_rendering()  # the room that prices take is known after a drawing only
        room = 0.94 * level.width * width_of(self.ax_) / 1.02
        texts = []
        for k, name in enumerate(self.names):
            text = self.ax_.text(
                level.left[k] + level.width[k] / 2,
                (level.top + level.bottom) / 2,
                fold(name if name == str(k) else f"{k}: {name}", room[k], size, whole_words=True),
                ha="center",
                va="center",
                fontsize=size,
                color="#ffffff" if is_dark(shades[k]) else "#22303c",
                zorder=4,
            )
            self._shorten(text, [fold(text.get_text(), 0.75 * room[k], size, whole_words=True), str(k), ""], room[k])
            texts.append(text)
        return texts

    def _shorten(self, text: Any, others: list[str], room: float) -> None:
        """A name that is too large for its rectangle becomes the first of others that is not."""
        level = self.levels_[self.chosen]
        high = abs(np.diff(self.ax_.transData.transform([(0, level.top), (0, level.bottom)])[:, 1])[0])
        for shorter in others:
            box = text.get_window_extent()
            if box.width > room * self.figure_.dpi or box.height > high:
                text.set_text(shorter)

    def _title(self) -> str:
        found = in_words(self._count(self.chosen), "clusters")
        return f"How {found} of {in_words(len(self.labels[0]), self.noun)} come from fewer, and part into more"


def _price(low: float, high: float) -> str:
    """Two prices, short."""
    if not np.isfinite(low):
        return "none"
    if np.isinf(high):
        return f"above {short_number(low)}"
    return f"below {short_number(high)}" if low <= 0 else f"{short_number(low)} to {short_number(high)}"


def _check_labels(labels: Any) -> None:
    """Labels of the same rows for two levels or more."""
    shapes = {np.shape(some) for some in labels}
    kinds = {np.asarray(some).dtype.kind for some in labels}
    if len(labels) < 2 or len(shapes) > 1 or len(next(iter(shapes))) != 1 or not kinds <= {"i", "u"}:
        raise ValueError(
            f"labels must be two or more arrays of whole numbers, one number for each row, got {len(labels)} of shapes "
            f"{sorted(shapes)}."
        )
    empty = [i for i, some in enumerate(labels) if np.max(some, initial=-1) < 0]
    if empty:
        raise ValueError(f"labels[{empty[0]}] has no row in a cluster: all are below 0. Leave that level out.")
