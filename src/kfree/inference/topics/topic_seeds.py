"""First topics: documents far from those already chosen."""

import numpy as np
import scipy.sparse as sp
from scipy.special import xlogy

from kfree.families import Array
from kfree.inference.topics.soft_topics import Soft, width_of
from kfree.kernels import kernels
from kfree.rows import Documents

#: Share of the document in its seed topic; the rest is the mean of the corpus.
SHARE = 0.05
CANDIDATES = 6
#: Candidates that the kernel takes at a time.
MOST = 8


def background(documents: Documents) -> Array:
    """Word probabilities of the whole corpus, none of them zero."""
    counts = documents.word_totals + 0.5
    return counts / counts.sum()


def choose_seeds(documents: Documents, G: int, rng: np.random.Generator, known: Array | None = None) -> Array:
    """Documents whose seed topics are far from each other, one by one, each the best of some draws.

    ``known`` (V, K) are the means of topics that are there already, to stay far from.

    A draw's probability is n_j KL(x_j || nearest seed); the best is the one that leaves least of it in all. Documents
    are drawn in the order of their content, so that the order of the rows does not matter, and equal ones are adjacent.
    """
    mean, data, indices = background(documents), documents.data, documents.indices
    mass = documents.length * documents.weights
    length = np.maximum(documents.length, 1.0)
    terms = xlogy(data, data / length[documents.owner]) - data * np.log((1 - SHARE) * mean[indices])
    alone = np.bincount(documents.owner, weights=terms, minlength=documents.n) / length
    nearest = np.full(documents.n, np.inf) if known is None else _nearest_known(documents, known)
    order = np.argsort(documents.hash(), kind="stable")
    chosen: list[int] = []
    reach = alone if known is None else nearest
    while len(chosen) < G:
        chance = mass * np.maximum(reach, 0.0)
        chance[chosen] = 0.0
        if not chance.sum() > 0:
            chance = np.where(mass > 0, 1.0, 0.0)
            chance[chosen] = 0.0
        ladder = np.cumsum(chance[order])
        drawn = order[
            np.searchsorted(ladder, rng.random(CANDIDATES) * ladder[-1], side="right").clip(max=len(order) - 1)
        ]
        candidates = np.unique(drawn)
        distance = alone - _gains(documents, candidates, mean) / length
        left = np.minimum(nearest, distance)
        best = int(np.argmin((mass * np.maximum(left, 0.0)).sum(axis=1)))
        chosen.append(int(candidates[best]))
        nearest = reach = left[best]
    return np.array(chosen)


def _nearest_known(documents: Documents, known: Array) -> Array:
    """KL divergence of the documents from the nearest of some topics."""
    data, length = documents.data, np.maximum(documents.length, 1.0)
    own = np.bincount(documents.owner, weights=xlogy(data, data / length[documents.owner]), minlength=documents.n)
    X = sp.csr_matrix((data, documents.indices, documents.indptr), shape=(documents.n, documents.p))
    return (own - (X @ np.log(known)).max(axis=1)) / length


def _gains(documents: Documents, candidates: Array, mean: Array) -> Array:
    """sum_w n_jw log(seed_w / ((1 - SHARE) mean_w)) for every document and candidate, (C, D)."""
    data, indices, indptr = documents.cells
    values, gain = np.zeros((documents.p, MOST), np.float32), np.empty((documents.n, MOST), np.float32)
    for c, j in enumerate(candidates):
        part = slice(indptr[j], indptr[j + 1])
        words, x = indices[part], data[part] / documents.length[j]
        values[words, c] = np.log1p(SHARE * x / ((1 - SHARE) * mean[words]))

    def of_span(span: slice) -> None:
        kernels().gain_of_seeds(*documents.cells, span.start, span.stop, values, gain)

    for _ in documents.each(of_span, documents.document_spans, 4.0 * data.size):
        pass
    return gain[:, : len(candidates)].T.astype(np.float64)


def seeded(documents: Documents, seeds: Array, eta: float, known: int = 0) -> Soft:
    """Counts that make the seeds the topics, after ``known`` ones: equal shares everywhere, words as in the seeds."""
    G, mean = known + len(seeds), background(documents)
    words = np.zeros((documents.p, width_of(G)), np.float32)
    # heavy enough that pseudo-counts hardly move the seeds
    mass = max(documents.total / G, 100.0 * eta)
    words[:, known:G] = (mass * (1 - SHARE) * mean)[:, None]
    for g, j in enumerate(seeds, known):
        part = slice(documents.indptr[j], documents.indptr[j + 1])
        words[documents.indices[part], g] += mass * SHARE * documents.data[part] / documents.length[j]
    shares = np.zeros((documents.n, width_of(G)), np.float32)
    shares[:, :G] = (documents.length / G)[:, None]
    return Soft(shares, words, G)
