"""One assignment of all rows to the nearest of K centres."""

import numpy as np

from benchmarks.measure import best_of
from benchmarks.report import Mark, Table
from benchmarks.rivals import lloyd_step
from benchmarks.tables.convergence import DENSE
from benchmarks.workloads import make_case
from kfree import DPMeans
from kfree.inference.clusters.assign import assign, nearest
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.table import make_memory
from kfree.models.clusters import LocalProblem
from kfree.rows import set_span_threads

HEADER = [
    "data",
    "type",
    "E-step ms",
    "Lloyd's ms",
    "times",
    "whole pass ms",
    "Lloyd's ms",
    "times",
    "with bounds ms",
    "times",
    "predict ms",
]
TEXT = (
    "One assignment pass with the true centres, beside scikit-learn's compiled Lloyd step (the loop inside "
    "KMeans). E-step: labels only. Whole pass: labels, costs, sums of the clusters and, for kfree, the bounds that "
    "the next pass uses. With bounds: the pass after that, in which rows that cannot change are skipped. `predict` "
    "also checks the input. Least of several calls."
)


def centres_of(case):
    """The true means."""
    return np.stack([case.X[case.truth == k].mean(axis=0, dtype=np.float64) for k in range(case.k)])


def e_step(table, centres):
    """A call that finds the nearest centre of every row, span by span."""
    labels = np.empty(table.n, np.int32)

    def of_span(span):
        labels[span] = nearest(table, np.arange(span.start, span.stop), centres)[0].labels

    def call():
        for _ in table.rows.each(of_span):
            pass
        return labels

    return call


def measure(case, settings):
    """A line of the table."""
    repeats = 2 if settings.quick else 10
    mean = centres_of(case)
    problem = LocalProblem.of(case.X, None, "sqeuclidean", "none", 0.0, None)
    table, memory = problem.table, make_memory(case.X.shape[0])
    centres = Centres(table.geometry, mean - problem.shift)

    def whole_pass():
        memory.low[:] = -np.inf
        return assign(table, centres, memory)

    with set_span_threads():
        mine, labels = best_of(repeats, e_step(table, centres))
        whole, _ = best_of(repeats, whole_pass)
        bounded, _ = best_of(repeats, lambda: assign(table, centres, memory))
    model = DPMeans(radius=1e300, init=mean, tol=1.0).fit(case.X[:1000])
    predict, _ = best_of(repeats, lambda: model.predict(case.X))
    theirs, lloyd = best_of(repeats, lloyd_step(case.X, mean, update=False))
    assert (labels != lloyd).mean() < 1e-4, "the two passes disagree"
    both, _ = best_of(repeats, lloyd_step(case.X, mean, update=True))
    ms = [1e3 * value for value in (mine, theirs, whole, both, bounded, predict)]
    name = f"{case.name}, {case.k} centres"
    return [
        name,
        case.X.dtype.name,
        ms[0],
        ms[1],
        ms[1] / ms[0],
        ms[2],
        ms[3],
        ms[3] / ms[2],
        ms[4],
        ms[3] / ms[4],
        ms[5],
    ]


def make(settings):
    """The table."""
    rows = [
        measure(make_case(name, quick=settings.quick, dtype=dtype), settings)
        for name in DENSE
        for dtype in (np.float64, np.float32)
    ]
    marks = [
        Mark("times Lloyd's E-step, least", min(row[4] for row in rows), 1.0),
        Mark("times Lloyd's E-step, best", max(row[4] for row in rows), 2.0),
    ]
    return Table("passes", "One assignment pass", TEXT, HEADER, rows, marks=marks)
