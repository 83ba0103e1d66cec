"""What is taken from scikit-learn besides its base classes, in one place: validation, and its kd-tree."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import KDTree
from sklearn.utils.validation import check_array, validate_data

from kfree.families import Array
from kfree.models.checks import check_finite
from kfree.rows.tree import Slices

# Precision and memory order are kept; finiteness is checked below, with a message that says where.
_AS_IT_IS: dict[str, Any] = {"accept_sparse": "csr", "dtype": "numeric", "order": None, "ensure_all_finite": False}
# Rows in the last nodes of a kd-tree; smaller ones are made as they are needed.
_LEAF = 32


def check_table(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as a 2-d array in its own precision, or as canonical CSR; finite, with the columns of the fit."""
    _refuse_anndata(X)
    return _settle(validate_data(estimator, X, reset=reset, **_AS_IT_IS))


def check_plain_table(X: Any) -> Any:
    """The same for functions, which have no columns to compare with."""
    _refuse_anndata(X)
    return _settle(check_array(X, input_name="X", **_AS_IT_IS))


def _refuse_anndata(X: Any) -> None:
    """NumPy would say that it has more than 64 dimensions."""
    if type(X).__name__ == "AnnData":
        raise TypeError(
            "X is an AnnData object, not a table. Use kfree.anndata.cluster(adata), or pass one of its tables, such as "
            "adata.obsm['X_pca']."
        )


def _settle(X: Any) -> Any:
    if X.dtype.kind == "f" and X.dtype.itemsize not in (4, 8):
        X = X.astype("float64")
    check_finite(X)
    if sp.issparse(X):
        if X.dtype.kind != "f":
            X = X.astype("float64")
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    return X


def kd_slices(X: Array) -> Slices:
    """The nodes of a kd-tree over one row for each content, in the order of their values: medians then do not hang on
    copies or the order of rows."""
    once, which, copies = np.unique(X, axis=0, return_inverse=True, return_counts=True)
    _, order, nodes, _ = KDTree(once, leaf_size=_LEAF).get_arrays()
    edges = np.concatenate([[0], np.cumsum(copies[order])])
    start, stop = (edges[nodes[name]] for name in ("idx_start", "idx_end"))
    place = np.empty(order.size, np.intp)
    place[order] = np.arange(order.size)
    return Slices(np.argsort(place[which.ravel()], kind="stable"), start, stop)
