"""The rows that a page shows: few, but some of every cluster."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array


class Sample(NamedTuple):
    """Rows that stand for all."""

    rows: Array  # (m,) their places, ascending
    weight: Array  # (m,) how many rows each stands for

    @property
    def whole(self) -> bool:
        """Whether each row stands for itself only."""
        return bool(self.weight.max(initial=1.0) == 1.0)


def draw(labels: Array, most: int, least: int) -> Sample:
    """About ``most`` rows at random (always the same), as many of each label as its share, but at least some of each.

    Rows with the label -1 are left out: they are in no cluster.
    """
    inside = np.flatnonzero(labels >= 0)
    _, code, size = np.unique(labels[inside], return_inverse=True, return_counts=True)
    n = inside.size
    if n <= most:
        return Sample(inside, np.ones(n))
    wanted = np.minimum(np.maximum(np.round(most * (size / n)), least), size).astype(np.intp)
    order = np.argsort(code + np.random.default_rng(0).random(n), kind="stable")  # shuffled inside of each label
    rank = np.arange(n) - np.repeat(np.cumsum(size) - size, size)
    kept = np.sort(order[rank < np.repeat(wanted, size)])
    return Sample(inside[kept], (size / wanted)[code[kept]])
