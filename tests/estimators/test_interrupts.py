"""Ctrl-C at any moment of a fit leaves a model that can be used."""

import numpy as np
import pytest
import scipy.sparse as sp

from kfree import DPMeans, HDPMeans
from support.interrupts import check_interrupts


def blobs(n, p, k, seed=0, spread=1.2):
    rng = np.random.default_rng(seed)
    return (spread * rng.normal(size=(k, p)))[rng.integers(k, size=n)] + rng.normal(size=(n, p))


def never_rises(trace):
    assert np.isfinite(trace).all()
    assert (np.diff(trace) <= 1e-9 * np.abs(trace[:-1])).all()


#: Settings of DPMeans and the rows they are tried on; each takes some tenths of a second.
FITS = {
    "batch, samples": ({"lam": 12.0}, lambda: blobs(12_000, 6, 40)),
    "batch, short": ({"lam": 6.0, "tol": 0.0}, lambda: blobs(3500, 4, 30)),
    "delayed": ({"lam": 2.5, "algorithm": "delayed"}, lambda: blobs(4000, 3, 30)),
    "serial": ({"lam": 1.0, "algorithm": "serial", "random_state": 0}, lambda: blobs(20_000, 3, 30)),
    "collapsed": ({"lam": 1.0, "algorithm": "collapsed", "random_state": 0}, lambda: blobs(3000, 3, 30)),
    "full": ({"lam": 40.0, "search": "full"}, lambda: blobs(4000, 4, 30)),
    "auto": ({}, lambda: blobs(3000, 3, 8, spread=6.0)),
    "auto, many rows": ({}, lambda: blobs(120_000, 2, 8, spread=6.0)),
    "farthest first": ({"lam": 1.5, "init": "farthest_first"}, lambda: blobs(20_000, 3, 30)),
    "k-means++": ({"lam": 1.5, "init": "k-means++", "random_state": 0, "n_init": 3}, lambda: blobs(8000, 3, 30)),
    "kl": (
        {"lam": 0.4, "divergence": "kl", "smoothing": 0.1, "search": "full"},
        lambda: np.random.default_rng(0).poisson(np.abs(blobs(500, 8, 6)) + 0.2) + np.eye(8)[np.arange(500) % 8],
    ),
    "sparse": (
        {"lam": 0.8, "divergence": "kl", "smoothing": 0.1},
        lambda: sp.csr_matrix(np.random.default_rng(0).poisson(0.3, size=(900, 60)) + np.eye(60)[np.arange(900) % 60]),
    ),
}


@pytest.mark.parametrize("name", FITS)
def test_an_interrupted_fit_of_clusters_can_be_used(name):
    settings, make = FITS[name]
    X = make()

    def check(model):
        assert np.array_equal(model.labels_, model.predict(X))
        assert np.unique(model.labels_).size == model.n_clusters_
        assert np.isfinite(model.cluster_centers_).all()
        assert np.isclose(model.objective_trace_[-1], model.objective_)
        never_rises(model.objective_trace_)

    check_interrupts(lambda: DPMeans(**settings).fit(X), check)


def test_an_interrupted_batch_of_a_stream_can_be_used():
    X = blobs(30_000, 4, 60, spread=4.0)

    def make():
        return DPMeans(30.0).partial_fit(X[:20]).partial_fit(X)

    def check(model):
        if model.labels_.size == len(X):
            assert np.array_equal(model.labels_, model.predict(X))
        assert np.isfinite(model.cluster_centers_).all()

    check_interrupts(make, check)


@pytest.mark.parametrize("search", ["points", "full", "auto"])
def test_an_interrupted_fit_of_shared_clusters_can_be_used(search):
    X, groups = blobs(1500, 3, 12, spread=3.0), np.arange(1500) % 25
    lams = {} if search == "auto" else {"lam_local": 8.0, "lam_global": 60.0}

    def check(model):
        assert np.array_equal(model.labels_, model.predict(X, groups=groups))
        assert np.isfinite(model.cluster_centers_).all()
        never_rises(model.objective_trace_)

    check_interrupts(lambda: HDPMeans(search=search, random_state=0, **lams).fit(X, groups=groups), check)
