"""What is said of samples of partitions agrees with the definitions."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import mutual_info_score, pair_confusion_matrix

from kfree.inference.gibbs import partitions
from kfree.inference.gibbs.partitions import (
    coclustering,
    expected_loss,
    in_order_of_rows,
    own_probability,
    point_estimate,
    posterior_of_count,
)

LOSSES = ("binder", "vi")
sizes = st.tuples(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 15), st.integers(1, 5))


def drawn(seed, n, s, k):
    """Samples that have something in common."""
    rng = np.random.default_rng(seed)
    base = rng.integers(0, k, n)
    other = rng.integers(0, k, (s, n))
    return in_order_of_rows(np.where(rng.random((s, n)) < 0.7, base, other))


def distance(a, b, loss):
    """The loss by its definition."""
    if loss == "binder":
        (_, apart), (together, _) = pair_confusion_matrix(a, b)
        return (apart + together) / max(len(a) * (len(a) - 1), 1)
    return mutual_info_score(a, a) + mutual_info_score(b, b) - 2 * mutual_info_score(a, b)


def all_partitions(n):
    """Every partition of n rows."""
    for labels in itertools.product(range(n), repeat=n):
        if all(label <= max(labels[:i], default=-1) + 1 for i, label in enumerate(labels)):
            yield labels


@settings(max_examples=40, deadline=None)
@given(sizes)
def test_coclustering_is_the_share_of_samples_with_both_rows_together(size):
    samples = drawn(*size)
    expected = (samples[:, :, None] == samples[:, None, :]).mean(axis=0)
    assert_allclose(coclustering(samples), expected)
    rows = np.arange(samples.shape[1])[::-2]
    assert_allclose(coclustering(samples, rows), expected[np.ix_(rows, rows)])
    assert_allclose(coclustering(samples, rows, [0]), expected[rows][:, :1])


def test_coclustering_holds_for_more_clusters_than_a_byte_counts():
    samples = np.stack([np.arange(400), np.arange(400) // 2])
    share = coclustering(samples)
    assert_array_equal(np.diag(share), 1.0)
    assert share[0, 1] == 0.5
    assert share[1, 2] == 0
    assert share[0, 256] == 0


@settings(max_examples=40, deadline=None)
@given(sizes, st.sampled_from(LOSSES))
def test_expected_losses_are_means_of_losses(size, loss):
    samples = drawn(*size)
    expected = [np.mean([distance(a, b, loss) for b in samples]) for a in samples]
    assert_allclose(expected_loss(samples, samples, loss), expected, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(sizes, st.sampled_from(LOSSES))
def test_the_estimate_is_no_worse_than_any_sample_and_no_row_gains_by_another_label(size, loss):
    samples = drawn(*size)
    found = point_estimate(samples, loss)
    assert_allclose(found.loss, expected_loss(found.labels[None], samples, loss)[0])
    visited = expected_loss(samples, samples, loss)
    assert found.loss <= visited.min() + 1e-12
    moved = [np.r_[found.labels[:i], k, found.labels[i + 1 :]] for i in range(len(found.labels)) for k in range(6)]
    assert expected_loss(np.array(moved), samples, loss).min() >= found.loss - 1e-12


@pytest.mark.parametrize("loss", LOSSES)
def test_the_estimate_is_mostly_the_best_of_all_partitions(loss):
    every, hits = np.array(list(all_partitions(6))), 0
    assert len(every) == 203
    for seed in range(30):
        samples = drawn(seed, 6, 12, 3)
        least = expected_loss(every, samples, loss).min()
        hits += point_estimate(samples, loss).loss <= least + 1e-12
    assert hits >= 27


@pytest.mark.parametrize("loss", LOSSES)
def test_samples_that_all_agree_are_the_estimate(loss):
    labels = np.array([2, 0, 0, 1, 2])
    samples = np.tile(labels, (7, 1))
    found = point_estimate(samples, loss)
    assert_array_equal(found.labels, [0, 1, 1, 2, 0])
    assert found.loss == 0
    assert_array_equal(own_probability(labels, samples), np.ones(5))


@pytest.mark.parametrize("loss", LOSSES)
def test_names_of_clusters_and_order_of_samples_do_not_matter(loss):
    samples, rng = drawn(3, 40, 30, 5), np.random.default_rng(0)
    renamed = np.array([rng.permutation(5)[labels] for labels in samples])
    assert_array_equal(point_estimate(samples, loss).labels, point_estimate(renamed, loss).labels)
    assert point_estimate(samples[::-1], loss).loss == pytest.approx(point_estimate(samples, loss).loss, abs=0.02)


def test_one_row_and_lone_rows_are_no_exception():
    assert point_estimate(np.zeros((3, 1), int), "vi").labels.tolist() == [0]
    assert own_probability(np.zeros(1, int), np.zeros((3, 1), int)).tolist() == [1.0]
    alone = np.tile(np.arange(6), (4, 1))
    for loss in LOSSES:
        assert point_estimate(alone, loss).labels.tolist() == list(range(6))


def test_own_probability_is_the_mean_share_with_the_rest_of_the_cluster():
    samples = drawn(5, 12, 40, 4)
    labels = np.array([0] * 5 + [1] * 6 + [2])
    share, own = coclustering(samples), own_probability(labels, samples)
    for i in range(11):
        mates = np.flatnonzero((labels == labels[i]) & (np.arange(12) != i))
        assert_allclose(own[i], share[i, mates].mean())
    alone = [(row == row[11]).sum() == 1 for row in samples]
    assert_allclose(own[11], np.mean(alone))


def test_map_is_the_sample_of_largest_log_posterior():
    samples = drawn(1, 10, 20, 4)
    found = point_estimate(samples, "map", np.arange(20) % 13)
    assert_array_equal(found.labels, samples[12])
    assert_allclose(found.loss, expected_loss(samples[12], samples, "vi")[0])
    with pytest.raises(ValueError, match="needs the log posterior"):
        point_estimate(samples, "map")


def test_with_little_time_and_memory_fewer_partitions_are_looked_at(monkeypatch):
    samples = drawn(2, 60, 80, 4)
    full = point_estimate(samples, "vi")
    less = partitions.SUMMARIES._replace(comparisons=10 * 60 * 80, counts=500, entries=50 * 60)
    monkeypatch.setattr(partitions, "SUMMARIES", less)
    found = point_estimate(samples, "vi")
    assert_allclose(found.loss, expected_loss(found.labels[None], samples, "vi")[0])
    monkeypatch.undo()
    assert expected_loss(found.labels[None], samples, "vi")[0] <= 1.1 * full.loss


def test_posterior_of_count_is_a_distribution():
    values, probability = posterior_of_count(np.array([3, 2, 3, 5]))
    assert values.tolist() == [2, 3, 5]
    assert probability.tolist() == [0.25, 0.5, 0.25]
