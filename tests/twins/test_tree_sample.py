"""Samples of nodes: the same for the reference, and whatever the order, weights or frame of the rows."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kfree.kernels import native, reference
from kfree.rows import Tied
from kfree.rows.tree import Tree


def tree_of(X, weight=None, shape="full"):
    n = np.ones(len(X)) if weight is None else weight.astype(float)
    return Tree(Tied(n, X.copy(), None, np.zeros(len(X))), shape)


def contents(rows):
    """Chosen rows and their weights, whatever their order; copies as one."""
    unique, which = np.unique(np.round(rows.mean, 9), axis=0, return_inverse=True)
    return unique, np.bincount(which.ravel(), rows.n)


@given(seed=st.integers(0, 99), unit=st.sampled_from([0.0, 1.0, 1e3, 1e300]))
def test_keys_of_rows(seed, unit):
    # whole numbers: no rounding at the edge of a step
    X = np.random.default_rng(seed).integers(-3, 4, size=(30, 2)).astype(float) * [3, 4]
    fast, plain = np.empty(30, np.uint32), np.empty(30, np.uint32)
    native.key_rows(X, np.zeros(2), unit, fast)
    reference.key_rows(X, np.zeros(2), unit, plain)
    assert_array_equal(fast, plain)
    _, distance = np.unique(np.hypot(*X.T), return_inverse=True)
    if unit == 1e3:  # one key for each distance, whatever the direction
        assert len(set(zip(distance.ravel(), fast))) == len(set(distance.ravel())) == len(set(fast))


@given(
    seed=st.integers(0, 99),
    most=st.integers(1, 30),
    weighted=st.booleans(),
    values=st.sampled_from([3, 10, 2**32]),
    merged=st.booleans(),
)
def test_samples_of_slices(seed, most, weighted, values, merged):
    rng = np.random.default_rng(seed)
    key = rng.integers(values, size=60).astype(np.uint32)
    X = np.stack([key, rng.integers(2, size=60)], axis=1).astype(float)  # two rows for each key
    weight = rng.integers(1, 6, size=60) * rng.choice([0.25, 1.0, 3.0]) if weighted else np.empty(0)
    start = np.sort(rng.choice(59, size=5, replace=False))
    stop = np.append(start[1:], 60)
    total = np.array([(weight[a:b].sum() if weighted else b - a) for a, b in zip(start, stop)], float)
    results = []
    for module in (native, reference):
        first, chosen, n = np.empty(6, np.intp), np.empty(60, np.intp), np.empty(60)
        module.sample_rows(X, weight, key, start, stop, total, most, merged, first, chosen, n)
        parts = [slice(*ends) for ends in pairwise(first)]
        assert_allclose([n[at].sum() for at in parts], total)
        results.append([contents(Tied(n[at], X[chosen[at]], None, n[at])) for at in parts])
    for t, (fast, plain) in enumerate(zip(*results)):
        assert_array_equal(fast[0], plain[0])
        assert_allclose(fast[1], plain[1])
        distinct = np.unique(key[start[t] : stop[t]])
        assert_array_equal(np.unique(fast[0][:, 0]), distinct[:most])


@pytest.mark.parametrize("most", [20, 1000])
def test_samples_of_nodes_stand_for_their_rows(most):
    X = np.random.default_rng(11).normal(size=(3000, 2))
    tree = tree_of(X)
    tree.split(np.zeros(1, np.intp))
    nodes = np.arange(1, 3)
    rows, first = tree.sample(nodes, most)
    assert_array_equal(np.diff(first), np.minimum(most, np.diff(tree.bounds(nodes), axis=0)[0]))
    assert_allclose(np.add.reduceat(rows.n, first[:-1]), tree.tied(nodes).n)
    for node, a, b in zip(nodes, first[:-1], first[1:]):
        start, stop = (int(edge[0]) for edge in tree.bounds(np.array([node])))
        assert set(map(tuple, rows.mean[a:b])) <= set(map(tuple, tree.rows.mean[start:stop]))
        gap = rows.mean[a:b].mean(axis=0) - tree.tied(np.array([node])).mean[0]
        assert (np.abs(gap) <= 4 * X.std() / np.sqrt(b - a)).all()  # a fair choice


@pytest.mark.parametrize("shape", ["full", "diag", "spherical"])
@given(seed=st.integers(0, 99), most=st.integers(1, 100))
def test_samples_do_not_depend_on_order_copies_or_frame(shape, seed, most):
    rng = np.random.default_rng(seed)
    X, weight = rng.normal(size=(300, 3)), rng.integers(1, 5, size=300)
    X[rng.integers(300, size=60)] = X[0]  # copies to begin with
    order, turn = rng.permutation(300), np.linalg.qr(rng.normal(size=(3, 3)))[0]
    trees = (
        tree_of(X, weight, shape),
        tree_of(X[order], weight[order], shape),
        tree_of(np.repeat(X, weight, axis=0), shape=shape),
        tree_of(X @ turn * 3 + 5, weight, shape),
    )
    samples = [tree.sample(np.zeros(1, np.intp), most)[0] for tree in trees]
    samples[3] = samples[3]._replace(mean=(samples[3].mean - 5) / 3 @ turn.T)
    found = [contents(rows) for rows in samples]
    for other in found[1:]:
        assert_allclose(other[0], found[0][0], atol=1e-8)
        assert_allclose(other[1], found[0][1])


def test_rows_at_one_distance_are_all_taken_and_keep_their_weight():
    corners = ((np.arange(64)[:, None] >> np.arange(6)) & 1) * 2.0 - 1
    rows, first = tree_of(np.repeat(corners, 3, axis=0)).sample(np.zeros(1, np.intp), 5)
    assert first[1] <= 3 * 64
    unique, n = contents(rows)
    assert_array_equal(unique, np.unique(corners, axis=0))
    assert_allclose(n, 3.0)
