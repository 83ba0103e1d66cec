"""DPMeans as its users meet it."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import normalized_mutual_info_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kfree import DPMeans, lam_path, radius_for_k
from support.slow_clusters import same_partition


def blobs(n=3000, p=4, K=8, seed=0, spread=8.0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(K, size=n)
    return rng.normal(size=(K, p))[truth] * spread + rng.normal(size=(n, p)), truth


def test_defaults_find_the_groups():
    X, truth = blobs()
    model = DPMeans().fit(X)
    assert normalized_mutual_info_score(truth, model.labels_) > 0.98
    low, high = model.lam_window_
    assert low < model.lam_ < high
    assert model.n_groups_ == model.n_clusters_ == 8


def test_structureless_data_are_one_cluster_with_a_warning():
    X = np.random.default_rng(0).normal(size=(1500, 3))
    with pytest.warns(UserWarning, match=r"are one cluster\. To look at some all the same: DPMeans\(n_clusters="):
        assert DPMeans().fit(X).n_clusters_ == 1


def test_samples_and_all_rows_find_the_groups_in_large_data():
    X, truth = blobs(n=60_000, K=20, p=8)
    model = DPMeans(radius=0.7 * radius_for_k(X, 20)).fit(X)
    assert normalized_mutual_info_score(truth, model.labels_) > 0.99
    assert model.n_iter_ <= 6


def test_an_infinite_radius_from_given_centres_is_k_means():
    X, _ = blobs(n=2000, spread=2.0)
    start = X[:8]
    ours = DPMeans(radius=np.inf, init=start, tol=0.0).fit(X)
    theirs = KMeans(8, init=start, n_init=1, tol=0.0, max_iter=300, algorithm="lloyd").fit(X)
    assert same_partition(ours.labels_, theirs.labels_)
    assert_allclose(ours.inertia_, theirs.inertia_)


def test_k_goes_above_three_hundred():
    rng = np.random.default_rng(0)
    centres = np.stack(np.meshgrid(np.arange(20.0), np.arange(20.0)), axis=-1).reshape(-1, 2) * 10
    X = np.repeat(centres, 15, axis=0) + rng.normal(size=(6000, 2)) * 0.3
    assert DPMeans(radius=12.0).fit(X).n_clusters_ == 400


def test_clusters_can_vanish():
    X, _ = blobs(n=600, K=3)
    start = np.concatenate([X[:3], X.mean(axis=0)[None] + 1000.0])
    model = DPMeans(radius=500.0, init=start).fit(X)
    assert model.n_clusters_ == len(np.unique(model.labels_)) <= 3


def test_rows_of_weight_zero_open_nothing_and_are_labelled():
    X, _ = blobs(n=500, K=3)
    far = np.concatenate([X, [[1e4] * 4]])
    w = np.r_[np.ones(500), 0.0]
    for algorithm in ("batch", "serial", "delayed", "collapsed"):
        kind = {"algorithm": algorithm, "order": "index"}
        with_it = DPMeans(radius=60.0, **kind).fit(far, sample_weight=w)
        without = DPMeans(radius=60.0, **kind).fit(X)
        assert_array_equal(with_it.labels_[:500], without.labels_)
        assert with_it.labels_[500] == with_it.predict(far[500:])[0]


def test_fit_never_changes_a_parameter():
    X, _ = blobs(n=300)
    model = DPMeans(lam="auto", init="auto", max_clusters=None)
    before = model.get_params()
    model.fit(X)
    assert model.get_params() == before
    assert clone(model).get_params() == before


@pytest.mark.parametrize("kind", ["C", "F", "float32", "int", "csr", "csc", "pandas", "polars", "list", "memmap"])
def test_all_kinds_of_tables_give_the_same_clusters(kind, tmp_path):
    X, _ = blobs(n=400)
    X = np.round(X * 4)
    reference = DPMeans(radius=600.0, tol=0.0).fit(X)
    if kind == "memmap":
        stored = np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype=float, shape=X.shape)
        stored[:] = X
        stored.flush()
        table = np.load(tmp_path / "x.npy", mmap_mode="r")
    else:
        table = {
            "C": np.ascontiguousarray,
            "F": np.asfortranarray,
            "float32": lambda X: X.astype(np.float32),
            "int": lambda X: X.astype(np.int64),
            "csr": sp.csr_matrix,
            "csc": sp.csc_array,
            "pandas": lambda X: pd.DataFrame(X, columns=list("abcd")),
            "polars": lambda X: pl.DataFrame(X, schema=list("abcd")),
            "list": lambda X: X.tolist(),
        }[kind](X)
    model = DPMeans(radius=600.0, tol=0.0).fit(table)
    assert_array_equal(model.labels_, reference.labels_)
    assert_array_equal(model.predict(table), reference.labels_)
    if kind in ("pandas", "polars"):
        assert list(model.feature_names_in_) == list("abcd")


def test_unsorted_sparse_indices_and_duplicates_do_no_harm():
    X, _ = blobs(n=200)
    A = sp.csr_matrix(X)
    shuffled = sp.csr_matrix((A.data[::-1].copy(), A.indices[::-1].copy(), A.indptr), shape=A.shape)
    dense = shuffled.toarray()
    assert_array_equal(DPMeans(radius=60.0).fit(shuffled).labels_, DPMeans(radius=60.0).fit(dense).labels_)


def test_transform_predict_and_decision_agree():
    X, _ = blobs(n=500)
    model = DPMeans(radius=60.0).fit(X)
    D = model.transform(X)
    assert D.shape == (500, model.n_clusters_)
    assert_array_equal(D.argmin(axis=1), model.labels_)
    assert_allclose(model.decision_function(X), 60.0 - D.min(axis=1), atol=1e-9)
    assert_allclose(model.score(X), -D.min(axis=1).mean())
    assert (model.decision_function(X + 100.0) < 0).all()
    assert model.transform(X.astype(np.float32)).dtype == np.float32


def test_output_can_be_a_frame():
    X, _ = blobs(n=200)
    model = DPMeans(radius=60.0).set_output(transform="pandas")
    frame = model.fit_transform(X)
    assert list(frame.columns) == list(model.get_feature_names_out()) == [f"dpmeans{k}" for k in range(frame.shape[1])]


def test_works_in_a_pipeline_and_survives_pickling():
    X, _ = blobs(n=300)
    pipe = make_pipeline(StandardScaler(), DPMeans(radius=1.0)).fit(X)
    again = pickle.loads(pickle.dumps(pipe))
    assert_array_equal(again.predict(X), pipe[-1].labels_)


def test_the_same_seed_gives_the_same_serial_fit_and_more_starts_never_hurt():
    X, _ = blobs(n=500, spread=2.0)
    kind = {"algorithm": "serial", "random_state": 3}
    one, two = DPMeans(radius=12.0, **kind).fit(X), DPMeans(radius=12.0, **kind).fit(X)
    assert_array_equal(one.labels_, two.labels_)
    assert DPMeans(radius=12.0, n_init=5, **kind).fit(X).objective_ <= one.objective_


def test_an_explicit_order_is_followed():
    X, _ = blobs(n=300, spread=2.0)
    order = np.random.default_rng(0).permutation(300)
    one = DPMeans(radius=12.0, algorithm="serial", order=order).fit(X)
    two = DPMeans(radius=12.0, algorithm="serial", order="index").fit(X[order])
    assert_array_equal(one.labels_[order], two.labels_)


@pytest.mark.parametrize("init", ["mean", "farthest_first", "k-means++"])
@pytest.mark.parametrize("algorithm", ["batch", "serial"])
def test_every_start_leads_to_a_fit(init, algorithm):
    X, truth = blobs(n=800)
    model = DPMeans(radius=100.0, init=init, algorithm=algorithm, random_state=0).fit(X)
    assert normalized_mutual_info_score(truth, model.labels_) > 0.9


def test_search_never_makes_the_objective_worse():
    X, _ = blobs(n=600, spread=1.5)
    values = [
        DPMeans(radius=30.0, search=s, random_state=0, tol=0.0).fit(X).objective_ for s in ("points", "polish", "full")
    ]
    assert values[0] >= values[1] >= values[2]


def test_merges_repair_what_plain_dp_means_cannot():
    X = np.array([[0.0], [1.0], [10.0], [11.0]])
    plain = DPMeans(radius=30.24, algorithm="serial", order="index").fit(X)
    assert plain.n_clusters_ == 3
    assert DPMeans(radius=30.24, algorithm="serial", order="index", search="polish").fit(X).n_clusters_ == 2


def test_max_clusters_is_kept():
    X, _ = blobs(n=500, K=8)
    for algorithm in ("batch", "serial", "delayed", "collapsed"):
        assert DPMeans(radius=1.0, max_clusters=5, algorithm=algorithm, random_state=0).fit(X).n_clusters_ <= 5
    assert DPMeans(max_clusters=3).fit(X).n_clusters_ <= 3


def test_warm_start_goes_on_from_the_last_centres():
    X, _ = blobs(n=800, spread=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = DPMeans(radius=12.0, algorithm="delayed", max_iter=3, warm_start=True, tol=0.0).fit(X)
        first = model.objective_
        assert model.fit(X).objective_ < first


def test_reaching_max_iter_warns():
    X, _ = blobs(n=800, spread=2.0)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        model = DPMeans(radius=12.0, algorithm="delayed", max_iter=2).fit(X)
    assert not model.converged_
    assert_array_equal(model.labels_, model.predict(X))


def test_time_runs_out_gracefully():
    X, _ = blobs(n=20_000, spread=1.0)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = DPMeans(radius=0.5, max_time=0.05).fit(X)
    assert_array_equal(model.labels_, model.predict(X))
    assert model.n_clusters_ >= 1


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
def test_ctrl_c_keeps_the_best_so_far():
    X, _ = blobs(n=20_000, p=8, spread=1.0)
    threading.Timer(0.7, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = DPMeans(radius=0.3, algorithm="delayed", max_iter=100_000).fit(X)
    assert time.monotonic() - start < 30
    assert model.n_clusters_ > 1
    assert_array_equal(model.labels_, model.predict(X))


def test_verbose_reports_every_pass_and_silence_is_silent(capsys):
    X, _ = blobs(n=300)
    DPMeans(radius=60.0).fit(X)
    assert capsys.readouterr().out == ""
    DPMeans(radius=60.0, verbose=1).fit(X)
    assert "pass 1:" in capsys.readouterr().out


def test_weighting_of_histograms():
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.gamma(2.0, 10.0, size=(60, 1)) * rng.dirichlet(np.ones(5), size=60)) + 1.0
    n = X.sum(axis=1)
    kind = {"divergence": "kl", "tol": 0.0}
    length = DPMeans(radius=30.0, weighting="length", **kind).fit(X)
    same = DPMeans(radius=30.0, **kind).fit(X, sample_weight=n)
    assert_array_equal(length.labels_, same.labels_)
    relative = DPMeans(radius=30.0 / n.mean(), weighting="relative", **kind).fit(X)
    assert_allclose(
        relative.objective_ * n.mean(),
        DPMeans(radius=30.0, weighting="length", init=relative.cluster_centers_, **kind).fit(X).objective_,
        rtol=1e-6,
    )


# -- partial_fit -------------------------------------------------------------------------------------------------------


def test_batches_open_clusters_and_never_renumber_them():
    X, truth = blobs(n=4000, K=12, spread=12.0)
    order = np.argsort(truth, kind="stable")  # clusters arrive one after the other
    model = DPMeans(radius=80.0)
    seen, labels = [], []
    for start in range(0, 4000, 250):
        batch = X[order[start : start + 250]]
        model.partial_fit(batch)
        assert_array_equal(model.labels_, model.predict(batch))
        for k, centre in enumerate(seen):
            assert np.linalg.norm(centre - model.cluster_centers_[k]) < 6
        seen = list(model.cluster_centers_)
        labels.append(model.labels_)
    assert normalized_mutual_info_score(truth[order], np.concatenate(labels)) > 0.98


def test_many_batches_come_close_to_one_fit():
    X, _ = blobs(n=20_000, K=10, spread=12.0)
    whole = DPMeans(radius=80.0).fit(X)
    model = DPMeans(radius=80.0)
    for start in range(0, 20_000, 1000):
        model.partial_fit(X[start : start + 1000])
    assert model.n_clusters_ == whole.n_clusters_
    assert same_partition(model.predict(X), whole.labels_)
    assert_allclose(model.cluster_weights_.sum(), 20_000)


def test_rows_beyond_the_radius_of_the_first_batch_open_clusters():
    X, truth = blobs(n=3000, K=6, spread=12.0)
    late = truth == 5
    model = DPMeans().partial_fit(X[~late])
    assert model.n_clusters_ == 5
    radius, price = model.radius_, model.lam_
    assert (model.decision_function(X[~late]) > 0).mean() > 0.99
    assert (model.decision_function(X[late]) < 0).mean() > 0.9
    model.partial_fit(X[late])
    assert (model.radius_, model.lam_) == (radius, price)
    assert model.n_clusters_ > 5
    assert (model.labels_ >= 5).mean() > 0.9


def test_batches_may_have_weights_and_be_sparse():
    X, _ = blobs(n=600)
    model = DPMeans(radius=80.0).partial_fit(sp.csr_matrix(X[:300]), sample_weight=np.ones(300))
    model.partial_fit(sp.csr_matrix(X[300:]), sample_weight=np.r_[np.zeros(299), 1.0])
    assert_allclose(model.cluster_weights_.sum(), 301)


def test_a_first_batch_without_spread_cannot_choose_lam():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="first batch whose rows differ"):
            DPMeans().partial_fit(np.ones((1, 2)))


def test_batches_count_the_prior_in_their_objective():
    X = np.random.default_rng(0).poisson(4.0, size=(200, 5)) + 1.0
    model = DPMeans(radius=2.0, divergence="poisson", smoothing=0.5).partial_fit(X)
    first = model.objective_
    model.partial_fit(X)
    assert model.objective_ > model.inertia_ + 2.0 * model.n_clusters_
    assert_allclose(model.objective_, first, rtol=0.05)


# -- paths -------------------------------------------------------------------------------------------------------------


def test_the_path_has_every_number_and_its_windows_fit_together():
    X, _ = blobs(n=600, K=5, spread=12.0)
    path = lam_path(X, max_clusters=12)
    assert_array_equal(path.n_clusters, np.arange(1, 13))
    assert (np.diff(path.inertia) < 0).all()
    assert path.widest() == path.best == 5
    held = np.flatnonzero(np.isfinite(path.window[:, 0]))
    assert_array_equal(path.window[held[:-1], 0], path.window[held[1:], 1])
    middle = (path.objective[held] - path.inertia[held]) / path.n_clusters[held]
    assert ((path.window[held, 0] < middle) & (middle < path.window[held, 1])).all()
    ax = path.plot()
    assert ax.get_xlabel() == "number of clusters"
    assert ax.get_title(loc="left").startswith("5 clusters")
    assert "chosen: 5" in repr(path)


def test_labels_of_a_path_are_those_of_a_fit_and_have_parents():
    X, _ = blobs(n=400, K=4, spread=12.0)
    path = lam_path(X, max_clusters=6)
    for K in range(1, 7):
        model = DPMeans(n_clusters=K).fit(X)
        assert_array_equal(path.labels(K), model.labels_)
        if K > 1:
            rows = [np.bincount(path.labels(K - 1)[path.labels(K) == k]) for k in range(K)]
            assert_array_equal(path.parents(K), [row.argmax() for row in rows])


def test_a_path_goes_as_far_as_it_is_told_and_further_if_more_are_chosen():
    X, _ = blobs(n=600, K=6, spread=12.0)
    assert lam_path(X, max_clusters=1).n_clusters[-1] == 12  # twice what is chosen
    few = np.repeat(np.arange(4.0)[:, None], 5, axis=0)
    assert_array_equal(lam_path(few, max_clusters=9).n_clusters, [1, 2, 3, 4])


# -- less common settings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("init", ["mean", "farthest_first", "k-means++"])
def test_auto_lam_finds_the_groups_from_any_start(init):
    X, truth = blobs(n=600, K=4, spread=12.0)
    assert normalized_mutual_info_score(truth, DPMeans(init=init, random_state=0).fit(X).labels_) > 0.98


def test_rows_with_columns_that_were_empty_in_training_are_measured():
    kind = {"divergence": "kl", "smoothing": 0.3, "smoothing_mean": [1, 1, 1]}
    model = DPMeans(radius=0.5, **kind).fit([[1.0, 1, 0], [2, 1, 0], [0, 3, 0]])
    assert np.isfinite(model.objective_)
    row, mean = np.array([0, 0.5, 0.5]), model.cluster_centers_
    expected = [sum(x * np.log(x / m) for x, m in zip(row, mu) if x) for mu in mean]
    assert_allclose(model.transform([[0, 1.0, 1]])[0], expected)


def test_far_rows_of_weight_zero_do_not_count_for_lam():
    X = np.array([[1.0, 0, 0], [2, 1, 0], [0, 0, 3], [5, 0, 0], [3, 1, 0]])
    w = np.array([1, 1, 0, 1, 1])
    found = radius_for_k(X, 2, divergence="kl", sample_weight=w)
    assert_allclose(found, radius_for_k(X[w > 0], 2, divergence="kl"))


def test_ties_between_whole_numbers_are_ties_for_dense_and_sparse_rows():
    X = np.array([[6, 0], [1, 3], [4, 6], [2, 0], [1, 3], [3, 7], [3, 5], [4, 0], [5, 0], [0, 4], [2, 2]], float)
    kind = {"algorithm": "serial", "order": "index"}
    dense, sparse = DPMeans(radius=2.0, **kind).fit(X), DPMeans(radius=2.0, **kind).fit(sp.csr_matrix(X))
    assert_array_equal(dense.labels_, sparse.labels_)
    assert dense.n_clusters_ == 6


def test_integer_weights_equal_repeated_rows_in_every_search():
    X, _ = blobs(n=120, spread=1.5)
    w = np.random.default_rng(0).integers(1, 4, size=120)
    for search in ("points", "polish", "full"):
        one = DPMeans(radius=20.0, search=search).fit(X, sample_weight=w)
        two = DPMeans(radius=20.0, search=search).fit(np.repeat(X, w, axis=0))
        assert_array_equal(np.repeat(one.labels_, w), two.labels_)


def test_fits_in_two_threads_leave_blas_as_it_was():
    from threadpoolctl import threadpool_info

    X, _ = blobs(n=4000, K=8)
    before = [library["num_threads"] for library in threadpool_info()]
    workers = [threading.Thread(target=lambda: [DPMeans(radius=60.0).fit(X) for _ in range(5)]) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [library["num_threads"] for library in threadpool_info()] == before


def test_more_centres_than_allowed_are_an_error():
    X, _ = blobs(n=100)
    with pytest.raises(ValueError, match="init has 4 centres, more than max_clusters=2"):
        DPMeans(radius=60.0, init=X[:4], max_clusters=2).fit(X)


# -- edges -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["batch", "serial", "delayed", "collapsed"])
@pytest.mark.parametrize("radius", [1e-12, 1.0, 1e12, np.inf])
@pytest.mark.parametrize(
    "X",
    [
        np.array([[3.0, 4.0]]),
        np.ones((7, 2)),
        np.c_[np.arange(6.0), np.ones(6)],
        np.array([[0.0], [1e-300], [1.0]]),
        np.array([[1e150, -1e150], [1.0, 2.0], [-1e150, 1e150]]),
    ],
    ids=["one row", "equal rows", "constant column", "tiny", "huge"],
)
def test_odd_tables_get_a_right_answer(X, radius, algorithm):
    model = DPMeans(radius=radius, algorithm=algorithm, random_state=0).fit(X)
    assert np.isfinite(model.cluster_centers_).all()
    assert_array_equal(model.labels_, model.predict(X))
    if radius == np.inf or len(np.unique(X, axis=0)) == 1:
        assert model.n_clusters_ == 1
    if radius == 1e-12 and len(np.unique(X, axis=0)) > 1 and algorithm != "collapsed":
        assert model.n_clusters_ >= 2


@pytest.mark.parametrize("X", [np.array([[3.0, 4.0]]), np.ones((7, 2)), np.array([[0.0], [1.0]])])
def test_auto_lam_says_one_cluster_where_there_is_too_little_to_see(X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DPMeans().fit(X)
    assert model.n_clusters_ == 1
    assert 0 < model.lam_ < np.inf


def test_a_tiny_radius_gives_every_distinct_row_a_cluster():
    X = np.random.default_rng(0).integers(0, 3, size=(60, 2)).astype(float)
    model = DPMeans(radius=1e-9, search="points").fit(X)
    assert model.n_clusters_ == len(np.unique(X, axis=0))
    assert model.inertia_ < 1e-25


# -- environment -------------------------------------------------------------------------------------------------------


def test_reference_kernels_give_the_same_fit_without_compiled_code():
    code = (
        "import sys, numpy as np; from kfree import DPMeans\n"
        "rng = np.random.default_rng(0); X = rng.normal(size=(300, 3)) + 6 * rng.integers(0, 3, size=(300, 1))\n"
        "print(DPMeans(radius=20.0).fit(X).labels_.tolist())\n"
        "assert ('kfree.kernels.native' in sys.modules) == (sys.argv[1] == 'native')"
    )
    out = [
        subprocess.run(
            [sys.executable, "-c", code, kind],
            env={**os.environ, "KFREE_KERNELS": kind},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for kind in ("native", "reference")
    ]
    assert out[0] == out[1]


@pytest.mark.parametrize("seed", [5, 12, 46])
@pytest.mark.parametrize("options", [{"radius": np.inf}, {"radius": 0.5, "max_clusters": 3}])
def test_rows_that_every_centre_excluded_are_looked_at_again(seed, options):
    rng = np.random.default_rng(seed)
    X = rng.poisson(rng.gamma(0.5, 3, size=(4, 6))[rng.integers(4, size=30)]) + 1.0 * (rng.random((30, 1)) < 0.5)
    X[:, 0] += X.sum(axis=1) == 0
    model = DPMeans(**options, divergence="kl", init=X[:3], tol=0).fit(X)
    assert_array_equal(model.labels_, model.predict(X))
    cost = model.transform(X)
    assert_array_equal(cost[np.arange(30), model.labels_], cost.min(axis=1))
