"""Time, agreement with the truth, and the objective: the same for everybody, from labels alone."""

import warnings
from time import perf_counter

import numpy as np
import scipy.sparse as sp
from scipy.special import xlogy
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from kfree import DPMeans


def best_of(repeats, call):
    """Least seconds over some calls, and the last result."""
    least, result = np.inf, None
    for _ in range(repeats):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            start = perf_counter()
            result = call()
            least = min(least, perf_counter() - start)
    return least, result


def warm_up():
    """Load the kernels for both precisions, dense and sparse, so that no first run pays for it."""
    X = np.random.default_rng(0).poisson(3.0, size=(300, 4)) + 1.0
    for dtype in (np.float64, np.float32):
        for rows in (X.astype(dtype), sp.csr_matrix(X, dtype=dtype)):
            DPMeans(radius=1.0, divergence="kl", smoothing=0.1, max_clusters=3, tol=1.0).fit(rows).predict(rows)
            DPMeans(radius=30.0, tol=1.0).fit(rows).predict(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        DPMeans().fit(X)


def nmi(truth, labels):
    """Normalised mutual information over the rows that belong to a cluster."""
    known = truth >= 0
    return float(normalized_mutual_info_score(truth[known], labels[known]))


def ari(truth, labels):
    """Adjusted Rand index."""
    return float(adjusted_rand_score(truth, labels))


def pair_counts(truth, labels):
    """Numbers of pairs of rows together in both, in the truth, and in the labels."""
    table = sp.coo_matrix((np.ones(truth.size), (truth, labels))).tocsr()

    def pairs(sizes):
        return float((sizes * (sizes - 1)).sum() / 2)

    return pairs(table.data), pairs(np.asarray(table.sum(axis=1)).ravel()), pairs(np.asarray(table.sum(axis=0)).ravel())


def pair_f(truth, labels):
    """F-score of pairs: harmonic mean of precision and recall of "these two rows belong together"."""
    both, in_truth, in_labels = pair_counts(truth, labels)
    return 2 * both / (in_truth + in_labels)


def n_used(labels):
    """Number of clusters that hold rows."""
    return int(np.unique(labels).size)


def same_partition(a, b):
    """Whether two labellings differ only in the names of the clusters."""
    pairs = np.unique(np.stack([a, b]), axis=1).shape[1]
    return pairs == n_used(a) == n_used(b)


def _members(labels):
    """Indicator matrix (K, n) of the clusters in use."""
    _, compact = np.unique(labels, return_inverse=True)
    return sp.csr_matrix((np.ones(labels.size), (compact, np.arange(labels.size))))


def euclidean_objective(X, labels, lam):
    """Sum of squared distances to the clusters' means, plus lam for each cluster."""
    members = _members(labels)
    shifted = np.asarray(X, np.float64) - X.mean(axis=0, dtype=np.float64)
    total, size = members @ shifted, np.asarray(members.sum(axis=1)).ravel()
    return float((shifted**2).sum() - ((total**2).sum(axis=1) / size).sum() + lam * size.size)


def kl_objective(X, labels, lam, smoothing):
    """The same for histograms: KL divergences, ``smoothing`` pseudo-rows at the mean in each cluster, and lam."""
    members = _members(labels)
    hist = sp.diags(1 / np.asarray(X.sum(axis=1)).ravel()) @ sp.csr_matrix(X, dtype=np.float64)
    prior = np.asarray(hist.mean(axis=0)).ravel()
    size = np.asarray(members.sum(axis=1)).ravel() + smoothing
    mean = ((members @ hist).toarray() + smoothing * prior) / size[:, None]
    own = xlogy(hist.data, hist.data).sum() + size.size * smoothing * xlogy(prior, prior).sum()
    return float(own - (size * xlogy(mean, mean).sum(axis=1)).sum() + lam * size.size)
