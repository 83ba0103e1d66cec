"""Large counts: the small numbers that are left of large ones, and likelihoods beside a reference."""

from decimal import Decimal, localcontext
from math import factorial

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from kfree.families.conjugate import ANCHORED, CONJUGATE, Facts, Moments
from kfree.families.conjugate.stirling import (
    count_divergence,
    digamma_less_log,
    gamma_rise,
    log_negative_binomial,
    log_poisson,
    log_ratio,
    stirling_error,
)

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")


@pytest.fixture(autouse=True)
def digits():
    with localcontext() as context:
        context.prec = 60
        yield


def exact_divergence(x, mean):
    x, mean = Decimal(float(x)), Decimal(float(mean))
    return float(x * (x / mean).ln() - x + mean)


@pytest.mark.parametrize("size", [1.0, 1e3, 1e9, 2.0**53])
@pytest.mark.parametrize("share", [1e-12, 1e-8, -1e-8, 1e-3, 0.2, -0.2, 0.9, -0.9, 50.0])
def test_divergences_and_logs_of_counts_near_their_rate_keep_their_digits(size, share):
    x, mean = size, size * (1 + share)
    assert_allclose(count_divergence(np.array(x), np.array(mean)), exact_divergence(x, mean), rtol=1e-12)
    assert_allclose(log_ratio(np.array(x), np.array(mean)), float((Decimal(x) / Decimal(mean)).ln()), rtol=1e-14)


@pytest.mark.parametrize("a", [1, 2, 15, 16, 17, 100, 1000])
def test_what_stirling_leaves_of_a_factorial(a):
    whole = Decimal(factorial(a)).ln() - (a + Decimal("0.5")) * Decimal(a).ln() + a - (2 * PI).ln() / 2
    assert_allclose(stirling_error(np.array(float(a))), float(whole), rtol=1e-12)


@pytest.mark.parametrize("a", [0.3, 7.5, 15.5, 16.5, 1e3, 1e9])
def test_steps_of_one_are_those_of_the_gamma_function(a):
    at, logs = np.array([a, a + 1]), Decimal(a + 1).ln() - Decimal(a).ln()
    error, slope = stirling_error(at), digamma_less_log(at)
    assert_allclose(error[0] - error[1], float((Decimal(a) + Decimal("0.5")) * logs - 1), rtol=1e-9, atol=1e-16)
    assert_allclose(slope[1] - slope[0], float(1 / Decimal(a) - logs), rtol=1e-9, atol=1e-16)
    assert gamma_rise(at[:1], at[:1]) == 0


def test_poisson_and_negative_binomial_sum_to_one():
    x = np.arange(4000.0)
    assert_allclose(np.exp(log_poisson(x, np.array(700.0))).sum(), 1, rtol=1e-12)
    assert_allclose(np.exp(log_negative_binomial(x, np.array(40.0), np.array(0.1))).sum(), 1, rtol=1e-12)


def made(name, X, mean=None):
    """A family for large counts, its prior, and the posterior of all rows."""
    family = ANCHORED[name](X.mean(axis=0) if mean is None else mean)
    prior = family.prior(Facts(X.shape[1], 1.0, X.mean(axis=0)), {})
    sums = Moments(np.array([float(len(X))]), X.sum(axis=0)[None], None, np.zeros((1, X.shape[1])))
    return family, prior, family.posterior(prior, sums)


def log_likelihoods(family, params, X):
    coef, offset = family.form(params)
    return X @ coef[0] - offset[0] + family.log_base(X)


@pytest.mark.parametrize("name", sorted(ANCHORED))
def test_beside_a_reference_ordinary_counts_are_what_they_are_without(name):
    X = np.random.default_rng(0).poisson([0.0, 3.0, 20.0, 400.0], (30, 4)).astype(float)
    family, prior, params = made(name, X)
    plain = CONJUGATE[name]()
    assert_allclose(log_likelihoods(family, params, X), log_likelihoods(plain, params, X), rtol=1e-9)
    assert_allclose(family.divergence(params, prior), plain.divergence(params, prior), rtol=1e-9)
    assert_allclose(family.log_predictive(params, X), plain.log_predictive(params, X), rtol=1e-9)
    sparse = sp.csr_matrix(X)
    assert_allclose(family.log_base(sparse), family.log_base(X), rtol=1e-9)
    assert_allclose(family.log_predictive(params, sparse), family.log_predictive(params, X), rtol=1e-9)


@pytest.mark.parametrize("name", sorted(ANCHORED))
@pytest.mark.parametrize("size", [1e7, 1e10, 1e13])
def test_the_reference_changes_no_likelihood(name, size):
    X = np.random.default_rng(1).poisson(size * np.array([1.0, 2.0, 0.5]), (20, 3)).astype(float)
    family, _, params = made(name, X)
    other, *_ = made(name, X, X[0] + 0.25)
    assert_allclose(log_likelihoods(family, params, X), log_likelihoods(other, params, X), rtol=1e-7)


@pytest.mark.parametrize("name", sorted(ANCHORED))
@pytest.mark.parametrize("size", [1e3, 1e9, 1e13])
def test_divergence_less_likelihood_is_minus_the_evidence_at_any_size(name, size):
    X = np.random.default_rng(2).poisson(size * np.array([1.0, 2.0, 0.5]), (6, 3)).astype(float)
    family, prior, params = made(name, X)
    bound = family.divergence(params, prior)[0] - log_likelihoods(family, params, X).sum()
    evidence, known = 0.0, prior
    for row in X:
        evidence += family.log_predictive(known, row[None])[0, 0]
        known = family.posterior(known, Moments(np.ones(1), row[None], None, np.zeros((1, 3))))
    assert_allclose(bound, -evidence, rtol=1e-7)
