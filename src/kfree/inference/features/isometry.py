"""Fewer columns without loss: rows in an orthonormal basis of the space they span."""

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from kfree.families import Array
from kfree.inference.features.feature_numbers import FEATURES


def densify(X: Any) -> Any:
    """A dense table if it is not too large."""
    if sp.issparse(X) and X.shape[0] * X.shape[1] <= FEATURES.dense_entries:
        return X.toarray()
    return X


def reduce_columns(X: Any) -> Any:
    """The rows in fewer columns, all products between them unchanged; X itself if that does not pay."""
    n, p = X.shape
    if sp.issparse(X):
        return isometric(X) if n <= min(p, FEATURES.gram_rows) else X
    if p < FEATURES.least_columns or min(n, p) ** 2 * max(n, p) > FEATURES.column_work:
        return X
    work = np.asarray(X, dtype=np.float64)
    if p > n:
        return np.ascontiguousarray(scipy.linalg.qr(work.T, mode="r")[0][:n].T)
    used = work.any(axis=0)
    if not used.any():
        return work[:, :1].copy()
    if used.sum() <= FEATURES.fewer_columns * p:
        work = np.ascontiguousarray(work[:, used])  # columns of zeros need no arithmetic
    basis = _row_space(work)
    if basis.shape[1] > FEATURES.fewer_columns * work.shape[1]:
        return work if work.shape[1] < p else X
    return np.ascontiguousarray(work @ basis)


def _row_space(X: Array) -> Array:
    """Orthonormal basis (p, rank) of the rows."""
    _, values, basis = np.linalg.svd(scipy.linalg.qr(X, mode="r")[0][: X.shape[1]], full_matrices=False)
    return basis[values > FEATURES.rank * max(values[0], np.finfo(float).tiny)].T


def isometric(X: Any) -> Array:
    """Sparse rows in a dense table of at most as many columns as rows, all products between them kept.

    By the eigenvectors of those products, so what is below 1e-8 of the largest direction is lost: enough to search,
    and no dense row of the user's columns is ever formed.
    """
    X = X.astype(np.float64, copy=False)
    values, basis = np.linalg.eigh((X @ X.T).toarray())
    kept = values > FEATURES.rank * max(values[-1], np.finfo(float).tiny)
    return np.ascontiguousarray(basis[:, kept] * np.sqrt(values[kept]))
