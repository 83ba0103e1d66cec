"""VariationalDPMixture: what users see."""

import pickle
import warnings
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture
from sklearn.utils.estimator_checks import parametrize_with_checks

from kfree import VariationalDPMixture
from kfree.families.conjugate.full import NormalWishart
from kfree.inference.variational import greedy
from kfree.inference.variational.posterior import Mixture
from kfree.models.mixture import MixtureProblem, MixtureWish
from kfree.rows import threads
from kfree.structures import StickBreaking
from support.small_mixtures import FAMILIES, GAUSSIANS, draw, free_energy

DISCRETE = tuple(name for name in FAMILIES if name not in GAUSSIANS)
OUTSIDE = "the check's data lie outside the domain of the family, which is an error that says so"
CLASSIFIER = "the check takes whatever has predict_proba and works on sparse rows for a classifier"
_EVERYTHING = (
    "all_zero_sample_weights_error clustering dict_unchanged dont_overwrite_parameters estimators_dtypes "
    "estimators_fit_returns_self estimators_overwrite_params estimators_pickle f_contiguous_array_estimator "
    "fit2d_1feature fit2d_1sample fit2d_predict1d fit_check_is_fitted fit_idempotent methods_sample_order_invariance "
    "methods_subset_invariance n_features_in n_features_in_after_fitting non_transformer_estimators_n_iter "
    "pipeline_consistency positive_only_tag_during_fit readonly_memmap_input sample_weights_not_an_array "
    "sample_weights_not_overwritten sample_weights_pandas_series sample_weights_shape"
)


def expected(estimator):
    if estimator.family in GAUSSIANS:
        return {}
    outside = _EVERYTHING if estimator.family == "bernoulli" else "clustering"
    checks = {f"check_{name}": OUTSIDE for name in outside.split()}
    return checks | {f"check_estimator_sparse_{kind}": CLASSIFIER for kind in ("array", "matrix")}


@parametrize_with_checks([VariationalDPMixture(family=name) for name in FAMILIES], expected_failed_checks=expected)
def test_scikit_learn_is_satisfied(estimator, check):
    check(estimator)


def blobs(n=60, p=2, seed=0, centres=(-6, 0, 6)):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(m, 1, size=(n, p)) for m in centres])


def counts(n=300, seed=0):
    """Counts of four kinds, with their kinds."""
    rng = np.random.default_rng(seed)
    kinds = rng.dirichlet(np.full(30, 0.15), size=4)
    z = rng.integers(4, size=n)
    return np.array([rng.multinomial(rng.integers(20, 60), kinds[k]) for k in z]).astype(float), z


def data(name):
    return {**dict.fromkeys(GAUSSIANS, blobs()), "bernoulli": (counts()[0] > 0) * 1.0}.get(name, counts()[0])


@pytest.mark.parametrize("name", GAUSSIANS)
def test_three_blobs_are_three_components(name):
    X = blobs()
    model = VariationalDPMixture(family=name).fit(X)
    assert model.n_components_ == 3
    assert adjusted_rand_score(np.repeat([0, 1, 2], 60), model.labels_) == 1
    assert_allclose(np.sort(model.means_[:, 0]), [-6, 0, 6], atol=0.5)
    assert model.covariances_.shape == {"gaussian": (3, 2, 2), "diag": (3, 2), "spherical": (3,)}[name]
    assert_allclose(model.weights_.sum() + model.tail_weight_, 1.0)
    assert (np.diff(model.weights_) <= 0).all()
    assert model.converged_
    assert model.n_nodes_ == 180
    assert (np.diff(model.free_energy_trace_) <= 1e-9).all()
    assert_allclose(model.free_energy_trace_[-1], model.free_energy_ + model.prior_penalty_)


def test_kinds_of_counts_are_found():
    X, z = counts()
    model = VariationalDPMixture(family="multinomial").fit(X)
    assert model.n_components_ == 4
    assert adjusted_rand_score(z, model.labels_) == 1
    assert_allclose(model.means_.sum(axis=1), 1.0)
    assert not hasattr(model, "covariances_")
    bits = VariationalDPMixture(family="bernoulli").fit(X > 0)
    assert adjusted_rand_score(z, bits.labels_) > 0.8


@pytest.mark.parametrize("name", FAMILIES)
def test_predictions_agree_with_each_other(name):
    X = data(name)
    model = VariationalDPMixture(family=name)
    labels = model.fit_predict(X)
    assert (labels == model.labels_).all()
    assert (labels == model.predict(X)).all()
    with_tail, without = model.predict_proba(X, tail=True), model.predict_proba(X)
    assert with_tail.shape == (len(X), model.n_components_ + 1)
    assert_allclose(with_tail.sum(axis=1), 1.0)
    assert_allclose(without.sum(axis=1), 1.0)
    assert_allclose(without * (1 - with_tail[:, -1:]), with_tail[:, :-1], atol=1e-12)
    assert (without.argmax(axis=1) == labels).all()
    assert_allclose(model.score(X), model.score_samples(X).mean())
    assert_allclose(model.score(X[:2], sample_weight=[1, 0]), model.score_samples(X)[0])
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict_proba(X) == without).all()


@pytest.mark.parametrize("name", FAMILIES)
def test_weights_are_repetitions_and_zero_weight_is_removal(name):
    X, rng = data(name), np.random.default_rng(0)
    weight = rng.integers(0, 4, size=len(X))
    weighted = VariationalDPMixture(family=name).fit(X, sample_weight=weight)
    repeated = VariationalDPMixture(family=name).fit(np.repeat(X, weight, axis=0))
    removed = VariationalDPMixture(family=name).fit(X[weight > 0], sample_weight=weight[weight > 0])
    assert weighted.n_components_ == repeated.n_components_
    assert_allclose(weighted.free_energy_, repeated.free_energy_, rtol=1e-7)
    assert_allclose(weighted.means_, repeated.means_, rtol=1e-3, atol=1e-3)
    assert (weighted.means_ == removed.means_).all()
    assert weighted.labels_.shape == (len(X),)
    assert (weighted.labels_ == weighted.predict(X)).all()


@pytest.mark.parametrize("name", DISCRETE)
def test_sparse_rows_give_the_same_model(name):
    X = data(name)
    dense = VariationalDPMixture(family=name).fit(X)
    for kind in (sp.csr_matrix, sp.csc_matrix, sp.csr_array):
        sparse = VariationalDPMixture(family=name).fit(kind(X))
        assert_allclose(sparse.free_energy_, dense.free_energy_, rtol=1e-9)
        assert (sparse.labels_ == dense.labels_).all()
        assert_allclose(sparse.score_samples(kind(X)), dense.score_samples(X))
        assert_allclose(sparse.predict_proba(kind(X), tail=True), dense.predict_proba(X, tail=True), atol=1e-9)


@pytest.mark.parametrize("name", GAUSSIANS)
@pytest.mark.parametrize("c", [1e-12, 0.3, 1e12])
def test_results_move_with_shift_and_scale(name, c):
    X = blobs(40, 3)
    shift = np.array([5.0, -3.0, 100.0]) * c
    one, two = (VariationalDPMixture(family=name).fit(x) for x in (X, c * X + shift))
    assert_allclose(two.free_energy_, one.free_energy_ + X.size * np.log(c), rtol=1e-9, atol=1e-4)
    assert (one.labels_ == two.labels_).all()
    assert_allclose(two.means_, c * one.means_ + shift, rtol=1e-6, atol=1e-6 * c)
    assert_allclose(two.covariances_, c**2 * one.covariances_, rtol=1e-5, atol=1e-6 * c**2)
    assert_allclose(two.predict_proba(c * X + shift, tail=True), one.predict_proba(X, tail=True), atol=1e-6)
    assert_allclose(two.score_samples(c * X + shift), one.score_samples(X) - 3 * np.log(c), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("name", "prior"), [("gaussian", "fixed"), ("spherical", "fixed"), ("spherical", "learn")])
def test_results_turn_with_rotations(name, prior):
    X = blobs(40, 3) * [1.0, 0.5, 0.8]
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    one, two = (VariationalDPMixture(family=name, prior=prior).fit(x) for x in (X, X @ turn))
    assert_allclose(two.free_energy_, one.free_energy_, rtol=1e-8)
    assert (one.labels_ == two.labels_).all()
    assert_allclose(two.means_, one.means_ @ turn, atol=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_rows_in_another_order_give_the_same_components(name):
    X = data(name)
    order = np.random.default_rng(0).permutation(len(X))
    one, two = VariationalDPMixture(family=name).fit(X), VariationalDPMixture(family=name).fit(X[order])
    assert_allclose(two.free_energy_, one.free_energy_, rtol=1e-7)
    assert adjusted_rand_score(one.labels_[order], two.labels_) == 1


def test_precision_and_memory_order_do_not_matter():
    X = blobs().astype(np.float32)
    results = [VariationalDPMixture().fit(x) for x in (X, X.astype(float), np.asfortranarray(X), X[:, ::-1][:, ::-1])]
    for other in results[1:]:
        assert_allclose(other.free_energy_, results[0].free_energy_, rtol=1e-12)
        assert (other.labels_ == results[0].labels_).all()


def test_the_density_integrates_to_one():
    X = blobs(30, 1)
    for name in GAUSSIANS:
        model = VariationalDPMixture(family=name).fit(X)
        grid = np.sinh(np.linspace(-25, 25, 400_001))
        density = np.exp(model.score_samples(grid[:, None]))
        assert_allclose(np.trapezoid(density, grid), 1.0, rtol=2e-3)  # the prior's tail is heavier than the grid
    rows = np.array(list(product((0.0, 1.0), repeat=6)))
    bits = VariationalDPMixture(family="bernoulli").fit(np.random.default_rng(0).integers(0, 2, size=(40, 6)))
    assert_allclose(np.exp(bits.score_samples(rows)).sum(), 1.0)
    three = VariationalDPMixture(family="multinomial").fit(draw("multinomial", 40, 3))
    rows = np.array([row for row in product(range(8), repeat=3) if sum(row) == 7], float)
    assert_allclose(np.exp(three.score_samples(rows)).sum(), 1.0)


@pytest.mark.parametrize("name", FAMILIES)
def test_samples_come_from_the_model(name):
    X = data(name)
    model = VariationalDPMixture(family=name, random_state=0).fit(X)
    rows, labels = model.sample(4000)
    assert rows.shape == (4000, X.shape[1])
    assert set(labels) <= {-1, *range(model.n_components_)}
    own = labels >= 0
    assert_allclose(np.bincount(labels[own], minlength=model.n_components_) / 4000, model.weights_, atol=0.04)
    if name not in ("poisson", "bernoulli"):
        assert (model.predict(rows[own]) == labels[own]).mean() > 0.95
    for k in range(model.n_components_):
        mean = rows[labels == k].mean(axis=0)
        length = np.round(X.sum(axis=1).mean()) if name == "multinomial" else 1
        assert_allclose(
            mean, length * model.means_[k], atol=6 * rows[labels == k].std(axis=0).max() / np.sqrt(own.sum() / 10)
        )
    assert (model.sample(3)[0] == model.sample(3)[0]).all()


HARD = {
    "more columns than rows": np.random.default_rng(0).normal(size=(5, 30)),
    "one row": np.ones((1, 3)),
    "two rows": np.eye(2),
    "collinear columns": np.c_[blobs(20), blobs(20) @ [[1.0], [2.0]], 3 * blobs(20)[:, :1]],
    "tiny": blobs(20) * 1e-12,
    "huge": blobs(20) * 1e12,
    "tinier": blobs(20) * 1e-140,
    "far from the origin": blobs(20) + 1e9,
    "columns of all scales": blobs(20, 4) * [1e-12, 1.0, 1e6, 1e12],
    "duplicates": np.repeat(blobs(3), 20, axis=0),
    "all rows equal": np.full((30, 2), 0.1),
    "zeros": np.zeros((10, 2)),
    "constant column": np.c_[blobs(20), np.full(60, 3.3)],
    "far outlier": np.r_[blobs(20), [[1e12, -1e12]]],
    "outliers": np.r_[blobs(20), np.random.default_rng(0).standard_cauchy(size=(10, 2)) ** 3],
    "whole numbers": np.random.default_rng(0).integers(0, 3, size=(60, 2)),
}


@pytest.mark.parametrize("name", GAUSSIANS)
@pytest.mark.parametrize("case", HARD)
def test_hard_data_give_finite_models(name, case):
    X = HARD[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "The rows of X do not differ")
        model = VariationalDPMixture(family=name, random_state=0).fit(X)
        values = (model.weights_, model.means_, model.covariances_, model.free_energy_trace_, model.sample(5)[0])
        asked = (model.score_samples(X), model.predict_proba(X, tail=True), model.score_samples(X * 0 + 1e300))
    assert all(np.isfinite(value).all() for value in (*values, *asked))
    assert (np.diff(model.free_energy_trace_) <= 1e-9 * np.abs(model.free_energy_trace_[0])).all()


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_weights_of_any_size_give_finite_models(name, size):
    X = data(name)
    model = VariationalDPMixture(family=name, max_components=4).fit(X, sample_weight=np.full(len(X), size))
    assert np.isfinite(model.free_energy_)
    assert np.isfinite(model.means_).all()
    assert np.isfinite(model.score_samples(X)).all()


def test_rows_that_do_not_differ_are_one_component_with_a_warning():
    with pytest.warns(UserWarning, match="do not differ"):
        model = VariationalDPMixture().fit(np.full((30, 2), 0.1))
    assert model.n_components_ == 1
    assert_allclose(model.means_, 0.1)


def test_a_split_in_two_that_does_not_pay_may_pay_in_three():
    # columns that say nothing make a component dear: two of three blobs in a row are no better than one
    X = np.c_[blobs(60, 4), np.full(180, 3.3)]
    assert VariationalDPMixture().fit(X).n_components_ == 3


def test_larger_concentration_never_expects_fewer_components():
    X = np.random.default_rng(0).normal(size=(300, 2)) ** 3
    found = [VariationalDPMixture(concentration=c).fit(X).n_components_ for c in (0.01, 1.0, 50.0)]
    assert found[0] <= found[1] <= found[2]
    pair = VariationalDPMixture(concentration=(1.0, 0.01)).fit(X)
    assert pair.free_energy_ == VariationalDPMixture(concentration=0.01).fit(X).free_energy_


def test_limits_and_tolerances_are_kept():
    X = blobs()
    assert VariationalDPMixture(max_components=1).fit(X).n_components_ == 1
    assert VariationalDPMixture(max_components=2).fit(X).n_components_ == 2
    assert VariationalDPMixture(tol=100.0).fit(X).n_components_ == 1
    assert VariationalDPMixture(tol="relative").fit(X).n_components_ == 3
    assert VariationalDPMixture(n_failed=5, n_candidates=1).fit(X).n_components_ == 3
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        VariationalDPMixture(max_iter=1).fit(np.random.default_rng(0).normal(size=(200, 2)) ** 3)


def test_priors_of_the_user_are_used():
    X = blobs()
    wide = VariationalDPMixture(prior={"covariance": 100.0}).fit(X)
    assert wide.n_components_ < 3
    default = VariationalDPMixture(prior="fixed").fit(X)
    spread = np.linalg.eigvalsh(np.cov(X.T, bias=True))[-1]
    same = {"mean": X.mean(axis=0), "mean_precision": 0.01, "degrees_of_freedom": 3.0, "covariance": 0.01 * spread}
    assert_allclose(VariationalDPMixture(prior=same).fit(X).free_energy_, default.free_energy_)
    for name, width in (("covariance", 0.01 * spread * np.eye(2)), ("covariance", [0.01 * spread] * 2),
                        ("sd", 0.1 * np.sqrt(spread)), ("sd", [0.1 * np.sqrt(spread)] * 2)):  # fmt: skip
        given = {key: value for key, value in same.items() if key != "covariance"} | {name: width}
        assert_allclose(VariationalDPMixture(prior=given).fit(X).free_energy_, default.free_energy_)
    assert VariationalDPMixture(family="poisson", prior={"shape": 1.0, "rate": 2.0}).fit(data("poisson")).converged_


def test_time_and_interrupts_leave_a_model(monkeypatch):
    X = blobs(500, 4)
    with pytest.warns(ConvergenceWarning, match="max_time=0 s"):
        model = VariationalDPMixture(max_time=0.0).fit(X)
    assert model.predict(X).shape == (1500,)
    assert not model.converged_
    real, calls = greedy.propose, []

    def interrupting(*args):
        calls.append(1)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(greedy, "propose", interrupting)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = VariationalDPMixture().fit(X)
    assert model.n_components_ > 1
    assert np.isfinite(model.score_samples(X)).all()

    sums_of, calls = greedy.sums_of, []

    def at_once(*args):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return sums_of(*args)

    monkeypatch.setattr(greedy, "sums_of", at_once)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        assert VariationalDPMixture().fit(X).n_components_ == 1


def test_nothing_is_printed_unless_asked(capsys):
    VariationalDPMixture().fit(blobs())
    assert capsys.readouterr().out == ""
    VariationalDPMixture(verbose=1).fit(blobs())
    assert "3 components, free energy" in capsys.readouterr().out


def test_threads_do_not_change_the_result(monkeypatch):
    X = np.concatenate([blobs(4000, 4, seed=s) for s in range(2)])
    results = []
    for count in (1, 3):
        monkeypatch.setattr(threads, "n_threads", lambda count=count: count)
        results.append(VariationalDPMixture().fit(X))
    assert results[0].free_energy_ == results[1].free_energy_
    assert (results[0].means_ == results[1].means_).all()


def test_the_free_energy_agrees_with_scikit_learn_up_to_a_constant():
    X = blobs(100, 3, centres=(-4, 0, 3))
    spread = np.linalg.eigvalsh(np.cov(X.T, bias=True))[-1]
    problem = MixtureProblem.of(X, None, MixtureWish.of("gaussian", "fixed", StickBreaking(1.0, 1.0)))
    ours, energies, gaps = VariationalDPMixture(prior="fixed").fit(X), [], []
    for T, seed in product((3, 4, 5), range(3)):
        rival = BayesianGaussianMixture(
            n_components=T, weight_concentration_prior=1.0, mean_precision_prior=0.01, mean_prior=X.mean(axis=0),
            degrees_of_freedom_prior=4.0, covariance_prior=4.0 * 0.01 * spread * np.eye(3), reg_covar=0.0,
            init_params="random", tol=1e-8, max_iter=3000, random_state=seed,
        ).fit(X)  # fmt: skip
        energies.append(free_energy(ours_at(rival, problem), problem.setting, problem.tied))
        gaps.append(energies[-1] + rival.lower_bound_)
    assert ours.free_energy_ <= min(energies) + 1e-6
    assert np.ptp(energies) > 10  # they are different optima
    # scikit-learn leaves out constants, some for each component, and knows no tail
    gaps = np.reshape(gaps, (3, 3))
    assert_allclose(gaps, np.repeat(gaps[:, :1], 3, axis=1), atol=0.5)
    assert_allclose(np.diff(gaps[:, 0], 2), 0.0, atol=0.5)


def ours_at(rival, problem):
    """The mixture of a fitted rival."""
    scale, nu = problem.units.scale, rival.degrees_of_freedom_
    B = rival.covariances_ * nu[:, None, None] / scale**2
    lower = np.linalg.cholesky(B)
    params = NormalWishart(
        (rival.means_ - problem.units.shift) / scale,
        rival.mean_precision_,
        nu,
        B,
        np.ascontiguousarray(np.linalg.inv(lower).transpose(0, 2, 1)),
        2 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1),
    )
    return Mixture(params, np.stack(rival.weight_concentration_, axis=1))


@pytest.mark.parametrize(
    ("parameters", "error", "match"),
    [
        ({"family": "cauchy"}, ValueError, "Unknown family 'cauchy'"),
        ({"family": 3}, TypeError, "family must be one of"),
        ({"concentration": 0.0}, ValueError, "concentration must be > 0"),
        ({"concentration": (1.0, 2.0, 3.0)}, ValueError, "pair"),
        ({"concentration": "big"}, TypeError, "concentration must be a number"),
        ({"concentration": np.inf}, ValueError, "at most"),
        ({"prior": 3.0}, TypeError, "prior must be 'learn', 'fixed' or a dict"),
        ({"prior": "flat"}, ValueError, "Unknown prior 'flat'"),
        ({"prior": {"sd": 1.0, "covariance": 1.0}}, ValueError, "both 'sd' and 'covariance'"),
        ({"prior": {"sd": np.eye(2)}}, ValueError, "one for each column"),
        ({"prior": {"width": 1.0}}, ValueError, "not a hyperparameter"),
        ({"prior": {"covariance": "small"}}, TypeError, "must be a number or an array"),
        ({"prior": {"covariance": -1.0}}, ValueError, "above 0"),
        ({"prior": {"covariance": np.ones((3, 3))}}, ValueError, "positive definite"),
        ({"prior": {"mean": np.ones(5)}}, ValueError, "shape"),
        ({"prior": {"degrees_of_freedom": 0.5}}, ValueError, "above 1"),
        ({"max_components": 0}, ValueError, "max_components must be >= 1"),
        ({"n_candidates": 1.5}, TypeError, "n_candidates must be an integer"),
        ({"tol": -1.0}, ValueError, "tol must be >= 0"),
        ({"tol": "absolute"}, ValueError, "Unknown tol"),
        ({"max_time": -1.0}, ValueError, "max_time"),
    ],
)
def test_bad_parameters_are_named(parameters, error, match):
    with pytest.raises(error, match=match):
        VariationalDPMixture(**parameters).fit(blobs())


def test_bad_rows_are_named():
    X = blobs()
    with pytest.raises(TypeError, match="sparse"):
        VariationalDPMixture().fit(sp.csr_matrix(X))
    with pytest.raises(ValueError, match=r"family='poisson' needs entries >= 0, but X\[0, 0\]"):
        VariationalDPMixture(family="poisson").fit(X)
    with pytest.raises(ValueError, match=r"family='bernoulli' needs entries >= 0 and <= 1"):
        VariationalDPMixture(family="bernoulli").fit(np.full((3, 2), 2.0))
    with pytest.raises(ValueError, match="overflow"):
        VariationalDPMixture().fit(X * 1e200)
    with pytest.raises(ValueError, match="NaN"):
        VariationalDPMixture().fit(np.where(X > 5, np.nan, X))
    with pytest.raises(NotFittedError):
        VariationalDPMixture().predict(X)
    model = VariationalDPMixture().fit(X)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :1])
    with pytest.raises(ValueError, match="n_samples must be >= 1"):
        model.sample(0)


def test_weights_that_leave_no_digits_are_named():
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match=r"sum of sample_weight is 3e\+17"):
        VariationalDPMixture().fit(X, sample_weight=np.full(30, 1e16))
    assert VariationalDPMixture().fit(X, sample_weight=np.full(30, 1e13)).n_components_ >= 1


def test_hyperparameters_are_named_in_the_units_they_were_given_in():
    X = 100 * np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match=r"prior\['mean'\] has shape \(3,\)"):
        VariationalDPMixture(prior={"mean": [1, 2, 3]}).fit(X)
    with pytest.raises(ValueError, match=r"prior\['covariance'\] must be finite and above 0, got -1"):
        VariationalDPMixture(prior={"covariance": -1}).fit(X)


def test_rows_whose_sum_overflows_are_rows_like_others(recwarn):
    model = VariationalDPMixture().fit(np.random.default_rng(0).normal(size=(30, 2)))
    assert model.predict([[1e308, 1e308]]).shape == (1,)
    assert not [warning for warning in recwarn if issubclass(warning.category, RuntimeWarning)]


@pytest.mark.parametrize("seconds", [0.005, 0.02, 0.05])
def test_the_trace_ends_with_the_free_energy_of_the_nodes(seconds):
    rng = np.random.default_rng(0)
    X = (5 * rng.normal(size=(8, 4)))[rng.integers(8, size=20_000)] + rng.normal(size=(20_000, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = VariationalDPMixture(accelerate="tree", max_time=seconds).fit(X)
    assert model.free_energy_trace_[-1] == model.tied_free_energy_ + model.prior_penalty_
