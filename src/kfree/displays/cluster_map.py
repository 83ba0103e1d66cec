"""ClusterMapDisplay: the rows on a plane, coloured by cluster, with names."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kfree.displays.drawing import cut, fold, make_axes, point_size, set_title, small_font, tidy
from kfree.displays.flatten import flatten, scale_of
from kfree.displays.palette import GREY, colours
from kfree.displays.placing import place_names
from kfree.displays.reading import check_names, columns_of, in_words, is_frame, names_of, numbered, take_rows
from kfree.estimators._sklearn import refuse_dask
from kfree.families import Array
from kfree.models.checks import check_number

#: Rows drawn, at most: more only hide each other.
_MOST = 5000
#: Width of a name in inches, and its letters.
_NAME, _LETTERS = 1.5, 44


class ClusterMapDisplay:
    """Rows on a plane, coloured by cluster, the names of the clusters at their middle.

    Made by :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    xy : array (m, 2)
        Coordinates of the rows that are drawn.
    labels : array (m,)
        Their clusters, -1 for none.
    sizes : array (K,)
        Rows of each cluster, whether they are drawn or not.
    names : sequence of str, default=None
        Names of the clusters; their numbers by default.
    axis_labels : pair of str, default=("", "")
        What the coordinates are.
    n_outliers : int, default=0
        Rows without a cluster, whether they are drawn or not.
    noun : str, default="rows"
        What the rows are, for the title: "customers", say.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    points_ : PathCollection
        The rows.
    names_ : list of Text
        The names of the clusters that have rows in the picture; those for which there is no room are not visible.
    lines_ : list of Line2D
        From names that had to move to their place.

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import ClusterMapDisplay, DPMeans
    >>> X = np.array([[0.0, 0.1], [0.2, 0.0], [5.0, 5.1], [5.2, 4.9], [9.0, 0.0]])
    >>> display = ClusterMapDisplay.from_estimator(DPMeans(n_clusters=3).fit(X), X)
    >>> display.ax_.get_title(loc="left")
    '3 clusters of 5 rows'
    """

    def __init__(self, *, xy, labels, sizes, names=None, axis_labels=("", ""), n_outliers=0, noun="rows"):
        self.xy = np.asarray(xy, dtype=np.float64)
        self.labels = np.asarray(labels)
        self.sizes = np.asarray(sizes)
        self.names = check_names(names, len(self.sizes))
        self.axis_labels = axis_labels
        self.n_outliers = n_outliers
        self.noun = noun

    @classmethod
    def from_estimator(
        cls, estimator, X, *, coordinates=None, names=None, noun="rows", max_rows=_MOST, random_state=0, ax=None
    ):
        """Draw the rows of X by the clusters of a fitted clusterer or mixture.

        Parameters
        ----------
        estimator : fitted clusterer or mixture
        X : array, frame or CSR matrix (n, p)
            Rows; those of the fit, or others.
        coordinates : array (n, 2), default=None
            Where to draw them (of UMAP, t-SNE, a map). By default the two columns if there are two, otherwise two
            principal components, in a scale that fits the divergence or family.
        names : sequence of str, default=None
            Names of the clusters; by default those of the profile if the columns have names, or numbers.
        noun : str, default="rows"
            What the rows are, for the title.
        max_rows : int, default=5000
            Rows drawn at most; a sample of more.
        random_state : int, default=0
            Seeds the sample.
        ax : matplotlib Axes, default=None

        Returns
        -------
        ClusterMapDisplay
        """
        refuse_dask(X)
        check_is_fitted(estimator)
        labels = np.asarray(estimator.predict(X))
        count = estimator.n_clusters_ if hasattr(estimator, "n_clusters_") else estimator.n_components_
        names = names_of(estimator, X, names, count)
        columns = columns_of(estimator, estimator.n_features_in_)
        how = {"scale": scale_of(estimator), "columns": columns, "n_clusters": count}
        return cls._of(X, labels, coordinates, names, noun, max_rows, random_state, how).plot(ax)

    @classmethod
    def from_predictions(
        cls, X, labels, *, coordinates=None, names=None, noun="rows", max_rows=_MOST, random_state=0, ax=None
    ):
        """Draw rows by labels, whoever found them.

        Parameters
        ----------
        X : array, frame or CSR matrix (n, p)
        labels : array (n,) of int
            0 to K-1; -1 for rows without a cluster.
        coordinates, names, noun, max_rows, random_state, ax
            As in :meth:`from_estimator`.

        Returns
        -------
        ClusterMapDisplay
        """
        labels = np.asarray(labels)
        if labels.ndim != 1 or labels.dtype.kind not in "iu" or len(labels) != np.shape(X)[0]:
            raise ValueError(
                f"labels must be one whole number for each of {np.shape(X)[0]} rows, got {labels.dtype} of shape "
                f"{labels.shape}."
            )
        columns = [str(name) for name in (X.columns if is_frame(X) else range(np.shape(X)[1]))]
        how = {"scale": "plain", "columns": columns, "n_clusters": int(labels.max(initial=-1)) + 1}
        return cls._of(X, labels, coordinates, names, noun, max_rows, random_state, how).plot(ax)

    @classmethod
    def _of(cls, X, labels, coordinates, names, noun, max_rows, random_state, how):
        """The rows to draw, and where."""
        check_number("max_rows", max_rows, least=1, integer=True)
        n = len(labels)
        rows = np.arange(n)
        if n > max_rows:
            rows = np.sort(np.random.default_rng(random_state).choice(n, max_rows, replace=False))
        if coordinates is None:
            xy, axis_labels = flatten(take_rows(X, rows), how["columns"], how["scale"])
        else:
            xy, axis_labels = _check_coordinates(coordinates, n)[rows], ("", "")
        sizes = np.bincount(labels[labels >= 0], minlength=how["n_clusters"])
        return cls(
            xy=xy,
            labels=labels[rows],
            sizes=sizes,
            names=names,
            axis_labels=axis_labels,
            n_outliers=int((labels < 0).sum()),
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
        self.ax_ = ax = make_axes(ax)
        self.figure_ = ax.figure
        K, n = len(self.sizes), len(self.labels)
        shades = np.array([*colours(K), GREY])
        order = np.argsort(self.labels >= 0, kind="stable")  # rows without a cluster below the others
        size = point_size(ax, n)
        self.points_ = ax.scatter(
            *self.xy[order].T, c=shades[self.labels[order]], s=size, lw=0, alpha=0.85, rasterized=n > 1000
        )
        ax.set(xlabel=self.axis_labels[0], ylabel=self.axis_labels[1])
        for axis, text in zip((ax.xaxis, ax.yaxis), self.axis_labels):
            if not text or text.startswith("principal"):
                axis.set_ticks([])
        tidy(ax, grid="")
        set_title(ax, self._title())
        shown = np.argsort(-self.sizes, kind="stable")
        shown = shown[np.isin(shown, self.labels)]
        names = numbered(self.names)
        folded = [fold(cut(names[k], _LETTERS), _NAME, small_font(ax)) for k in shown]
        short = [str(k) for k in shown]
        self.names_, self.lines_ = place_names(ax, self._middles(shown), folded, short, list(shades[shown]), self.xy)
        return self

    def _middles(self, which: Array) -> Array:
        """The row in the middle of each cluster: a mean may lie where there is none."""
        places = [self.xy[self.labels == k] for k in which]
        centres = [np.median(rows, axis=0) for rows in places]
        near = [rows[((rows - centre) ** 2).sum(axis=1).argmin()] for rows, centre in zip(places, centres)]
        return np.array(near).reshape(-1, 2)

    def _title(self) -> str:
        n = int(self.sizes.sum()) + self.n_outliers
        text = f"{in_words(int((self.sizes > 0).sum()), 'clusters')} of {in_words(n, self.noun)}"
        if self.n_outliers:
            text += f", {in_words(self.n_outliers, self.noun)} in none (grey)"
        return text + (f"; {in_words(len(self.labels), self.noun)} drawn" if len(self.labels) < n else "")


def _check_coordinates(coordinates: Any, n: int) -> Array:
    """Two numbers for each row."""
    xy = np.asarray(coordinates.to_numpy() if is_frame(coordinates) else coordinates, dtype=np.float64)
    if xy.shape != (n, 2) or not np.isfinite(xy).all():
        raise ValueError(f"coordinates must be {n} finite rows of two numbers, got shape {xy.shape}.")
    return xy
