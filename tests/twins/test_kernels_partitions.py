"""Kernels of samples of partitions: compiled equals reference, and wrong arrays are refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from kfree.kernels import native, reference


def drawn(seed, n, s, k):
    rng = np.random.default_rng(seed)
    return rng, rng.integers(0, min(k, n), (s, n)).astype(np.int32)


@pytest.mark.parametrize("kind", [np.uint8, np.int32])
@pytest.mark.parametrize("s", [1, 63, 64, 65, 300, 64 * 254, 64 * 256 + 7])
def test_counts_of_rows_together_are_the_same(kind, s):
    rng, samples = drawn(s, 23, s, 3)
    labels = np.ascontiguousarray(samples.T.astype(kind))
    first, second = rng.integers(0, 23, 19), rng.integers(0, 23, 5)
    found = [np.empty((19, 5), np.int32) for _ in range(2)]
    for kernels, counts in zip((native, reference), found):
        kernels.together(labels, first, second, counts)
    assert_array_equal(*found)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 12), st.integers(1, 8))
def test_overlaps_and_passes_are_the_same(seed, n, s, k):
    rng, samples = drawn(seed, n, s, k)
    weight, value = rng.integers(1, 4, s), np.round(1000 * np.arange(n + 1) * np.log1p(np.arange(n + 1))).astype(int)
    candidates = rng.integers(0, n, (3, n)).astype(np.int32)
    totals = np.empty((2, 3), np.int64)
    ids = np.ascontiguousarray((samples + k * np.arange(s)[:, None]).T, np.int32)
    ends = []
    for kernels, total in zip((native, reference), totals):
        kernels.overlaps(candidates, samples, weight, value, total)
        labels, sizes, counts = candidates[0] % 5, np.empty(5, np.int32), np.empty((s * k, 5), np.int32)
        moves = kernels.improve_partition(ids, weight, np.diff(value), labels, sizes, counts)
        ends.append((moves, labels, sizes, counts))
    assert_array_equal(*totals)
    for fast, plain in zip(*ends):
        assert_array_equal(fast, plain)


def test_clusters_of_two_samples_with_one_number_are_refused():
    ids, labels = np.zeros((4, 2), np.int32), np.zeros(4, np.int32)
    with pytest.raises(ValueError, match="improve_partition: ids of two samples must differ"):
        native.improve_partition(
            ids, np.ones(2, int), np.zeros(4, int), labels, np.zeros(1, np.int32), np.zeros((1, 1), np.int32)
        )


def test_labels_beyond_the_rows_are_refused():
    labels = np.array([[0, 5]], np.int32)
    with pytest.raises(IndexError, match="overlaps: candidates must hold indices below 2"):
        native.overlaps(labels, labels % 2, np.ones(1, int), np.zeros(3, int), np.zeros(1, int))
