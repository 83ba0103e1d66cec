"""Rows of equal content as one row that weighs as much: copies then move together, as one weighted row does."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.kernels import kernels

#: Rows compared at a time.
_ROWS = 4096


class Merged(NamedTuple):
    """Rows of different content, in the order in which they first appear."""

    X: Any
    weight: Array  # (m,), or (0,) if all are 1
    place: Array  # (n,) where each of the rows that were merged is now


def merge_copies(X: Any, weight: Array) -> Merged:
    """Merge rows of equal content, their weights added."""
    n = X.shape[0]
    _, first, place = np.unique(_hashes(X), return_index=True, return_inverse=True)
    if first.size == n or not _equal(X, first[place]):
        return Merged(X, weight, np.arange(n))
    order = np.argsort(first)
    rank = np.empty(order.size, np.intp)
    rank[order] = np.arange(order.size)
    place = rank[place]
    return Merged(X[first[order]], np.bincount(place, weights=weight if weight.size else None).astype(float), place)


def _hashes(X: Any) -> Array:
    rows, hashes = np.arange(X.shape[0]), np.empty(X.shape[0], np.uint64)
    if sp.issparse(X):
        kernels().hash_csr(X.data, X.indices, X.indptr, rows, hashes)
    else:
        kernels().hash_dense(X, rows, hashes)
    return hashes


def _equal(X: Any, other: Array) -> bool:
    """Whether every row equals the one of its hash: two contents may share one, once in a very long while."""
    moved = np.flatnonzero(other != np.arange(X.shape[0]))
    for start in range(0, moved.size, _ROWS):
        rows = moved[start : start + _ROWS]
        a, b = X[rows], X[other[rows]]
        if (a != b).nnz if sp.issparse(X) else not np.array_equal(a, b):
            return False
    return True
