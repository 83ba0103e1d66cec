"""Kernels of Gaussian mixtures with full covariance: compiled = reference = the family."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kfree.families.conjugate import CONJUGATE, Facts, Moments, join
from kfree.inference.variational import normal_wishart
from kfree.inference.variational.posterior import Mixture, Setting
from kfree.kernels import native, reference
from kfree.structures import StickBreaking

SEEDS = st.integers(0, 10**6)
COLUMNS = st.sampled_from([1, 2, 3, 5, 16])
BOTH = (native, reference)


def normal_sums(rng, K, D, mass=None):
    """Sums about points close to the means of a few rows."""
    rows, resp = rng.normal(size=(K, 12, D)) * rng.gamma(1.0, size=(K, 1, 1)), rng.random((K, 12))
    if mass is not None:
        resp[0] *= mass
    about = rng.normal(size=(K, D))
    gap = rows - about[:, None]
    second = np.einsum("kn,knd,kne->kde", resp, gap, gap)
    return Moments(resp.sum(axis=1), np.einsum("kn,knd->kd", resp, gap), second, about)


def full_setting(D, **given):
    family = CONJUGATE["gaussian"]()
    return Setting(family, family.prior(Facts(D, 1.3, np.zeros(D)), given), StickBreaking(1.0, 2.0))


@pytest.mark.parametrize("mass", [None, 1e-9, 0.0])
@given(seed=SEEDS, K=st.integers(1, 4), D=COLUMNS)
def test_posteriors_forms_and_divergences_are_the_familys(mass, seed, K, D):
    rng = np.random.default_rng(seed)
    spread = rng.normal(size=(D, D))
    setting = full_setting(D, covariance=spread @ spread.T + np.eye(D), mean=rng.normal(size=D))
    prior, family, sums = setting.prior, setting.family, normal_sums(rng, K, D, mass)
    plain = family.posterior(prior, sums)
    for module in BOTH:
        found = normal_wishart.blank(K, D)
        assert module.wishart_posterior(*sums, prior.mean[0], prior.scale[0], float(prior.beta[0]), *found)
        mine = normal_wishart.record(prior, sums.mass, found)
        for one, two in zip(mine, plain):
            assert_allclose(one, two, rtol=1e-9, atol=1e-9)
        scaled, offset, value = np.empty_like(plain.root), np.empty(K), np.empty(K)
        module.wishart_form(plain.beta, plain.nu, plain.root, plain.log_det, scaled, offset)
        root, _, expected = family.form(plain)
        assert_allclose(scaled, root, rtol=1e-12)
        assert_allclose(offset, expected, rtol=1e-11, atol=1e-11)
        given_prior = (prior.mean[0], prior.scale[0], normal_wishart.constants(prior))
        module.wishart_divergence(plain.mean, plain.beta, plain.nu, plain.root, plain.log_det, *given_prior, value)
        assert_allclose(value, family.divergence(plain, prior), rtol=1e-9, atol=1e-9)


def test_an_indefinite_matrix_is_left_to_the_family():
    sums = Moments(np.ones(1), np.zeros((1, 2)), np.array([[[1.0, 9.0], [9.0, 1.0]]]), np.zeros((1, 2)))
    setting = full_setting(2)
    assert normal_wishart.posterior(setting.prior, sums) is None
    for module in BOTH:
        assert not module.wishart_posterior(*sums, np.zeros(2), np.eye(2), 0.01, *normal_wishart.blank(1, 2))
    assert np.isfinite(setting.posterior(sums).log_det).all()


def test_the_form_of_the_tail_comes_last():
    setting = full_setting(3)
    params = setting.posterior(normal_sums(np.random.default_rng(0), 2, 3))
    sticks = setting.weights.posterior(np.array([30.0, 20.0, 1.0]))
    view = Mixture(params, sticks).view(setting)
    for one, two in zip(view.form, setting.family.form(join([params, setting.prior]))):
        assert_allclose(one, two, rtol=1e-12)
    assert_allclose(view.log_weight, setting.weights.expected_log(sticks), rtol=1e-12)
    own = setting.family.divergence(params, setting.prior).sum()
    assert view.divergence == pytest.approx(setting.weights.divergence(sticks) + own, rel=1e-10)


@given(seed=SEEDS, T=st.integers(1, 6), a1=st.sampled_from([0.3, 1.0, 4.0]), a2=st.sampled_from([0.2, 1.0, 30.0]))
def test_sticks(seed, T, a1, a2):
    sizes = np.random.default_rng(seed).gamma(0.3, 50.0, size=T + 1)
    prior = StickBreaking(a1, a2)
    sticks = prior.posterior(sizes)
    for module in BOTH:
        best, expected = np.empty((T, 2)), np.empty(T + 1)
        module.best_sticks(sizes, a1, a2, best)
        assert_allclose(best, sticks, rtol=1e-13)
        divergence = module.stick_terms(sticks, a1, a2, expected)
        assert divergence == pytest.approx(prior.divergence(sticks), rel=1e-9, abs=1e-9)
        assert_allclose(expected, prior.expected_log(sticks), rtol=1e-10, atol=1e-10)


@given(
    seed=SEEDS,
    n=st.sampled_from([1, 5, 32, 170]),
    K=st.integers(2, 6),
    D=COLUMNS,
    far=st.sampled_from([1.0, 40.0]),
    near=st.booleans(),
)
def test_rows_are_assigned(seed, n, K, D, far, near):
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=(K, D)) * far
    rows = centre[np.sort(rng.integers(K, size=n))] + rng.normal(size=(n, D)) * (1.0 if near else far)
    lower, height = np.tril(rng.normal(size=(K, D, D))), rng.normal(size=K)
    results = []
    for module in BOTH:
        labels, lse = np.empty(n, np.intp), np.empty(n)
        module.assign_rows(rows, lower, centre, height, labels, lse)
        results.append((labels, lse))
    assert (results[0][0] == results[1][0]).all()
    assert_allclose(results[0][1], results[1][1], rtol=1e-10, atol=1e-10)


@given(seed=SEEDS, K=st.integers(2, 6), D=COLUMNS, far=st.sampled_from([1.0, 40.0]), certain=st.booleans())
def test_gains_of_rows_by_shares_of_their_own(seed, K, D, far, certain):
    rng = np.random.default_rng(seed)
    first = np.cumsum([0, *rng.integers(1, 40, size=5)])
    rows, centre = rng.normal(size=(first[-1], D)) * far, rng.normal(size=(K, D)) * far
    lower, height, n = np.tril(rng.normal(size=(K, D, D))), rng.normal(size=K), rng.gamma(1.0, size=first[-1])
    share = np.eye(K)[rng.integers(K, size=5)].T.copy() if certain else rng.dirichlet(np.ones(K), size=5).T.copy()
    results = []
    for module in BOTH:
        results.append(np.empty(5))
        module.gains_apart(rows, n, first, lower, centre, height, share, results[-1])
    assert_allclose(*results, rtol=1e-9, atol=1e-9)


def table(rng, R, D):
    spread = 0.3 * rng.normal(size=(R, D, D))
    second = np.ascontiguousarray((spread @ spread.transpose(0, 2, 1))[:, *np.triu_indices(D)])
    return rng.gamma(2.0, 3.0, size=R), rng.normal(size=(R, D)) + 6 * rng.integers(0, 2, size=(R, 1)), second


@given(seed=SEEDS, R=st.integers(1, 40), K=st.integers(1, 5), D=COLUMNS)
def test_nodes_are_shared(seed, R, K, D):
    rng = np.random.default_rng(seed)
    _, mean, second = table(rng, R, D)
    root, centre = np.triu(rng.normal(size=(K, D, D))), rng.normal(size=(K, D)) * 4
    offset, log_weight = rng.normal(size=K), rng.normal(size=K)
    results, ways_of = [], []
    for module in BOTH:
        lower, half = np.empty((K, D, D)), np.empty((K, second.shape[1]))
        module.half_precisions(root, lower, half)
        pointed = np.empty((K, K, D)), np.empty((K, K))
        module.tell_apart(lower, centre, *pointed)
        ways_of.append(pointed)
        for ways in ((np.empty((0, 0, 0)), np.empty((0, 0))), pointed):
            resp, lse = np.empty((K, R)), np.empty(R)
            module.node_shares(mean, second, lower, half, centre, offset, log_weight, *ways, resp, lse)
            results.append((resp, lse))
    for found in results[:-1]:
        for one, two in zip(found, results[-1]):
            assert_allclose(one, two, rtol=1e-9, atol=1e-12)
    for one, two in zip(*ways_of):
        assert_allclose(one, two, rtol=1e-9, atol=1e-9)
    for (directions, shift), row in ((ways, row) for ways in ways_of for row in mean):
        along = np.einsum("jkd,jd->jk", directions, row - centre) + shift
        assert (along <= np.linalg.norm(np.einsum("kd,kde->ke", row - centre, root), axis=1) + 1e-9).all()


@given(seed=SEEDS, K=st.integers(1, 3), D=COLUMNS, updates=st.sampled_from([1, 3, 10]))
def test_splits_of_nodes(seed, K, D, updates):
    rng = np.random.default_rng(seed)
    n, mean, second = table(rng, 30, D)
    resp, others = rng.dirichlet(np.ones(K), size=30).T.copy(), np.append(rng.gamma(1.0, 90.0, size=3), 0.7)
    prior, results = full_setting(D).prior, []
    for module in BOTH:
        found, mass, weight = normal_wishart.blank(K, D), np.empty(K), np.empty(K)
        given_prior = (prior.mean[0], prior.scale[0], normal_wishart.constants(prior))
        start = (n, mean, second, resp.copy(), np.zeros((K, D)), others, *given_prior, np.array([1.0, 2.0]))
        cost = module.share_nodes(*start, 1e-3, np.inf, 1e-10, updates, *found, mass, weight)
        results.append((cost, *found, mass, weight))
    for fast, plain in zip(*results):
        assert_allclose(fast, plain, rtol=1e-6, atol=1e-6)


def test_unpacked_triangles_are_symmetric():
    packed, results = np.arange(12.0).reshape(2, 6), []
    for module in BOTH:
        full = np.empty((2, 3, 3))
        module.unpack(packed, full)
        results.append(full)
    assert (results[0] == results[1]).all()
    assert (results[0][0] == [[0, 1, 2], [1, 3, 4], [2, 4, 5]]).all()
