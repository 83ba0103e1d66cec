"""FeaturesDisplay: latent features as pictures, a row with and without each, and which occur together."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from kfree.displays.drawing import cut, diverging, ink_on, make_axes, make_panels, sequential, set_head, set_title, tidy
from kfree.displays.palette import colours
from kfree.displays.pictures import as_colours, as_pictures, colour_limits, draw_tiles, tiles_size
from kfree.displays.placing import label_columns, label_rows
from kfree.displays.reading import check_names, columns_of, in_words, percent, take_rows
from kfree.estimators._sklearn import refuse_dask
from kfree.families import Array
from kfree.models.checks import check_choice, check_number

KINDS = ("components", "examples", "together")
#: Letters of the name of a column and of a caption, and inches of a panel of bars.
_COLUMN, _CAPTION, _PANEL = 18, 28, 2.2


class FeaturesDisplay:
    """Latent features: what each adds to a row, a row with and without it, and which occur together.

    Made by :meth:`from_estimator`.

    Parameters
    ----------
    components : array (K, p)
        What each feature adds to a row.
    Z : array (n, K)
        Which row has which feature.
    names : sequence of str, default=None
        Names of the features; their numbers by default.
    columns : sequence of str, default=None
        Names of the columns; their numbers by default.
    noun : str, default="rows"
        What the rows are, for the titles.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    axes_ : list of matplotlib Axes
        One for each feature, if they are shown as bars.
    images_ : list of AxesImage
        The pictures.
    bars_ : list of BarContainer
        The bars.
    title_ : Text
        What stands above them.
    image_ : AxesImage
        How many rows of a feature (row) have another one (column), as a share.

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import FeaturesDisplay, KFeatures
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(2, size=(60, 3)) @ (5 * np.eye(3, 6)) + rng.normal(size=(60, 6)) / 5
    >>> model = KFeatures(3).fit(X)
    >>> FeaturesDisplay.from_estimator(model, kind="together").image_.get_array().shape
    (3, 3)
    """

    def __init__(self, *, components, Z, names=None, columns=None, noun="rows"):
        self.components = np.asarray(components, dtype=np.float64)
        self.Z = np.asarray(Z, dtype=np.float64)
        K, p = self.components.shape
        self.names = check_names(names, K)
        self.columns = [str(name) for name in (range(p) if columns is None else columns)]
        self.noun = noun

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X=None,
        *,
        kind="components",
        image_shape=None,
        inverse=None,
        names=None,
        columns=None,
        n_columns=8,
        noun="rows",
        ax=None,
    ):
        """Draw the features of a fitted estimator of latent features.

        Parameters
        ----------
        estimator : fitted BPMeans, KFeatures, StepwiseKFeatures or GibbsIBP
        X : array, frame or CSR matrix (n, p), default=None
            The rows of the fit, for "examples"; or some of them, if the fit was to a Dask collection.
        kind, image_shape, n_columns, ax
            As in :meth:`plot`.
        inverse : callable, default=None
            From rows of the fit to rows that can be seen: ``pca.inverse_transform``, say.
        names, columns : sequences of str, default=None
            Names of the features, by default their numbers, and of the columns, by default those of the fit.
        noun : str, default="rows"
            What the rows are, for the titles.

        Returns
        -------
        FeaturesDisplay
        """
        refuse_dask(X)
        check_is_fitted(estimator)
        held = hasattr(estimator, "Z_") or hasattr(estimator, "_spread")
        if not (held and hasattr(estimator, "components_")):
            raise TypeError(f"{type(estimator).__name__} has no latent features: Z_ or components_ is missing.")
        if estimator.n_components_ == 0:
            raise ValueError("There is nothing to draw: the rows have no features. A smaller lam finds some.")
        components, p, Z = np.asarray(estimator.components_), estimator.n_features_in_, _allocation(estimator, X)
        if inverse is not None:
            components, X = _inverted(inverse, components, getattr(estimator, "intercept_", np.zeros(p)), X)
        display = cls(
            components=components,
            Z=Z,
            names=names,
            columns=columns_of(estimator, components.shape[1], columns),
            noun=noun,
        )
        return display.plot(ax, X=X, kind=kind, image_shape=image_shape, n_columns=n_columns)

    def plot(self, ax=None, *, X=None, kind="components", image_shape=None, n_columns=8):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to; new ones by default.
        X : array, frame or CSR matrix (n, p), default=None
            The rows, for "examples".
        kind : {"components", "examples", "together"}, default="components"
            "components": what each feature adds, as pictures if ``image_shape`` is given, otherwise bars of the columns
            it changes most. "examples": a row with each feature, and the same row without it; needs ``image_shape``.
            "together": which share of the rows of a feature have another one.
        image_shape : tuple, default=None
            (height, width) or (height, width, 3).
        n_columns : int, default=8
            Columns shown as bars.

        Returns
        -------
        self
        """
        check_choice("kind", kind, KINDS)
        check_number("n_columns", n_columns, least=1, integer=True)
        if kind == "examples" and (image_shape is None or X is None):
            raise ValueError(
                "kind='examples' needs X, the rows of the fit, and image_shape, by which they are pictures."
            )
        if kind == "components" and image_shape is None:
            self._draw_bars(ax, n_columns)
            return self
        count = len(self.components) * (1 + (kind == "examples"))
        self.ax_ = make_axes(ax, None if kind == "together" else tiles_size(count, image_shape))
        self.figure_ = self.ax_.figure
        if kind == "components":
            self._draw_components(image_shape)
        elif kind == "examples":
            self._draw_examples(X, image_shape)
        else:
            self._draw_together()
        return self

    def _captions(self) -> list[str]:
        counts = self.Z.sum(axis=0)
        return [f"{name}: in {percent(count / len(self.Z))}" for name, count in zip(self.names, counts)]

    def _title(self) -> str:
        return f"{in_words(len(self.components), 'latent features')} of {in_words(len(self.Z), self.noun)}"

    def _draw_components(self, shape: tuple[int, ...]) -> None:
        """What features add; of coloured pictures the mean over the colours, since it may be less than nothing."""
        pictures = as_pictures(self.components, shape)
        pictures = [picture.mean(axis=2) if picture.ndim == 3 else picture for picture in pictures]
        how = {"cmap": diverging(self.ax_), **colour_limits(pictures, signed=True)}
        self.images_ = draw_tiles(self.ax_, pictures, self._captions(), **how)
        set_title(self.ax_, f"{self._title()}: what each adds (orange) and takes away (blue)")

    def _draw_bars(self, ax: Any, most: int) -> None:
        """The columns that each feature changes most."""
        K = len(self.components)
        panels = make_panels(ax, K, (_PANEL, 0.6 + 0.16 * most))
        self.ax_, self.axes_, self.figure_ = panels.outer, panels.inner, panels.outer.figure
        ends = (1.05 * self.components.min(initial=0.0), 1.05 * self.components.max(initial=1e-300))
        self.bars_ = []
        for one, row, caption in zip(self.axes_, self.components, self._captions()):
            first = np.argsort(-np.abs(row), kind="stable")[:most]
            blue, orange = colours(2)
            shades = [orange if value > 0 else blue for value in row[first]]
            self.bars_.append(one.barh(range(len(first)), row[first], color=shades, height=0.75))
            one.set_yticks(range(len(first)), [cut(self.columns[j], _COLUMN) for j in first], fontsize=8)
            one.set(ylim=(len(first) - 0.4, -0.6), xlim=ends)
            one.tick_params(axis="y", length=0, pad=2)
            one.tick_params(axis="x", labelsize=7)
            one.locator_params(axis="x", nbins=3)
            one.set_title(cut(caption, _CAPTION), fontsize=8, loc="left")
            tidy(one, "x")
        self.title_ = set_head(panels, f"{self._title()}: what each adds")

    def _draw_examples(self, X: Any, shape: tuple[int, ...]) -> None:
        """For each feature a row that has it and few others, as it is and less what the feature adds."""
        K = len(self.components)
        Z = self.Z > 0
        crowd = np.where(Z, Z.sum(axis=1, keepdims=True), np.inf)
        has = [int(crowd[:, k].argmin()) if Z[:, k].any() else -1 for k in range(K)]
        kept = [k for k in range(K) if has[k] >= 0]
        rows = take_rows(X, np.array([has[k] for k in kept]))
        rows = rows.toarray() if sp.issparse(rows) else np.asarray(rows, dtype=np.float64)
        pairs = np.stack([rows, rows - self.components[kept]], axis=1)
        pictures = as_colours(as_pictures(pairs.reshape(2 * len(kept), -1), shape))
        captions = [f"{word} {self.names[k]}" for k in kept for word in ("with", "without")]
        how = {"cmap": "gray", **colour_limits(pictures[::2], signed=False)}
        self.images_ = draw_tiles(self.ax_, pictures, captions, multiple=2, **how)
        set_title(self.ax_, f"{self._title()}: {self.noun} with each, and the same without it")

    def _draw_together(self) -> None:
        ax, K = self.ax_, len(self.components)
        both = self.Z.T @ self.Z
        share = self._share(both)
        self.image_ = ax.imshow(share, cmap=sequential(ax), vmin=0, vmax=1, aspect="auto")
        label_rows(ax, [f"{name} ({count:.0f})" for name, count in zip(self.names, np.diag(both))])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        if K <= 10:
            for i, j in np.ndindex(K, K):
                shade = ink_on(self.image_.cmap(share[i, j]))
                ax.text(j, i, f"{100 * share[i, j]:.0f}", ha="center", va="center", fontsize="small", color=shade)
        bar = ax.figure.colorbar(self.image_, ax=ax, shrink=0.9, pad=0.02, ticks=[0, 0.5, 1])
        bar.ax.set_yticklabels(["0 %", "50 %", "100 %"])
        bar.outline.set_visible(False)
        label_columns(ax, self.names)
        ax.set(xlabel="also have this feature", ylabel=cut(f"of the {self.noun} that have this one", 60))
        set_title(ax, f"{self._title()}: which occur together")

    def _share(self, both: Array) -> Array:
        """Shares (K, K) of the rows of a feature that have another one."""
        return both / np.maximum(np.diag(both), 1.0)[:, None]


def _inverted(inverse: Any, components: Array, intercept: Array, X: Any) -> tuple[Array, Any]:
    """Features and rows where they can be seen; what a feature adds is a difference of two rows."""
    added = np.asarray(inverse(intercept + components)) - np.asarray(inverse(intercept[None, :]))
    return added, None if X is None else inverse(X.to_numpy() if hasattr(X, "to_numpy") else X)


def _allocation(estimator: Any, X: Any) -> Any:
    """Which of the rows of the fit has which feature; of rows that lie elsewhere, which of those given."""
    Z = getattr(estimator, "Z_", None)
    if isinstance(Z, np.ndarray):
        return Z
    if X is None:
        raise ValueError(
            "The rows of the fit lie in blocks of Dask. Pass some of them: from_estimator(model, X=rows.compute())."
        )
    return estimator.transform(X)
