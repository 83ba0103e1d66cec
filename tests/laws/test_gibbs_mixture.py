"""The sampler of partitions draws from the posterior: by enumeration, by Geweke's test, and in the hard limit."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln, logsumexp

from kfree import GibbsDPMixture
from kfree.families.conjugate import SAMPLED
from kfree.inference.gibbs.bound_family import Turns
from kfree.inference.gibbs.dp_mixture import Concentration, DPSampler, Way
from kfree.models.gibbs_mixture import GibbsProblem
from support.small_partitions import partitions

GAUSSIANS = ("gaussian", "diag", "spherical", "known")
#: Priors under which clusters overlap.
PRIORS = {
    **{name: {"mean": 0.0, "mean_precision": 0.7, "covariance": 1.0} for name in GAUSSIANS},
    "multinomial": {"counts": 1.5},
    "poisson": {"shape": 2.0, "rate": 0.8},
    "bernoulli": {"ones": 0.8, "zeros": 1.2},
    "gamma": {"shape": 2.0, "mean": 1.0, "mean_precision": 1.5},
}


def rows(name, n, p, rng):
    """Rows of two groups."""
    group = rng.integers(0, 2, (n, 1))
    if name in GAUSSIANS:
        return rng.normal(size=(n, p)) + 2.0 * group
    if name == "bernoulli":
        return (rng.random((n, p)) < 0.2 + 0.6 * group).astype(float)
    return (
        rng.gamma(2.0, 1.0 + group, (n, p)) if name == "gamma" else rng.poisson(1.0 + 3 * group, (n, p)).astype(float)
    )


def problem(name, X, weight=None, prior=None):
    return GibbsProblem.of(X, weight, name, PRIORS[name] if prior is None else prior)


def sampler(made, concentration, beta=1.0, **way):
    start = [np.zeros(made.bound.n, np.int32)]
    return DPSampler(made.bound, made.weight, concentration, Way(np.atleast_1d(beta), **way), start)


def log_marginal(made, labels, beta=1.0):
    n = made.bound.n
    return made.bound.draw(np.array(labels, np.int32), beta * made.weight, Turns.none(n), 0.0).log_marginal


def exact(made, log_of_count, beta=1.0):
    """All partitions and their probabilities; ``log_of_count`` are logs of what K clusters have, but for sizes."""
    every = list(partitions(made.bound.n))
    logs = [log_marginal(made, z, beta) + gammaln(np.bincount(z)).sum() + log_of_count(max(z) + 1) for z in every]
    return every, np.exp(np.array(logs) - logsumexp(logs))


def visits(one, sweeps, seed, every):
    rng, place = np.random.default_rng(seed), {z: k for k, z in enumerate(every)}
    state, count = one.start(0, rng), np.zeros(len(every))
    for turn in range(sweeps):
        state = one.sweep(state, turn, rng)
        count[place[tuple(state.labels.tolist())]] += 1
    return count / sweeps


@pytest.mark.parametrize("name", SAMPLED)
def test_marginals_are_products_of_predictive_densities(name):
    rng = np.random.default_rng(1)
    X = rows(name, 7, 3, rng)
    made = problem(name, X)
    bound, family = made.bound, made.bound.family
    total = float(np.sum(family.log_base(bound.rows)))
    value = family.log_predictive(bound.prior, bound.rows[:1])[0, 0]
    for i in range(1, 7):
        before = bound.posterior(np.zeros(7, np.int32), np.r_[np.ones(i), np.full(7 - i, 1e-300)], 1)
        value += family.log_predictive(before, bound.rows[i : i + 1])[0, 0]
    assert_allclose(log_marginal(made, np.zeros(7, int)) + total, value, rtol=1e-9)
    weight = np.ones(7)
    assert_allclose(bound.fresh(weight), [log_marginal_of_row(made, i) for i in range(7)], rtol=1e-9)


def log_marginal_of_row(made, i):
    family, one = made.bound.family, made.bound.rows[i : i + 1]
    return family.log_predictive(made.bound.prior, one)[0, 0] - family.log_base(one)[0]


@pytest.mark.parametrize("collapsed", [True, False])
@pytest.mark.parametrize("name", SAMPLED)
def test_partitions_are_visited_as_often_as_the_posterior_says(name, collapsed):
    rng = np.random.default_rng(5)
    weight = rng.choice([1.0, 1.5, 2.0], 4)
    made = problem(name, rows(name, 4, 2, rng), weight)
    every, chances = exact(made, lambda K: -0.2 * K)
    one = sampler(made, Concentration(-0.2), collapsed=collapsed, proposals=0 if not collapsed else 2)
    assert 0.5 * np.abs(visits(one, 10_000, 0, every) - chances).sum() < 0.025


def test_a_concentration_with_a_prior_is_integrated_over():
    rng = np.random.default_rng(6)
    made = problem("gaussian", rows("gaussian", 5, 2, rng))
    a, b = 2.0, 1.5
    grid = np.linspace(1e-4, 30, 60_000)

    def log_of_count(K):
        logs = K * np.log(grid) + gammaln(grid) - gammaln(grid + 5) + (a - 1) * np.log(grid) - b * grid
        return logsumexp(logs)

    every, chances = exact(made, log_of_count)
    found = visits(sampler(made, Concentration(0.0, (a, b))), 20_000, 1, every)
    assert 0.5 * np.abs(found - chances).sum() < 0.025


def drawn_rows(name, family, drawn, labels, rng):
    """Rows from the likelihood of drawn parameters."""
    mean = drawn.means[0][labels]
    if name == "gaussian" or name == "known":
        lower = np.linalg.cholesky(drawn.covariances[0])[labels]
        return mean + (lower @ rng.normal(size=mean.shape)[..., None])[..., 0]
    if name in GAUSSIANS:
        sd = np.sqrt(drawn.covariances[0])[labels]
        return mean + rng.normal(size=mean.shape) * (sd if sd.ndim == 2 else sd[:, None])
    if name == "multinomial":
        return rng.multinomial(5, mean).astype(float)
    if name == "poisson":
        return rng.poisson(mean).astype(float)
    if name == "bernoulli":
        return (rng.random(mean.shape) < mean).astype(float)
    return rng.gamma(family.shape, mean / family.shape)


@pytest.mark.parametrize("name", SAMPLED)
def test_rows_and_partitions_drawn_in_turn_leave_partitions_with_their_prior(name):
    """Geweke (2004): if rows are drawn anew given the partition, partitions must be as before any data."""
    rng, n = np.random.default_rng(8), 4
    made = problem(name, rows(name, n, 2, rng))
    # in the units of the model; where rows are is no part of it
    bound, one = made.bound, sampler(made, Concentration(0.3), proposals=1)
    every = list(partitions(n))
    logs = np.array([0.3 * (max(z) + 1) + gammaln(np.bincount(z)).sum() for z in every])
    count, place = np.zeros(len(every)), {z: k for k, z in enumerate(every)}
    state, sweeps = one.start(0, rng), 12_000
    for turn in range(sweeps):
        params = bound.posterior(state.labels, made.weight, state.n_clusters)
        fresh = drawn_rows(name, bound.family, bound.family.draw(params, 1, rng), state.labels, rng)
        bound = type(bound)(bound.family, bound.prior, np.maximum(fresh, 1e-12) if name == "gamma" else fresh)
        one.bound = bound
        state = one.sweep(state, turn, rng)
        count[place[tuple(state.labels.tolist())]] += 1
    assert 0.5 * np.abs(count / sweeps - np.exp(logs - logsumexp(logs))).sum() < 0.04


def divergence_objective(name, made, X, labels, lam):
    """J of a partition: sum of divergences from the means, and lam for each cluster."""
    total = 0.0
    for k in range(max(labels) + 1):
        part = X[np.array(labels) == k]
        mean = part.mean(axis=0)
        if name == "known":
            total += ((part - mean) ** 2).sum() / 2 / 0.5
        elif name == "poisson":
            total += (part * np.log(part / mean) - part + mean).sum()
        else:
            total += (part / mean - np.log(part / mean) - 1).sum()
    return total + lam * (max(labels) + 1)


@pytest.mark.parametrize("collapsed", [True, False])
@pytest.mark.parametrize(("name", "lam"), [("known", 2.0), ("poisson", 0.5), ("gamma", 0.3)])
def test_large_beta_ends_in_the_minimum_of_the_hard_objective(name, lam, collapsed):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(7, 2)) * 1.5 if name == "known" else rng.gamma(2.0, 2.0, (7, 2))
    prior = {"known": {"covariance": 0.5}, "poisson": None, "gamma": None}[name]
    values = {z: divergence_objective(name, None, X, z, lam) for z in partitions(7)}
    best = min(values, key=values.get)
    model = GibbsDPMixture(
        family=name,
        prior=prior,
        concentration=np.exp(-lam),
        beta=np.geomspace(1.0, 3000.0, 200),
        burn_in=199,
        n_samples=20,
        collapsed=collapsed,
        point_estimate="map",
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # chains that stand still
        model.fit(X)
    found = tuple(np.unique(model.labels_, return_index=True)[1].argsort().argsort()[model.labels_].tolist())
    assert values[found] <= values[best] + 1e-9
