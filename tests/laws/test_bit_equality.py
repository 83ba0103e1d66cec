"""Sums are whole numbers, so the order of the rows, copies in place of weights, threads and storage change nothing, to
the last bit: not labels, centres, inertia, nor the objective after any pass."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from kfree import DPMeans, radius_for_k
from support.family_data import NAMES, draw_rows, make

#: What is asked for: a radius, a price, a number, or nothing.
ASKS = ("radius", "lam", "n_clusters", "auto")


def fitted(X, ask, name, weight=None, **more):
    """A model of rows under a divergence."""
    kind = {"divergence": make(name, X.shape[1]), **more}
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


@pytest.mark.parametrize("ask", ["n_clusters", "radius", "auto"])
@pytest.mark.parametrize("name", ["sqeuclidean", "mahalanobis"])
@pytest.mark.parametrize("n", [40, 6000])
def test_rows_without_weight_change_no_centre_however_far_they_are(n, name, ask):
    rng = np.random.default_rng(n)
    X = draw_rows(name, n, 3, seed=n) + 9 * rng.integers(3, size=(n, 1))
    weight = rng.integers(0, 3, size=n)
    X[weight == 0] *= 10.0 ** rng.integers(0, 12, size=(n, 1))[weight == 0]
    held, kind = weight > 0, {"radius": 40.0} if ask == "radius" else {"n_clusters": 3} if ask == "n_clusters" else {}
    models = [DPMeans(divergence=make(name, 3), **kind) for _ in range(2)]
    one, other = models[0].fit(X, sample_weight=weight), models[1].fit(X[held], sample_weight=weight[held])
    assert_array_equal(one.labels_[held], other.labels_)
    assert_array_equal(one.cluster_centers_, other.cluster_centers_)
    # whether costs are those of the centres before they were rounded to the users' units depends on bounds
    assert_allclose(one.inertia_, other.inertia_, rtol=1e-13)


@settings(max_examples=3)
@given(seed=st.integers(0, 2**20), search=st.sampled_from(["auto", "full"]), ask=st.sampled_from(ASKS))
def test_copies_of_any_weight_are_added_up_in_any_order(seed, search, ask):
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.integers(0, 9, size=(40, 2)).astype(float), rng.integers(1, 9, size=40), axis=0)
    weight, order = rng.gamma(1.0, size=len(X)) + 1e-3, rng.permutation(len(X))
    one = fitted(X, ask, "poisson", weight, search=search)
    assert_same(one, fitted(X[order], ask, "poisson", weight[order], search=search), order)


@pytest.mark.parametrize("name", ["sqeuclidean", "cosine", "bernoulli"])
def test_the_price_of_one_cluster_does_not_depend_on_the_order(name):
    for seed in range(6):
        X = draw_rows(name, 9, 4, seed=seed)
        weight, order = np.arange(9) % 3 + 1.0, np.random.default_rng(seed).permutation(9)
        one = fitted(X, "auto", name, weight)
        assert_same(one, fitted(X[order], "auto", name, weight[order]), order)
        again = np.repeat(np.arange(9), weight.astype(int))
        assert_same(one, fitted(X[again], "auto", name), again)


@pytest.mark.parametrize("weighting", ["length", "relative"])
@pytest.mark.parametrize("kind", ["none", "any"])
def test_lengths_of_histograms_are_averaged_in_any_order(weighting, kind):
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(300, 4)) * 10.0 ** rng.uniform(-9, 9, size=(300, 1))
    weight = 10.0 ** rng.uniform(-5, 5, size=300) if kind == "any" else None
    order = rng.permutation(300)
    one = fitted(X, "radius", "kl", weight, weighting=weighting)
    other = fitted(X[order], "radius", "kl", None if weight is None else weight[order], weighting=weighting)
    assert_same(one, other, order)


@pytest.mark.parametrize("name", ["poisson", "kl", "bernoulli"])
def test_radii_of_rows_that_exclude_each_other_are_those_of_copies(name):
    X, weight = np.eye(5), np.full(5, 3.0)
    for rows, w in ((X, None), (X, weight), (np.repeat(X, 3, axis=0), None)):
        with pytest.raises(ValueError, match="infinitely far"):
            radius_for_k(rows, 3, divergence=name, sample_weight=w)


def test_weights_that_are_no_whole_numbers_leave_the_order_without_meaning():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 3)) + 6 * rng.integers(4, size=(9000, 1))
    weight, order = rng.gamma(1.0, size=9000), rng.permutation(9000)
    for ask in ASKS:
        assert_same(fitted(X, ask, "sqeuclidean", weight), fitted(X[order], ask, "sqeuclidean", weight[order]), order)
