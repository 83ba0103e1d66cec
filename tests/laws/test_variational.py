"""Variational mixtures: the free energy is a bound, falls at every step, and knows the infinite tail."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import beta as beta_distribution

from kfree.families.conjugate import join
from kfree.inference.loop import Budget
from kfree.inference.variational.greedy import GreedyGoal, search
from kfree.inference.variational.partition import SingleRows
from kfree.inference.variational.posterior import Mixture, best_mixture
from kfree.inference.variational.sweep import assign, members, sweep
from kfree.rows import Tied, set_span_threads
from kfree.structures import StickBreaking, by_size
from support.small_mixtures import (
    FAMILIES,
    GAUSSIANS,
    draw,
    free_energy,
    free_energy_at,
    log_evidence,
    mixture_of,
    problem,
    stick_cost,
)

STICKS = st.tuples(st.floats(0.2, 4.0), st.floats(0.2, 6.0))


def random_resp(n, T, seed):
    return np.random.default_rng(seed).dirichlet(np.full(T + 1, 0.5), size=n)


@given(sticks=STICKS, seed=st.integers(0, 1000))
def test_the_tail_is_the_sum_over_all_further_sticks(sticks, seed):
    prior = StickBreaking(*sticks)
    posterior = prior.posterior(np.random.default_rng(seed).gamma(1.0, 3.0, size=4))
    log_weight = prior.expected_log(posterior)
    many = np.concatenate([posterior, np.tile([prior.a1, prior.a2], (3000, 1))])
    assert_allclose(prior.expected_log(many)[:3], log_weight[:3])
    assert_allclose(logsumexp(prior.expected_log(many)[3:]), log_weight[3], rtol=1e-9)
    assert_allclose(prior.weights(posterior).sum(), 1.0, rtol=1e-13)


@given(sticks=STICKS)
def test_divergence_of_sticks_is_their_kl(sticks):
    prior, posterior = StickBreaking(*sticks), np.array([[2.5, 1.7]])
    q, p = beta_distribution(2.5, 1.7), beta_distribution(*sticks)
    kl = quad(lambda v: q.pdf(v) * (q.logpdf(v) - p.logpdf(v)), 0, 1)[0]
    assert_allclose(prior.divergence(posterior), kl, rtol=1e-5, atol=1e-7)


@given(sticks=STICKS, sizes=st.lists(st.floats(0.01, 50), min_size=2, max_size=4))
def test_no_order_costs_less_than_by_size(sticks, sizes):
    prior, sizes = StickBreaking(*sticks), np.array(sizes)
    best = stick_cost(prior, np.append(sizes[by_size(sizes)], 0.3))
    for order in permutations(range(len(sizes))):
        assert best <= stick_cost(prior, np.append(sizes[list(order)], 0.3)) + 1e-9


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=6)
@given(sticks=STICKS, seed=st.integers(0, 10**6), T=st.integers(1, 3))
def test_the_free_energy_bounds_the_evidence(name, sticks, seed, T):
    setting, tied = problem(name, draw(name, 5, 2, seed), sticks, spread=3.0)
    bound = -log_evidence(setting, tied)
    mixture, _ = mixture_of(setting, tied, random_resp(5, T, seed))
    for _ in range(20):
        swept, energy = mixture.sweep(setting, tied)
        assert energy >= bound - 1e-9
        mixture, _ = best_mixture(setting, swept)


@pytest.mark.parametrize("name", FAMILIES)
@given(sticks=STICKS, seed=st.integers(0, 10**6), T=st.integers(1, 4))
def test_the_free_energy_falls_at_every_half_step(name, sticks, seed, T):
    weight = np.random.default_rng(seed).uniform(0.2, 3.0, 12)
    setting, tied = problem(name, draw(name, 12, 3, seed), sticks, weight)
    resp, last = random_resp(12, T, seed), np.inf
    for _ in range(4):
        mixture, order = mixture_of(setting, tied, resp)
        resp = resp[:, [*order, T]]
        after_update = free_energy_at(mixture, setting, tied, resp)
        view = mixture.view(setting)
        resp, T = view.shares(tied).resp.T, mixture.size
        after_assignment = free_energy_at(mixture, setting, tied, resp)
        assert after_assignment <= after_update + 1e-9 * abs(after_update)
        assert after_update <= last + 1e-9 * abs(after_update)
        assert_allclose(free_energy(mixture, setting, tied), after_assignment, rtol=1e-10)
        last = after_assignment


@pytest.mark.parametrize("name", FAMILIES)
@given(sticks=STICKS, seed=st.integers(0, 10**6))
def test_a_further_component_at_its_prior_changes_nothing(name, sticks, seed):
    setting, tied = problem(name, draw(name, 9, 2, seed), sticks)
    mixture, _ = mixture_of(setting, tied, random_resp(9, 2, seed))
    more = Mixture(join([mixture.params, setting.prior]), np.concatenate([mixture.sticks, [list(sticks)]]))
    assert_allclose(free_energy(more, setting, tied), free_energy(mixture, setting, tied), rtol=1e-11)


def tied_in_pairs(name, tied):
    """Rows 0 and 1, 2 and 3, ... tied together."""
    X, n = tied.mean.reshape(-1, 2, tied.mean.shape[1]), tied.n.reshape(-1, 2)
    share = (n / n.sum(axis=1, keepdims=True))[:, :, None]
    mean = (share * X).sum(axis=1)
    gap = X - mean[:, None]
    i, j = np.triu_indices(X.shape[2])
    second = {
        "gaussian": lambda: np.ascontiguousarray((share * gap[:, :, i] * gap[:, :, j]).sum(axis=1)),
        "diag": lambda: (share * gap * gap).sum(axis=1),
        "spherical": lambda: (share * gap * gap).sum(axis=(1, 2)),
    }.get(name, lambda: None)()
    return Tied(n.sum(axis=1), mean, second, (share[:, :, 0] * tied.log_h.reshape(-1, 2)).sum(axis=1))


@pytest.mark.parametrize("name", FAMILIES)
@given(seed=st.integers(0, 10**6))
def test_tied_rows_are_averages_and_untying_them_lowers_the_free_energy(name, seed):
    weight = np.random.default_rng(seed).uniform(0.2, 3.0, 12)
    setting, tied = problem(name, draw(name, 12, 3, seed), weight=weight)
    mixture, _ = mixture_of(setting, tied, random_resp(12, 2, seed))
    nodes, view = tied_in_pairs(name, tied), mixture.view(setting)
    single, share = view.scores(tied).reshape(6, 2, 3), (weight.reshape(6, 2) / weight.reshape(6, 2).sum(1)[:, None])
    assert_allclose(view.scores(nodes), (single * share[:, :, None]).sum(axis=1), rtol=1e-9, atol=1e-9)
    assert free_energy(mixture, setting, tied) <= free_energy(mixture, setting, nodes) + 1e-9
    # the sums of tied rows are those of their rows with the same responsibilities
    resp = view.shares(nodes).resp.T
    mine, _ = mixture_of(setting, nodes, resp)
    other, _ = mixture_of(setting, tied, np.repeat(resp, 2, axis=0))
    for a, b in zip(mine.params, other.params):
        assert_allclose(a, b, rtol=1e-8, atol=1e-8)


def test_sums_do_not_depend_on_the_number_of_threads():
    for name in FAMILIES:
        setting, tied = problem(name, draw(name, 20_000, 6))
        mixture, _ = mixture_of(setting, tied, random_resp(20_000, 3, 0))
        results = []
        for threads in (1, 2, 3):
            with set_span_threads(threads):
                results.append(mixture.sweep(setting, tied))
        for swept, energy in results[1:]:
            assert energy == results[0][1]
            assert (swept.sums.first == results[0][0].sums.first).all()


@pytest.mark.parametrize("name", FAMILIES)
def test_questions_about_rows_agree(name):
    setting, tied = problem(name, draw(name, 50, 3))
    mixture, _ = mixture_of(setting, tied, random_resp(50, 3, 1))
    view = mixture.view(setting)
    resp = view.shares(tied).resp.T
    assert_allclose(resp.sum(axis=1), 1.0)
    labels, lse = assign(tied, view.runner(tied), view.log_weight)
    assert (labels == resp[:, :-1].argmax(axis=1)).all()
    swept = sweep(tied, view.runner(tied), view.log_weight)
    assert_allclose(tied.n @ lse + tied.base, swept.evidence)
    assert_allclose(swept.sums.mass, resp[:, :-1].sum(axis=0), rtol=1e-10)
    assert_allclose(swept.tail, resp[:, -1].sum(), rtol=1e-6, atol=1e-12)
    index, share = members(tied, view.runner(tied), view.log_weight, np.array([1]), 0.2)[0]
    assert (index == np.flatnonzero(resp[:, 1] > 0.2)).all()
    assert_allclose(share, resp[index, 1])


@pytest.mark.parametrize("name", GAUSSIANS)
def test_rows_far_from_the_origin_lose_no_digits(name):
    X = draw(name, 30, 3)
    setting, tied = problem(name, X)
    mixture, _ = mixture_of(setting, tied, random_resp(30, 2, 0))
    far = mixture._replace(params=mixture.params._replace(mean=mixture.params.mean + 2.0**20))
    prior = setting.prior._replace(mean=setting.prior.mean + 2.0**20)
    moved = tied._replace(mean=X + 2.0**20)
    assert_allclose(far.sweep(setting._replace(prior=prior), moved)[1], mixture.sweep(setting, tied)[1], rtol=1e-6)


def test_narrow_components_far_apart_are_measured_exactly():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(20, 2)) * 1e-6 - 1.0, rng.normal(size=(20, 2)) * 1e-6 + 1.0])
    setting, tied = problem("gaussian", X, spread=1e-12)
    resp = np.repeat([[1.0, 0, 0], [0, 1.0, 0]], 20, axis=0)
    mixture, _ = mixture_of(setting, tied, resp)
    scores = mixture.view(setting).scores(tied)[:, :2]
    for k in range(2):
        mean, root = mixture.params.mean[k], mixture.params.root[k] * np.sqrt(mixture.params.nu[k])
        quadratic = (((X - mean) @ root) ** 2).sum(axis=1)
        gap = scores[:, k] + 0.5 * quadratic
        own = slice(20 * (X[:20, 0].mean() * mean[0] < 0), None)
        assert_allclose(gap[own][:20], gap[own][0], atol=1e-6)


def test_growth_lowers_the_free_energy_and_ends():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 0.3, size=(60, 2)) for m in (-2, 0, 2)])
    setting, tied = problem("gaussian", X, spread=3.0)
    found = search(setting, SingleRows(tied), GreedyGoal(10, 1, np.inf, 300, 1e-5), Budget())
    assert found.mixture.size == 3
    assert found.converged
    assert (np.diff(found.trace) <= 1e-9 * abs(found.energy)).all()
    assert_allclose(free_energy(found.mixture, setting, tied), found.energy)
    limited = search(setting, SingleRows(tied), GreedyGoal(10, 1, 2, 300, 1e-5), Budget())
    assert limited.mixture.size == 2
