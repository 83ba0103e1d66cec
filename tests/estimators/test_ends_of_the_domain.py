"""Rows and centres on, near and far from the ends of a domain, and numbers on the ends of what floats can hold."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from kfree import Binomial, DPMeans


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("tiny", [1e-3, 1e-9, 1e-12, 1e-100])
def test_a_centre_at_an_end_of_the_domain_excludes_every_other_value_however_close(sparse, tiny):
    X = np.array([[0.0, 0.5], [0.0, 0.5], [0.3, 0.9], [0.3, 0.9]])
    model = DPMeans(radius=0.05, divergence="bernoulli").fit(sp.csr_matrix(X) if sparse else X)
    new = np.array([[tiny, 0.5], [0.0, 0.5]])
    new = sp.csr_matrix(new) if sparse else new
    assert model.predict(new).tolist() == [1, 0]
    assert np.isinf(model.transform(new)).tolist() == [[True, False], [False, False]]
    assert (model.decision_function(new) < 0).tolist() == [True, False]


def test_large_counts_of_trials_are_far_but_not_excluded():
    X = np.array([[1e8], [1.1e8], [9e8], [9.1e8]])
    model = DPMeans(radius=1e9, divergence=Binomial(1e9)).fit(X)
    assert model.n_clusters_ == 1
    assert_allclose(model.transform(X)[:, 0], Binomial(1e9).divergence(X, X.mean(axis=0)), rtol=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
def test_entries_that_a_mean_cannot_tell_from_the_upper_end_are_refused(sparse):
    rng = np.random.default_rng(0)
    X = 1 - 10.0 ** rng.uniform(-16, 0, (50, 2))
    with pytest.raises(ValueError, match=r"largest entry of X below it is only .* Set entries above 0\.99999"):
        DPMeans(radius=1.0, divergence="bernoulli").fit(sp.csr_matrix(X) if sparse else X)
    X[X > 1 - 1e-11] = 1.0
    model = DPMeans(radius=1.0, divergence="bernoulli").fit(sp.csr_matrix(X) if sparse else X)
    assert np.isfinite(model.objective_)
    X = np.array([[1.0], [1.0], [1 - 1e-9], [0.5]])
    with pytest.raises(ValueError, match="largest entry of smoothing_mean"):
        DPMeans(radius=1.0, divergence="bernoulli", smoothing=0.1, smoothing_mean=[1 - 2e-12]).fit(X)
