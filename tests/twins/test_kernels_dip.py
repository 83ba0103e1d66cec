"""The dip statistic: compiled equals reference, and both equal the definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import linprog

from kfree.kernels import native, reference


def dip_of(kernels, sample):
    dips = np.empty(1)
    kernels.dip(np.sort(np.asarray(sample, float)), np.array([0, len(sample)]), dips)
    return dips[0]


def dip_by_definition(sample):
    """Least sup-distance from a distribution function that is convex up to a mode and concave after it."""
    x, counts = np.unique(sample, return_counts=True)
    n, k = len(sample), x.size
    above = np.cumsum(counts) / n
    below = above - counts / n
    best = np.inf
    for mode in range(k):
        # the mode stands twice: the value just before its jump and the one after
        place = np.r_[np.arange(mode + 1), np.arange(mode, k)]
        floor, ceiling = above[place].copy(), below[place].copy()
        floor[mode], ceiling[mode + 1] = below[mode], above[mode]
        rows, bounds = [], []
        for i in range(k + 1):
            unit = np.eye(k + 2)[i]
            d = np.eye(k + 2)[k + 1]
            rows += [-unit - d, unit - d]
            bounds += [-floor[i], ceiling[i]]
        for i in range(k):
            rows.append(np.eye(k + 2)[i] - np.eye(k + 2)[i + 1])
            bounds.append(0.0)
        for i in range(k - 1):
            if i + 2 <= mode or i >= mode + 1:
                a, b, c = place[i], place[i + 1], place[i + 2]
                chord = np.zeros(k + 2)  # (G_b - G_a)/(x_b - x_a) - (G_c - G_b)/(x_c - x_b)
                chord[[i, i + 1, i + 2]] = (
                    -1 / (x[b] - x[a]),
                    1 / (x[b] - x[a]) + 1 / (x[c] - x[b]),
                    -1 / (x[c] - x[b]),
                )
                rows.append(chord if i + 2 <= mode else -chord)
                bounds.append(0.0)
        found = linprog(np.eye(k + 2)[k + 1], np.array(rows), bounds, bounds=[(0, 1)] * (k + 1) + [(0, 1)])
        best = min(best, found.fun)
    return max(best, 1 / (2 * n))


integers = st.lists(st.integers(0, 12), min_size=1, max_size=9)
reals = st.lists(st.integers(0, 10**6).map(lambda v: v / 7), min_size=1, max_size=60)


@settings(max_examples=60, deadline=None)
@given(integers)
def test_dip_is_the_distance_from_the_nearest_unimodal_distribution(sample):
    assert_allclose(dip_of(reference, sample), dip_by_definition(sample), atol=1e-7)


@settings(max_examples=200, deadline=None)
@given(st.one_of(reals, integers))
def test_compiled_dip_equals_reference(sample):
    assert_allclose(dip_of(native, sample), dip_of(reference, sample), rtol=1e-12)


@pytest.mark.parametrize("kernels", [native, reference])
def test_segments_are_independent_of_each_other(kernels):
    rng = np.random.default_rng(0)
    parts = [np.sort(rng.normal(size=n)) for n in (5, 0, 40, 1)]
    edges = np.cumsum([0] + [part.size for part in parts])
    dips = np.empty(4)
    kernels.dip(np.concatenate(parts), edges, dips)
    alone = [dip_of(kernels, part) if part.size else 0.0 for part in parts]
    assert_allclose(dips, alone)


@settings(max_examples=50, deadline=None)
@given(reals, st.floats(0.1, 10), st.floats(-5, 5))
def test_dip_knows_no_scale_and_no_direction(sample, scale, shift):
    sample = np.round(np.asarray(sample), 6)
    assert_allclose(dip_of(native, scale * sample + shift), dip_of(native, sample), rtol=1e-6)
    assert_allclose(dip_of(native, -sample), dip_of(native, sample), rtol=1e-9)
