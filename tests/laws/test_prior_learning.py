"""A learned prior: every step lowers the penalised free energy, closed forms are minima, units of columns are free."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from kfree import VariationalDPMixture
from kfree.families.conjugate import CONJUGATE, Facts, join, take
from kfree.families.conjugate.conjugate_family import Hyperprior
from kfree.families.conjugate.diagonal import NormalGamma
from kfree.families.conjugate.discrete import Betas, Dirichlet
from kfree.families.conjugate.full import _record
from kfree.inference.variational.posterior import measure
from kfree.inference.variational.prior_learning import Learner
from kfree.inference.variational.variational_numbers import VARIATIONAL
from kfree.rows import Tied
from kfree.rows.recording import recording_error
from support.small_mixtures import GAUSSIANS, draw, free_energy, mixture_of, problem

LEARNED = [name for name, family in CONJUGATE.items() if family.starts]
SEEDS = st.integers(0, 1000)


def facts_of(name, X):
    if name in GAUSSIANS:
        return Facts(X.shape[1], 1.0, np.zeros(X.shape[1]), X.var(axis=0))
    return Facts(X.shape[1], 1.0, X.mean(axis=0))


def learning(name, seed, held=()):
    """A mixture under a star, and what learns its prior."""
    X = draw(name, 40, 3, seed)
    setting, tied = problem(name, X)
    facts = facts_of(name, X)
    star = setting.family.star(facts, {})
    least = 1e-6 * facts.variance if name in GAUSSIANS else np.empty(0)
    setting = setting._replace(prior=star)
    resp = np.random.default_rng(seed).dirichlet(np.full(4, 0.5), size=40)
    return setting, tied, mixture_of(setting, tied, resp)[0], Hyperprior(star, frozenset(held), least)


def distance(family, params, prior, hyper):
    """What a prior is to minimise."""
    return float(family.divergence(params, prior).sum() + family.divergence(hyper.star, prior).sum())


def moved(prior, rng, size):
    """A prior next to another one, in one of its blocks."""
    if isinstance(prior, NormalGamma):
        factor = np.exp(size * rng.normal(size=3))
        width = prior.rate / prior.shape[:, None] * np.exp(size * rng.normal(size=prior.rate.shape))
        block = rng.integers(3)
        return [
            prior._replace(beta=prior.beta * factor[0]),
            prior._replace(shape=prior.shape * factor[1], rate=prior.rate * factor[1]),
            prior._replace(rate=prior.shape[:, None] * width),
        ][block]
    if isinstance(prior, Dirichlet | Betas):
        return type(prior)(*(field * np.exp(size * rng.normal(size=field.shape)) for field in prior))
    block, D = rng.integers(3), prior.mean.shape[1]
    beta, nu, width = prior.beta, prior.nu, prior.scale / prior.nu[:, None, None]
    if block == 0:
        beta = beta * np.exp(size * rng.normal(size=1))
    elif block == 1:
        nu = D - 1 + np.maximum((nu - D + 1) * np.exp(size * rng.normal(size=1)), 2.0)
    else:
        turn = np.eye(D) + size * rng.normal(size=(D, D))
        width = turn @ width @ turn.T
    return _record(prior.mean, beta, nu, nu[:, None, None] * width, None)


@settings(max_examples=30, deadline=None)
@given(name=st.sampled_from(LEARNED), seed=SEEDS)
def test_the_learned_prior_is_nearest_to_the_components_and_the_star(name, seed):
    setting, _, mixture, hyper = learning(name, seed)
    family, params, rng = setting.family, mixture.params, np.random.default_rng(seed)
    best = setting.prior
    for _ in range(200):  # fixed points take their time
        best = family.learned(params, best, hyper)
    least = distance(family, params, best, hyper)
    assert least <= distance(family, params, setting.prior, hyper) + 1e-9
    for size in (1e-2, 0.1, 0.5):
        for _ in range(10):
            other = moved(best, rng, size)
            assert distance(family, params, other, hyper) >= least - 1e-5 * (1 + abs(least))


@settings(max_examples=30, deadline=None)
@given(name=st.sampled_from(LEARNED), seed=SEEDS)
def test_the_penalised_free_energy_never_rises(name, seed):
    setting, tied, mixture, hyper = learning(name, seed)
    learner = Learner(hyper, 1)
    state = measure(setting, tied, mixture, np.arange(mixture.size))
    before = state.energy + learner.penalty(setting)
    assert learner.penalty(setting) == pytest.approx(0.0, abs=1e-9)  # it starts with the star
    for _ in range(5):
        setting, state, fall = learner.step(setting, state)
        after = free_energy(state.mixture, setting, tied) + learner.penalty(setting)
        assert fall >= 0
        assert_allclose(before - after, fall, atol=1e-8 * abs(before))
        before = after


@pytest.mark.parametrize("name", LEARNED)
def test_what_is_held_stays(name):
    names = CONJUGATE[name].hyperparameters
    for held in [*((one,) for one in names), names]:
        setting, _, mixture, hyper = learning(name, 3, held)
        after = setting.family.hyperparameters_of(setting.family.learned(mixture.params, setting.prior, hyper))
        before = setting.family.hyperparameters_of(setting.prior)
        for one in names:
            if one in held or one == "mean":  # which is the data's
                assert_allclose(after[one], before[one], rtol=1e-12, atol=1e-12)
            elif one != "degrees_of_freedom":  # which may be at its bound
                assert np.abs(np.asarray(after[one]) - before[one]).max() > 0


def test_a_component_in_a_collapsed_column_is_as_wide_as_the_floor():
    setting, tied, _, hyper = learning("gaussian", 0)
    thin = tied.mean.copy()
    thin[:, 1] = thin[:, 0]  # one column is a copy
    tied = tied._replace(mean=thin)
    mixture, _ = mixture_of(setting, tied, np.full((40, 2), 0.5))
    params = mixture.params._replace(nu=mixture.params.nu * 1e9)  # so many rows that nothing else is left
    prior = setting.family.learned(params, setting.prior, hyper)
    unit = np.sqrt(hyper.least)
    narrowest = np.linalg.eigvalsh(prior.scale[0] / prior.nu[0] / np.outer(unit, unit))[0]
    assert_allclose(narrowest, 1.0, rtol=1e-6)


@pytest.mark.parametrize("name", GAUSSIANS)
def test_an_error_of_recording_is_a_covariance_that_every_row_has(name):
    X = draw(name, 30, 3, 1)
    setting, rows = problem(name, X)
    grain = np.array([0.3, 0.01, 0.2]) if name != "spherical" else np.full(3, 0.2)
    packed = {"gaussian": np.diag(grain)[np.triu_indices(3)], "diag": grain, "spherical": np.array(grain.sum())}[name]
    nodes = Tied(rows.n, X, np.repeat(packed[None], 30, axis=0), rows.log_h)
    resp = np.random.default_rng(0).dirichlet(np.ones(4), size=30)
    grained = setting._replace(grain=grain)
    one, two = mixture_of(grained, rows, resp)[0], mixture_of(setting, nodes, resp)[0]
    for mine, theirs in zip(one.params, two.params):
        assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
    assert_allclose(free_energy(one, grained, rows), free_energy(two, setting, nodes), rtol=1e-10)


def test_the_step_of_recording_is_seen():
    rng = np.random.default_rng(0)
    X = np.stack([rng.normal(size=5000).round(1), rng.integers(0, 2, 5000) * 3.0, rng.normal(size=5000)], axis=1)
    X = np.c_[X, np.full(5000, 7.0), 1e9 + rng.integers(0, 50, 5000) / 4]
    found = recording_error(X, X.var(axis=0))
    assert_allclose(found[[0, 1, 4]], np.array([0.01, 9.0, 1 / 16]) / 12, rtol=1e-6)
    assert found[2] < 1e-8
    assert found[3] == 0
    assert_array_equal(recording_error(np.repeat(X, 6, axis=0), X.var(axis=0)), found)  # of many rows a sample


def two_kinds(seed=0, n=400):
    rng = np.random.default_rng(seed)
    z = rng.integers(3, size=n)
    X = rng.normal(size=(n, 4)) * [1.0, 0.3, 2.0, 0.5] + np.array([[0, 0, 0, 0], [4, 1, 9, 0], [0, 2, 9, 3]])[z]
    return X, z


@pytest.mark.parametrize("name", ["gaussian", "diag"])
def test_units_of_columns_do_not_matter(name):
    X, z = two_kinds()
    one = VariationalDPMixture(family=name).fit(X)
    assert adjusted_rand_score(z, one.labels_) > 0.95
    for scale, exact in ((np.array([2.0**40, 2.0**-30, 1.0, 0.125]), True), (np.array([1e6, 3e-5, 7.0, 0.3]), False)):
        two = VariationalDPMixture(family=name).fit(X * scale)
        assert_array_equal(one.labels_, two.labels_)
        shift = len(X) * np.log(scale).sum()
        assert_allclose(two.free_energy_ - shift, one.free_energy_, rtol=1e-12 if exact else 1e-6)
        assert_allclose(two.means_ / scale, one.means_, rtol=1e-12 if exact else 1e-4, atol=1e-3)
        covariance = one.prior_["covariance"] * (np.outer(scale, scale) if name == "gaussian" else scale**2)
        assert_allclose(two.prior_["covariance"], covariance, rtol=1e-10 if exact else 1e-2)
        assert_allclose(two.means_sd_ / scale, one.means_sd_, rtol=1e-10 if exact else 1e-2)


@pytest.mark.parametrize("name", LEARNED)
def test_learning_lowers_the_free_energy(name):
    X = two_kinds()[0] * [1, 100, 1, 1e-3] if name in GAUSSIANS else draw(name, 300, 6, 1)
    learned, fixed = (VariationalDPMixture(family=name, prior=prior).fit(X) for prior in ("learn", "fixed"))
    assert learned.free_energy_ + learned.prior_penalty_ < fixed.free_energy_
    assert learned.prior_penalty_ >= 0 == fixed.prior_penalty_
    assert (np.diff(learned.free_energy_trace_) <= 1e-9 * np.abs(learned.free_energy_trace_[1:])).all()
    assert set(learned.prior_) == set(CONJUGATE[name].hyperparameters)


def test_the_published_prior_gives_the_same_components_if_it_is_passed_back():
    X, _ = two_kinds()
    learned = VariationalDPMixture().fit(X)
    held = VariationalDPMixture(prior=learned.prior_).fit(X)
    assert adjusted_rand_score(learned.labels_, held.labels_) == 1
    for name, value in learned.prior_.items():
        assert_allclose(held.prior_[name], value, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("n", "p"), [(30, 2), (60, 10), (60, 30), (200, 3), (1000, 30)])
def test_noise_is_one_component(n, p):
    for seed in range(3):
        X = np.random.default_rng(seed).normal(size=(n, p)) * np.exp(np.random.default_rng(seed).normal(size=p) * 3)
        assert VariationalDPMixture().fit(X).n_components_ == 1


@pytest.mark.parametrize("n", [1000, 5000])
def test_ten_gaussians_are_ten_components(n):
    rng = np.random.default_rng(n)
    z = rng.integers(10, size=n)
    X = rng.normal(size=(10, 16))[z] * 2 + rng.normal(size=(n, 16))
    model = VariationalDPMixture().fit(X * np.logspace(-3, 3, 16))
    assert model.n_components_ == 10
    assert adjusted_rand_score(z, model.labels_) > 0.99


def hostile():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    yield "constant column", np.c_[X, np.full(120, 3.0)]
    yield "copied column", np.c_[X, X[:, 0]]
    yield "summed columns", np.c_[X, X.sum(axis=1)]
    yield "binary columns", np.c_[X, rng.integers(0, 2, (120, 4))]
    yield "a rare one", np.c_[X, np.arange(120) < 2]
    yield "fewer rows than columns", rng.normal(size=(10, 30))
    yield "two rows", rng.normal(size=(2, 3))
    yield "integers", rng.integers(0, 4, (120, 5)).astype(float)
    yield "heavy tails", rng.standard_cauchy((120, 3))
    yield "an atom", np.concatenate([X, np.zeros((80, 3))])


@pytest.mark.parametrize(("what", "X"), list(hostile()), ids=[what for what, _ in hostile()])
@pytest.mark.parametrize("name", GAUSSIANS)
def test_degenerate_tables_do_not_collapse(name, what, X):
    model = VariationalDPMixture(family=name, random_state=0).fit(X)
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.sample(20)[0]).all()
    assert_array_equal(model.predict(X), model.labels_)
    if name == "diag":
        step = recording_error(X, X.var(axis=0))
        assert (model.covariances_ >= 0.2 * step).all()  # as thin as the recording, or nearly so


@pytest.mark.parametrize("name", list(CONJUGATE))
def test_draws_of_parameters_are_those_of_the_posterior(name):
    X = draw(name, 200, 3, 5)
    model = VariationalDPMixture(family=name, random_state=0).fit(X)
    drawn = model.sample_parameters(4000)
    T = model.n_components_
    assert drawn["weights"].shape == (4000, T)
    assert (drawn["weights"].sum(axis=1) <= 1 + 1e-12).all()
    assert_allclose(drawn["weights"].mean(axis=0), model.weights_, atol=5 * model.weights_sd_.max() / 60)
    assert_allclose(drawn["weights"].std(axis=0), model.weights_sd_, rtol=0.1, atol=1e-4)
    assert_allclose(drawn["means"].mean(axis=0), model.means_, atol=6 * model.means_sd_.max() / 60)
    assert_allclose(drawn["means"].std(axis=0), model.means_sd_, rtol=0.15)
    if name in GAUSSIANS:
        assert drawn["covariances"].shape == (4000, *model.covariances_.shape)
        inverse = np.linalg.inv(drawn["covariances"]) if name == "gaussian" else 1 / drawn["covariances"]
        expected = np.linalg.inv(model.covariances_) if name == "gaussian" else 1 / model.covariances_
        assert_allclose(inverse.mean(axis=0), expected, rtol=0.1, atol=0.1 * np.abs(expected).max())
    else:
        assert "covariances" not in drawn


def test_integer_weights_are_copies_for_the_units_of_columns_too():
    X, _ = two_kinds(n=150)
    weight = np.random.default_rng(1).integers(0, 4, 150)
    one = VariationalDPMixture().fit(X, sample_weight=weight)
    two = VariationalDPMixture().fit(np.repeat(X, weight, axis=0))
    assert_allclose(one.free_energy_, two.free_energy_, rtol=1e-9)
    assert_array_equal(np.repeat(one.labels_, weight), two.labels_)


def test_the_tail_is_a_component_of_the_model_that_no_row_is_labelled_by():
    X, _ = two_kinds()
    model = VariationalDPMixture().fit(X)
    inside = model._model
    assert inside.tail
    assert inside.weights.size == model.n_components_ + 1
    assert model.predict_proba(X[:5], tail=True).shape == (5, model.n_components_ + 1)
    assert take(inside.params, slice(inside.size)).mean.shape == model.means_.shape
    assert join([inside.params, inside.params]).mean.shape[0] == 2 * inside.weights.size


def test_growth_on_many_single_rows_takes_weights_for_copies_and_never_rises():
    rng = np.random.default_rng(5)
    angle = rng.uniform(0, 2 * np.pi, 2500)  # a ring: several components, which overlap
    X = np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.1 * rng.normal(size=(2500, 2))
    n = rng.integers(8, 13, 2500)
    assert n.sum() >= VARIATIONAL.auto_rows > X.shape[0]
    model = VariationalDPMixture(accelerate=None, max_components=5)
    one = clone(model).fit(X, sample_weight=n)
    two = clone(model).fit(np.repeat(X, n, axis=0))
    assert one.n_components_ == two.n_components_ > 3
    assert_allclose(one.free_energy_, two.free_energy_, rtol=1e-6)
    assert_array_equal(np.repeat(one.labels_, n), two.labels_)
    for found in (one, two):
        trace = np.array(found.free_energy_trace_)
        assert found.converged_
        assert (np.diff(trace) <= 1e-9 * np.abs(trace[1:])).all()
