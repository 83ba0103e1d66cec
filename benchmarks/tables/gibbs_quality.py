"""GibbsDPMixture on real tables: what more sweeps bring, beside DPMeans and VariationalDPMixture."""

import warnings
from time import perf_counter

import numpy as np
from sklearn.mixture import BayesianGaussianMixture

from benchmarks import data
from benchmarks.measure import n_used, nmi
from benchmarks.report import Table
from kfree import DPMeans, GibbsDPMixture, VariationalDPMixture

HEADER = ["data", "who", "seconds", "K", "NMI", "held-out log-density", "R-hat of K", "R-hat of log posterior"]
TEXT = (
    "At most 2000 rows. Samplers have two chains and at most a minute; half of their sweeps are burn-in (if the time "
    "was up before its end, last states stand for samples). NMI is with the classes, of the rows fitted; the "
    "log-density is that of at most 500 rows held out (nats a row, mean over samples). R-hat above 1.1 says that the "
    "chains have not met: the figures then are those of where the chains came to, not of the posterior."
)
NOTES = [
    "VariationalDPMixture learns its prior, GibbsDPMixture has the fixed one unless told otherwise (`prior='learn'`): "
    "their densities differ by the prior as well as by the method.",
    "Where R-hat of the log posterior grows with the sweeps, nothing suggests that longer chains would mix. Chains of "
    "an hour were not run.",
]
SWEEPS = {"gaussian": (20, 100, 500), "multinomial": (20, 100)}
MOST_SECONDS = 60.0


def cut(X, truth, n, seed=0):
    """n rows to fit, their classes, and 500 others."""
    order = np.random.default_rng(seed).permutation(X.shape[0])
    seen, fresh = order[:n], order[n : n + 500]
    return X[seen], None if truth is None else truth[seen], X[fresh]


def velocities():
    """Rows like the velocities of 82 galaxies that mixtures are often tried on: a few far groups, a broad middle."""
    rng = np.random.default_rng(0)
    part = rng.choice(4, size=582, p=[0.09, 0.48, 0.39, 0.04])
    return rng.normal(np.array([9.7, 20.0, 23.0, 33.0])[part], np.array([0.4, 0.8, 1.3, 0.9])[part])[:, None]


def sets(quick):
    """Name, family, divergence, rows, classes, held-out rows."""
    X = data.faithful().X
    yield "faithful", "gaussian", "sqeuclidean", *cut(X, None, 200)
    yield "velocities, generated", "gaussian", "sqeuclidean", *cut(velocities(), None, 82)
    case = data.pendigits()
    yield "pendigits", "gaussian", "sqeuclidean", *cut(case.X, case.truth, 200 if quick else 2000)
    if quick:
        return
    case = data.scrna()
    yield "scrna_5lines, 500 genes", "multinomial", "kl", *cut(case.X, case.truth, 471)
    yield "kos, 500 documents", "multinomial", "kl", *cut(data.kos(), None, 500)


class Labelled:
    """A mixture of scikit-learn with labels."""

    def __init__(self, model):
        self.model = model
        self.score_samples, self.predict_proba = model.score_samples, model.predict_proba

    def fit(self, X):
        """Fit, and label the rows."""
        self.labels_ = self.model.fit(X).predict(X)


def line(name, who, model, X, truth, fresh):
    """Time and quality of one model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = perf_counter()
        model.fit(X)
        seconds = perf_counter() - start
    density = float(np.mean(model.score_samples(fresh))) if hasattr(model, "predict_proba") else None
    rhats = [model.diagnostics_[key].rhat for key in ("n_clusters", "log_posterior")] if "Gibbs" in who else [None] * 2
    labels = model.labels_
    who = f"{who}, {model.n_iter_} made" if "Gibbs" in who else who
    return [name, who, seconds, n_used(labels), None if truth is None else nmi(truth, labels), density, *rhats]


def make(settings):
    """The table."""
    rows = []
    if data.has("faithful", "pendigits", "scrna_5lines", "kos"):
        for name, family, divergence, X, truth, fresh in sets(settings.quick):
            smoothing = {"smoothing": 0.1} if divergence == "kl" else {}
            rows.append(line(name, "DPMeans", DPMeans(divergence=divergence, **smoothing), X, truth, fresh))
            if X.shape[0] <= 200:
                rival = BayesianGaussianMixture(n_components=10, max_iter=1000, random_state=0)
                rows.append(line(name, "BayesianGaussianMixture, at most 10", Labelled(rival), X, truth, fresh))
            rows.append(line(name, "VariationalDPMixture", VariationalDPMixture(family=family), X, truth, fresh))
            for sweeps in SWEEPS[family][:1] if settings.quick else SWEEPS[family]:
                model = GibbsDPMixture(
                    family=family, n_samples=sweeps // 2, burn_in=sweeps // 2, max_time=MOST_SECONDS, random_state=0
                )
                rows.append(line(name, f"Gibbs, {sweeps} sweeps", model, X, truth, fresh))
    return Table("gibbs_quality", "Gibbs sampling of mixtures: quality against time", TEXT, HEADER, rows, NOTES)
