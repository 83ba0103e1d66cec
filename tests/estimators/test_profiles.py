"""Profiles: what each cluster is, in figures and in words."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris

from kfree import DPMeans, GibbsDPMixture, HDPMeans, KernelDPMixture, VariationalDPMixture
from kfree.families import FAMILIES, make_family
from kfree.models.profile_names import _numbered

RNG = np.random.default_rng(0)
BLOBS = np.concatenate([RNG.normal(centre, 1.0, size=(60, 3)) for centre in ((0, 0, 0), (9, 0, 0), (0, 9, 20))])
COUNTS = np.concatenate([RNG.poisson(rate, size=(50, 4)) for rate in ((6, 1, 1, 1), (1, 6, 1, 2), (1, 1, 7, 0.1))])
COUNTS = (COUNTS + (COUNTS.sum(axis=1, keepdims=True) == 0)).astype(float)
BITS = (RNG.random((150, 5)) < np.repeat([[0.95, 0.9, 0, 0, 0.5], [0, 0, 0.95, 0.9, 0.5]], 75, axis=0)).astype(float)

MODELS = {
    "DPMeans": (DPMeans(n_clusters=3), BLOBS),
    "mahalanobis": (DPMeans(n_clusters=3, divergence="mahalanobis"), BLOBS),
    "cosine": (DPMeans(n_clusters=3, divergence="cosine"), COUNTS),
    "kl": (DPMeans(n_clusters=3, divergence="kl"), COUNTS),
    "length": (DPMeans(n_clusters=3, divergence="kl", weighting="length"), COUNTS),
    "poisson": (DPMeans(n_clusters=3, divergence="poisson"), COUNTS),
    "bernoulli": (DPMeans(n_clusters=2, divergence="bernoulli"), BITS),
    "HDPMeans": (HDPMeans(10.0, 40.0, random_state=0), BLOBS),
    "gaussian": (VariationalDPMixture(), BLOBS),
    "diag": (VariationalDPMixture(family="diag"), BLOBS),
    "spherical": (VariationalDPMixture(family="spherical"), BLOBS),
    "multinomial": (VariationalDPMixture(family="multinomial"), COUNTS),
    "mixture of poissons": (VariationalDPMixture(family="poisson"), COUNTS),
    "bits": (VariationalDPMixture(family="bernoulli"), BITS),
    "KernelDPMixture": (KernelDPMixture(random_state=0), BLOBS),
    "GibbsDPMixture": (GibbsDPMixture(n_samples=20, burn_in=20, random_state=0), BLOBS),
    "gamma": (GibbsDPMixture(family="gamma", n_samples=10, burn_in=10, random_state=0), 0.1 + COUNTS),
}


def centres_of(model):
    return model.cluster_centers_ if hasattr(model, "cluster_centers_") else model.means_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", MODELS)
def test_profiles_tell_sizes_centres_differences_and_rows(name):
    model, X = MODELS[name]
    model.fit(X)
    profile, labels = model.profile(X), model.predict(X)
    K = len(profile.names)
    assert_array_equal(profile.centre, centres_of(model))
    assert_array_equal(profile.size, np.bincount(labels, minlength=K))
    assert_allclose(profile.share.sum(), 1.0)
    assert profile.columns == tuple(f"column {j}" for j in range(X.shape[1]))
    assert len(set(profile.names)) == K
    assert all(0 < len(name) <= 48 for name in profile.names)
    differs = (
        np.abs(profile.contribution).sum(axis=1) > 0
    )  # one component may be as wide as all rows, and at their mean
    assert np.count_nonzero(~differs) <= (name == "KernelDPMixture")
    assert_allclose(np.abs(profile.contribution[differs]).sum(axis=1), 1.0)
    assert_array_equal(np.sign(profile.contribution), np.sign(profile.centre - profile.overall) * differs[:, None])
    for k in range(K):
        for rows in (profile.typical[k], profile.border[k]):
            rows = rows[rows >= 0]
            assert (labels[rows] == k).all()
            assert len(np.unique(X[rows], axis=0)) == len(rows)
        assert ((profile.rival[k] >= 0) == (profile.border[k] >= 0)).all()
        assert (profile.rival[k] != k).all()
    sizes = np.abs([contribution for *_, contribution in profile.differences(0, 3)])
    assert (np.diff(sizes) <= 0).all()


def test_typical_rows_are_the_nearest_and_border_rows_the_most_undecided():
    X = RNG.normal(size=(400, 2))
    X[200:, 0] += 4
    model = DPMeans(n_clusters=2).fit(X)
    profile, cost = model.profile(X), model.transform(X)
    own, other = cost.min(axis=1), cost.max(axis=1)
    for k in range(2):
        rows = np.flatnonzero(model.labels_ == k)
        assert_array_equal(profile.typical[k], rows[np.argsort(own[rows])[:5]])
        assert_array_equal(profile.border[k], rows[np.argsort(-(own / other)[rows])[:5]])
        assert_array_equal(profile.rival[k], np.full(5, 1 - k))


def test_clusters_that_are_far_apart_have_no_border():
    X = np.concatenate([RNG.normal(size=(30, 2)), RNG.normal(size=(30, 2)) + 100])
    assert (DPMeans(n_clusters=2).fit(X).profile(X).border == -1).all()


def test_equal_rows_are_shown_once():
    X = np.repeat([[0.0], [1.0], [50.0], [51.0]], [7, 3, 5, 5], axis=0)
    profile = DPMeans(n_clusters=2).fit(X).profile(X)
    assert_array_equal(profile.typical, [[0, 7, -1, -1, -1], [10, 15, -1, -1, -1]])


@pytest.mark.parametrize("divergence", ["sqeuclidean", "kl", "poisson", "bernoulli"])
def test_sparse_rows_have_the_profile_of_dense_ones(divergence):
    X = BITS if divergence == "bernoulli" else COUNTS
    model = DPMeans(n_clusters=2, divergence=divergence).fit(X)
    dense, sparse = model.profile(X), model.profile(sp.csr_matrix(X))
    assert dense.names == sparse.names
    assert_allclose(dense.contribution, sparse.contribution, atol=1e-9)
    assert_array_equal(dense.typical, sparse.typical)
    assert_array_equal(dense.border, sparse.border)


def test_a_model_of_dense_rows_measures_sparse_ones_alike():
    model, rows = DPMeans(n_clusters=3).fit(COUNTS + 3.0), sp.csr_matrix(COUNTS + 3.0)
    assert_allclose(model.transform(rows), model.transform(COUNTS + 3.0), atol=1e-9)
    other = DPMeans(n_clusters=3).fit(COUNTS + 3.0).partial_fit(COUNTS)
    model.partial_fit(sp.csr_matrix(COUNTS))
    assert_allclose(model.cluster_centers_, other.cluster_centers_)
    assert_allclose(model._model.total, other._model.total, atol=1e-9)


def test_whole_weights_equal_copies_and_weight_zero_removal():
    weight = RNG.integers(0, 4, size=len(BLOBS))
    model = DPMeans(n_clusters=3).fit(BLOBS, sample_weight=weight)
    weighted, copies = model.profile(BLOBS, weight), model.profile(np.repeat(BLOBS, weight, axis=0))
    assert weighted.names == copies.names
    assert_allclose(weighted.size, copies.size)
    assert_allclose(weighted.overall, copies.overall)
    assert_allclose(weighted.contribution, copies.contribution, atol=1e-9)
    shown = weighted.typical[weighted.typical >= 0]
    assert (weight[shown] > 0).all()
    with pytest.raises(ValueError, match="one weight for each row"):
        model.profile(BLOBS, weight[1:])


def test_words_do_not_depend_on_units_though_contributions_do():
    model = VariationalDPMixture(family="diag").fit(BLOBS)
    scale = np.array([1.0, 1000.0, 1.0])
    scaled = VariationalDPMixture(family="diag").fit(BLOBS * scale)
    assert model.profile(BLOBS).names == scaled.profile(BLOBS * scale).names
    assert_allclose(model.profile(BLOBS).contribution, scaled.profile(BLOBS * scale).contribution, atol=1e-4)
    scaled = DPMeans(n_clusters=2).fit(BLOBS * scale)
    assert np.abs(scaled.profile(BLOBS * scale).contribution[:, 1]).min() > 0.99


def test_a_full_gaussian_has_the_contributions_of_its_whitened_columns():
    family = make_family("mahalanobis").__class__(np.array([[4.0, 0.0], [0.0, 9.0]]))
    assert_allclose(family.by_column(np.array([2.0, 3.0]), np.zeros(2)), [0.5, 0.5])


@pytest.mark.parametrize("name", FAMILIES)
def test_contributions_of_columns_sum_to_the_divergence(name):
    rows = np.abs(RNG.normal(size=(6, 4))) * 0.4 + 0.1
    family = make_family(name)
    if family.normalise:
        rows /= rows.sum(axis=1, keepdims=True) if family.normalise == "sum" else np.linalg.norm(rows, axis=1)[:, None]
    if name == "mahalanobis":
        A = RNG.normal(size=(4, 4))
        family = type(family)(A @ A.T + np.eye(4))
    if name == "binomial":
        family = type(family)(3)
    terms = family.by_column(rows[:3], rows[3:])
    assert (terms >= 0).all()
    assert_allclose(terms.sum(axis=1), family.divergence(rows[:3], rows[3:]), rtol=1e-9)


def test_names_say_what_is_much_and_little():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    spent = rng.gamma(2.0, 1.0, size=(300, 3)) * np.repeat([[8000, 500, 500], [500, 6000, 6000]], 150, axis=0)
    frame = pd.DataFrame(spent, columns=["fresh", "milk", "grocery"])
    names = DPMeans(n_clusters=2).fit(frame).profile(frame)["name"].tolist()
    assert any("much fresh" in name for name in names)
    assert any("little fresh" in name and "much" in name for name in names)


def test_names_of_measurements_bits_and_counts_use_their_own_words():
    iris = load_iris(as_frame=True).data
    names = DPMeans(n_clusters=2).fit(iris).profile(iris)["name"].tolist()
    assert any(name.startswith("low petal") for name in names)
    assert any(name.startswith("high petal") for name in names)
    assert not any("(cm)" in name for name in names)
    assert {name.split()[0] for name in DPMeans(n_clusters=2).fit(BITS).profile(BITS).names} == {"has"}
    told = DPMeans(n_clusters=3, divergence="kl").fit(COUNTS).profile(COUNTS).names
    assert all(name.startswith(("often", "rarely", "never")) for name in told)


def test_one_cluster_is_about_average_and_constant_columns_are_never_named():
    X = np.column_stack([RNG.normal(size=80), np.full(80, 7.0)])
    profile = DPMeans(n_clusters=1).fit(X).profile(X)
    assert profile.names == ("about average",)
    assert_array_equal(profile.contribution, 0.0)
    assert profile.differences(0) == []
    two = DPMeans(n_clusters=2).fit(X).profile(X)
    assert not any("column 1" in name for name in two.names)
    assert_array_equal(two.contribution[:, 1], 0.0)


def test_a_cluster_that_has_less_of_all_is_called_so():
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, 1.0, size=(400, 6)) * np.repeat([[1.0], [1.0], [1.0], [6.0]], 100, axis=0)
    names = DPMeans(n_clusters=2).fit(X).profile(X).names
    assert names[0] == "little of everything"


def test_names_are_unique_short_and_on_one_line():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    model = DPMeans(n_clusters=40).fit(X)
    names = model.profile(X).names
    assert len(set(names)) == 40
    pd = pytest.importorskip("pandas")
    odd = ["a\nvery\tlong name of a column that goes on " + "and on " * 20, "<b>name</b>"]
    frame = pd.DataFrame(X, columns=odd)
    names = DPMeans(n_clusters=40).fit(frame).profile(frame)["name"]
    assert names.is_unique
    assert all(len(name) <= 48 and "\n" not in name for name in names)


def test_names_that_repeat_are_numbered_within_their_length():
    names = _numbered(["a" * 48] * 120 + ["a" * 44 + " (2)", "b"])
    assert len(set(names)) == 122
    assert max(map(len, names)) == 48
    assert names[1] == "a" * 44 + " (2)"


def test_thousands_of_sparse_columns_are_described():
    X = sp.random(300, 20_000, density=0.002, random_state=0, format="csr")
    X = sp.vstack([X, sp.random(200, 20_000, density=0.002, random_state=1, format="csr") * 4]).tocsr()
    profile = DPMeans(n_clusters=2).fit(X).profile(X)
    assert profile.contribution.shape == (2, 20_000)
    assert len(set(profile.names)) == 2


def test_a_frame_gives_a_frame_and_keeps_columns_and_index():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pd.DataFrame(BLOBS, columns=["name", "size", "z"], index=[f"row {i}" for i in range(len(BLOBS))])
    model = DPMeans(n_clusters=3).fit(frame)
    told = model.profile(frame)
    assert list(told.columns) == [
        *("name", "size", "share", "different"),
        *("name (centre)", "size (centre)", "z", "typical", "border"),
    ]
    assert_array_equal(told["z"], model.cluster_centers_[:, 2])
    assert told["typical"][0][0] in frame.index
    assert told.index.name == "cluster"
    profile = model._profile(frame)
    assert profile.columns == ("name", "size", "z")
    polars = pl.from_pandas(frame)
    told = DPMeans(n_clusters=3).fit(polars).profile(polars)
    assert isinstance(told, pl.DataFrame)
    assert told["cluster"].to_list() == [0, 1, 2]


def test_other_rows_than_those_of_the_fit_can_be_described():
    model = DPMeans(n_clusters=3, divergence="poisson").fit(COUNTS)
    other = COUNTS.copy()
    other[:, 3] = 0.0  # where centres are not
    profile = model.profile(other)
    assert np.isfinite(profile.contribution).all()
    with pytest.raises(ValueError, match="3 features"):
        model.profile(other[:, :3])
    with pytest.raises(ValueError, match="NaN"):
        model.profile(np.where(other > 5, np.nan, other))


def test_groups_decide_where_rows_of_hdp_means_belong():
    groups = np.arange(len(BLOBS)) % 2
    model = HDPMeans(10.0, 40.0, random_state=0).fit(BLOBS, groups=groups)
    profile = model.profile(BLOBS, groups=groups)
    assert_array_equal(profile.size, np.bincount(model.labels_))


def test_blocks_do_not_change_a_profile(monkeypatch):
    model = DPMeans(n_clusters=3).fit(BLOBS)
    whole = model.profile(BLOBS)
    monkeypatch.setattr("kfree.models.profiles._ROWS", 7)
    monkeypatch.setattr("kfree.models.column_facts._ENTRIES", 20)
    parts = model.profile(BLOBS)
    assert whole.names == parts.names
    assert_array_equal(whole.typical, parts.typical)
    assert_array_equal(whole.border, parts.border)
    assert_allclose(whole.overall, parts.overall)


def test_the_repr_has_a_line_for_each_cluster():
    lines = repr(DPMeans(n_clusters=3).fit(BLOBS).profile(BLOBS)).splitlines()
    assert len(lines) == 4
    assert "overall" in lines[1]


def test_clusters_of_columns_that_are_only_numbered_are_named_by_a_row():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 1.0, (50, 40)) for m in (-3, 3)])
    model = DPMeans(n_clusters=2).fit(X)
    profile = model.profile(X)
    assert profile.names == tuple(f"like row {row}" for row in profile.typical[:, 0])
    pd = pytest.importorskip("pandas")
    named = pd.DataFrame(X, columns=[f"e{j}" for j in range(40)])
    assert all(name.startswith("like row ") for name in DPMeans(n_clusters=2).fit(named).profile(named)["name"])
    words = pd.DataFrame(X, columns=[f"word{'abcdefghij'[j % 10]}{j}" for j in range(40)])
    assert not any(name.startswith("like") for name in DPMeans(n_clusters=2).fit(words).profile(words)["name"])
