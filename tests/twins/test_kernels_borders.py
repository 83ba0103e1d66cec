"""Rows between pairs of clusters: compiled equals reference."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kfree.kernels import native, reference


@pytest.mark.parametrize(("K", "count"), [(2, 2), (3, 3), (9, 3), (1, 1)])
def test_three_least_agree(K, count):
    rng = np.random.default_rng(K)
    products, offset = rng.integers(-3, 3, size=(40, K)).astype(float), rng.integers(0, 3, K).astype(float)
    found = []
    for kernels in (native, reference):
        first, least = np.empty((40, count), np.int32), np.empty((40, count))
        kernels.three_least(products, offset, first, least)
        found.append((first, least))
    assert_array_equal(found[0][0], found[1][0])
    assert_allclose(found[0][1], found[1][1])


@pytest.mark.parametrize("K", [2, 3, 8])
def test_rows_of_pairs_agree(K):
    rng = np.random.default_rng(K)
    count = min(3, K)
    cost = rng.uniform(size=(60, K))
    first = np.argsort(cost, axis=1)[:, :count].astype(np.int32)
    least = np.take_along_axis(cost, first.astype(np.intp), axis=1)
    pairs = np.argwhere(np.triu(rng.uniform(size=(K, K)) < 0.7, 1)).astype(np.int32, order="C")
    pairs = pairs if len(pairs) else np.array([[0, 1]], np.int32)
    ends = pairs.T.ravel()
    incident = np.argsort(ends, kind="stable") % len(pairs)
    degree = np.bincount(ends, minlength=K)
    start = np.concatenate([[0], np.cumsum(degree)])
    most = int(degree[first].sum())
    found = []
    for kernels in (native, reference):
        edges, rows, third = np.empty(3 * len(pairs) + 1, np.intp), np.empty(most, np.intp), np.empty(most)
        kernels.rows_of_pairs(first, least, pairs, start, incident, edges, rows, third)
        found.append((edges, rows[: edges[-1]], third[: edges[-1]]))
    for mine, theirs in zip(*found):
        assert_array_equal(mine, theirs)


def test_sorted_segments_and_medians_agree():
    rng = np.random.default_rng(0)
    values, edges = rng.normal(size=50), np.array([0, 7, 7, 30, 49, 50])
    results = []
    for kernels in (native, reference):
        copy, medians = values.copy(), np.zeros(5)
        kernels.sort_segments(edges, copy)
        kernels.lower_medians(values, edges[:-1], edges[1:], medians)
        results.append((copy, medians))
    assert_array_equal(results[0][0], results[1][0])
    assert_array_equal(results[0][1], results[1][1])
