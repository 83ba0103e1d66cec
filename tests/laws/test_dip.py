"""Valleys in samples: seen where there are two humps, however unequal, and rarely where there is one."""

import numpy as np
import pytest

from kfree.inference.dip import FEWEST, p_values


def p_of(*samples):
    """p of several samples at once."""
    which = np.repeat(np.arange(len(samples)), [len(sample) for sample in samples])
    order = np.random.default_rng(0).permutation(which.size)
    return p_values(which[order], np.concatenate(samples)[order], len(samples))


@pytest.mark.parametrize("shape", ["uniform", "normal", "exponential", "cut"])
def test_one_hump_rarely_shows_a_valley(shape):
    rng = np.random.default_rng(0)
    draws = {
        "uniform": rng.uniform(-1, 1, size=(1000, 80)),
        "normal": rng.normal(size=(1000, 80)),
        "exponential": rng.exponential(size=(1000, 80)) - 1,
        "cut": np.abs(rng.normal(size=(1000, 80))) - 0.5,
    }[shape]
    p = p_of(*draws)
    for level in (0.2, 0.05, 0.01):
        assert (p <= level).mean() <= level + 3 * np.sqrt(level / 1000)
    assert shape != "uniform" or abs((p <= 0.2).mean() - 0.2) < 0.05  # exact there, not only a bound


def test_two_humps_show_a_valley_also_where_one_is_small():
    rng = np.random.default_rng(0)
    equal = [np.concatenate([rng.normal(-3, size=30), rng.normal(3, size=30)]) for _ in range(50)]
    unequal = [np.concatenate([rng.normal(-4, size=2000), rng.normal(4, size=30)]) for _ in range(50)]
    assert (p_of(*equal) <= 0.01).mean() > 0.95
    assert (p_of(*unequal) <= 0.05).mean() > 0.9


def test_too_few_rows_on_a_side_and_empty_samples_say_nothing():
    assert np.isnan(p_of(np.r_[-np.arange(1.0, FEWEST), np.arange(50.0)], np.empty(0))).all()
    assert p_of(np.r_[-50.0 - np.arange(FEWEST), 50.0 + np.arange(FEWEST)])[0] < 0.05
    assert p_values(np.empty(0, int), np.empty(0), 0).size == 0
