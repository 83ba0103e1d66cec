"""Seeded synthetic data. Every generator returns ``(X, truth)``; truth -1 marks rows that belong to no cluster."""

from bisect import bisect_left
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp


class Case(NamedTuple):
    """A data set ready to be clustered."""

    name: str
    X: np.ndarray | sp.csr_matrix
    truth: np.ndarray  # (n,) -1: no cluster
    k: int  # number of clusters in the truth


def farthest_first(X, k):
    """Rows of a farthest-first traversal from the mean, and the squared radius before each step."""
    distance = ((X - X.mean(axis=0)) ** 2).sum(axis=1)
    rows, radii = np.empty(k, np.intp), np.empty(k)
    for step in range(k):
        rows[step] = distance.argmax()
        radii[step] = distance[rows[step]]
        np.minimum(distance, ((X - X[rows[step]]) ** 2).sum(axis=1), out=distance)
    return rows, radii


def lambda_for(X, k, sample=20_000, factor=0.7):
    """Farthest-first lam at k clusters on a sample of rows; point to point is about twice point to mean, hence 0.7."""
    if X.shape[0] > sample:
        X = X[np.sort(np.random.default_rng(0).choice(X.shape[0], sample, replace=False))]
    return factor * float(farthest_first(np.asarray(X), k)[1][-1])


def centres(rng, k, d, distance):
    """Random centres of which the closest pair is ``distance`` apart; in the plane they are spread evenly first."""
    if d == 2:
        rng.standard_normal((k, d))  # keeps the stream of random numbers the same in all dimensions
        places = rng.uniform(size=(40 * k, d))
        mean = places[farthest_first(places, k)[0]]
    else:
        mean = rng.standard_normal((k, d))
    squares = ((mean[:, None] - mean) ** 2).sum(axis=2)
    return mean * (distance / np.sqrt(squares[np.triu_indices(k, 1)].min()))


def gauss(n, d, k, separation, *, seed=0, dtype=np.float64):
    """Spherical unit Gaussians of equal shares; the closest means are ``separation * sqrt(d)`` apart."""
    rng = np.random.default_rng(seed)
    mean = centres(rng, k, d, separation * np.sqrt(d))
    truth = rng.integers(k, size=n)
    X = rng.standard_normal((n, d))
    X += mean[truth]
    return X.astype(dtype, copy=False), truth


def unequal(n, d, k, separation, *, ratio=100, seed=0):
    """Gaussians whose shares fall geometrically, the largest ``ratio`` times the smallest."""
    rng = np.random.default_rng(seed)
    mean = centres(rng, k, d, separation * np.sqrt(d))
    share = np.geomspace(1, ratio, k)
    truth = rng.choice(k, size=n, p=share / share.sum())
    return mean[truth] + rng.standard_normal((n, d)), truth


def heavy_tails(n, d, k, separation, *, freedom=3, seed=0):
    """Clusters with Student t noise in every column, scaled to unit variance."""
    rng = np.random.default_rng(seed)
    mean = centres(rng, k, d, separation * np.sqrt(d))
    truth = rng.integers(k, size=n)
    noise = rng.standard_t(freedom, size=(n, d)) / np.sqrt(freedom / (freedom - 2))
    return mean[truth] + noise, truth


def with_outliers(n, d, k, separation, *, share=0.01, seed=0):
    """Gaussians and a share of rows spread evenly over a box twice as wide as the data; their truth is -1."""
    X, truth = gauss(n, d, k, separation, seed=seed)
    rng = np.random.default_rng([seed, 1])
    far = rng.choice(n, size=round(share * n), replace=False)
    low, high = X.min(axis=0), X.max(axis=0)
    middle, half = (low + high) / 2, (high - low) / 2
    X[far] = middle + 2 * half * rng.uniform(-1, 1, size=(far.size, d))
    truth[far] = -1
    return X, truth


def counts(n, d, k, nonzeros, *, concentration=0.05, seed=0, dtype=np.float64):
    """Sparse histograms, about ``nonzeros`` entries a row; profiles are 80 % the cluster's own and 20 % shared."""
    rng = np.random.default_rng(seed)
    shared = rng.dirichlet(np.full(d, 0.5))
    profile = 0.8 * rng.dirichlet(np.full(d, concentration), size=k) + 0.2 * shared
    truth = rng.integers(k, size=n)
    lengths = range(nonzeros + 1, 100 * nonzeros)
    tokens = lengths[bisect_left(lengths, nonzeros, key=lambda m: (1 - (1 - profile) ** m).sum(axis=1).mean())]
    words = np.empty((n, tokens), np.int64)
    for cluster in range(k):
        members = np.flatnonzero(truth == cluster)
        words[members] = rng.choice(d, size=(members.size, tokens), p=profile[cluster])
    X = sp.coo_matrix((np.ones(words.size, dtype), (np.repeat(np.arange(n), tokens), words.ravel())), shape=(n, d))
    X = X.tocsr()
    X.sort_indices()
    return X, truth


def dense_counts(n, d, k, *, length=1000, seed=0):
    """Histograms of ``length`` counts as a dense table."""
    rng = np.random.default_rng(seed)
    profile = 0.8 * rng.dirichlet(np.full(d, 0.1), size=k) + 0.2 / d
    truth = rng.integers(k, size=n)
    return np.stack([rng.multinomial(length, profile[cluster]) for cluster in truth]).astype(np.float64), truth


def shared(groups, each, d, k, separation, hold, *, seed=0):
    """Spherical unit Gaussians, of which every group has ``hold`` in random shares; the closest means are
    ``separation`` apart. Also returns the group of each row."""
    rng = np.random.default_rng(seed)
    mean = centres(rng, k, d, separation)
    code = np.repeat(np.arange(groups), each)
    mine = np.argsort(rng.random((groups, k)), axis=1)[:, :hold]
    share = np.cumsum(rng.dirichlet(np.full(hold, 2.0), size=groups), axis=1)
    truth = mine[code, (rng.random(code.size)[:, None] > share[code, :-1]).sum(axis=1)]
    return mean[truth] + rng.standard_normal((code.size, d)), truth, code


def deal(truth, each, hold, *, seed=0):
    """Groups of about ``each`` rows for labelled data: every group has ``hold`` of the classes."""
    rng = np.random.default_rng(seed)
    classes, place = np.unique(truth, return_inverse=True)
    groups = max(1, truth.size // each)
    mine = np.zeros((groups, classes.size), bool)
    np.put_along_axis(mine, np.argsort(rng.random(mine.shape), axis=1)[:, :hold], True, axis=1)
    mine[rng.integers(groups), ~mine.any(axis=0)] = True
    code = np.empty(truth.size, np.intp)
    for k in range(classes.size):
        rows = np.flatnonzero(place == k)
        code[rows] = rng.choice(np.flatnonzero(mine[:, k]), rows.size)
    return code


#: name: generator, rows, columns, clusters, last argument (separation, or entries a row).
SETS = {
    "g100k-16-50": (gauss, 100_000, 16, 50, 2.0),
    "g1m-16-50": (gauss, 1_000_000, 16, 50, 2.0),
    "g1m-2-20": (gauss, 1_000_000, 2, 20, 6.0),
    "g60k-50-100": (gauss, 60_000, 50, 100, 2.0),
    "c50k-5000-50": (counts, 50_000, 5000, 50, 100),
    "c10k-500-20": (dense_counts, 10_000, 500, 20),
    "separation 1.0": (gauss, 50_000, 16, 30, 1.0),
    "separation 0.7": (gauss, 50_000, 16, 30, 0.7),
    "sizes 1:100": (unequal, 50_000, 16, 30, 2.0),
    "t3 noise": (heavy_tails, 50_000, 16, 30, 2.0),
    "1 % outliers": (with_outliers, 50_000, 16, 30, 2.0),
}
#: Quick runs prove that the code works; they say nothing about speed.
QUICK_ROWS, QUICK_CLUSTERS = 2000, 5


def make_case(name, *, quick=False, **options):
    """A named data set; small if ``quick``."""
    make, n, d, k, *rest = SETS[name]
    if quick:
        n, d, k = QUICK_ROWS, min(d, 200), min(k, QUICK_CLUSTERS)
        rest = [min(value, 20) for value in rest]
    X, truth = make(n, d, k, *rest, **options)
    return Case(name, X, truth, k)
