"""What mathematics demands of feature learning."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from kfree import BPMeans, KFeatures, StepwiseKFeatures
from kfree.inference.features.isometry import reduce_columns
from support.slow_features import all_rows, draw_features, inertia, least_objective, projected

SEEDS = st.integers(0, 2**20)
ALGORITHMS = ("extended", "paper", "collapsed")


def fitted(algorithm, X, w, lam, **options):
    options = {"n_init": 3, "random_state": 0} | options
    return BPMeans(lam, algorithm=algorithm, **options).fit(X, sample_weight=w)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(SEEDS, st.booleans(), st.floats(1, 30))
def test_the_objective_never_rises_and_is_that_of_the_best_means(algorithm, seed, weighted, lam):
    X, w = draw_features(np.random.default_rng(seed), n=20, weighted=weighted)
    model = fitted(algorithm, X, w, lam)
    assert (np.diff(model.objective_trace_) <= 1e-9 * (1 + model.objective_trace_[:-1])).all()
    K = model.n_components_
    assert model.objective_ == pytest.approx(projected(X, model.Z_, w) + lam * K, rel=1e-9, abs=1e-9)
    assert model.objective_ == pytest.approx(model.objective_trace_[-1])
    assert model.inertia_ == pytest.approx(inertia(X, model.Z_, model.components_, w), abs=1e-9)
    assert np.linalg.matrix_rank(model.Z_) == K if K else True
    assert_array_equal(model.counts_, model.Z_.sum(axis=0))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(SEEDS, st.booleans(), st.floats(1, 30))
def test_no_row_and_no_birth_lowers_the_objective_at_the_end(algorithm, seed, weighted, lam):
    X, w = draw_features(np.random.default_rng(seed), n=14, weighted=weighted)
    model = fitted(algorithm, X, w, lam, row="exact")
    Z, A = model.Z_, model.components_
    if len(A) > 8:
        return
    for n in range(len(X)):
        alone = (Z[n] == 1) & (Z.sum(axis=0) == 1)
        rows = all_rows(len(A))
        costs = w[n] * ((X[n] - rows @ A) ** 2).sum(axis=1) - lam * ((rows == 0) & alone).sum(axis=1)
        present = w[n] * ((X[n] - Z[n] @ A) ** 2).sum()
        assert costs.min() >= present - 1e-8
        assert present <= lam + 1e-8


@given(SEEDS)
def test_the_paper_ends_where_no_single_bit_helps(seed):
    X, w = draw_features(np.random.default_rng(seed), n=14)
    model = fitted("paper", X, w, 5.0)
    for n in range(len(X)):
        for k in range(model.n_components_):
            other = model.Z_.copy()
            other[n, k] = 1 - other[n, k]
            K = other.any(axis=0).sum()
            assert inertia(X, other, model.components_, w) + 5.0 * K >= model.objective_ - 1e-8


@settings(max_examples=10)
@given(SEEDS, st.booleans(), st.floats(0.3, 10))
def test_the_least_objective_of_tiny_tables_is_reached(seed, weighted, lam):
    X, w = draw_features(np.random.default_rng(seed), n=4, p=2, weighted=weighted)
    least = least_objective(X, w, lam)
    model = fitted("extended", X, w, lam)
    assert model.objective_ == pytest.approx(least, abs=1e-9)
    for algorithm in ("paper", "collapsed"):
        assert fitted(algorithm, X, w, lam).objective_ >= least - 1e-9


@settings(max_examples=10)
@given(SEEDS, st.sampled_from([1e-3, 0.5, 1e4]))
def test_scaling_the_rows_scales_the_means(seed, c):
    X, w = draw_features(np.random.default_rng(seed), n=15)
    for algorithm in ALGORITHMS:
        a, b = fitted(algorithm, X, w, 4.0), fitted(algorithm, c * X, w, 4.0 * c * c)
        assert_array_equal(a.Z_, b.Z_)
        assert_allclose(b.components_, c * a.components_, rtol=1e-7, atol=1e-9 * c)
        assert b.objective_ == pytest.approx(c * c * a.objective_)


@settings(max_examples=10)
@given(SEEDS)
def test_turning_the_rows_turns_the_means(seed):
    rng = np.random.default_rng(seed)
    X, w = draw_features(rng, n=15)
    Q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    for algorithm in ALGORITHMS:
        a, b = fitted(algorithm, X, w, 4.0), fitted(algorithm, X @ Q, w, 4.0)
        assert a.objective_ == pytest.approx(b.objective_)
        assert_allclose(b.Z_ @ b.components_, a.Z_ @ a.components_ @ Q, atol=1e-7)


@given(SEEDS, st.sampled_from([(6, 50), (60, 40)]))
def test_fewer_columns_lose_nothing(seed, shape):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(shape[0], 5)) @ rng.normal(size=(5, shape[1]))
    small = reduce_columns(X)
    assert small.shape[1] <= 6
    assert_allclose(small @ small.T, X @ X.T, atol=1e-9)
    a, b = KFeatures(2, n_init=2).fit(X), KFeatures(2, n_init=2).fit(small)
    assert a.inertia_ == pytest.approx(b.inertia_)
    assert a.components_.shape == (2, shape[1])


@settings(max_examples=10)
@given(SEEDS, st.sampled_from([0.25, 3.0]))
def test_equal_weights_scale_lam_only(seed, c):
    X, w = draw_features(np.random.default_rng(seed), n=15)
    for algorithm in ALGORITHMS:
        a, b = fitted(algorithm, X, None, 4.0), fitted(algorithm, X, c * w, 4.0 * c)
        assert_array_equal(a.Z_, b.Z_)
        assert b.objective_ == pytest.approx(c * a.objective_)


@settings(max_examples=30)
@given(SEEDS, st.booleans(), st.booleans())
def test_whole_weights_equal_repeated_rows(seed, sparse, coarse):
    rng = np.random.default_rng(seed)
    X, _ = draw_features(rng, n=10)
    X = np.round(X / 4) if coarse else X  # copies among the rows themselves
    w = rng.integers(0, 4, size=10)
    w[0] = 1
    R, lam = np.repeat(X, w, axis=0), float(rng.choice([0.5, 4.0, 40.0]))
    models = (KFeatures(3, n_init=3), BPMeans(lam, n_init=2), StepwiseKFeatures(lam, n_init=1), BPMeans(n_init=1))
    for model in (*models, KFeatures(2, n_init=2, base="intercept")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            a = clone(model).fit(sp.csr_array(X) if sparse else X, sample_weight=w)
            b = clone(model).fit(sp.csr_array(R) if sparse else R)
        assert a.objective_ == b.objective_
        assert a.n_components_ == b.n_components_
        assert_array_equal(a.components_, b.components_)
        assert_array_equal(np.repeat(a.Z_, w, axis=0), b.Z_)


@given(SEEDS, st.sampled_from(ALGORITHMS))
def test_rows_of_no_weight_do_not_matter_and_get_their_best_features(seed, algorithm):
    rng = np.random.default_rng(seed)
    X, _ = draw_features(rng, n=16)
    w = np.where(rng.random(16) < 0.3, 0.0, 1.0)
    w[0] = 1.0
    a, b = fitted(algorithm, X, w, 4.0), fitted(algorithm, X[w > 0], None, 4.0)
    assert_array_equal(a.Z_[w > 0], b.Z_)
    assert_allclose(a.components_, b.components_)
    assert_array_equal(a.Z_[w == 0], b.transform(X[w == 0]) if (w == 0).any() else a.Z_[w == 0])


@settings(max_examples=10)
@given(SEEDS, st.booleans())
def test_planted_features_are_found(seed, intercept):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(4, 30)) * 3
    Z = np.vstack([all_rows(4), rng.integers(2, size=(44, 4))])
    X = Z @ A + 0.1 * rng.normal(size=(60, 30)) + (5.0 if intercept else 0.0)
    model = BPMeans(60.0, n_init=4, base="intercept" if intercept else "auto").fit(X)
    assert model.n_components_ == 4
    truth = Z @ A + (5.0 if intercept else 0.0)
    assert_allclose(model.inverse_transform(model.Z_), truth, atol=0.4)
    assert_array_equal(model.transform(X), model.Z_)


@given(SEEDS)
def test_the_path_never_rises_and_serves_every_lam(seed):
    X, _ = draw_features(np.random.default_rng(seed), n=14)
    model = StepwiseKFeatures(1e-6, max_components=6, n_init=1, algorithm="paper").fit(X)
    path = model.path_
    assert (np.diff(path.inertia) <= 0).all()
    assert path.inertia[0] == pytest.approx((X**2).sum())
    for K, (lo, hi) in zip(path.n_components, path.window):
        if np.isfinite(hi) and hi > lo > 0:
            assert path.best(np.sqrt(lo * hi)) == K
    again = StepwiseKFeatures(5.0, patience=9, max_components=6, n_init=1, algorithm="paper").fit(X)
    assert again.n_components_ == path.best(5.0)


@settings(max_examples=10)
@given(SEEDS)
def test_an_intercept_is_solved_for_jointly(seed):
    X, w = draw_features(np.random.default_rng(seed), n=20, weighted=True)
    for model in (
        fitted("extended", X + 7, w, 4.0, base="intercept"),
        KFeatures(2, base="intercept").fit(X + 7, None, w),
    ):
        ones = np.hstack([np.ones((20, 1)), model.Z_])
        assert model.inertia_ == pytest.approx(projected(X + 7, ones, w), abs=1e-8)
        assert_allclose((w[:, None] * (X + 7 - model.inverse_transform(model.Z_))).sum(axis=0), np.zeros(4), atol=1e-7)
        moved = model.__class__(**model.get_params()).fit(X - 100, sample_weight=w)
        assert moved.inertia_ == pytest.approx(model.inertia_, rel=1e-6, abs=1e-7)


@given(SEEDS, st.booleans())
def test_the_canonical_form_is_equivalent_and_canonical(seed, intercept):
    rng = np.random.default_rng(seed)
    X, _ = draw_features(rng, n=40, K=3)
    model = KFeatures(4, n_init=2, base="intercept" if intercept else "auto").fit(X + rng.normal(size=4) * 3)
    before = model.inverse_transform(model.Z_)
    assert model.canonicalize() is model
    assert_allclose(model.inverse_transform(model.Z_), before, atol=1e-9)
    full = model.Z_.all(axis=0)
    if intercept or full.any():
        assert (2 * model.counts_[~full] <= 40).all() or intercept
        assert (2 * model.counts_[1:] <= 40).all()
    assert (np.diff(model.counts_) <= 0).all()
    Z = model.Z_.copy()
    assert_array_equal(model.canonicalize().Z_, Z)


def test_a_complementary_pair_becomes_a_base_and_a_feature():
    X = np.repeat([[1.0, 0.0], [0.0, 1.0]], [6, 4], axis=0)
    model = KFeatures(2).fit(X).canonicalize()
    assert_array_equal(model.counts_, [10, 4])
    assert_allclose(model.components_, [[1.0, 0.0], [-1.0, 1.0]], atol=1e-12)


def test_distinct_columns_that_depend_on_each_other_are_dropped():
    X = np.repeat([[3.0, 0.0, 1.0], [0.0, 3.0, 1.0]], 4, axis=0)
    Z = np.repeat([[1, 0, 1], [0, 1, 1]], 4, axis=0)  # the third column is the sum of the first two
    model = BPMeans(0.01, algorithm="paper", init=Z).fit(X)
    assert model.n_components_ == 2
    assert model.inertia_ == pytest.approx(0.0, abs=1e-20)
