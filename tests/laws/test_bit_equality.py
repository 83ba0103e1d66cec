"""Sums are whole numbers, so the order of the rows, copies in place of weights, threads and storage change nothing, to
the last bit: not labels, centres, inertia, nor the objective after any pass."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_limits

from kfree import DPMeans, radius_for_k
from support.family_data import NAMES, draw_rows, make

#: What is asked for: a radius, a price, a number, or nothing.
ASKS = ("radius", "lam", "n_clusters", "auto")


def fitted(X, ask, name, weight=None):
    """A model of rows under a divergence."""
    kind = {"divergence": make(name, X.shape[1])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if ask in ("radius", "lam"):
            dense = X.toarray() if sp.issparse(X) else X
            kind[ask] = (0.5 if ask == "radius" else 3.0) * float(
                radius_for_k(np.unique(dense, axis=0), 5, divergence=kind["divergence"])
            )
        if ask == "n_clusters":
            kind["n_clusters"] = 4
        return DPMeans(**kind).fit(X, sample_weight=weight)


def assert_same(one, two, rows=slice(None)):
    """Bit for bit; row i of the second is row ``rows[i]`` of the first."""
    assert_array_equal(one.labels_[rows], two.labels_)
    assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    assert one.inertia_ == two.inertia_
    assert_array_equal(one.objective_trace_, two.objective_trace_)
    assert (one.lam_, one.radius_) == (two.lam_, two.radius_)


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=3)
@given(seed=st.integers(0, 2**20))
def test_the_order_of_the_rows_changes_no_bit(name, ask, seed):
    X = draw_rows(name, 150, 3, seed=seed)
    order = np.random.default_rng(seed).permutation(len(X))
    assert_same(fitted(X, ask, name), fitted(X[order], ask, name), order)


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=3)
@given(seed=st.integers(0, 2**20))
def test_weights_are_copies_to_the_last_bit(name, ask, seed):
    X = draw_rows(name, 90, 3, seed=seed)
    copies = np.random.default_rng(seed).integers(1, 4, size=len(X))
    again = np.repeat(np.arange(len(X)), copies)
    assert_same(fitted(X, ask, name, copies), fitted(X[again], ask, name), again)


@pytest.mark.parametrize(("name", "ask"), [*((name, "radius") for name in NAMES), ("sqeuclidean", "auto")])
def test_long_tables_with_samples_are_no_exception(name, ask):
    rng = np.random.default_rng(0)
    X = draw_rows(name, 20_000, 3, seed=1)
    order = rng.permutation(len(X))
    one = fitted(X, ask, name)
    assert_same(one, fitted(X[order], ask, name), order)
    with threadpool_limits(1):
        assert_same(one, fitted(X, ask, name))
    assert_same(one, fitted(np.asfortranarray(X), ask, name))


def test_weights_that_are_no_whole_numbers_leave_the_order_without_meaning():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 3)) + 6 * rng.integers(4, size=(9000, 1))
    weight, order = rng.gamma(1.0, size=9000), rng.permutation(9000)
    for ask in ASKS:
        assert_same(fitted(X, ask, "sqeuclidean", weight), fitted(X[order], ask, "sqeuclidean", weight[order]), order)
