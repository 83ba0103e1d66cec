"""CentersDisplay: what the clusters are like, as a heat map, as pictures or as lines."""

from typing import Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import pdist
from sklearn.preprocessing import StandardScaler

from kfree.displays.drawing import (
    cut,
    diverging,
    font_points,
    height_of,
    ink_on,
    line_height,
    make_axes,
    set_title,
    short_number,
    small_font,
    tidy,
    width_of,
)
from kfree.displays.palette import colours
from kfree.displays.pictures import as_colours, as_pictures, colour_limits, draw_tiles, tiles_size
from kfree.displays.placing import label_columns, label_ends, label_rows
from kfree.displays.reading import (
    centres_of,
    check_names,
    columns_of,
    in_their_units,
    in_words,
    names_of,
    numbered,
    percent,
    sizes_of,
)
from kfree.estimators._sklearn import refuse_dask
from kfree.families import Array
from kfree.models.checks import check_choice, check_number

KINDS = ("heatmap", "profiles", "images")
#: Columns shown, at most: those that differ most.
_MOST = 30
#: Letters of a name, at most.
_NAME = 30
#: Standard deviations from the mean at which the colours of a heat map end.
_END = 2.5


class CentersDisplay:
    """Centres of clusters or means of components, beside each other.

    Made by :meth:`from_estimator`.

    Parameters
    ----------
    centres : array (K, p)
        In the units of the rows.
    sizes : array (K,)
        Weights of the clusters.
    scale : array (p,), default=None
        What is one step in each column; by default the standard deviation of the centres, by their weights.
    names : sequence of str, default=None
        Names of the clusters; their numbers by default.
    columns : sequence of str, default=None
        Names of the columns; their numbers by default.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    image_ : AxesImage
        The heat map; its numbers are (centre - mean) / scale.
    columns_ : array
        Positions of the columns shown, similar ones beside each other.
    texts_ : list of Text
        The centres in the units of the rows, in the cells of a heat map that have room for them.
    lines_ : list of Line2D
        The profiles.
    images_ : list of AxesImage
        The pictures.

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import CentersDisplay, DPMeans
    >>> X = np.array([[0.0, 0.1], [0.2, 0.0], [5.0, 5.1], [5.2, 4.9], [9.0, 0.0]])
    >>> display = CentersDisplay.from_estimator(DPMeans(n_clusters=3).fit(X), X)
    >>> display.image_.get_array().shape
    (3, 2)
    """

    def __init__(self, *, centres, sizes, scale=None, names=None, columns=None):
        self.centres = np.asarray(centres, dtype=np.float64)
        self.sizes = np.asarray(sizes, dtype=np.float64)
        K, p = self.centres.shape
        self.share = self.sizes / self.sizes.sum()
        self.mean = self.share @ self.centres
        self.scale = np.sqrt(self.share @ (self.centres - self.mean) ** 2) if scale is None else np.asarray(scale)
        self.names = check_names(names, K)
        self.columns = [str(name) for name in (range(p) if columns is None else columns)]

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X=None,
        *,
        kind="heatmap",
        image_shape=None,
        names=None,
        columns=None,
        max_columns=_MOST,
        ax=None,
    ):
        """Draw the centres of a fitted clusterer or the means of a mixture.

        Parameters
        ----------
        estimator : fitted clusterer or mixture
        X : array, frame or CSR matrix (n, p), default=None
            Rows, whose standard deviation is then one step of a column.
        kind, image_shape, max_columns, ax
            As in :meth:`plot`.
        names : sequence of str, default=None
            Names of the clusters; by default those of the profile if X is given and its columns have names, or
            numbers.
        columns : sequence of str, default=None
            Names of the columns; by default those of the fit.

        Returns
        -------
        CentersDisplay
        """
        refuse_dask(X)
        centres = centres_of(estimator)
        display = cls(
            centres=centres,
            sizes=sizes_of(estimator),
            scale=None if X is None else _spread(in_their_units(estimator, X)),
            names=names_of(estimator, X, names, len(centres)),
            columns=columns_of(estimator, centres.shape[1], columns),
        )
        return display.plot(ax, kind=kind, image_shape=image_shape, max_columns=max_columns)

    def plot(self, ax=None, *, kind="heatmap", image_shape=None, max_columns=_MOST):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to; new ones by default.
        kind : {"heatmap", "profiles", "images"}, default="heatmap"
            "heatmap": a cell for each cluster and column, how far above (orange) or below (blue) the mean. "profiles":
            the same as a line for each cluster. "images": each centre as a picture.
        image_shape : tuple, default=None
            (height, width) or (height, width, 3), for "images".
        max_columns : int, default=30
            Columns shown at most; those in which the clusters differ most.

        Returns
        -------
        self
        """
        check_choice("kind", kind, KINDS)
        check_number("max_columns", max_columns, least=1, integer=True)
        if kind == "images" and image_shape is None:
            raise ValueError("kind='images' needs image_shape: (height, width), or (height, width, 3) for colours.")
        K = len(self.centres)
        sizes = {"heatmap": (6.4, max(2.4, 1.6 + 0.36 * K)), "images": tiles_size(K, image_shape)}
        self.ax_ = make_axes(ax, sizes.get(kind))
        self.figure_ = self.ax_.figure
        if kind == "images":
            self._draw_images(image_shape)
            return self
        self.columns_ = self._choose_columns(max_columns)
        values = self._standardised()[:, self.columns_]
        if kind == "heatmap":
            self._draw_heatmap(values)
        else:
            self._draw_profiles(values)
        return self

    def _standardised(self) -> Array:
        """Distances of the centres from the mean, in steps."""
        step = np.where(self.scale > 0, self.scale, np.inf)
        return (self.centres - self.mean) / step

    def _choose_columns(self, most: int) -> Array:
        """The columns that differ most, similar ones beside each other."""
        values = self._standardised()
        differ = self.share @ values**2
        chosen = np.sort(np.argsort(-differ, kind="stable")[:most])
        if len(chosen) < 3 or len(values) < 2:
            return chosen
        tree = linkage(pdist(values[:, chosen].T), "average", optimal_ordering=True)
        return chosen[leaves_list(tree)]

    def _draw_heatmap(self, values: Array) -> None:
        ax = self.ax_
        most = max(np.abs(values).max(initial=0.0), 1e-12)
        end = min(most, _END)
        self.image_ = ax.imshow(values, cmap=diverging(ax), vmin=-end, vmax=end, aspect="auto")
        label_rows(ax, numbered(self.names))
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        bar = ax.figure.colorbar(self.image_, ax=ax, shrink=0.9, pad=0.02, extend="both" if most > end else "neither")
        bar.set_label("standard deviations\nfrom the mean", fontsize=small_font(ax))
        bar.outline.set_visible(False)
        label_columns(ax, [self.columns[j] for j in self.columns_])
        set_title(ax, self._title())
        self.texts_ = self._write_cells(values, end)

    def _write_cells(self, values: Array, end: float) -> list[Any]:
        """The centres in the units of the rows, if there is room."""
        ax, (K, p) = self.ax_, values.shape
        words = [[short_number(self.centres[k, j]) for j in self.columns_] for k in range(K)]
        longest = max(len(word) for row in words for word in row)
        ax.figure.draw_without_rendering()
        wide, high = width_of(ax) / p, height_of(ax) / K
        if wide < 0.62 * longest * font_points("small") / 72 or high < line_height("small"):
            return []
        shade = self.image_.cmap((values / end + 1) / 2)
        return [
            ax.text(j, k, words[k][j], ha="center", va="center", fontsize="small", color=ink_on(shade[k, j]))
            for k in range(K)
            for j in range(p)
        ]

    def _draw_profiles(self, values: Array) -> None:
        ax, (K, p) = self.ax_, values.shape
        self.lines_ = [
            ax.plot(range(p), row, "o-", color=shade, lw=1.2 + 2.0 * np.sqrt(share), ms=4)[0]
            for row, shade, share in zip(values, colours(K), self.share)
        ]
        ax.axhline(0, color="0.5", lw=0.8, zorder=0)
        label_columns(ax, [self.columns[j] for j in self.columns_])
        ax.set(ylabel="standard deviations\nfrom the mean", xlim=(-0.3, p - 0.9))
        tidy(ax, "y")
        set_title(ax, self._title())
        label_ends(self.lines_, [cut(name, _NAME) for name in numbered(self.names)])

    def _draw_images(self, shape: tuple[int, ...]) -> None:
        pictures = as_colours(as_pictures(self.centres, shape))
        captions = [f"{name}, {percent(share)}" for name, share in zip(numbered(self.names), self.share)]
        how = {"cmap": "gray", **colour_limits(pictures, signed=False)}
        self.images_ = draw_tiles(self.ax_, pictures, captions, **how)
        set_title(self.ax_, f"The centres of {in_words(len(pictures), 'clusters')}")

    def _title(self) -> str:
        K, p = self.centres.shape
        shown = len(self.columns_)
        text = f"What makes {in_words(K, 'clusters')} different"
        return text if shown == p else text + f": {shown} of {p} columns, those that differ most"


def _spread(X: Any) -> Array:
    """Standard deviations of the columns."""
    return np.sqrt(StandardScaler(with_mean=False).fit(X).var_)
