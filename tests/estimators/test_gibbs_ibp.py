"""GibbsIBP: what a user sees."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import parametrize_with_checks

from kfree import GibbsIBP
from kfree.inference.gibbs.ibp import IBPSampler


def bars(n=50, noise=0.3, seed=0):
    """Rows of three features, and which of them they have."""
    rng = np.random.default_rng(seed)
    Z = rng.integers(2, size=(n, 3), dtype=np.uint8)
    Z[:3] = np.eye(3)
    return Z @ (3 * np.eye(3, 6) + np.eye(3, 6, 3)) + noise * rng.normal(size=(n, 6)), Z


def quiet(X, **parameters):
    given = {"n_samples": 60, "burn_in": 40, "random_state": 0} | parameters
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return GibbsIBP(**given).fit(X)


@parametrize_with_checks([GibbsIBP(n_samples=10, burn_in=5, init="prior")])
def test_scikit_learn_is_satisfied(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check(estimator)


def test_planted_features_are_found():
    X, Z = bars()
    model = quiet(X, n_samples=200)
    K, probability = model.posterior_n_components_
    assert K[probability.argmax()] == 3
    assert_allclose(model.inverse_transform(model.Z_), Z @ (3 * np.eye(3, 6) + np.eye(3, 6, 3)), atol=0.6)
    assert_allclose(model.noise_, 0.3, rtol=0.15)


@pytest.mark.parametrize("init", ["prior", "empty", np.ones((50, 1))], ids=["prior", "empty", "array"])
def test_chains_that_stay_in_a_poor_mode_are_told_of(init):
    """Rows move one at a time: from other starts than BP-means chains rarely come to the best features."""
    X, _ = bars()
    best = quiet(X).log_posterior_trace_.max()
    for seed in range(3):
        model = quiet(X, init=init, n_samples=200, burn_in=200, random_state=seed)
        if model.log_posterior_trace_.max(axis=1).min() < best - 10:
            assert not model.converged_


def test_what_is_published_has_the_shapes_that_are_said():
    X, _ = bars()
    model = quiet(X, thin=2, concentration=(1.0, 1.0))
    K = model.n_components_
    assert model.Z_.shape == (50, K)
    assert model.Z_.dtype == np.uint8
    assert model.components_.shape == (K, 6)
    for name in ("n_components", "log_posterior", "concentration", "noise", "feature_scale"):
        assert getattr(model, f"{name}_trace_").shape == (2, 160)
        assert {"rhat", "ess"} <= set(model.diagnostics_[name]._fields)
    assert len(model.samples_) == model.sample_chain_.size == 120
    assert sum(one.Z.size for one in model.samples_) <= 8 * model.samples_.nbytes
    assert [one.Z.shape[1] for one in model.samples_[60:]] == model.n_components_trace_[1, 41::2].tolist()
    assert_allclose(model.samples_[-1].noise, model.noise_trace_[1, -1])
    assert_array_equal(model.Z_.sum(axis=0), model.counts_)
    assert_allclose(model.posterior_n_components_[1].sum(), 1)


def test_samples_do_not_depend_on_the_number_of_jobs_and_survive_a_pickle():
    X, _ = bars()
    one, two = quiet(X, n_jobs=1, n_chains=3), quiet(X, n_jobs=2, n_chains=3)
    assert_array_equal(one.log_posterior_trace_, two.log_posterior_trace_)
    for a, b in zip(one.samples_, two.samples_):
        assert_array_equal(a.Z, b.Z)
    again = pickle.loads(pickle.dumps(one))
    assert_array_equal(again.transform(X), one.transform(X))


def test_other_units_change_nothing_but_units():
    X, _ = bars()
    model, other = quiet(X), quiet(1024 * X)
    assert_array_equal(model.Z_, other.Z_)
    assert_allclose(1024 * model.components_, other.components_)
    assert_allclose(1024 * model.noise_, other.noise_)
    # log densities of n p entries and of two variances
    assert_allclose(model.log_posterior_trace_ - (X.size + 4 / 2 * 2) * np.log(1024), other.log_posterior_trace_)


def test_a_warm_start_equals_a_longer_fit():
    X, _ = bars()
    whole = quiet(X, n_samples=50)
    model = quiet(X, n_samples=20, warm_start=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(n_samples=30).fit(X)
    assert_array_equal(whole.log_posterior_trace_, model.log_posterior_trace_)
    assert_array_equal(whole.Z_, model.Z_)
    with pytest.raises(ValueError, match="warm_start=True goes on"):
        model.fit(X + 1)


def test_no_time_leaves_a_model_that_can_be_asked():
    X, _ = bars()
    with pytest.warns(UserWarning, match="max_time=0"):
        model = GibbsIBP(max_time=0.0, random_state=0).fit(X)
    assert not model.converged_
    assert model.transform(X).shape == (50, model.n_components_)


def test_an_interrupt_keeps_all_samples_so_far(monkeypatch):
    X, _ = bars()
    whole, sweep, calls = quiet(X), IBPSampler.sweep, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 150:
            raise KeyboardInterrupt
        return sweep(*arguments)

    monkeypatch.setattr(IBPSampler, "sweep", interrupted)
    with pytest.warns(UserWarning, match="interrupted"):
        model = GibbsIBP(n_samples=60, burn_in=40, random_state=0).fit(X)
    made = model.log_posterior_trace_.shape[1]
    assert 0 < made < 100
    assert_array_equal(model.log_posterior_trace_, whole.log_posterior_trace_[:, :made])


def test_chains_that_do_not_mix_are_told_of():
    X, _ = bars(noise=0.01)
    with pytest.warns(UserWarning, match="chains"):
        model = GibbsIBP(n_samples=8, burn_in=0, init="prior", random_state=0).fit(X)
    assert not model.converged_


@pytest.mark.parametrize(
    "X",
    [
        np.ones((1, 3)),
        np.zeros((4, 3)),
        np.ones((6, 2)),
        np.repeat(bars(8)[0], 4, axis=0),
        np.hstack([bars(12)[0], np.full((12, 2), 3.0)]),
        np.eye(5),
        1e-200 * bars(8)[0],
        1e200 * bars(8)[0],
        np.arange(5.0)[:, None],
        np.random.default_rng(0).normal(size=(6, 400)),
    ],
    ids=["one", "zeros", "ones", "copies", "constant", "eye", "tiny", "huge", "column", "wide"],
)
@pytest.mark.parametrize("init", ["bpmeans", "prior", "empty"])
def test_odd_tables_are_fitted(X, init):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        model = GibbsIBP(n_samples=20, burn_in=10, init=init, random_state=0).fit(X)
    for name in ("log_posterior_trace_", "noise_trace_", "feature_scale_trace_", "components_"):
        assert np.isfinite(getattr(model, name)).all(), name
    assert model.transform(X).shape == model.Z_.shape


def test_as_many_features_as_rows_are_fitted():
    X = 5 * np.eye(12)
    model = quiet(X, init=np.eye(12), noise=0.1, feature_scale=5.0, concentration=3.0)
    assert model.n_components_ >= 11
    assert model.transform(X).shape == (12, model.n_components_)


def test_sparse_rows_are_as_dense_ones():
    X, _ = bars()
    X[np.abs(X) < 0.5] = 0
    assert_array_equal(quiet(X).Z_, quiet(sp.csr_matrix(X)).Z_)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"noise": 0.0}, ValueError, "noise must be > 0"),
        ({"noise": "some"}, ValueError, "Unknown noise"),
        ({"noise": np.inf}, ValueError, "noise must be finite"),
        ({"noise": (1.0, 0.0)}, ValueError, "improper"),
        ({"noise": (1.0, 2.0, 3.0)}, ValueError, "pair"),
        ({"noise": 1e-9, "feature_scale": 1.0}, ValueError, "too small beside"),
        ({"noise": 1e120}, ValueError, "out of all proportion"),
        ({"feature_scale": -1.0}, ValueError, "feature_scale must be > 0"),
        ({"concentration": 0.0}, ValueError, "concentration must be > 0"),
        ({"concentration": (0.0, 1.0)}, ValueError, "improper"),
        ({"concentration": "auto"}, TypeError, "concentration must be a number"),
        ({"init": "some"}, ValueError, "Unknown init"),
        ({"init": np.ones((3, 2))}, ValueError, "init has shape"),
        ({"init": np.full((50, 2), 2)}, ValueError, "zeros and ones"),
        ({"n_samples": 0}, ValueError, "n_samples"),
        ({"thin": 0}, ValueError, "thin"),
        ({"burn_in": -1}, ValueError, "burn_in"),
        ({"n_chains": 1.5}, TypeError, "n_chains"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
    ],
)
def test_bad_parameters_are_errors_that_say_so(parameters, error, message):
    with pytest.raises(error, match=message):
        GibbsIBP(**parameters).fit(bars()[0])


def test_rows_far_from_the_origin_are_an_error_that_says_what_to_do():
    with pytest.raises(ValueError, match="Subtract the mean"):
        GibbsIBP().fit(bars()[0] + 1e6)
