"""Separated clusters, fitted to convergence: kfree, pdc-dp-means, and KMeans that is told K."""

import numpy as np
import scipy.sparse as sp

from benchmarks.measure import best_of, euclidean_objective, kl_objective, n_used, nmi
from benchmarks.report import Mark, Table, ratio
from benchmarks.rivals import MAX_ITER, Run, kmeans, pdc_fit
from benchmarks.workloads import lambda_for, make_case
from kfree import DPMeans, radius_for_k

DENSE = ("g100k-16-50", "g1m-16-50", "g1m-2-20", "g60k-50-100")
SPARSE = "c50k-5000-50"
SMOOTHING = 1.0
TRUTH = "the true clusters"
LOWEST = "kfree, full search"
HEADER = ["data", "type", "who", "seconds", "times kfree's", "passes", "K", "NMI", "objective / kfree's"]
TEXT = (
    "Time to convergence at the same radius (0.7 x farthest-first at the true K), `DPMeans` with its defaults beside "
    "pdc-dp-means 0.0.8 and scikit-learn's KMeans that is told the true K (n_init=1). Least of three runs. Objective: "
    "divergences from the clusters' own means plus radius times K, computed from the labels in the same way for all."
)
NOTES = [
    "Sparse counts: KL divergence with smoothing 1, KMeans on square roots of frequencies (also sparse); "
    "pdc-dp-means has neither KL nor sparse input. The objective is the KL one for both. When this table was set "
    "up, smoothing 0.2 did not end within 100 s (K 172, NMI 0.946) and 5 gave K 50, NMI 0.996.",
    "The objective is not what tells good clusters here: with thousands of rows in each, to cut a true cluster in two "
    "saves far more than the radius. Where pdc-dp-means has more clusters than there are, its objective may be below "
    "that of the truth: who wants the lowest objective rather than the clusters asks for `search='full'`, stopped here "
    "after half of the time that pdc-dp-means took (`max_time`).",
    "pdc-dp-means starts from one random row, as in its own example; its published wheel fails in every pass to "
    "relocate empty clusters and goes on, the messages are switched off.",
]


def fit(X, lam, settings, **options):
    """A fit by kfree."""
    seconds, model = best_of(settings.repeats, lambda: DPMeans(radius=lam, max_iter=MAX_ITER, **options).fit(X))
    return Run(seconds, model.labels_, model.n_iter_)


def compare(case, runs, objective):
    """A line for each clusterer; kfree comes first."""
    mine = runs["kfree"]
    least = objective(mine.labels)
    return [
        [
            f"{case.name} ({case.k})" if who == "kfree" else "",
            case.X.dtype.name if who == "kfree" else "",
            who,
            run.seconds,
            ratio(run.seconds, mine.seconds),
            run.n_iter,
            n_used(run.labels),
            nmi(case.truth, run.labels),
            objective(run.labels) / least,
        ]
        for who, run in runs.items()
        if run is not None
    ]


def dense_lines(case, lam, settings, *, truth=False):
    """Squared Euclidean distance: all three, and the true clusters beside them if wanted."""
    runs = {
        "kfree": fit(case.X, lam, settings),
        "pdc-dp-means": pdc_fit(case.X, lam, settings),
        "KMeans, true K": kmeans(case.X, case.k, settings),
    }

    def objective(labels):
        return euclidean_objective(case.X, labels, lam)

    pdc = runs["pdc-dp-means"]
    if truth and pdc and objective(pdc.labels) < (1 - 1e-5) * objective(runs["kfree"].labels):
        runs[LOWEST] = fit(case.X, lam, settings._replace(repeats=1), search="full", max_time=pdc.seconds / 2)
    if truth:
        runs[TRUTH] = Run(None, case.truth, None)
    return compare(case, runs, objective)


def sparse_lines(case, settings):
    """KL divergence of sparse histograms."""
    options = {"divergence": "kl", "smoothing": SMOOTHING}
    lam = 0.7 * radius_for_k(case.X[:20_000], case.k, **options)
    roots = sp.diags(1 / np.asarray(case.X.sum(axis=1)).ravel()) @ case.X
    roots = roots.sqrt().astype(case.X.dtype)
    runs = {"kfree": fit(case.X, lam, settings, **options), "KMeans, true K": kmeans(roots, case.k, settings)}
    return compare(case, runs, lambda labels: kl_objective(case.X, labels, lam, SMOOTHING))


def marks(rows):
    """The promises, each in its worst case over the sets."""
    found = []
    for who, promised in (("pdc-dp-means", 10.0), ("KMeans, true K", 2.0)):
        theirs = [(row, position) for position, row in enumerate(rows) if row[2] == who]
        if not theirs:
            continue
        mine = [max(p for p in range(position + 1) if rows[p][2] == "kfree") for _, position in theirs]
        gaps = [rows[m][7] - row[7] for m, (row, _) in zip(mine, theirs)]
        found += [
            Mark(f"times faster than {who}, least", min(row[4] for row, _ in theirs), promised),
            Mark(f"NMI minus that of {who}, least", round(min(gaps), 4), 0.0),
        ]
        # more clusters lower the objective by cutting true ones in two: nothing to be beaten by
        alike = [row[8] for m, (row, _) in zip(mine, theirs) if row[6] <= rows[m][6]]
        if alike:
            found.append(Mark(f"objective of {who} over kfree's, no more clusters, least", round(min(alike), 5), 1.0))
    lower = [pair[0][8] / pair[1][8] for pair in _both(rows, "pdc-dp-means", LOWEST)]
    if lower:
        found.append(Mark(f"objective of pdc-dp-means over that of {LOWEST}, least", round(min(lower), 5), 1.0))
    truth = min(row[8] for row in rows if row[2] == TRUTH)
    return [*found, Mark(f"objective of {TRUTH} over kfree's, least", round(truth, 5), 1.0)]


def _both(rows, who, other):
    """Lines of two clusterers for the sets that both have, in pairs."""
    sets = np.cumsum([row[2] == "kfree" for row in rows])
    lines = {(number, row[2]): row for number, row in zip(sets, rows)}
    return [(lines[number, who], lines[number, other]) for number in np.unique(sets) if (number, other) in lines]


def make(settings):
    """The table."""
    rows = []
    for name in DENSE:
        for dtype in (np.float64, np.float32):
            case = make_case(name, quick=settings.quick, dtype=dtype)
            rows += dense_lines(case, lambda_for(case.X, case.k), settings, truth=True)
    for dtype in (np.float64, np.float32):
        rows += sparse_lines(make_case(SPARSE, quick=settings.quick, dtype=dtype), settings)
    return Table("convergence", "Fit to convergence, separated clusters", TEXT, HEADER, rows, NOTES, marks(rows))
