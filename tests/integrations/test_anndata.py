"""Cells: ``kfree.anndata.cluster`` with the real AnnData."""

import doctest
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import data
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

import kfree

anndata = pytest.importorskip("anndata")
pd = pytest.importorskip("pandas")  # AnnData brings it

SIZES = (60, 40, 20)
GROUPS = np.repeat(np.arange(3), SIZES)


def cells(container=sp.csr_matrix):
    """Three groups of cells, clear in the components; counts of genes without groups."""
    rng = np.random.default_rng(0)
    scores = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])[GROUPS] + rng.normal(size=(120, 2))
    counts = rng.poisson(2.0, (120, 8)).astype(np.float32)
    adata = anndata.AnnData(container(counts), obsm={"X_pca": scores}, layers={"counts": sp.csc_matrix(counts)})
    for axis in ("obs", "var"):  # AnnData 0.12 cannot write the strings of pandas 3 to a file
        setattr(adata, f"{axis}_names", getattr(adata, f"{axis}_names").astype(object))
    return adata


def labels(adata, key="kfree"):
    return adata.obs[key].astype(int).to_numpy()


def test_clusters_are_those_of_dp_means_as_categories_in_order():
    adata = cells()
    assert kfree.anndata.cluster(adata) is None
    model = kfree.DPMeans().fit(adata.obsm["X_pca"])
    assert list(adata.obs["kfree"].cat.categories) == ["0", "1", "2"]
    assert np.array_equal(labels(adata), model.labels_)
    assert np.array_equal(labels(adata), GROUPS)
    notes = adata.uns["kfree"]
    assert notes["n_clusters"] == 3
    assert notes["lam"] == model.lam_
    assert notes["explanation"] == model.explain()
    assert notes["choice"]["best"] == 3
    assert np.array_equal(notes["cluster_centers"], model.cluster_centers_)
    assert notes["params"]["use_rep"] == "X_pca"
    assert notes["versions"]["kfree"] == kfree.__version__


def test_ten_clusters_and_more_are_in_the_order_of_numbers():
    adata = anndata.AnnData(obsm={"X_pca": np.repeat(10.0 * np.eye(12), 3, axis=0)})
    kfree.anndata.cluster(adata, n_clusters=12)
    assert list(adata.obs["kfree"].cat.categories) == [str(k) for k in range(12)]


def test_a_copy_has_the_clusters_and_the_original_does_not():
    adata = cells()
    copy = kfree.anndata.cluster(adata, copy=True)
    assert "kfree" in copy.obs
    assert "kfree" in copy.uns
    assert "kfree" not in adata.obs
    assert "kfree" not in adata.uns


def test_parameters_of_dp_means_are_passed_on():
    adata = cells()
    kfree.anndata.cluster(adata, key_added="two", n_clusters=2, layer="counts", divergence="poisson")
    assert adata.uns["two"]["n_clusters"] == 2
    assert adata.uns["two"]["params"]["divergence"] == "poisson"
    assert adata.uns["two"]["params"]["layer"] == "counts"
    assert "choice" not in adata.uns["two"]
    assert adata.uns["two"]["cluster_centers"].shape == (2, 8)
    kfree.anndata.cluster(adata, key_added="wide", radius=1e4)
    assert adata.uns["wide"]["radius"] == 1e4
    assert "lam" not in adata.uns["wide"]


def test_an_object_as_parameter_is_written_in_words():
    adata = cells()
    kfree.anndata.cluster(adata, layer="counts", n_clusters=2, divergence=kfree.Poisson())
    assert "Poisson" in adata.uns["kfree"]["params"]["divergence"]


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csc_matrix, sp.csr_array])
def test_x_is_taken_dense_or_sparse(container):
    adata = cells(container)
    kfree.anndata.cluster(adata, use_rep="X", n_clusters=4)
    expected = kfree.DPMeans(n_clusters=4).fit(container(cells().X.toarray()))
    assert np.array_equal(labels(adata), expected.labels_)


def test_without_components_x_is_taken_with_a_warning_that_says_what_to_do():
    adata = cells()
    del adata.obsm["X_pca"]
    with pytest.warns(UserWarning, match=r"no 'X_pca'.*120 cells, 8 columns.*log1p.*use_rep='X'"):
        kfree.anndata.cluster(adata, n_clusters=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kfree.anndata.cluster(adata, n_clusters=2, use_rep="X")
    assert adata.uns["kfree"]["params"]["use_rep"] == "X"


def test_a_file_gives_back_what_was_written(tmp_path):
    adata = cells()
    kfree.anndata.cluster(adata)
    kfree.anndata.cluster(adata, key_added="three", n_clusters=3, init=adata.obsm["X_pca"][[0, 70, 110]])
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    for key in ("kfree", "three"):
        assert np.array_equal(labels(again, key), labels(adata, key))
        assert again.uns[key]["explanation"] == adata.uns[key]["explanation"]
        assert np.array_equal(again.uns[key]["cluster_centers"], adata.uns[key]["cluster_centers"])
    assert again.uns["kfree"]["choice"].keys() == adata.uns["kfree"]["choice"].keys()
    kfree.anndata.cluster(again)  # what was read is still ours to replace


def test_cells_in_a_file_are_read(tmp_path):
    cells().write_h5ad(tmp_path / "cells.h5ad")
    adata = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    kfree.anndata.cluster(adata, use_rep="X", n_clusters=2)
    expected = kfree.DPMeans(n_clusters=2).fit(cells().X)
    assert np.array_equal(labels(adata), expected.labels_)
    adata.file.close()


def test_the_example_is_true():
    tests = doctest.DocTestFinder().find(kfree.anndata.cluster, "cluster", globs={})
    assert [doctest.DocTestRunner().run(test).failed for test in tests] == [0]


@given(seed=st.integers(0, 1000))
def test_the_order_of_cells_does_not_matter(seed):
    adata = cells()
    order = np.random.default_rng(seed).permutation(adata.n_obs)
    mixed = adata[order].copy()
    kfree.anndata.cluster(adata, n_clusters=3)
    kfree.anndata.cluster(mixed, n_clusters=3)
    assert (mixed.obs["kfree"] == adata.obs["kfree"].iloc[order]).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"use_rep": "X_umap"}, r"use_rep='X_umap' is not in adata.obsm: adata.obsm has 'X_pca'.*or 'X' for adata.X"),
        ({"layer": "raw"}, r"layer='raw' is not in adata.layers: adata.layers has 'counts'"),
        ({"layer": "counts", "use_rep": "X"}, r"use_rep='X' and layer='counts' both say"),
        ({"key_added": "batch"}, r"adata.obs\['batch'\] is there already"),
        ({"key_added": "pca"}, r"adata.uns\['pca'\] is there already"),
        ({"n_clusters": 3, "lam": 2.0}, "Pass one of them"),
    ],
)
def test_what_is_not_there_or_not_ours_is_an_error_that_leaves_everything_alone(arguments, message):
    adata = cells()
    adata.obs["batch"], adata.uns["pca"] = "a", {"variance": np.ones(2)}
    with pytest.raises(ValueError, match=message):
        kfree.anndata.cluster(adata, **arguments)
    assert list(adata.obs) == ["batch"]
    assert list(adata.uns) == ["pca"]


def test_an_empty_x_is_an_error_that_names_what_is_there():
    adata = anndata.AnnData(obsm={"X_scvi": np.eye(3)})
    with pytest.raises(ValueError, match=r"adata.obsm has 'X_scvi'"):
        kfree.anndata.cluster(adata)
    with pytest.raises(ValueError, match=r"adata.X is empty.*'X_scvi'"):
        kfree.anndata.cluster(adata, use_rep="X")


def test_strangers_are_type_errors():
    with pytest.raises(TypeError, match=r"needs an AnnData object, got ndarray.*DPMeans"):
        kfree.anndata.cluster(np.eye(3))
    with pytest.raises(TypeError, match=r"no parameter 'resolution'.*n_clusters.*lam"):
        kfree.anndata.cluster(cells(), resolution=1.0)
    with pytest.raises(TypeError, match=r"key_added must be a name, got int 3"):
        kfree.anndata.cluster(cells(), key_added=3)


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    adata = cells()
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(ImportError, match="pip install anndata"):
        kfree.anndata.cluster(adata)


@pytest.mark.parametrize(
    "take", [lambda X: kfree.DPMeans().fit(X), lambda X: kfree.VariationalDPMixture().fit(X), kfree.lam_path]
)
def test_estimators_refuse_an_anndata_and_name_the_function(take):
    with pytest.raises(TypeError, match=r"AnnData object.*kfree.anndata.cluster\(adata\).*X_pca"):
        take(cells())


def test_tables_of_a_view_are_taken():
    view = cells()[30:]
    assert kfree.DPMeans().fit(view.obsm["X_pca"]).n_clusters_ == 3


@pytest.mark.skipif(not data.has("scrna_5lines"), reason="scrna_5lines.npz is not there (see KFREE_DATA)")
def test_five_cell_lines_are_found():
    counts = sp.load_npz(data.FOLDER / "scrna_5lines.npz").toarray().astype(float)
    scores = PCA(20, random_state=0).fit_transform(np.log1p(data.equal_depth(counts)))
    adata, truth = anndata.AnnData(obsm={"X_pca": scores}), data.arrays("scrna_5lines")["y"]
    kfree.anndata.cluster(adata, key_added="five", n_clusters=5)
    assert adjusted_rand_score(truth, labels(adata, "five")) == 1.0
    kfree.anndata.cluster(adata)  # six: one line is parted, and no two are mixed
    assert adata.uns["kfree"]["choice"]["n_groups"] == 5
    assert all(np.unique(truth[labels(adata) == k]).size == 1 for k in range(adata.uns["kfree"]["n_clusters"]))
