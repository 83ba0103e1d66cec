"""Clusters shared by groups: what it is worth to know the groups, with all penalties chosen from the data."""

import warnings

import numpy as np

from benchmarks import data
from benchmarks.measure import best_of, n_used, nmi
from benchmarks.report import Mark, Table
from benchmarks.workloads import deal, shared
from kfree import DPMeans, HDPMeans

#: Groups, rows of each, columns, clusters, separation, clusters that a group has.
PLANTED = (
    (200, 50, 8, 20, 4.0, 3),
    (200, 50, 8, 20, 2.5, 3),
    (20, 1000, 4, 10, 3.0, 3),
    (2000, 10, 4, 10, 3.0, 2),
    (50, 200, 4, 8, 5.0, 8),
)
#: Rows of a group and classes that it has, for labelled data.
DEALT = ((20, 2), (100, 3))
#: Groups up to which each is clustered for itself.
MOST_FITS = 250
HEADER = ["data (clusters)", "pooled DPMeans", "DPMeans in each group", "HDPMeans", "local clusters (true)", "seconds"]
TEXT = (
    "Cells: number of clusters and NMI against the labels; everybody with `lam='auto'`. Planted: unit Gaussians, every "
    "group has a few of the clusters. Real: labelled data whose rows are dealt into groups so that every group has a "
    "few of the classes."
)
NOTES = [
    "DPMeans in each group finds clusters that no other group shares, so their number is that of all groups together; "
    "NMI counts that against it.",
    "pendigits / 25, digits / 16, hipc_flow arcsinh(x / 150); s3, s4 and a3 are plane sets whose clusters overlap.",
]


def planted(settings):
    """Name, rows, truth and groups, one at a time."""
    for groups, each, d, k, separation, hold in PLANTED[:1] if settings.quick else PLANTED:
        X, truth, code = shared(groups // (4 if settings.quick else 1), each, d, k, separation, hold)
        yield f"{groups} x {each} rows, {d} columns, separation {separation:g}, {hold} each ({k})", X, truth, code


def real(settings):
    """The same for labelled data."""
    cases = [data.digits()]
    if not settings.quick:
        cases += [data.plane(name) for name in ("s3", "s4", "a3") if data.has("synth2d")]
        cases += [
            load() for file, load in (("pendigits", data.pendigits), ("hipc_flow", data.hipc_flow)) if data.has(file)
        ]
    for case in cases:
        for each, hold in DEALT[:1] if settings.quick else DEALT:
            code = deal(case.truth, each, hold)
            yield f"{case.name}, groups of {each}, {hold} each ({case.k})", case.X, case.truth, code


def each_alone(X, code):
    """Labels of a fit in every group."""
    labels, first = np.empty(code.size, np.intp), 0
    for group in np.unique(code):
        rows = np.flatnonzero(code == group)
        labels[rows] = first + DPMeans().fit(X[rows]).labels_
        first = labels[rows].max() + 1
    return labels


def measure(name, X, truth, code):
    """A line of the table, and how much the groups were worth."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        pooled = DPMeans().fit(X).labels_
        alone = each_alone(X, code) if np.unique(code).size <= MOST_FITS else None
        seconds, model = best_of(1, lambda: HDPMeans().fit(X, groups=code))

    def cell(labels):
        return None if labels is None else f"{n_used(labels)}, {nmi(truth, labels):.3f}"

    local = f"{model.n_local_clusters_} ({np.unique(code * (truth.max() + 1) + truth).size})"
    gain = nmi(truth, model.labels_) - nmi(truth, pooled)
    return [name, cell(pooled), cell(alone), cell(model.labels_), local, seconds], gain


def make(settings):
    """The table."""
    found = [measure(*case) for case in (*planted(settings), *real(settings))]
    gains = [gain for _, gain in found]
    marks = [Mark("NMI gained over pooled DPMeans, least", min(gains), -0.01)]
    notes = [*NOTES, f"NMI gained over pooled DPMeans, mean: {np.mean(gains):.3f}."]
    rows = [row for row, _ in found]
    return Table("hdp_quality", "Clusters shared by groups: quality", TEXT, HEADER, rows, notes, marks)
