"""How finely the entries of columns were recorded: what is known of a row is known to half a step of that."""

import numpy as np

from kfree.families import Array
from kfree.kernels import kernels

# Rows that are looked at, chosen by their content.
_ROWS = 20_000
# Values that differ by less, as a share of the largest in their column, differ by rounding.
_SAME = 1e-12


def recording_error(rows: Array, variance: Array) -> Array:
    """Variance (p,) of an error within half a step of recording, but no more than that of the column.

    The step is the smallest difference of two values in a column: a grid shows, and without one it is next to nothing.
    """
    if rows.shape[0] > _ROWS:
        hashes = np.empty(rows.shape[0], np.uint64)
        kernels().hash_dense(rows, np.arange(rows.shape[0]), hashes)
        rows = rows[np.argpartition(hashes, _ROWS)[:_ROWS]]
    step = np.array([_step(column) for column in rows.T])
    return np.minimum(step**2 / 12, variance)


def _step(values: Array) -> float:
    """The smallest difference of two values; 0 if there are none that differ."""
    gaps = np.diff(np.sort(values))
    gaps = gaps[gaps > _SAME * np.abs(values).max()]
    return float(gaps.min()) if gaps.size else 0.0
