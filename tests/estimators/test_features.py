"""BPMeans, KFeatures and StepwiseKFeatures as scikit-learn estimators: behaviour, edges, bad input, known marks."""

import gc
import signal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import kfree.inference.features.feature_moves as moves_module
import kfree.inference.features.feature_sample as sample_module
import kfree.inference.features.isometry as reduce_module
from kfree import BPMeans, KFeatures, StepwiseKFeatures, lam_for_n_components
from kfree.inference.features.feature_numbers import FEATURES
from support.slow_features import draw_features, inertia

ROUGH = "starts are drawn row by row: other copies of a row lead to another local or an equivalent optimum"
WEIGHTS = {f"check_sample_weight_equivalence_on_{kind}_data": ROUGH for kind in ("dense", "sparse")}
CHECKED = {
    KFeatures(2): {},
    KFeatures(3, algorithm="paper", row="coordinate"): WEIGHTS,
    KFeatures(2, base="intercept"): WEIGHTS,
    BPMeans(60.0, n_init=2): {},
    BPMeans(2.0, algorithm="paper"): WEIGHTS,
    BPMeans(2.0, algorithm="collapsed"): WEIGHTS,
    StepwiseKFeatures(60.0, n_init=1): {},
}
MODELS = [
    KFeatures(2, n_init=2),
    BPMeans(3.0, n_init=2),
    BPMeans(3.0, algorithm="paper"),
    BPMeans(3.0, algorithm="collapsed"),
    StepwiseKFeatures(3.0, n_init=1),
    BPMeans(n_init=1),
    StepwiseKFeatures(n_init=1),
]


def names(estimator):
    return repr(estimator)


@parametrize_with_checks(
    list(CHECKED),
    expected_failed_checks=lambda estimator: next(
        why for known, why in CHECKED.items() if repr(known) == repr(estimator)
    ),
)
def test_scikit_learn_is_satisfied(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def table():
    return draw_features(np.random.default_rng(5), n=60, p=6, K=3, noise=0.2)[0]


@pytest.mark.parametrize("model", MODELS, ids=names)
def test_results_have_their_types_and_agree_with_each_other(model, table):
    model = clone(model)
    Z = model.fit_transform(table)
    K = model.n_components_
    assert Z.dtype == model.transform(table).dtype == np.uint8
    assert_array_equal(Z, model.Z_)
    assert model.components_.shape == (K, 6)
    assert_allclose(model.inverse_transform(Z), Z @ model.components_)
    assert model.inertia_ == pytest.approx(inertia(table, Z, model.components_, np.ones(60)))
    assert model.explained_ == pytest.approx(1 - model.inertia_ / (table**2).sum())
    assert -model.score(table) <= model.inertia_ + 1e-9
    assert model.get_feature_names_out().shape == (K,)
    if hasattr(model, "lam_"):
        assert model.objective_ == pytest.approx(model.inertia_ + model.lam_ * K)
        assert model.lam_share_ == pytest.approx(model.lam_ / (table**2).sum())


@pytest.mark.parametrize("model", MODELS, ids=names)
def test_sparse_rows_and_frames_give_the_same(model, table):
    table = np.where(np.abs(table) < 0.7, 0.0, table)
    plain = clone(model).fit(table)
    for rows in (sp.csr_matrix(table), sp.csc_array(table), np.asfortranarray(table), pd.DataFrame(table)):
        other = clone(model).fit(rows)
        assert_array_equal(plain.Z_, other.Z_)
        assert_allclose(plain.components_, other.components_)
        assert_array_equal(other.transform(rows), plain.transform(table))


@pytest.mark.parametrize("model", [KFeatures(3), BPMeans(20.0), BPMeans(20.0, algorithm="paper")], ids=names)
def test_sparse_rows_too_large_to_be_made_dense_give_the_same(model, table, monkeypatch):
    table = np.where(np.abs(table) < 0.7, 0.0, table)
    plain = clone(model).fit(table)
    monkeypatch.setattr(reduce_module, "FEATURES", FEATURES._replace(dense_entries=10))
    other = clone(model).fit(sp.csr_matrix(table))
    assert other.objective_ == pytest.approx(plain.objective_)
    assert_allclose(other.Z_ @ other.components_, plain.Z_ @ plain.components_, atol=1e-8)


@pytest.mark.parametrize("model", MODELS, ids=names)
def test_single_precision_is_kept_in_the_means(model, table):
    model = clone(model).fit(table.astype(np.float32))
    assert model.components_.dtype == model.inverse_transform(model.Z_).dtype == np.float32
    assert model.objective_ == pytest.approx(clone(model).fit(table).objective_, rel=1e-3)


@pytest.mark.parametrize("model", [KFeatures(3), BPMeans(3.0), StepwiseKFeatures(3.0)], ids=names)
def test_the_number_of_jobs_does_not_matter(model, table):
    one, two = (clone(model).set_params(n_jobs=jobs, random_state=3).fit(table) for jobs in (1, 2))
    assert_array_equal(one.Z_, two.Z_)
    assert_array_equal(one.components_, two.components_)
    assert [restart.objective for restart in one.restarts_] == [restart.objective for restart in two.restarts_]


def test_long_tables_are_searched_on_a_sample(monkeypatch):
    rng = np.random.default_rng(0)
    A = 3 * rng.normal(size=(4, 12))
    X = rng.integers(2, size=(3000, 4)) @ A + 0.2 * rng.normal(size=(3000, 12))
    monkeypatch.setattr(sample_module, "FEATURES", FEATURES._replace(sample_entries=6000))
    for model in (KFeatures(4, n_init=3), BPMeans(1000.0, n_init=3), StepwiseKFeatures(1000.0, n_init=2)):
        model.fit(X)
        assert model.n_components_ == 4
        assert model.inertia_ == pytest.approx(3000 * 12 * 0.04, rel=0.05)
        assert_array_equal(model.transform(X), model.Z_)
        assert clone(model).fit(X, sample_weight=rng.integers(1, 4, size=3000)).n_components_ == 4


def test_heavy_rows_do_not_empty_the_sample(monkeypatch):
    rng = np.random.default_rng(0)
    A = 3 * rng.normal(size=(4, 12))
    X = rng.integers(2, size=(3000, 4)) @ A + 0.2 * rng.normal(size=(3000, 12))
    monkeypatch.setattr(sample_module, "FEATURES", FEATURES._replace(sample_entries=6000))
    for w in (np.where(np.arange(3000) == 7, 1e7, 1.0), rng.pareto(0.7, size=3000) + 0.01):
        model = KFeatures(4, n_init=3).fit(X, sample_weight=w)
        assert model.inertia_ <= 1.2 * 12 * 0.04 * w.sum()
        assert -model.score(X) <= 3 * 12 * 0.04 * 3000


def test_short_wide_sparse_rows_are_searched_in_few_columns():
    S = sp.random(60, 60_000, density=0.002, random_state=0, format="csr")
    wide, narrow = KFeatures(3, n_init=2).fit(S), KFeatures(3, n_init=2).fit(S[:, np.unique(S.indices)].toarray())
    assert wide.inertia_ == pytest.approx(narrow.inertia_, rel=0.02)
    assert wide.components_.shape == (3, 60_000)


def test_wide_sparse_rows_are_searched_without_being_made_dense(monkeypatch):
    rng = np.random.default_rng(0)
    A = 3 * rng.normal(size=(4, 40)) * (rng.random((4, 40)) < 0.5)
    X = rng.integers(2, size=(700, 4)) @ A
    monkeypatch.setattr(sample_module, "FEATURES", FEATURES._replace(sample_entries=6000))
    dense = KFeatures(4, n_init=3).fit(X)
    monkeypatch.setattr(reduce_module, "FEATURES", FEATURES._replace(dense_entries=0))
    monkeypatch.setattr(moves_module, "FEATURES", FEATURES._replace(polish_entries=0))
    for model in (KFeatures(4, n_init=3), BPMeans(100.0, n_init=3), StepwiseKFeatures(100.0, n_init=2)):
        model.fit(sp.csr_array(X))
        assert model.n_components_ == 4
        assert model.inertia_ == pytest.approx(dense.inertia_, abs=1e-6)
        assert_array_equal(model.transform(sp.csr_array(X)), model.Z_)


def test_an_allocation_to_start_from_may_be_sparse(table):
    Z = np.random.default_rng(0).integers(2, size=(len(table), 2))
    a, b = (KFeatures(2, init=init).fit(table) for init in (Z, sp.csr_array(Z)))
    assert_array_equal(a.Z_, b.Z_)


@pytest.mark.parametrize("model", MODELS, ids=names)
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (5, 1), (2, 3)])
def test_tiny_tables_work(model, shape):
    X = np.random.default_rng(1).normal(size=shape) * 4
    model = clone(model).fit(X)
    assert model.Z_.shape == (shape[0], model.n_components_)
    assert np.isfinite(model.components_).all()
    assert model.transform(X).shape == model.Z_.shape


@pytest.mark.parametrize("model", MODELS, ids=names)
def test_zeros_have_no_features_and_equal_rows_at_most_one(model):
    zero = clone(model).fit(np.zeros((6, 3)))
    assert zero.inertia_ == 0
    assert zero.n_components_ == (2 if isinstance(model, KFeatures) else 0)
    assert zero.transform(np.zeros((2, 3))).shape == (2, zero.n_components_)
    same = clone(model).fit(np.tile([[3.0, 1.0, 4.0]], (6, 1)))
    assert same.inertia_ == pytest.approx(0.0, abs=1e-18)
    assert (same.counts_ > 0).sum() == 1


@pytest.mark.parametrize("algorithm", ["extended", "paper", "collapsed"])
def test_a_price_above_the_sum_of_squares_buys_nothing_and_one_near_zero_buys_all(algorithm):
    X = draw_features(np.random.default_rng(2), n=7, p=3)[0]
    nothing = BPMeans(1.01 * (X**2).sum(), algorithm=algorithm, n_init=3).fit(X)
    assert nothing.n_components_ == 0
    assert nothing.Z_.shape == (7, 0)
    assert nothing.objective_ == pytest.approx((X**2).sum())
    assert BPMeans(1e-9, algorithm=algorithm, n_init=3).fit(X).inertia_ <= 1e-7


def test_more_features_than_rows_stay_empty():
    X = draw_features(np.random.default_rng(2), n=4, p=3)[0]
    model = KFeatures(7).fit(X)
    assert model.n_components_ == 7
    assert model.inertia_ == pytest.approx(0.0, abs=1e-18)
    assert (model.counts_ > 0).sum() <= 4
    assert not model.components_[model.counts_ == 0].any()


def test_many_features_are_found_by_the_decoder():
    rng = np.random.default_rng(0)
    Z, A = rng.integers(2, size=(300, 15)), 3 * rng.normal(size=(15, 40))
    X = Z @ A + 0.1 * rng.normal(size=(300, 40))
    model = KFeatures(15, algorithm="paper", init=(Z, A)).fit(X)
    assert_array_equal(np.sort(model.counts_), np.sort(Z.sum(axis=0)))
    assert_array_equal(model.transform(X), model.Z_)


def test_starts_can_be_given():
    X = draw_features(np.random.default_rng(3), n=20)[0]
    Z = np.random.default_rng(0).integers(2, size=(20, 3))
    plain, means = KFeatures(3, init=Z).fit(X), KFeatures(3, init=(Z, np.eye(3, 4))).fit(X)
    assert plain.n_components_ == means.n_components_ == 3
    assert BPMeans(3.0, init=Z).fit(X).objective_ <= BPMeans(3.0, init=Z, algorithm="paper").fit(X).objective_ + 1e-9
    assert BPMeans(3.0, init="empty", algorithm="collapsed").fit(X).n_components_ > 0
    shuffled = BPMeans(3.0, algorithm="paper", init="empty", shuffle=True, n_init=5, random_state=1).fit(X)
    assert len(shuffled.restarts_) == 5


def test_shuffling_visits_a_permuted_table_and_puts_the_rows_back():
    X = draw_features(np.random.default_rng(3), n=20)[0]
    order = np.random.default_rng(0).permutation(20)
    straight = BPMeans(3.0, algorithm="paper", init="empty").fit(X[order])
    assert straight.Z_.shape[0] == 20
    shuffled = BPMeans(3.0, algorithm="paper", init="empty", shuffle=True, n_init=1, random_state=2).fit(X)
    assert shuffled.inertia_ == pytest.approx(inertia(X, shuffled.Z_, shuffled.components_, np.ones(20)))


def test_the_price_is_chosen_and_can_be_asked_for(table):
    model = StepwiseKFeatures(n_init=2).fit(table)
    assert model.n_components_ == 3
    assert model.lam_window_[0] < model.lam_ < model.lam_window_[1]
    lam = lam_for_n_components(table, 3)
    assert BPMeans(lam, n_init=3).fit(table).n_components_ == 3
    assert BPMeans(n_init=2).fit(table).path_.best(lam) == 3
    never = [[0, 0], [0, 3], [-3, 3], [3, -3], [0, 3], [0, -3], [3, 3], [3, -3]]  # inertia 99, 60, 19.8, ...
    with pytest.raises(ValueError, match="No lam makes 1 features best"):
        lam_for_n_components(never, 1)
    with pytest.raises(ValueError, match="need more than 3 rows"):
        lam_for_n_components(np.eye(3), 5)


def test_a_path_can_be_drawn(table):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    left, right = StepwiseKFeatures(3.0, n_init=1).fit(table).path_.plot()
    assert left.get_xlabel() == "number of features"
    assert right.get_xlabel() == "price of a feature (lam)"


def test_noise_has_no_number_of_features_and_a_fit_says_so():
    X = np.random.default_rng(0).normal(size=(60, 10))
    with pytest.warns(UserWarning, match="No number of features stands out"):
        StepwiseKFeatures(n_init=1, max_components=6).fit(X)


def test_limits_of_passes_and_time_are_kept(table):
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        KFeatures(3, algorithm="paper", max_iter=1, n_init=1).fit(table)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        BPMeans(3.0, max_time=0.0).fit(table)


@pytest.mark.parametrize(
    "model",
    [
        KFeatures(6, n_init=2000, n_jobs=2),
        BPMeans(40.0, n_init=2000),
        BPMeans(40.0, n_init=2000, n_jobs=2),
        BPMeans(40.0, n_init=20_000, algorithm="collapsed"),
        StepwiseKFeatures(0.01, n_init=500, n_jobs=2),
    ],
    ids=lambda model: f"{type(model).__name__}-{model.algorithm}-{model.n_jobs}",
)
def test_a_signal_ends_a_fit_with_what_there_is(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12))
    clone(model).set_params(n_init=1, max_time=0.2).fit(X)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    gc.disable()  # what hypothesis has the collector call swallows an interrupt that comes just then
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.4)
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            model = clone(model).set_params(max_time=60.0).fit(X)
    finally:
        gc.enable()
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert model.Z_.shape == (200, model.n_components_)
    assert_allclose(model.inertia_, ((X - model.inverse_transform(model.Z_)) ** 2).sum(), rtol=1e-9)


@pytest.mark.parametrize("offset", [1e5, 1e6])
def test_features_far_from_the_origin_are_found(offset):
    rng = np.random.default_rng(3)
    Z, A = rng.integers(2, size=(60, 3)), 3 * rng.normal(size=(3, 6))
    X = Z @ A + 0.2 * rng.normal(size=(60, 6))
    near, far = KFeatures(3, base="intercept").fit(X), KFeatures(3, base="intercept").fit(X + offset)
    assert_allclose(far.inertia_, near.inertia_, rtol=1e-6)
    assert_array_equal(far.Z_, near.Z_)
    assert_allclose(far.score(X + offset), -far.inertia_, rtol=1e-6)
    assert_allclose(KFeatures(4).fit(X + offset).inertia_, near.inertia_, rtol=1e-6)
    assert BPMeans(100.0, base="intercept").fit(X + offset).n_components_ == 3


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_the_chosen_price_has_the_units_of_the_data(scale):
    rng = np.random.default_rng(3)
    X = rng.integers(2, size=(60, 3)) @ (3 * rng.normal(size=(3, 6))) + 0.2 * rng.normal(size=(60, 6))
    plain, scaled = (StepwiseKFeatures(n_init=2).fit(data) for data in (X, X * scale))
    assert scaled.n_components_ == plain.n_components_
    assert_allclose(scaled.lam_, plain.lam_ * scale**2, rtol=1e-6)


def test_small_prices_keep_to_the_time():
    X = np.random.default_rng(0).normal(size=(3000, 10))
    for algorithm in ("paper", "extended"):
        with pytest.warns(ConvergenceWarning):
            model = BPMeans(1e-6, algorithm=algorithm, n_init=1, max_time=0.3).fit(X)
        assert model.n_components_ >= 1


def test_an_interrupt_keeps_the_best_so_far(table, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(moves_module, "_trial", interrupt)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = KFeatures(3).fit(table)
    assert model.Z_.shape == (60, 3)


def test_restarts_are_printed_if_asked(table, capsys):
    KFeatures(2, n_init=2, verbose=1).fit(table)
    assert capsys.readouterr().out.count("[KFeatures] restart") == 2
    BPMeans(3.0, n_init=1, verbose=2, algorithm="paper").fit(table)
    assert "BP-means, pass 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: KFeatures(0), ValueError, "n_components must be >= 1"),
        (lambda: KFeatures(2.5), TypeError, "n_components must be an integer"),
        (lambda: KFeatures(row="best"), ValueError, "Unknown row 'best'"),
        (lambda: KFeatures(algorithm="collapsed"), ValueError, "Unknown algorithm 'collapsed'"),
        (lambda: KFeatures(base="mean"), ValueError, "Unknown base 'mean'"),
        (lambda: KFeatures(n_init=0), ValueError, "n_init must be >= 1"),
        (lambda: KFeatures(init="random"), ValueError, "Unknown init 'random'"),
        (lambda: KFeatures(2, init=np.ones((3, 2))), ValueError, "init has shape"),
        (lambda: KFeatures(2, init=np.full((8, 2), 0.5)), ValueError, "zeros and ones"),
        (lambda: KFeatures(2, init=np.ones((8, 3))), ValueError, "init has 3 columns"),
        (lambda: KFeatures(2, init=(np.ones((8, 2)), np.ones((2, 9)))), ValueError, "The means in init"),
        (lambda: BPMeans(0.0), ValueError, "lam must be > 0"),
        (lambda: BPMeans("best"), ValueError, "Unknown lam 'best'"),
        (lambda: BPMeans(np.nan), ValueError, "lam must be > 0"),
        (lambda: BPMeans(np.inf), ValueError, "lam must be finite"),
        (lambda: BPMeans(1.0, max_iter=0), ValueError, "max_iter must be >= 1"),
        (lambda: StepwiseKFeatures(1.0, patience=0), ValueError, "patience must be >= 1"),
        (lambda: StepwiseKFeatures(1.0, max_components=0), ValueError, "max_components must be >= 1"),
        (lambda: KFeatures(2, n_jobs=0), ValueError, "n_jobs must not be 0"),
        (lambda: KFeatures(2, verbose="a"), TypeError, "verbose must be an integer"),
        (lambda: BPMeans(1.0, verbose=None), TypeError, "verbose must be an integer"),
        (lambda: BPMeans(1.0, shuffle="no"), TypeError, "shuffle must be True or False"),
    ],
)
def test_parameters_out_of_range_are_errors_that_say_so(make, error, message):
    with pytest.raises(error, match=message):
        make().fit(np.arange(24.0).reshape(8, 3))


@pytest.mark.parametrize("value", [0.1, 1e8, 1e-30])
def test_equal_rows_have_one_mean_however_far_away(value):
    model = BPMeans(1e-70).fit(np.full((7, 3), value))
    assert model.n_components_ == 1
    np.testing.assert_allclose(model.components_, value)
    np.testing.assert_allclose(KFeatures(1, algorithm="paper").fit(np.full((50_000, 3), value)).components_, value)


def test_data_that_cannot_be_used_are_errors_that_say_so(table):
    model = KFeatures(2)
    with pytest.raises(ValueError, match=r"X\[3, 1\] = nan"):
        model.fit(np.where(np.arange(12).reshape(6, 2) == 7, np.nan, 1.0))
    with pytest.raises(ValueError, match="Divide X by"):
        model.fit(np.full((4, 2), 1e200))
    with pytest.raises(ValueError, match=r"too far from the origin.*base='intercept'"):
        model.fit(table + 1e8)
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(table, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match=r"Z has 5 columns, but there are 2"):
        model.fit(table).inverse_transform(np.ones((2, 5)))
