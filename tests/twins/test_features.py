"""Features in blocks equal features one row at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kfree import BPMeans, KFeatures
from kfree.inference.features.allocation import FeatureState, Means, independent, settle, settle_with_reseeds
from kfree.inference.features.best_rows import RowRule
from kfree.inference.features.bp_means import BPPass
from kfree.inference.features.collapsed_bp import collapsed_pass as fast_collapsed_pass
from kfree.inference.features.feature_goal import FeatureGoal
from kfree.inference.features.feature_table import FeatureTable
from kfree.inference.loop import Budget
from support.slow_features import bp_means, bp_pass, collapsed_pass, draw_features, k_features, keep_first, means_of

SEEDS = st.integers(0, 2**20)


@pytest.mark.parametrize("exact", [True, False])
@given(SEEDS, st.sampled_from([1, 3, 8, 64]), st.booleans(), st.floats(4, 60))
def test_a_pass_in_blocks_is_the_pass_row_by_row_bit_for_bit(exact, seed, block, weighted, lam):
    rng = np.random.default_rng(seed)
    X, w = draw_features(rng, n=30, K=4, weighted=weighted)
    Z = rng.integers(2, size=(30, 3), dtype=np.uint8)
    Z[:, 2] = 0
    Z[rng.integers(30), 2] = 1  # a sole member
    A = rng.normal(size=(3, 4)) * 2
    table, goal = FeatureTable(X, w if weighted else np.empty(0)), FeatureGoal("paper", RowRule(exact), price=lam)
    visit = BPPass(table, FeatureState(Z, Means(A, np.zeros(4))), goal)
    visit.run(block, Budget())
    slow_Z, slow_A, changed = bp_pass(X, Z, A, w, lam, exact)
    assert_array_equal(visit.Z, slow_Z)
    assert_allclose(visit.A, slow_A, atol=1e-9)
    assert bool(visit.changed) == changed


@pytest.mark.parametrize("row", ["exact", "coordinate"])
@given(SEEDS, st.booleans(), st.floats(0.5, 30))
def test_bp_means_from_nothing_is_algorithm_1(row, seed, weighted, lam):
    X, w = draw_features(np.random.default_rng(seed), n=15, weighted=weighted)
    model = BPMeans(lam, algorithm="paper", row=row, init="empty").fit(X, sample_weight=w)
    Z, A, trace = bp_means(X, np.zeros((15, 0), np.uint8), np.zeros((0, 4)), w, lam, row == "exact")
    assert model.objective_ == pytest.approx(trace[-1])
    assert_allclose(model.inverse_transform(model.Z_), Z @ A, atol=1e-8)
    assert_allclose(model.objective_trace_, trace, rtol=1e-8)


@pytest.mark.parametrize("row", ["exact", "coordinate"])
@given(SEEDS)
def test_k_features_from_given_rows_is_algorithm_4(row, seed):
    rng = np.random.default_rng(seed)
    X, w = draw_features(rng, n=40)
    Z = rng.integers(2, size=(40, 3), dtype=np.uint8)
    A = means_of(X, Z, w)
    slow_Z, slow_A = k_features(X, Z, A, row == "exact")
    model = KFeatures(3, algorithm="paper", row=row, init=(Z, A)).fit(X)
    assert_allclose(model.inverse_transform(model.Z_), slow_Z @ slow_A, atol=1e-8)


@given(SEEDS, st.booleans(), st.floats(0.2, 10))
def test_collapsed_passes_are_brute_force(seed, weighted, lam):
    rng = np.random.default_rng(seed)
    X, w = draw_features(rng, n=9, p=3, weighted=weighted)
    Z = rng.integers(2, size=(9, 2), dtype=np.uint8)
    Z = np.ascontiguousarray(Z[:, keep_first(Z)])
    table, goal = FeatureTable(X, w if weighted else np.empty(0)), FeatureGoal("collapsed", price=lam)
    state, _ = fast_collapsed_pass(table, X, settle(table, Z), goal, Budget())
    slow = collapsed_pass(X, Z, w, lam)
    assert_array_equal(state.Z, slow[:, keep_first(slow)])


@given(SEEDS, st.integers(1, 7))
def test_exact_elimination_finds_the_columns_that_depend_on_earlier_ones(seed, K):
    Z = np.random.default_rng(seed).integers(2, size=(5, K))
    assert_array_equal(np.flatnonzero(independent(Z.T @ Z)), keep_first(Z))


def test_columns_that_differ_only_in_a_row_of_tiny_weight_are_both_kept():
    X = np.array([[3.0, 0.0], [3.0, 0.0], [0.0, 2.0], [0.0, 2.0]])
    Z = np.array([[1, 1], [1, 1], [0, 1], [0, 0]], np.uint8)
    table = FeatureTable(X, np.array([1.0, 1.0, 1e-9, 1.0]))
    assert settle(table, Z).K == 2
    assert_allclose(settle(table, Z).means.A, [[3.0, -2.0], [0.0, 2.0]], atol=1e-6)


def test_reseeds_end_where_rounding_looks_like_a_residual():
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(20, 5)), rng.integers(2, size=(20, 20), dtype=np.uint8)  # every row is fitted
    state = settle_with_reseeds(FeatureTable(X, np.empty(0)), np.hstack([Z, Z[:, :1]]), Budget())
    assert state.Z.any(axis=0).sum() == 20
    assert_allclose(state.Z @ state.means.A, X, atol=1e-6)
