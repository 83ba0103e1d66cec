"""How well the top words of topics keep company: normalised pointwise mutual information over documents."""

import numpy as np
import scipy.sparse as sp

from kfree.families import Array


def rank_words(value: Array, n: int) -> Array:
    """The n words of largest value in each topic (K, V), largest first, ties by index."""
    return np.array([_largest(row, n) for row in value], dtype=np.intp).reshape(len(value), min(n, value.shape[1]))


def _largest(value: Array, n: int) -> Array:
    """Places of the n largest, largest first, ties by index."""
    some = np.arange(value.size)
    if n < value.size:  # all that may be among them, in order: a sort of the whole vocabulary takes long
        some = np.flatnonzero(value >= np.partition(value, value.size - n)[value.size - n])
    return some[np.argsort(-value[some], kind="stable")[:n]]


def npmi(words: Array, table: sp.csc_matrix) -> Array:
    """Mean over pairs of the words (K, n) of log(p_ab / (p_a p_b)) / -log p_ab; p = shares of documents in ``table``.

    -1 for words that never meet, 1 for words that are in every document.
    """
    i, j = np.triu_indices(words.shape[1], 1)
    return np.array([_mean_npmi(table[:, row], i, j) for row in words])


def _mean_npmi(presence: sp.csc_matrix, i: Array, j: Array) -> float:
    present = presence.astype(bool).astype(np.float64)
    share = (present.T @ present).toarray() / presence.shape[0]
    alone, both = np.diag(share), share[i, j]
    value = np.full(both.size, -1.0)
    meet = both > 0
    value[both >= 1] = 1.0
    some = meet & (both < 1)
    value[some] = np.log(both[some] / (alone[i] * alone[j])[some]) / -np.log(both[some])
    return float(value.mean())
