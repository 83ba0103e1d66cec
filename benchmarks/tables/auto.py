"""``lam="auto"``: how many clusters, and how well they agree with the labels, beside rivals; and answers to noise."""

import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import silhouette_score
from sklearn.mixture import BayesianGaussianMixture

from benchmarks import how_many_sets
from benchmarks.measure import ari, best_of, n_used
from benchmarks.report import Table
from kfree import DPMeans

HEADER = [
    "data (classes)",
    "kfree",
    "rule before",
    "KMeans, best silhouette",
    "Bayesian mixture, 30",
    "HDBSCAN",
    "KMeans, true K",
    "groups with a gap",
    "seconds",
]
TEXT = (
    "Number of clusters and adjusted Rand index against the labels (cells: K, ARI). KMeans takes the best of 4 starts, "
    "by silhouette among 2 to 30 clusters or told the true K; HDBSCAN and BayesianGaussianMixture (30 components, full "
    "covariances, those that hold rows are counted) have scikit-learn's defaults. Rivals see at most 5000 rows."
)
NOTES = [
    "Rivals see counts as square roots of frequencies, reduced to 50 dimensions; rows that HDBSCAN calls noise "
    "count as one cluster of their own for ARI, not in K.",
    "The rule before counted valleys; its figures are from the commit named in benchmarks/how_many_sets.py. Constants "
    "are those of spec/how-many.md; that there are two kinds of made-up tables, and no fewer clusters than groups with "
    "a gap, was decided with these sets and controls of other seeds in view.",
]
#: Rows and columns of tables without groups, and their seeds.
CONTROLS = ((100, 3), (300, 2), (300, 10), (300, 50), (1000, 5), (1000, 20), (5000, 10))
SEEDS = (11, 12)
#: Rows that rivals see.
MOST = 5000


def dense_view(found):
    """What the rivals see."""
    if found.divergence == "sqeuclidean":
        return found.X
    total = np.asarray(found.X.sum(axis=1)).reshape(-1, 1)
    roots = sp.csr_matrix(found.X).multiply(1 / total).sqrt()
    return TruncatedSVD(min(50, found.X.shape[1] - 1), random_state=0).fit_transform(roots)


def by_silhouette(X):
    """Labels of the number of clusters whose silhouette is best."""
    best = (-2.0, None)
    for k in range(2, min(31, X.shape[0] // 3)):
        labels = KMeans(k, n_init=4, random_state=0).fit_predict(X)
        best = max(
            best, (silhouette_score(X, labels, sample_size=2000, random_state=0), labels), key=lambda pair: pair[0]
        )
    return best[1]


def by_mixture(X):
    """Labels of scikit-learn's mixture; one cluster where it fails, as it does on singular covariances."""
    mixture = BayesianGaussianMixture(n_components=min(30, X.shape[0]), random_state=0, max_iter=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            return mixture.fit_predict(X)
        except ValueError:
            return np.zeros(X.shape[0], int)


def rival_labels(X, k):
    """Labels of the rivals."""
    return [
        by_silhouette(X),
        by_mixture(X),
        HDBSCAN(copy=True).fit_predict(X),
        KMeans(k, n_init=4, random_state=0).fit_predict(X),
    ]


def cell(truth, labels):
    """Number of clusters and agreement."""
    return n_used(labels[labels >= 0]) if (labels >= 0).any() else 0, ari(truth, labels)


def measure(found, settings):
    """Cells of a line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # one cluster: the table shows it
        make = DPMeans(divergence=found.divergence, **found.options or {})
        seconds, model = best_of(1, lambda: make.fit(found.X))
    rows = slice(0, None)
    if found.X.shape[0] > MOST:
        rows = np.sort(np.random.default_rng(0).choice(found.X.shape[0], MOST, replace=False))
    truth = found.truth[rows]
    rivals = [cell(truth, labels) for labels in rival_labels(dense_view(found)[rows], np.unique(found.truth).size)]
    before = how_many_sets.BEFORE.get(found.name, (0, np.nan))
    return [cell(found.truth, model.labels_), before, *rivals], model.n_groups_, seconds


def line(name, cells, *more):
    """A line of the table."""
    return [name, *(f"{k}, {value:.2f}" for k, value in cells), *more]


def false_answers():
    """How many tables without groups are called more than one cluster, of how many."""
    found = [
        (name, n, p, DPMeans().fit(X).n_clusters_)
        for n, p in CONTROLS
        for seed in SEEDS
        for name, X in how_many_sets.without_groups(n, p, seed)
    ]
    return [one for one in found if one[-1] > 1], len(found)


def make(settings):
    """The table."""
    sets = [one for one in how_many_sets.sets() if not settings.quick or one.X.shape[0] <= 300]
    rows, agreement = [], {}
    for number, found in enumerate(sets):
        cells, groups, seconds = measure(found, settings)
        rows.append(line(f"{found.name} ({np.unique(found.truth).size})", cells, groups, seconds))
        for key in (found.kind, "half A" if number % 2 == 0 else "half B", "all"):
            agreement.setdefault(key, []).append([value for _, value in cells])
    for key, values in agreement.items():
        mean = np.nanmean(np.array(values, float), axis=0)
        rows.append([f"mean, {key} ({len(values)})", *(f"{value:.3f}" for value in mean), "", ""])
    notes = list(NOTES)
    if not settings.quick:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            wrong, made = false_answers()
        words = "; ".join(f"{name} {n} x {p}: {k}" for name, n, p, k in wrong)
        notes.append(f"Tables without groups that are called several clusters: {len(wrong)} of {made}. {words}")
    return Table("auto", "How many clusters, from the data", TEXT, HEADER, rows, notes)
