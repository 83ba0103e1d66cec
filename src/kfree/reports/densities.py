"""The density of a mixture: over a column, or in the plane of a map."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import logsumexp

from kfree.displays.flatten import scale_of
from kfree.families import Array
from kfree.reports.asked import Asked
from kfree.reports.charts import curve
from kfree.reports.frame import around
from kfree.reports.svg import Picture
from kfree.reports.wording import clean

#: Points of a curve.
_POINTS = 240


def density_chart(asked: Asked) -> list[Picture]:
    """The density of one column; nothing for more, or for counts."""
    if asked.X.shape[1] != 1 or not hasattr(asked.model, "covariances_"):
        return []
    xs = np.linspace(*around(asked.X, 0.1), _POINTS)
    ys = np.exp(asked.model._model.log_density(xs[:, None].astype(asked.X.dtype)))
    name = clean(asked.columns[0], 40)
    return [curve(f"The density of {name}", (name, "density"), xs, ys)]


def log_density_of(asked: Asked, X: Any, xy: Array) -> Callable[[Array], Any] | None:
    """Log of the density at places of a plane in which rows X (m, p) are at ``xy`` (m, 2); None if it has none there.

    Of two columns it is that of the model. Of more it is that of the Gaussians with its means and covariances, as they
    fall on the plane.
    """
    model = asked.model
    if not hasattr(model, "covariances_") or X.shape[1] < 2:
        return None
    if X.shape[1] == 2:
        return model._model.log_density  # score_samples would miss the names of the columns
    if scale_of(model) not in ("plain", "standardised"):
        return None
    X = np.asarray(X, dtype=np.float64)
    mean = X.mean(axis=0)
    # both are flat, and directions of principal components lie in the span of the rows: least squares finds them
    axes = np.linalg.lstsq(X - mean, xy - xy.mean(axis=0), rcond=None)[0].T
    return _gaussians(model, axes, xy.mean(axis=0) - axes @ mean)


def _gaussians(model: Any, axes: Array, shift: Array) -> Callable[[Array], Any] | None:
    """Log of the density of Gaussians seen along two axes (2, p)."""
    p = axes.shape[1]
    means, given = np.asarray(model.means_) @ axes.T + shift, np.asarray(model.covariances_)
    if given.ndim == 1:
        flat = given[:, None, None] * (axes @ axes.T)
    elif given.ndim == 2:
        flat = np.einsum("ap,kp,bp->kab", axes, given, axes)
    else:
        flat = np.einsum("ap,kpq,bq->kab", axes, given.reshape(-1, p, p), axes)
    sign, volume = np.linalg.slogdet(flat)
    if not (sign > 0).all():
        return None
    inverse, log_weight = np.linalg.inv(flat), np.log(np.maximum(model.weights_, 1e-300))

    def log_density(places: Array) -> Any:
        apart = places[:, None, :] - means
        return logsumexp(log_weight - volume / 2 - np.einsum("nka,kab,nkb->nk", apart, inverse, apart) / 2, axis=1)

    return log_density
