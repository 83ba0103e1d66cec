"""GibbsDPMixture: what users see."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from kfree import GibbsDPMixture, VariationalDPMixture
from kfree.families.conjugate import SAMPLED

GAUSSIANS = ("gaussian", "diag", "spherical", "known")
OUTSIDE = "the check's data lie outside the domain of the family, which is an error that says so"
CLASSIFIER = "the check takes whatever has predict_proba and works on sparse rows for a classifier"
WHOLE = "a weighted row moves as one, and other rows mean other draws"
_EVERYTHING = (
    "all_zero_sample_weights_error clustering dict_unchanged dont_overwrite_parameters estimators_dtypes "
    "estimators_fit_returns_self estimators_overwrite_params estimators_pickle f_contiguous_array_estimator "
    "fit2d_1feature fit2d_1sample fit2d_predict1d fit_check_is_fitted fit_idempotent methods_sample_order_invariance "
    "methods_subset_invariance n_features_in n_features_in_after_fitting "
    "pipeline_consistency positive_only_tag_during_fit readonly_memmap_input sample_weights_not_an_array "
    "sample_weights_not_overwritten sample_weights_pandas_series sample_weights_shape"
)
_POSITIVE = "dtype_object estimators_nan_inf fit_score_takes_y sample_weights_list"


def expected(estimator):
    whole = {"check_sample_weight_equivalence_on_dense_data": WHOLE}
    if estimator.family in GAUSSIANS:
        return whole
    if estimator.family == "gamma":
        within = ["positive_only_tag_during_fit", "sample_weights_shape", "sample_weights_not_overwritten"]
        names = [name for name in f"{_EVERYTHING} {_POSITIVE}".split() if name not in within]
        return {f"check_{name}": OUTSIDE for name in names} | whole
    outside = _EVERYTHING if estimator.family == "bernoulli" else "clustering"
    checks = {f"check_{name}": OUTSIDE for name in outside.split()}
    return checks | {f"check_estimator_sparse_{kind}": CLASSIFIER for kind in ("array", "matrix")}


def short(**options):
    return GibbsDPMixture(**{"n_samples": 20, "burn_in": 10, "random_state": 0, **options})


@parametrize_with_checks(
    [short(family=name, init="one", n_samples=10, burn_in=5) for name in SAMPLED], expected_failed_checks=expected
)
def test_scikit_learn_is_satisfied(estimator, check):
    check(estimator)


def clouds(n=40, centres=(-6.0, 0.0, 6.0), p=2, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(m, 1, size=(n, p)) for m in centres])


def quiet(model, *data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*data, **options)


@pytest.mark.parametrize("collapsed", [True, False])
def test_clear_groups_are_found_and_shapes_are_as_promised(collapsed):
    X = clouds()
    model = GibbsDPMixture(n_samples=100, burn_in=100, thin=2, n_chains=3, collapsed=collapsed, random_state=1).fit(X)
    assert adjusted_rand_score(model.labels_, np.repeat(np.arange(3), 40)) == 1.0
    assert model.samples_.shape == (300, 120)
    assert model.samples_.dtype == np.uint8
    assert_array_equal(model.sample_chain_, np.repeat([0, 1, 2], 100))
    for trace in (model.n_clusters_trace_, model.log_posterior_trace_, model.concentration_trace_):
        assert trace.shape == (3, 300)
    assert_array_equal(model.samples_.max(axis=1) + 1, model.n_clusters_trace_[:, 101::2].ravel())
    K, chance = model.posterior_n_clusters_
    assert_allclose(chance.sum(), 1.0)
    assert K[chance.argmax()] in (3, 4)
    assert model.coclustering_.shape == (120, 120)
    assert_allclose(model.coclustering([0, 5], [-1]), model.coclustering_[[0, 5]][:, [-1]])
    assert model.cluster_probability_.min() > 0.7
    assert_array_equal(model.predict(X), model.labels_)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert set(model.diagnostics_) == {"n_clusters", "log_posterior"}
    drawn, labels = model.sample(50)
    assert drawn.shape == (50, 2)
    assert set(labels.tolist()) <= {-1, 0, 1, 2}
    assert_allclose(pickle.loads(pickle.dumps(model)).score_samples(X), model.score_samples(X))


def test_draws_do_not_depend_on_the_number_of_jobs():
    X = clouds()
    one, two = (quiet(short(n_jobs=jobs, n_chains=3), X) for jobs in (1, 2))
    assert_array_equal(one.samples_, two.samples_)
    assert_array_equal(one.log_posterior_trace_, two.log_posterior_trace_)


def test_going_on_equals_not_having_stopped():
    X = clouds()
    whole = quiet(short(n_samples=30), X)
    part = quiet(short(n_samples=10, warm_start=True), X)
    part.set_params(n_samples=20)
    quiet(part, X)
    assert_array_equal(np.sort(part.n_clusters_trace_), np.sort(whole.n_clusters_trace_))
    assert_array_equal(part.samples_, whole.samples_)
    with pytest.raises(ValueError, match="warm_start=True goes on with the chains of the last fit, but X"):
        part.fit(X + 1.0 * np.arange(2))


def test_no_time_is_one_sweep_and_a_warning_that_says_so():
    with pytest.warns(ConvergenceWarning, match="before the end of burn-in .sweep 1 of 10.: only the last state"):
        model = short(max_time=0.0).fit(clouds())
    assert model.samples_.shape == (2, 120)
    assert not model.converged_


def test_chains_that_have_not_mixed_are_complained_of():
    with pytest.warns(ConvergenceWarning, match="have not mixed|move slowly"):
        GibbsDPMixture(n_samples=10, burn_in=0, moves=None, n_chains=3, random_state=0).fit(clouds())


def test_split_and_merge_moves_let_chains_change_the_number_of_clusters():
    """Two clusters or three: one row at a time hardly ever gets from one to the other."""
    rng = np.random.default_rng(4)
    X = np.concatenate([rng.normal(m, 1.0, size=(60, 2)) for m in ([0, 0], [2.6, 0], [0, 9])])
    options = {"n_samples": 1500, "burn_in": 200, "random_state": 0, "init": "one"}
    with_moves, without = (quiet(GibbsDPMixture(moves=moves, **options), X) for moves in ("split_merge", None))
    ess = [model.diagnostics_["log_posterior"].ess for model in (with_moves, without)]
    assert ess[0] > 2 * ess[1]
    assert with_moves.diagnostics_["n_clusters"].rhat < 1.1


def test_weights_count_the_likelihood_of_rows():
    """A row of weight 2 is two equal rows that always move together, but is one row of its cluster."""
    X = clouds(8, centres=(-2.0, 2.0))
    plain, heavy = (quiet(short(n_samples=2), X, sample_weight=w) for w in (None, np.full(16, 1.0)))
    assert_array_equal(plain.samples_, heavy.samples_)
    zero = np.r_[np.ones(15), 0.0]
    model, less = quiet(short(), X, sample_weight=zero), quiet(short(), X[:15])
    assert_array_equal(model.samples_[:, :15], less.samples_)
    assert (model.samples_[:, 15] == -1).all()
    assert model.labels_[15] == less.predict(X[15:])[0]
    assert_allclose(model.coclustering_[15], np.r_[np.zeros(15), 1.0])


@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.parametrize("kind", ["one row", "equal rows", "a constant column", "duplicates"])
def test_degenerate_tables_have_an_answer(name, kind):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (12, 3)).astype(float) + (name == "gamma")
    if kind == "one row":
        X = X[:1] + (name == "multinomial")
        X = np.minimum(X, 1.0) if name == "bernoulli" else X
    elif kind == "equal rows":
        X[:] = X[0]
    elif kind == "a constant column":
        X[:, 1] = 1.0
    else:
        X = np.repeat(X[:3], 4, axis=0)
    for collapsed in (True, False):
        model = quiet(short(family=name, collapsed=collapsed), X)
        assert model.labels_.shape == (len(X),)
        assert np.isfinite(model.score_samples(X)).all()
        assert np.isfinite(model.log_posterior_trace_).all()


@pytest.mark.parametrize("init", ["one", "singles", "dpmeans", np.arange(120) // 40])
def test_chains_may_begin_anywhere(init):
    model = quiet(short(init=init, burn_in=100), clouds())
    assert model.n_clusters_ == 3


@pytest.mark.parametrize("name", ["multinomial", "poisson", "bernoulli"])
def test_sparse_rows_are_as_dense_ones(name):
    rng = np.random.default_rng(3)
    X = (rng.random((30, 20)) < 0.2 + 0.5 * (np.arange(30)[:, None] % 2)).astype(float)
    dense, sparse = (quiet(short(family=name, init="one"), table) for table in (X, sp.csr_matrix(X)))
    assert_array_equal(dense.samples_, sparse.samples_)
    assert_allclose(dense.score_samples(X), sparse.score_samples(sp.csr_matrix(X)))


def test_units_do_not_matter_but_for_the_density():
    X = clouds()
    one, other = quiet(short(), X), quiet(short(), 1000.0 * X + 5e4)
    assert_array_equal(one.samples_, other.samples_)
    assert_allclose(other.score_samples(1000.0 * X + 5e4), one.score_samples(X) - 2 * np.log(1000.0), rtol=1e-6)


def test_a_learned_prior_is_that_of_the_variational_fit():
    X = clouds()
    model = quiet(short(prior="learn"), X)
    assert_allclose(model.prior_["covariance"], VariationalDPMixture().fit(X).prior_["covariance"], rtol=1e-6)


def test_a_sampled_concentration_is_traced():
    model = quiet(short(concentration=(2.0, 1.0)), clouds())
    assert model.concentration_trace_.std() > 0
    assert "concentration" in model.diagnostics_


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"family": "cauchy"}, ValueError, "Unknown family 'cauchy'"),
        ({"concentration": 0.0}, ValueError, "concentration must be"),
        ({"concentration": (1.0, 1.0, 1.0)}, ValueError, "a number or a pair"),
        ({"concentration": (1.0, 1.0), "beta": 2.0}, ValueError, "needs a given concentration"),
        ({"beta": [2.0, 1.0]}, ValueError, "does not fall"),
        ({"beta": np.ones(20)}, ValueError, "Raise burn_in to 19"),
        ({"beta": 0.0}, ValueError, "beta must be a number > 0"),
        ({"n_samples": 0}, ValueError, "n_samples must be"),
        ({"burn_in": -1}, ValueError, "burn_in must be"),
        ({"thin": 0}, ValueError, "thin must be"),
        ({"n_chains": 1.5}, TypeError, "n_chains must be"),
        ({"moves": "jump"}, ValueError, "Unknown moves 'jump'"),
        ({"init": "kmeans"}, ValueError, "Unknown init 'kmeans'"),
        ({"init": np.zeros(3)}, ValueError, "init has shape"),
        ({"point_estimate": "mean"}, ValueError, "Unknown point_estimate 'mean'"),
        ({"prior": {"width": 1.0}}, ValueError, "is not a hyperparameter"),
        ({"prior": {"mean_precision": 0.0}}, ValueError, "must be finite and above 0"),
        ({"prior": {"degrees_of_freedom": 0.5}}, ValueError, "must be finite and above 1"),
        ({"family": "known", "prior": "learn"}, ValueError, "prior='learn' is for"),
        ({"collapsed": 1}, TypeError, "collapsed must be True or False"),
        ({"family": "gamma"}, ValueError, "needs entries > 0"),
    ],
)
def test_wrong_parameters_are_errors_that_say_what_to_do(options, error, words):
    with pytest.raises(error, match=words):
        short(**options).fit(clouds())


def test_what_is_asked_of_rows_is_checked():
    with pytest.raises(NotFittedError):
        short().coclustering([0])
    model = quiet(short(), clouds())
    with pytest.raises(ValueError, match="only 120 training rows"):
        model.coclustering([120])
    with pytest.raises(ValueError, match="whole numbers from 0 to 119"):
        model.coclustering([0.5])
