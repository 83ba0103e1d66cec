"""MixtureDisplay: the density of a mixture, its components as ellipses, and the rows."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from kfree.displays.drawing import make_axes, point_size, sequential, set_title, tidy
from kfree.displays.palette import GREY, colours
from kfree.displays.placing import place_names
from kfree.displays.reading import axis_name, columns_of, in_words, percent, take_rows
from kfree.estimators._sklearn import refuse_dask
from kfree.families import Array
from kfree.models.checks import check_number

#: Points of the grid in each direction, and shares of the weight that contours enclose.
_GRID, _INSIDE = 120, (0.95, 0.8, 0.6, 0.4, 0.2, 0.05)
#: Standard deviations from the middle of an ellipse to its edge; it then holds 86 % of its component.
_RADIUS = 2.0
#: Variance that is added to components without any in some direction, as a share of what they have in all.
_FLAT = 1e-9
#: Rows drawn at most.
_MOST = 3000
#: Components of less weight have no name.
_LEAST = 0.01


class Seen(NamedTuple):
    """Two directions in which rows are looked at."""

    matrix: Array  # (p, 2) from rows to the plane
    origin: Array  # (p,)
    labels: tuple[str, str]

    def of(self, rows: Array) -> Array:
        """Rows on the plane."""
        return (rows - self.origin) @ self.matrix


class MixtureDisplay:
    """The density of a Gaussian mixture as contours, its components as ellipses.

    Made by :meth:`from_estimator`. The density is that of the two directions shown, all others integrated out.

    Parameters
    ----------
    means : array (K, 2)
        Means of the components on the plane.
    covariances : array (K, 2, 2)
        Their covariances there.
    weights : array (K,)
    xy : array (m, 2)
        Rows on the plane.
    labels : array (m,)
        Their likeliest components.
    n_rows : int
        Rows there are, drawn or not.
    axis_labels : pair of str, default=("", "")
    noun : str, default="rows"
        What the rows are, for the title.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    contours_ : QuadContourSet
        Of the density by its largest value. Each encloses a share of the weight: 95 %, 80 %, 60 %, 40 %, 20 %, 5 %.
    ellipses_ : list of Ellipse
        Two standard deviations around each mean, which hold 86 % of a component.
    points_ : PathCollection
        The rows.
    names_ : list of Text
        Numbers of the components.

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import MixtureDisplay, VariationalDPMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 1.0, size=(60, 2)) for m in ([0, 0], [8, 0])])
    >>> display = MixtureDisplay.from_estimator(VariationalDPMixture().fit(X), X)
    >>> len(display.ellipses_)
    2
    """

    def __init__(self, *, means, covariances, weights, xy, labels, n_rows, axis_labels=("", ""), noun="rows"):
        self.means = np.asarray(means, dtype=np.float64)
        self.covariances = np.asarray(covariances, dtype=np.float64)
        self.weights = np.asarray(weights, dtype=np.float64)
        self.xy = np.asarray(xy, dtype=np.float64)
        self.labels = np.asarray(labels)
        self.n_rows = n_rows
        self.axis_labels = axis_labels
        self.noun = noun

    @classmethod
    def from_estimator(cls, estimator, X, *, columns=None, noun="rows", max_rows=_MOST, random_state=0, ax=None):
        """Draw a fitted mixture of Gaussians.

        Parameters
        ----------
        estimator : fitted VariationalDPMixture, KernelDPMixture or GibbsDPMixture
            With a Gaussian family.
        X : array or frame (n, p)
        columns : pair of names or positions, default=None
            What to look at; by default the two columns if there are two, otherwise the directions in which the
            standardised rows vary most.
        noun : str, default="rows"
            What the rows are, for the title.
        max_rows : int, default=3000
            Rows drawn at most; a sample of more.
        random_state : int, default=0
            Seeds the sample.
        ax : matplotlib Axes, default=None

        Returns
        -------
        MixtureDisplay
        """
        refuse_dask(X)
        check_is_fitted(estimator)
        if not hasattr(estimator, "covariances_"):
            raise TypeError(
                f"This {type(estimator).__name__} has no covariances_, so there are no ellipses. Use a Gaussian "
                "family, or ClusterMapDisplay, which draws rows of any model."
            )
        check_number("max_rows", max_rows, least=1, integer=True)
        n = len(X)
        rows = np.arange(n)
        if n > max_rows:
            rows = np.sort(np.random.default_rng(random_state).choice(n, max_rows, replace=False))
        drawn = np.asarray(take_rows(X, rows), dtype=np.float64)
        seen = _look(drawn, columns, columns_of(estimator, drawn.shape[1]))
        return cls(
            means=seen.of(estimator.means_),
            covariances=_seen_covariances(estimator.covariances_, seen.matrix),
            weights=estimator.weights_,
            xy=seen.of(drawn),
            labels=estimator.predict(X)[rows],
            n_rows=n,
            axis_labels=seen.labels,
            noun=noun,
        ).plot(ax)

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
        shades = np.array(colours(len(self.means)))
        size = point_size(ax, len(self.xy))
        self.points_ = ax.scatter(*self.xy.T, c=shades[self.labels], s=size, lw=0, alpha=0.7, rasterized=True)
        self.contours_ = self._draw_contours()
        self.ellipses_ = [self._ellipse(k, shade) for k, shade in enumerate(shades)]
        ax.set(xlabel=self.axis_labels[0], ylabel=self.axis_labels[1])
        tidy(ax, "")
        count = in_words(len(self.means), "components")
        set_title(ax, f"{count} for {in_words(self.n_rows, self.noun)}; contours are the density")
        kept = [k for k in np.argsort(-self.weights, kind="stable") if self.weights[k] >= _LEAST]
        names = [f"{k}: {percent(self.weights[k])}" for k in kept]
        self.names_, _ = place_names(ax, self.means[kept], names, [str(k) for k in kept], list(shades[kept]))
        return self

    def _draw_contours(self) -> Any:
        """Lines that enclose shares of the weight, behind everything else."""
        ax = self.ax_
        low, high = self.xy.min(axis=0), self.xy.max(axis=0)
        margin = 0.08 * np.maximum(high - low, 1e-12)
        axes = [np.linspace(a, b, _GRID) for a, b in zip(low - margin, high + margin)]
        points = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
        density = self._log_density(points)
        density = np.exp(density - density.max())  # the units of the columns may be anything
        falling = np.sort(density)[::-1]
        inside = np.cumsum(falling) / falling.sum()
        levels = np.unique(falling[np.searchsorted(inside, _INSIDE).clip(max=len(falling) - 1)])
        ax.set(xlim=axes[0][[0, -1]], ylim=axes[1][[0, -1]])
        density = density.reshape(_GRID, _GRID)
        shades = sequential(ax)(np.linspace(0.08, 0.4, len(levels)))
        ax.contourf(*axes, density, levels=[*levels, density.max() + levels[-1]], colors=shades, zorder=0)
        return ax.contour(*axes, density, levels=levels, colors=GREY, linewidths=0.6, zorder=1.5)

    def density(self, points):
        """Density of the mixture at points of the plane.

        Parameters
        ----------
        points : array (m, 2)

        Returns
        -------
        array (m,)
        """
        return np.exp(self._log_density(np.asarray(points, dtype=np.float64)))

    def _log_density(self, points: Array) -> Array:
        floor = max(np.trace(self.covariances, axis1=1, axis2=2).max(), np.finfo(float).tiny / _FLAT**2)
        logs = []
        for weight, mean, covariance in zip(self.weights, self.means, self.covariances):
            root = np.linalg.cholesky(covariance + _FLAT * (np.trace(covariance) + floor) * np.eye(2))
            far = np.linalg.solve(root, (points - mean).T)
            logs.append(np.log(weight) - 0.5 * (far**2).sum(axis=0) - np.log(np.diag(root)).sum())
        return logsumexp(logs, axis=0) - np.log(2 * np.pi)

    def _ellipse(self, k: int, shade: str) -> Any:
        from matplotlib.patches import Ellipse

        values, vectors = np.linalg.eigh(self.covariances[k])
        radius = _RADIUS * np.sqrt(np.maximum(values, 0.0))
        angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
        width = 0.8 + 2.2 * np.sqrt(self.weights[k])
        return self.ax_.add_patch(
            Ellipse(self.means[k], 2 * radius[1], 2 * radius[0], angle=angle, fill=False, ec=shade, lw=width, zorder=3)
        )


def _look(X: Array, columns: Any, names: list[str]) -> Seen:
    """Two columns, or the two directions in which the standardised rows vary most."""
    p = X.shape[1]
    if p < 2:
        raise ValueError("MixtureDisplay needs two columns, and X has one. ClusterMapDisplay draws one.")
    if columns is None and p == 2:
        columns = (0, 1)
    if columns is not None:
        chosen = [_position(column, names) for column in columns]
        if len(chosen) != 2 or chosen[0] == chosen[1]:
            raise ValueError(f"columns must be two different columns, got {columns!r}.")
        return Seen(np.eye(p)[:, chosen], np.zeros(p), (axis_name(names[chosen[0]]), axis_name(names[chosen[1]])))
    mean, spread = X.mean(axis=0), X.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    pca = PCA(2, random_state=0).fit((X - mean) / spread)
    labels = [f"principal component {i + 1} ({percent(s)})" for i, s in enumerate(pca.explained_variance_ratio_)]
    return Seen(pca.components_.T / spread[:, None], mean, (labels[0], labels[1]))


def _position(column: Any, names: list[str]) -> int:
    """Of a column given by its name or position."""
    if isinstance(column, str):
        if column not in names:
            raise ValueError(f"X has no column {column!r}. Its columns are {', '.join(names[:20])}.")
        return names.index(column)
    check_number("columns", column, least=0, integer=True)
    if column >= len(names):
        raise ValueError(f"X has no column {column}: it has {len(names)}, and the first is 0.")
    return int(column)


def _seen_covariances(covariances: Array, matrix: Array) -> Array:
    """Covariances (K, 2, 2) on the plane, of full (K, p, p), diagonal (K, p) or spherical (K,) ones."""
    covariances = np.asarray(covariances, dtype=np.float64)
    if covariances.ndim == 3:
        return matrix.T @ covariances @ matrix
    spread = np.broadcast_to(covariances.reshape(len(covariances), -1), (len(covariances), len(matrix)))
    return np.einsum("ia,ki,ib->kab", matrix, spread, matrix)
