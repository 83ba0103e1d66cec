"""A stream in batches: partial_fit against MiniBatchDPMeans."""

from benchmarks.measure import best_of, euclidean_objective, n_used, nmi
from benchmarks.report import Mark, Table, ratio
from benchmarks.rivals import Run, pdc_stream
from benchmarks.workloads import lambda_for, make_case
from kfree import DPMeans

SETS = ("g1m-16-50", "g1m-2-20")
HEADER = ["data", "who", "seconds", "times kfree's", "K", "NMI", "objective / kfree's"]
TEXT = (
    "`partial_fit` over all rows once, in batches of 10 000, beside the MiniBatchDPMeans of pdc-dp-means at the "
    "same radius. NMI and objective are those of all rows under the final centres."
)


def stream(X, lam, batch, settings):
    """The stream through kfree."""

    def call():
        model = DPMeans(radius=lam)
        for first in range(0, X.shape[0], batch):
            model.partial_fit(X[first : first + batch])
        return model

    seconds, model = best_of(settings.repeats, call)
    return Run(seconds, model.predict(X), X.shape[0] // batch)


def measure(case, settings):
    """Lines of one data set."""
    batch = 200 if settings.quick else 10_000
    lam = lambda_for(case.X, case.k)
    mine = stream(case.X, lam, batch, settings)
    runs = {"kfree": mine, "MiniBatchDPMeans": pdc_stream(case.X, lam, batch, settings)}
    least = euclidean_objective(case.X, mine.labels, lam)
    return [
        [
            f"{case.name} ({case.k})" if run is mine else "",
            who,
            run.seconds,
            ratio(run.seconds, mine.seconds),
            n_used(run.labels),
            nmi(case.truth, run.labels),
            euclidean_objective(case.X, run.labels, lam) / least,
        ]
        for who, run in runs.items()
        if run is not None
    ]


def make(settings):
    """The table."""
    groups = [measure(make_case(name, quick=settings.quick), settings) for name in SETS]
    rows = [row for group in groups for row in group]
    pairs = [group for group in groups if len(group) == 2]
    marks = []
    if pairs:
        marks = [
            Mark("times faster than MiniBatchDPMeans, least", min(theirs[3] for _, theirs in pairs), 1.0),
            Mark("NMI minus its own, least", min(mine[5] - theirs[5] for mine, theirs in pairs), 0.0),
        ]
    return Table("stream", "Learning from a stream", TEXT, HEADER, rows, marks=marks)
