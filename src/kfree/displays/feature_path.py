"""FeaturePathDisplay: what each number of latent features leaves, and the prices for which it is best."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kfree.displays.drawing import main_colour, pyplot, second_colour, set_title, short_number, tidy
from kfree.displays.palette import GREY
from kfree.displays.reading import in_words, percent


class FeaturePathDisplay:
    """The inertia of K = 0, 1, 2, ... features, and between which prices each number is best.

    Made by :meth:`from_estimator` or :meth:`from_path`; ``model.path_.plot()`` draws it, too.

    Parameters
    ----------
    path : FeaturePath
    n_components : int, default=None
        The number that is marked; by default that with the least objective.

    Attributes
    ----------
    axes_ : pair of matplotlib Axes
    figure_ : matplotlib Figure
    line_ : Line2D
        Inertia over K.
    windows_ : list of Line2D
        A bar for each K that is best for some price.

    Examples
    --------
    >>> import numpy as np
    >>> from kfree import FeaturePathDisplay, StepwiseKFeatures
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(2, size=(60, 3)) @ (5 * np.eye(3, 6)) + rng.normal(size=(60, 6)) / 5
    >>> display = FeaturePathDisplay.from_estimator(StepwiseKFeatures().fit(X))
    >>> display.axes_[1].get_xlabel()
    'price of a feature (lam)'
    """

    def __init__(self, *, path, n_components=None):
        self.path = path
        least = int(path.n_components[np.argmin(path.objective)])
        self.n_components = least if n_components is None else n_components

    @classmethod
    def from_estimator(cls, estimator, *, ax=None):
        """Draw the path of fitted latent features.

        Parameters
        ----------
        estimator : StepwiseKFeatures, or BPMeans with ``lam="auto"``
        ax : pair of matplotlib Axes, default=None

        Returns
        -------
        FeaturePathDisplay
        """
        check_is_fitted(estimator)
        if getattr(estimator, "path_", None) is None:
            raise TypeError(
                f"This {type(estimator).__name__} has looked at one number of features only, so it has no path. Use "
                "StepwiseKFeatures, or BPMeans(lam='auto')."
            )
        return cls(path=estimator.path_, n_components=estimator.n_components_).plot(ax)

    @classmethod
    def from_path(cls, path, *, n_components=None, ax=None):
        """Draw a :class:`FeaturePath`.

        Parameters
        ----------
        path : FeaturePath
        n_components : int, default=None
            The number that is marked; by default that with the least objective.
        ax : pair of matplotlib Axes, default=None

        Returns
        -------
        FeaturePathDisplay
        """
        return cls(path=path, n_components=n_components).plot(ax)

    def plot(self, ax=None):
        """Draw.

        Parameters
        ----------
        ax : pair of matplotlib Axes, default=None
            Where to; new ones by default.

        Returns
        -------
        self
        """
        if ax is None:
            ax = pyplot().subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")[1]
        if np.size(ax) != 2:
            raise ValueError(f"A path of features takes two axes, got {np.size(ax)}. Pass those of plt.subplots(1, 2).")
        self.axes_, self.figure_ = ax, ax[0].figure
        self._draw_inertia(ax[0])
        self._draw_windows(ax[1])
        for one in ax:
            tidy(one)
        return self

    def _draw_inertia(self, ax) -> None:
        path = self.path
        (self.line_,) = ax.plot(path.n_components, path.inertia, "o-", color=main_colour(ax), ms=4, lw=1.6)
        ax.plot(
            *[values[self.n_components] for values in (path.n_components, path.inertia)], "o", color=second_colour()
        )
        ax.set(xlabel="number of features", ylabel="inertia", ylim=(0, None))
        left = path.inertia[self.n_components] / path.inertia[0] if path.inertia[0] > 0 else 0.0
        set_title(ax, f"{in_words(self.n_components, 'features')} leave {percent(left)} of the squares")

    def _draw_windows(self, ax) -> None:
        path, self.windows_ = self.path, []
        for K, (lo, hi) in zip(path.n_components, path.window):
            if np.isfinite(hi) and hi > 0 and K > 0:
                colour = second_colour() if self.n_components == K else GREY
                ends = [max(lo, 1e-3 * hi), hi]
                self.windows_ += ax.plot(ends, [K, K], color=colour, lw=5, solid_capstyle="butt")
        ax.set(xscale="log", xlabel="price of a feature (lam)", ylabel="best number of features")
        lo, hi = path.window[self.n_components]
        where = f"for prices {short_number(lo)} to {short_number(hi)}" if np.isfinite(hi) else "for no price"
        set_title(ax, f"{in_words(self.n_components, 'features')} {where}")
