"""Kernels of partitions: compiled = reference, and both draw from the posterior."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kfree.kernels import native, reference
from support.small_partitions import NAMES, case, no_turns, posterior, turns

NONE = np.empty(0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_both_draw_the_same_partitions(name, weighted):
    rng = np.random.default_rng(3)
    for n, p in ((1, 1), (2, 3), (30, 1), (40, 2), (40, 9)):
        given = case(name, n, p, rng, weighted=weighted)
        labels = rng.integers(0, max(n // 4, 1), n).astype(np.int32)
        ours, theirs = labels.copy(), labels
        fresh = np.empty((2, n))
        for _ in range(6):
            drawn = turns(rng, n, 4 if n > 1 else 0)
            a = getattr(native, name)(*given.arguments, drawn, -0.5, ours, fresh[0])
            b = getattr(reference, name)(*given.arguments, drawn, -0.5, theirs, fresh[1])
            assert_array_equal(ours, theirs)
            assert a[:2] == b[:2]
            assert_allclose(a[2], b[2], rtol=1e-9)
        assert_allclose(*fresh, rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_rows_that_make_clusters_nearly_singular_keep_their_digits(name):
    rng = np.random.default_rng(5)
    given = case(name, 40, 3, rng)
    if isinstance(given.arguments[0], np.ndarray):
        given.arguments[0][::7] *= 1e5  # far rows: most of a cluster goes with them
    ours = np.zeros(40, np.int32)
    for _ in range(5):
        getattr(native, name)(*given.arguments, turns(rng, 40, 5), 0.0, ours, NONE)
        marginal = getattr(native, name)(*given.arguments, no_turns(40), 0.0, ours.copy(), NONE)[2]
        plain = getattr(reference, name)(*given.arguments, no_turns(40), 0.0, ours.copy(), NONE)[2]
        assert_allclose(marginal, plain, 1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_runs_visit_partitions_as_often_as_the_posterior_says(name):
    rng = np.random.default_rng(11)
    given = case(name, 5, 2, rng, weighted=True)
    every, exact = posterior(given, -0.3)
    place = {labels: k for k, labels in enumerate(every)}
    visits, labels = np.zeros(len(every)), np.zeros(5, np.int32)
    kernel = getattr(native, name)
    for _ in range(25_000):
        kernel(*given.arguments, turns(rng, 5, 1), -0.3, labels, NONE)
        visits[place[tuple(labels.tolist())]] += 1
    assert 0.5 * np.abs(visits / visits.sum() - exact).sum() < 0.02


@pytest.mark.parametrize("wrong", ["order", "uniforms", "pairs", "labels", "deals"])
def test_wrong_draws_are_refused(wrong):
    rng = np.random.default_rng(0)
    given = case("gibbs_full", 6, 2, rng)
    order, uniforms, pairs, deals, accepts = turns(rng, 6, 2)
    labels = np.zeros(6, np.int32)
    if wrong == "order":
        order[:] = 1
    elif wrong == "uniforms":
        uniforms = np.append(uniforms, 0.5)
    elif wrong == "pairs":
        pairs[0, 0] = 6
    elif wrong == "deals":
        deals = deals[:, :5].copy()
    else:
        labels[2] = 6
    with pytest.raises((ValueError, IndexError), match=f"gibbs_full: .*{wrong}"):
        native.gibbs_full(*given.arguments, (order, uniforms, pairs, deals, accepts), 0.0, labels, NONE)


def test_rows_with_given_parameters_draw_alike():
    rng = np.random.default_rng(2)
    scores, fresh = rng.normal(size=(4, 50)), rng.normal(size=50)
    labels, rows = rng.integers(0, 3, 50).astype(np.int32), np.zeros(4, np.int64)
    rows[:3] = np.bincount(labels, minlength=3)
    order, uniforms, ours = rng.permutation(50), rng.random(50), [labels.copy(), rows.copy(), 0]
    theirs = [labels.copy(), rows.copy(), 0]
    for _ in range(10):
        for module, state in ((native, ours), (reference, theirs)):
            state[2] = module.gibbs_given(scores, fresh, order, uniforms, state[2], -1.0, *state[:2])
            if state[2] < 50:
                state[0][order[state[2]]] = 3
                state[1][3] += 1
                state[2] += 1
        assert ours[2] == theirs[2]
        assert_array_equal(ours[0], theirs[0])
        assert_array_equal(ours[1], theirs[1])
