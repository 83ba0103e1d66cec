"""``probabilities_``: how strongly rows belong to their clusters; ``outliers``: rows that belong to none."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kfree import DPMeans


def noisy(seed=0, n=120):
    rng = np.random.default_rng(seed)
    blobs = rng.normal(size=(n, 2)) + np.repeat([[0, 0], [30, 0], [0, 30]], n // 3, axis=0)
    return np.concatenate([blobs, [[200.0, 200.0], [-150.0, 90.0]]])


@given(st.integers(0, 999), st.sampled_from([{"n_clusters": 3}, {"radius": 40.0, "max_clusters": 3}, {"lam": 2000.0}]))
def test_outliers_are_the_rows_beyond_the_radius_and_nothing_else_changes(seed, ask):
    X = noisy(seed)
    plain, model = DPMeans(**ask).fit(X), DPMeans(outliers=True, **ask).fit(X)
    beyond = plain.decision_function(X) < 0
    assert_array_equal(model.labels_, np.where(beyond, -1, plain.labels_))
    assert_array_equal(model.fit_predict(X), model.predict(X))
    assert_array_equal(model.cluster_centers_, plain.cluster_centers_)
    assert_array_equal(model.cluster_weights_, plain.cluster_weights_)
    assert (model.objective_, model.radius_) == (plain.objective_, plain.radius_)
    assert_array_equal(model.probabilities_ == 0, beyond | (plain.probabilities_ == 0))


def test_strength_is_one_at_the_centre_and_nothing_at_the_radius():
    X = np.array([[0.0], [1.0], [2.0], [9.0], [10.0], [11.0]])
    model = DPMeans(n_clusters=2).fit(X)
    expected = np.clip(1 - model.transform(X).min(axis=1) / model.radius_, 0, 1)
    assert_allclose(model.probabilities_, expected)
    assert_allclose(model.probabilities_[[1, 4]], 1.0)


@pytest.mark.parametrize("divergence", ["sqeuclidean", "mahalanobis", "kl", "poisson", "bernoulli", "cosine"])
def test_strengths_lie_between_0_and_1_for_every_divergence(divergence):
    rng = np.random.default_rng(0)
    X = (rng.random((80, 4)) < np.repeat([[0.9, 0.9, 0.1, 0.5], [0.1, 0.1, 0.9, 0.9]], 40, axis=0)).astype(float)
    X = X[X.sum(axis=1) > 0]
    model = DPMeans(n_clusters=2, divergence=divergence, outliers=True).fit(X)
    assert model.probabilities_.shape == (len(X),)
    assert (model.probabilities_ >= 0).all()
    assert (model.probabilities_ <= 1).all()
    if divergence != "mahalanobis":
        sparse = DPMeans(n_clusters=2, divergence=divergence, outliers=True).fit(sp.csr_matrix(X))
        assert_allclose(sparse.probabilities_, model.probabilities_, atol=1e-9)


def test_equal_rows_belong_to_their_cluster_for_certain():
    model = DPMeans(n_clusters=1, outliers=True).fit(np.ones((5, 2)))
    assert_array_equal(model.probabilities_, 1.0)
    assert_array_equal(model.labels_, 0)


def test_batches_have_outliers_and_strengths_of_their_own():
    X = noisy()
    model = DPMeans(n_clusters=3, outliers=True).fit(X[:-2])
    model.partial_fit(X[::7])
    assert_array_equal(model.labels_, model.predict(X[::7]))
    assert model.probabilities_.shape == model.labels_.shape
    model.partial_fit(X[-2:])
    assert_array_equal(model.labels_, model.predict(X[-2:]))


def test_profiles_leave_outliers_out():
    X = noisy()
    model = DPMeans(n_clusters=3, outliers=True).fit(X)
    profile = model.profile(X)
    assert_array_equal(profile.size, np.bincount(model.labels_[model.labels_ >= 0], minlength=3))
    assert not np.isin(profile.typical, np.flatnonzero(model.labels_ < 0)).any()


def test_outliers_is_true_or_false():
    with pytest.raises(TypeError, match="outliers must be True or False"):
        DPMeans(outliers="yes").fit(noisy())
