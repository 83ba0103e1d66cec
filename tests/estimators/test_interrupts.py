"""Ctrl-C at any moment of a fit leaves a model that fits together and can be used."""

import os
import subprocess
import sys
from contextlib import nullcontext
from copy import deepcopy

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from kfree import (
    BPMeans,
    DPMeans,
    HDPMeans,
    HDPTopics,
    KFeatures,
    StepwiseKFeatures,
    VariationalDPMixture,
    lam_for_n_components,
    lam_path,
)
from kfree.inference.clusters import batch
from kfree.models import clusters as models_clusters
from support.interrupts import LOOKING, check_lines, check_signals, sigint_after
from support.small_corpora import planted

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals differ")


def clouds(n, p, k, gap=1.2, seed=0):
    rng = np.random.default_rng([seed, n, p])
    return (gap * rng.normal(size=(k, p)))[rng.integers(k, size=n)] + rng.normal(size=(n, p))


def counts(n, p, k, mean=30, seed=0):
    rng = np.random.default_rng([seed, n, p])
    kinds = rng.dirichlet(np.full(p, 0.3), k)
    return rng.poisson(mean * kinds[rng.integers(k, size=n)]) + np.eye(p)[np.arange(n) % p]


def features(n, p, K, noise=0.5):
    rng = np.random.default_rng(0)
    return rng.integers(2, size=(n, K)) @ (3 * rng.normal(size=(K, p))) + noise * rng.normal(size=(n, p))


def never_rises(trace, scale=0.0):
    assert len(trace) >= 1
    assert np.isfinite(trace).all()
    assert (np.diff(trace) <= 1e-9 * (np.abs(trace[:-1]) + scale)).all()


# Clusters


def check_clusters(model, X, **groups):
    assert_array_equal(model.labels_, model.predict(X, **groups))
    assert np.unique(model.labels_).size == model.n_clusters_
    assert np.isfinite(model.cluster_centers_).all()
    assert_allclose(model.objective_trace_[-1], model.objective_)
    never_rises(model.objective_trace_)


#: A model, its rows for signals, and some few for interrupts at lines.
CLUSTERS = {
    "samples": (DPMeans(radius=12.0), clouds(12_000, 6, 40), clouds(4200, 3, 12)),
    "short": (DPMeans(radius=6.0, tol=0.0), clouds(3500, 4, 30), clouds(300, 2, 8)),
    "delayed": (DPMeans(radius=2.5, algorithm="delayed"), clouds(4000, 3, 30), clouds(60, 2, 4)),
    "serial": (DPMeans(radius=1.0, algorithm="serial", random_state=0), clouds(10_000, 3, 30), clouds(100, 2, 4)),
    "collapsed": (DPMeans(radius=1.0, algorithm="collapsed", random_state=0), clouds(2000, 3, 30), clouds(60, 2, 4)),
    "full": (DPMeans(radius=40.0, search="full"), clouds(4000, 4, 30), clouds(200, 2, 5)),
    "price": (DPMeans(lam=300.0), clouds(3000, 3, 12, 2.0), clouds(200, 2, 5)),
    "number": (DPMeans(n_clusters=12), clouds(3000, 3, 12, 2.0), clouds(200, 2, 5)),
    "auto": (DPMeans(), clouds(3000, 3, 8, 6.0), clouds(200, 2, 4, 6.0)),
    "auto, many rows": (DPMeans(), clouds(110_000, 2, 6, 6.0), None),
    "farthest first": (DPMeans(radius=1.5, init="farthest_first"), clouds(10_000, 3, 30), clouds(200, 2, 5)),
    "k-means++": (
        DPMeans(radius=1.5, init="k-means++", random_state=0, n_init=3),
        clouds(6000, 3, 30),
        clouds(200, 2, 5),
    ),
    "kl": (DPMeans(radius=0.4, divergence="kl", smoothing=0.1, search="full"), counts(500, 8, 6), counts(60, 5, 3)),
    "sparse": (DPMeans(radius=0.8, divergence="kl", smoothing=0.1), sp.csr_matrix(counts(900, 60, 6)), None),
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_signal_at_any_time_leaves_clusters(name):
    model, X, _ = CLUSTERS[name]
    least = 0 if model.radius is None else 1  # nearly all the time how many there are is looked for
    check_signals(lambda: clone(model).fit(X), lambda model: check_clusters(model, X), least=least)


@pytest.mark.parametrize("name", [name for name, (_, _, few) in CLUSTERS.items() if few is not None])
def test_an_interrupt_at_any_line_leaves_clusters(name):
    model, _, X = CLUSTERS[name]
    kept = check_lines(lambda: clone(model).fit(X), lambda model: check_clusters(model, X))
    if model.radius is not None:
        assert kept > 10
    else:  # most lines are those that look for how many there are, which leave nothing; those after them are kept
        assert check_lines(lambda: clone(model).fit(X), lambda model: check_clusters(model, X), skip=LOOKING) > 0


@pytest.mark.parametrize("place", ["apply_moves", "merge_halves"])
@pytest.mark.parametrize("n", [3000, 12_000])  # all rows at once, and on samples
def test_what_was_grown_before_an_interrupt_is_kept(place, n, monkeypatch):
    X = clouds(n, 4, 20, 6.0)
    whole = DPMeans(radius=40.0).fit(X).n_clusters_

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(batch, place, interrupted)
    with pytest.warns(match="interrupted") if place != "merge_halves" or n > 3000 else nullcontext():
        model = DPMeans(radius=40.0).fit(X)
    assert model.n_clusters_ > 0.6 * whole
    check_clusters(model, X)


def test_a_second_fit_that_is_interrupted_leaves_the_first(monkeypatch):
    X, fits, original = clouds(300, 2, 6), [], models_clusters.fit

    def interrupted(*args):
        fits.append(original(*args))
        if len(fits) == 2:
            raise KeyboardInterrupt
        return fits[-1]

    monkeypatch.setattr(models_clusters, "fit", interrupted)
    with pytest.warns(match="interrupted"):
        model = DPMeans(radius=2.0, init="k-means++", n_init=3, random_state=0).fit(X)
    assert_array_equal(model.labels_, fits[0].labels)


def test_a_signal_in_a_batch_of_a_stream_leaves_clusters():
    X = clouds(30_000, 4, 60, 4.0)

    def check(model):
        assert np.isfinite(model.cluster_centers_).all()
        if model.labels_.size == len(X):
            assert_array_equal(model.labels_, model.predict(X))

    check_signals(lambda: DPMeans(radius=30.0).partial_fit(X[:20]).partial_fit(X), check)
    few = X[:400]
    check_lines(lambda: DPMeans(radius=30.0).partial_fit(few[:20]).partial_fit(few), lambda model: model.predict(few))


@pytest.mark.parametrize("search", ["points", "full", "auto"])
def test_an_interrupt_leaves_shared_clusters(search):
    lams = {} if search == "auto" else {"lam_local": 8.0, "lam_global": 60.0}
    for n, check in ((1500, check_signals), (120, check_lines)):
        X, groups = clouds(n, 3, 12, 3.0), np.arange(n) % 9
        fit = lambda X=X, groups=groups: HDPMeans(search=search, random_state=0, **lams).fit(X, groups=groups)  # noqa: E731
        least = {"least": 0} if check is check_signals and search != "points" else {}  # most of it is the choice
        check(fit, lambda model, X=X, groups=groups: check_clusters(model, X, groups=groups), **least)


# Features


def check_features(model, X):
    dense = X.toarray() if sp.issparse(X) else X
    assert model.Z_.shape == (X.shape[0], model.n_components_)
    assert model.n_components_ == getattr(model, "n_components", model.n_components_)
    assert np.isfinite(model.components_).all()
    assert_array_equal(model.counts_, model.Z_.sum(axis=0))
    left = ((dense - model.inverse_transform(model.Z_)) ** 2).sum()
    assert_allclose(model.inertia_, left, rtol=1e-7, atol=1e-7)
    assert -model.score(X) <= left * (1 + 1e-7) + 1e-7
    never_rises(model.objective_trace_, (dense**2).sum())
    assert model.objective_ <= model.objective_trace_[-1] * (1 + 1e-7) + 1e-7
    if getattr(model, "path_", None) is not None:
        assert (np.diff(model.path_.inertia) <= 0).all()


SHORT, LONG = features(120, 8, 5), features(4000, 55, 4)
FEATURES = {
    "k-features": (KFeatures(5, n_init=6), SHORT),
    "long table": (KFeatures(4, n_init=2), LONG),
    "sparse, intercept": (
        KFeatures(3, n_init=1, base="intercept"),
        sp.random(300, 3000, density=0.01, random_state=0, format="csr"),
    ),
    "decoder": (KFeatures(14, n_init=1), features(60, 30, 14)),
    "threads": (KFeatures(5, n_init=12, n_jobs=2), SHORT),
    "paper": (KFeatures(5, n_init=300, algorithm="paper"), SHORT),
    "price": (BPMeans(100.0, n_init=2), SHORT),
    "price, long table": (BPMeans(5000.0, n_init=1), LONG),
    "price chosen": (BPMeans(n_init=1), SHORT[:80]),
    "BP-means": (BPMeans(40.0, n_init=60, algorithm="paper"), SHORT),
    "collapsed": (BPMeans(60.0, n_init=30, algorithm="collapsed", shuffle=True), SHORT),
    "stepwise": (StepwiseKFeatures(200.0, n_init=1), SHORT),
}


@pytest.mark.parametrize("name", FEATURES)
def test_a_signal_at_any_time_leaves_features(name):
    model, X = FEATURES[name]
    check_signals(lambda: clone(model).fit(X), lambda model: check_features(model, X), times=6)


# Topics


def check_topics(model, X):
    K, owner = model.n_topics_, np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    tokens = np.zeros((X.shape[0], K))
    np.add.at(tokens, (owner, model.cell_labels_), X.data)
    assert_array_equal(tokens, model.doc_topic_counts_.toarray())
    assert_allclose(model.doc_topic_.sum(axis=1), 1.0)
    if model.converged_:
        assert_array_equal(model.doc_labels_, model.predict(X))
    assert len(set(model.topic_names_)) == K
    assert model.components_.shape == model.topic_word_counts_.shape == (K, X.shape[1])
    assert (model.components_ > 0).all()
    assert_allclose(model.components_.sum(axis=1), 1.0)
    assert model.objective_ == model.objective_trace_[-1]
    never_rises(model.objective_trace_)
    for hard in (False, True):
        assert_allclose(model.transform(X[:5], hard=hard).sum(axis=1), 1.0)
    assert np.isfinite(model.score(X[:5]))


TOPICS = {
    "default": HDPTopics(n_topics_init=50),
    "refined": HDPTopics(mix=0, refine="collapsed", tol=0, n_topics_init=40),
    "given number": HDPTopics(n_topics=10, n_topics_init=50),
    "paper": HDPTopics(mix=0, search="paper", tol=0, n_topics_init=40),
}


@pytest.fixture(scope="module")
def corpus():
    return planted(D=700, V=1000, K=15, spread=0.3)[0]


@pytest.mark.parametrize("name", TOPICS)
def test_a_signal_at_any_time_leaves_topics(corpus, name):
    check_signals(lambda: clone(TOPICS[name]).fit(corpus), lambda model: check_topics(model, corpus), times=4)


@pytest.mark.parametrize("name", TOPICS)
def test_an_interrupt_at_any_line_leaves_topics(name):
    X = planted(D=40, V=50, K=3, length=40)[0]
    few = {"n_topics": 3} if name == "given number" else {}
    model = clone(TOPICS[name]).set_params(n_topics_init=6, **few)
    check_lines(lambda: clone(model).fit(X), lambda model: check_topics(model, X))


def test_a_signal_in_a_later_batch_keeps_the_known_topics(corpus):
    earlier = []

    def fit():
        model = HDPTopics(n_topics_init=40, random_state=0).partial_fit(corpus[:300])
        earlier[:] = [model.topic_word_counts_]
        return model.partial_fit(corpus[300:])

    def check(model):
        check_topics(model, corpus[300:])
        assert model.n_topics_ >= len(earlier[0])
        assert_allclose(model.topic_word_counts_.sum(), earlier[0].sum() + corpus[300:].sum(), rtol=1e-4)

    check_signals(fit, check, times=4)


def test_an_interrupt_at_any_line_of_a_later_batch_counts_all_tokens():
    X = planted(D=60, V=80, K=4, length=40)[0]
    first = HDPTopics(n_topics_init=8, random_state=0).partial_fit(X[:30])

    def check(model):
        check_topics(model, X[30:])
        assert_allclose(model.topic_word_counts_.sum(), X.sum(), rtol=1e-4)

    assert check_lines(lambda: deepcopy(first).partial_fit(X[30:]), check, times=40) > 20


# Mixtures


MIXTURES = {
    "rows": (VariationalDPMixture(accelerate=None), clouds(5000, 4, 8, 2.0)),
    "nodes": (VariationalDPMixture(accelerate="tree", final="refine"), clouds(12_000, 4, 8, 2.0)),
    "polish": (VariationalDPMixture(accelerate="tree", final="polish", family="diag"), clouds(10_000, 3, 8, 2.0)),
    "kdtree": (VariationalDPMixture(accelerate="kdtree", family="spherical"), clouds(3000, 3, 6, 2.5)),
    "counts": (VariationalDPMixture(accelerate="tree", family="poisson"), counts(6000, 20, 8)),
}


@pytest.mark.parametrize("name", MIXTURES)
def test_a_signal_at_any_time_leaves_a_mixture(name):
    mixture, X = MIXTURES[name]

    def check(model):
        assert_array_equal(model.predict(X), model.labels_)
        assert np.isfinite(model.means_).all()
        assert np.isfinite([model.free_energy_, model.tied_free_energy_]).all()
        assert np.isfinite(model.score_samples(X[:100])).all()
        assert_allclose(model.weights_.sum() + model.tail_weight_, 1.0)
        assert model.free_energy_ <= model.tied_free_energy_ + 1e-9 * abs(model.free_energy_)
        assert_allclose(model.free_energy_trace_[-1], model.tied_free_energy_ + model.prior_penalty_, rtol=1e-12)
        if model.accelerate is None:  # nodes may be joined again
            never_rises(model.free_energy_trace_)

    check_signals(lambda: clone(mixture).fit(X), check)


# The first fit of a process

FIRST_FIT = """
import os, signal, sys, threading, time
import numpy as np
from kfree import DPMeans

def interrupt():
    while {module!r} not in sys.modules:
        time.sleep(0.0005)
    os.kill(os.getpid(), signal.SIGINT)

X = np.random.default_rng(0).normal(size=(300, 2))
assert {module!r} not in sys.modules
threading.Thread(target=interrupt, daemon=True).start()
try:
    DPMeans(radius=2.0).fit(X)
except KeyboardInterrupt:
    pass
print(DPMeans(radius=2.0).fit(X).n_clusters_)
"""


@pytest.mark.parametrize("module", ["kfree.kernels.native", "kfree.kernels.native._cpu"])
def test_an_interrupt_while_kernels_are_loaded_spoils_nothing(module):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    script = FIRST_FIT.format(module=module)
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 1


# What has nothing to keep


@pytest.mark.parametrize(
    ("call", "X"),
    [(lambda X: lam_path(X), clouds(4000, 3, 20)), (lambda X: lam_for_n_components(X, 5), SHORT)],
    ids=["lam_path", "lam_for_n_components"],
)
def test_an_interrupt_of_what_has_nothing_to_keep_reaches_the_caller(call, X):
    call(X[:50])  # compiled by now
    with pytest.raises(KeyboardInterrupt), sigint_after(0.03):
        call(X)


def test_a_module_that_an_interrupt_left_half_loaded_is_there(monkeypatch):
    from kfree.kernels import native

    monkeypatch.setattr(sys.modules[f"{native.__name__}._{native.LEVEL}"], "__spec__", None)
    assert native.LEVEL in native.usable()
