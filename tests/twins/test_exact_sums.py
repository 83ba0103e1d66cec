"""Sums by label in whole numbers: the compiled ones, their twins, and fractions."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from kfree.kernels import native, reference
from kfree.rows import CsrRows, DenseRows
from kfree.rows.exact_sums import MOST_COPIES, CostSum, ExactProducts, ExactSums, Shares, WeightRange

NONE = np.empty(0)
WEIGHTS = {"none": None, "whole": [0.0, 1.0, 3.0, 700.0], "any": [0.0, 0.25, 1 / 3, 1e-3, 17.1]}


@st.composite
def tables(draw):
    """Rows of very uneven size, labels before and after, weights, scales."""
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    n, p, K = draw(st.integers(1, 60)), draw(st.integers(1, 19)), draw(st.integers(1, 5))
    size = 10.0 ** rng.uniform(-draw(st.sampled_from([0, 12])), 0, size=(n, p))
    X = rng.normal(size=(n, p)) * size * 10.0 ** draw(st.sampled_from([0, 150, -150, -290]))
    kind = draw(st.sampled_from(sorted(WEIGHTS)))
    return {
        "X": X.astype(draw(st.sampled_from(["f8", "f8", "f4"])) if np.abs(X).max() < 1e30 else "f8"),
        "shift": X.mean(axis=0) if draw(st.booleans()) else np.zeros(p),
        "scale": rng.gamma(1.0, size=n) if draw(st.booleans()) else NONE,
        "weight": NONE if kind == "none" else rng.choice(WEIGHTS[kind], size=n),
        "before": rng.integers(-1, K, size=n).astype(np.int32),
        "labels": rng.integers(-1, K, size=n).astype(np.int32),
        "K": K,
        "ratio": draw(st.sampled_from([1.0, 1e-20, 1e-100])),
    }


def rows_of(table, rows=slice(None)):
    pick = {name: table[name][rows] if table[name].size else NONE for name in ("weight", "scale")}
    return DenseRows(np.ascontiguousarray(table["X"][rows]), shift=table["shift"], ratio=table["ratio"], **pick)


def limbs_by(module, table, grid, pieces):
    """The limbs of all rows, moved piece by piece."""
    sums = ExactSums(table["K"], grid)
    for rows in pieces:
        part = rows_of(table, rows)
        none = np.full(part.n, -1, np.int32)
        for before, labels in ((none, table["before"][rows]), (table["before"][rows], table["labels"][rows])):
            module.move_dense(
                part.X, np.arange(part.n), part.shift, part.scale, part.weight, before, labels, sums.ledger
            )
    module.carry_sums(sums.ledger)
    return sums


@given(tables(), st.integers(0, 2**20))
def test_sums_are_the_same_whole_numbers_in_any_order_and_by_any_route(table, seed):
    n, grid = len(table["X"]), rows_of(table).grid
    order = np.random.default_rng(seed).permutation(n)
    cut = [order[: n // 3], order[n // 3 :]]
    expected = limbs_by(reference, table, grid, [np.arange(n)])
    for module, pieces in ((native, [np.arange(n)]), (native, cut), (native, cut[::-1]), (reference, cut)):
        assert_array_equal(limbs_by(module, table, grid, pieces).limbs, expected.limbs)
    direct = ExactSums(table["K"], grid)
    rows_of(table).move(np.arange(n), np.full(n, -1, np.int32), table["labels"], direct)
    assert_array_equal(direct.limbs, expected.limbs)  # what has been taken out again leaves no trace


@given(tables())
def test_sums_are_as_near_to_the_truth_as_their_rounding(table):
    rows = rows_of(table)
    total, mass = rows.sums(table["labels"], table["K"])
    stats, weight = rows.dense(slice(0, rows.n)), rows.weights(slice(0, rows.n))
    for k in range(table["K"]):
        mine = np.flatnonzero(table["labels"] == k)
        assert mass[k] == pytest.approx(float(sum((Fraction(w) for w in weight[mine]), Fraction(0))), rel=1e-15, abs=0)
        for j in range(rows.p):
            exact = sum((Fraction(stats[i, j]) * Fraction(weight[i]) for i in mine), Fraction(0))
            size = max((abs(stats[:, j]) * weight).max(initial=0.0), np.finfo(float).tiny)
            assert abs(Fraction(total[k, j]) - exact) <= Fraction(size) * max(len(mine), 1) * Fraction(1, 2**52)


@given(tables())
def test_a_whole_weight_is_so_many_copies_to_the_last_bit(table):
    copies = np.random.default_rng(len(table["X"])).integers(0, 5, size=len(table["X"]))
    rows = {**table, "weight": copies.astype(float)}
    again = np.repeat(np.arange(len(copies)), copies)
    mine = rows_of(rows).sums(table["labels"], table["K"])
    repeated = rows_of({**table, "weight": NONE}, again).sums(table["labels"][again], table["K"])
    if again.size == 0 or (np.abs(table["X"]).max(axis=0) == np.abs(table["X"][again]).max(axis=0)).all():
        for one, other in zip(mine, repeated):
            assert_array_equal(one, other)


@given(tables())
def test_sparse_rows_have_the_sums_of_dense_ones(table):
    X = np.where(np.abs(table["X"]) > np.median(np.abs(table["X"])), table["X"], 0)
    weight, labels = table["weight"], table["labels"]
    kind = {"weight": weight, "scale": table["scale"], "ratio": table["ratio"]}
    dense, sparse = DenseRows(X, shift=np.zeros(X.shape[1]), **kind), CsrRows(sp.csr_matrix(X), **kind)
    assert_array_equal(sparse.exact_sums(labels, table["K"]).limbs, dense.exact_sums(labels, table["K"]).limbs)
    twin = ExactSums(table["K"], sparse.grid)
    none = np.full(sparse.n, -1, np.int32)
    reference.move_csr(*sparse.cells, np.arange(sparse.n), sparse.scale, weight, none, labels, twin.ledger)
    assert_array_equal(twin.limbs, sparse.exact_sums(labels, table["K"]).limbs)


def test_sums_of_nothing_but_tiny_entries_keep_their_digits():
    X = np.array([[1e5], [1e-40], [3e-40], [1e-200]])
    rows = DenseRows(X, weight=NONE, scale=NONE, shift=np.zeros(1), ratio=1e-205)
    total, _ = rows.sums(np.array([0, 1, 1, 2], np.int32), 3)
    np.testing.assert_allclose(total[:, 0], [1e5, 4e-40, 1e-200], rtol=1e-8)


@pytest.mark.parametrize("make", [DenseRows, CsrRows])
def test_digits_of_all_rows_are_kept_beside_one_that_is_far_away(make):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    X[0, :2], X[1, 2] = [3.4e38, -3.4e38], 0
    kind = {"shift": np.array([0.0, 1e-3, 1.0])} if make is DenseRows else {}
    labels = np.append(0, np.ones(49)).astype(np.int32)
    rows = make(X if kind else sp.csr_matrix(X), weight=NONE, scale=NONE, ratio=None, **kind)
    np.testing.assert_allclose(rows.sums(labels, 2)[0][1], rows.dense(slice(1, 50)).sum(axis=0), rtol=1e-13)
    plain = make(X[1:] if kind else sp.csr_matrix(X[1:]), weight=NONE, scale=NONE, ratio=None, **kind)
    assert plain.grid.parts == 2  # which are quick


def test_rows_without_weight_change_no_sum():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(50, 3)), np.append(np.zeros(5), np.ones(45))
    X[:5] = [[1e300], [-1e300], [1e100], [1e-300], [7.0]]
    labels = rng.integers(3, size=50).astype(np.int32)
    for times in (1.0, 0.1):
        kind = {"scale": NONE, "shift": np.full(3, 0.1), "ratio": None}
        some, others = DenseRows(X[5:], weight=times * weight[5:], **kind), DenseRows(X, weight=times * weight, **kind)
        assert_array_equal(others.exact_sums(labels, 3).limbs, some.exact_sums(labels[5:], 3).limbs)
        sums, before = ExactSums(3, others.grid), np.full(50, -1, np.int32)
        reference.move_dense(X, np.arange(50), others.shift, NONE, others.weight, before, labels, sums.ledger)
        assert_array_equal(sums.limbs, some.exact_sums(labels[5:], 3).limbs)


def test_sums_less_a_shift_are_those_of_shifted_rows():
    X = np.full((50, 2), 1e100) * [1.0, -0.3]
    rows = DenseRows(X, weight=NONE, scale=NONE, shift=np.zeros(2))
    assert_array_equal(rows.exact_whole.less(X[0]), [[0.0, 0.0]])
    half = rows.shifted(X[0] / 2)
    assert_array_equal(half.whole[0], [25 * X[0]])


def test_more_rows_than_parts_hold_are_carried():
    n = 100_001
    X = np.full((n, 3), 0.1)
    X[:, 1] *= -1
    rows = DenseRows(X, weight=NONE, scale=NONE, shift=np.zeros(3))
    total, mass = rows.sums(np.zeros(n, np.int32), 1)
    assert_array_equal(total[0], [float(Fraction(0.1) * n), float(-Fraction(0.1) * n), float(Fraction(0.1) * n)])
    assert mass[0] == n
    heavy = DenseRows(X[:3000], weight=np.full(3000, float(MOST_COPIES)), scale=NONE, shift=np.zeros(3))
    total, mass = heavy.sums(np.zeros(3000, np.int32), 1)
    assert total[0, 0] == float(Fraction(0.1) * 3000 * MOST_COPIES)
    assert mass[0] == 3000 * MOST_COPIES


@given(st.integers(0, 2**20), st.integers(1, 400), st.sampled_from(sorted(WEIGHTS)))
def test_sums_of_costs_do_not_depend_on_their_order(seed, n, kind):
    rng = np.random.default_rng(seed)
    cost = rng.gamma(0.3, size=n) * 10.0 ** rng.integers(-200, 200)
    weight = NONE if kind == "none" else rng.choice(WEIGHTS[kind], size=n)
    whole, order = WeightRange.of(weight).whole, rng.permutation(n)
    inverse = 2.0 ** -(float(np.frexp(cost.max())[1]) + (0 if whole else 5))
    found = native.sum_costs(weight, cost, whole, inverse)
    assert found == reference.sum_costs(weight, cost, whole, inverse)
    assert found == native.sum_costs(weight[order] if weight.size else weight, cost[order], whole, inverse)
    total = CostSum(float(cost.max()), WeightRange.of(weight))
    total.add(total.limbs(cost, weight))
    w = weight if weight.size else np.ones(n)
    truth = float(sum(Fraction(a) * Fraction(b) for a, b in zip(w, cost)))
    assert total.value == pytest.approx(truth, rel=1e-14 if kind == "any" else 2e-16, abs=0)


def test_a_cost_that_is_infinite_makes_the_sum_infinite():
    total = CostSum(np.inf, WeightRange())
    total.add(total.limbs(np.array([1.0, np.inf]), NONE))
    assert total.value == np.inf


def test_extents_are_least_and_largest():
    rng = np.random.default_rng(0)
    X, scale = rng.normal(size=(40, 5)), rng.gamma(1.0, size=40)
    X[3, :2] = 0
    dense = DenseRows(X, weight=NONE, scale=scale, shift=np.zeros(5))
    assert_array_equal(dense.extent[0], (X * scale[:, None]).min(axis=0))
    assert_array_equal(dense.extent[1], (X * scale[:, None]).max(axis=0))
    assert_array_equal(dense.extent[2], np.abs(X * scale[:, None]).min(axis=0, where=X != 0, initial=np.inf))
    cells = CsrRows(sp.csr_matrix(X), weight=NONE, scale=scale).cells
    for module in (native, reference):
        least, largest, finest = np.zeros(5), np.zeros(5), np.full(5, np.inf)
        module.extent_csr(*cells, np.arange(40), scale, least, largest, finest)
        assert_array_equal([least, largest], [np.minimum(dense.extent[0], 0), np.maximum(dense.extent[1], 0)])
        assert_array_equal(finest, dense.extent[2])
        ends = np.full(5, np.inf), np.full(5, -np.inf), np.full(5, np.inf)
        module.extent_dense(X, np.arange(40), scale, *ends)
        assert_array_equal(ends, dense.extent)


def test_labels_that_merge_add_their_sums():
    rng = np.random.default_rng(0)
    rows = DenseRows(rng.normal(size=(50, 3)), weight=NONE, scale=NONE, shift=np.zeros(3))
    labels, new = rng.integers(4, size=50).astype(np.int32), np.array([1, 0, 1, 2], np.int32)
    merged = rows.exact_sums(labels, 4).relabelled(new, 3)
    assert_array_equal(merged.limbs, rows.exact_sums(new[labels], 3).limbs)
    for one, other in zip(merged.values(), native_values(merged)):
        assert_array_equal(one, other)


def native_values(sums):
    """As the reference reads them."""
    total, mass = np.empty((sums.K, 3)), np.empty(sums.K)
    reference.read_sums(sums.ledger, total, mass)
    return total, mass


def test_shares_of_threads_make_one_sum():
    rng = np.random.default_rng(0)
    rows = DenseRows(rng.normal(size=(50, 3)), weight=NONE, scale=NONE, shift=np.zeros(3))
    labels, none = rng.integers(4, size=50).astype(np.int32), np.full(25, -1, np.int32)
    shares = Shares(ExactSums(4, rows.grid))
    with shares.one() as first, shares.one() as second:
        rows.move(np.arange(25), none, labels[:25], first)
        rows.move(np.arange(25, 50), none, labels[25:], second)
    assert_array_equal(shares.total().limbs, rows.exact_sums(labels, 4).limbs)


@pytest.mark.parametrize("kind", sorted(WEIGHTS))
def test_products_of_columns_are_exact_in_any_order(kind):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 4)) * [1.0, 1e-9, 1e7, 3.0]
    weight = NONE if kind == "none" else rng.choice(WEIGHTS[kind], size=3000)
    w, largest = weight if weight.size else np.ones(3000), np.abs(x).max(axis=0)

    def value(order):
        products = ExactProducts(largest, WeightRange.of(weight))
        for some in np.array_split(order, 3):
            products.add(x[some], w[some])
        return products.value

    found = value(np.arange(3000))
    assert_array_equal(found, found.T)
    assert_array_equal(found, value(rng.permutation(3000)))
    for i, j in ((0, 0), (0, 1), (2, 3)):
        exact = sum(Fraction(a) * Fraction(b) * Fraction(c) for a, b, c in zip(x[:, i], x[:, j], w))
        size = sum(abs(x[:, i] * x[:, j]) * w)
        assert abs(found[i, j] - float(exact)) <= 1e-15 * size
