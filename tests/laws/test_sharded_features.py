"""Features of rows in blocks: the same bits however rows are cut, ordered and lost, and about those of memory."""

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import kfree
from kfree import BPMeans, KFeatures, StepwiseKFeatures
from kfree.inference.features import feature_shards
from kfree.inference.features.allocation import Means, solve
from kfree.inference.features.best_rows import RowRule, allocate
from kfree.inference.features.feature_shards import (
    Allocated,
    FeatureQuestion,
    FeatureStatistics,
    best_features,
    bit_grid,
    pass_rows,
    solve_statistics,
)
from kfree.inference.features.feature_table import FeatureTable
from kfree.inference.loop import Budget
from kfree.rows.blocks import NearBlocks, RowBlock
from kfree.rows.exact_sums import CostSum, ExactSums, Grid, WeightRange
from support.in_blocks import fit_in_blocks
from support.numbers import set_numbers

#: What a fit leaves that is plain numbers.
NUMBERS = (
    "components_",
    "intercept_",
    "counts_",
    "inertia_",
    "objective_",
    "objective_trace_",
    "explained_",
    "n_iter_",
)


@pytest.fixture
def short(monkeypatch):
    """Tables of a few hundred rows are long ones, with samples."""
    set_numbers(monkeypatch, "CLUSTERS", search_up_to=200)
    set_numbers(monkeypatch, "FEATURES", polish_rows=200, least_sample=100, sample_entries=1200)


def planted(n=600, p=6, K=3, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    Z = rng.random((n, K)) < 0.4
    return Z @ (4 * rng.normal(size=(K, p))) + noise * rng.normal(size=(n, p))


def in_blocks(model, X, weight=None, cuts=(100, 100, 333)):
    with pytest.MonkeyPatch.context() as patch:
        return fit_in_blocks(clone(model), X, weight, cuts, patch)


def in_memory(model, X, weight=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(model).fit(X, sample_weight=weight)


def assert_same(one, two, order=slice(None)):
    for name in NUMBERS:
        assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    assert_array_equal(one.Z_, two.Z_[order])
    assert one.explain() == two.explain()


# The same bits


@pytest.mark.usefixtures("short")
@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**20),
    cuts=st.lists(st.integers(0, 400), max_size=6),
    weights=st.sampled_from(["none", "whole", "real", "small"]),
    model=st.sampled_from([KFeatures(3, n_init=2), KFeatures(2, base="intercept", n_init=2), BPMeans(400.0, n_init=1)]),
    kind=st.sampled_from(["dense", "csr", "float32", "int", "copies", "columns"]),
)
def test_neither_blocks_nor_the_order_of_rows_change_a_bit(seed, cuts, weights, model, kind):
    rng = np.random.default_rng(seed)
    X = planted(400, seed=seed)
    weight = {
        "none": None,
        "whole": rng.integers(0, 4, 400).astype(float),
        "real": rng.gamma(1.0, size=400),
        "small": 1e-3 * rng.gamma(1.0, size=400),
    }[weights]
    if kind == "csr":
        X = sp.csr_matrix(np.where(np.abs(X) > 2, X, 0.0))
    elif kind == "copies":
        X = np.round(X[rng.integers(250, size=400)])
    elif kind == "int":
        X = np.round(3 * X).astype(int)
    elif kind != "dense":
        X = X.astype("f4") if kind == "float32" else np.asfortranarray(X)
    one, order = in_blocks(model, X, weight, [200]), rng.permutation(400)
    other = in_blocks(model, X[order], None if weight is None else weight[order], cuts)
    assert_same(other, one, order)


@pytest.mark.usefixtures("short")
def test_the_chosen_number_does_not_hang_on_blocks_either():
    X = planted()
    order = np.random.default_rng(1).permutation(600)
    for model in (BPMeans(n_init=1), StepwiseKFeatures(n_init=1, max_components=5)):
        one, other = in_blocks(model, X), in_blocks(model, X[order], None, [17, 400])
        assert_same(other, one, order)
        assert one.n_components_ == 3
        assert one.lam_ == other.lam_
        assert_array_equal(one.path_.inertia, other.path_.inertia)
        lo, hi = one.lam_window_
        assert lo < one.lam_ < hi


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("model", [KFeatures(3, n_init=2), BPMeans(400.0, n_init=1)])
def test_what_was_kept_beside_blocks_may_be_lost_at_any_time(model, monkeypatch):
    X = planted()
    whole = in_blocks(model, X)
    rng, honest, lost = np.random.default_rng(0), NearBlocks.ask, []

    def forgetful(self, question, arguments, merge):
        for beside in self._beside:
            if rng.random() < 0.5:
                lost.append(bool(beside))
                beside.clear()
        if rng.random() < 0.3:  # a task that is run twice
            honest(self, question, arguments, merge)
        return honest(self, question, arguments, merge)

    monkeypatch.setattr(NearBlocks, "ask", forgetful)
    assert_same(in_blocks(model, X), whole)
    assert sum(lost) > 5


@pytest.mark.usefixtures("short")
def test_whole_weights_are_copies():
    X = planted()
    weight = np.random.default_rng(3).integers(0, 4, 600)
    start = Means(4 * np.random.default_rng(4).normal(size=(3, 6)), np.zeros(6))
    one = passed(X, weight.astype(float), start)
    many = passed(np.repeat(X, weight, axis=0), np.empty(0), start)
    grid = Grid.of(np.abs(X[weight > 0]).max(axis=0), WeightRange())
    for name, unit in (("rows", grid), ("bits", bit_grid(3, WeightRange()))):
        assert_array_equal(*(ExactSums.of_limbs(unit, getattr(said, name)).limbs for said in (one, many)))
    assert_array_equal(one.both.diagonal() > 0, many.both.diagonal() > 0)
    for model in (KFeatures(3, n_init=2), KFeatures(2, base="intercept", n_init=1), BPMeans(400.0, n_init=1)):
        weighted = in_blocks(model, X, weight.astype(float))
        repeated = in_blocks(model, np.repeat(X, weight, axis=0))
        for name in ("components_", "intercept_", "inertia_", "objective_trace_", "explained_"):
            assert_array_equal(getattr(weighted, name), getattr(repeated, name), err_msg=name)


def test_few_rows_are_those_of_memory():
    X = planted(300)
    for model in (KFeatures(3, n_init=2), KFeatures(3, algorithm="paper"), BPMeans(400.0, n_init=1)):
        one, whole = in_blocks(model, X), in_memory(model, X)
        assert_same(one, whole)
        assert_same(one.canonicalize(), whole.canonicalize())


# A pass


def passed(X, weight, means, *, intercept=False, cuts=(250,)):
    users, active = WeightRange.of(weight), X[weight > 0] if weight.size else X
    grid = Grid.of(np.abs(active.toarray() if sp.issparse(X) else active).max(axis=0), users)
    asked = FeatureQuestion(means, intercept, RowRule(), grid, users, 1e6)
    edges, found = [0, *cuts, X.shape[0]], None
    for a, b in pairwise(edges):
        said = pass_rows(RowBlock(X[a:b], weight[a:b] if weight.size else weight, 0), {}, asked)
        found = said if found is None else Allocated.joined(found, said)
    return found


@given(
    seed=st.integers(0, 2**20),
    K=st.sampled_from([0, 1, 3, 13]),
    weighted=st.booleans(),
    sparse=st.booleans(),
    intercept=st.booleans(),
)
def test_a_pass_is_an_allocation_and_its_sums(seed, K, weighted, sparse, intercept):
    rng = np.random.default_rng(seed)
    X = planted(300, seed=seed)
    X = np.where(np.abs(X) > 2, X, 0.0) if sparse else X
    weight = rng.gamma(2.0, size=300) + 0.1 if weighted else np.empty(0)
    means = Means(3 * rng.normal(size=(K, 6)), rng.normal(size=6) if intercept else np.zeros(6))
    said = passed(sp.csr_matrix(X) if sparse else X, weight, means, intercept=intercept)
    table = FeatureTable(X, weight, intercept=intercept)
    Z, square = allocate(table, means, RowRule(), Budget())
    assert_array_equal(best_features(X, means, RowRule()), Z)
    assert_array_equal(said.held, Z.sum(axis=0))
    assert (said.n, said.bare) == (300, int((Z.sum(axis=1) == 0).sum()))
    S, T = table.sums(Z)
    users = WeightRange.of(weight)
    grid = Grid.of(np.abs(X).max(axis=0), users)
    assert_allclose(ExactSums.of_limbs(grid, said.rows).values()[0], T, rtol=1e-12, atol=1e-10)
    bits = ExactSums.of_limbs(bit_grid(len(S), users), said.bits).values()[0]
    assert_allclose(bits, S, rtol=1e-12)
    cost = CostSum(1e6, users)
    cost.add(said.cost)
    assert_allclose(cost.value, table.weight @ square, rtol=1e-9)
    if K or intercept:
        found = solve_statistics(FeatureStatistics(bits, T, said.both))
        plain = solve(table, Z)
        assert_array_equal(found.keep[int(intercept) :], plain.keep)
        assert_allclose(found.A[int(intercept) :], plain.means.A, rtol=1e-7, atol=1e-7)


def plain_pass(X, A):
    """K-features once more, by all combinations of features and the pseudo-inverse."""
    every = (np.arange(2 ** len(A))[:, None] >> np.arange(len(A))) & 1
    gap = ((X[:, None] - every @ A) ** 2).sum(axis=2)
    Z = every[gap.argmin(axis=1)]
    return np.linalg.lstsq(Z, X, rcond=None)[0], gap.min(axis=1).sum()


@pytest.mark.usefixtures("short")
def test_a_fit_is_at_rest():
    X = planted()
    model = in_blocks(KFeatures(3, n_init=2), X)
    A, inertia = plain_pass(X, model.components_)
    assert_allclose(model.inertia_, inertia)
    assert_allclose(plain_pass(X, A)[1], inertia, rtol=1e-7)
    assert_array_equal(model.Z_, model.transform(X))
    assert_array_equal(model.counts_, model.Z_.sum(axis=0))
    assert (np.diff(model.objective_trace_) < 0).all()
    assert model.converged_


@pytest.mark.usefixtures("short")
def test_what_no_row_wants_is_what_is_left_of_the_worst_row(monkeypatch):
    X = planted()
    monkeypatch.setattr(
        "kfree.models.spread_features.close_on_all_rows",
        lambda closing, first, budget: feature_shards.close_on_all_rows(
            closing, first._replace(A=np.vstack([first.A[:2], first.A[1:2]])), budget
        ),
    )
    model = in_blocks(KFeatures(3, n_init=2), X)
    assert (model.counts_ > 0).all()
    assert model.inertia_ < 0.9 * in_memory(KFeatures(2), X).inertia_


@pytest.mark.usefixtures("short")
def test_a_feature_that_does_not_pay_is_taken_out(monkeypatch):
    X = planted()
    noise = np.full((1, 6), 0.2)
    monkeypatch.setattr(
        "kfree.models.spread_features.close_on_all_rows",
        lambda closing, first, budget: feature_shards.close_on_all_rows(
            closing, first._replace(A=np.vstack([first.A, noise])), budget
        ),
    )
    model = in_blocks(BPMeans(400.0, n_init=1), X)
    assert model.n_components_ == 3
    assert (np.diff(model.objective_trace_) < 0).all()
    assert_allclose(model.objective_, model.inertia_ + 400 * 3)


# About the features of memory


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("model", [KFeatures(3), KFeatures(3, base="intercept"), BPMeans(400.0, n_init=3)])
def test_planted_features_are_those_of_memory(model):
    for seed in range(3):
        X = planted(seed=seed)
        one, whole = in_blocks(model, X), in_memory(model, X)
        assert one.n_components_ == whole.n_components_
        assert one.inertia_ < 1.03 * whole.inertia_
        assert_allclose(one.explained_, whole.explained_, atol=0.01)
        assert_allclose(one.score(X), -one.inertia_)


@pytest.mark.usefixtures("short")
def test_far_rows_with_an_intercept():
    X = planted()
    near, far = (in_blocks(KFeatures(3, base="intercept", n_init=2), X + shift) for shift in (0.0, 2.0**20))
    assert_allclose(far.inertia_, near.inertia_, rtol=1e-3)
    assert_allclose(far.explained_, near.explained_, atol=1e-3)
    with pytest.raises(ValueError, match="too far from the origin"):
        in_blocks(KFeatures(3), X + 1e9)


@pytest.mark.usefixtures("short")
def test_a_model_goes_anywhere(tmp_path):
    X = planted()
    model = in_blocks(BPMeans(400.0, n_init=1), X)
    model.save(tmp_path / "model.kfree")
    for again in (pickle.loads(pickle.dumps(model)), kfree.load(tmp_path / "model.kfree")):
        assert_array_equal(again.transform(X), model.Z_)
        assert again.explain() == model.explain()


@pytest.mark.usefixtures("short")
def test_errors_name_the_way_out():
    X = planted()
    for asked in ({"algorithm": "paper"}, {"row": "coordinate"}, {"init": np.ones((600, 3))}):
        with pytest.raises(ValueError, match=r"kfree\.read"):
            in_blocks(KFeatures(3, **asked), X)
    with pytest.raises(ValueError, match="collapsed"):
        in_blocks(BPMeans(400.0, algorithm="collapsed"), X)
    with pytest.raises(ValueError, match=r"kfree\.read"):
        in_blocks(KFeatures(3, n_init=1), X).canonicalize()
    with pytest.raises(ValueError, match="Block 2"):
        in_blocks(KFeatures(3), np.where(np.arange(600)[:, None] == 150, np.nan, X))
    with pytest.raises(ValueError, match="too large"):
        in_blocks(KFeatures(3), 1e150 * X)
    with pytest.raises(ValueError, match="zero for every row"):
        in_blocks(KFeatures(3), X, np.zeros(600))
    with pytest.raises(ValueError, match="adds up to"):
        in_blocks(KFeatures(3), X, np.r_[1e-17, np.ones(599)])


@pytest.mark.usefixtures("short")
def test_the_best_so_far_is_kept():
    X = planted()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kfree.rows.blocks.NearBlocks.ask", _interrupted(NearBlocks.ask))
        model = in_blocks(KFeatures(3, n_init=1), X)
    assert not model.converged_
    assert_array_equal(model.Z_, model.transform(X))
    assert not in_blocks(KFeatures(3, max_time=0.0), X).converged_


def _interrupted(honest):
    passes = []

    def ask(self, question, arguments, merge):
        if question is pass_rows:
            passes.append(question)
            if len(passes) == 2:
                raise KeyboardInterrupt
        return honest(self, question, arguments, merge)

    return ask
