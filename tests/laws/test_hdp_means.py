"""What the mathematics demands of HDPMeans, over divergences, searches and random data."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from kfree import DPMeans, HDPMeans, radius_for_k
from kfree.inference.clusters.table import make_memory
from kfree.inference.goal import Goal, Order, Search
from kfree.inference.loop import Budget
from kfree.inference.shared.groups import Lams, make_groups
from kfree.inference.shared.hdp_pass import three_part_pass
from kfree.inference.shared.hdp_search import merge_and_split, move_local_clusters, move_single_rows, regroup, state_of
from kfree.models.clusters import LocalProblem
from support.family_data import BREGMAN, NAMES, SEPARABLE, draw_rows, make
from support.slow_clusters import Slow, SlowHDP, partitions, same_partition

SEARCHES = ("points", "full")


def settings_of(name, p=3):
    """A smoothing that keeps all divergences finite, where the family has a prior."""
    return {"divergence": make(name, p), "smoothing": 0.0 if name == "cosine" else 0.3}


def data(name, n=120, p=3, J=6, seed=0):
    """Clumps of valid rows, of which every group has some."""
    rng = np.random.default_rng([seed, 78])
    rows = draw_rows(name, n, p, seed=seed, boundary=False)
    pull, groups = rows[rng.integers(n, size=4)], rng.integers(J, size=n)
    mine = np.argsort(rng.random((J, 4)), axis=1)[:, :2]
    mixed = 0.35 * rows + 0.65 * pull[mine[groups, rng.integers(2, size=n)]]
    if name == "cosine":
        mixed /= np.sqrt((mixed**2).sum(axis=1, keepdims=True))
    return mixed, groups


def lams_of(X, name, share=0.5, p=3):
    lam = 0.6 * radius_for_k(X, 4, **settings_of(name, p))
    return share * lam, (1 - share) * lam


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("name", NAMES)
def test_the_objective_never_rises_and_is_what_it_says(name, search):
    X, groups = data(name)
    w = np.random.default_rng(0).uniform(0.2, 3.0, size=120)
    local, top = lams_of(X, name)
    model = HDPMeans(local, top, search=search, tol=0.0, random_state=0, **settings_of(name))
    model.fit(X, groups=groups, sample_weight=w)
    trace = model.objective_trace_
    assert (np.diff(trace) <= 1e-9 * np.abs(trace[:-1])).all()
    assert trace[-1] == model.objective_
    own = model.transform(X)[np.arange(120), model.labels_]
    assert_allclose(model.inertia_, w @ own, rtol=1e-7)
    stats = X / X.sum(axis=1, keepdims=True) if name == "kl" else X
    mu0 = (w @ stats) / w.sum()
    prior = model.smoothing * sum(model.family_.divergence(mu0, mu) for mu in model.cluster_centers_)
    pairs = len(set(zip(groups.tolist(), model.labels_.tolist())))
    assert model.n_local_clusters_ == pairs
    assert_allclose(model.objective_, model.inertia_ + prior + local * pairs + top * model.n_clusters_, rtol=1e-9)
    assert_array_equal(model.predict(X, groups=groups), model.labels_)
    weight = np.bincount(model.labels_, weights=w)
    assert (np.diff(weight) <= 1e-9).all()
    assert_allclose(model.cluster_weights_, weight)


@pytest.mark.parametrize("name", NAMES)
def test_a_fit_to_the_end_is_a_fixed_point_of_every_part(name):
    X, groups = data(name, seed=1)
    local, top = lams_of(X, name)
    kind = {**settings_of(name), "search": "points", "tol": 0.0, "random_state": 0}
    model = HDPMeans(local, top, **kind).fit(X, groups=groups)
    assert model.converged_
    stats = X / X.sum(axis=1, keepdims=True) if name == "kl" else X
    slow = SlowHDP(model.family_, stats, groups, local, top, None, model.smoothing, stats.mean(axis=0))
    order = np.argsort(groups, kind="stable")
    mus = list(model.cluster_centers_)
    held = [list(np.unique(model.labels_[groups == j])) for j in range(6)]
    labels = slow._points(order, list(mus), [list(V) for V in held])
    assert_array_equal(labels, model.labels_)
    after, _ = slow._locals(labels, list(mus), held)
    assert_array_equal(after, model.labels_)
    means = np.array([slow.centre(np.flatnonzero(labels == k)) for k in range(len(mus))])
    assert_allclose(means, model.cluster_centers_, rtol=1e-8, atol=1e-12)


def tiny(name, seed, n=6, p=2):
    """A problem small enough to try all partitions; penalties not set."""
    rng = np.random.default_rng([seed, 5])
    X = draw_rows(name, n, p, seed=seed, boundary=False)
    groups = np.unique(rng.integers(3, size=n), return_inverse=True)[1]
    slow = SlowHDP(make(name, p), X, groups, 0.0, 0.0, None, 0.2, X.mean(axis=0))
    far = max(slow.d(i, slow.centre(np.arange(n))) for i in range(n))
    slow.local, slow.top = rng.uniform(0.02, 0.5, size=2) * far
    kind = {"divergence": make(name, p), "smoothing": 0.2, "smoothing_mean": X.mean(axis=0), "random_state": 0}
    return slow, kind


@given(seed=st.integers(0, 500), name=st.sampled_from(BREGMAN))
def test_nothing_beats_the_best_partition(seed, name):
    slow, kind = tiny(name, seed)
    least = slow.optimum()
    for search in SEARCHES:
        model = HDPMeans(slow.local, slow.top, search=search, tol=0.0, **kind).fit(slow.x, groups=slow.groups)
        assert model.objective_ >= least - 1e-9 * abs(least)
        assert_allclose(model.objective_, slow.objective(model.labels_), rtol=1e-9)


@given(seed=st.integers(0, 500), name=st.sampled_from(BREGMAN))
def test_the_best_partition_is_fixed_under_every_move(seed, name):
    slow, kind = tiny(name, seed)
    values = sorted(((slow.objective(z), i, z) for i, z in enumerate(partitions(6))), key=lambda v: v[0])
    assume(values[1][0] - values[0][0] > 1e-6 * values[0][0])
    best = values[0][2]
    problem = LocalProblem.of(slow.x, None, slow.family, "none", slow.eta, slow.mu0)
    table, budget = problem.table, Budget()
    goal = Goal(slow.top, slow.local, tol=0.0, max_iter=1, search=Search.FULL, order=Order.INDEX)
    groups = make_groups(slow.groups.astype(np.int32), table.rows, slow.n_groups)
    state = state_of(table, groups, best.astype(np.int32), np.random.default_rng(0))
    moves = {
        "pass": lambda: three_part_pass(table, groups, state, make_memory(6), goal, budget)[0],
        "shares": lambda: regroup(table, groups, state, Lams.of(goal)),
        "local clusters": lambda: move_local_clusters(table, groups, state, goal, budget),
        "rows": lambda: move_single_rows(table, groups, state, goal, budget),
        "clusters": lambda: merge_and_split(table, groups, state, goal),
    }
    for move in moves.values():
        assert_array_equal(move().labels, best)
    centres = np.array([slow.centre(np.flatnonzero(best == k)) for k in np.unique(best)])
    model = HDPMeans(slow.local, slow.top, search="full", init=centres, tol=0.0, **kind)
    assert same_partition(model.fit(slow.x, groups=slow.groups).labels_, best)


def test_full_search_finds_most_of_the_best_partitions():
    found = 0
    for seed in range(20):
        slow, kind = tiny("sqeuclidean", seed, n=7)
        model = HDPMeans(slow.local, slow.top, search="full", tol=0.0, **kind).fit(slow.x, groups=slow.groups)
        found += model.objective_ <= slow.optimum() * (1 + 1e-9)
    assert found >= 18


@pytest.mark.parametrize("name", ["sqeuclidean", "poisson", "bernoulli"])
def test_the_special_cases_have_the_minima_of_dp_means(name):
    for seed in range(3):
        slow, _ = tiny(name, seed)
        lam = slow.local + slow.top

        def least(rows, lam, slow=slow):
            return Slow(slow.family, slow.x[rows], lam, None, slow.eta, slow.mu0).optimum()

        everything, one = np.arange(6), np.zeros(6, int)
        arguments = (slow.family, slow.x)
        prior = (None, slow.eta, slow.mu0)
        apart = SlowHDP(*arguments, slow.groups, lam, 0.0, *prior).optimum()
        own = sum(least(np.flatnonzero(slow.groups == j), lam) for j in range(slow.n_groups))
        # with a prior a cluster that groups share holds its pseudo-rows once: sharing can only gain
        assert apart <= own * (1 + 1e-9)
        bare = (None, 0.0, None)
        apart = SlowHDP(*arguments, slow.groups, lam, 0.0, *bare).optimum()
        each = [np.flatnonzero(slow.groups == j) for j in range(slow.n_groups)]
        assert_allclose(apart, sum(Slow(slow.family, slow.x[rows], lam).optimum() for rows in each), rtol=1e-9)
        pooled = SlowHDP(*arguments, slow.groups, 0.0, lam, *prior).optimum()
        assert_allclose(pooled, least(everything, lam), rtol=1e-9)
        single = SlowHDP(*arguments, one, slow.local, slow.top, *prior).optimum()
        assert_allclose(single, least(everything, lam), rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_free_local_clusters_and_one_group_are_dp_means(name):
    X, groups = data(name, seed=3)
    lam = sum(lams_of(X, name))
    kind = {**settings_of(name), "search": "points", "tol": 0.0, "random_state": 0}
    pooled = HDPMeans(0.0, lam, **kind).fit(X, groups=groups)
    # a fixed point of the one is a fixed point of the other
    again = DPMeans(radius=lam, algorithm="serial", init=pooled.cluster_centers_, **kind).fit(X)
    assert_array_equal(again.labels_, pooled.labels_)
    assert_allclose(again.objective_, pooled.objective_, rtol=1e-9)
    one = HDPMeans(0.4 * lam, 0.6 * lam, **kind).fit(X)
    assert one.n_local_clusters_ == one.n_clusters_
    again = DPMeans(radius=lam, algorithm="serial", init=one.cluster_centers_, **kind).fit(X)
    assert_array_equal(again.labels_, one.labels_)
    assert_allclose(again.objective_, one.objective_, rtol=1e-9)


@given(seed=st.integers(0, 200), name=st.sampled_from(NAMES), search=st.sampled_from(SEARCHES))
def test_integer_weights_equal_repeated_rows(seed, name, search):
    X, groups = data(name, n=50, seed=seed)
    w = np.random.default_rng(seed).integers(0, 4, size=50)
    assume(np.unique(groups[w > 0]).size == np.unique(groups).size)
    local, top = lams_of(X, name)
    kind = {**settings_of(name), "search": search, "order": "index"}
    weighted = HDPMeans(local, top, **kind).fit(X, groups=groups, sample_weight=w)
    repeated = HDPMeans(local, top, **kind).fit(np.repeat(X, w, axis=0), groups=np.repeat(groups, w))
    assert_array_equal(np.repeat(weighted.labels_, w), repeated.labels_)
    assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-7, atol=1e-10)
    assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-8)
    assert_allclose(weighted.group_clusters_.toarray(), repeated.group_clusters_.toarray())


@given(seed=st.integers(0, 200), name=st.sampled_from(NAMES))
def test_the_order_of_the_rows_does_not_matter_to_a_full_search(seed, name):
    X, groups = data(name, n=80, seed=seed)
    order = np.random.default_rng(seed).permutation(80)
    local, top = lams_of(X, name)
    kind = {**settings_of(name), "search": "full", "tol": 0.0}
    one = HDPMeans(local, top, **kind).fit(X, groups=groups)
    two = HDPMeans(local, top, **kind).fit(X[order], groups=groups[order])
    assert_array_equal(one.labels_[order], two.labels_)
    assert_array_equal(one.local_labels_[order], two.local_labels_)


@given(seed=st.integers(0, 200), name=st.sampled_from(NAMES))
def test_permuting_rows_and_order_alike_permutes_the_labels(seed, name):
    X, groups = data(name, n=60, seed=seed)
    rng = np.random.default_rng(seed)
    order, shuffled = rng.permutation(60), rng.permutation(60)
    local, top = lams_of(X, name)
    kind = {**settings_of(name), "search": "points", "tol": 0.0}
    one = HDPMeans(local, top, order=order, **kind).fit(X, groups=groups)
    place = np.argsort(shuffled)  # where each row of X stands among the shuffled ones
    two = HDPMeans(local, top, order=place[order], **kind).fit(X[shuffled], groups=groups[shuffled])
    assert_array_equal(one.labels_[shuffled], two.labels_)


@given(seed=st.integers(0, 200), name=st.sampled_from(SEPARABLE), search=st.sampled_from(SEARCHES))
def test_sparse_rows_equal_dense_rows(seed, name, search):
    assume(name != "itakura_saito")  # has no zeros
    rng = np.random.default_rng(seed)
    # no whole numbers: rows move one at a time by sums that are kept in different ways, and rounding decides ties
    X = draw_rows(name, 50, 6, seed=seed) * (rng.random((50, 6)) < 0.6) * rng.uniform(0.5, 1.0, size=(50, 6))
    X[X.sum(axis=1) == 0, 0] = 1.0
    groups = rng.integers(5, size=50)
    local, top = lams_of(X, name, p=6)
    kind = {**settings_of(name, 6), "search": search, "random_state": 0, "tol": 0.0}
    dense = HDPMeans(local, top, **kind).fit(X, groups=groups)
    sparse = HDPMeans(local, top, **kind).fit(sp.csr_matrix(X), groups=groups)
    assert_array_equal(dense.labels_, sparse.labels_)
    assert_array_equal(sparse.predict(sp.csr_matrix(X), groups=groups), dense.labels_)
    assert_allclose(dense.objective_, sparse.objective_, rtol=1e-7)


@given(seed=st.integers(0, 200), name=st.sampled_from(NAMES))
def test_single_precision_rows_get_the_labels_of_double_precision(seed, name):
    X, groups = data(name, n=100, seed=seed)
    X = X.astype(np.float32)
    local, top = lams_of(X, name)
    kind = {**settings_of(name), "tol": 0.0, "random_state": 0}
    one, two = (HDPMeans(local, top, **kind).fit(rows, groups=groups) for rows in (X, X.astype(np.float64)))
    assert_array_equal(one.labels_, two.labels_)
    assert_array_equal(one.cluster_centers_, two.cluster_centers_)


@pytest.mark.parametrize("search", SEARCHES)
def test_threads_do_not_matter(search, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 32))[rng.integers(20, size=30_000)] * 2 + rng.normal(size=(30_000, 32))
    groups = rng.integers(300, size=30_000)
    results = []
    for threads in (1, 2, 5):
        monkeypatch.setattr("kfree.rows.threads.n_threads", lambda threads=threads: threads)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = HDPMeans(60.0, 90.0, search=search, random_state=0, max_iter=4).fit(X, groups=groups)
        results.append(model)
    assert results[0].n_clusters_ > 1
    for model in results[1:]:
        assert_array_equal(model.labels_, results[0].labels_)
        assert_array_equal(model.cluster_centers_, results[0].cluster_centers_)
        assert_array_equal(model.objective_trace_, results[0].objective_trace_)
