"""HDPMeans as its users meet it, and what they are told when something is wrong."""

import datetime
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import normalized_mutual_info_score

from kfree import DPMeans, HDPMeans
from support.slow_clusters import same_partition


def grouped(J=60, each=40, p=4, K=8, hold=3, separation=4.0, seed=0):
    """Unit Gaussians of which every group has a few; the closest centres are ``separation`` apart."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=(K, p))
    gaps = np.sqrt(((mean[:, None] - mean) ** 2).sum(axis=2))[np.triu_indices(K, 1)]
    groups = np.repeat(np.arange(J), each)
    mine = np.argsort(rng.random((J, K)), axis=1)[:, :hold]
    truth = mine[groups, rng.integers(hold, size=groups.size)]
    X = mean[truth] * separation / gaps.min() + rng.normal(size=(groups.size, p))
    order = rng.permutation(groups.size)
    return X[order], groups[order], truth[order]


def test_defaults_find_the_clusters_and_who_holds_them():
    X, groups, truth = grouped()
    model = HDPMeans().fit(X, groups=groups)
    assert model.n_clusters_ == 8
    assert model.n_local_clusters_ == len(set(zip(groups.tolist(), truth.tolist())))
    alone = DPMeans().fit(X)
    assert normalized_mutual_info_score(truth, model.labels_) > normalized_mutual_info_score(truth, alone.labels_)
    assert normalized_mutual_info_score(truth, model.labels_) > 0.98


@pytest.mark.parametrize(("J", "each", "hold"), [(10, 800, 3), (800, 10, 2), (40, 100, 8), (60, 60, 1)])
def test_auto_penalties_suit_few_large_and_many_small_groups(J, each, hold):
    X, groups, truth = grouped(J, each, hold=hold, separation=4.5, seed=J)
    model = HDPMeans().fit(X, groups=groups)
    assert model.n_clusters_ == 8
    assert normalized_mutual_info_score(truth, model.labels_) > 0.97
    assert_allclose(model.n_local_clusters_, len(set(zip(groups.tolist(), truth.tolist()))), rtol=0.03)


def test_data_without_gaps_are_one_cluster_with_a_warning():
    X = np.random.default_rng(0).normal(size=(1500, 3))
    with pytest.warns(UserWarning, match="all rows are one cluster"):
        model = HDPMeans().fit(X, groups=np.arange(1500) % 20)
    assert model.n_clusters_ == 1
    assert model.n_local_clusters_ == 20


def test_published_tables_agree_with_each_other():
    X, groups, _ = grouped()
    w = np.random.default_rng(0).integers(0, 3, size=len(X)).astype(float)
    names = np.array([f"site {g:02d}" for g in groups])
    model = HDPMeans(12.0, 40.0, random_state=0).fit(X, groups=names, sample_weight=w)
    assert_array_equal(model.groups_, np.unique(names))
    table = np.zeros(model.group_clusters_.shape)
    np.add.at(table, (groups, model.labels_), w)
    assert_allclose(model.group_clusters_.toarray(), table)
    assert model.group_clusters_.nnz == model.n_local_clusters_ == (table > 0).sum()
    assert_allclose(model.cluster_weights_, table.sum(axis=0))
    counted = w > 0
    local = np.array([np.searchsorted(np.flatnonzero(table[g]), k) for g, k in zip(groups, model.labels_)])
    assert_array_equal(model.local_labels_[counted], local[counted])
    assert (model.local_labels_[~counted] == -1).all()
    assert model.n_features_in_ == 4


@pytest.mark.parametrize(
    "name",
    [
        lambda g: g,
        lambda g: [f"group {j}" for j in g],
        lambda g: np.array([f"group {j}" for j in g], object),
        lambda g: g * 1000 - 7,
        lambda g: g + 0.5,
        lambda g: pd.Series(g, index=np.arange(len(g))[::-1]),
        lambda g: pd.Categorical([f"c{j}" for j in g]),
        lambda g: pl.Series("g", g),
        lambda g: [("year", int(j)) for j in g],
        lambda g: [datetime.date(2020, 1, 1) + datetime.timedelta(int(j)) for j in g],
        lambda g: np.datetime64("2020-01-01") + g,
        lambda g: [int(j) if j % 2 else str(j) for j in g],
    ],
    ids=[
        "int",
        "list",
        "object",
        "sparse",
        "float",
        "pandas",
        "categorical",
        "polars",
        "tuple",
        "date",
        "datetime64",
        "mixed",
    ],
)
def test_groups_may_have_any_names(name):
    X, groups, _ = grouped(J=12, each=30)
    reference = HDPMeans(12.0, 40.0, order="index").fit(X, groups=groups)
    named = name(groups)
    model = HDPMeans(12.0, 40.0, order="index").fit(X, groups=named)
    assert model.groups_.shape == (12,)
    assert_array_equal(model.predict(X, groups=named), model.labels_)
    if not isinstance(named, list) or isinstance(named[0], datetime.date | tuple):
        numbers = [int("".join(filter(str.isdigit, str(label)))) for label in model.groups_]
        if numbers == sorted(numbers):  # the order of the names is that of the numbers
            assert_array_equal(model.labels_, reference.labels_)


def test_rows_of_known_unknown_and_no_groups():
    X = np.array([[0.0], [0.2], [5.0], [5.2], [0.1], [9.0], [9.2]])
    model = HDPMeans(1.0, 2.0, random_state=0).fit(X, groups=list("aaaabbb"))
    new = np.array([[4.0], [4.0], [4.0], [9.1], [6.9]])
    zero, five, nine = model.predict([[0.1], [5.1], [9.1]])
    assert_array_equal(model.predict(new, groups=["a", "b", "c", "a", "b"]), [five, five, five, nine, five])
    # "b" lacks the cluster at 5: at 7 it is nearer by 0.8, less than lam_local, at 6.9 by 1.6
    assert_array_equal(model.predict([[7.0]] * 3, groups=["a", "b", "c"]), [five, nine, five])
    assert_array_equal(model.predict(new), [five, five, five, nine, five])
    assert zero == 0


def test_a_fit_without_groups_is_one_group():
    X, _, _ = grouped(J=10)
    model = HDPMeans(12.0, 40.0, random_state=0).fit(X)
    same = HDPMeans(12.0, 40.0, random_state=0).fit(X, groups=np.zeros(len(X), int))
    assert_array_equal(model.labels_, same.labels_)
    assert_array_equal(model.predict(X), model.labels_)
    assert model.group_clusters_.shape == (1, model.n_clusters_)


def test_labels_equal_predict_wherever_a_fit_stops():
    X, groups, _ = grouped(separation=2.0, seed=3)
    w = np.random.default_rng(0).uniform(0.0, 2.0, size=len(X)).round(1)
    stops = ({"max_iter": 1}, {"max_iter": 2}, {"tol": 0.5}, {"max_time": 0.0}, {"search": "full", "max_iter": 1})
    for options in stops:
        for weight in (None, w):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = HDPMeans(4.0, 6.0, random_state=0, **options).fit(X, groups=groups, sample_weight=weight)
            assert_array_equal(model.predict(X, groups=groups), model.labels_)
            assert (np.diff(model.objective_trace_) <= 1e-9 * model.objective_).all()


def test_score_decision_and_transform_agree():
    X, groups, _ = grouped(J=20)
    model = HDPMeans(12.0, 40.0, random_state=0).fit(X, groups=groups)
    far = model.transform(X)
    own = far[np.arange(len(X)), model.labels_]
    assert_allclose(model.score(X, groups=groups), -own.mean())
    assert_allclose(model.decision_function(X, groups=groups), 52.0 - own)
    assert_allclose(model.decision_function(X), 40.0 - far.min(axis=1))
    assert (model.decision_function(X + 100.0, groups=groups) < 0).all()
    assert_allclose(HDPMeans(12.0, 40.0, random_state=0).fit_transform(X, groups=groups), far)
    assert_array_equal(HDPMeans(12.0, 40.0, random_state=0).fit_predict(X, groups=groups), model.labels_)


def test_rows_and_groups_of_weight_zero_are_left_out_and_labelled():
    X, groups, _ = grouped(J=12)
    far = np.concatenate([X, np.full((2, 4), 1e4)])
    more, w = np.append(groups, [3, 99]), np.r_[np.ones(len(X)), 0.0, 0.0]
    for search in ("points", "full"):
        kind = {"search": search, "order": "index"}
        with_them = HDPMeans(12.0, 40.0, **kind).fit(far, groups=more, sample_weight=w)
        without = HDPMeans(12.0, 40.0, **kind).fit(X, groups=groups)
        assert_array_equal(with_them.labels_[: len(X)], without.labels_)
        assert_array_equal(with_them.predict(far, groups=more), with_them.labels_)
        assert with_them.group_clusters_.shape[0] == 13
        assert with_them.group_clusters_[12].nnz == 0


@pytest.mark.parametrize("init", ["auto", "mean", "farthest_first", "k-means++", "array"])
@pytest.mark.parametrize("search", ["points", "full"])
def test_every_start_leads_to_a_fit(init, search):
    X, groups, truth = grouped(J=20, separation=6.0)
    start = np.stack([X[truth == k].mean(axis=0) for k in range(8)]) if init == "array" else init
    model = HDPMeans(12.0, 60.0, init=start, search=search, random_state=0).fit(X, groups=groups)
    assert normalized_mutual_info_score(truth, model.labels_) > (0.99 if search == "full" else 0.9)


def test_search_only_lowers_the_objective_and_more_starts_never_hurt():
    X, groups, _ = grouped(J=20, separation=2.0)
    points = HDPMeans(10.0, 20.0, search="points", random_state=0).fit(X, groups=groups)
    assert HDPMeans(10.0, 20.0, search="full").fit(X, groups=groups).objective_ < points.objective_
    best = HDPMeans(10.0, 20.0, search="points", n_init=4, random_state=0).fit(X, groups=groups)
    assert best.objective_ <= points.objective_


def test_limits_and_habits_are_kept():
    X, groups, _ = grouped(J=20)
    for search in ("points", "full"):
        assert HDPMeans(1.0, 1.0, search=search, max_clusters=5, random_state=0).fit(X, groups=groups).n_clusters_ <= 5
    assert HDPMeans(max_clusters=3).fit(X, groups=groups).n_clusters_ <= 3
    model = HDPMeans(12.0, 40.0, warm_start=True, random_state=0).fit(X, groups=groups)
    before = model.get_params()
    first = model.objective_
    assert model.fit(X, groups=groups).objective_ <= first * (1 + 1e-12)
    best = HDPMeans(12.0, 40.0, search="full", warm_start=True).fit(X, groups=groups)
    first = best.labels_
    assert same_partition(best.fit(X, groups=groups).labels_, first)
    assert best.n_iter_ <= 3
    assert model.get_params() == before == clone(model).get_params()
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(X, groups=groups), model.labels_)
    infinite = HDPMeans(5.0, np.inf, init=X[:6], random_state=0).fit(X, groups=groups)
    assert infinite.n_clusters_ <= 6


def test_the_clock_and_max_iter_end_a_fit_with_a_warning(capsys):
    X, groups, _ = grouped(separation=2.0)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        HDPMeans(4.0, 6.0, max_iter=1, random_state=0, verbose=1).fit(X, groups=groups)
    assert "[HDPMeans] all rows, pass 1" in capsys.readouterr().out
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = HDPMeans(4.0, 6.0, max_time=0.0).fit(X, groups=groups)
    assert model.n_clusters_ == 1


def test_ctrl_c_keeps_the_best_so_far(monkeypatch):
    from kfree.inference.shared import hdp_pass

    X, groups, _ = grouped(separation=2.0)
    calls, plain = [], hdp_pass.three_part_pass

    def stop_in_third(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return plain(*arguments)

    monkeypatch.setattr(hdp_pass, "three_part_pass", stop_in_third)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = HDPMeans(4.0, 6.0, random_state=0).fit(X, groups=groups)
    assert model.n_clusters_ > 1
    assert_array_equal(model.predict(X, groups=groups), model.labels_)


def test_histograms_may_be_weighted_by_length():
    rng = np.random.default_rng(0)
    X, groups = rng.poisson(2.0, size=(200, 6)) + 1, rng.integers(10, size=200)
    model = HDPMeans(1.0, 3.0, divergence="kl", weighting="length", random_state=0).fit(X, groups=groups)
    assert_allclose(model.cluster_weights_.sum(), X.sum())
    assert_array_equal(model.predict(X, groups=groups), model.labels_)


def test_reference_kernels_give_the_same_fit_without_compiled_code():
    code = (
        "import numpy as np, sys; from kfree import HDPMeans\n"
        "rng = np.random.default_rng(0); X = rng.normal(size=(150, 3)).round(1) * 3; g = rng.integers(9, size=150)\n"
        "for search in ('points', 'full'):\n"
        "    m = HDPMeans(5.0, 9.0, search=search, random_state=0, tol=0.0).fit(X, groups=g)\n"
        "    print(m.labels_.tolist(), round(m.objective_, 6), 'kfree.kernels.native' in sys.modules)"
    )
    outputs = []
    for kind in ("native", "reference"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "KFREE_KERNELS": kind},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.append(done.stdout)
    assert outputs[0].replace("True", "") == outputs[1].replace("False", "")


def test_data_frames_and_sparse_tables_are_taken():
    X, groups, _ = grouped(J=10)
    reference = HDPMeans(12.0, 40.0, order="index").fit(X, groups=groups)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(site=groups)
    model = HDPMeans(12.0, 40.0, order="index").fit(frame[list("abcd")], groups=frame["site"])
    assert_array_equal(model.labels_, reference.labels_)
    model = HDPMeans(12.0, 40.0, order="index").fit(sp.csr_matrix(X), groups=groups)
    assert_array_equal(model.labels_, reference.labels_)
    model.set_output(transform="pandas")
    assert list(model.transform(X).columns) == [f"hdpmeans{k}" for k in range(model.n_clusters_)]


X_BAD, G_BAD = np.random.default_rng(0).random((20, 3)), np.arange(20) % 4


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        (G_BAD[:19], ValueError, "groups has 19 labels, but X has 20 rows"),
        (np.zeros((20, 2)), ValueError, r"groups has shape \(20, 2\)"),
        (np.where(G_BAD == 1, np.nan, G_BAD), ValueError, r"groups\[1\] is missing \(nan\), and 5 labels"),
        ([None if g == 3 else "a" for g in G_BAD], ValueError, r"groups\[3\] is missing \(None\)"),
        (pd.Series([1, None] * 10, dtype="Int64"), ValueError, r"groups\[1\] is missing"),
        (np.array(["2020-01-01", "NaT"] * 10, "M8[D]"), ValueError, r"groups\[1\] is missing"),
        ([[1], [2]] * 10, TypeError, "cannot be compared"),
        ("abcdefghijklmnopqrst", TypeError, "must hold one label for each row, got str"),
        (3, TypeError, "must hold one label for each row, got int"),
    ],
)
def test_groups_are_checked(groups, error, message):
    with pytest.raises(error, match=message):
        HDPMeans(1.0, 1.0).fit(X_BAD, groups=groups)
    model = HDPMeans(1.0, 1.0, random_state=0).fit(X_BAD, groups=G_BAD)
    for method in ("predict", "decision_function", "score"):
        with pytest.raises(error, match=message):
            getattr(model, method)(X_BAD, groups=groups)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"lam_local": -1.0}, ValueError, "lam_local must be >= 0, got -1.0"),
        ({"lam_global": -1}, ValueError, "lam_global must be >= 0"),
        ({"lam_local": np.nan}, ValueError, "lam_local must be >= 0, got nan"),
        ({"lam_local": np.inf}, ValueError, "lam_local must be finite"),
        ({"lam_local": 0, "lam_global": 0.0}, ValueError, "both 0"),
        ({"lam_local": "automatic"}, ValueError, "Unknown lam_local 'automatic'"),
        ({"lam_global": None}, TypeError, "lam_global must be a number"),
        ({"search": "polish"}, ValueError, "Unknown search 'polish'"),
        ({"order": "sorted"}, ValueError, "Unknown order"),
        ({"order": np.zeros(20, int)}, ValueError, "a permutation of 0 .. 19"),
        ({"init": np.ones((2, 5))}, ValueError, r"init has shape \(2, 5\)"),
        ({"init": np.ones((3, 3)), "max_clusters": 2}, ValueError, "more than max_clusters=2"),
        ({"divergence": "euclid"}, ValueError, "Unknown divergence"),
        ({"smoothing": -1.0}, ValueError, "smoothing must be >= 0"),
        ({"n_init": 0}, ValueError, "n_init must be >= 1"),
        ({"max_iter": 0}, ValueError, "max_iter must be >= 1"),
        ({"max_time": -1}, ValueError, "max_time must be >= 0"),
    ],
)
def test_parameters_are_checked_at_fit(parameters, error, message):
    with pytest.raises(error, match=message):
        HDPMeans(**{"lam_local": 1.0, "lam_global": 1.0, **parameters}).fit(X_BAD, groups=G_BAD)


def test_tables_and_weights_are_checked():
    Y = X_BAD.copy()
    Y[7, 1] = np.nan
    with pytest.raises(ValueError, match=r"X\[7, 1\] = nan"):
        HDPMeans(1.0, 1.0).fit(Y, groups=G_BAD)
    with pytest.raises(ValueError, match="zero for every row"):
        HDPMeans(1.0, 1.0).fit(X_BAD, groups=G_BAD, sample_weight=np.zeros(20))
    with pytest.raises(ValueError, match="2 features"):
        HDPMeans(1.0, 1.0).fit(X_BAD, groups=G_BAD).predict(X_BAD[:, :2], groups=G_BAD)
    for method in ("predict", "transform", "decision_function", "score"):
        with pytest.raises(NotFittedError):
            getattr(HDPMeans(1.0, 1.0), method)(X_BAD)


@pytest.mark.parametrize("X", [np.ones((1, 2)), np.ones((6, 2)), np.arange(6.0)[:, None] * [1.0, 0.0]])
@pytest.mark.parametrize("search", ["points", "full"])
def test_odd_tables_get_a_right_answer(X, search):
    n, distinct = len(X), len(np.unique(X, axis=0))
    groups = np.arange(n) % 2
    model = HDPMeans(1e-6, 1e-6, search=search, random_state=0).fit(X, groups=groups)
    assert model.n_clusters_ == distinct
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert HDPMeans(search=search).fit(X, groups=groups).n_clusters_ == 1
    apart = HDPMeans(1e-6, 0.0, search=search, random_state=0).fit(X, groups=groups)
    assert apart.converged_
    assert apart.inertia_ == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("seed", [362, *range(20)])
def test_rounding_of_yes_and_no_is_not_taken_for_a_rise(seed):
    rng = np.random.default_rng(seed)
    X, groups = (rng.random((6, 8)) < 0.5) * 1.0, rng.integers(3, size=6)
    model = HDPMeans(5.0, 0.1, divergence="bernoulli", search="points", tol=0, random_state=seed)
    assert model.fit(X, groups=groups).converged_


def test_time_runs_out_inside_a_pass_too():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(20_000, 8)), rng.integers(50, size=20_000)
    with pytest.warns(ConvergenceWarning):
        model = HDPMeans(0.01, 0.01, max_time=0.2, random_state=0).fit(X, groups=groups)
    assert model.n_clusters_ < 20_000  # every row would open a cluster
