"""The papers' sweep in blocks, against the same sweep compiled one row at a time."""

import numpy as np

from benchmarks.measure import best_of, n_used, nmi, same_partition
from benchmarks.report import Mark, Table
from benchmarks.rivals import MAX_ITER, serial_loop
from benchmarks.workloads import lambda_for, make_case
from kfree import DPMeans

SETS = ("g100k-16-50", "g60k-50-100")
HEADER = ["data", "passes", "K", "NMI", "kfree seconds", "loop seconds", "times"]
TEXT = (
    "`algorithm='serial'`, rows in the order given, to the fixed point (tol=0), beside a numba loop that does the "
    "same one row at a time. Both visit the rows in the same order and must give the same partition; the run stops "
    "with an error if they do not."
)


def measure(case, settings):
    """A line of the table."""
    lam = lambda_for(case.X, case.k)
    model = DPMeans(radius=lam, algorithm="serial", order="index", tol=0.0, max_iter=MAX_ITER)
    serial_loop(case.X[:100].astype(np.float64), lam)  # compiles it
    mine, fitted = best_of(settings.repeats, lambda: model.fit(case.X))
    theirs, (labels, n_iter) = best_of(1, lambda: serial_loop(case.X, lam))
    if not same_partition(fitted.labels_, labels):
        raise AssertionError(f"{case.name}: serial and the one-row loop disagree")
    return [f"{case.name} ({case.k})", n_iter, n_used(labels), nmi(case.truth, labels), mine, theirs, theirs / mine]


def make(settings):
    """The table."""
    rows = [measure(make_case(name, quick=settings.quick), settings) for name in SETS]
    mark = Mark("times faster than one row at a time, least", min(row[6] for row in rows), 10.0)
    return Table("serial", "Serial sweep", TEXT, HEADER, rows, marks=[mark])
