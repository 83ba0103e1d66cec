"""Every mistake gets an error that says what, where, how much and what to do."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from kfree import DPMeans, Mahalanobis, lam_for_k, lam_path, radius_for_k

X = np.random.default_rng(0).random((20, 3)) * 0.8 + 0.1


def broken(value, at=(7, 1)):
    Y = X.copy()
    Y[at] = value
    return Y


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, lambda Y: Y.astype(np.float32)])
def test_values_that_are_not_numbers_are_named(value, make):
    with pytest.raises(ValueError, match=r"Input X contains .*X\[7, 1\] = .*1 such entries .* in 1 rows"):
        DPMeans(radius=1.0).fit(make(broken(value)))


@pytest.mark.parametrize("divergence", ["kl", "poisson", "negative_binomial", "bernoulli", "binomial"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_negative_values_are_named(divergence, make):
    with pytest.raises(ValueError, match=rf"divergence='{divergence}' needs entries >= 0.*X\[7, 1\] = -2"):
        DPMeans(radius=1.0, divergence=divergence).fit(make(broken(-2.0)))


def test_the_number_of_other_offenders_is_given():
    Y = broken(-2.0)
    Y[9] = -1.0
    with pytest.raises(ValueError, match="and 3 more entries"):
        DPMeans(radius=1.0, divergence="poisson").fit(Y)


def test_zeros_are_outside_itakura_saito():
    with pytest.raises(ValueError, match=r"needs entries > 0, but X\[7, 1\] = 0.*Add a small positive constant"):
        DPMeans(radius=1.0, divergence="itakura_saito").fit(broken(0.0))
    with pytest.raises(TypeError, match="does not work on sparse rows because zeros lie outside its domain"):
        DPMeans(radius=1.0, divergence="itakura_saito").fit(sp.csr_matrix(X))


def test_values_above_one_are_outside_bernoulli():
    with pytest.raises(ValueError, match=r"needs entries >= 0 and <= 1, but X\[7, 1\] = 3"):
        DPMeans(radius=1.0, divergence="bernoulli").fit(broken(3.0))


@pytest.mark.parametrize("divergence", ["kl", "cosine"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_empty_rows_are_named(divergence, make):
    Y = X.copy()
    Y[[3, 11]] = 0.0
    with pytest.raises(ValueError, match=r"2 of 20 are \(rows 3, 11\)"):
        DPMeans(radius=0.5, divergence=divergence).fit(make(Y))


def test_shapes_are_checked():
    with pytest.raises(ValueError, match=r"1D array|1-d|Reshape"):
        DPMeans(radius=1.0).fit(X[0])
    with pytest.raises(ValueError, match=r"0 sample|minimum of 1"):
        DPMeans(radius=1.0).fit(X[:0])
    with pytest.raises(ValueError, match="X has 2 features, but DPMeans is expecting 3"):
        DPMeans(radius=1.0).fit(X).predict(X[:, :2])
    for method in ("transform", "decision_function", "score", "partial_fit"):
        with pytest.raises(ValueError, match="2 features"):
            getattr(DPMeans(radius=1.0).fit(X), method)(X[:, :2])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(20), "zero for every row"),
        (np.r_[np.ones(19), -1.0], r"sample_weight\[19\] = -1"),
        (np.r_[np.ones(19), np.nan], r"finite, but sample_weight\[19\] = nan"),
        (np.ones(19), r"shape \(19,\), but X has 20 rows"),
    ],
)
def test_weights_are_checked(weight, message):
    with pytest.raises(ValueError, match=message):
        DPMeans(radius=1.0).fit(X, sample_weight=weight)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"lam": 0.0}, ValueError, "lam must be > 0, got 0.0"),
        ({"lam": -1}, ValueError, "lam must be > 0"),
        ({"lam": np.nan}, ValueError, "lam must be > 0, got nan"),
        ({"lam": "automatic"}, ValueError, "Unknown lam 'automatic'"),
        ({"lam": None}, TypeError, "lam must be a number"),
        ({"lam": [1.0]}, TypeError, "lam must be a number"),
        ({"radius": 0.0}, ValueError, "radius must be > 0, got 0.0"),
        ({"radius": -1}, ValueError, "radius must be > 0"),
        ({"radius": np.nan}, ValueError, "radius must be > 0, got nan"),
        ({"radius": "auto"}, TypeError, "radius must be a number"),
        ({"n_clusters": 0}, ValueError, "n_clusters must be >= 1, got 0"),
        ({"n_clusters": -3}, ValueError, "n_clusters must be >= 1"),
        ({"n_clusters": 2.5}, TypeError, "n_clusters must be an integer"),
        ({"n_clusters": np.nan}, TypeError, "n_clusters must be an integer"),
        ({"n_clusters": 21}, ValueError, "n_clusters=21, but X has only 20 different rows.*Pass n_clusters <= 20"),
        ({"n_clusters": 5, "max_clusters": 4}, ValueError, "n_clusters=5 is more than max_clusters=4"),
        ({"n_clusters": 5, "init": np.ones((4, 3))}, ValueError, "init has 4 centres, but n_clusters=5"),
        ({"lam": 2.0, "radius": 3.0}, ValueError, "lam=2.0 and radius=3.0 says how many.*Pass one"),
        ({"lam": 2.0, "n_clusters": 3}, ValueError, "lam=2.0 and n_clusters=3 says how many.*Pass one"),
        ({"radius": 2.0, "n_clusters": 3}, ValueError, "n_clusters=3 and radius=2.0 says how many.*Pass one"),
        ({"divergence": "euclid"}, ValueError, "Unknown divergence 'euclid'. Choose one of bernoulli"),
        ({"divergence": 3}, TypeError, "divergence must be a name or a Family instance"),
        ({"divergence": Mahalanobis}, TypeError, r"pass an instance, Mahalanobis\(\)"),
        ({"algorithm": "fast"}, ValueError, "Unknown algorithm 'fast'"),
        ({"search": "best"}, ValueError, "Unknown search 'best'"),
        ({"init": "random"}, ValueError, "Unknown init 'random'"),
        ({"init": np.ones((2, 5))}, ValueError, r"init has shape \(2, 5\)"),
        ({"init": np.full((2, 3), np.nan)}, ValueError, "init must be finite"),
        ({"order": "sorted", "algorithm": "serial"}, ValueError, "Unknown order 'sorted'"),
        ({"order": np.zeros(20, int), "algorithm": "serial"}, ValueError, "a permutation of 0 .. 19"),
        ({"weighting": "sum"}, ValueError, "Unknown weighting"),
        ({"n_init": 0}, ValueError, "n_init must be >= 1"),
        ({"n_init": 1.5}, TypeError, "n_init must be an integer"),
        ({"max_iter": 0}, ValueError, "max_iter must be >= 1"),
        ({"tol": -1e-3}, ValueError, "tol must be >= 0"),
        ({"smoothing": -1.0}, ValueError, "smoothing must be >= 0"),
        ({"smoothing": np.inf}, ValueError, "smoothing must be finite"),
        ({"smoothing": 1.0, "divergence": "cosine"}, ValueError, "cosine' has none. Set smoothing=0"),
        ({"smoothing": 1.0, "smoothing_mean": [1.0]}, ValueError, r"smoothing_mean has shape \(1,\)"),
        ({"max_clusters": 0}, ValueError, "max_clusters must be >= 1"),
        ({"max_time": -1}, ValueError, "max_time must be >= 0"),
        ({"divergence": Mahalanobis(np.eye(2))}, ValueError, r"shape \(2, 2\), but X has 3 columns"),
        ({"divergence": Mahalanobis(-np.eye(3))}, ValueError, "positive definite"),
    ],
)
def test_parameters_are_checked_at_fit(parameters, error, message):
    with pytest.raises(error, match=message):
        DPMeans(**parameters).fit(X)
    if not {"lam", "radius", "n_clusters"} & set(parameters):
        for asked in ({"lam": 1.0}, {"radius": 1.0}, {"n_clusters": 3}):
            with pytest.raises(error, match=message):
                DPMeans(**asked, **parameters).fit(X)


def test_mahalanobis_says_why_it_cannot_read_sparse_rows():
    with pytest.raises(TypeError, match=r"not a sum over columns. Pass X.toarray\(\)"):
        DPMeans(radius=1.0, divergence="mahalanobis").fit(sp.csr_matrix(X))


def test_functions_check_their_arguments():
    with pytest.raises(ValueError, match="k=21 clusters cannot be opened by 20 rows"):
        radius_for_k(X, 21)
    with pytest.raises(ValueError, match="k must be >= 1"):
        radius_for_k(X, 0)
    with pytest.raises(ValueError, match="All rows are equal"):
        radius_for_k(np.ones((5, 2)), 2)
    with pytest.raises(ValueError, match="Pass smoothing > 0"):
        radius_for_k(np.eye(6), 3, divergence="kl")
    with pytest.raises(ValueError, match="20 rows cannot be k=21 clusters"):
        lam_for_k(X, 21)
    with pytest.raises(ValueError, match="k must be >= 1"):
        lam_for_k(X, 0)
    with pytest.raises(TypeError, match="k must be an integer"):
        lam_for_k(X, 2.5)
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="max_clusters must be >= 1"):
            lam_path(X, max_clusters=wrong)
    with pytest.raises(TypeError, match="max_clusters must be an integer"):
        lam_path(X, max_clusters=2.5)
    with pytest.raises(ValueError, match="pass n_clusters >= 2"):
        lam_path(X, max_clusters=3).parents(1)


def test_nothing_is_taken_by_its_place():
    with pytest.raises(TypeError, match="positional"):
        DPMeans(4)


def test_an_unfitted_model_says_so():
    from sklearn.exceptions import NotFittedError

    for method in ("predict", "transform", "decision_function", "score"):
        with pytest.raises(NotFittedError):
            getattr(DPMeans(radius=1.0), method)(X)


def test_a_warm_start_that_does_not_fit_the_data_is_named():
    model = DPMeans(radius=1.0, warm_start=True).fit(np.eye(3))
    with pytest.raises(ValueError, match=r"warm_start=True cannot go on .* shape \(1, 3\).*\(K, 2\).*warm_start=False"):
        model.fit(np.eye(2))
    model = DPMeans(radius=1.0, warm_start=True).fit(-np.eye(3))
    with pytest.raises(ValueError, match="warm_start=True cannot go on"):
        model.set_params(divergence="poisson").fit(np.eye(3))


@pytest.mark.parametrize(
    ("setting", "error", "message"),
    [
        ({"warm_start": 3}, TypeError, "warm_start must be True or False"),
        ({"smoothing_mean": "a"}, ValueError, "smoothing_mean must hold numbers"),
        ({"smoothing_mean": [0.0, np.nan, 1.0]}, ValueError, r"smoothing_mean\[1\] = nan and 1 of 3"),
        ({"smoothing_mean": [0.0]}, ValueError, r"smoothing_mean has shape \(1,\)"),
        ({"init": [[0.0, np.inf, 1.0]]}, ValueError, r"init\[0, 1\] = inf"),
        ({"lam": "foo", "radius": None}, ValueError, "'auto', or a positive number"),
        (
            {"divergence": Mahalanobis([[1, 2, 0], [0, 1, 0], [0, 0, 1]])},
            ValueError,
            r"symmetric, but entry \[0, 1\] is 2",
        ),
    ],
)
def test_parameters_are_looked_at_even_where_nothing_needs_them(setting, error, message):
    with pytest.raises(error, match=message):
        DPMeans(**{"radius": 1.0, **setting}).fit(np.eye(3))


def test_weights_that_are_no_real_numbers_are_refused():
    with pytest.raises(ValueError, match="sample_weight must hold real numbers"):
        DPMeans(radius=1.0).fit(np.eye(3), sample_weight=[1j, 1, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="overflows"):
            DPMeans(radius=1.0).fit(np.eye(3), sample_weight=np.full(3, 1e308))


def test_a_path_with_smoothing_has_the_objective_of_its_fits():
    X = np.random.default_rng(0).poisson(3, size=(200, 4)).astype(float)
    kind = {"divergence": "poisson", "smoothing": 0.5}
    path = lam_path(X, max_clusters=6, **kind)
    one = DPMeans(n_clusters=1, **kind).fit(X)
    assert one.objective_ >= one.inertia_ + one.lam_  # the prior's share, which is nothing at the prior's mean
    np.testing.assert_allclose(path.inertia[0], one.objective_ - one.lam_)
    for K in path.n_clusters[1:]:  # all rows were looked at, and the fit goes on from there
        model = DPMeans(n_clusters=int(K), **kind).fit(X)
        assert model.objective_ - K * (model.lam_ or 0.0) <= path.inertia[K - 1] * (1 + 1e-9)
        assert model.objective_ - K * (model.lam_ or 0.0) > 1.0001 * model.inertia_
