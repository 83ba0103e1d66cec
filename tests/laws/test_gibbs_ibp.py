"""The sampler of binary features has the posterior that it should have."""

import itertools
from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kfree.inference.gibbs.ibp import IBPLevel, IBPPrior, IBPSampler, Rate, Spread, _with_room
from kfree.kernels import native
from kfree.kernels.reference.features import gibbs_ibp as twin
from kfree.structures import IndianBuffet
from support.small_allocations import allocation, log_likelihood, log_prior, name_of, posterior, total_variation

DENSITY = twin._density
X3 = np.array([[1.2, -0.4], [0.9, 0.1], [-0.3, 1.5]])


def sampler_of(X, gamma, noise, scale):
    prior = IBPPrior(Rate(gamma), Spread(noise), Spread(scale))
    start = np.ones((len(X), 1), np.uint8), IBPLevel(gamma, noise, scale)
    return IBPSampler(X, X.shape[1], prior, [start])


def test_the_prior_is_a_law_and_draws_follow_it():
    n, gamma = 3, 0.7
    exact = posterior(np.zeros((n, 0)), gamma, 1.0, 1.0, 8)
    total = sum(np.exp(log_prior(name, n, gamma)) for name in exact)
    assert_allclose(total, 1.0, atol=2e-5)
    buffet, rng = IndianBuffet(n), np.random.default_rng(0)
    for name in list(exact)[:200]:
        assert_allclose(buffet.log_prior(allocation(name, n), gamma), log_prior(name, n, gamma))
    draws = Counter(name_of(buffet.draw(gamma, rng)) for _ in range(20_000))
    assert total_variation(exact, {name: many / 20_000 for name, many in draws.items()}) < 0.05


@pytest.mark.parametrize(("gamma", "noise", "scale"), [(1.0, 0.5, 1.0), (0.5, 0.1, 2.0)])
def test_the_log_posterior_is_that_of_normal_columns(gamma, noise, scale):
    sampler = sampler_of(X3, gamma, noise, scale)
    for name in [(), (1,), (7,), (1, 1, 6), (3, 5, 7, 7)]:
        Z = allocation(name, 3)
        state = sampler.state(Z, IBPLevel(gamma, noise, scale))
        assert_allclose(state.log_posterior, log_prior(name, 3, gamma) + log_likelihood(X3, Z, noise, scale))


def run_kernel(gibbs_ibp, X, gamma, noise, scale, sweeps, *, room=24):
    """How often a long run is at each allocation; sums, inverse and means are solved for anew now and then."""
    (n, p), rng, found = X.shape, np.random.default_rng(1), Counter()
    sampler, Z = sampler_of(X, gamma, noise, scale), np.ones((n, 1), np.uint8)
    for _ in range(sweeps // 1000):
        state = sampler.state(Z, IBPLevel(gamma, noise, scale))
        K, arrays = Z.shape[1], _with_room(*state[:1], *state[2:7], room)
        keys, coins, deals = rng.random((1000, n, room)), rng.random((1000, n, room)), rng.random((1000, n))
        for key, coin, deal in zip(keys, coins, deals):
            _, event, K, _ = gibbs_ibp(X, key, coin, deal, p, noise, scale, gamma, 12, 0, K, *arrays)
            assert event == 0
            found[arrays[0].tobytes()] += 1
        Z = arrays[0][:, :K].copy()
    law = Counter()
    for bits, many in found.items():
        Z = np.frombuffer(bits, np.uint8).reshape(n, room)
        law[name_of(Z[:, Z.any(axis=0)])] += many / sum(found.values())
    return law


def numbers(law):
    """The law of the number of features."""
    found = Counter()
    for name, probability in law.items():
        found[len(name)] += probability
    return found


# of so many independent draws the total variation would be 0.011 and 0.007
@pytest.mark.parametrize(("gamma", "noise", "scale"), [(1.0, 0.5, 1.0), (0.5, 0.1, 2.0)])
def test_a_long_run_has_the_exact_posterior(gamma, noise, scale):
    exact = posterior(X3, gamma, noise, scale, 8)
    law = run_kernel(native.gibbs_ibp, X3, gamma, noise, scale, 240_000)
    assert total_variation(exact, law) < 0.02
    assert total_variation(numbers(exact), numbers(law)) < 0.01


def chance(outcome, low=0.0, high=1.0):
    """The probability of a uniform number for which ``outcome`` is true: those below a threshold."""
    for _ in range(26):
        middle = (low + high) / 2
        low, high = (middle, high) if outcome(middle) else (low, middle)
    return (low + high) / 2


def transitions(gibbs_ibp, X, name, gamma, noise, scale, most):
    """Exact probabilities of what the visit of the last row makes of an allocation, read off a compiled kernel."""
    (n, p), room = X.shape, 2 * most + 2
    Z = allocation(name, n)
    state = sampler_of(X, gamma, noise, scale).state(Z, IBPLevel(gamma, noise, scale))
    shared = int(Z[:-1].any(axis=0).sum())
    before = _with_room(*state[:1], *state[2:7], room)
    arrays, key, coin = [array.copy() for array in before], np.zeros((n, room)), np.zeros((n, room))

    def visit(order, coins, deal):
        """The allocation, when the shared bits are drawn in this order with these coins."""
        for array, old in zip(arrays, before):
            array[:] = old
        key[-1, list(order)] = np.arange(shared)
        coin[-1, list(order[: len(coins)])] = coins
        deals = np.full(n, deal)
        _, event, K, _ = gibbs_ibp(X, key, coin, deals, p, noise, scale, gamma, most, n - 1, len(name), *arrays)
        assert event == 0
        return arrays[0][:, :K]

    def bit(order, coins):
        """The last of the bits that coins are given for; shared columns keep their order."""
        Z = visit(order, coins, 0.0)
        return bool(Z[-1, Z[:-1].any(axis=0)][order[len(coins) - 1]])

    def alone(order, coins, deal):
        return int((~visit(order, coins, deal)[:-1].any(axis=0)).sum())

    found = Counter()

    def walk(order, coins, probability):
        if len(coins) < shared:
            on = chance(lambda u: bit(order, [*coins, u]))
            walk(order, [*coins, 0.0], probability * on)
            walk(order, [*coins, 1.0], probability * (1 - on))
            return
        below = 0.0
        for j in range(most + 1):
            upto = 1.0 if j == most else chance(lambda u, j=j: alone(order, coins, u) <= j)
            if upto > below:
                found[name_of(visit(order, coins, (below + upto) / 2))] += probability * (upto - below)
            below = max(below, upto)

    orders = list(itertools.permutations(range(shared)))
    for order in orders:
        walk(order, [], 1 / len(orders))
    return found


def error_of_a_visit(gibbs_ibp, X, gamma, noise, scale, most):
    """Total variation between the exact posterior and what it becomes, and how much of it allocations of more than
    ``most`` features, which are left out, may explain."""
    exact = posterior(X, gamma, noise, scale, most)
    more = posterior(X, gamma, noise, scale, most + 1)
    beyond = sum(probability for name, probability in more.items() if len(name) > most)
    after = Counter()
    for name, probability in exact.items():
        for other, share in transitions(gibbs_ibp, X, name, gamma, noise, scale, most).items():
            after[other] += probability * share
    return total_variation(exact, after), 2 * beyond + 1e-7


def test_the_visit_of_a_row_leaves_the_exact_posterior_as_it_is():
    """Bits drawn in the order of the columns instead would be an error of 1.4e-5 here."""
    error, bound = error_of_a_visit(native.gibbs_ibp, X3, 0.05, 0.5, 1.0, 3)
    assert error < bound < 5e-6


def forgetful(*arguments):
    """The kernel that is easily written: private features are thrown away before the bits are drawn."""
    density = DENSITY(*arguments)
    return lambda y, j: density(y, np.zeros(1) if j.size == 1 else j)


def test_private_features_must_be_remembered_while_bits_are_drawn(monkeypatch):
    given = X3[1:], 0.03, 0.2, 1.0, 2
    error, bound = error_of_a_visit(native.gibbs_ibp, *given)
    assert error < bound
    monkeypatch.setattr(twin, "_density", forgetful)
    assert error_of_a_visit(twin.gibbs_ibp, *given)[0] > 4 * bound


GEWEKE = IBPPrior(Rate(None, 4.0, 4.0), Spread(None, 5.0, 2.0), Spread(None, 5.0, 4.0))


def numbers_of(Z, X, level):
    """What is compared: of the allocation, of the rows, of the level, and of pairs of them."""
    K, square = Z.shape[1], float((X**2).mean())
    logs = np.log(level)
    return [K, K**2, Z.sum(), *level[:1], *logs, logs[1] ** 2, logs[2] ** 2, np.log(square), K * logs[0], K * logs[1]]


def draw_rows(Z, level, dims, rng):
    A = np.sqrt(level.scale) * rng.normal(size=(Z.shape[1], dims))
    return Z @ A + np.sqrt(level.noise) * rng.normal(size=(len(Z), dims))


@pytest.mark.parametrize("beyond", [0, 6])
def test_geweke_sees_no_difference_between_two_ways_to_draw_from_the_joint_distribution(beyond):
    """Parameters and rows from the prior; and by turns rows given parameters, parameters given rows.

    With ``beyond``, the rows are handed over in fewer columns than they have, in which they are zero.
    """
    n, dims, rng = 4, 2 + beyond, np.random.default_rng(3 + beyond)
    buffet, direct, by_turns = IndianBuffet(n), [], []

    def prior_draw():
        gamma = rng.gamma(4.0) / 4.0
        level = IBPLevel(gamma, 2.0 / rng.gamma(5.0), 4.0 / rng.gamma(5.0))
        return buffet.draw(gamma, rng), level

    for _ in range(20_000):
        Z, level = prior_draw()
        direct.append(numbers_of(Z, draw_rows(Z, level, dims, rng), level))
    for _ in range(40):  # short chains from the prior: each is of the joint distribution all along
        Z, level = prior_draw()
        for _ in range(400):
            X = draw_rows(Z, level, dims, rng)
            few = np.linalg.qr(X.T, mode="r").T if beyond else X
            sampler = IBPSampler(np.ascontiguousarray(few), dims, GEWEKE, [])
            state = sampler.sweep(sampler.state(Z, level), 0, rng)
            Z, level = state.Z, state.level
            by_turns.append(numbers_of(Z, X, level))
    a, b = np.array(direct), np.array(by_turns).reshape(40, 400, -1).mean(axis=1)
    error = np.sqrt(a.var(axis=0) / len(a) + b.var(axis=0, ddof=1) / len(b))
    z = (a.mean(axis=0) - b.mean(axis=0)) / error
    assert np.abs(z).max() < 3.7
