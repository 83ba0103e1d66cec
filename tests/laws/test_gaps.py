"""Groups inside one cluster: found where there are gaps, whatever lam covers; one cloud stays one cluster."""

import numpy as np
import pytest
from benchmarks.quality import covered as groups
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from kfree import DPMeans
from kfree.families import Geometry
from kfree.inference.clusters import batch
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.cuts import SplitRule, halve
from kfree.inference.clusters.gaps import split_at_gaps
from kfree.inference.clusters.moves import apply_moves, nothing_tried
from kfree.inference.clusters.table import make_memory, make_table
from kfree.inference.goal import Goal
from kfree.rows import DenseRows
from support.family_data import make
from support.numbers import set_numbers
from support.slow_clusters import same_partition


def covering(X):
    """A lam that puts every row within reach of the global mean: nothing opens a cluster."""
    return 1.2 * ((X - X.mean(axis=0)) ** 2).sum(axis=1).max()


@pytest.mark.parametrize("n", [3000, 6000])  # all rows at once, and on a sample
@pytest.mark.parametrize("unit", [1.0, 1.01, 1.5, 2.0, 3.0])
def test_many_groups_are_found_though_lam_covers_them_all(n, unit):
    X, truth = groups(n)
    X = X * unit
    model = DPMeans(radius=covering(X)).fit(X)
    assert same_partition(model.labels_, truth)
    trace = model.objective_trace_
    assert (np.diff(trace) <= 1e-9 * np.abs(trace[:-1])).all()


@pytest.mark.parametrize("unit", [1.0, 1.01, 1.02, 1.5, 2.0])
def test_a_lam_that_comes_from_outliers_does_not_hide_the_groups(unit):
    X, truth = groups(9000)
    rng = np.random.default_rng(1)
    far = rng.choice(9000, size=90, replace=False)
    X[far] = X.mean(axis=0) + rng.uniform(-1, 1, size=(90, 16)) * 2 * np.ptp(X, axis=0) / 2
    rest = np.setdiff1d(np.arange(9000), far)
    model = DPMeans(radius=1500.0 * unit**2).fit(X * unit)
    assert same_partition(model.labels_[rest], truth[rest])


@pytest.mark.parametrize("n", [3000, 6000])
@pytest.mark.parametrize("p", [1, 2, 16])
@pytest.mark.parametrize("shape", ["normal", "uniform", "exponential", "rounded"])
def test_one_cloud_is_one_cluster_though_splits_would_pay(shape, p, n):
    rng = np.random.default_rng([n, p])
    X = {
        "normal": rng.normal(size=(n, p)) * np.geomspace(1, 3, p),
        "uniform": rng.uniform(-1, 1, size=(n, p)),
        "exponential": rng.exponential(size=(n, p)),
        "rounded": np.round(rng.normal(size=(n, p)) * 4),
    }[shape]
    assert DPMeans(radius=covering(X)).fit(X).n_clusters_ == 1


@pytest.mark.parametrize(("name", "smoothing"), [("poisson", 0.1), ("kl", 0.01), ("bernoulli", 0.1), ("cosine", 0.0)])
def test_gaps_are_found_by_every_divergence(name, smoothing):
    rng = np.random.default_rng(0)
    truth = rng.integers(20, size=5000)
    X = rng.poisson(rng.gamma(1.0, 8.0, size=(20, 24))[truth]).astype(float) + 0.01
    if name == "bernoulli":
        X = (rng.random((5000, 80)) < rng.choice([0.05, 0.95], size=(20, 80))[truth]).astype(float)
    kind = {"divergence": make(name), "smoothing": smoothing}
    lam = 1.01 * DPMeans(radius=1e9, algorithm="delayed", **kind).fit(X).transform(X).max()
    assert same_partition(DPMeans(radius=lam, **kind).fit(X).labels_, truth)


@pytest.mark.parametrize("n", [1500, 6000])
def test_weights_repetition_and_row_order_make_no_difference_to_gaps(n):
    X, _ = groups(n, k=12)
    rng = np.random.default_rng(n)
    w = rng.integers(0, 4, size=n)
    lam = covering(X)
    one = DPMeans(radius=lam, tol=0.0).fit(X, sample_weight=w)
    rows = np.repeat(np.arange(n), w)[rng.permutation(w.sum())]
    two = DPMeans(radius=lam, tol=0.0).fit(X[rows])
    assert one.n_clusters_ == 12
    assert_array_equal(one.labels_[rows], two.labels_)
    with threadpool_limits(1):
        assert_array_equal(DPMeans(radius=lam, tol=0.0).fit(X, sample_weight=w).labels_, one.labels_)


def one_cluster(X):
    """A table of centred rows that are one cluster, and its centre."""
    none, p = np.empty(0), X.shape[1]
    rows = DenseRows(X, weight=none, scale=none, shift=np.zeros(p))
    table, memory = make_table(rows, Geometry(make("sqeuclidean"), np.zeros(p))), make_memory(len(X))
    memory.labels[:], memory.cost[:] = 0, (X**2).sum(axis=1)
    return table, Centres(table.geometry, np.zeros((1, p))), memory


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("distance", "n", "whole"), [(0, 400, True), (0, 100, False), (6, 400, False), (6, 100, False)]
)
def test_only_many_rows_of_one_cloud_tell_that_more_would_not_split_it(distance, n, whole, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    X[: n // 2, 0] += distance
    table, _, memory = one_cluster(X - X.mean(axis=0))
    halves = halve(table, memory, SplitRule.CLEAR, np.ones(1, bool), 4)
    assert halves.whole.tolist() == [whole]
    assert halves.worth_while(SplitRule.CLEAR).tolist() == [distance > 0]


def looked_at(X, lam, room):
    """Objective and clusters of one cluster before and after its gaps were looked for."""
    X = X - X.mean(axis=0)
    table, centres, memory = one_cluster(X)
    tried, goal = nothing_tried(len(X)), Goal(lam, max_clusters=1 + room)
    with pytest.MonkeyPatch.context() as patch:
        set_numbers(patch, "CLUSTERS", clarity=np.inf)  # no cut in two is clear
        assert apply_moves(table, centres, memory, goal, SplitRule.CLEAR, tried)[1] == 0
    after, count = split_at_gaps(table, centres, memory, goal, tried)
    again = split_at_gaps(table, centres, memory, goal, tried)[1] if not count else 0
    assert again == 0
    parts = [X[memory.labels == k] for k in range(len(after.mean))]
    for part, mean in zip(parts, after.mean):
        assert_allclose(part.mean(axis=0), mean, atol=1e-9)
    inertia = sum(((part - part.mean(axis=0)) ** 2).sum() for part in parts)
    return memory.cost.sum() + lam, inertia + lam * len(parts), count, len(parts)


@pytest.mark.parametrize("seed", range(3))
def test_a_split_at_gaps_pays_for_its_clusters_and_needs_room(seed):
    X, _ = groups(2000, k=25, seed=seed)
    before, after, count, k = looked_at(X, 500.0, np.inf)
    assert count == 1
    assert k > 10
    assert after < before
    assert looked_at(X, 500.0, k - 2)[2:] == (0, 1)
    assert looked_at(X, before, np.inf)[2:] == (0, 1)  # nothing pays for so dear a cluster


def test_without_the_search_for_gaps_the_groups_are_missed(monkeypatch):
    X, truth = groups(6000, k=60)
    assert same_partition(DPMeans(radius=covering(X)).fit(X).labels_, truth)
    monkeypatch.setattr(batch, "split_at_gaps", lambda table, centres, *rest, **options: (centres, 0))
    assert DPMeans(radius=covering(X)).fit(X).n_clusters_ < 60


@pytest.mark.parametrize(("small", "large"), [(6, 20), (10, 20), (10, 200), (20, 200)])
def test_a_small_group_far_away_is_a_cluster_though_lam_covers_it(small, large):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = np.concatenate([rng.normal(size=(large, 2)), rng.normal((20, 0), size=(small, 2))])
        assert same_partition(DPMeans(radius=700.0).fit(X).labels_, np.arange(large + small) >= large)


def test_rounding_makes_no_clusters():
    rng = np.random.default_rng(0)
    x = 3 * rng.normal(size=20_000) + 60 * rng.integers(3, size=20_000)
    other = 0.01 * rng.normal(size=20_000)
    plain, rounded = (DPMeans(radius=72.0).fit(np.c_[column, other]).n_clusters_ for column in (x, np.round(x)))
    assert abs(plain - rounded) <= 3  # rounded rows show a valley between any two numbers: it was 23 for 9


@pytest.mark.parametrize("unit", [2.0**260, 2.0**-260])
def test_units_do_not_matter_however_large_or_small(unit):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(mean, size=(200, 2)) for mean in ((0, 0), (9, 0), (0, 9))])
    labels = DPMeans(radius=300.0).fit(X).labels_
    assert same_partition(DPMeans(radius=300.0 * unit**2).fit(X * unit).labels_, labels)
    assert labels.max() == 2
