"""Rows that reports are about."""

import numpy as np


def groups_of_rows(sizes=(90, 60, 40, 20), p=6, seed=0):
    """Rows of groups of some sizes."""
    rng = np.random.default_rng(seed)
    return np.vstack([rng.normal(3.0 * rng.normal(size=p), 1.0, (n, p)) for n in sizes])


def pictures():
    """Pictures of 6 x 8 with none to three bars."""
    rng = np.random.default_rng(0)
    bars = np.zeros((3, 6, 8))
    bars[0, 1], bars[1, 4], bars[2, :, 3] = 1, 1, 1
    Z = rng.integers(2, size=(60, 3))
    return Z @ bars.reshape(3, -1) + 0.05 * rng.normal(size=(60, 48))
