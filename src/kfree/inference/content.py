"""Row content: which rows are copies, and numbers that look random and are functions of content alone."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.kernels import kernels
from kfree.kernels.splitmix import GOLDEN, mix
from kfree.rows import cells_of

# Rows from which the step of a rounded column is read.
_GAP_ROWS = 2000
# Columns that are dithered at a time.
_COLUMNS = 16


def starts(ordered: Array) -> Array:
    """Mask of the entries of a sorted array that differ from the one before."""
    return np.concatenate([np.ones(min(1, ordered.size), bool), ordered[1:] != ordered[:-1]])


def count_distinct(hashes: Array) -> int:
    """Number of different contents."""
    return int(np.count_nonzero(starts(np.sort(hashes))))


def one_of_each(hashes: Array) -> Array:
    """Positions of one row of each content, in the order of their hashes."""
    order = np.argsort(hashes)
    return order[starts(hashes[order])]


def union(hashes: Array, others: Array) -> Array:
    """Those that are among either, ascending; numpy's own takes thirty times as long."""
    ordered = np.sort(np.concatenate([hashes, others]))
    return ordered[starts(ordered)]


def uniform(ticket: Array, stream: int | Array) -> Array:
    """Numbers in (0, 1) that depend on ticket and stream only."""
    return as_uniform(mix(ticket + mix(np.atleast_1d(stream).astype(np.uint64) * GOLDEN + GOLDEN)))


def as_uniform(bits: Array) -> Array:
    """Random bits, uint64, as numbers in (0, 1)."""
    return (bits >> np.uint64(11)).astype(float) * 2.0**-53 + 2.0**-54


def nth_copy(hashes: Array, copy: Array) -> Array:
    """A ticket for each row: a hash of its content and of its number among its copies."""
    return mix(hashes + copy.astype(np.uint64) * GOLDEN)


def dither(stats: Array, ticket: Array, *, coarse: float = 0.0) -> Array:
    """Spread every value over the smallest gap between values of its column: rounding would show as valleys.

    Columns whose gap is below ``coarse`` of their range are left as they are.
    """
    values = np.sort(stats[:_GAP_ROWS], axis=0)
    gaps = np.diff(values, axis=0)
    span = values[-1] - values[0] if len(values) else np.zeros(stats.shape[1])
    # what differs by rounding of the arithmetic is the same value
    step = np.where(gaps > 1e-9 * span, gaps, np.inf).min(axis=0, initial=np.inf)
    out = stats.copy()
    rounded = np.flatnonzero(np.isfinite(step) & (step >= coarse * span))
    for start in range(0, rounded.size, _COLUMNS):
        some = rounded[start : start + _COLUMNS]
        out[:, some] += step[some] * (uniform(ticket[:, None], some + 1_000_000) - 0.5)
    return out


class Merged(NamedTuple):
    """Rows of different content, in the order in which they first appear."""

    X: Any
    weight: Array  # (m,), or (0,) if all are 1
    place: Array  # (n,) where each of the rows that were merged is now


def merge_copies(X: Any, weight: Array) -> Merged:
    """Rows of equal content as one that weighs as much as they: copies then move together."""
    n = X.shape[0]
    _, first, place = np.unique(hash_rows(X), return_index=True, return_inverse=True)
    if first.size == n or not _equal(X, first[place]):
        return Merged(X, weight, np.arange(n))
    order = np.argsort(first)
    rank = np.empty(order.size, np.intp)
    rank[order] = np.arange(order.size)
    place = rank[place]
    return Merged(X[first[order]], np.bincount(place, weights=weight if weight.size else None).astype(float), place)


def hash_rows(X: Any) -> Array:
    """A hash of the content of each row, uint64."""
    rows, hashes = np.arange(X.shape[0]), np.empty(X.shape[0], np.uint64)
    if sp.issparse(X):
        kernels().hash_csr(*cells_of(X), rows, hashes)
    else:
        kernels().hash_dense(X, rows, hashes)
    return hashes


def _equal(X: Any, other: Array, together: int = 4096) -> bool:
    """Whether every row equals the one of its hash: two contents may share one, once in a very long while."""
    moved = np.flatnonzero(other != np.arange(X.shape[0]))
    for start in range(0, moved.size, together):
        rows = moved[start : start + together]
        a, b = X[rows], X[other[rows]]
        if (a != b).nnz if sp.issparse(X) else not np.array_equal(a, b):
            return False
    return True
