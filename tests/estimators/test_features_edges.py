"""Features at the ends of what float64 holds: uneven weights, huge and tiny rows and prices, no time at all."""

import re
import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import kfree.inference.features.isometry as reduce_module
from kfree import BPMeans, KFeatures, StepwiseKFeatures, lam_for_n_components
from kfree.estimators._features import BinaryFeatures
from kfree.inference.features.allocation import independent, settle, solve
from kfree.inference.features.careful_bp import careful_rows
from kfree.inference.features.feature_goal import FeatureGoal
from kfree.inference.features.feature_moves import removal_costs, without
from kfree.inference.features.feature_numbers import FEATURES
from kfree.inference.features.feature_table import FeatureTable
from kfree.inference.loop import Budget
from kfree.kernels import kernels
from support.slow_features import draw_features, keep_first

SEEDS = st.integers(0, 2**20)
HOSTILE = [0, 1, 2, 0.5, 1e-8, 1e6]


def names(estimator):
    return repr(estimator)


@pytest.mark.parametrize(
    "estimator",
    [KFeatures(2), KFeatures(2, algorithm="paper"), BPMeans(5.0), BPMeans(5.0, algorithm="collapsed")],
    ids=names,
)
def test_weights_may_be_a_column_of_a_table(estimator):
    X, w = draw_features(np.random.default_rng(0), n=30, weighted=True)
    column = np.column_stack([w, w])[:, 0]
    assert_array_equal(clone(estimator).fit(X, sample_weight=column).Z_, clone(estimator).fit(X, sample_weight=w).Z_)


def test_a_column_that_only_a_light_row_tells_apart_is_solved_for():
    X, Z = np.array([[1.0], [1.0], [3e8]]), np.array([[1, 1], [1, 1], [1, 0]], np.uint8)
    found = solve(FeatureTable(X, np.array([1e6, 1e6, 1e-8])), Z)
    assert found.keep.all()
    assert found.inertia < 1e-6  # 9e8 without the second column
    assert_allclose(found.means.A, [[3e8], [1 - 3e8]])


@given(SEEDS, st.booleans())
def test_solves_with_uneven_weights_leave_what_exact_ones_leave(seed, intercept):
    rng = np.random.default_rng(seed)
    n, K, weight = 12, 4, 10.0 ** rng.uniform(-7, 7, 12)
    X, Z = rng.normal(size=(n, 2)) * 10.0 ** rng.uniform(-3, 5, (n, 1)), rng.integers(2, size=(n, K), dtype=np.uint8)
    table = FeatureTable(X, weight, intercept=intercept)
    # least squares, scaled by columns, in extended precision: modified Gram-Schmidt, twice
    z = np.hstack([np.ones((n, int(intercept))), Z]).astype(np.longdouble)
    z = z[:, keep_first(z.astype(int))] * np.sqrt(weight.astype(np.longdouble))[:, None]
    rest = X * np.sqrt(weight.astype(np.longdouble))[:, None]
    for _ in range(2):
        for k in range(z.shape[1]):
            z[:, k] /= np.sqrt((z[:, k] ** 2).sum())
            z[:, k + 1 :] -= np.outer(z[:, k], z[:, k] @ z[:, k + 1 :])
            rest -= np.outer(z[:, k], z[:, k] @ rest)
    assert abs(solve(table, Z).inertia - float((rest**2).sum())) < 1e-9 * table.total


@pytest.mark.parametrize(
    "model",
    [
        KFeatures(4, n_init=1),
        KFeatures(3, n_init=1, algorithm="paper", base="intercept"),
        BPMeans(1.0, n_init=1),
        BPMeans(1.0, n_init=1, algorithm="paper"),
        BPMeans(1.0, n_init=1, algorithm="collapsed"),
        BPMeans(1.0, n_init=1, algorithm="collapsed", row="coordinate", base="intercept"),
        StepwiseKFeatures(1.0, n_init=1, max_components=6),
    ],
    ids=names,
)
@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_no_objective_rises_whatever_the_weights(model, seed):
    rng = np.random.default_rng(seed)
    n, p = int(rng.choice([3, 10, 25])), int(rng.choice([1, 3, 8]))
    X = rng.standard_cauchy((n, p)) * 10.0 ** rng.integers(0, 9, (n, 1))
    weight = rng.choice(HOSTILE, n) if seed % 2 else 10.0 ** rng.uniform(-7, 7, n)
    weight[0] = 1.0
    fitted = clone(model).fit(X, sample_weight=weight)  # or ObjectiveRose
    left = weight @ ((X - fitted.inverse_transform(fitted.Z_)) ** 2).sum(axis=1)
    assert_allclose(fitted.inertia_, left, rtol=1e-6, atol=1e-9 * (weight @ (X**2).sum(axis=1)))


@pytest.mark.parametrize("exact", [True, False])
@given(SEEDS, st.integers(0, 4), st.sampled_from([np.inf, 0.3, 3.0]), st.booleans())
def test_careful_visits_are_the_compiled_ones(exact, seed, K, price, intercept):
    rng = np.random.default_rng(seed)
    n, fixed = 9, int(intercept)
    X, weight = rng.normal(size=(n, 3)), rng.uniform(0.5, 2, size=n)
    Z = np.hstack([np.ones((n, fixed), np.uint8), rng.integers(2, size=(n, K), dtype=np.uint8)])
    Z = np.ascontiguousarray(Z[:, keep_first(Z)])
    table, goal = FeatureTable(X, weight, intercept=intercept), FeatureGoal("collapsed")
    goal = goal._replace(rule=goal.rule._replace(exact=exact))
    S, T = table.sums(Z, bordered=False)
    M, A, G = np.zeros_like(S), np.zeros_like(T), np.zeros_like(S)
    assert kernels().rebuild(S, T, M, A, G)
    ours, theirs, go_on = Z.copy(), Z.copy(), np.zeros(1, bool)
    found = careful_rows(table, X, goal, price, go_on, 0, ours)
    twin = kernels().collapsed_rows(X, weight, table.square, price, fixed, exact, go_on, 0, theirs, S, T, M, A, G)
    assert found == twin
    assert_array_equal(ours, theirs)


@given(SEEDS)
def test_what_a_feature_saves_does_not_hang_on_how_it_is_found(seed):
    X, weight = draw_features(np.random.default_rng(seed), n=20, weighted=True)
    table = FeatureTable(X, weight)
    state = settle(table, np.random.default_rng(seed).integers(2, size=(20, 4), dtype=np.uint8))
    by_trial = [without(table, state, k).inertia - state.inertia for k in range(state.K)]
    assert_allclose(removal_costs(table, state), by_trial, atol=1e-9 * table.total)
    table.uneven = True
    assert_allclose(removal_costs(table, state), by_trial, atol=1e-9 * table.total)


def test_the_rank_of_many_columns_is_found_at_once():
    rng = np.random.default_rng(0)
    Z = rng.integers(2, size=(3000, 80))
    Z[:, 30], Z[:, 61] = Z[:, 3] + Z[:, 7] - Z[:, 3] * Z[:, 7], Z[:, 5]
    Z[:, 79] = Z[:, 0]
    began = time.perf_counter()
    assert_array_equal(np.flatnonzero(~independent(Z.T @ Z)), [61, 79])
    assert time.perf_counter() - began < 2  # half an hour in fractions


@pytest.mark.parametrize("scale", [1e-200, 1e150])
def test_the_unit_of_the_weights_does_not_matter(scale):
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(12, 3)), rng.uniform(0.5, 1, 12)
    for algorithm in ("extended", "paper", "collapsed"):
        plain = BPMeans(0.3, algorithm=algorithm, n_init=1).fit(X, sample_weight=weight)
        other = BPMeans(0.3 * scale, algorithm=algorithm, n_init=1).fit(X, sample_weight=weight * scale)
        assert_array_equal(plain.Z_, other.Z_)
        assert_allclose(other.objective_trace_, plain.objective_trace_ * scale, rtol=1e-9)


@pytest.mark.parametrize("model", [KFeatures(2), BPMeans(1.0), StepwiseKFeatures(1.0)], ids=names)
def test_ends_of_the_range_are_errors_that_say_so(model):
    X = np.random.default_rng(0).normal(size=(8, 3))
    with pytest.raises(ValueError, match=r"smallest positive entry is 1e-12.* a ratio of 1e\+16.*set them to 0"):
        model.fit(X, sample_weight=np.repeat([1e-12, 1e6], 4))
    model.fit(X, sample_weight=np.repeat([1e-9, 1e6], 4))
    for rows in (np.full((4, 2), 1e200), np.array([[1.7e308, -1.7e308]]), sp.csr_matrix([[1.7e308, 0.0]])):
        with pytest.raises(ValueError, match=r"Divide X by 1(.7)?e\+"):
            model.fit(rows)
        other = clone(model).fit(X[:, :2])
        for ask in (other.transform, other.score):
            with pytest.raises(ValueError, match="too large for float64"):
                ask(rows)
    with pytest.raises(ValueError, match=r"float64 can work with 1e-290 to 1e\+296.*Divide X by"):
        model.fit(X * 1e-160)
    with pytest.raises(ValueError, match="weighted squares of X overflow"):
        clone(model).fit(X).score(X * 1e100, sample_weight=np.full(8, 1e200))
    fitted = clone(model).fit(X * 1e100)
    with pytest.raises(ValueError, match="Pass 0 and 1"):
        fitted.inverse_transform(np.full((1, fitted.n_components_), 1e300))


@pytest.mark.parametrize("model", [BPMeans, StepwiseKFeatures])
def test_prices_that_cannot_be_paid_twice_are_errors_that_say_so(model):
    X = np.random.default_rng(0).normal(size=(8, 3))
    with pytest.raises(ValueError, match=r"lam=1e\+308 is more than float64 can work with here, 1e\+296"):
        model(1e308).fit(X)
    assert model(1e295, n_init=1).fit(X).n_components_ == 0


def test_rows_without_numbers_of_their_own_have_no_features():
    assert BPMeans(1.0).fit(np.zeros((40, 50))).n_components_ == 0
    assert KFeatures(3, n_init=1, algorithm="paper").fit(np.zeros((60, 50))).inertia_ == 0


def test_means_beyond_single_precision_are_kept_in_double():
    X = np.array([[3e38], [-3e38]], np.float32)
    model = KFeatures(2, algorithm="paper", init=np.array([[1, 1], [0, 1]])).fit(X)
    assert_allclose(np.sort(model.components_[:, 0]), [-3e38, 6e38], rtol=1e-6)


def test_sparse_rows_of_single_precision_are_multiplied_in_double(monkeypatch):
    monkeypatch.setattr(reduce_module, "FEATURES", FEATURES._replace(dense_entries=0))
    rng = np.random.default_rng(0)
    X = sp.csr_matrix((rng.integers(2, size=(20, 2)) @ rng.normal(size=(2, 40)) * 1e30).astype(np.float32))
    assert KFeatures(2, n_init=2).fit(X).explained_ == pytest.approx(1.0)
    with pytest.raises(ValueError, match="too far from the origin"):
        KFeatures(2).fit(sp.csr_matrix(rng.normal(size=(20, 40)) + 1e9))


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (KFeatures(30, algorithm="paper", n_init=1), (2000, 3)),
        (KFeatures(20, n_init=1), (3000, 2)),
        (BPMeans(0.01, n_init=1, init="empty", row="exact", algorithm="paper"), (2000, 3)),
        (BPMeans(0.1, n_init=1, algorithm="collapsed"), (1500, 20)),
        (StepwiseKFeatures(1e-3, n_init=1, algorithm="paper"), (2000, 2)),
    ],
    ids=lambda some: repr(some),
)
def test_every_phase_keeps_to_the_time(model, shape):
    X = np.random.default_rng(0).normal(size=shape)
    weight = np.repeat([0.0, 1.0], [100, shape[0] - 100])
    with pytest.warns(ConvergenceWarning):
        clone(model).set_params(max_time=0.0).fit(X[:30])  # compiled before the clock starts
    began = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        clone(model).set_params(max_time=0.3).fit(X, sample_weight=weight)
    assert time.perf_counter() - began < 2.5


@pytest.mark.parametrize("algorithm", ["paper", "extended"])
def test_a_path_that_the_clock_has_cut_is_not_converged(algorithm):
    X = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.warns(ConvergenceWarning, match="max_time=0 s"):
        assert not StepwiseKFeatures(algorithm=algorithm, max_time=0).fit(X).converged_


def test_passes_are_told_as_they_are_counted(capsys):
    model = KFeatures(3, algorithm="paper", n_init=1, verbose=2).fit(np.random.default_rng(0).normal(size=(40, 3)))
    assert len(re.findall(r"pass \d+", capsys.readouterr().out)) == model.n_iter_


def test_an_interrupt_while_results_are_written_does_not_lose_them(monkeypatch):
    write, times = BinaryFeatures._publish_model, []

    def interrupted(self, *what):
        times.append(1)
        if len(times) == 1:
            raise KeyboardInterrupt
        write(self, *what)

    monkeypatch.setattr(BinaryFeatures, "_publish_model", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        assert KFeatures(2).fit(np.eye(5)).components_.shape == (2, 5)


@pytest.mark.parametrize("scale", [1e-140, 1e140])
def test_a_price_for_a_number_of_features_has_the_units_of_the_data(scale):
    X = np.random.default_rng(3).integers(2, size=(40, 3)) @ (5 * np.eye(3, 6))
    X += np.random.default_rng(4).normal(size=X.shape) / 5
    lam, other = lam_for_n_components(X, 3), lam_for_n_components(X * scale, 3)
    assert other == pytest.approx(lam * scale**2, rel=1e-6)


def test_a_budget_tells_compiled_loops_that_the_time_is_up():
    budget = Budget(0.05)
    assert not budget.stop[0]
    time.sleep(0.3)
    assert budget.stop[0]
    assert budget.spent
    assert not Budget().stop[0]


def test_means_of_the_least_single_precision_rows_keep_their_digits():
    X = (np.random.default_rng(0).normal(size=(40, 1)) * 1e-42).astype(np.float32)
    model = KFeatures(2, random_state=0).fit(X)
    assert model.components_.dtype == np.float64
    assert_allclose(model.objective_trace_[-1], model.objective_, rtol=1e-9)
    assert KFeatures(2, random_state=0).fit(X * np.float32(1e35)).components_.dtype == np.float32
