"""Sweeps of the sampler of binary features equal their twins, and keep what they say they keep."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kfree.kernels import native, reference

SEEDS = st.integers(0, 2**20)


def problem(seed, n, p, K, C, *, noise=0.3, scale=1.0):
    """Rows, allocation in C columns, and everything else that a sweep takes."""
    rng = np.random.default_rng(seed)
    X = rng.integers(2, size=(n, 3)) @ rng.normal(size=(3, p)) + 0.5 * rng.normal(size=(n, p))
    Z = np.zeros((n, C), np.uint8)
    Z[:, :K] = rng.integers(2, size=(n, K))
    Z[rng.integers(n, size=K), np.arange(K)] = 1
    S, T = Z.T.astype(float) @ Z, Z.T @ X
    M, A = np.zeros((C, C)), np.zeros((C, p))
    M[:K, :K] = np.linalg.inv(S[:K, :K] + noise / scale * np.eye(K))
    A[:K] = M[:K, :K] @ T[:K]
    return X, rng.random((n, C)), rng.random((n, C)), rng.random(n), Z, [S, T, M, A, A @ A.T]


def sweep(kernels, given, K, *, dims=None, noise=0.3, scale=1.0, rate=2.0, most=12, first=0):
    X, keys, coins, deals, Z, state = given
    Z, state = Z.copy(), [array.copy() for array in state]
    dims = X.shape[1] if dims is None else dims
    ended = kernels.gibbs_ibp(X, keys, coins, deals, dims, noise, scale, rate, most, first, K, Z, *state)
    return ended, Z, state


@settings(max_examples=150)
@given(SEEDS, st.integers(1, 12), st.integers(1, 5), st.integers(0, 6), st.sampled_from([0.001, 0.3, 5.0]))
def test_sweeps_equal_their_twins(seed, n, p, K, noise):
    given = problem(seed, n, p, K, K + 6, noise=noise)
    (ours, Z, state), (theirs, other, plain) = (
        sweep(kernels, given, K, noise=noise, rate=3.0) for kernels in (native, reference)
    )
    assert ours == theirs
    assert_array_equal(Z, other)
    K = ours[2]
    assert not Z[:, K:].any()
    assert Z[:, :K].any(axis=0).all()
    for name, a, b in zip("STMAG", state, plain):
        a, b = (a[:K], b[:K]) if name in "TA" else (a[:K, :K], b[:K, :K])
        assert_allclose(a, b, rtol=1e-6, atol=1e-8 * max(1.0, np.abs(b).max(initial=0.0)), err_msg=name)


def test_many_sweeps_keep_inverse_and_means_to_rounding():
    given, K = problem(1, 60, 8, 5, 40), 5
    X, _, _, _, Z, state = given
    rng = np.random.default_rng(0)
    for _ in range(30):
        drawn = rng.random((60, 40)), rng.random((60, 40)), rng.random(60)
        (_, event, K, _), Z, state = sweep(native, (X, *drawn, Z, state), K)
        assert event == 0
    S, T, M, A, G = state
    assert_array_equal(S[:K, :K], Z[:, :K].T.astype(float) @ Z[:, :K])
    assert_allclose(T[:K], Z[:, :K].T @ X, atol=1e-10)
    assert_allclose(M[:K, :K], np.linalg.inv(S[:K, :K] + 0.3 * np.eye(K)), atol=1e-9)
    assert_allclose(A[:K], M[:K, :K] @ T[:K], atol=1e-9)
    assert_allclose(G[:K, :K], A[:K] @ A[:K].T, atol=1e-9)


@pytest.mark.parametrize("kernels", [native, reference])
def test_a_row_that_finds_no_room_is_not_changed(kernels):
    given = problem(3, 8, 3, 0, 1, noise=0.01)
    (row, event, K, _), Z, _ = sweep(kernels, given, 0, noise=0.01, rate=50.0)
    assert (event, K <= 1, Z[row].any()) == (1, True, False)
    wide = problem(3, 8, 3, 0, 60, noise=0.01)
    wide[1][:, :1], wide[2][:, :1], wide[3][:] = given[1:4]
    (_, event, K, _), _, _ = sweep(kernels, wide, 0, noise=0.01, rate=50.0)
    assert (event, K > 1) == (0, True)


def test_rows_in_fewer_columns_are_drawn_as_rows_with_columns_of_zeros():
    given = problem(5, 20, 4, 3, 20)
    X, keys, coins, deals, Z, (S, T, M, A, G) = given
    none = np.zeros((20, 3))
    long = np.hstack([X, none]), keys, coins, deals, Z, [S, np.hstack([T, none]), M, np.hstack([A, none]), G]
    (ours, few, _), (theirs, many, _) = sweep(native, given, 3, dims=7), sweep(native, long, 3)
    assert ours == theirs
    assert_array_equal(few, many)


@pytest.mark.parametrize(
    "wrong", [{"K": 30}, {"K": -1}, {"first": -1}, {"most": -1}, {"most": 10**9}, {"dims": 0}, {"noise": 0.0}]
)
def test_wrong_numbers_are_errors(wrong):
    given, K = problem(5, 20, 4, 3, 20), wrong.pop("K", 3)
    with pytest.raises(ValueError, match="gibbs_ibp"):
        sweep(native, given, K, **wrong)
