"""The rows that a page shows: few, but some of every cluster."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array

#: Rows of each cluster that are drawn at least.
_LEAST = 3


class Sample(NamedTuple):
    """Rows that stand for all."""

    rows: Array  # (m,) their places, ascending
    weight: Array  # (m,) how many rows each stands for

    @property
    def whole(self) -> bool:
        """Whether it is all rows."""
        return bool(self.weight.max(initial=1.0) == 1.0)

    def draw(self, labels: Array, most: int) -> "Sample":
        """About ``most`` of these rows, some of every label; ``labels`` (m,) are those of the rows here."""
        some = draw(labels, most)
        # what a label weighs here is shared by its rows that were drawn
        kinds, code = np.unique(labels, return_inverse=True)
        heavy = np.bincount(code, weights=self.weight, minlength=kinds.size)
        drawn = np.bincount(code[some.rows], minlength=kinds.size)
        return Sample(self.rows[some.rows], (heavy / np.maximum(drawn, 1))[code[some.rows]])


def draw(labels: Array, most: int) -> Sample:
    """About ``most`` rows at random (always the same), as many of each label as its share, but some of each."""
    n = labels.size
    if n <= most:
        return Sample(np.arange(n), np.ones(n))
    _, code, size = np.unique(labels, return_inverse=True, return_counts=True)
    wanted = np.minimum(np.maximum(np.round(most * (size / n)), _LEAST), size).astype(np.intp)
    order = np.argsort(code + np.random.default_rng(0).random(n), kind="stable")  # shuffled inside of each label
    start = np.cumsum(size) - size
    rank = np.arange(n) - np.repeat(start, size)
    kept = order[rank < np.repeat(wanted, size)]
    kept.sort()
    return Sample(kept, (size / wanted)[code[kept]])
