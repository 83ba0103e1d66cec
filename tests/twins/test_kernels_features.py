"""Kernels of features equal their reference twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kfree.kernels import native, reference
from support.slow_features import all_rows, keep_first

SEEDS = st.integers(0, 2**20)
#: A flag that nobody sets, and one that is set.
GO_ON, STOP = np.zeros(1, bool), np.ones(1, bool)


def problem(seed, K, whole=False):
    """Products, Gram matrix, ties and rows to start from; ``whole`` numbers make many ties."""
    rng = np.random.default_rng(seed)
    p, n = rng.integers(1, 12), rng.integers(1, 20)
    A, X = rng.normal(size=(K, p)) + rng.integers(2), 2 * rng.normal(size=(n, p))
    if whole:
        A, X = np.round(A), np.round(X)
    G, square = A @ A.T, (X**2).sum(axis=1)
    return X @ A.T, G, 1e-12 * (square + G.diagonal().max()), rng.integers(2, size=(n, K), dtype=np.uint8), square


@given(SEEDS, st.sampled_from([1, 2, 5, 6, 7, 9, 11]), st.booleans())
def test_best_rows_are_the_best_of_all(seed, K, whole):
    P, G, slack, Z, _ = problem(seed, K, whole)
    rows = all_rows(K).astype(float)
    least = np.min((rows @ G * rows).sum(axis=1) - 2 * P @ rows.T, axis=1)
    for kernels in (native, reference):
        found, cost = Z.copy(), np.empty(len(P))
        changed = kernels.best_rows(P, G, slack, 10**6, GO_ON, found, cost)
        assert_allclose(cost, least, atol=1e-9)
        assert_allclose(cost, ((found @ G) * found).sum(axis=1) - 2 * (found * P).sum(axis=1), atol=1e-9)
        assert changed == (found != Z).any(axis=1).sum()


@given(SEEDS, st.sampled_from([1, 3, 8, 14]), st.booleans())
def test_sweeps_of_bits_equal_their_twins_ties_included(seed, K, whole):
    P, G, slack, Z, _ = problem(seed, K, whole)
    ours, theirs = Z.copy(), Z.copy()
    a, b = np.empty(len(P)), np.empty(len(P))
    assert native.sweep_rows(P, G, slack, ours, a) == reference.sweep_rows(P, G, slack, theirs, b)
    assert_array_equal(ours, theirs)
    assert_allclose(a, b, atol=1e-9)


@given(SEEDS, st.sampled_from([13, 14, 16]))
def test_the_sphere_decoder_finds_the_best_row_also_of_more_features_than_columns(seed, K):
    P, G, slack, Z, _ = problem(seed, K)
    ours, theirs = Z[:3].copy(), Z[:3].copy()
    a, b = np.empty(len(ours)), np.empty(len(ours))
    native.best_rows(P[:3], G, slack[: len(ours)], 10**7, GO_ON, ours, a)
    rows = all_rows(K).astype(float)
    assert_allclose(a, np.min((rows @ G * rows).sum(axis=1) - 2 * P[:3] @ rows.T, axis=1), atol=1e-8)
    if K == 13:
        reference.best_rows(P[:3], G, slack[: len(ours)], 10**7, GO_ON, theirs, b)
        assert_allclose(a, b, atol=1e-8)


def test_the_decoder_with_few_nodes_never_makes_a_row_worse():
    P, G, slack, Z, _ = problem(3, 20)
    before = ((Z @ G) * Z).sum(axis=1) - 2 * (Z * P).sum(axis=1)
    cost = np.empty(len(P))
    native.best_rows(P, G, slack, 5, GO_ON, Z, cost)
    assert (cost <= before + 1e-9).all()


@pytest.mark.parametrize("exact", [True, False])
@given(SEEDS, st.integers(1, 7), st.booleans())
def test_walks_equal_their_twins(exact, seed, K, whole):
    P, G, _, Z, square = problem(seed, K, whole)
    rng = np.random.default_rng(seed)
    weight, lam = rng.uniform(0.5, 2, size=len(P)), float(rng.uniform(0.5, 20))
    known = int(rng.integers(0, K + 1)) if not exact else K
    proposed = rng.integers(2, size=(len(P), known), dtype=np.uint8)
    redo = rng.random(len(P)) < 0.2
    Z[:, 0] = 0
    Z[rng.integers(len(P)), 0] = 1
    results = []
    for kernels in (native, reference):
        z, count = Z.copy(), Z.sum(axis=0, dtype=np.int64)
        found = kernels.walk_rows(P, G, proposed, known, redo, weight, square, lam, exact, 10**6, GO_ON, 0, z, count)
        cost = square + ((z @ G) * z).sum(axis=1) - 2 * (z * P).sum(axis=1)
        results.append((found, cost if whole and exact else z, count if not (whole and exact) else 0))
        assert_array_equal(count, z.sum(axis=0))
    (a, x, m), (b, y, k) = results
    if not (whole and exact):  # the best row is then not unique, but its cost is
        assert a == b
        assert_array_equal(x, y)
        assert_array_equal(m, k)


@given(SEEDS, st.integers(1, 8), st.booleans())
def test_solves_equal_their_twins_and_keep_the_first_of_dependent_columns(seed, K, weighted):
    rng = np.random.default_rng(seed)
    n, p = rng.integers(1, 14), rng.integers(1, 5)
    Z, X = rng.integers(2, size=(n, K)).astype(float), rng.normal(size=(n, p))
    w = rng.uniform(0.5, 2, size=n) if weighted else np.ones(n)
    S, T = Z.T @ (w[:, None] * Z), Z.T @ (w[:, None] * X)
    found, dropped = [], np.ones(K, bool)
    dropped[keep_first(Z)] = False
    for kernels in (native, reference):
        keep, A = np.zeros(K, bool), np.empty((K, p))
        found.append((*kernels.solve_means(S, T, dropped, keep, A), keep, A))
    (k, gain, keep, A), (j, other, theirs, B) = found
    assert k == j == -1
    assert_array_equal(np.flatnonzero(keep), keep_first(Z))
    assert_array_equal(keep, theirs)
    assert_allclose(A, B, atol=1e-9)
    assert gain == pytest.approx(other)
    assert (w[:, None] * (X - Z @ A) ** 2).sum() == pytest.approx((w[:, None] * X**2).sum() - gain, abs=1e-9)


def test_a_solve_that_float64_cannot_decide_says_so():
    Z = np.array([[1, 1], [1, 1], [0, 1]], float)
    w = np.array([1.0, 1.0, 1e-9])  # the columns differ in a row of nearly no weight
    S, T = Z.T @ (w[:, None] * Z), np.ones((2, 1))
    for kernels in (native, reference):
        keep, A = np.zeros(2, bool), np.empty((2, 1))
        assert kernels.solve_means(S, T, np.zeros(2, bool), keep, A)[0] == 1
        assert kernels.solve_means(S, T, np.array([False, True]), keep, A)[0] == -1
        assert_array_equal(keep, [True, False])


@pytest.mark.parametrize("exact", [True, False])
@given(SEEDS, st.integers(0, 4), st.sampled_from([np.inf, 0.3, 1.0, 3.0]), st.booleans())
def test_collapsed_visits_equal_least_squares_candidate_by_candidate(exact, seed, K, lam, intercept):
    rng = np.random.default_rng(seed)
    n, p, fixed = rng.integers(2, 9), rng.integers(1, 6), int(intercept)
    X, w = rng.normal(size=(n, p)), rng.uniform(0.5, 2, size=n)
    Z = np.hstack([np.ones((n, fixed), np.uint8), rng.integers(2, size=(n, K), dtype=np.uint8)])
    Z = np.ascontiguousarray(Z[:, keep_first(Z)])
    S, T = Z.T @ (w[:, None] * Z), Z.T @ (w[:, None] * X)
    results = []
    for kernels in (native, reference):
        z, state = Z.copy(), [S.copy(), T.copy(), np.zeros_like(S), np.zeros_like(T), np.zeros_like(S)]
        assert kernels.rebuild(*state)
        found = kernels.collapsed_rows(X, w, (X**2).sum(axis=1), lam, fixed, exact, GO_ON, 0, z, *state)
        results.append((found, z, state))
    (found, z, state), (other, y, twin) = results
    assert found == other
    assert_array_equal(z, y)
    if found[1] != 2:
        for ours, theirs in zip(state, twin):
            assert_allclose(ours, theirs, atol=1e-7)


def sums_of_features(seed, n, K):
    """Rows of which most are far nearer to their own sum of means than to others, and an allocation with errors."""
    rng = np.random.default_rng(seed)
    p, Z = rng.integers(1, 6), rng.integers(2, size=(n, K), dtype=np.uint8)
    X = Z @ (2 * rng.normal(size=(K, p))) + rng.choice([0.1, 0.5, 1.0]) * rng.normal(size=(n, p))
    Z[rng.random((n, K)) < 0.1] ^= 1
    return X, rng.uniform(0.5, 2, size=n), np.ascontiguousarray(Z[:, keep_first(Z)])


@given(SEEDS, st.integers(1, 3), st.sampled_from([np.inf, 3.0, 30.0]), st.booleans())
@settings(max_examples=25)
def test_visits_that_pass_over_most_rows_equal_those_that_do_not(seed, K, lam, intercept):
    X, w, Z = sums_of_features(seed, 40, K)
    fixed = int(intercept)
    Z = np.hstack([np.ones((40, fixed), np.uint8), Z])
    Z = np.ascontiguousarray(Z[:, keep_first(Z)])
    S, T = Z.T @ (w[:, None] * Z), Z.T @ (w[:, None] * X)
    results = []
    for kernels in (native, reference):
        z, state = Z.copy(), [S.copy(), T.copy(), np.zeros_like(S), np.zeros_like(T), np.zeros_like(S)]
        assert kernels.rebuild(*state)
        found = kernels.collapsed_rows(X, w, (X**2).sum(axis=1), lam, fixed, True, GO_ON, 0, z, *state)
        results.append((found, z))
    (found, z), (other, y) = results
    assert found == other
    assert_array_equal(z, y)


@pytest.mark.parametrize("exact", [True, False])
@given(SEEDS, st.integers(1, 3), st.sampled_from([1, 2, 5]))
@settings(max_examples=15)
def test_runs_of_collapsed_passes_equal_their_twins(exact, seed, K, passes):
    X, w, Z = sums_of_features(seed, 30, K)
    results = []
    for kernels in (native, reference):
        z, A, trace = Z.copy(), np.zeros((Z.shape[1], X.shape[1])), np.zeros(passes)
        done = kernels.run_collapsed(X, w, (X**2).sum(axis=1), exact, GO_ON, z, A, trace)
        results.append((done, z, A, trace))
    (done, z, A, trace), (other, y, B, values) = results
    assert done == other
    assert_array_equal(z, y)
    assert_allclose(A, B, atol=1e-7)
    assert_allclose(trace, values, atol=1e-7)


@given(SEEDS, st.sampled_from([1, 2, 3, 5, 7, 9]))
@settings(max_examples=25)
def test_long_runs_that_pass_over_most_rows_equal_those_that_do_not(seed, K):
    X, w, Z = sums_of_features(seed, 200, min(K, 4))
    rng = np.random.default_rng(seed)
    Z, A = np.zeros((200, K), np.uint8), rng.normal(size=(K, X.shape[1]))
    results = []
    for kernels in (native, reference):
        z, a, trace = Z.copy(), A.copy(), np.zeros(40)
        done = kernels.run_features(X, w, (X**2).sum(axis=1), True, 10**6, GO_ON, False, z, a, trace)
        results.append((done, z, a, trace))
    (done, z, a, trace), (other, y, b, values) = results
    assert done == other
    assert_array_equal(z, y)
    assert_allclose(a, b, atol=1e-9)
    assert_allclose(trace, values, atol=1e-9)


@pytest.mark.parametrize("exact", [True, False])
@given(SEEDS, st.integers(1, 5), st.sampled_from([1, 2, 50]))
def test_whole_runs_equal_their_twins(exact, seed, K, passes):
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(20, 4)), rng.uniform(0.5, 2, size=20)
    Z, A = rng.integers(2, size=(20, K), dtype=np.uint8), rng.normal(size=(K, 4))
    results = []
    for kernels in (native, reference):
        z, a, trace = Z.copy(), A.copy(), np.zeros(passes)
        done = kernels.run_features(X, w, (X**2).sum(axis=1), exact, 10**6, GO_ON, False, z, a, trace)
        results.append((done, z, a, trace))
    (done, z, a, trace), (other, y, b, values) = results
    assert done == other
    assert_array_equal(z, y)
    assert_allclose(a, b, atol=1e-9)
    assert_allclose(trace, values, atol=1e-9)


@pytest.mark.parametrize(
    ("n", "p", "K"), [(300, 70, 3), (150, 8, 9), (90, 1, 1), (200, 33, 17), (65, 16, 8), (60, 29, 25), (40, 600, 20)]
)
def test_products_of_all_sizes_equal_those_of_the_twins(n, p, K):
    rng = np.random.default_rng(n)
    A, w = rng.normal(size=(K, p)), rng.uniform(0.5, 2, size=n)
    X = rng.integers(2, size=(n, K)) @ A + rng.normal(size=(n, p))
    Z, square = rng.integers(2, size=(n, K), dtype=np.uint8), (X**2).sum(axis=1)
    runs, seeds = [], []
    for kernels in (native, reference):
        z, a, trace = Z.copy(), A + 0.1, np.zeros(3)
        done = kernels.run_features(X, w, square, False, 1, GO_ON, False, z, a, trace)
        runs.append((done, z, a, trace))
        out = square.copy(), np.zeros_like(Z), np.zeros_like(A)
        kernels.seed_features(X, w, np.random.default_rng(0).random(K), 0.0, 0, *out)
        seeds.append(out)
    assert runs[0][0][0] > 0  # means were solved for
    for one, other in [*zip(*runs), *zip(*seeds)]:
        assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@given(SEEDS, st.integers(0, 4), st.booleans())
def test_seeds_equal_their_twins(seed, K, nothing):
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(15, 3)), rng.uniform(0.5, 2, size=15)
    Z, A = np.zeros((15, K + 2), np.uint8), np.zeros((K + 2, 3))
    Z[:, :K], A[:K] = rng.integers(2, size=(15, K)), rng.normal(size=(K, 3))
    left, uniforms = ((X - Z @ A) ** 2).sum(axis=1), np.array([0.1, 0.6])  # different rows
    results = []
    for kernels in (native, reference):
        out = left.copy(), Z.copy(), A.copy()
        kernels.seed_features(X, w, uniforms, 1e9 if nothing else 0.0, K, *out)
        results.append(out)
    for a, b in zip(*results):
        assert_allclose(a, b, atol=1e-12)
    left, Z, A = results[0]
    assert_allclose(((X - Z @ A) ** 2).sum(axis=1), left, atol=1e-10)


def test_rows_stay_as_they_are_once_there_is_no_time():
    rng = np.random.default_rng(0)
    for K in (4, 14):
        P, G, slack, Z, square = problem(0, K)
        weight, count = np.ones(len(P)), Z.sum(axis=0, dtype=np.int64)
        S = Z.T.astype(float) @ Z + np.eye(K)
        state = S, rng.normal(size=(K, 3)), np.linalg.inv(S), np.zeros((K, 3)), np.zeros((K, K))
        X = rng.normal(size=(len(P), 3))
        for kernels in (native, reference):
            z, cost = Z.copy(), np.empty(len(P))
            assert kernels.best_rows(P, G, slack, 100, STOP, z, cost) == 0
            assert_allclose(cost, ((z @ G) * z).sum(axis=1) - 2 * (z * P).sum(axis=1))
            walk = P, G, z, K, np.ones(len(P), bool), weight, square, 1.0, True, 100, STOP, 0, z, count
            assert kernels.walk_rows(*walk) == (len(P), 0)
            found = kernels.collapsed_rows(X, weight, square, 1.0, 0, True, STOP, 0, z, *(a.copy() for a in state))
            assert found == (len(P), 0, 0, -1)
            assert_array_equal(z, Z)
