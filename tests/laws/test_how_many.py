"""The choice of lam from the data."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import adjusted_rand_score

from kfree import DPMeans
from kfree.families import FAMILIES, Family, Geometry, Mahalanobis, Summary, make_family
from kfree.inference.clusters.assign import nearest
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.how_many.choose import choose_lam
from kfree.inference.clusters.how_many.modes import _bridges
from kfree.inference.clusters.table import Table, make_table
from kfree.inference.dip import discoveries
from kfree.inference.loop import Budget
from kfree.rows import CsrRows, DenseRows


def table_of(X, divergence: "str | Family" = "sqeuclidean", weight=None) -> Table:
    """A table as an estimator makes it: rows scaled and centred as the family wants them."""
    family, n = make_family(divergence), X.shape[0]
    X = sp.csr_matrix(X, dtype=float) if sp.issparse(X) else np.ascontiguousarray(X, dtype=float)
    dense = X.toarray() if sp.issparse(X) else X
    w = np.ones(n) if weight is None else np.asarray(weight, float)
    scale = np.empty(0)
    if family.normalise == "sum":
        scale = 1 / dense.sum(axis=1)
    elif family.normalise == "norm":
        scale = 1 / np.sqrt((dense**2).sum(axis=1))
    stats = dense * (scale[:, None] if scale.size else 1.0)
    total = w @ stats
    centred = stats - total / w.sum()
    covariance = (centred * w[:, None]).T @ centred / w.sum()
    family = family.adapt(Summary(total / w.sum(), float(dense.max()), lambda: covariance))
    anchor = family.centre(total[None], w.sum()[None])[0]
    given = np.empty(0) if weight is None else w
    if sp.issparse(X):
        return make_table(CsrRows(X, weight=given, scale=scale), Geometry(family, anchor))
    shift = anchor if family.translates else np.zeros(X.shape[1])
    rows = DenseRows(X, weight=given, scale=scale, shift=shift)
    return make_table(rows, Geometry(family, anchor - shift))


def choose(X, divergence="sqeuclidean", weight=None):
    return choose_lam(table_of(X, divergence, weight), Budget())


def planted(name, seed=0, n=600, K=4, p=12):
    """Rows of K clear groups that suit the family, and their groups."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    if name in ("bernoulli", "binomial"):
        rate = np.where(rng.uniform(size=(K, 3 * p)) < 0.5, 0.1, 0.9)
        return rng.binomial(1 if name == "bernoulli" else 5, rate[y]).astype(float), y
    if name == "negative_binomial":
        return rng.negative_binomial(20, 20 / (20 + rng.uniform(1, 60, size=(K, p))[y])).astype(float), y
    if name == "poisson":
        return rng.poisson(rng.gamma(1.0, 10.0, size=(K, p))[y]).astype(float), y
    if name == "kl":
        shares = rng.dirichlet(np.full(3 * p, 0.3), K)
        return np.array([rng.multinomial(100, shares[k]) for k in y]).astype(float), y
    if name == "itakura_saito":
        return rng.gamma(20.0, np.exp(2 * rng.normal(size=(K, p)))[y]), y
    return 5 * rng.normal(size=(K, p))[y] + rng.normal(size=(n, p)), y


def check_sound(found, table):
    lo, hi = found.window
    assert 0 < found.lam < np.inf
    assert lo <= found.lam <= hi
    assert found.mean.ndim == 2
    assert np.isfinite(found.mean).all()
    assert np.isfinite(table.geometry.affine(found.mean).offset).all()


@pytest.mark.parametrize("name", sorted(set(FAMILIES) - {"mahalanobis"}))
def test_clear_groups_are_counted_and_found(name):
    X, y = planted(name)
    table = table_of(X, name)
    found = choose_lam(table, Budget())
    check_sound(found, table)
    assert found.n_groups == len(found.mean) == 4
    labels = nearest(table, np.arange(table.n), Centres(table.geometry, found.mean))[0].labels
    assert adjusted_rand_score(y, labels) > 0.95


def test_groups_of_unequal_spread_are_found():
    rng = np.random.default_rng(2)
    y = rng.choice(5, 1500, p=[0.5, 0.2, 0.15, 0.1, 0.05])
    spread = np.array([2.0, 1.0, 1.0, 0.5, 0.5])
    X = 8 * rng.normal(size=(5, 5))[y] + rng.normal(size=(1500, 5)) * spread[y][:, None]
    assert len(choose(X).mean) == 5


def test_clear_groups_are_found_by_mahalanobis_with_their_covariance():
    X, _ = planted("mahalanobis")
    scale = np.geomspace(0.01, 100, X.shape[1])
    assert len(choose(X * scale, Mahalanobis(np.diag(scale**2))).mean) == 4


CLOUDS = {
    "gaussian": lambda rng: (rng.normal(size=(800, 3)), "sqeuclidean"),
    "gaussian, one column": lambda rng: (rng.normal(size=(800, 1)), "sqeuclidean"),
    "uniform": lambda rng: (rng.uniform(size=(800, 2)), "sqeuclidean"),
    "uniform, one column": lambda rng: (rng.uniform(size=(800, 1)), "sqeuclidean"),
    "exponential": lambda rng: (rng.exponential(size=(800, 3)), "sqeuclidean"),
    "rounded": lambda rng: (np.round(2 * rng.normal(size=(800, 2))), "sqeuclidean"),
    "poisson": lambda rng: (rng.poisson(3.0, size=(800, 6)).astype(float), "poisson"),
    "multinomial": lambda rng: (rng.multinomial(60, np.full(20, 0.05), size=800).astype(float), "kl"),
    "bits": lambda rng: ((rng.uniform(size=(800, 12)) < 0.4).astype(float), "bernoulli"),
    "gamma": lambda rng: (rng.gamma(3.0, size=(800, 3)), "itakura_saito"),
    "one direction": lambda rng: (rng.normal(size=(800, 4)) + 2, "cosine"),
}


@pytest.mark.parametrize("cloud", CLOUDS)
def test_one_cloud_is_one_cluster(cloud):
    found = choose(*CLOUDS[cloud](np.random.default_rng(1)))
    assert found.n_groups == len(found.mean) == 1
    assert found.window[1] == np.inf
    assert found.lam == pytest.approx(2 * found.window[0])
    assert 1 <= len(found.suggestions) <= 3
    assert all(window.n_clusters > 1 and 0 < window.lo < window.hi for window in found.suggestions)


@pytest.mark.parametrize("name", ["sqeuclidean", "kl"])
def test_order_of_the_rows_does_not_matter(name):
    X, _ = planted(name)
    X = np.concatenate([X, X[:50]])
    shuffled = X[np.random.default_rng(5).permutation(len(X))]
    one, other = choose(X, name), choose(shuffled, name)
    assert_allclose(other.lam, one.lam, rtol=1e-9)
    assert_allclose(other.mean, one.mean, rtol=1e-9, atol=1e-12)


def test_order_of_the_rows_does_not_matter_where_they_are_sampled():
    X, _ = planted("sqeuclidean", n=11_000, p=2)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, size=len(X))
    order = np.random.default_rng(5).permutation(len(X))
    one, other = choose(X, weight=weight), choose(X[order], weight=weight[order])
    assert len(one.mean) == 4
    assert_allclose(other.lam, one.lam, rtol=1e-9)


@pytest.mark.parametrize("name", ["sqeuclidean", "kl", "poisson"])
def test_sparse_equals_dense(name):
    X, _ = planted(name)
    X = np.where(np.abs(X) < 1, 0.0, np.round(X, 2)) if name == "sqeuclidean" else X
    dense, sparse = choose(X, name), choose(sp.csr_matrix(X), name)
    assert sparse.n_groups == dense.n_groups == 4
    assert_allclose(sparse.lam, dense.lam, rtol=1e-6)


def test_lam_is_a_price_it_scales_with_the_weights():
    X, _ = planted("sqeuclidean")
    assert_allclose(choose(X, weight=np.full(len(X), 2.5)).lam, 2.5 * choose(X).lam, rtol=1e-9)


def test_rows_of_weight_zero_do_not_count():
    X, _ = planted("sqeuclidean")
    far = np.concatenate([X, 100 + X[:100]])
    weight = np.r_[np.ones(len(X)), np.zeros(100)]
    assert_allclose(choose(far, weight=weight).lam, choose(X).lam, rtol=1e-9)


DEGENERATE = {
    "one row": np.array([[1.0, 0.0, 1.0]]),
    "two rows": np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]),
    "three rows": np.array([[0.0], [1.0], [1.0]]),
    "equal rows": np.ones((40, 2)),
    "three values": np.repeat(np.eye(3), 15, axis=0),
    "constant column": np.c_[np.ones(30), np.arange(30) % 2],
}


@pytest.mark.parametrize("name", sorted(FAMILIES))
@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_tables_are_one_cluster(name, case):
    X = DEGENERATE[case] + (name in ("itakura_saito", "cosine", "kl"))  # no zeros, or no rows of zeros
    table = table_of(X, name)
    found = choose_lam(table, Budget())
    check_sound(found, table)
    assert found.n_groups == 1


def test_equal_rows_leave_lam_open():
    found = choose(np.ones((30, 2)))
    assert found.window == (0.0, np.inf)
    assert found.lam > 0


def test_a_spent_budget_still_gives_an_answer():
    X, _ = planted("sqeuclidean")
    table = table_of(X)
    check_sound(choose_lam(table, Budget(max_time=0.0)), table)


def test_a_bridge_is_a_pair_without_which_there_are_more_parts():
    rng = np.random.default_rng(0)
    for _ in range(30):
        K = int(rng.integers(2, 15))
        pairs = np.argwhere(np.triu(rng.uniform(size=(K, K)) < 0.2, 1))

        def parts(kept, K=K):
            return connected_components(sp.coo_matrix((np.ones(len(kept)), kept.T), shape=(K, K)), directed=False)[0]

        expected = [parts(np.delete(pairs, e, axis=0)) > parts(pairs) for e in range(len(pairs))]
        assert _bridges(pairs, K).tolist() == expected


def test_discoveries_are_the_largest_set_within_the_rate():
    p = np.array([0.001, 0.5, 0.009, 0.02, 0.9])
    assert discoveries(p, 0.05).tolist() == [True, False, True, True, False]
    assert not discoveries(np.array([0.5, 0.6]), 0.05).any()


@pytest.mark.parametrize("weighting", ["length", "relative"])
def test_weights_equal_repetition_for_a_chosen_lam_of_histograms_that_count_by_their_length(weighting):
    rng = np.random.default_rng(2)
    X, weight = rng.random((200, 5)), rng.integers(0, 4, 200)
    settings = {"divergence": "kl", "weighting": weighting, "smoothing": 2.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no gap
        weighted = DPMeans(**settings).fit(X, sample_weight=weight)
        repeated = DPMeans(**settings).fit(np.repeat(X, weight, axis=0))
    assert_allclose(weighted.lam_, repeated.lam_, rtol=1e-9)
    assert_array_equal(np.repeat(weighted.labels_, weight), repeated.labels_)
