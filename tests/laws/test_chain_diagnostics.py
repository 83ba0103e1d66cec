"""R-hat and effective sample size say what theory says of chains whose law is known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kfree.inference.gibbs.diagnostics import Diagnostic, complaints, diagnose, effective_size, halves, split_rhat


def autoregressive(rho, chains, n, seed=0):
    """Chains of standard normals whose neighbours have correlation rho, and the index of each."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(chains, n)) * np.sqrt(1 - rho**2)
    values = np.empty((chains, n))
    values[:, 0] = rng.normal(size=chains)
    for t in range(1, n):
        values[:, t] = rho * values[:, t - 1] + noise[:, t]
    return values.ravel(), np.repeat(np.arange(chains), n)


@pytest.mark.parametrize("rho", [-0.4, 0.0, 0.5, 0.9])
def test_effective_size_is_that_of_an_autoregressive_chain(rho):
    sizes = [effective_size(*autoregressive(rho, 4, 4000, seed)) for seed in range(5)]
    assert_allclose(np.mean(sizes), 16_000 * (1 - rho) / (1 + rho), rtol=0.15)


def test_rhat_is_near_one_if_chains_agree_and_large_if_they_do_not():
    values, chain = autoregressive(0.5, 4, 2000)
    assert 0.999 < split_rhat(values, chain) < 1.01
    assert split_rhat(values + 3 * (chain == 2), chain) > 1.5
    drift = values + np.tile(np.linspace(0, 4, 2000), 4)
    assert split_rhat(drift, chain) > 1.3
    assert effective_size(drift, chain) < 30


def test_rhat_is_the_formula_of_the_book():
    values, chain = autoregressive(0.3, 2, 7)
    parts = np.array([values[[0, 1, 2]], values[[4, 5, 6]], values[[7, 8, 9]], values[[11, 12, 13]]])
    assert_array_equal(halves(values, chain), parts)
    longer = np.r_[99.0, values[:7], values[7:]], np.r_[0, chain]
    assert_array_equal(halves(*longer), parts)
    within, between = parts.var(axis=1, ddof=1).mean(), 3 * parts.mean(axis=1).var(ddof=1)
    assert_allclose(split_rhat(values, chain), np.sqrt((2 / 3 * within + between / 3) / within))


def test_arviz_says_the_same():
    arviz = pytest.importorskip("arviz", reason="arviz is optional")
    for rho in (0.0, 0.6, 0.95):
        values, chain = autoregressive(rho, 3, 1000)
        table = values.reshape(3, 1000)
        assert_allclose(split_rhat(values, chain), float(arviz.rhat(table, method="split")), rtol=1e-6)
        assert_allclose(effective_size(values, chain), float(arviz.ess(table, method="mean")), rtol=0.02)


def test_chains_that_never_move():
    chain = np.repeat([0, 1], 50)
    assert split_rhat(np.full(100, 3.0), chain) == 1.0
    assert effective_size(np.full(100, 3.0), chain) == 100
    assert split_rhat(chain + 2.0, chain) == np.inf
    assert effective_size(chain + 2.0, chain) < 5
    assert split_rhat(np.full(100, 1e9 / 3), chain) == 1.0


def test_units_and_the_order_of_chains_do_not_matter():
    values, chain = autoregressive(0.5, 3, 400)
    assert_allclose(split_rhat(-7 * values + 100, 5 - chain), split_rhat(values, chain))
    assert_allclose(effective_size(-7 * values + 100, 5 - chain), effective_size(values, chain))


def test_few_samples_tell_nothing():
    assert np.isnan(split_rhat(np.arange(3.0), np.zeros(3, int)))
    assert np.isnan(effective_size(np.arange(6.0), np.repeat([0, 1], 3)))
    assert np.isnan(split_rhat(np.zeros(0), np.zeros(0, int)))
    (said,) = complaints({"n_clusters": Diagnostic(np.nan, np.nan)}, 3, 1)
    assert "too few" in said
    assert "n_samples" in said


def test_complaints_say_what_is_wrong_and_what_to_do():
    values, chain = autoregressive(0.3, 2, 500)
    assert complaints(diagnose({"n_clusters": values}, chain), 1000, 2) == []
    apart = diagnose({"n_clusters": values + 5 * chain, "log_posterior": values}, chain)
    (said,) = complaints(apart, 1000, 2)
    assert "the number of clusters (split R-hat" in said
    assert "burn_in" in said
    assert "log posterior" not in said
    (said,) = complaints({"log_posterior": Diagnostic(1.05, 7.0)}, 1000, 2)
    assert "the log posterior (7 draws)" in said
    assert "at least 20" in said
