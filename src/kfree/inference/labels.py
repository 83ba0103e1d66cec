"""Numbers of clusters that some have left."""

import numpy as np

from kfree.families import Array


def compact(used: Array) -> Array:
    """For each old number its new one, int32, when only the used ones (bool mask) stay, in their order.

    Numbers that are not used become 0; in a partition only rows without weight still have them, until the next
    assignment.
    """
    new = np.zeros(used.size, np.int32)
    new[used] = np.arange(np.count_nonzero(used))
    return new


def renumbered(labels: Array) -> Array:
    """(n,) int32 The same partition with labels from 0 on, in their order."""
    return np.asarray(np.unique(labels, return_inverse=True)[1].ravel(), dtype=np.int32)
