"""How many clusters: the path of solutions, the choice, and the tables without groups it is measured against."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.sparse.csgraph import connected_components
from scipy.stats import norm
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import adjusted_rand_score

from kfree import DPMeans
from kfree.families import FAMILIES, Family, Geometry, Mahalanobis, Summary, make_family
from kfree.inference.clusters.assign import nearest
from kfree.inference.clusters.centres import Centres
from kfree.inference.clusters.how_many.choose import choose_lam
from kfree.inference.clusters.how_many.clearness import clearness
from kfree.inference.clusters.how_many.how_many_numbers import HOW_MANY
from kfree.inference.clusters.how_many.modes import _bridges
from kfree.inference.clusters.how_many.price_path import PricePath
from kfree.inference.clusters.how_many.subsample import draw_pilot
from kfree.inference.clusters.how_many.surrogates import (
    Surrogates,
    UnimodalColumn,
    _likelihoods,
    _links,
    _mode,
    values_of,
)
from kfree.inference.clusters.labelling import LocalLabelling
from kfree.inference.clusters.moves import swap
from kfree.inference.clusters.table import Table, make_memory, make_table
from kfree.inference.dip import discoveries
from kfree.inference.loop import Budget
from kfree.inference.windows import envelope_windows
from kfree.rows import CsrRows, DenseRows
from support.family_data import draw_rows, make
from support.slow_clusters import Slow


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
    return choose_lam(LocalLabelling(table_of(X, divergence, weight)), Budget())


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
    choice, mean = found.choice, found.centres()
    lo, hi = found.path.best_at(found.lam)[1:]
    assert 0 < found.lam < np.inf
    assert lo <= found.lam <= hi
    assert mean.ndim == 2
    assert np.isfinite(mean).all()
    assert np.isfinite(table.geometry.affine(mean).offset).all()
    assert choice.best in choice.n_clusters
    assert choice.n_groups >= 1
    assert choice.best not in choice.suggestions


# -- the choice --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(set(FAMILIES) - {"mahalanobis"}))
def test_clear_groups_are_counted_and_found(name):
    X, y = planted(name)
    table = table_of(X, name)
    found = choose_lam(LocalLabelling(table), Budget())
    check_sound(found, table)
    mean = found.centres()
    assert found.choice.n_groups == found.choice.best == len(mean) == 4
    assert found.choice.clearness > HOW_MANY.clear
    labels = nearest(table, np.arange(table.n), Centres(table.geometry, mean))[0].labels
    assert adjusted_rand_score(y, labels) > 0.95


def test_groups_of_unequal_spread_are_found():
    rng = np.random.default_rng(2)
    y = rng.choice(5, 1500, p=[0.5, 0.2, 0.15, 0.1, 0.05])
    spread = np.array([2.0, 1.0, 1.0, 0.5, 0.5])
    X = 8 * rng.normal(size=(5, 5))[y] + rng.normal(size=(1500, 5)) * spread[y][:, None]
    assert choose(X).choice.best == 5


def test_clear_groups_are_found_by_mahalanobis_with_their_covariance():
    X, _ = planted("mahalanobis")
    scale = np.geomspace(0.01, 100, X.shape[1])
    assert choose(X * scale, Mahalanobis(np.diag(scale**2))).choice.best == 4


def test_clear_groups_of_many_columns_are_found():
    X, _ = planted("sqeuclidean", n=500, p=150)
    table = table_of(X)
    found = choose_lam(LocalLabelling(table), Budget())
    check_sound(found, table)
    assert len(found.centres()) == found.choice.best == 4


CLOUDS = {
    "gaussian": lambda rng: (rng.normal(size=(800, 3)), "sqeuclidean"),
    "gaussian, one column": lambda rng: (rng.normal(size=(800, 1)), "sqeuclidean"),
    "gaussian, many columns": lambda rng: (rng.normal(size=(300, 130)), "sqeuclidean"),
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
    choice = found.choice
    assert choice.n_groups == choice.best == 1
    assert choice.window[0, 1] == np.inf
    assert found.lam == pytest.approx(2 * choice.window[0, 0])
    assert found.path.best_at(found.lam).n_clusters == 1
    assert choice.suggestions
    assert set(choice.suggestions) <= set(choice.n_clusters[np.isfinite(choice.window[:, 0])].tolist()) - {1}


#: Laws without groups; tables of n rows and p columns.
LAWS = {
    "gaussian": lambda rng, n, p: rng.normal(size=(n, p)),
    "uniform": lambda rng, n, p: rng.uniform(size=(n, p)),
    "exponential": lambda rng, n, p: rng.exponential(size=(n, p)),
    "lognormal": lambda rng, n, p: rng.lognormal(size=(n, p)),
    "t3": lambda rng, n, p: rng.standard_t(3, size=(n, p)),
    "poisson": lambda rng, n, p: rng.poisson(3.0, size=(n, p)).astype(float),
    "correlated": lambda rng, n, p: rng.normal(size=(n, p)) @ rng.normal(size=(p, p)),
    "rounded": lambda rng, n, p: np.round(rng.normal(size=(n, p)), 1),
}


@pytest.mark.parametrize(("n", "p"), [(100, 2), (100, 20), (300, 5), (1000, 2), (1000, 20)])
@pytest.mark.parametrize("law", LAWS)
def test_tables_without_groups_are_not_split(law, n, p):
    assert choose(LAWS[law](np.random.default_rng([n, p]), n, p)).choice.best == 1


def check_same(one, other, rtol=1e-9):
    """Two choices say the same, figure by figure."""
    assert (one.choice.best, one.choice.n_groups) == (other.choice.best, other.choice.n_groups)
    assert_array_equal(one.choice.n_clusters, other.choice.n_clusters)
    for name in ("score", "score_without_groups", "spread_without_groups", "gain", "inertia", "window", "clearness"):
        scale = np.nanmax(np.abs(np.where(np.isinf(getattr(one.choice, name)), 0.0, getattr(one.choice, name))))
        assert_allclose(getattr(one.choice, name), getattr(other.choice, name), rtol=rtol, atol=rtol * scale)
    assert_allclose(one.lam, other.lam, rtol=rtol)


@pytest.mark.parametrize("name", ["sqeuclidean", "kl", "poisson"])
def test_order_of_the_rows_does_not_matter(name):
    X, _ = planted(name)
    X = np.concatenate([X, X[:50]])
    shuffled = X[np.random.default_rng(5).permutation(len(X))]
    one, other = choose(X, name), choose(shuffled, name)
    check_same(one, other)


def test_order_of_the_rows_does_not_matter_where_they_are_sampled():
    X, _ = planted("sqeuclidean", n=11_000, p=2)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, size=len(X))
    order = np.random.default_rng(5).permutation(len(X))
    one, other = choose(X, weight=weight), choose(X[order], weight=weight[order])
    assert one.choice.best == 4
    check_same(one, other)


@pytest.mark.parametrize("name", ["sqeuclidean", "kl", "poisson"])
def test_sparse_equals_dense(name):
    X, _ = planted(name)
    X = np.where(np.abs(X) < 1, 0.0, np.round(X, 2)) if name == "sqeuclidean" else X
    dense, sparse = choose(X, name), choose(sp.csr_matrix(X), name)
    assert sparse.choice.n_groups == dense.choice.n_groups == 4
    check_same(dense, sparse, rtol=1e-6)


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_whole_weights_are_copies(name):
    X, _ = planted(name, n=250)
    weight = np.random.default_rng(3).integers(0, 4, len(X))
    family = name if name != "mahalanobis" else Mahalanobis(np.eye(X.shape[1]))
    check_same(choose(X, family, weight=weight), choose(np.repeat(X, weight, axis=0), family))


def test_lam_is_a_price_it_scales_with_the_weights():
    X, _ = planted("sqeuclidean")
    assert_allclose(choose(X, weight=np.full(len(X), 2.5)).lam, 2.5 * choose(X).lam, rtol=1e-9)


def test_rows_of_weight_zero_do_not_count():
    X, _ = planted("sqeuclidean")
    far = np.concatenate([X, 100 + X[:100]])
    weight = np.r_[np.ones(len(X)), np.zeros(100)]
    check_same(choose(far, weight=weight), choose(X))


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
    found = choose_lam(LocalLabelling(table), Budget())
    check_sound(found, table)
    assert found.choice.n_groups == found.choice.best == 1


def test_equal_rows_leave_lam_open():
    found = choose(np.ones((30, 2)))
    assert found.choice.window.tolist() == [[0.0, np.inf]]
    assert found.lam > 0


def test_a_spent_budget_still_gives_an_answer():
    X, _ = planted("sqeuclidean")
    table = table_of(X)
    found = choose_lam(LocalLabelling(table), Budget(max_time=0.0))
    check_sound(found, table)
    assert not found.choice.complete


@pytest.mark.parametrize("weighting", ["length", "relative"])
def test_weights_equal_repetition_for_a_chosen_lam_of_histograms_that_count_by_their_length(weighting):
    rng = np.random.default_rng(2)
    X, weight = rng.random((200, 5)), rng.integers(0, 4, 200)
    settings = {"divergence": "kl", "weighting": weighting, "smoothing": 2.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one cluster
        weighted = DPMeans(**settings).fit(X, sample_weight=weight)
        repeated = DPMeans(**settings).fit(np.repeat(X, weight, axis=0))
    assert_allclose(weighted.lam_, repeated.lam_, rtol=1e-9)
    assert_array_equal(np.repeat(weighted.labels_, weight), repeated.labels_)


# -- the path ----------------------------------------------------------------------------------------------------------


def path_of(X, divergence="sqeuclidean", weight=None):
    """The path of a table before anybody has asked for more."""
    return PricePath(draw_pilot(table_of(X, divergence, weight)), Budget()).trace()


@pytest.mark.parametrize("name", ["sqeuclidean", "kl", "bernoulli", "itakura_saito", "cosine"])
def test_the_solution_of_a_number_does_not_depend_on_what_was_asked_for_before(name):
    X, _ = planted(name, n=300)
    fresh, asked = path_of(X, name), path_of(X, name)
    asked.best_at(asked.cost(1) / 50)
    asked.look([70, 7, 33, 12])
    asked.window_of(9)
    asked.best_at(asked.cost(1) / 1000)
    for K in (2, 5, 7, 10, 13, 20, 29, 41, 60):
        one = path_of(X, name)
        for path in (one, asked, fresh):
            path.look([K])
        assert (K in one.ks) == (K in asked.ks) == (K in fresh.ks)
        if K in one.ks:  # smoothed centres may be fewer than the rows
            assert_array_equal(one[K].labels, asked[K].labels)
            assert one[K].inertia == asked[K].inertia == fresh[K].inertia
    assert {2, 5, 13, 20} <= set(one.ks) | set(asked.ks)


@pytest.mark.parametrize("name", ["sqeuclidean", "poisson", "kl"])
def test_solutions_are_what_they_say(name):
    X, _ = planted(name, n=200)
    path = path_of(X, name)
    path.look(range(1, 30))
    pilot, family = path.pilot, path.pilot.table.geometry.family
    for K in path.ks:
        found = path[K]
        assert np.unique(found.labels).size == found.mean.shape[0] == K
        cost = np.array([float(family.divergence(x, mu)) for x, mu in zip(pilot.stats, found.mean[found.labels])])
        assert_allclose(found.cost, cost, rtol=1e-7, atol=1e-9)
        assert_allclose(found.inertia, pilot.table.rows.weight @ found.cost)
        assert_allclose(path.cost(K), found.inertia * len(X) / pilot.n)


@pytest.mark.parametrize("name", ["sqeuclidean", "poisson", "kl", "cosine"])
def test_the_number_at_a_price_is_the_best_of_all_that_are_known(name):
    X, _ = planted(name, n=300)
    whole = path_of(X, name)
    for share in np.geomspace(1e-5, 2.0, 25):
        path = path_of(X, name)
        price = share * path.cost(1)
        found = path.best_at(price)
        known = np.array(path.ks)
        value = np.array([path.cost(K) for K in path.ks]) + price * known
        assert value[known == found.n_clusters][0] == value.min()
        assert found.lo <= price <= found.hi
        assert {found.n_clusters - 1, found.n_clusters + 1} - {0, path.longest + 1} <= set(path.ks)
        again = whole.best_at(price)  # after all that others have asked for
        assert again == found


def test_windows_nest_and_are_those_of_the_envelope():
    X, _ = planted("sqeuclidean", n=300)
    path = path_of(X)
    path.look(range(1, 25))
    windows = path.windows()
    ks = sorted(windows)
    assert ks[0] == 1
    assert windows[1].hi == np.inf
    assert windows[ks[-1]].lo == 0.0
    for small, large in pairwise(ks):
        assert windows[small].lo == windows[large].hi
    costs = np.array([path.cost(K) for K in path.ks])
    for K in ks:
        value = costs + windows[K].middle * np.array(path.ks)
        assert path.ks[int(value.argmin())] == K
    assert_array_equal(np.isfinite(envelope_windows(np.array(path.ks), costs)[:, 0]), [K in windows for K in path.ks])


@pytest.mark.parametrize("name", ["sqeuclidean", "poisson", "itakura_saito"])
def test_the_window_of_a_number_holds_the_prices_at_which_it_is_found(name):
    X, _ = planted(name, n=300)
    for K in range(1, 20):
        path = path_of(X, name)
        window = path.window_of(K)
        if window is not None:
            assert window.n_clusters == K
            assert window.lo < window.middle < window.hi
            assert path.best_at(window.middle).n_clusters == path_of(X, name).best_at(window.middle).n_clusters == K


@pytest.mark.parametrize("name", ["sqeuclidean", "poisson", "kl", "cosine", "itakura_saito"])
@pytest.mark.parametrize("seed", range(6))
def test_swaps_lower_the_costs_and_keep_the_number(name, seed):
    family, rng = make(name), np.random.default_rng(seed)
    x = draw_rows(name, 60, 3, seed=seed, boundary=False)
    weight = rng.uniform(0.5, 2.0, size=60)
    table, slow = table_of(x, name, weight), Slow(family, x, 0.0, weight)
    memory = make_memory(60)
    memory.labels[:] = rng.integers(8, size=60)
    memory.labels[:8] = np.arange(8)
    shift = table.rows.shift if family.translates else 0.0
    mean = np.array([slow.centre(np.flatnonzero(memory.labels == k)) for k in range(8)])
    centres = Centres(table.geometry, mean - shift)
    made = 0
    for _ in range(5):
        before = slow.objective(memory.labels)
        centres, swaps = swap(table, centres, memory)
        made += swaps
        after = slow.objective(memory.labels)
        assert after < before if swaps else after == before
        assert np.unique(memory.labels).size == centres.mean.shape[0] == 8
        for k in range(8):
            assert_allclose(centres.mean[k] + shift, slow.centre(np.flatnonzero(memory.labels == k)), atol=1e-9)
    assert made


# -- how clearly rows belong to their cluster --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sqeuclidean", "poisson", "kl", "cosine"])
def test_clearness_is_the_mean_of_its_formula(name):
    X, _ = planted(name, n=240)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    path = path_of(X, name, weight)
    path.look(range(2, 60, 7))
    pilot, family = path.pilot, path.pilot.table.geometry.family
    for K in path.ks:
        mean = path[K].mean
        D = np.array([[float(family.divergence(x, mu)) for mu in mean] for x in np.asarray(pilot.stats)])
        labels = D.argmin(axis=1)
        large = np.bincount(labels, minlength=K) >= 8
        value = np.zeros(len(D))
        for i, row in enumerate(D):
            first, second = np.partition(row, 1)[:2] if K > 1 else (0.0, 0.0)
            if large[labels[i]] and large.sum() > 1 and second > 0:
                value[i] = 1 - np.sqrt(first / second)
        expected = np.average(value, weights=pilot.table.rows.weight)
        assert_allclose(clearness(pilot, path[K]), expected, rtol=1e-6, atol=1e-9)


# -- tables without groups ---------------------------------------------------------------------------------------------


def rising(mass, width):
    """The best rising density of some cells, and its log-likelihood."""
    fit = IsotonicRegression().fit_transform(np.arange(len(mass)), mass / width, sample_weight=width)
    return fit, float(mass @ np.log(fit))


@pytest.mark.parametrize("seed", range(8))
def test_likelihoods_are_those_of_isotonic_fits_of_every_prefix(seed):
    rng = np.random.default_rng(seed)
    mass, width = rng.gamma(0.7, size=40) + 1e-3, rng.gamma(1.0, size=40) + 1e-3
    if seed % 2:
        mass, width = np.sort(mass), np.ones(40)
    expected = [rising(mass[:j], width[:j])[1] for j in range(1, 41)]
    assert_allclose(_likelihoods(mass, width), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_the_mode_of_a_column_is_the_likeliest_of_all(seed):
    rng = np.random.default_rng(seed)
    value = np.sort(rng.normal(size=30))
    share = rng.dirichlet(np.full(30, 2.0)) + 2e-3  # so heavy that every value is a cell of its own
    share /= share.sum()
    column = UnimodalColumn(values_of(value, share), 10**6)
    edges, cdf = column._edges, column._cdf
    width, density = np.diff(edges), np.diff(cdf) / np.diff(edges)
    best = []
    for mode in range(30):
        up, first = rising(share[: mode + 1], width[: mode + 1])
        down, second = rising(share[:mode:-1], width[:mode:-1]) if mode < 29 else (np.empty(0), 0.0)
        best.append((first + second, np.concatenate([up, down[::-1]])))
    value, expected = max(best, key=lambda fit: fit[0])
    assert_allclose(share @ np.log(density), value, rtol=1e-9)
    assert_allclose(density, expected, rtol=1e-7)
    lo, hi = _mode(share, width, 10**6)
    assert (lo + 1, density[lo]) == (hi, pytest.approx(density.max()))  # the cell of the mode, not one next to it
    top = int(density.argmax())
    assert (np.diff(density[: top + 1]) >= -1e-9).all()
    assert (np.diff(density[top:]) <= 1e-9).all()


@pytest.mark.parametrize("law", LAWS)
def test_columns_of_one_mode_keep_their_law_and_no_column_has_two(law):
    x = LAWS[law](np.random.default_rng(0), 2000, 1)[:, 0]
    column = UnimodalColumn(values_of(x, np.ones(2000)), 2000)
    u = (np.arange(2000) + 0.5) / 2000
    spread = np.subtract(*np.quantile(x, [0.95, 0.05]))
    inside = (u > 0.05) & (u < 0.95)
    assert np.abs(column.quantiles(u) - np.sort(x))[inside].max() < 0.1 * spread + 1.01 * (law == "poisson")


@pytest.mark.parametrize("values", [2, 3, 7, 400])
def test_normal_scores_of_ties_are_means_and_their_links_are_set_right(values):
    rng = np.random.default_rng(values)
    z = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], size=400)
    X = np.c_[np.floor(norm.cdf(z[:, 0]) * values), z[:, 1]]
    weight = rng.uniform(0.5, 2.0, 400)
    columns, scores = [values_of(X[:, j], weight) for j in range(2)], np.empty((400, 2))
    for j, column in enumerate(columns):
        edge = np.concatenate([[0.0], np.cumsum(column.share)]).clip(1e-12, 1 - 1e-12)
        mean = [quad(norm.ppf, a, b)[0] / (b - a) for a, b in pairwise(edge)]
        scores[:, j] = np.array(mean)[column.place]
    cov = (scores * weight[:, None]).T @ scores / weight.sum()
    expected = np.clip(cov[0, 1] / (cov[0, 0] * cov[1, 1]), -0.999, 0.999)
    axes = _links(columns, weight)
    assert_allclose(axes.T @ axes, [[1, expected], [expected, 1]], atol=1e-4)
    assert abs(expected - 0.6) < 0.15


@pytest.mark.parametrize("radii", [True, False])
def test_made_up_tables_look_like_the_table(radii):
    rng = np.random.default_rng(1)
    X = np.c_[
        rng.normal(size=(3000, 2)) @ [[1.0, 0.8], [0.0, 0.6]], rng.exponential(size=3000), rng.integers(0, 2, 3000)
    ]
    made, weight = Surrogates(X, np.ones(3000)).draw(3000, np.random.default_rng(0), radii=radii)
    assert_array_equal(weight, 1.0)
    assert_array_equal(np.unique(made[:, 3]), [0.0, 1.0])
    assert_allclose(made.mean(axis=0), X.mean(axis=0), atol=0.05)
    assert_allclose(np.corrcoef(made.T), np.corrcoef(X.T), atol=0.06)
    for q in (0.1, 0.5, 0.9):
        assert_allclose(np.quantile(made[:, :3], q, axis=0), np.quantile(X[:, :3], q, axis=0), atol=0.15)


# -- valleys -----------------------------------------------------------------------------------------------------------


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
