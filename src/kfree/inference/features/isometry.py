"""Fewer columns without loss: rows in an orthonormal basis of the space they span."""

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from kfree.families import Array

#: CSR tables up to this many entries in all are made dense: products are then faster, and the bits the same.
DENSE_ENTRIES = 1 << 25
#: Multiplications up to which a basis is looked for, and columns from which it is worth it.
_WORK, _COLUMNS = 2e10, 32
#: Sparse rows up to which products between all of them are formed.
_ROWS = 1024
# Singular values below this share of the largest are rounding.
_RANK = 1e-13


def densify(X: Any) -> Any:
    """A dense table if it is not too large."""
    if sp.issparse(X) and X.shape[0] * X.shape[1] <= DENSE_ENTRIES:
        return X.toarray()
    return X


def reduce_columns(X: Any) -> Any:
    """The rows in fewer columns, all products between them unchanged; X itself if that does not pay."""
    n, p = X.shape
    if sp.issparse(X):
        return isometric(X) if n <= min(p, _ROWS) else X
    if p < _COLUMNS or min(n, p) ** 2 * max(n, p) > _WORK:
        return X
    work = np.asarray(X, dtype=np.float64)
    if p > n:
        return np.ascontiguousarray(scipy.linalg.qr(work.T, mode="r")[0][:n].T)
    used = work.any(axis=0)
    if used.sum() <= 0.8 * p:
        work = np.ascontiguousarray(work[:, used])  # columns of zeros need no arithmetic
    basis = _row_space(work)
    if basis.shape[1] > 0.8 * work.shape[1]:
        return work if work.shape[1] < p else X
    return np.ascontiguousarray(work @ basis)


def _row_space(X: Array) -> Array:
    """Orthonormal basis (p, rank) of the rows."""
    _, values, basis = np.linalg.svd(scipy.linalg.qr(X, mode="r")[0][: X.shape[1]], full_matrices=False)
    return basis[values > _RANK * max(values[0], np.finfo(float).tiny)].T


def isometric(X: Any) -> Array:
    """Sparse rows in a dense table of at most as many columns as rows, all products between them kept.

    By the eigenvectors of those products, so what is below 1e-8 of the largest direction is lost: enough to search,
    and no dense row of the user's columns is ever formed.
    """
    values, basis = np.linalg.eigh((X @ X.T).toarray())
    kept = values > _RANK * max(values[-1], np.finfo(float).tiny)
    return np.ascontiguousarray(basis[:, kept] * np.sqrt(values[kept]))
