"""Ctrl-C at any moment of a fit of features leaves a model that can be used."""

import os
import signal
import threading
import time
import traceback
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from kfree import BPMeans, KFeatures, StepwiseKFeatures

SIGNALS = 6


def draw(n, p, K, noise=0.5):
    rng = np.random.default_rng(0)
    return rng.integers(2, size=(n, K)) @ (3 * rng.normal(size=(K, p))) + noise * rng.normal(size=(n, p))


SHORT, LONG, MANY = draw(120, 8, 5), draw(4000, 55, 4), draw(60, 30, 14)
SPARSE = sp.random(300, 3000, density=0.01, random_state=0, format="csr")
FITS = {
    "k-features": (KFeatures(5, n_init=6), SHORT),
    "k-features of a long table": (KFeatures(4, n_init=2), LONG),
    "k-features of sparse rows with an intercept": (KFeatures(3, n_init=1, base="intercept"), SPARSE),
    "k-features with the decoder": (KFeatures(14, n_init=1), MANY),
    "k-features by threads": (KFeatures(5, n_init=12, n_jobs=2), SHORT),
    "paper": (KFeatures(5, n_init=300, algorithm="paper"), SHORT),
    "price": (BPMeans(100.0, n_init=2), SHORT),
    "price of a long table": (BPMeans(5000.0, n_init=1), LONG),
    "price chosen": (BPMeans(n_init=1), SHORT[:80]),
    "BP-means": (BPMeans(40.0, n_init=60, algorithm="paper"), SHORT),
    "collapsed": (BPMeans(60.0, n_init=30, algorithm="collapsed", shuffle=True), SHORT),
    "stepwise": (StepwiseKFeatures(200.0, n_init=1), SHORT),
}


def interrupted_fit(model, X, after):
    """Fit with a signal after some seconds: what was raised if anything was, whether the signal was in time, and the
    warnings."""
    sent = []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer, raised, ended = threading.Timer(after, send), None, np.inf
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            try:
                timer.start()
                model.fit(X)
                ended = time.monotonic()
            finally:
                timer.cancel()
                timer.join()
        except KeyboardInterrupt as error:
            raised = error
    return raised, bool(sent) and sent[0] < ended, [str(one.message) for one in told]


def check_where(raised):
    """An interrupt may reach the caller only from outside of the inference, or while the rows are prepared for it."""
    frames = traceback.extract_tb(raised.__traceback__)
    inside = [frame for frame in frames if "kfree/inference" in frame.filename.replace(os.sep, "/")]
    preparing = any(frame.name == "of" and frame.filename.endswith("features.py") for frame in frames)
    assert preparing or not inside, "".join(traceback.format_list(frames))


def check_model(model, X):
    dense = X.toarray() if sp.issparse(X) else X
    assert model.Z_.shape == (X.shape[0], model.n_components_)
    assert model.n_components_ == getattr(model, "n_components", model.n_components_)
    assert np.isfinite(model.components_).all()
    assert_array_equal(model.counts_, model.Z_.sum(axis=0))
    left = ((dense - model.inverse_transform(model.Z_)) ** 2).sum()
    assert_allclose(model.inertia_, left, rtol=1e-7, atol=1e-7)
    assert -model.score(X) <= left * (1 + 1e-7) + 1e-7
    trace = model.objective_trace_
    assert np.isfinite(trace).all()
    assert len(trace) >= 1
    assert (np.diff(trace) <= 1e-9 * (np.abs(trace[:-1]) + (dense**2).sum())).all()
    assert model.objective_ <= trace[-1] * (1 + 1e-7) + 1e-7
    if getattr(model, "path_", None) is not None:
        assert (np.diff(model.path_.inertia) <= 0).all()


@pytest.mark.parametrize("name", FITS)
def test_a_signal_at_any_time_leaves_a_model_that_can_be_used(name):
    model, X = FITS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clone(model).set_params(n_init=1).fit(X)  # compiled before the clock starts
        start = time.perf_counter()
        clone(model).fit(X)
        seconds = time.perf_counter() - start
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for after in seconds * np.random.default_rng(len(name)).uniform(0.0, 1.0, SIGNALS):
            one = clone(model)
            raised, in_time, told = interrupted_fit(one, X, after)
            if raised is not None:
                check_where(raised)
            if hasattr(one, "Z_"):
                check_model(one, X)
                assert raised is not None or any("interrupted" in text for text in told) == in_time
            else:
                assert raised is not None
    finally:
        signal.signal(signal.SIGINT, before)
