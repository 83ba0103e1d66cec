"""``match_to``: clusters that are the same as earlier ones keep their numbers."""

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import data
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from kfree import DPMeans, GibbsDPMixture, HDPMeans, KernelDPMixture, VariationalDPMixture

CENTRES = np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0], [12.0, 12.0], [30.0, 5.0]])


def rows(which, seed=0):
    """Rows about some of the centres; later ones are fewer, so that the order by weight is known."""
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(CENTRES[k], 1.0, size=(60 - 8 * place, 2)) for place, k in enumerate(which)])


def nearest_of_all(centres):
    return ((centres[:, None] - CENTRES) ** 2).sum(axis=2).argmin(axis=1)


@given(st.permutations(range(5)), st.integers(2, 5), st.integers(2, 5), st.integers(0, 99))
def test_numbers_stay_where_clusters_do(order, before, after, seed):
    earlier = DPMeans(n_clusters=before).fit(rows(order[:before], seed))
    X = rows(order[::-1][:after], seed + 1)
    model = DPMeans(n_clusters=after, match_to=earlier).fit(X)
    old, new = nearest_of_all(earlier.cluster_centers_), nearest_of_all(model.cluster_centers_)
    truth = [np.flatnonzero(old == k)[0] if k in old else -1 for k in new]
    assert_array_equal(model.matched_, truth)
    kept = (model.matched_ >= 0) & (model.matched_ < after)
    assert_array_equal(model.matched_[kept], np.flatnonzero(kept))
    assert_array_equal(model.labels_, model.predict(X))
    assert_array_equal(np.bincount(model.labels_), model.cluster_weights_)


def test_a_number_beyond_the_last_moves_to_a_free_one():
    earlier = DPMeans(n_clusters=4).fit(rows([0, 1, 2, 3]))
    gone = nearest_of_all(earlier.cluster_centers_)[1]
    model = DPMeans(n_clusters=3, match_to=earlier).fit(rows([k for k in range(4) if k != gone]))
    assert_array_equal(model.matched_, [0, 3, 2])


def test_far_clusters_are_new_ones():
    earlier = DPMeans(n_clusters=2).fit(rows([0, 1]))
    model = DPMeans(n_clusters=2, match_to=earlier).fit(rows([0, 1]) + 500)
    assert_array_equal(model.matched_, [-1, -1])


def test_nothing_but_numbers_changes():
    X = rows(range(5))
    plain = DPMeans(n_clusters=5).fit(X)
    order = np.array([3, 1, 4, 0, 2])
    model = DPMeans(n_clusters=5, match_to=plain.cluster_centers_[order]).fit(X)
    assert plain.matched_ is None
    assert_array_equal(model.matched_, np.arange(5))
    assert_array_equal(order[model.labels_], plain.labels_)
    assert_array_equal(model.cluster_centers_, plain.cluster_centers_[order])
    assert_array_equal(model.cluster_weights_, plain.cluster_weights_[order])
    assert_allclose(model.probabilities_, plain.probabilities_)
    assert (model.objective_, model.radius_, model.lam_) == (plain.objective_, plain.radius_, plain.lam_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model",
    [
        VariationalDPMixture(random_state=0),
        VariationalDPMixture(family="diag", random_state=0),
        KernelDPMixture(random_state=0),
        GibbsDPMixture(n_samples=20, burn_in=20, random_state=0),
    ],
    ids=["gaussian", "diag", "kernel", "gibbs"],
)
def test_components_keep_their_numbers_with_all_that_belongs_to_them(model):
    X = rows([0, 1, 4])
    plain = clone(model).fit(X)
    order = np.arange(plain.n_components_)[::-1]
    again = clone(model).set_params(match_to=plain.means_[order]).fit(X)
    assert_array_equal(again.matched_, np.arange(order.size))
    assert_array_equal(order[again.labels_], plain.labels_)
    assert_array_equal(again.labels_, again.predict(X))
    assert_allclose(again.means_, plain.means_[order])
    assert_allclose(again.weights_, plain.weights_[order])
    assert_allclose(again.covariances_, plain.covariances_[order])
    assert_allclose(again.predict_proba(X), plain.predict_proba(X)[:, order], atol=1e-9)
    assert_allclose(again.score_samples(X), plain.score_samples(X))
    if hasattr(plain, "weights_sd_"):
        assert_allclose(again.weights_sd_, plain.weights_sd_[order])
        assert_allclose(again.means_sd_, plain.means_sd_[order])
        for name, draws in again.sample_parameters(3).items():
            assert_allclose(draws, plain.sample_parameters(3)[name][:, order])
    if hasattr(plain, "support_"):
        assert_array_equal(again.support_, plain.support_[order])


def test_documents_are_matched_by_their_words():
    rng = np.random.default_rng(0)
    words = np.eye(3).repeat(4, axis=1) + 0.05
    X = np.concatenate([rng.multinomial(40, w / w.sum(), size=50) for w in words])
    X[0] = 0  # a document without words
    plain = VariationalDPMixture(family="multinomial").fit(sp.csr_matrix(X.astype(float)))
    again = VariationalDPMixture(family="multinomial", match_to=plain.means_[::-1]).fit(X)
    assert_array_equal(again.matched_, np.arange(plain.n_components_))
    assert_allclose(again.means_, plain.means_[::-1])
    told = DPMeans(n_clusters=3, divergence="kl", match_to=7 * plain.means_[::-1]).fit(X[1:])
    assert_array_equal(told.matched_, np.arange(3))  # lengths of histograms do not matter


def test_groups_keep_what_they_hold():
    X, groups = rows(range(5)), np.arange(sum(60 - 8 * k for k in range(5))) // 60
    plain = HDPMeans(50.0, 100.0).fit(X, groups=groups)
    order = np.arange(plain.n_clusters_)[::-1]
    model = HDPMeans(50.0, 100.0, match_to=plain.cluster_centers_[order]).fit(X, groups=groups)
    assert_array_equal(model.matched_, np.arange(order.size))
    assert_array_equal(order[model.labels_], plain.labels_)
    assert_array_equal(model.labels_, model.predict(X, groups=groups))
    assert_array_equal(model.group_clusters_.toarray(), plain.group_clusters_.toarray()[:, order])


def test_batches_append_clusters_that_are_new():
    model = DPMeans(radius=20.0, match_to=CENTRES[[1, 0]]).partial_fit(rows([0, 1]))
    assert_array_equal(model.matched_, [0, 1])
    model.partial_fit(rows([4]))
    assert_array_equal(model.matched_, [0, 1, -1])


@pytest.mark.parametrize(
    ("match_to", "message"),
    [
        (DPMeans(), "it is not fitted"),
        (np.zeros((2, 3)), r"shape \(2, 3\), but X has 2 columns"),
        (np.zeros(2), "shape"),
        (np.empty((0, 2)), "shape"),
        (np.array([[0.0, np.nan]]), "finite"),
        ("auto", "numbers"),
    ],
)
def test_what_cannot_be_matched_is_told(match_to, message):
    for model in (DPMeans(n_clusters=2, match_to=match_to), VariationalDPMixture(match_to=match_to)):
        with pytest.raises(ValueError, match=message):
            model.fit(rows([0, 1]))
        assert not hasattr(model, "labels_")


def test_earlier_centres_must_lie_where_rows_may():
    X = rows([0, 1]) + 20
    with pytest.raises(ValueError, match=r"needs entries >= 0, but match_to\[0, 1\] = -1"):
        DPMeans(n_clusters=2, divergence="kl", match_to=[[1.0, -1.0]]).fit(X)


@pytest.mark.skipif(not data.has("wholesale"), reason="wholesale.npz is not there (see KFREE_DATA)")
def test_segments_of_customers_keep_their_numbers_next_month():
    X = np.load(data.FOLDER / "wholesale.npz")["X"].astype(float)
    model, kept = DPMeans(n_clusters=5).fit(X), []
    for seed in range(3):
        later = X * (1 + 0.05 * np.random.default_rng(seed).normal(size=X.shape))
        again = DPMeans(n_clusters=5, match_to=model).fit(later)
        assert_array_equal(again.matched_, np.arange(5))
        kept.append((again.labels_ == model.labels_).mean())
        for K in (4, 6):  # clusters that are called the same share most of their rows
            again = DPMeans(n_clusters=K, match_to=model).fit(later)
            assert np.count_nonzero(again.matched_ >= 0) >= 3
            for k in np.flatnonzero(again.matched_ >= 0):
                now, then = again.labels_ == k, model.labels_ == again.matched_[k]
                assert (now & then).sum() > 0.5 * min(now.sum(), then.sum())
    assert min(kept) > 0.85
    assert np.mean(kept) > 0.9
