"""Kernels of soft assignments: compiled = reference."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kfree.kernels import native, reference

SEEDS = st.integers(0, 10**6)
SIZES = st.integers(1, 9)


def both(name, *inputs, outputs):
    """Results of the two twins and what they write."""
    results = []
    for module in (native, reference):
        mine = [output.copy() for output in outputs]
        results.append((getattr(module, name)(*inputs, *mine), mine))
    return results


@given(seed=SEEDS, m=SIZES, K=SIZES, D=SIZES)
def test_scores(seed, m, K, D):
    rng = np.random.default_rng(seed)
    products, shift, offset = rng.normal(size=(m, D * K)), rng.normal(size=(D, K)), rng.normal(size=K)
    (_, [fast]), (_, [plain]) = both("subtract_squares", products, shift, 2, outputs=[np.ones((m, K + 3))])
    assert_allclose(fast, plain, rtol=1e-12, atol=1e-12)
    rows, precision = rng.normal(size=(m, D)), rng.gamma(1.0, size=(D, K))
    (_, [fast]), (_, [plain]) = both("weighted_scores", rows, precision, shift, offset, outputs=[np.zeros((m, K))])
    assert_allclose(fast, plain, rtol=1e-12, atol=1e-12)


@given(seed=SEEDS, m=SIZES, K=SIZES, scale=st.sampled_from([1.0, 30.0, 1e6]))
def test_soften(seed, m, K, scale):
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(m, K)) * scale, rng.normal(size=K)
    results = both("soften", *inputs, outputs=[np.zeros((K, m)), np.zeros(m)])
    for fast, plain in zip(results[0][1], results[1][1]):
        assert_allclose(fast, plain, rtol=1e-12, atol=1e-300)
    assert_allclose(results[0][1][0].sum(axis=0), 1.0)


@given(seed=SEEDS, m=SIZES, K=SIZES, D=SIZES)
def test_sums(seed, m, K, D):
    rng = np.random.default_rng(seed)
    rows, weight, centre = rng.normal(size=(m, D)), rng.gamma(1.0, size=m), rng.normal(size=(K, D))
    resp = rng.random((K, m)) * rng.integers(0, 2, size=(K, m))
    results = both("add_squares", rows, weight, resp, centre, outputs=[np.ones(K), np.ones((K, D)), np.ones((K, D))])
    for fast, plain in zip(results[0][1], results[1][1]):
        assert_allclose(fast, plain, rtol=1e-12, atol=1e-12)
    (fast_count, [fast]), (count, [plain]) = both(
        "collect", rows, weight, resp[0], centre[0], outputs=[np.zeros((m, D + 1))]
    )
    assert fast_count == count == (weight * resp[0] > 0).sum()
    assert_allclose(fast, plain, rtol=1e-12)


def test_shares_that_vanish_are_zero():
    resp, lse = np.empty((2, 1)), np.empty(1)
    for module in (native, reference):
        module.soften(np.array([[0.0, -800.0]]), np.zeros(2), resp, lse)
        assert resp[:, 0].tolist() == [1.0, 0.0]
        assert lse[0] == pytest.approx(0.0)
