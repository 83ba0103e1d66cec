"""The benchmarks' generators, yardsticks and tables work; how fast anything is, is not tested."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from benchmarks import measure, rivals, tables, workloads
from benchmarks.gibbs_loop import GaussianChain
from benchmarks.report import Mark, Settings, Table, render, write_index
from scipy.special import gammaln

from kfree import DPMeans

MIXTURES = (workloads.gauss, workloads.unequal, workloads.heavy_tails, workloads.with_outliers)


@pytest.mark.parametrize("make", MIXTURES)
def test_mixtures_have_the_stated_shape_and_are_the_same_every_time(make):
    X, truth = make(500, 4, 5, 2.0, seed=3)
    again, _ = make(500, 4, 5, 2.0, seed=3)
    other, _ = make(500, 4, 5, 2.0, seed=4)
    assert X.shape == (500, 4)
    assert set(np.unique(truth)) - {-1} == set(range(5))
    assert np.array_equal(X, again)
    assert not np.array_equal(X, other)


@pytest.mark.parametrize("d", [2, 16])
def test_the_closest_centres_are_as_far_apart_as_stated(d):
    mean = workloads.centres(np.random.default_rng(0), 12, d, 3.5)
    gaps = np.sqrt(((mean[:, None] - mean) ** 2).sum(axis=2))[np.triu_indices(12, 1)]
    assert gaps.min() == pytest.approx(3.5)


def test_a_mixture_has_unit_noise_around_centres_at_its_separation():
    X, truth = workloads.gauss(40_000, 9, 4, 2.0)
    mean = np.stack([X[truth == k].mean(axis=0) for k in range(4)])
    gaps = np.sqrt(((mean[:, None] - mean) ** 2).sum(axis=2))[np.triu_indices(4, 1)]
    assert gaps.min() == pytest.approx(2.0 * np.sqrt(9), abs=0.05)
    assert (X - mean[truth]).std() == pytest.approx(1.0, abs=0.01)


def test_shares_fall_by_the_stated_ratio():
    _, truth = workloads.unequal(200_000, 2, 5, 6.0, ratio=100)
    sizes = np.bincount(truth)
    assert sizes.max() / sizes.min() == pytest.approx(100, rel=0.1)


def test_sparse_counts_have_about_the_stated_number_of_entries():
    X, truth = workloads.counts(400, 300, 4, 25)
    again, _ = workloads.counts(400, 300, 4, 25)
    assert X.shape == (400, 300)
    assert X.nnz / 400 == pytest.approx(25, rel=0.1)
    assert (again != X).nnz == 0
    assert truth.max() == 3
    dense, _ = workloads.dense_counts(50, 30, 3, length=200)
    assert np.array_equal(dense.sum(axis=1), np.full(50, 200.0))


def test_objectives_from_labels_are_the_estimators():
    X, _ = workloads.gauss(400, 3, 4, 3.0)
    fitted = DPMeans(radius=30.0, tol=0.0).fit(X)
    assert measure.euclidean_objective(X, fitted.labels_, 30.0) == pytest.approx(fitted.objective_)
    counts, _ = workloads.counts(300, 100, 4, 15)
    counts = counts[:, np.asarray(counts.sum(axis=0)).ravel() > 0]
    fitted = DPMeans(radius=1.0, divergence="kl", smoothing=0.5, tol=0.0).fit(counts)
    assert measure.kl_objective(counts, fitted.labels_, 1.0, 0.5) == pytest.approx(fitted.objective_)


def test_pairs_and_partitions_are_compared_without_names():
    a, b = np.array([0, 0, 1, 1, 2]), np.array([2, 2, 0, 0, 1])
    assert measure.same_partition(a, b)
    assert not measure.same_partition(a, np.zeros(5, int))
    assert measure.pair_f(a, b) == 1.0
    assert measure.pair_f(a, np.zeros(5, int)) == pytest.approx(2 * 2 / (2 + 10))


def test_the_one_row_loop_ends_at_a_fixed_point():
    X, _ = workloads.gauss(300, 2, 4, 6.0)
    labels, _ = rivals.serial_loop(X, 20.0)
    mean = np.stack([X[labels == k].mean(axis=0) for k in range(labels.max() + 1)])
    distance = ((X[:, None] - mean) ** 2).sum(axis=2)
    assert np.array_equal(distance.argmin(axis=1), labels)
    assert distance.min(axis=1).max() <= 20.0


@pytest.mark.parametrize(
    "name", [name for name in tables.NAMES if name not in ("memory", "startup", "overlap", "auto")]
)
def test_tables_can_be_made(name, tmp_path):
    table = tables.make(name, Settings(quick=True, rivals=False, repeats=1, out=tmp_path))
    assert table.name == name
    assert all(len(row) == len(table.header) for row in table.rows)
    assert table.title in render(table, quick=True)


def test_a_page_says_whether_marks_are_reached(tmp_path):
    marks = [Mark("speed", 3.0, 2.0), Mark("memory", 50.0, 40.0, at_least=False)]
    page = render(Table("some", "Some table", "What it is.", ["a", "b"], [[1, 2.0], [None, 1234.5]], [], marks))
    assert "| - | 1,234 |" in page
    assert "speed: **3** (at least 2: yes)" in page
    assert "memory: **50** (at most 40: NO)" in page
    Path(tmp_path / "some.md").write_text(page)
    write_index(tmp_path, ["some"])
    index = (tmp_path / "README.md").read_text()
    assert "[Some table](some.md)" in index
    assert "memory: **50**" in index


def test_the_index_opens_with_the_times_of_clusters_that_are_apart(tmp_path):
    header = ["data", "type", "who", "seconds", "times", "objective", "K", "NMI"]
    rows = [
        ["some (3)", "float64", "kfree", 0.5, 1, 9, 3, 1],
        ["some (3)", "float64", "KMeans, true K", 1.0, 2, 9, 3, 0.9],
        ["some (3)", "float32", "kfree", 0.4, 1, 9, 3, 1],
    ]
    page = render(Table("convergence", "Fits", "What it is.", header, rows, [], []))
    Path(tmp_path / "convergence.md").write_text(page)
    write_index(tmp_path, ["convergence"])
    lines = [line for line in (tmp_path / "README.md").read_text().splitlines() if line.startswith("| some")]
    assert [cell.strip() for cell in lines[0].split("|")[2:-1]] == ["0.5 s, K 3, 1", "2 times, K 3, 0.9", "-"]
    assert len(lines) == 1


def test_the_plain_gibbs_sampler_draws_from_the_posterior():
    X = np.array([[0.0, 0.1], [0.3, -0.2], [2.0, 1.5], [2.2, 1.1]])
    chain = GaussianChain(X, np.zeros(4, int), concentration=0.8)

    def log_evidence(rows):
        """Log marginal likelihood of rows in one cluster, as a product of predictive densities."""
        total = 0.0
        for i in range(len(rows)):
            seen = rows[:i]
            mean, inverse, offset, df = chain.solve(float(i), seen.sum(axis=0), seen.T @ seen)
            total += chain.scores(rows[i], mean[None], inverse[None], np.array([offset]), np.array([df]))[0]
        return total

    exact = {}
    for labels in itertools.product(range(4), repeat=4):
        if all(label <= max(labels[:i], default=-1) + 1 for i, label in enumerate(labels)):
            groups = [chain.X[np.array(labels) == k] for k in range(max(labels) + 1)]
            exact[labels] = np.exp(sum(log_evidence(g) + np.log(0.8) + gammaln(len(g)) for g in groups))
    total, seen = sum(exact.values()), dict.fromkeys(exact, 0)
    for _ in range(2500):
        chain.sweep()
        _, first, inverse = np.unique(chain.labels, return_index=True, return_inverse=True)
        seen[tuple(int(k) for k in np.argsort(np.argsort(first))[inverse])] += 1
    assert sum(abs(seen[key] / 2500 - exact[key] / total) for key in exact) / 2 < 0.05
