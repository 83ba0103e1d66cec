"""The tree of rows: compiled kernels equal their twins, and nodes are exactly the averages of the rows they hold."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import KDTree

from kfree.kernels import native, reference
from kfree.rows import set_span_threads
from kfree.rows.tied import Tied
from kfree.rows.tree import LEAF, Slices, Tree

NONE = np.empty(0)
SHAPES = ("full", "diag", "spherical", "none")


@st.composite
def slices_of_rows(draw):
    """Rows, weights, and slices of them; small integers make every sum exact."""
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    n, p = draw(st.integers(1, 500)), draw(st.sampled_from([1, 2, 3, 5, 8, 17]))
    exact = draw(st.booleans())
    X = rng.integers(-3, 4, size=(n, p)).astype(float) if exact else rng.normal(size=(n, p))
    if draw(st.booleans()):
        X = X[rng.integers(0, max(1, n // 8), size=n)]  # many copies
    ends = np.unique(np.concatenate([[0, n], rng.integers(0, n + 1, size=draw(st.integers(0, 3)))]))
    start, stop = ends[:-1].copy(), ends[1:].copy()
    centre = np.array([X[a:b].mean(axis=0) for a, b in zip(start, stop)])
    return {
        "X": X,
        "weight": rng.integers(1, 5, size=n) / 2.0 if draw(st.booleans()) else NONE,
        "log_h": rng.integers(-4, 5, size=n) * 1.0 if draw(st.booleans()) else NONE,
        "slices": (start, stop),
        "mean": np.round(centre) if exact else centre,
        "direction": rng.integers(-2, 3, size=centre.shape).astype(float),
        "exact": exact,
    }


def both(name, inputs, outputs):
    """Outputs of the two twins, each with inputs and outputs of its own."""
    results = []
    for module in (native, reference):
        mine, out = [array.copy() for array in inputs], [array.copy() for array in outputs]
        getattr(module, name)(*mine, *out)
        results.append((mine, out))
    return results


@given(slices_of_rows(), st.booleans(), st.booleans())
def test_slices_are_parted_alike(a, given_cut, keys):
    n, (start, stop) = len(a["X"]), a["slices"]
    cut = (start + stop + 1) // 2 if given_cut else np.full(start.shape, -1)
    margin = np.full(start.shape, 1e-9)
    key = np.arange(n, dtype=np.uint32) if keys else np.empty(0, np.uint32)
    inputs = (a["X"], a["weight"], a["log_h"], key, np.arange(n), start, stop, a["mean"], a["direction"], margin)
    (mine, (cut_mine,)), (theirs, (cut_theirs,)) = both("halve_dense", inputs, [cut])
    assert_array_equal(cut_mine, cut_theirs)
    for x, y in zip(mine, theirs):
        assert_array_equal(x, y)
    assert_array_equal(mine[0], a["X"][mine[4]])  # rows moved with their names
    assert_array_equal(mine[3], mine[4][: key.size])  # and with their keys


@given(slices_of_rows())
def test_sparse_slices_are_parted_summed_and_directed_as_dense_ones(a):
    n, p = a["X"].shape
    X = np.abs(np.round(a["X"]))
    csr, (start, stop) = sp.csr_matrix(X), a["slices"]
    entries = (csr.data, csr.indices.astype(np.int32), csr.indptr.astype(np.int64))
    order = np.arange(n)
    outputs = [np.empty(start.size), np.empty((start.size, p)), np.empty(start.size)]
    rows = (*entries, a["weight"], a["log_h"], order, start, stop)
    (_, mine), (_, theirs) = both("mean_csr", rows, outputs)
    dense = [np.empty_like(array) for array in outputs]
    reference.mean_dense(X, a["weight"], a["log_h"], start, stop, np.zeros((start.size, p)), *dense)
    for x, y, z in zip(mine, theirs, dense):
        assert_allclose(x, y, rtol=1e-12, atol=1e-12)
        assert_allclose(x, z, rtol=1e-12, atol=1e-12)
    inputs = (*entries, order, start, stop, np.round(mine[1]), a["direction"], np.full(start.shape, 1e-9))
    (kept, (cut,)), (other, (cut_too,)) = both("halve_csr", inputs, [np.full(start.shape, -1)])
    assert_array_equal(cut, cut_too)
    assert_array_equal(kept[3], other[3])
    (_, (alike,)), (_, (alike_too,)) = both("alike_csr", (*entries, order, start, stop), [np.empty(start.size, bool)])
    (_, (dense_alike,)), (_, (dense_too,)) = both("alike_dense", (X, start, stop), [np.empty(start.size, bool)])
    assert_array_equal(alike, [len(np.unique(X[i:j], axis=0)) == 1 for i, j in zip(start, stop)])
    for found in (alike_too, dense_alike, dense_too):
        assert_array_equal(alike, found)


@given(slices_of_rows())
def test_moments_of_slices_equal_their_twins(a):
    (start, stop), p = a["slices"], a["X"].shape[1]
    rows = (a["X"], a["weight"])
    outputs = [np.empty(start.size), np.empty((start.size, p)), np.empty(start.size)]
    (_, mine), (_, theirs) = both("mean_dense", (*rows, a["log_h"], start, stop, a["mean"]), outputs)
    for x, y in zip(mine, theirs):
        assert_allclose(x, y, rtol=1e-12, atol=1e-12)
    n, mean, _ = theirs
    for name, width in (("second_full", p * (p + 1) // 2), ("second_diag", p)):
        (_, (x,)), (_, (y,)) = both(name, (*rows, start, stop, n, mean), [np.empty((start.size, width))])
        assert_allclose(x, y, rtol=1e-12, atol=1e-12)


def assert_same_axis(found, expected):
    """Directions are equal up to their signs."""
    sign = np.where((found * expected).sum(axis=1) < 0, -1.0, 1.0)
    assert_allclose(found * sign[:, None], expected, atol=1e-6)


@pytest.mark.parametrize("p", [1, 2, 16, 40])
def test_principal_directions_are_leading_eigenvectors_however_they_are_found(p):
    rng = np.random.default_rng(p)
    X = rng.normal(size=(300, p)) * np.linspace(1.0, 2.5, p) @ np.linalg.qr(rng.normal(size=(p, p)))[0]
    X[100:200] = 1.0  # no direction at all
    weight, csr = rng.random(300) + 0.5, sp.csr_matrix(X)
    start, stop = np.array([0, 100, 200]), np.array([100, 200, 300])
    n, mean, level = np.empty(3), np.empty((3, p)), np.empty(3)
    reference.mean_dense(X, weight, NONE, start, stop, np.ones((3, p)), n, mean, level)
    second = np.empty((3, p * (p + 1) // 2))
    reference.second_full(X, weight, start, stop, n, mean, second)
    expected, found = np.empty((3, p)), np.empty((3, p))
    reference.leading_packed(second, 0, 0, 0.0, expected)
    assert_array_equal(expected[1], 0.0)
    native.leading_packed(second, min(8, 100 // p), 100, 1e-20, found)
    assert_same_axis(found, expected)
    signed = np.empty((3, p))
    reference.leading_packed(second, min(8, 100 // p), 100, 1e-20, signed)
    assert_allclose(found, signed, atol=1e-6)
    entries = (csr.data, csr.indices.astype(np.int32), csr.indptr.astype(np.int64), weight, np.arange(300))
    for module in (native, reference):
        module.leading_dense(X, weight, start, stop, mean, 2000, 1e-22, found)
        assert_same_axis(found, expected)
        module.leading_csr(*entries, start, stop, mean, 2000, 1e-22, found)
        assert_same_axis(found, expected)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("p", [1, 2, 5, 20, 40])
def test_nodes_are_parted_and_measured_in_one_call(p, weighted):
    rng = np.random.default_rng(p)
    X = rng.normal(size=(900, p))
    X[:, -1] *= 5.0  # the one long direction: its sign is that of its column
    X[600:640] = X[600]  # copies do not come apart
    weight, log_h = (rng.random(900) + 0.5, rng.normal(size=900)) if weighted else (NONE, NONE)
    ends = np.array([0, 300, 600, 640, 641, 900])
    first, packed = ends.size - 1, p * (p + 1) // 2
    size = 3 * first
    start, stop, left, parent = np.zeros((4, size), np.int64)
    start[:first], stop[:first], left[:first], parent[:first] = ends[:-1], ends[1:], -1, -1
    n, mean, level, second = np.zeros(size), np.zeros((size, p)), np.zeros(size), np.zeros((size, packed))
    here = start[:first], stop[:first]
    reference.mean_dense(X, weight, log_h, *here, np.zeros((first, p)), n[:first], mean[:first], level[:first])
    reference.second_full(X, weight, *here, n[:first], mean[:first], second[:first])
    limits = ((-1, -2), 1e-9, min(8, 100 // p), 100, 1e-20)
    results = []
    for module in (native, reference):
        moved = [array.copy() for array in (X, weight, log_h)]
        places = [np.arange(900, dtype=np.uint32), np.arange(900)]
        fields = [array.copy() for array in (start, stop, n, mean, level, second, left, parent)]
        nodes = np.array([4, 0, 3, 2, 1])
        born = module.part_nodes(*moved, 0.25, *places, nodes, first, *limits, *fields)
        results.append((born, *moved, *places, *fields))
    assert results[0][0] == 6
    for mine, theirs in zip(*results):
        assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)


def rows_of(X, weight=None, log_h=None):
    n = X.shape[0]
    return Tied(np.ones(n) if weight is None else weight, X, None, np.zeros(n) if log_h is None else log_h)


def outer(tree, levels=None):
    """The outer nodes of a tree expanded by some levels, or as far as it goes."""
    nodes = np.zeros(1, np.intp)
    while levels is None or levels > 0:
        apart = tree.split(nodes)
        if not apart.any():
            break
        left = tree.left[nodes[apart]]
        nodes = np.concatenate([nodes[~apart], left, left + 1])
        levels = None if levels is None else levels - 1
    return nodes


def second_of(x, w, shape):
    mean = w @ x / w.sum()
    covariance = ((x - mean) * w[:, None]).T @ (x - mean) / w.sum()
    kinds = {
        "full": covariance[np.triu_indices(x.shape[1])],
        "diag": np.diag(covariance),
        "spherical": np.trace(covariance),
    }
    return kinds[shape]


def check_nodes(tree, nodes, X, weight, log_h, shape):
    """Nodes tile the rows and are the averages of what they hold."""
    start, stop = tree.bounds(nodes)
    assert_array_equal(np.sort(tree.order), np.flatnonzero(weight > 0))
    assert (stop - start).sum() == tree.order.size
    tied = tree.tied(nodes)
    for t in range(nodes.size):
        rows = tree.order[start[t] : stop[t]]
        x, w = X[rows], weight[rows]
        assert tied.n[t] == pytest.approx(w.sum())
        assert_allclose(tied.mean[t], w @ x / w.sum(), atol=1e-12)
        assert tied.log_h[t] == pytest.approx(w @ log_h[rows] / w.sum())
        if shape != "none":
            assert_allclose(tied.second[t], second_of(x, w, shape), atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("p", [1, 3, 70])
@pytest.mark.parametrize("levels", [0, 3, None])
def test_nodes_are_averages_of_the_rows_they_hold(shape, p, levels):
    rng = np.random.default_rng(p)
    X = rng.normal(size=(90, p))
    X[10:20] = X[0]
    weight, log_h = rng.integers(0, 3, size=90) * 0.5, rng.normal(size=90)
    tree = Tree(rows_of(X, weight, log_h), shape)
    check_nodes(tree, outer(tree, levels), X, weight, log_h, shape)


def test_a_tree_ends_at_single_rows_and_copies():
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[40:] = X[39]
    X[30:40] = X[39] + 1e-300  # no variance to be seen, and still not copies where the numbers differ
    tree = Tree(rows_of(X), "full")
    nodes = outer(tree)
    assert nodes.size == np.unique(X, axis=0).shape[0]
    assert (tree.left[nodes] == LEAF).all()
    tiny = Tree(rows_of(np.array([[0.0], [1e-200], [2e-200], [1.0]])), "full")
    assert outer(tiny).size == 4


def test_integer_weights_equal_copies():
    rng = np.random.default_rng(1)
    X, weight = rng.normal(size=(200, 3)), rng.integers(0, 4, size=200)
    one = Tree(rows_of(X, weight.astype(float)), "full")
    two = Tree(rows_of(np.repeat(X, weight, axis=0)), "full")
    a, b = one.tied(outer(one, 5)), two.tied(outer(two, 5))
    # the same nodes in the same order: the sides of a direction do not depend on copies
    assert_allclose(a.n, b.n)
    assert_allclose(a.mean, b.mean, atol=1e-10)
    assert_allclose(a.second, b.second, atol=1e-10)


def test_the_number_of_threads_and_the_hour_of_a_split_do_not_matter():
    X = np.random.default_rng(2).normal(size=(20_000, 9))
    trees = []
    for threads in (1, 4):
        tree = Tree(rows_of(X), "full")
        with set_span_threads(threads):
            trees.append((tree, outer(tree, 7)))
    (one, a), (two, b) = trees
    assert_array_equal(one.order, two.order)
    for x, y in zip(one.tied(a), two.tied(b)):
        assert_array_equal(x, y)
    lazy = Tree(rows_of(X), "full")
    for _ in range(7):  # one node at a time, last first
        for node in np.arange(lazy.count)[::-1]:
            lazy.split(np.array([node]))
    start, stop = one.bounds(a)
    mine = {(s, e): tuple(m) for s, e, m in zip(start, stop, one.tied(a).mean)}
    every = np.arange(lazy.count)
    theirs = {(s, e): tuple(m) for s, e, m in zip(*lazy.bounds(every), lazy.tied(every).mean)}
    assert mine.items() <= theirs.items()


def test_a_node_is_split_at_its_mean_along_its_principal_direction():
    X = np.random.default_rng(3).normal(size=(500, 4)) * [1.0, 5.0, 2.0, 1.0]
    tree = Tree(rows_of(X), "diag")
    assert tree.split(np.array([0])).all()
    vector = np.linalg.eigh(np.cov(X.T))[1][:, -1]
    side = (X - X.mean(axis=0)) @ vector > 0
    start, stop = tree.bounds(np.array([2]))
    found = np.isin(np.arange(500), tree.order[start[0] : stop[0]])
    assert (found == side).all() or (found != side).all()


def test_no_more_nodes_than_allowed():
    X = np.random.default_rng(4).normal(size=(100, 2))
    tree = Tree(rows_of(X), "full", max_nodes=12)
    nodes = outer(tree)
    assert tree.count == 11
    assert tree.full
    check_nodes(tree, nodes, X, np.ones(100), np.zeros(100), "full")


def test_sparse_rows_make_the_same_kind_of_tree():
    rng = np.random.default_rng(5)
    X = rng.poisson(0.5, size=(120, 30)).astype(float)
    weight, log_h = rng.integers(0, 3, size=120).astype(float), rng.normal(size=120)
    tree = Tree(rows_of(sp.csr_matrix(X), weight, log_h), "none")
    check_nodes(tree, outer(tree, 4), X, weight, log_h, "none")
    nodes = outer(tree)
    assert nodes.size == np.unique(X[weight > 0], axis=0).shape[0]


@pytest.mark.parametrize("leaf_size", [1, 10, 1000])
def test_slices_of_a_kd_tree_are_followed_and_continued(leaf_size):
    X = np.random.default_rng(6).normal(size=(150, 3))
    _, order, nodes, _ = KDTree(X, leaf_size=leaf_size).get_arrays()
    tree = Tree(rows_of(X), "full", slices=Slices(np.asarray(order), nodes["idx_start"], nodes["idx_end"]))
    depth = int(np.log2(nodes.shape[0] + 1)) - 1
    leaves = outer(tree, depth)
    check_nodes(tree, leaves, X, np.ones(150), np.zeros(150), "full")
    mine = {(int(a), int(b)) for a, b in zip(*tree.bounds(leaves))}
    assert mine == {(int(k["idx_start"]), int(k["idx_end"])) for k in nodes if k["is_leaf"]}
    assert outer(tree).size == 150


@pytest.mark.parametrize("shape", SHAPES)
def test_large_nodes_are_measured_piece_by_piece(shape, monkeypatch):
    rng = np.random.default_rng(8)
    X, weight, log_h = rng.normal(size=(700, 3)) + 50.0, rng.integers(0, 3, size=700) * 0.5, rng.normal(size=700)
    monkeypatch.setattr("kfree.rows.tree._PIECE", 64)
    tree = Tree(rows_of(X, weight, log_h), shape)
    check_nodes(tree, outer(tree, 2), X, weight, log_h, shape)


def test_rows_that_are_given_away_are_permuted_where_they_are():
    rng = np.random.default_rng(9)
    X, weight = rng.normal(size=(3000, 3)), rng.gamma(2.0, size=3000)
    mine = rows_of(X.copy(), weight.copy(), rng.normal(size=3000))
    log_h = mine.log_h.copy()
    tree = Tree(mine, "full", inplace=True)
    outer(tree, 6)
    assert tree.rows.mean is mine.mean
    assert not (tree.places == np.arange(3000)).all()
    for now, before in ((mine.mean, X), (mine.n, weight), (mine.log_h, log_h)):
        assert_array_equal(now, before[tree.places])
    kept = rows_of(X, weight)
    outer(Tree(kept, "full"), 6)
    assert_array_equal(kept.mean, X)
    assert_array_equal(kept.n, weight)


@given(
    seed=st.integers(0, 99), n=st.integers(1, 40), dtype=st.sampled_from([np.float64, np.float32]), p=st.integers(1, 9)
)
def test_sums_and_units_of_rows(seed, n, dtype, p):
    rng = np.random.default_rng(seed)
    X, weight = (rng.normal(size=(n, p)) * 100).astype(dtype), rng.gamma(1.0, size=n)
    results = []
    for module in (native, reference):
        total, out = np.zeros(p), np.empty((n, p))
        peak = module.sum_rows(X, weight, X[0].astype(float), total)
        module.place_rows(X, np.arange(p) - 1.0, 2.0 ** np.arange(-3, p - 3), 700.0, out)
        results.append((peak, total, out))
    for fast, plain in zip(*results):
        assert_allclose(fast, plain, rtol=1e-12, atol=1e-9)
    assert results[0][0] == np.abs(X).max()
