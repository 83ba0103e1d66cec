"""Small and odd cases: no price, few rows, interrupts at the end, copies of long rows."""

import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import kfree.inference.clusters.batch
import kfree.inference.clusters.fit
from kfree import Binomial, DPMeans, lam_for_k, lam_path, radius_for_k
from kfree.inference.clusters.fit import ALGORITHMS
from kfree.inference.clusters.labelling import LocalLabelling
from kfree.kernels import kernels
from support.numbers import set_numbers


@pytest.mark.parametrize("algorithm", ["batch", "serial", "delayed", "collapsed"])
@pytest.mark.parametrize("search", ["points", "polish", "full"])
@pytest.mark.parametrize("seeds", [[0, 2], [0, 1, 2, 3]])
def test_without_a_price_clusters_are_neither_merged_nor_opened(algorithm, search, seeds):
    X = np.array([[0.0], [1.0], [10.0], [11.0]])
    model = DPMeans(radius=np.inf, init=X[seeds], search=search, algorithm=algorithm, random_state=0).fit(X)
    assert model.n_clusters_ == len(seeds)
    assert model.objective_ == pytest.approx(1.0 if len(seeds) == 2 else 0.0)


def test_without_a_price_a_row_that_every_centre_excludes_is_novel_and_nothing_warns():
    X = [[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = DPMeans(radius=np.inf, divergence="poisson", init=[[1.0, 0.0], [0.0, 1.0]]).fit(X)
        assert model.decision_function([[1.0, 1.0], [1.0, 0.0]]).tolist() == [-np.inf, np.inf]
        DPMeans(radius=np.inf, divergence="poisson", algorithm="serial", init=[[1.0, 0.0]]).fit(
            [[1.0, 0], [2, 0], [1, 1]]
        )
        DPMeans(radius=1.0, divergence="poisson", smoothing=0.5).fit(
            [[1.0, 0], [2, 0], [1, 1]], sample_weight=[1, 1, 0]
        )


@pytest.mark.parametrize("seed", range(20))
def test_integer_weights_are_copies_whatever_the_rows_weigh_by_their_length(seed):
    rng = np.random.default_rng(seed)
    X, w = rng.poisson(rng.choice([1.0, 20.0], size=(12, 1)), size=(12, 3)) + 1.0, rng.integers(1, 4, size=12)
    for weighting in ("none", "length", "relative"):
        settings = {"divergence": "kl", "weighting": weighting, "tol": 0.0}
        weighted = DPMeans(radius=0.05, **settings).fit(X, sample_weight=w)
        copied = DPMeans(radius=0.05, **settings).fit(np.repeat(X, w, axis=0))
        assert weighted.n_clusters_ == copied.n_clusters_
        assert_allclose(weighted.objective_, copied.objective_, rtol=1e-10)


def test_an_outlier_that_excludes_all_does_not_keep_farthest_first_from_its_radius():
    X = np.vstack([np.random.default_rng(0).dirichlet(np.full(4, 5.0), size=200), [1, 0, 0, 0]])
    radii = [radius_for_k(X, k, divergence="kl") for k in (1, 2, 3)]
    assert np.all(np.diff(radii) < 0)
    with pytest.raises(ValueError, match="smoothing > 0"):
        radius_for_k(np.eye(30), 3, divergence="kl")


def test_equal_rows_have_no_covariance_to_measure_with():
    model = DPMeans(radius=1.0, divergence="mahalanobis").fit(np.full((10, 3), 0.1))
    assert_allclose(model.family_.covariance, 0.01 * np.eye(3), atol=1e-20)  # in units of the mean
    row = np.array([6.1227573641555475, -7.666995093942545, 1.2542965401773365])
    model = DPMeans(radius=10.0, divergence="mahalanobis", smoothing=0.3).fit([row, row + 1], sample_weight=[0.37, 0])
    assert model.objective_ == pytest.approx(10.0)
    assert model.score([row]) == pytest.approx(0.0)


@pytest.mark.parametrize("place", ["close", "assign", "fence"])
def test_an_interrupt_in_the_last_assignment_does_not_lose_the_fit(place, monkeypatch):
    X = np.random.default_rng(0).normal(size=(300, 2))
    owner = kfree.inference.clusters.fit if place == "close" else LocalLabelling
    whole, original, calls = DPMeans(radius=1.0).fit(X), getattr(owner, place), []

    def interrupted(*args, **kwargs):
        calls.append(place)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, place, interrupted)
    model = DPMeans(radius=1.0, max_iter=1).fit(X) if place == "assign" else DPMeans(radius=1.0).fit(X)
    assert calls
    assert (model.labels_ == model.predict(X)).all()
    if place != "assign":
        assert (model.labels_ == whole.labels_).all()


@pytest.mark.parametrize("sparse", [False, True])
def test_time_runs_out_in_the_middle_of_a_pass_of_single_rows(sparse):
    rng = np.random.default_rng(0)
    X = rng.poisson(0.1, size=(4000, 300)) + np.eye(4000, 300) if sparse else rng.normal(size=(4000, 8))
    X = sp.csr_matrix(X[X.sum(axis=1) > 0]) if sparse else X
    settings = {"divergence": "kl", "smoothing": 0.1} if sparse else {}
    DPMeans(radius=0.5, algorithm="collapsed", max_iter=1, **settings).fit(X[:50])  # compiled by now
    start = time.monotonic()
    model = DPMeans(radius=0.5, algorithm="collapsed", max_time=0.1, random_state=0, **settings).fit(X)
    assert time.monotonic() - start < 5  # a pass takes far longer
    assert not model.converged_
    assert model.n_clusters_ > 1


@pytest.mark.parametrize("n", [1, 2, 3, 10, 29])
def test_auto_says_of_few_rows_what_it_does(n):
    X = np.random.default_rng(n).normal(size=(n, 3)) + 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DPMeans().fit(X)
    lo, hi = model.lam_window_
    whole = ((X - X.mean(axis=0)) ** 2).sum()
    assert model.n_clusters_ == model.n_groups_ == 1
    assert lo <= model.lam_ <= hi == np.inf
    assert (
        whole / max(n - 1, 1) * (1 - 1e-9) <= lo <= whole * (1 + 1e-9)
    )  # what all clusters save, each; and one at most
    if n > 1:
        assert DPMeans(lam=1.001 * lo).fit(X).n_clusters_ == 1
        assert DPMeans(lam=0.999 * lo).fit(X).n_clusters_ > 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"init": [[-1.0, 2.0]]}, r"init\[0, 0\] = -1"),
        ({"smoothing": 1.0, "smoothing_mean": [-1.0, 2.0]}, r"smoothing_mean\[0, 0\] = -1"),
    ],
)
def test_what_is_wrong_with_a_parameter_is_not_said_of_the_data(settings, message):
    with pytest.raises(ValueError, match=message):
        DPMeans(radius=1.0, divergence="poisson", **settings).fit([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize("settings", [{"smoothing": "a"}, {"smoothing": -1.0}, {"max_clusters": 0}, {"weighting": "a"}])
def test_a_path_checks_its_settings(settings):
    with pytest.raises((ValueError, TypeError), match=next(iter(settings))):
        lam_path(np.arange(10.0)[:, None], **settings)


@pytest.mark.parametrize(
    ("unit", "asked"),
    [
        *((unit, asked) for unit in (1e80, 1e160, 1e-120) for asked in ({}, {"lam": 1.0}, {"n_clusters": 2})),
        (1e160, {"radius": 1.0}),
        (1e-160, {"radius": 1.0}),
    ],
)
def test_rows_whose_distances_leave_the_range_of_floats_are_an_error(unit, asked):
    X = np.random.default_rng(0).normal(size=(60, 3)) * unit
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="Rescale the data"):
        DPMeans(**asked).fit(X)


@pytest.mark.parametrize("unit", [1e-60, 1e-30, 1e30, 1e60])
def test_units_of_any_size_that_floats_can_square_do_not_matter(unit):
    X = np.concatenate([np.random.default_rng(k).normal(4 * k, 0.5, size=(100, 2)) for k in range(3)])
    assert DPMeans(radius=5.0 * unit**2).fit(X * unit).n_clusters_ == DPMeans(radius=5.0).fit(X).n_clusters_ == 3
    assert DPMeans().fit(X * unit).n_clusters_ == 3


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda X: DPMeans(radius=1.0).fit(X, sample_weight="abc"), "sample_weight"),
        (lambda X: DPMeans(radius=1.0, init=[["a", "b"]]).fit(X), "init"),
        (lambda X: DPMeans(radius=1.0, smoothing=1.0, smoothing_mean="a").fit(X), "smoothing_mean"),
        (lambda X: lam_path(X, smoothing=1.0, smoothing_mean="a"), "smoothing_mean"),
        (lambda X: lam_for_k(X, 2, sample_weight="abc"), "sample_weight"),
    ],
)
def test_what_is_not_a_number_is_named(call, name):
    with pytest.raises(ValueError, match=f"{name} must hold numbers, got"):
        call(np.arange(10.0).reshape(5, 2))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("divergence", ["sqeuclidean", "poisson"])
def test_a_weight_that_dwarfs_all_others_leaves_the_rest_of_its_cluster_in_place(divergence, sparse):
    X = np.array([[1.0, 2.0], [1.1, 2.0], [50.0, 3.0], [51.0, 3.0], [50.0, 4.0]])
    model = DPMeans(radius=5.0, divergence=divergence, algorithm="collapsed", order="index", init=X.mean(axis=0)[None])
    model.fit(sp.csr_matrix(X) if sparse else X, sample_weight=[1.0, 1.0, 1e16, 1.0, 1.0])
    assert_array_equal(model.labels_, [1, 1, 0, 0, 0])


@pytest.mark.parametrize("far", [1e3, 1e6, 1e8])
def test_counts_far_from_zero_move_by_more_than_rounding(far):
    rng = np.random.default_rng(2)
    near = rng.normal(size=(100, 3)) + 6 * rng.normal(size=(5, 3))[rng.integers(5, size=100)]
    options = {"algorithm": "collapsed", "order": "index", "tol": 0.0}
    counts = DPMeans(radius=5 / far, divergence="poisson", init=far + near[:2], **options).fit(far + near)
    # so far out one unit is worth 1 / far, and the divergence is half of the squared distance times that
    points = DPMeans(radius=10.0, init=near[:2], **options).fit(near)
    assert_allclose(2 * far * counts.objective_, points.objective_, rtol=0.05)


def test_time_is_looked_at_while_clusters_open():
    calls, kernel = [], kernels().move_points

    def watched(x, *rest):
        calls.append(x.shape[0] * rest[9].size)
        return kernel(x, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels(), "move_points", watched)
        set_numbers(patch, "CLUSTERS", distances=20_000)
        X = np.random.default_rng(0).normal(size=(2000, 2))
        DPMeans(radius=1e-9, algorithm="collapsed", order="index", max_iter=1, tol=1.0).fit(X)
    assert max(calls) <= 20_000


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_labels_are_what_predict_says_however_many_rows_are_tied(algorithm):
    rng = np.random.default_rng(158)
    X, start = rng.integers(0, 10, size=(5000, 3)).astype(float), rng.integers(0, 10, size=(150, 3)).astype(float)
    model = DPMeans(radius=1e9, algorithm=algorithm, order="index", init=np.unique(start, axis=0), max_time=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    assert_array_equal(model.labels_, model.predict(X))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("seed", [569, 1325, 1849, 2433, 3882, *range(5)])
def test_a_converged_fit_is_a_fixed_point_even_where_rows_are_tied(seed, algorithm):
    rng = np.random.default_rng(seed)
    shape = rng.integers(3, 40), rng.integers(1, 4)
    X = rng.integers(0, rng.integers(2, 4), size=shape).astype(float)
    lam = rng.choice([0.4, 0.8, 1, 1.25, 1.5, 2, 3])
    model = DPMeans(radius=lam, tol=0, algorithm=algorithm, random_state=0).fit(X)
    means = np.stack([X[model.labels_ == k].mean(axis=0) for k in range(model.n_clusters_)])
    assert model.converged_
    assert_allclose(model.cluster_centers_, means, atol=1e-12)
    assert_array_equal(model.labels_, model.predict(X))


def test_a_tie_that_the_last_digit_of_a_centre_decides_anew_is_followed_to_the_end():
    counts = {(0, 0): 3, (1, 0): 6, (1, 1): 2, (2, 2): 1, (1, 2): 3, (0, 1): 2, (2, 1): 1, (2, 0): 1}
    X = np.repeat(np.array(list(counts), dtype=float), list(counts.values()), axis=0)
    model = DPMeans(radius=1.25, tol=0).fit(X)
    again = DPMeans(radius=1.25, tol=0, init=model.cluster_centers_).fit(X)
    assert_allclose(model.objective_, again.objective_)
    assert_array_equal(model.labels_, again.labels_)


def test_rows_far_from_the_origin_keep_their_digits_however_small_the_unit():
    X = np.random.default_rng(1).normal(size=(20, 4)) * 5 + 1e6
    large, small = (DPMeans(radius=8 * u * u, smoothing=0.5).fit(X * u) for u in (1.0, 2.0**-465))
    assert_allclose(small.objective_ * 2.0**930, large.objective_, rtol=1e-9)
    DPMeans(radius=1.0).fit(np.full((5, 3), 0.1257302210933933e-140))


@pytest.mark.parametrize("asked", [{}, {"n_clusters": 3}])
def test_mahalanobis_does_not_depend_on_the_units_of_the_columns(asked):
    rng = np.random.default_rng(0)
    z = rng.integers(3, size=1500)
    X = np.c_[z, z == 1, np.full(1500, 3.0), z] + 0.05 * rng.normal(size=(1500, 4)) * [1, 1, 0, 1]
    if not asked:  # the first column less the last is noise alone: whitened, it makes rods of the groups
        X[:, 3] = 7.0
    units = np.array([1.0, 1e-6, 1e3, 1e5])
    one, other = (DPMeans(divergence="mahalanobis", **asked).fit(data) for data in (X, X * units))
    assert_array_equal(one.labels_, other.labels_)
    assert one.n_clusters_ == 3
    groups = [
        DPMeans(lam=lam_for_k(data, 3, divergence="mahalanobis"), divergence="mahalanobis").fit(data)
        for data in (X, X * units)
    ]
    for model in groups:
        assert_array_equal(np.unique(np.stack([z, model.labels_]), axis=1).shape, (2, 3))
    varies = np.ix_([0, 1, 3], [0, 1, 3]) if asked else np.ix_([0, 1], [0, 1])
    found, expected = other.family_.covariance[varies], np.cov((X * units).T, bias=True)[varies]
    assert_allclose(found, expected, rtol=1e-5, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["kl", "poisson", "binomial", "negative_binomial", "bernoulli"])
def test_a_full_search_splits_rows_with_zeros_without_smoothing(name):
    rng = np.random.default_rng(0)
    rate = np.repeat(np.array([[0.0, 0.4, 0.4, 0.1], [0.4, 0.0, 0.1, 0.4]]), 3, axis=1)
    counts = rng.binomial(1 if name == "bernoulli" else 8, rate[np.repeat([0, 1], 150)]).astype(float)
    counts = counts[counts.sum(axis=1) > 0]
    divergence = Binomial(8) if name == "binomial" else name
    one = DPMeans(radius=1e9, divergence=divergence).fit(counts)
    two = DPMeans(radius=one.inertia_ / 8, divergence=divergence, search="full").fit(counts)
    assert one.n_clusters_ == 1
    assert two.n_clusters_ >= 2
    assert two.objective_ < one.inertia_ + two.radius_
    assert two.lam_ is None


def test_a_stream_that_goes_on_from_a_fit_finds_new_groups():
    X, z = make_blobs(3000, centers=12, n_features=4, random_state=1)
    after_fit, stream = DPMeans().fit(X[z < 6]), DPMeans().partial_fit(X[z < 6])
    assert stream.objective_ == pytest.approx(stream.inertia_ + stream.lam_ * stream.n_clusters_)
    assert stream.lam_window_[0] < stream.lam_ < stream.lam_window_[1]
    for model in (after_fit, stream):
        model.partial_fit(X[z >= 6])
        assert model.n_clusters_ >= 12
    assert_array_equal(after_fit.labels_, stream.labels_)


def test_a_first_batch_that_teaches_nothing_leaves_nothing_behind():
    model = DPMeans()
    with pytest.warns(UserWarning, match="one cluster"), pytest.raises(ValueError, match="rows differ"):
        model.partial_fit(np.ones((20, 3)))
    with pytest.raises(NotFittedError):
        model.predict(np.ones((1, 3)))
    assert vars(model) == vars(DPMeans())


def test_a_stream_keeps_to_its_time_and_tells_of_its_passes(capsys):
    X = np.random.default_rng(0).normal(size=(60_000, 8))
    model = DPMeans(radius=1e3, max_time=0.3).partial_fit(X[:100])
    model.set_params(radius=3.0, verbose=2)
    start = time.monotonic()
    with pytest.warns(ConvergenceWarning, match="max_time=0.3"):
        model.partial_fit(X)
    assert time.monotonic() - start < 10
    assert not model.converged_
    assert_array_equal(model.labels_, model.predict(X))
    assert "[DPMeans] sample of" in capsys.readouterr().out


def test_an_interrupted_batch_keeps_what_was_opened(monkeypatch):
    X, _ = make_blobs(600, centers=6, n_features=3, random_state=0)
    model, whole = DPMeans(radius=30.0).partial_fit(X[:5]), DPMeans(radius=30.0).partial_fit(X[:5]).partial_fit(X)

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(kfree.inference.clusters.batch, "apply_moves", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.partial_fit(X)
    assert model.n_clusters_ == whole.n_clusters_ > 3
    assert_array_equal(model.labels_, model.predict(X))


@pytest.mark.parametrize("asked", [{"n_clusters": 3}, {"lam": 10.0}])
def test_many_rows_may_have_few_contents(asked):
    X = np.array([[0.0], [1.0], [5.0]])[np.arange(100_002) % 3]  # more rows than a search looks at
    model = DPMeans(**asked).fit(X)
    assert_allclose(sorted(model.cluster_centers_.ravel()), [0.0, 1.0, 5.0])
    assert_array_equal(model.cluster_weights_, [33_334] * 3)


@pytest.mark.parametrize("divergence", ["cosine", "kl"])
def test_rows_that_differ_in_length_alone_are_one_cluster(divergence):
    # lengths are powers of two, so that nothing is rounded: rows are exactly at their mean
    X = np.array([[1.0], [2.0], [4.0], [0.5]]) * np.array([1.0, 1.0, 1.0, 1.0])
    for columns in (1, 4):
        for model in (DPMeans(divergence=divergence), DPMeans(lam=0.1, divergence=divergence)):
            assert model.fit(X[:, :columns]).n_clusters_ == 1
            assert model.inertia_ == 0
    with pytest.raises(ValueError, match="only 1 different row"):
        DPMeans(n_clusters=2, divergence=divergence).fit(X)


def test_a_value_far_away_takes_no_digits_from_the_others():
    rng = np.random.default_rng(0)
    groups = rng.normal(size=(400, 2)) + np.repeat([[0, 0], [30, 40]], 200, axis=0)
    far = np.array([[-3.4e38, -3.4e38]])  # what programs write where nothing was measured
    model = DPMeans(radius=60.0).fit(groups)
    centres = model.cluster_centers_
    for _ in range(3):
        model.partial_fit(np.vstack([groups, far]))
    assert_allclose(model.cluster_centers_, np.vstack([centres, far]), rtol=1e-12)
    sparse = DPMeans(radius=60.0).fit(sp.csr_matrix(np.vstack([groups, far])))
    assert_allclose(sparse.cluster_centers_, np.vstack([centres, far]), rtol=1e-12)
    both = DPMeans(n_clusters=4).fit(np.vstack([groups, far, -far]))
    assert_allclose(both.cluster_centers_[:2], centres, rtol=1e-12)
