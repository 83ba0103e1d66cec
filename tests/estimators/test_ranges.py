"""Values and weights at the ends of what floats hold: fitted as their rescaled selves, or refused with what works."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from kfree import DPMeans, HDPMeans, HDPTopics, SquaredEuclidean, radius_for_k
from kfree.inference.loop import ObjectiveRose, check_fall
from kfree.inference.shared import hdp_pass

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning", "ignore::UserWarning")


def blobs(seed=0, n=60, p=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(4, p))[rng.integers(4, size=n)] * 5 + rng.normal(size=(n, p))


def positive(seed=0):
    return np.exp(0.5 * blobs(seed))


# -- the same answer in other units ----------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [-450, -200, 0, 300, 450])
@pytest.mark.parametrize("algorithm", ["batch", "serial", "delayed", "collapsed"])
@pytest.mark.parametrize("divergence", ["mahalanobis", "itakura_saito"])
def test_divergences_that_are_blind_to_units_give_the_same_in_all_of_them(divergence, algorithm, exponent):
    X = blobs() if divergence == "mahalanobis" else positive()
    lam, setting = 3.0, {"algorithm": algorithm, "divergence": divergence, "search": "points", "order": "index"}
    there, here = DPMeans(radius=lam, **setting).fit(np.ldexp(X, exponent)), DPMeans(radius=lam, **setting).fit(X)
    assert_array_equal(there.labels_, here.labels_)
    assert_allclose(there.objective_, here.objective_, rtol=1e-9)


@pytest.mark.parametrize("exponent", [-490, 0, 490])
def test_squared_distances_hold_up_to_the_ends_of_their_range(exponent):
    X = blobs()
    lam = radius_for_k(X, 4)
    there, here = DPMeans(radius=np.ldexp(lam, 2 * exponent)).fit(np.ldexp(X, exponent)), DPMeans(radius=lam).fit(X)
    assert_array_equal(there.labels_, here.labels_)
    assert_allclose(np.ldexp(there.objective_, -2 * exponent), here.objective_, rtol=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weight", [None, 1e-140, 1e140])
@pytest.mark.parametrize("divergence", ["cosine", "kl"])
def test_rows_that_are_divided_by_their_size_may_have_any(divergence, weight, sparse):
    X = np.abs(blobs()) + (divergence == "kl")
    odd = X * 10.0 ** np.random.default_rng(1).integers(-290, 290, len(X))[:, None]
    w = None if weight is None else np.full(len(X), weight)
    form = sp.csr_matrix if sparse else np.asarray
    setting = {"divergence": divergence, "random_state": 0}
    there, here = (
        DPMeans(radius=0.05 * min(weight or 1.0, 1.0), **setting).fit(form(x), sample_weight=w) for x in (odd, X)
    )
    assert_array_equal(there.predict(form(odd)), there.labels_)
    assert_allclose(there.objective_, here.objective_, rtol=1e-6)
    assert there.n_clusters_ == here.n_clusters_ > 1


def test_a_zero_excludes_rows_however_small_their_entry_is():
    X = np.array([[1.0, 0.0], [3.0, 0.0], [2.0, 0.0]])
    for divergence in ("kl", "poisson", "negative_binomial"):
        model = DPMeans(radius=1.0, divergence=divergence).fit(X)
        for tiny in (1e-12, 1e-40, 1e-90, 1e-200):
            assert np.isinf(model.transform([[2.0, tiny]])).all(), (divergence, tiny)


def test_a_table_with_tiny_entries_and_zeros_keeps_them_apart():
    X = np.array([[1.0, 0.0], [1.0, 1e-90]] * 5)
    model = DPMeans(radius=1e-3, divergence="kl", init=X[:2], search="points").fit(X)
    assert_array_equal(model.predict(X), model.labels_)
    assert np.isfinite(model.inertia_)
    assert np.isinf(model.transform(X)[1::2].max(axis=1)).all()


def test_distances_that_float32_cannot_hold_come_in_float64():
    X = (1e30 * np.abs(blobs())).astype(np.float32)
    costs = DPMeans(radius=1e61).fit(X).transform(X)
    assert costs.dtype == np.float64
    assert np.isfinite(costs).all()
    assert DPMeans(radius=1.0).fit(X / np.float32(1e30)).transform(X / np.float32(1e30)).dtype == np.float32


@pytest.mark.parametrize("heavy", [1e14, 1e60, 1e140])
@pytest.mark.parametrize("divergence", ["sqeuclidean", "itakura_saito", "poisson", "cosine"])
@pytest.mark.parametrize("algorithm", ["batch", "collapsed"])
def test_weights_of_very_different_size_give_finite_clusters(divergence, algorithm, heavy):
    X, w = positive(), np.where(np.arange(60) % 3, 1.0, heavy)
    model = DPMeans(radius=0.5, divergence=divergence, algorithm=algorithm, search="full", random_state=0)
    model.fit(X, sample_weight=w)
    assert np.isfinite([model.objective_, model.inertia_]).all()
    assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_equal_rows_are_one_cluster_in_all_units(scale):
    model = DPMeans().fit(np.full((50, 3), 0.1 * scale))
    assert model.n_clusters_ == 1
    assert np.isfinite(model.objective_)


# -- refused, with what would work -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "X", "message"),
    [
        ({"divergence": "mahalanobis"}, blobs() * 1e-200, "columns that vary by 1e-140 to 1e\\+150"),
        ({}, blobs() * 1e200, "1e\\+303 or more from the mean|1e\\+150 is the most whose square"),
        ({}, blobs() * 1e-170, "must lie between 1e-300 and 1e\\+303"),
        ({"lam": "auto"}, blobs() * 1e-90, "lam='auto' needs squares of these.*between 1e-140 and 1e\\+140"),
        ({"lam": 1.0}, blobs() * 1e-90, "lam=1.0 needs squares of these.*between 1e-140 and 1e\\+140"),
        ({"n_clusters": 3}, blobs() * 1e-90, "n_clusters=3 needs squares of these.*between 1e-140 and 1e\\+140"),
        ({"divergence": "itakura_saito"}, np.array([[1e-300], [1e300]]), "entries between 1e-150 and 1e\\+150"),
        ({"divergence": "poisson"}, np.array([[1.0], [1e60]]), "entries up to 1e\\+50, but X\\[1, 0\\] = 1e\\+60"),
        ({"divergence": "kl"}, np.array([[1e-310], [1.0]]), "sum, which must lie between 1e-300 and 1e\\+300"),
        ({"divergence": "cosine"}, np.array([[1e305], [1.0]]), "length, which must lie between 1e-300"),
        ({"lam": 1e305}, blobs(), "lam must be at most 1.66667e\\+304 for 60 rows, or inf"),
        ({"radius": 1e305}, blobs(), "radius must be at most 1.66667e\\+304 for 60 rows, or inf"),
        ({"smoothing": 1e200}, blobs(), "smoothing must be 0 or between 1e-150 and 1e\\+150"),
        ({"smoothing": 1.0, "smoothing_mean": [1e160] * 3}, blobs(), "smoothing_mean is 1e\\+303 or more"),
        (
            {"smoothing": 1.0, "smoothing_mean": [1e200] * 3, "divergence": "negative_binomial"},
            positive(),
            "entries up to 1e\\+50, but smoothing_mean",
        ),
    ],
)
def test_tables_that_floats_cannot_hold_are_refused_with_what_they_can(setting, X, message):
    with pytest.raises(ValueError, match=message):
        DPMeans(**(setting if {"lam", "n_clusters"} & set(setting) else {"radius": 1.0, **setting})).fit(X)


@pytest.mark.parametrize(
    ("divergence", "weight", "message"),
    [
        ("sqeuclidean", 1e-200, "must be 0 or at least 1e-150, and at most 1e\\+150 in sum, but row 0 weighs 1e-200"),
        ("sqeuclidean", 1e200, "must be 0 or at least 1e-150"),
        ("bernoulli", 1e14, "needs weights of at least 1e-12 of their sum"),
    ],
)
def test_weights_that_sums_would_lose_are_refused(divergence, weight, message):
    X = np.array([[0.0, 1.0], [1.0, 0.5], [1.0, 1.0]])
    with pytest.raises(ValueError, match=message):
        DPMeans(radius=1.0, divergence=divergence).fit(X, sample_weight=[weight, 1.0, 1.0])


def test_a_product_of_weights_and_distances_that_overflows_is_refused():
    with pytest.raises(ValueError, match=r"Rows are up to .* must lie between 1e-300 and 1e\+303"):
        DPMeans(radius=1.0).fit(blobs() * 1e100, sample_weight=np.full(60, 1e120))


@pytest.mark.parametrize("far", [1e152, 1e200, 1.7e308])
def test_rows_asked_about_may_not_be_farther_than_numbers_go(far):
    model = DPMeans(radius=5.0).fit(blobs())
    for ask in (model.predict, model.transform, model.score, model.decision_function, model.partial_fit):
        with pytest.raises(ValueError, match=r"Row 1 of X is 1e\+303 or more from the mean"):
            ask([[0.0, 0.0, 0.0], [far, 0.0, 0.0]])
    assert model.predict([[1e150, 0.0, 0.0]]).shape == (1,)


@pytest.mark.parametrize("divergence", ["sqeuclidean", "mahalanobis", "kl", "poisson", "cosine"])
def test_the_order_in_memory_does_not_change_a_digit(divergence):
    for seed in range(5):
        X, w = np.abs(blobs(seed, n=92, p=8)), np.random.default_rng(seed).random(92)
        fits = [
            DPMeans(radius=0.5, divergence=divergence).fit(form(X), sample_weight=w)
            for form in (np.array, np.asfortranarray)
        ]
        assert_array_equal(fits[0].objective_trace_, fits[1].objective_trace_)


# -- the guard, and the hard HDP -------------------------------------------------------------------------------------


def test_an_objective_that_becomes_infinite_has_risen():
    with pytest.raises(ObjectiveRose):
        check_fall(1.0, np.inf, np.inf, "here")
    check_fall(np.inf, np.inf, np.inf, "here")


def test_the_traces_of_fits_are_finite():
    X = (blobs() > 0).astype(float)
    for init in (X[:1], "farthest_first"):
        model = DPMeans(radius=0.3, divergence="bernoulli", init=init, algorithm="delayed").fit(X)
        assert np.isfinite(model.objective_trace_).all()


@pytest.mark.parametrize("rounds", [0, 1])
def test_labels_and_centres_of_the_hard_hdp_agree_however_few_closing_rounds_there_are(rounds, monkeypatch):
    monkeypatch.setattr(hdp_pass, "HDP", hdp_pass.HDP._replace(closing_rounds=rounds))
    X, groups = np.round(blobs(2, n=200)), np.arange(200) % 5
    model = HDPMeans(lam_local=2.0, lam_global=8.0, max_iter=1, random_state=0).fit(X, groups=groups)
    assert_array_equal(model.predict(X, groups=groups), model.labels_)
    cost = SquaredEuclidean().divergence(X, model.cluster_centers_[model.labels_]).sum()
    assert_allclose(model.inertia_, cost, rtol=1e-9)


# -- topics ----------------------------------------------------------------------------------------------------------


def corpus(seed=0, n=30, p=12):
    rng = np.random.default_rng(seed)
    return np.stack([rng.multinomial(40, rng.dirichlet(np.full(p, 0.2))) for _ in range(n)]).astype(float)


@pytest.mark.parametrize("search", ["paper", "anneal"])
@pytest.mark.parametrize("seed", range(4))
def test_documents_without_weight_are_in_topics_that_there_are(search, seed):
    X = corpus(seed)
    w = np.where(np.arange(len(X)) % 2, 1.0, 0.0)
    model = HDPTopics(1.0, 2.0, mix=0.0, search=search, random_state=seed).fit(X, sample_weight=w)
    cells = sp.csr_matrix(X)
    shares = np.zeros((len(X), model.n_topics_))
    np.add.at(shares, (np.repeat(np.arange(len(X)), np.diff(cells.indptr)), model.cell_labels_), cells.data)
    assert_array_equal(shares, model.doc_topic_counts_.toarray())


def test_documents_of_very_many_tokens_are_scored():
    X = corpus()
    model = HDPTopics(n_topics=2, random_state=0).fit(X)
    assert np.isfinite(model.score(X * 1e12))
    assert_allclose(model.score(X * 1e12), model.score(X * 1e13), rtol=1e-9)


@pytest.mark.parametrize(
    ("setting", "factor", "weight", "message"),
    [
        ({}, 1e18, None, "up to 1e\\+15 tokens in a document"),
        ({}, 1.0, 1e-20, "weights that are 0 or between 1e-15 and 1e\\+15, but sample_weight\\[0\\] = 1e-20"),
        ({"smoothing": 1e20}, 1.0, None, "smoothing must be at most 1e\\+15"),
        ({"lam_global": np.inf}, 1.0, None, "lam_global must be at most 1e\\+250"),
    ],
)
def test_corpora_that_floats_cannot_hold_are_refused(setting, factor, weight, message):
    w = None if weight is None else np.full(30, weight)
    with pytest.raises(ValueError, match=message):
        HDPTopics(**setting).fit(corpus() * factor, sample_weight=w)


def test_no_warnings_of_numpy_escape_where_rows_are_refused():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for X in (np.array([[np.inf, -np.inf], [1.0, 2.0]], np.float32), np.array([[1e308], [-1e308], [1e308]])):
            with pytest.raises(ValueError, match=r"inf|more than|or more|is the most"):
                DPMeans(radius=1.0).fit(X)
