"""KernelDPMixture: what users see of it, and what they are promised."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import dblquad
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from kfree import KernelDPMixture, truncation_level
from kfree.inference.embedding.embedding_numbers import EMBEDDING
from kfree.rows import threads
from support.interrupts import check_signals

OUTSIDE = "the check's data lie outside the domain of the family, which is an error that says so"
CLASSIFIER = "the check takes whatever has predict_proba and works on sparse rows for a classifier"


def expected(estimator):
    if estimator.family == "gaussian":
        return {}
    return {
        "check_clustering": OUTSIDE,
        "check_estimators_dtypes": OUTSIDE,
        "check_estimator_sparse_tag": OUTSIDE,
        "check_fit2d_1feature": OUTSIDE,
        "check_sample_weights_pandas_series": OUTSIDE,
        "check_sample_weights_not_an_array": OUTSIDE,
    } | {f"check_estimator_sparse_{kind}": CLASSIFIER for kind in ("array", "matrix")}


@parametrize_with_checks(
    [
        KernelDPMixture(),
        KernelDPMixture(covariance="diag", bandwidth="median", ridge="auto"),
        KernelDPMixture(covariance="spherical", features=50, random_state=0),
        KernelDPMixture(family="multinomial"),
    ],
    expected_failed_checks=expected,
)
def test_scikit_learn_is_satisfied(estimator, check):
    check(estimator)


def blobs(n=100, p=2, seed=0, centres=(-6, 0, 6)):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(m, 1, size=(n, p)) for m in centres])


def bits(n=200, seed=0):
    rng = np.random.default_rng(seed)
    chance = np.array([[0.9, 0.9, 0.1, 0.1, 0.5], [0.1, 0.1, 0.9, 0.9, 0.5]])
    z = rng.integers(2, size=n)
    return (rng.random((n, 5)) < chance[z]).astype(float), z


def texts(n=200, seed=0):
    rng = np.random.default_rng(seed)
    kinds = rng.dirichlet(np.full(20, 0.2), size=3)
    z = rng.integers(3, size=n)
    return np.array([rng.multinomial(60, kinds[k]) for k in z], float), z


def same(one, two, rows=None):
    labels = one.labels_ if rows is None else one.labels_[rows]
    exact = not one.refine  # steps of L-BFGS make more of rounding
    assert (labels == two.labels_).mean() >= (1.0 if exact else 0.98)
    assert one.n_components_ == two.n_components_
    assert_allclose(one.weights_, two.weights_, atol=1e-6 if exact else 1e-2)
    assert_allclose(one.means_, two.means_, rtol=1e-6, atol=1e-6 if exact else 0.1)
    assert_allclose(one.mmd2_, two.mmd2_, rtol=1e-6 if exact else 1e-2, atol=1e-12)


def six_gaussians(D, seed, n=1500):
    rng = np.random.default_rng(seed)
    means, weights = 4 * rng.normal(size=(6, D)), rng.dirichlet(np.full(6, 5.0))

    def draw(n):
        return means[rng.choice(6, size=n, p=weights)] + rng.normal(size=(n, D))

    def log_density(X):
        squares = ((X[:, None] - means) ** 2).sum(axis=2)
        return logsumexp(-0.5 * squares + np.log(weights), axis=1) - 0.5 * D * np.log(2 * np.pi)

    return draw(n), draw(4000), log_density


@pytest.mark.parametrize("D", [2, 8])
def test_six_gaussians_are_described_nearly_as_well_as_by_the_truth(D):
    lost = []
    for seed in range(5):
        X, held_out, log_density = six_gaussians(D, seed)
        lost.append(log_density(held_out).mean() - KernelDPMixture().fit(X).score(held_out))
    assert np.mean(lost) < 0.15


def test_what_is_published_fits_together():
    X = blobs()
    model = KernelDPMixture(random_state=0).fit(X)
    assert model.weights_.shape == model.support_.shape == (model.n_components_,)
    assert_allclose(model.weights_.sum(), 1.0)
    assert (np.diff(model.weights_) <= 1e-12).all()
    assert model.support_.max() < model.n_candidates_
    assert model.gap_ <= 1e-12
    assert model.ridge_ == 1e-6
    assert model.objective_ == model.objective_trace_[-1]
    assert model.converged_
    assert_array_equal(model.labels_, model.predict(X))
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert_allclose(model.mmd2(X), model.mmd2_, rtol=1e-9)
    assert model.mmd2(X, unbiased=True) < model.mmd2_
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(X), model.labels_)
    assert again.mmd_test(X).pvalue == model.mmd_test(X).pvalue


def test_the_three_clusters_are_found():
    X = blobs()
    labels = KernelDPMixture().fit(X).labels_.reshape(3, -1)
    kinds = [set(part) for part in labels]
    assert sum(map(len, kinds)) == len(set().union(*kinds))


@pytest.mark.parametrize("covariance", ["full", "diag", "spherical"])
def test_the_density_integrates_to_one(covariance):
    model = KernelDPMixture(covariance=covariance).fit(blobs(60, centres=(-2, 1)))

    def density(y, x):
        return float(np.exp(model.score_samples([[x, y]])[0]))

    total, _ = dblquad(density, -9, 9, -9, 9, epsabs=1e-3)
    assert_allclose(total, 1.0, atol=2e-3)


def test_probabilities_of_all_bits_sum_to_one():
    X, _ = bits()
    every = np.array([[int(b) for b in f"{i:05b}"] for i in range(32)], float)
    assert_allclose(np.exp(KernelDPMixture(family="bernoulli").fit(X).score_samples(every)).sum(), 1.0)


@pytest.mark.parametrize(("family", "table"), [("bernoulli", bits), ("multinomial", texts)])
def test_discrete_rows_are_told_apart_and_may_be_sparse(family, table):
    X, z = table()
    model = KernelDPMixture(family=family).fit(X)
    same(model, KernelDPMixture(family=family).fit(sp.csr_matrix(X)))
    homes = [np.bincount(z[model.labels_ == k]).max() for k in np.unique(model.labels_)]
    assert sum(homes) > 0.85 * len(z)
    rows, labels = model.sample(7)
    assert rows.shape == (7, X.shape[1])
    assert labels.max() < model.n_components_
    assert not hasattr(model, "covariances_")
    assert hasattr(model, "bandwidth_") == (family == "bernoulli")


CASES = {
    "default": (KernelDPMixture(), blobs()),
    "local": (KernelDPMixture(candidates="local", n_candidates=30, random_state=1), blobs()),
    "prior": (KernelDPMixture(candidates="prior", n_candidates=30, random_state=1), blobs()),
    "median": (KernelDPMixture(bandwidth="median", covariance="diag", ridge="auto"), blobs()),
    "given": (KernelDPMixture(candidates=[[-6, -6], [0, 0], [6, 6], [0, 9]], bandwidth=[1.0, 3.0]), blobs()),
    "refine": (KernelDPMixture(covariance="spherical", refine=True), blobs(40)),
    "bits": (KernelDPMixture(family="bernoulli"), bits()[0]),
    "texts": (KernelDPMixture(family="multinomial"), texts()[0]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
class TestSameForTheSame:
    def test_whole_weights_are_copies(self, name):
        model, X = CASES[name]
        weight = np.random.default_rng(0).integers(1, 4, len(X))
        copies = np.repeat(np.arange(len(X)), weight)
        same(clone(model).fit(X, sample_weight=weight), clone(model).fit(X[copies]), copies)

    def test_no_weight_is_absence(self, name):
        model, X = CASES[name]
        weight = np.random.default_rng(1).integers(0, 2, len(X))
        kept = np.flatnonzero(weight)
        same(clone(model).fit(X, sample_weight=weight), clone(model).fit(X[kept]), kept)

    def test_the_order_of_rows_does_not_matter(self, name):
        model, X = CASES[name]
        mixed = np.random.default_rng(2).permutation(len(X))
        same(clone(model).fit(X), clone(model).fit(X[mixed]), mixed)

    def test_the_number_of_threads_does_not_matter(self, name, monkeypatch):
        model, X = CASES[name]
        monkeypatch.setattr(threads, "WORTH_THREADS", 0)
        found = []
        for count in (1, 3):
            monkeypatch.setattr(threads, "n_threads", lambda count=count: count)
            found.append(clone(model).fit(X))
        assert_array_equal(found[0].weights_, found[1].weights_)
        assert_array_equal(found[0].means_, found[1].means_)
        assert found[0].mmd2_ == found[1].mmd2_


@pytest.mark.parametrize("scale", [2.0**-300, 2.0**300, 4.0])
def test_units_change_nothing_but_units(scale):
    X = blobs()
    one, two = KernelDPMixture().fit(X), KernelDPMixture().fit(X * scale)
    assert_array_equal(one.labels_, two.labels_)
    assert_allclose(one.weights_, two.weights_, atol=1e-9)
    assert_allclose(two.means_, one.means_ * scale, rtol=1e-9)
    assert_allclose(two.bandwidth_, one.bandwidth_ * scale, rtol=1e-9)
    assert_allclose(two.mmd2_, one.mmd2_, rtol=1e-9)
    assert_allclose(two.score(X * scale), one.score(X) - 2 * np.log(scale), rtol=1e-9)


@pytest.mark.parametrize("covariance", ["full", "diag"])
@pytest.mark.parametrize("bandwidth", ["local", "median"])
def test_the_units_of_columns_change_nothing_but_units(covariance, bandwidth):
    X, scale = six_gaussians(3, 0, 200)[0], np.array([2.0**-40, 1.0, 2.0**30])
    given = {"covariance": covariance, "bandwidth": bandwidth, "random_state": 0}
    one, two = KernelDPMixture(**given).fit(X), KernelDPMixture(**given).fit(X * scale)
    assert_array_equal(two.labels_, one.labels_)
    assert_array_equal(two.weights_, one.weights_)
    assert_array_equal(two.means_, one.means_ * scale)
    square = scale[:, None] * scale if covariance == "full" else scale**2
    assert_array_equal(two.covariances_, one.covariances_ * square)
    assert_array_equal(two.bandwidth_, one.bandwidth_ * scale)
    assert (two.mmd2_, two.gap_, two.objective_) == (one.mmd2_, one.gap_, one.objective_)
    assert_allclose(two.score_samples(X * scale), one.score_samples(X) - np.log(scale).sum(), rtol=1e-12)
    assert two.mmd_test((X + 0.3) * scale) == one.mmd_test(X + 0.3)


def test_columns_scaled_by_any_number_give_the_same_but_for_rounding():
    X, scale = blobs(), np.array([0.7, 1300.0])
    means = np.array([[-6.0, -6.0], [0.0, 0.0], [6.0, 6.0], [3.0, 4.0]])
    one = KernelDPMixture(candidates=means).fit(X)
    two = KernelDPMixture(candidates=means * scale).fit(X * scale)
    assert_allclose(two.weights_, one.weights_, atol=1e-4)
    assert_allclose(two.bandwidth_, one.bandwidth_ * scale, rtol=1e-5)
    assert_allclose(two.mmd2_, one.mmd2_, rtol=1e-4)


def test_given_covariances_are_in_the_units_of_the_columns():
    X, scale = blobs(), np.array([0.01, 1000.0])
    means, covariances = np.array([[-6.0, -6.0], [6.0, 6.0]]), np.array([[[1.0, 0.3], [0.3, 2.0]], np.eye(2)])
    given = {"means": means * scale, "covariances": covariances * (scale[:, None] * scale)}
    model = KernelDPMixture(candidates=given).fit(X * scale)
    order = np.argsort(model.means_[:, 0])
    assert_allclose(model.means_[order], given["means"])
    assert_allclose(model.covariances_[order], given["covariances"])


def test_numbers_are_bandwidths_of_all_columns_as_they_are():
    X = blobs()
    model = KernelDPMixture(bandwidth=2.0, candidates=[[-6.0, -6.0], [0, 0], [6, 6]]).fit(X)
    assert model.bandwidth_ == 2.0
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(2, 2)))[0]
    turned = KernelDPMixture(bandwidth=2.0, candidates=np.array([[-6.0, -6.0], [0, 0], [6, 6]]) @ turn).fit(X @ turn)
    assert_allclose(turned.mmd2_, model.mmd2_, rtol=1e-6)  # distances are those of the rows
    assert_array_equal(KernelDPMixture(bandwidth=[1.0, 2.0]).fit(X).bandwidth_, [1.0, 2.0])
    assert isinstance(KernelDPMixture(covariance="spherical").fit(X).bandwidth_, float)


def test_the_test_for_change_knows_no_table_by_its_units():
    rng = np.random.default_rng(0)
    level = []
    for _ in range(60):  # few rows and many columns: units chosen from one table would tell it from the other
        X = rng.normal(size=(24, 12))
        level.append(KernelDPMixture(candidates=X[:2]).fit(X).mmd_test(rng.normal(size=(24, 12)), 99).pvalue)
    assert np.mean(np.array(level) <= 0.2) < 0.2 + 3 * np.sqrt(0.2 * 0.8 / 60)
    X = rng.normal(size=(300, 2)) * [1.0, 1e-3]
    new = rng.normal(size=(300, 2)) * [1.0, 1e-3] + [0.0, 1e-3]
    new[0, 1] = 1e6  # one row far away does not hide what the others do
    assert KernelDPMixture().fit(X).mmd_test(new).pvalue < 0.01


@pytest.mark.parametrize(("offset", "scale"), [(1e9, 1.0), (-1e3, 1e-2), (0.0, 1 / 3)])
def test_offsets_change_rounding_and_with_it_the_halves_of_rows_that_are_held_out(offset, scale):
    X = blobs()
    one, two = KernelDPMixture().fit(X), KernelDPMixture().fit(X * scale + offset)
    assert_allclose(two.bandwidth_, one.bandwidth_ * scale, rtol=1e-5)
    assert_allclose(two.score(X * scale + offset), one.score(X) - 2 * np.log(scale), atol=0.05)
    assert abs(two.mmd2_ - one.mmd2_) < 0.005


def test_candidates_may_be_given():
    X, means = blobs(), np.array([[-6.0, -6.0], [0.0, 0.0], [6.0, 6.0]])
    model = KernelDPMixture(candidates=means).fit(X)
    assert_allclose(np.sort(model.means_, axis=0), means, atol=1e-9)
    assert_allclose(model.weights_, 1 / 3, atol=0.02)
    assert_allclose(model.covariances_, np.tile(np.eye(2), (3, 1, 1)), atol=0.4)
    both = KernelDPMixture(candidates={"means": means, "covariances": np.tile(2 * np.eye(2), (3, 1, 1))}).fit(X)
    assert_allclose(both.covariances_, np.tile(2 * np.eye(2), (3, 1, 1)))
    wide = KernelDPMixture(covariance="spherical", candidates={"means": means, "covariances": np.ones(3)}).fit(X)
    assert_allclose(wide.covariances_, 1.0)


def test_one_candidate_and_repeated_candidates():
    X = blobs()
    assert_array_equal(KernelDPMixture(candidates=[[0.0, 0.0]]).fit(X).weights_, [1.0])
    twice = KernelDPMixture(candidates=[[0.0, 0.0], [6, 6], [0, 0]]).fit(X)
    share = dict(zip(twice.support_, twice.weights_))
    assert_allclose(share[0], share[2], rtol=1e-6)
    with pytest.warns(UserWarning, match="candidates repeat"):
        model = KernelDPMixture(candidates=[[0.0, 0.0], [6, 6], [0, 0]], ridge=0).fit(X)
    assert model.ridge_ > 0


def test_more_draws_from_the_prior_come_no_farther():
    X = blobs()
    distance = [
        KernelDPMixture(candidates="prior", n_candidates=T, ridge=1e-10, random_state=3).fit(X).mmd2_
        for T in (5, 20, 80, 200)
    ]
    assert (np.diff(distance) <= 1e-6).all()


def test_the_concentration_decides_how_many_are_drawn():
    X = blobs(20)
    few, many = (KernelDPMixture(candidates="prior", concentration=a, random_state=0).fit(X) for a in (1.0, 50.0))
    assert few.n_candidates_ == EMBEDDING.drawn
    assert many.n_candidates_ == truncation_level(50.0, EMBEDDING.truncation) > EMBEDDING.drawn
    with pytest.raises(ValueError, match=r"asks for \d+ candidates.*n_candidates"):
        KernelDPMixture(candidates="prior", concentration=1e6).fit(X)


def test_features_stand_for_the_kernel():
    X = blobs()
    exact = KernelDPMixture(features=None).fit(X)
    close = KernelDPMixture(features=4000, random_state=0).fit(X)
    assert_allclose(close.score(X), exact.score(X), atol=0.02)
    assert_allclose(close.mmd2_, exact.mmd2_, atol=5e-3)


def test_long_tables_are_read_by_features(monkeypatch):
    X = blobs(200)
    number = EMBEDDING._replace(evaluations=1000.0)
    for module in ("kfree.models.kernel_problem", "kfree.models.kernel_mixture"):
        monkeypatch.setattr(f"{module}.EMBEDDING", number)
    model = KernelDPMixture(random_state=0).fit(X)
    assert 0 <= model.mmd2_ < 0.02
    assert 0 <= model.mmd2(X) < 0.02
    assert abs(model.mmd2(X, unbiased=True)) < 0.02


class TestBatches:
    def test_batches_add_up_to_the_whole(self):
        X = blobs(300, seed=1)
        X = X[np.random.default_rng(0).permutation(len(X))]
        given = {"candidates": [[-6, -6], [0, 0], [6, 6], [3, 3]], "bandwidth": 1.0, "features": 500, "random_state": 0}
        parts = KernelDPMixture(**given)
        weight = np.random.default_rng(1).random(len(X)) + 0.5
        for batch in np.array_split(np.arange(len(X)), 4):
            parts.partial_fit(X[batch], sample_weight=weight[batch])
        whole = KernelDPMixture(**given).partial_fit(X, sample_weight=weight)
        # units and covariances near the candidates are from the first batch
        assert_allclose(parts.weights_.sum(), whole.weights_.sum())
        assert_allclose(parts.score(X), whole.score(X), atol=0.05)
        assert_allclose(parts.mmd2_, whole.mmd2_, atol=0.01)

    def test_a_stream_of_batches_comes_close_to_a_fit(self):
        X = blobs(400, seed=2)
        X = X[np.random.default_rng(0).permutation(len(X))]
        model = KernelDPMixture(random_state=0, features=3000)
        for start in range(0, len(X), 300):
            model.partial_fit(X[start : start + 300])
        assert_allclose(model.score(X), KernelDPMixture().fit(X).score(X), atol=0.05)
        assert_array_equal(model.labels_, model.predict(X[900:]))
        assert model.mmd_test(X[:500]).pvalue > 0.01
        assert model.mmd_test(X[:300] + 1.0).pvalue < 0.01

    def test_a_fit_begins_anew(self):
        X = blobs()
        model = KernelDPMixture(random_state=0).partial_fit(X + 100)
        assert_array_equal(model.fit(X).labels_, KernelDPMixture(random_state=0).fit(X).labels_)
        assert abs(model.partial_fit(X).means_).max() < 20

    def test_batches_of_sparse_rows(self):
        X, _ = texts(300)
        model = KernelDPMixture(family="multinomial", random_state=0)
        for part in (X[:100], sp.csr_matrix(X[100:200]), X[200:]):
            model.partial_fit(part)
        assert model.mmd_test(sp.csr_matrix(X)).pvalue > 0.01

    def test_batches_are_checked(self):
        model = KernelDPMixture().partial_fit(blobs())
        with pytest.raises(ValueError, match="3 features"):
            model.partial_fit(np.ones((4, 3)))
        with pytest.raises(ValueError, match="zero for every row"):
            model.partial_fit(blobs(), sample_weight=np.zeros(300))


class TestDrift:
    def test_the_level_holds(self):
        rng, pvalues = np.random.default_rng(0), []
        for i in range(150):
            X = rng.normal(size=(60, 2))
            model = KernelDPMixture(candidates=[[0.0, 0.0]], random_state=i).fit(X)
            pvalues.append(model.mmd_test(rng.normal(size=(40, 2)), n_permutations=39).pvalue)
        for level in (0.05, 0.1, 0.25, 0.5):
            assert (np.array(pvalues) <= level).mean() <= level + 3 * np.sqrt(level * (1 - level) / 150)

    @pytest.mark.parametrize("change", [lambda X: X + 0.7, lambda X: X * 1.5, lambda X: X[:100]])
    def test_changes_are_seen(self, change):
        model = KernelDPMixture(random_state=0).fit(blobs(150))
        assert model.mmd_test(blobs(150, seed=5)).pvalue > 0.01
        result = model.mmd_test(change(blobs(150, seed=6)))
        assert result.pvalue == 0.001
        assert result.statistic > 0

    def test_long_tables_are_drawn_from(self):
        model = KernelDPMixture(random_state=0).fit(blobs(100))
        assert model.mmd_test(blobs(200), n_permutations=19, max_rows=50).n_rows == (50, 50)

    def test_arguments_are_checked(self):
        model = KernelDPMixture().fit(blobs(20))
        with pytest.raises(ValueError, match="n_permutations must be >= 1"):
            model.mmd_test(blobs(20), n_permutations=0)
        with pytest.raises(ValueError, match="compares pairs"):
            model.mmd2([[0.0, 0.0]], unbiased=True)
        with pytest.raises(TypeError, match="unbiased must be True or False"):
            model.mmd2(blobs(20), unbiased="yes")
        with pytest.raises(NotFittedError):
            KernelDPMixture().mmd2(blobs(20))
        with pytest.raises(ValueError, match="X has 3 features"):
            model.mmd_test(np.ones((5, 3)))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("features", [None, 300])
@pytest.mark.parametrize("covariance", ["full", "diag", "spherical"])
def test_refining_lowers_the_distance_and_never_raises_the_objective(covariance, features):
    X = blobs(60)
    given = {"covariance": covariance, "candidates": [[-5, -5], [1, 1], [5, 7.0]], "features": features}
    plain = KernelDPMixture(**given, random_state=0).fit(X)
    model = KernelDPMixture(**given, refine=True, random_state=0).fit(X)
    assert (np.diff(model.objective_trace_) <= 1e-12).all()
    assert_allclose(model.objective_trace_[0], plain.objective_, rtol=1e-9)
    assert model.mmd2_ < 0.6 * plain.mmd2_
    assert model.n_iter_ > 1


class TestEdges:
    @pytest.mark.parametrize("refine", [False, True])
    @pytest.mark.parametrize(
        "X",
        [
            np.array([[1.0, 2.0]]),
            np.array([[1.0, 2.0], [1.5, 2.0]]),
            np.ones((20, 3)),
            np.random.default_rng(0).normal(size=(30, 1)),
            np.column_stack([np.random.default_rng(0).normal(size=(30, 2)), np.full(30, 5.0)]),
            np.repeat(np.random.default_rng(0).normal(size=(30, 1)), 3, axis=1),
            np.concatenate([np.random.default_rng(0).normal(size=(30, 2)), [[1e40, 0.0]]]),
            np.random.default_rng(0).normal(size=(40, 60)),
        ],
        ids=["one row", "two rows", "equal", "one column", "constant", "collinear", "outlier", "wide"],
    )
    @pytest.mark.filterwarnings("ignore::UserWarning", "error::RuntimeWarning")
    def test_odd_tables_have_a_mixture(self, X, refine):
        for covariance in ("full", "diag", "spherical"):
            model = KernelDPMixture(covariance=covariance, refine=refine, random_state=0).fit(X)
            for name in ("means_", "covariances_", "weights_", "mmd2_", "gap_", "objective_"):
                assert np.isfinite(getattr(model, name)).all(), name
            assert np.isfinite(model.score_samples(X)).all()
            assert_array_equal(model.predict(X), model.labels_)
            assert np.isfinite(model.sample(3)[0]).all()
            assert 0 < model.mmd_test(X, n_permutations=9).pvalue <= 1

    def test_equal_rows_say_nothing_of_the_width(self):
        with pytest.warns(UserWarning, match="rows of X do not differ"):
            KernelDPMixture().fit(np.ones((5, 2)))

    @pytest.mark.parametrize("refine", [False, True])
    @pytest.mark.parametrize("features", [None, 100])
    def test_without_time_there_is_a_mixture_and_a_warning(self, features, refine):
        X = blobs()
        with pytest.warns(ConvergenceWarning, match="max_time"):
            model = KernelDPMixture(max_time=0, features=features, refine=refine, random_state=0).fit(X)
        assert not model.converged_
        assert_array_equal(model.predict(X), model.labels_)

    @pytest.mark.parametrize(("candidates", "refine"), [("clusters", False), ("clusters", True), ("local", False)])
    def test_a_signal_at_any_time_leaves_a_mixture(self, candidates, refine):
        X = blobs(1500)

        def check(model):
            assert_array_equal(model.predict(X), model.labels_)
            assert np.isfinite([model.mmd2_, model.gap_]).all()
            assert_allclose(model.weights_.sum(), 1.0)

        check_signals(lambda: KernelDPMixture(candidates=candidates, refine=refine).fit(X), check)

    def test_what_is_found_is_told_if_asked(self, capsys):
        KernelDPMixture().fit(blobs())
        assert not capsys.readouterr().out
        KernelDPMixture(verbose=1).fit(blobs())
        assert "[KernelDPMixture] weights 1:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"family": "poisson"}, ValueError, "Unknown family 'poisson'"),
        ({"covariance": "tied"}, ValueError, "Unknown covariance 'tied'"),
        ({"candidates": "random"}, ValueError, "Unknown candidates 'random'.*means"),
        ({"candidates": [[1.0]]}, ValueError, r"means of shape \(1, 1\).*2 numbers"),
        ({"candidates": [[np.nan, 0.0]]}, ValueError, r"candidates\[0, 0\] = nan"),
        ({"candidates": [["a", "b"]]}, ValueError, "must hold numbers"),
        ({"candidates": {"covariances": 1}}, ValueError, "'means', which is needed"),
        ({"candidates": {"means": [[0, 0]], "covariances": [1.0]}}, ValueError, r"\(1,\), but \(1, 2, 2\) is needed"),
        ({"candidates": {"means": [[0, 0]], "covariances": [[[1, 0], [0, -1]]]}}, ValueError, "least variance -"),
        ({"candidates": {"means": [[0, 0]], "covariances": [[[1, 0.5], [0, 1]]]}}, ValueError, "symmetric"),
        ({"candidates": [[1e200, 0.0]]}, ValueError, "Are their units those of X"),
        ({"n_candidates": 0}, ValueError, "n_candidates must be >= 1"),
        ({"n_candidates": 2.5}, TypeError, "n_candidates must be an integer"),
        ({"bandwidth": 0}, ValueError, "bandwidth must be > 0"),
        ({"bandwidth": [1.0, np.nan]}, ValueError, r"bandwidth\[1\] = nan"),
        ({"bandwidth": []}, ValueError, "bandwidth has shape"),
        ({"bandwidth": "wide"}, ValueError, "Unknown bandwidth 'wide'"),
        ({"bandwidth": 1e30}, ValueError, "Are its units those of X"),
        ({"bandwidth": None}, TypeError, "bandwidth must be a number"),
        ({"bandwidth": np.inf}, ValueError, "must be finite"),
        ({"ridge": -1.0}, ValueError, "ridge must be >= 0"),
        ({"ridge": np.inf}, ValueError, "ridge must be finite"),
        ({"ridge": "best"}, ValueError, "Unknown ridge 'best'"),
        ({"features": 0}, ValueError, "features must be >= 1"),
        ({"features": "many"}, ValueError, "Unknown features 'many'"),
        ({"refine": 1}, TypeError, "refine must be True or False"),
        ({"refine": True, "family": "bernoulli"}, ValueError, "refine=True moves Gaussian"),
        ({"concentration": 0}, ValueError, "concentration must be > 0"),
        ({"concentration": 1e12}, ValueError, "at most 1e\\+08"),
        ({"max_time": -1}, ValueError, "max_time must be >= 0"),
        ({"verbose": "x"}, TypeError, "verbose must be an integer"),
    ],
)
def test_parameters_are_checked_at_fit(parameters, error, message):
    with pytest.raises(error, match=message):
        KernelDPMixture(**parameters).fit(blobs(10))


def test_rows_outside_the_domain_are_named():
    with pytest.raises(ValueError, match=r"zeros and ones, but X\[0, 1\] = 0.5, and 1 more.*Binari"):
        KernelDPMixture(family="bernoulli").fit([[0, 0.5], [0.25, 1]])
    with pytest.raises(ValueError, match=r"1 of 2 are \(rows 1\)"):
        KernelDPMixture(family="multinomial").fit([[1, 2], [0, 0]])
    with pytest.raises(ValueError, match="no bandwidth"):
        KernelDPMixture(family="multinomial", bandwidth=2.0).fit([[1, 2], [0, 1]])
    with pytest.raises(ValueError, match=r"candidates\[0\] is all zero"):
        KernelDPMixture(family="multinomial", candidates=[[0, 0]]).fit([[1, 2], [0, 1]])
    with pytest.raises(ValueError, match="is for family='gaussian'"):
        KernelDPMixture(family="bernoulli", candidates={"means": [[0, 1]], "covariances": 1}).fit([[1, 0], [0, 1]])
    with pytest.raises(TypeError, match="does not work on sparse rows"):
        KernelDPMixture().fit(sp.csr_matrix(np.eye(3)))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0.0, 0.1), ValueError, "concentration must be > 0"),
        ((1.0, -0.1), ValueError, "delta must be > 0"),
        ((np.inf, 0.1), ValueError, "concentration must be finite"),
        ((1.0, 0.1, "median"), ValueError, "Unknown kind"),
        ((1e9, 0.1), ValueError, "at most"),
        (("a", 0.1), TypeError, "concentration must be a number"),
    ],
)
def test_truncation_levels_are_checked(arguments, error, message):
    with pytest.raises(error, match=message):
        truncation_level(*arguments)


def test_nothing_is_warned_of_that_needs_no_act():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelDPMixture().fit(blobs()).mmd_test(blobs(50), n_permutations=9)
