"""Document-term tables: real ones split and filtered, planted ones; and yardsticks that are the same for everybody."""

import numpy as np
import scipy.sparse as sp

from benchmarks import data

CORPORA = ("reuters395", "classic400", "citeseer", "kos", "nyt8k", "nips12", "tdt2")


def load(name):
    """Counts, words (or None) and classes (or None)."""
    X = sp.load_npz(data.FOLDER / f"{name}.npz").tocsr().astype(float)
    X.sort_indices()
    arrays = np.load(data.FOLDER / f"{name}.npz", allow_pickle=False)
    return X, arrays.get("vocab"), arrays.get("y")


def split(name, seed):
    """80 % of the documents to learn from, the rest to judge by, and the classes of the first.

    Words in at least 5 and at most 40 % of the documents to learn from.
    """
    X, _, y = load(name)
    order = np.random.default_rng(seed).permutation(X.shape[0])
    cut = int(0.8 * X.shape[0])
    train, test, classes = X[order[:cut]], X[order[cut:]], None if y is None else y[order[:cut]]
    df = np.asarray((train > 0).sum(axis=0)).ravel()
    keep = np.flatnonzero((df >= 5) & (df <= 0.4 * cut))
    train, test = train[:, keep], test[:, keep]
    some = np.asarray(train.sum(axis=1)).ravel() > 0
    test = test[np.asarray(test.sum(axis=1)).ravel() > 1]
    return train[some].tocsr(), test.tocsr(), None if classes is None else classes[some]


def planted(D, V, K, length, seed=0):
    """Documents of equal length from K topics."""
    rng = np.random.default_rng(seed)
    topics = np.cumsum(rng.dirichlet(np.full(V, 0.05), K), axis=1)
    owner = np.repeat(np.arange(D), length)
    shares = np.cumsum(rng.dirichlet(np.full(K, 0.1), D), axis=1)
    topic = np.concatenate([np.searchsorted(share, rng.random(length)) for share in shares]).clip(max=K - 1)
    words = np.empty(topic.size, int)
    for k in range(K):
        mine = np.flatnonzero(topic == k)
        words[mine] = np.searchsorted(topics[k], rng.random(mine.size)).clip(max=V - 1)
    X = sp.csr_matrix((np.ones(words.size), (owner, words)), shape=(D, V))
    X.sum_duplicates()
    return X


def token_lists(X):
    """Documents as lists of word numbers, for samplers."""
    return [
        np.repeat(X.indices[a:b], X.data[a:b].astype(int)).astype(str).tolist() for a, b in zip(X.indptr, X.indptr[1:])
    ]
