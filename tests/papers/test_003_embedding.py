"""Muandet (2012), Hilbert space embedding for Dirichlet process mixtures."""

import numpy as np
import pytest
from benchmarks.kernel_data import six_gaussians

from kfree import KernelDPMixture, truncation_level

pytestmark = pytest.mark.papers


def test_figure_1_mixtures_of_few_components_are_among_those_of_more():
    X, held_out, log_density = six_gaussians(2, 0)
    models = [
        KernelDPMixture(candidates="prior", n_candidates=T, ridge=1e-8, random_state=0).fit(X)
        for T in (5, 20, 100, 400)
    ]
    assert (np.diff([model.mmd2_ for model in models]) < 0).all()
    lost = [log_density(held_out).mean() - model.score(held_out) for model in models]
    assert lost[-1] < 0.1 * lost[0]


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0, 10.0])
def test_theorem_2_the_rest_of_the_stick_has_the_corrected_mean(alpha):
    rng, n = np.random.default_rng(0), 200_000
    for T in (1, 2, 4):
        squares = np.exp(-2 * rng.gamma(T, size=n) / alpha)
        law = (alpha / (alpha + 2)) ** T
        assert abs(squares.mean() - law) < 5 * squares.std() / np.sqrt(n)
        assert (squares > np.exp(-2 * T / alpha)).mean() > 0.4  # the printed bound is the typical size


def test_theorem_2_levels_grow_as_the_concentration_times_the_log():
    for alpha in (10.0, 100.0):
        assert truncation_level(alpha, 1e-6) == pytest.approx(0.5 * alpha * np.log(1e6), rel=0.12)
