"""A family of the user's own: one small class, and the laws, rows and products work for it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kfree.families import Array, Family, Separable, make_family
from kfree.inference.clusters.assign import nearest
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.table import make_table
from kfree.rows import DenseRows
from support.family_data import geometry_of, gradient


class InverseGaussian(Separable):
    r"""Inverse Gaussian with fixed shape s: times until a drifting walk reaches a level.

    .. math:: \phi(x) = \sum_j s / 2 x_j, \qquad D = \sum_j s (x_j - \mu_j)^2 / (2 \mu_j^2 x_j)
    """

    name = "inverse_gaussian"
    lower = 0.0
    lower_open = True
    advice = "Drop rows with values that are not positive."

    def __init__(self, shape: float = 1.0):
        self.shape = shape

    def phi(self, stats: Array) -> Array:
        return self.shape * (0.5 / stats).sum(axis=-1)

    def psi(self, theta: Array) -> Array:
        return -np.sqrt(-2 * self.shape * theta).sum(axis=-1)

    def natural(self, mean: Array) -> Array:
        return -0.5 * self.shape / mean**2

    def mean(self, theta: Array) -> Array:
        return np.sqrt(-0.5 * self.shape / theta)

    def terms(self, stats: Array, mean: Array) -> Array:
        return self.shape * (stats - mean) ** 2 / (2 * mean**2 * stats)


class FourFormulas(Family):
    """The least a family can be: no terms, so that the divergence comes from phi and its gradient."""

    phi, psi = InverseGaussian.phi, InverseGaussian.psi
    natural, mean = InverseGaussian.natural, InverseGaussian.mean
    shape = 1.0


def draw(n, p, seed):
    return np.random.default_rng([seed, n, p]).wald(1.0, 2.0, size=(n, p)) + 0.1


@pytest.mark.parametrize("family", [InverseGaussian(), FourFormulas()], ids=repr)
@given(p=st.integers(1, 5), seed=st.integers(0, 2**20))
def test_laws_hold_for_a_family_of_ones_own(family, p, seed):
    x, mu, w = draw(6, p, seed), draw(6, p, seed + 1), np.arange(1.0, 7.0)
    theta, D = family.natural(mu), family.divergence(x, mu)
    assert (D >= 0).all()
    assert_array_equal(family.divergence(x, x), 0.0)
    assert_allclose(family.phi(x) + family.psi(theta) - (x * theta).sum(axis=1), D, rtol=1e-9, atol=1e-10)
    assert_allclose(family.mean(theta), mu)
    assert_allclose(gradient(family.phi, mu[0]), theta[0], rtol=1e-5)
    assert_allclose(gradient(family.psi, theta[0]), mu[0], rtol=1e-5)
    best = family.centre((w @ x)[None], w.sum(keepdims=True))
    assert_allclose(
        w @ family.divergence(x, mu[:1]), w @ family.divergence(x, best) + w.sum() * family.divergence(best, mu[0])
    )


@pytest.mark.parametrize("family", [InverseGaussian(), FourFormulas()], ids=repr)
def test_a_family_of_ones_own_serves_the_lower_layers(family):
    x, mean = draw(200, 3, 0), draw(7, 3, 1)
    table = make_table(DenseRows(x, weight=np.empty(0), scale=np.empty(0), shift=np.zeros(3)), geometry_of(family, x))
    found, _ = nearest(table, np.arange(200), Centres(table.geometry, mean))
    exact = family.divergence(x[:, None], mean[None])
    assert make_family(family) is family
    assert_array_equal(found.labels, exact.argmin(axis=1))
    assert_allclose(table.base + found.least, exact.min(axis=1), rtol=1e-9, atol=1e-11)


def test_repr_of_a_family_of_ones_own_is_its_call():
    assert repr(InverseGaussian(2.0)) == "InverseGaussian(shape=2.0)"
