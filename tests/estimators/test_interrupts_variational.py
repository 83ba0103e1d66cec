"""Ctrl-C at any time of a fit of VariationalDPMixture leaves a model that can be used."""

import os
import signal
import threading
import time
import traceback
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kfree import VariationalDPMixture

TIMES = 12


def clouds(n, p, k, gap, seed=0):
    rng = np.random.default_rng([seed, n, p])
    centres, width = gap * rng.normal(size=(k, p)), rng.uniform(0.4, 1.6, size=(k, p))
    own = rng.integers(k, size=n)
    return centres[own] + width[own] * rng.normal(size=(n, p))


def counts(n, p, k, seed=0):
    rng = np.random.default_rng([seed, n, p])
    kinds = rng.dirichlet(np.full(p, 0.3), k)
    return rng.poisson(30 * kinds[rng.integers(k, size=n)]).astype(float)


CASES = {
    "rows": ({"accelerate": None}, lambda: clouds(5_000, 4, 8, 2.0)),
    "nodes": ({"accelerate": "tree", "final": "refine"}, lambda: clouds(12_000, 4, 8, 2.0)),
    "polish": ({"accelerate": "tree", "final": "polish", "family": "diag"}, lambda: clouds(10_000, 3, 8, 2.0)),
    "kdtree": ({"accelerate": "kdtree", "family": "spherical"}, lambda: clouds(3_000, 3, 6, 2.5)),
    "counts": ({"accelerate": "tree", "family": "poisson"}, lambda: counts(6_000, 20, 8)),
}


def fit(options, X, delay=None):
    """A fit, interrupted after a while; the model (None if the interrupt came through), seconds, and the warnings."""
    timer = None if delay is None else threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
    model, start = VariationalDPMixture(**options), time.perf_counter()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            if timer is not None:
                timer.start()
            model.fit(X)
            seconds = time.perf_counter() - start
            if timer is not None:  # one that comes too late is for us
                timer.join()
                time.sleep(0.01)
        except KeyboardInterrupt as error:
            files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
            assert not any("kfree/inference" in name for name in files), files
            model, seconds = (model if hasattr(model, "_model") else None), time.perf_counter() - start
    return model, seconds, [str(one.message) for one in told]


@pytest.fixture
def ctrl_c():
    """Ctrl-C as users have it, whatever runs the tests."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals reach the main thread only")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("case", CASES)
def test_a_fit_that_is_interrupted_at_any_time_is_a_model(case):
    options, make = CASES[case]
    X = make()
    fit(options, X[:2000])  # compiles
    whole, seconds, _ = fit(options, X)
    rng, sizes = np.random.default_rng(7), []  # of what came back
    for share in (np.arange(TIMES) + rng.random(TIMES)) / TIMES:
        model, _, told = fit(options, X, share * seconds)
        if model is None:  # while rows were looked at first
            continue
        assert_array_equal(model.predict(X), model.labels_)
        assert np.isfinite(model.means_).all()
        assert np.isfinite([model.free_energy_, model.tied_free_energy_]).all()
        assert np.isfinite(model.score_samples(X[:100])).all()
        assert_allclose(model.weights_.sum() + model.tail_weight_, 1.0)
        assert model.free_energy_ <= model.tied_free_energy_ + 1e-9 * abs(model.free_energy_)
        assert model.free_energy_trace_[-1] == model.tied_free_energy_
        if options["accelerate"] is None:  # nodes may be joined again
            assert (np.diff(model.free_energy_trace_) <= 1e-9 * abs(model.free_energy_)).all()
        if not any("interrupted" in message for message in told):  # it came too late
            assert model.free_energy_ == whole.free_energy_
        sizes.append(model.n_components_)
    assert len(sizes) > TIMES // 3
