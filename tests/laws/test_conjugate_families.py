"""Families with conjugate priors: what ties posterior, expectations, divergence and predictive density together."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import multivariate_t

from kfree.families.conjugate import CONJUGATE, Linear, Moments, join, take
from kfree.inference.variational.expected_likelihood import make_runner
from kfree.inference.variational.sweep import log_joint, sums_of
from support.small_mixtures import FAMILIES, GAUSSIANS, draw, log_marginal, posterior_of, problem


@pytest.mark.parametrize("name", FAMILIES)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 9), p=st.integers(1, 5))
def test_divergence_less_expected_likelihood_is_minus_the_log_marginal(name, seed, n, p):
    setting, tied = problem(name, draw(name, n, p, seed), spread=2.0)
    rows = list(range(n))
    params = posterior_of(setting, tied, rows)
    expected = log_joint(tied, make_runner(setting.family.form(params), 1, tied), np.zeros(1))[:, 0] + tied.log_h
    bound = setting.family.divergence(params, setting.prior)[0] - expected.sum()
    assert_allclose(bound, -log_marginal(setting, tied, rows), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", FAMILIES)
@given(seed=st.integers(0, 10**6))
def test_any_other_parameters_bound_the_marginal_less_well(name, seed):
    setting, tied = problem(name, draw(name, 6, 2, seed))
    best = -log_marginal(setting, tied, list(range(6)))
    for rows in ([0, 1], [2, 3, 4], []):
        params = posterior_of(setting, tied, rows)
        expected = log_joint(tied, make_runner(setting.family.form(params), 1, tied), np.zeros(1))[:, 0] + tied.log_h
        divergence = setting.family.divergence(params, setting.prior)[0]
        assert divergence >= -1e-9
        assert divergence - expected.sum() >= best - 1e-9


@pytest.mark.parametrize("name", FAMILIES)
def test_updates_with_parts_are_an_update_with_the_whole(name):
    X = draw(name, 12, 3)
    setting, tied = problem(name, X)
    whole = posterior_of(setting, tied, list(range(12)))
    form = setting.family.form(setting.prior)
    parts = [sums_of(tied, form, np.asarray(r, float)[None]) for r in (np.linspace(0, 1, 12), np.linspace(1, 0, 12))]
    added = Moments(*(None if a is None else a + b for a, b in zip(*parts)))._replace(about=parts[0].about)
    for mine, other in zip(whole, setting.family.posterior(setting.prior, added)):
        assert_allclose(mine, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_posteriors_without_rows_are_the_prior(name):
    setting, tied = problem(name, draw(name, 3, 2))
    nothing = posterior_of(setting, tied, [])
    for mine, prior in zip(nothing, setting.prior):
        assert_allclose(mine, prior)
    assert_allclose(setting.family.divergence(nothing, setting.prior), 0.0, atol=1e-12)


@pytest.mark.parametrize("name", GAUSSIANS)
def test_predictive_densities_integrate_to_one(name):
    setting, tied = problem(name, draw(name, 7, 1))
    params = join([posterior_of(setting, tied, [0, 1, 2]), setting.prior])
    for k in range(2):

        def density(x, k=k):
            return np.exp(setting.family.log_predictive(take(params, [k]), np.array([[x]]))[0, 0])

        assert_allclose(quad(density, -np.inf, 0)[0] + quad(density, 0, np.inf)[0], 1.0, rtol=1e-6)


def test_the_predictive_density_of_full_gaussians_is_students_t():
    setting, tied = problem("gaussian", draw("gaussian", 9, 3))
    params = posterior_of(setting, tied, [0, 1, 2, 3, 4])
    df = params.nu[0] + 1 - 3
    shape = params.scale[0] * (params.beta[0] + 1) / (params.beta[0] * df)
    expected = multivariate_t(params.mean[0], shape, df).logpdf(tied.mean)
    assert_allclose(setting.family.log_predictive(params, tied.mean)[:, 0], expected)


def test_predictive_densities_of_counts_and_bits_sum_to_one():
    for name in ("multinomial", "poisson", "bernoulli"):
        setting, tied = problem(name, draw(name, 6, 2))
        params = posterior_of(setting, tied, [0, 1, 2])
        most = {"multinomial": 5, "poisson": 400, "bernoulli": 1}[name]
        rows = np.array(list(product(range(most + 1), repeat=2)), float)
        if name == "multinomial":
            rows = rows[rows.sum(axis=1) == most]
        assert_allclose(np.exp(setting.family.log_predictive(params, rows)).sum(), 1.0, rtol=1e-6)


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in GAUSSIANS])
def test_sparse_rows_are_as_good_as_dense_ones(name):
    X = draw(name, 8, 4)
    setting, tied = problem(name, X)
    sparse = tied._replace(mean=sp.csr_matrix(X), log_h=setting.family.log_base(sp.csr_matrix(X)))
    params = posterior_of(setting, tied, [0, 3, 5])
    for mine, other in zip(params, posterior_of(setting, sparse, [0, 3, 5])):
        assert_allclose(mine, other)
    assert_allclose(sparse.log_h, tied.log_h)
    assert isinstance(setting.family.form(params), Linear)
    assert_allclose(
        setting.family.log_predictive(params, sparse.mean), setting.family.log_predictive(params, X), rtol=1e-12
    )


@pytest.mark.parametrize("name", FAMILIES)
def test_samples_have_the_moments_of_the_predictive_density(name):
    setting, tied = problem(name, draw(name, 40, 2))
    params = posterior_of(setting, tied, list(range(40)))
    rng = np.random.default_rng(0)
    rows = setting.family.sample(params, np.zeros(40_000, int), rng, np.full(40_000, 10))
    mean = setting.family.means(params)[0] * (10 if name == "multinomial" else 1)
    assert_allclose(rows.mean(axis=0), mean, atol=6 * rows.std() / 200)
    # a predictive density is highest for its own draws: mean of the log is minus the entropy
    again = setting.family.sample(params, np.zeros(40_000, int), rng, np.full(40_000, 10))
    values = [setting.family.log_predictive(params, x).mean() for x in (rows, again)]
    assert_allclose(values[0], values[1], atol=0.05)
    worse = setting.family.log_predictive(params, rows[:, ::-1] if name == "multinomial" else np.roll(rows, 1)).mean()
    assert values[0] >= worse - 0.05


def test_full_and_diagonal_gaussians_agree_on_one_column():
    X = draw("gaussian", 8, 1)
    values = []
    for name in GAUSSIANS:
        setting, tied = problem(name, X)
        values.append(log_marginal(setting, tied, list(range(8))))
    assert_allclose(values, values[0])


def test_a_covariance_that_rounding_made_indefinite_is_mended():
    family = CONJUGATE["gaussian"]()
    setting, _ = problem("gaussian", draw("gaussian", 4, 3))
    direction = np.array([[1.0, 2.0, 3.0]])
    square = 1e20 * direction[:, :, None] * direction[:, None, :] - 1e5 * np.eye(3)
    params = family.posterior(setting.prior, Moments(np.array([1e9]), np.zeros((1, 3)), square, np.zeros((1, 3))))
    assert np.isfinite(params.root).all()
    assert np.isfinite(params.log_det).all()
