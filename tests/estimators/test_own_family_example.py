"""The example of a user's own family, examples/own_family.py: it runs, dense and sparse, and finds what is there."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from kfree import DPMeans, lam_for_k, lam_path, radius_for_k

FILE = Path(__file__).parents[2] / "examples" / "own_family.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("own_family", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("form", [np.asarray, csr_matrix], ids=["dense", "sparse"])
def test_the_climates_are_found(example, form):
    X, climate = example.make_rain()
    model = DPMeans(divergence=example.CompoundPoisson(), random_state=0).fit(form(X))
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(climate, model.labels_) > 0.9
    assert_array_equal(model.predict(form(X)), model.labels_)


@pytest.mark.parametrize("algorithm", ["batch", "serial", "delayed", "collapsed"])
def test_dense_and_sparse_rows_agree_under_every_algorithm(example, algorithm):
    X, _ = example.make_rain(200)
    family = example.CompoundPoisson()
    lam = radius_for_k(X, 3, divergence=family)
    model = DPMeans(radius=lam, divergence=family, algorithm=algorithm, random_state=0).fit(X)
    sparse = clone(model).fit(csr_matrix(X))
    assert_array_equal(model.labels_, sparse.labels_)
    assert_allclose(model.objective_, sparse.objective_)
    assert (np.diff(model.objective_trace_) <= 1e-9 * model.objective_).all()
    assert_allclose(model.transform(X).min(axis=1).sum(), model.inertia_)


def test_the_path_and_the_radius_work_for_it(example):
    X, _ = example.make_rain(200)
    path = lam_path(X, divergence=example.CompoundPoisson(), max_clusters=6)
    assert_array_equal(path.n_clusters, np.arange(1, 7))
    assert path.best == 3
    model = DPMeans(lam=lam_for_k(X, 3, divergence=example.CompoundPoisson()), divergence=example.CompoundPoisson())
    assert_array_equal(model.fit(X).labels_, path.labels(3))


def test_its_formulas_belong_together(example):
    rng = np.random.default_rng(0)
    family, x, mu = example.CompoundPoisson(), rng.gamma(1.0, size=(9, 4)), rng.gamma(1.0, size=(9, 4))
    x[0, 0] = 0.0
    theta = family.natural(mu)
    assert_allclose(family.mean(theta), mu)
    assert_allclose(family.phi(x) + family.psi(theta) - (x * theta).sum(axis=1), family.divergence(x, mu), atol=1e-12)


def test_a_centre_of_zeros_excludes_rain(example):
    far = example.CompoundPoisson().divergence(np.array([[0.0, 1.0], [1.0, 1.0]]), np.array([0.0, 1.0]))
    assert_array_equal(far, [0.0, np.inf])


def test_negative_amounts_are_refused_with_the_advice(example):
    with pytest.raises(ValueError, match=r"compound_poisson.*X\[0, 1\] = -1.*clip them"):
        DPMeans(radius=1.0, divergence=example.CompoundPoisson()).fit([[1.0, -1.0], [2.0, 3.0]])
