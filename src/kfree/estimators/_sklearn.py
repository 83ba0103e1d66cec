"""What is taken from scikit-learn's validation, in one place."""

from typing import Any

import scipy.sparse as sp
from sklearn.utils.validation import check_array, validate_data

from kfree.estimators._checks import check_finite

# Precision and memory order are kept; finiteness is checked below, with a message that says where.
_AS_IT_IS: dict[str, Any] = {"accept_sparse": "csr", "dtype": "numeric", "order": None, "ensure_all_finite": False}


def check_table(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as a 2-d array in its own precision, or as canonical CSR; finite, with the columns of the fit."""
    return _settle(validate_data(estimator, X, reset=reset, **_AS_IT_IS))


def check_plain_table(X: Any) -> Any:
    """The same for functions, which have no columns to compare with."""
    return _settle(check_array(X, input_name="X", **_AS_IT_IS))


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
