"""What the mathematics demands of DPMeans, over divergences, algorithms and random data."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from kfree import DPMeans, radius_for_k
from kfree.inference.clusters.fit import ALGORITHMS
from support.family_data import BREGMAN, NAMES, SEPARABLE, draw_rows, make
from support.slow_clusters import Slow, same_partition

SEARCHES = ("points", "polish", "full")


def settings_of(name):
    """A smoothing that keeps all divergences finite, where the family has a prior."""
    return {"divergence": make(name), "smoothing": 0.0 if name == "cosine" else 0.3}


def data(name, n=120, p=3, seed=0):
    """Two or three clumps of valid rows."""
    rng = np.random.default_rng([seed, 77])
    rows = draw_rows(name, n, p, seed=seed, boundary=False)
    pull = rows[rng.integers(n, size=3)]
    mixed = 0.35 * rows + 0.65 * pull[rng.integers(3, size=n)]
    return mixed / np.sqrt((mixed**2).sum(axis=1, keepdims=True)) if name == "cosine" else mixed


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", NAMES)
def test_the_objective_never_rises_and_is_what_it_says(name, algorithm):
    X, w = data(name), np.random.default_rng(0).uniform(0.2, 3.0, size=120)
    lam = 0.6 * radius_for_k(X, 4, **settings_of(name))
    model = DPMeans(radius=lam, algorithm=algorithm, tol=0.0, random_state=0, **settings_of(name)).fit(
        X, sample_weight=w
    )
    trace = model.objective_trace_
    assert (np.diff(trace) <= 1e-9 * np.abs(trace[:-1])).all()
    assert trace[-1] == model.objective_
    nearest = model.transform(X).min(axis=1)
    assert_allclose(model.inertia_, w @ nearest, rtol=1e-9)
    eta = model.smoothing
    prior = eta * sum(model.family_.divergence(prior_mean(model, X, w), mu) for mu in model.cluster_centers_)
    assert_allclose(model.objective_, model.inertia_ + prior + lam * model.n_clusters_, rtol=1e-9)


def prior_mean(model, X, w):
    stats = X / X.sum(axis=1, keepdims=True) if model.divergence.normalise == "sum" else X
    return (w @ stats) / w.sum()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", NAMES)
def test_a_fit_to_the_end_is_a_fixed_point(name, algorithm):
    X = data(name, seed=1)
    lam = 0.6 * radius_for_k(X, 4, **settings_of(name))
    model = DPMeans(radius=lam, algorithm=algorithm, search="points", tol=0.0, random_state=0, **settings_of(name)).fit(
        X
    )
    assert model.converged_
    assert_array_equal(model.labels_, model.predict(X))
    assert_array_equal(np.unique(model.labels_), np.arange(model.n_clusters_))
    # centres are those of their members, and no row would rather open a cluster
    again = DPMeans(radius=lam, init=model.cluster_centers_, tol=0.0, **settings_of(name)).fit(X)
    assert_array_equal(again.labels_, model.labels_)
    assert_allclose(again.cluster_centers_, model.cluster_centers_, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_clusters_come_heaviest_first(name):
    X = data(name, seed=2)
    w = np.random.default_rng(1).integers(1, 5, size=len(X))
    lam = 0.3 * radius_for_k(X, 6, **settings_of(name))
    model = DPMeans(radius=lam, **settings_of(name)).fit(X, sample_weight=w)
    weight = np.bincount(model.labels_, weights=w)
    assert (np.diff(weight) <= 0).all()
    assert_allclose(model.cluster_weights_, weight)


@given(seed=st.integers(0, 500), name=st.sampled_from(BREGMAN), share=st.floats(0.05, 1.2))
def test_nothing_beats_the_best_partition_and_full_search_keeps_it(seed, name, share):
    X = draw_rows(name, 6, 2, seed=seed, boundary=False)
    mean = X.mean(axis=0)
    eta = 0.2
    slow = Slow(make(name, 2), X, 1.0, None, eta, mean)
    slow.lam = max(1e-6, share * max(slow.d(i, slow.centre(np.arange(6))) for i in range(6)))
    least = slow.optimum()
    kind = {"divergence": make(name, 2), "smoothing": eta, "smoothing_mean": mean, "random_state": 0, "tol": 0.0}
    for algorithm in ALGORITHMS:
        for search in SEARCHES:
            model = DPMeans(radius=slow.lam, algorithm=algorithm, search=search, **kind).fit(X)
            assert model.objective_ >= least - 1e-9 * abs(least)


@given(seed=st.integers(0, 500), name=st.sampled_from(BREGMAN))
def test_the_best_partition_is_fixed_under_every_move(seed, name):
    from support.slow_clusters import partitions

    X = draw_rows(name, 6, 2, seed=seed, boundary=False)
    slow = Slow(make(name, 2), X, 1.0, None, 0.2, X.mean(axis=0))
    slow.lam = max(1e-6, 0.4 * max(slow.d(i, slow.centre(np.arange(6))) for i in range(6)))
    values = [(slow.objective(z), i, z) for i, z in enumerate(partitions(6))]
    values.sort(key=lambda v: v[0])
    assume(values[1][0] - values[0][0] > 1e-6 * values[0][0])
    best = values[0][2]
    centres = np.array([slow.centre(np.flatnonzero(best == k)) for k in np.unique(best)])
    kind = {"divergence": make(name, 2), "smoothing": 0.2, "smoothing_mean": X.mean(axis=0), "random_state": 0}
    for algorithm in ALGORITHMS:
        for search in SEARCHES:
            model = DPMeans(radius=slow.lam, algorithm=algorithm, search=search, init=centres, tol=0.0, **kind).fit(X)
            assert same_partition(model.labels_, best)


@given(seed=st.integers(0, 200), name=st.sampled_from(NAMES))
def test_integer_weights_equal_repeated_rows(seed, name):
    X = data(name, n=60, seed=seed)
    w = np.random.default_rng(seed).integers(0, 4, size=60)
    assume(w.sum() > 0)
    lam = 0.5 * radius_for_k(X, 5, **settings_of(name))
    weighted = DPMeans(radius=lam, **settings_of(name)).fit(X, sample_weight=w)
    repeated = DPMeans(radius=lam, **settings_of(name)).fit(np.repeat(X, w, axis=0))
    assert_array_equal(np.repeat(weighted.labels_, w), repeated.labels_)
    assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-7, atol=1e-10)
    assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-8)


@given(seed=st.integers(0, 200), name=st.sampled_from(NAMES), algorithm=st.sampled_from(["batch", "delayed"]))
@example(seed=132, name="bernoulli", algorithm="delayed")  # equal weights, and first columns equal but for rounding
def test_the_order_of_the_rows_does_not_matter(seed, name, algorithm):
    X = data(name, n=80, seed=seed)
    order = np.random.default_rng(seed).permutation(80)
    lam = 0.5 * radius_for_k(X, 5, **settings_of(name))
    kind = {**settings_of(name), "algorithm": algorithm, "tol": 0.0}
    one, two = DPMeans(radius=lam, **kind).fit(X), DPMeans(radius=lam, **kind).fit(X[order])
    assert_array_equal(one.labels_[order], two.labels_)


def test_row_order_and_repetition_do_not_matter_on_samples_either():
    rng = np.random.default_rng(0)
    truth = rng.integers(12, size=9000)
    X = rng.normal(size=(12, 4))[truth] * 6 + rng.normal(size=(9000, 4))
    w = rng.integers(1, 3, size=9000)
    one = DPMeans(radius=40.0, tol=0.0).fit(X, sample_weight=w)
    order = rng.permutation(w.sum())
    rows = np.repeat(np.arange(9000), w)[order]
    two = DPMeans(radius=40.0, tol=0.0).fit(X[rows])
    assert_array_equal(one.labels_[rows], two.labels_)


@given(seed=st.integers(0, 200), name=st.sampled_from(SEPARABLE), algorithm=st.sampled_from(list(ALGORITHMS)))
def test_sparse_rows_equal_dense_rows(seed, name, algorithm):
    assume(name != "itakura_saito")  # has no zeros
    rng = np.random.default_rng(seed)
    X = draw_rows(name, 50, 6, seed=seed) * (rng.random((50, 6)) < 0.6)
    X[X.sum(axis=1) == 0, 0] = 1.0
    lam = 0.5 * radius_for_k(X, 4, **settings_of(name))
    kind = {**settings_of(name), "algorithm": algorithm, "random_state": 0, "tol": 0.0}
    dense, sparse = DPMeans(radius=lam, **kind).fit(X), DPMeans(radius=lam, **kind).fit(sp.csr_matrix(X))
    assert_array_equal(dense.labels_, sparse.labels_)
    assert_allclose(dense.transform(X), sparse.transform(sp.csr_matrix(X)), rtol=1e-7, atol=1e-9)


@given(seed=st.integers(0, 200), name=st.sampled_from(NAMES))
def test_single_precision_rows_get_the_labels_of_double_precision(seed, name):
    X = data(name, n=100, seed=seed).astype(np.float32)
    X[50:60] = X[40:50]
    lam = 0.5 * radius_for_k(X, 6, **settings_of(name))
    single, double = (DPMeans(radius=lam, tol=0.0, **settings_of(name)).fit(rows) for rows in (X, X.astype(np.float64)))
    assert_array_equal(single.labels_, double.labels_)
    assert_array_equal(single.cluster_centers_, double.cluster_centers_)


def test_single_precision_agrees_on_ties_between_lattice_points():
    grid = np.stack(np.meshgrid(np.arange(12.0), np.arange(12.0)), axis=-1).reshape(-1, 2)
    for lam in (1.0, 2.0, 4.0, 5.0, 9.0):
        one, two = (DPMeans(radius=lam, tol=0.0).fit(grid.astype(kind)) for kind in (np.float32, np.float64))
        assert_array_equal(one.labels_, two.labels_)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_data_far_from_the_origin_give_the_right_labels(kind):
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=600)
    near = (rng.normal(size=(600, 2)) + 40.0 * np.array([[0, 0], [1, 0], [0, 1]])[truth]).astype(np.float32)
    offset = 1e6 if kind is np.float64 else 2.0**17
    far = DPMeans(radius=200.0).fit((near.astype(np.float64) + offset).astype(kind))
    assert same_partition(far.labels_, truth)


@pytest.mark.parametrize(("name", "power"), [("sqeuclidean", 2), ("poisson", 1), ("itakura_saito", 0)])
def test_scaling_the_data_scales_lam(name, power):
    X = data(name, seed=5)
    lam = 0.5 * radius_for_k(X, 5, divergence=name)
    assert_allclose(
        radius_for_k(3 * X, 5, divergence=name), 3.0**power * radius_for_k(X, 5, divergence=name), rtol=1e-9
    )
    # the content, hence the samples, differ: compare the order-free algorithm that uses none
    one = DPMeans(radius=lam, divergence=name, algorithm="delayed", tol=0.0).fit(X)
    two = DPMeans(radius=3.0**power * lam, divergence=name, algorithm="delayed", tol=0.0).fit(3 * X)
    assert_array_equal(one.labels_, two.labels_)


@given(seed=st.integers(0, 300), name=st.sampled_from(NAMES))
def test_one_cluster_is_kept_exactly_when_no_row_is_beyond_lam(seed, name):
    X = data(name, n=40, seed=seed)
    reach = radius_for_k(X, 1, **settings_of(name))
    for algorithm in ("batch", "serial", "delayed"):
        kind = {**settings_of(name), "algorithm": algorithm, "search": "points", "random_state": 0}
        assert DPMeans(radius=reach * 1.0001, **kind).fit(X).n_clusters_ == 1
        assert DPMeans(radius=reach * 0.8, **kind).fit(X).n_clusters_ > 1


@given(seed=st.integers(0, 300), name=st.sampled_from(BREGMAN))
def test_farthest_first_radii_fall_and_cover_the_data(seed, name):
    X = data(name, n=50, seed=seed)
    radii = [radius_for_k(X, k, **settings_of(name)) for k in range(1, 8)]
    assert (np.diff(radii) <= 1e-12 * np.abs(radii[:-1])).all()
    start = DPMeans(radius=radii[4], init="farthest_first", max_iter=1, **settings_of(name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = start.fit(X)
    assert model.n_clusters_ <= 5


@pytest.mark.parametrize("algorithm", ["batch", "delayed"])
@pytest.mark.parametrize("name", ["sqeuclidean", "poisson"])
def test_weights_equal_repetition_and_removal_in_a_full_search(name, algorithm):
    for seed in (0, 1, 5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(8, 6))[rng.integers(8, size=500)] * 2 + rng.normal(size=(500, 6))
        X = rng.gamma(2, np.exp(X / 3)) if name == "poisson" else X
        lam, settings = radius_for_k(X, 40, divergence=name), {"divergence": name, "algorithm": algorithm}
        for weight in (rng.random(500) < 0.7).astype(int), rng.integers(1, 4, size=500):
            weighted = DPMeans(radius=lam, search="full", **settings).fit(X, sample_weight=weight)
            repeated = DPMeans(radius=lam, search="full", **settings).fit(np.repeat(X, weight, axis=0))
            assert_array_equal(np.repeat(weighted.labels_, weight), repeated.labels_)
            assert_allclose(weighted.objective_, repeated.objective_)


@pytest.mark.parametrize("settings", [{"smoothing": 0.5}, {"divergence": "cosine"}, {}])
def test_radii_do_not_depend_on_the_order_of_rows_that_are_equally_far(settings):
    rng = np.random.default_rng(0)
    X = (rng.random((100, 8)) < 0.5).astype(float)
    X[:, 0] = 1.0  # no row of zeros
    for k in (3, 10, 40, 100):
        expected = radius_for_k(X, k, **settings)
        for _ in range(5):
            assert_allclose(radius_for_k(rng.permutation(X), k, **settings), expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["kl", "itakura_saito"])
def test_rows_that_differ_in_their_last_digits_are_labelled_as_predict_labels_them(name):
    rng = np.random.default_rng(3)
    for size in (1e-12, 1e-13, 1e-14):
        X = 1 + size * rng.normal(size=(60, 8))
        X = X / X.sum(axis=1, keepdims=True) if name == "kl" else X
        model = DPMeans(radius=size**2 / 4, divergence=name, algorithm="serial", order="index", tol=0).fit(X)
        assert model.n_clusters_ > 3
        assert_array_equal(model.predict(X), model.labels_)
        nearest = model._model.geometry.divergence(X[:, None], model.cluster_centers_[None]).argmin(axis=1)
        assert_array_equal(nearest, model.labels_)
