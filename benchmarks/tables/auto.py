"""``lam="auto"``: how many clusters, and how well they agree with the labels, beside three rivals."""

import warnings

import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture

from benchmarks import data
from benchmarks.measure import ari, best_of, n_used
from benchmarks.report import Table
from benchmarks.workloads import Case
from kfree import DPMeans

HEADER = [
    "data (classes)",
    "divergence",
    "groups seen",
    "kfree auto",
    "KMeans, true K",
    "HDBSCAN",
    "Bayesian mixture, 30",
    "auto seconds",
]
TEXT = (
    "Number of clusters and adjusted Rand index against the labels (cells: K, ARI). KMeans is told the true K and "
    "takes the best of 10 starts; HDBSCAN and BayesianGaussianMixture (30 components, full covariances, those that "
    "hold rows are counted) have scikit-learn's defaults. A star marks where auto is wrong by more than a quarter "
    "in K."
)
NOTES = [
    "Rivals see counts as square roots of frequencies, reduced to 50 dimensions; rows that HDBSCAN calls noise "
    "count as one cluster of their own for ARI, not in K.",
    "pendigits / 25, digits / 16, hipc_flow arcsinh(x / 150), scRNA: the 500 most variable genes, KL with smoothing 1.",
    "scRNA hangs on the choice of genes: ranked by the variance of log counts of equal depth (here), of log raw "
    "counts, of raw counts or of counts of equal depth, KL gave ARI 1.00, 0.68, 0.68, 0.65. Poisson on raw counts "
    "sees the depth of the cells, which differs 20-fold; equal depth: rows scaled to the median total.",
]


def dense_view(X, divergence):
    """What the rivals see."""
    if divergence == "sqeuclidean":
        return X
    roots = np.sqrt(X / X.sum(axis=1, keepdims=True))
    return TruncatedSVD(min(50, X.shape[1] - 1), random_state=0).fit_transform(roots)


def rival_labels(X, k):
    """Labels of the three rivals."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture = BayesianGaussianMixture(n_components=30, random_state=0, max_iter=200).fit_predict(X)
    return [KMeans(k, n_init=10, random_state=0).fit_predict(X), HDBSCAN(copy=True).fit_predict(X), mixture]


def cell(truth, labels):
    """Number of clusters and agreement."""
    return f"{n_used(labels[labels >= 0]) if (labels >= 0).any() else 0}, {ari(truth, labels):.2f}"


def cases(settings):
    """Data, divergence and options, one at a time."""
    if data.has("synth2d"):
        for name in data.PLANE[:2] if settings.quick else data.PLANE:
            yield data.plane(name), "sqeuclidean", {}
    yield data.digits(), "sqeuclidean", {}
    if settings.quick:
        return
    for file, load in (("pendigits", data.pendigits), ("hipc_flow", data.hipc_flow)):
        if data.has(file):
            yield load(), "sqeuclidean", {}
    if data.has("scrna_5lines"):
        yield data.scrna(), "kl", {"smoothing": 1.0}
        cells = data.scrna()
        yield cells, "poisson", {}
        yield cells._replace(name="scrna_5lines, equal depth", X=data.equal_depth(cells.X)), "poisson", {}


def measure(case, divergence, options, settings):
    """A line of the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # one cluster: the table shows it
        seconds, model = best_of(1, lambda: DPMeans(divergence=divergence, **options).fit(case.X))
    wrong = abs(model.n_clusters_ - case.k) > case.k / 4
    mine = cell(case.truth, model.labels_) + (" *" if wrong else "")
    rivals = [cell(case.truth, labels) for labels in rival_labels(dense_view(case.X, divergence), case.k)]
    return [f"{case.name} ({case.k})", divergence, model.n_groups_, mine, *rivals, seconds]


def make(settings):
    """The table."""
    rows = []
    for case, divergence, options in cases(settings):
        part = slice(500 if settings.quick else None)
        case = Case(case.name, case.X[part], case.truth[part], case.k)
        rows.append(measure(case, divergence, options, settings))
    missing = [name for name in ("synth2d", "pendigits", "hipc_flow", "scrna_5lines") if not data.has(name)]
    notes = [*NOTES, f"Data not found: {', '.join(missing)}."] if missing else NOTES
    return Table("auto", "lam chosen from the data", TEXT, HEADER, rows, notes)
