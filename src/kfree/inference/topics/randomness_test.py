"""Is there anything to find? The corpus against the same tokens dealt at random."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.inference.loop import Budget, repeat
from kfree.inference.topics.topic_numbers import TOPICS
from kfree.rows import Documents


class Structure(NamedTuple):
    """How far a corpus is from one without topics."""

    strength: float  # largest singular value of the standardised residuals
    chance: float  # the same of dealt corpora, mean
    found: bool


def look_for_structure(documents: Documents, rng: np.random.Generator, budget: Budget) -> Structure | None:
    """Compare the largest singular value of (n_jw - n_j m_w) / sqrt(n_j m_w), about, with that of dealt tokens.

    Documents whose tokens all come from one distribution are a deal themselves. Of large corpora a part is
    looked at first: what shows there is there. None if there is no time to look.
    """
    order = np.argsort(documents.hash(), kind="stable")
    order = order[documents.length[order] > 0]
    some = order[np.cumsum(documents.length[order]) <= TOPICS.look_first]
    X = documents.table
    if 2 <= some.size < order.size:
        part = _compare(X[some], rng, budget)
        if part is None or part.found:
            return part
    return _compare(X[order], rng, budget)


def _compare(X: sp.csr_matrix, rng: np.random.Generator, budget: Budget) -> Structure | None:
    whole = np.maximum(np.rint(X.data), 1).astype(np.int64)
    if whole.sum() > TOPICS.look_most:  # a share of the tokens: they are dealt one by one
        X = sp.csr_matrix((rng.binomial(whole, TOPICS.look_most / whole.sum()), X.indices, X.indptr), shape=X.shape)
        X.eliminate_zeros()
        X = X[np.diff(X.indptr) > 0]
        whole = X.data
    words = np.repeat(X.indices, whole)
    length = np.add.reduceat(whole, X.indptr[:-1])
    owner = np.repeat(np.arange(X.shape[0]), length)
    start = rng.standard_normal(X.shape[1])
    mine = _strength(sp.csr_matrix((whole, X.indices, X.indptr), shape=X.shape), start)

    def deal(values: list[float]) -> tuple[list[float], bool]:
        return [*values, _strength(_table(owner, rng.permutation(words), X.shape), start)], False

    none: list[float] = []
    values, _ = repeat(deal, none, budget, most=TOPICS.deals)
    if len(values) < TOPICS.deals:
        return None
    dealt = np.array(values)
    bar = max(TOPICS.stand_out_factor * dealt.max(), dealt.mean() + TOPICS.stand_out_sigmas * dealt.std(ddof=1))
    return Structure(mine, float(dealt.mean()), bool(mine > bar))


def _table(owner: Array, words: Array, shape: tuple[int, int]) -> sp.csr_matrix:
    return sp.coo_matrix((np.ones(words.size), (owner, words)), shape=shape).tocsr()


def _strength(X: sp.csr_matrix, start: Array) -> float:
    """Largest singular value by power iteration; the residuals are never formed."""
    rows, columns = np.asarray(X.sum(axis=1)).ravel(), np.asarray(X.sum(axis=0)).ravel()
    total = rows.sum()
    mean = columns / total
    # a rare word or a short document has a large residual by chance alone: both are held back
    down = 1.0 / np.sqrt(rows + TOPICS.held_back)
    across = np.sqrt(total / (columns + TOPICS.held_back)) * (columns > 0)
    vector, value = start * (columns > 0), 0.0
    for _ in range(TOPICS.power_steps):
        norm = np.linalg.norm(vector)
        if norm == 0:
            return 0.0
        vector = across * vector / norm
        image = down * (X @ vector - rows * (mean @ vector))
        weighted = down * image
        vector = across * (X.T @ weighted - mean * (rows @ weighted))
        value = float(np.linalg.norm(image))
    return value
