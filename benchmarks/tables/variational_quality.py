"""VariationalDPMixture on real data: density of rows not seen, and agreement with the classes."""

import numpy as np

from benchmarks import data
from benchmarks.measure import ari, best_of
from benchmarks.mixtures import by_bic, fit_truncated
from benchmarks.report import Table
from kfree import VariationalDPMixture

HEADER = ["data", "who", "seconds", "K", "held-out log-density", "ARI with the classes"]
TEXT = (
    "Two thirds of the rows (at most 20 000) for the fit, the rest (at most 10 000) held out. kfree's VDP and Fast-VDP "
    "choose K; so does scikit-learn's BayesianGaussianMixture below T = 20; GaussianMixture is fitted with 1, 2, 4, 8, "
    "12, 16 and 20 components, of which BIC chooses, and all these fits count in its time. Densities are in nats a "
    "row, higher is better."
)
SETS = ("hipc_flow", "skin", "shuttle", "pendigits")


def parts(case, quick):
    """Rows for the fit, and held-out rows with their classes."""
    order = np.random.default_rng(0).permutation(case.X.shape[0])
    order = order[:600] if quick else order
    seen = min(2 * order.size // 3, 20_000)
    rest = order[seen : seen + 10_000]
    return np.asarray(case.X[order[:seen]], float), np.asarray(case.X[rest], float), case.truth[rest]


def fitted(X, rivals):
    """Name, seconds and model of everybody."""
    for name, how in (("kfree, VDP", None), ("kfree, Fast-VDP", "tree")):
        seconds, model = best_of(1, lambda how=how: VariationalDPMixture(accelerate=how).fit(X))
        yield name, seconds, model, model.n_components_
    if rivals:
        seconds, model = fit_truncated(X)
        yield "BayesianGaussianMixture", seconds, model, int(np.unique(model.predict(X)).size)
        seconds, model = best_of(1, lambda: by_bic(X))
        yield "GaussianMixture, BIC", seconds, model, model.n_components


def make(settings):
    """The table."""
    rows = []
    for name in SETS:
        if not data.has(name):
            continue
        X, held_out, truth = parts(getattr(data, name)(), settings.quick)
        for who, seconds, model, k in fitted(X, settings.rivals):
            rows.append([name, who, seconds, k, float(model.score(held_out)), ari(truth, model.predict(held_out))])
    notes = [where_lost(rows)] if settings.rivals else []
    return Table("variational_quality", "Variational mixtures on real data", TEXT, HEADER, rows, notes)


def where_lost(rows):
    """The sets on which a rival is better, in words."""
    lost = []
    for name in dict.fromkeys(row[0] for row in rows):
        group = [row for row in rows if row[0] == name]
        mine, theirs = [row for row in group if row[1].startswith("kfree")], group[2:]
        for column, what in ((4, "density"), (5, "ARI")):
            best = max(theirs, key=lambda row: row[column])
            if best[column] > max(row[column] for row in mine):
                lost.append(f"{name}, {what}: {best[1]}")
    return "We lose: " + ("; ".join(lost) if lost else "nowhere here") + "."
