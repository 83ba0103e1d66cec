"""Assignment of sparse histograms by KL divergence, against scipy's product and argmax."""

import numpy as np
import scipy.sparse as sp

from benchmarks.measure import best_of
from benchmarks.report import Mark, Table
from benchmarks.rivals import scipy_nearest
from benchmarks.tables.convergence import SMOOTHING, SPARSE
from benchmarks.tables.passes import e_step
from benchmarks.workloads import make_case
from kfree import DPMeans
from kfree.inference.clusters.centres import Centres
from kfree.models.clusters import LocalProblem
from kfree.rows import set_span_threads

HEADER = ["data", "type", "kfree ms", "scipy ms", "times", "predict ms", "times"]
TEXT = (
    "Sparse histograms to the nearest of K centres by KL divergence. scipy: the product of the CSR matrix with the "
    "logarithms of the centres, then argmax. kfree: the same labels on prepared rows, with the second-best cost "
    "and the error bound that makes them exact; and `predict`, which checks and prepares the rows as well."
)


def smoothed_means(case):
    """Mean histogram of each true cluster, with the pseudo-rows that keep it positive."""
    hist = sp.diags(1 / np.asarray(case.X.sum(axis=1)).ravel()) @ case.X
    prior = np.asarray(hist.mean(axis=0)).ravel()
    groups = [hist[case.truth == k] for k in range(case.k)]
    means = [(np.asarray(g.sum(axis=0)).ravel() + SMOOTHING * prior) / (g.shape[0] + SMOOTHING) for g in groups]
    return hist.tocsr().astype(case.X.dtype), np.stack(means)


def measure(case, settings):
    """A line of the table."""
    repeats = 2 if settings.quick else 5
    hist, mean = smoothed_means(case)
    seen = mean.sum(axis=0) > 0
    case, hist, mean = case._replace(X=case.X[:, seen]), hist[:, seen], np.ascontiguousarray(mean[:, seen], np.float64)
    table = LocalProblem.of(case.X, None, "kl", "none", SMOOTHING, None).table
    with set_span_threads():
        mine, labels = best_of(repeats, e_step(table, Centres(table.geometry, mean)))
    theirs, scipys = best_of(repeats, scipy_nearest(hist, np.log(mean).astype(case.X.dtype), 0.0))
    assert (labels != scipys).mean() < 1e-4, "the two assignments disagree"
    model = DPMeans(radius=1e300, divergence="kl", smoothing=SMOOTHING, init=mean, tol=1.0).fit(case.X)
    predict, _ = best_of(repeats, lambda: model.predict(case.X))
    name = f"{case.name}, {case.k} centres"
    return [name, case.X.dtype.name, 1e3 * mine, 1e3 * theirs, theirs / mine, 1e3 * predict, theirs / predict]


def make(settings):
    """The table."""
    rows = [
        measure(make_case(SPARSE, quick=settings.quick, dtype=dtype), settings) for dtype in (np.float64, np.float32)
    ]
    mark = Mark("times faster than scipy, least", min(row[4] for row in rows), 2.5)
    return Table("sparse", "Sparse KL assignment", TEXT, HEADER, rows, marks=[mark])
