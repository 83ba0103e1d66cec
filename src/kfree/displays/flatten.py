"""Two coordinates for each row: the columns themselves, or principal components in a scale that fits the model."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.preprocessing import normalize

from kfree.displays.reading import axis_name, percent
from kfree.families import Array


class Plane(NamedTuple):
    """Two coordinates."""

    xy: Array  # (n, 2)
    labels: tuple[str, str]  # of the axes; "" where the coordinate means nothing


def scale_of(estimator: Any) -> str:
    """The scale in which straight distances are about those the model goes by: a key of ``SCALES``."""
    word = getattr(estimator, "divergence", None) or getattr(estimator, "family", None)
    return _BY_MODEL.get(word, "plain") if isinstance(word, str) else "plain"


def flatten(X: Any, columns: list[str], scale: str = "plain") -> Plane:
    """Rows on a plane."""
    if X.shape[1] == 1:
        drawn = np.random.default_rng(0).uniform(size=X.shape[0])  # so that rows do not hide each other
        return Plane(np.stack([_dense(X).ravel(), drawn], axis=1), (axis_name(columns[0]), ""))
    if X.shape[1] == 2:
        return Plane(_dense(X), (axis_name(columns[0]), axis_name(columns[1])))
    X = SCALES[scale](X)
    count = min(2, X.shape[0])
    with np.errstate(invalid="ignore"):  # rows that are all the same have no variance to share
        pca = PCA(count, svd_solver="arpack" if sp.issparse(X) else "auto", random_state=0)
        xy = pca.fit_transform(X)
    share = np.nan_to_num(pca.explained_variance_ratio_)
    xy = np.pad(xy, ((0, 0), (0, 2 - count)))
    text = [f"principal component {i + 1}" + (f" ({percent(s)})" if s > 0 else "") for i, s in enumerate(share)]
    return Plane(xy, (text[0], text[-1] if count > 1 else ""))


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def _plain(X: Any) -> Any:
    return X.astype(np.float64)


def _shares(X: Any) -> Any:
    """Roots of shares: their distance is that of histograms (Hellinger)."""
    return np.sqrt(normalize(X.astype(np.float64), norm="l1"))


def _roots(X: Any) -> Any:
    """Roots of counts: their noise is about the same everywhere."""
    return np.sqrt(X.astype(np.float64))


def _logs(X: Any) -> Any:
    return np.log(X.astype(np.float64))


def _directions(X: Any) -> Any:
    return normalize(X.astype(np.float64))


def _standardised(X: Any) -> Any:
    """Columns of mean 0 and standard deviation 1."""
    X = _dense(X)
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


SCALES = {
    "plain": _plain,
    "shares": _shares,
    "roots": _roots,
    "logs": _logs,
    "directions": _directions,
    "standardised": _standardised,
}
#: Divergences and families whose distances are not those of the columns as they are.
_BY_MODEL = {
    "kl": "shares",
    "multinomial": "shares",
    "poisson": "roots",
    "negative_binomial": "roots",
    "itakura_saito": "logs",
    "cosine": "directions",
    "mahalanobis": "standardised",
    "gaussian": "standardised",
    "diag": "standardised",
}
