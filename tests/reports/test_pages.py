"""Pages of every kind of model: what is on them, what is said for bad input, how files are written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

pytest.importorskip("jinja2")

import kfree
from kfree import DPMeans, HDPTopics, KFeatures, report
from kfree.reports.asked import check_asked
from support.pages import read
from support.report_rows import groups_of_rows, pictures

KINDS = [
    "HDPMeans",
    "VariationalDPMixture",
    "VariationalDPMixture of two columns",
    "VariationalDPMixture of one column",
    "VariationalDPMixture of counts",
    "KernelDPMixture",
    "GibbsDPMixture",
    "KFeatures",
    "BPMeans",
    "GibbsIBP",
]


def test_a_page_of_clusters_says_what_was_asked_and_found(clusters, customers, clusters_page):
    page = read(clusters_page)
    assert "4 clusters in 210 rows" in page.text
    assert clusters.explain() in page.text
    assert "DPMeans(n_clusters=4)" in page.text
    for name in [*customers.columns, *clusters._profile(customers).names]:
        assert name in page.text
    assert len(page.all("article", class_="card")) == 4
    assert re.search(r"customer \d+", page.text)  # rows by the names of the index
    assert "scikit-learn" in page.text  # versions


def test_the_slider_has_a_stop_for_each_number_of_clusters(clusters, customers, clusters_page):
    page = read(clusters_page)
    numbers = [len(stop["sizes"]) for stop in page.stops]
    assert numbers == list(range(1, 13))
    (slider,) = page.all("input", type="range")
    assert (slider["min"], slider["max"], slider["value"]) == ("0", "11", "3")
    (here,) = [stop for stop in page.stops if len(stop["sizes"]) == 4]
    np.testing.assert_array_equal(here["at"], clusters.predict(customers))  # all rows are points
    assert [size[0] for size in here["sizes"]] == list(clusters._profile(customers).names)
    for stop in page.stops:
        assert set(stop["at"]) == set(range(len(stop["sizes"])))
        assert len({size[1] for size in stop["sizes"]}) == len(stop["sizes"])  # colours differ
        assert stop["said"].startswith(f"{len(stop['sizes'])} cluster")


def test_every_picture_has_a_title_and_its_figures_beside_it(clusters_page, topics_page):
    for file in (clusters_page, topics_page):
        html = file.read_text(encoding="utf-8")
        drawings = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
        assert len(drawings) >= 2
        assert all(re.match(r'<svg[^>]* role="img"[^>]*><title>[^<]+</title>', drawing) for drawing in drawings)
        assert html.count("The same in figures") == len(drawings) - 1  # the map's figures are the list of sizes


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_has_a_page(kind, every_model, page):
    model, X = every_model[kind]
    made = page(model, X)
    assert model.explain() in made.text
    K = getattr(model, "n_clusters_", None) or model.n_components_
    assert len(made.all("article", class_="card")) == K
    assert f"{X.shape[0]} rows" in made.text
    assert not re.search(r"\b(nan|NaN|inf|None)\b", made.text.split("Parameters")[0])


def test_what_samples_say_of_the_number_is_drawn(every_model, page):
    made = page(*every_model["GibbsDPMixture"])
    assert "of the samples" in made.text
    assert "R-hat" in made.text
    assert made.all("polyline", class_="contour")  # the density, of two columns


def test_densities_are_drawn_over_one_column_and_in_the_plane_of_many(every_model, page):
    assert "The density of column 0" in page(*every_model["VariationalDPMixture of one column"]).text
    assert page(*every_model["VariationalDPMixture"]).all("polyline", class_="contour")
    assert not page(*every_model["VariationalDPMixture of counts"]).all("polyline", class_="contour")


def test_groups_are_told_with_their_clusters(every_model, page):
    assert "Groups and their clusters" in page(*every_model["HDPMeans"]).text


def test_topics_are_shown_with_their_words_and_documents(topics, topics_page):
    page = read(topics_page)
    assert f"{topics.n_topics_} topics in 120 documents" in page.text
    assert len(page.all("article", class_="card")) == topics.n_topics_
    assert re.search(r"Document \d+ about things", page.text)
    for name in topics.topic_names_:
        assert name in page.text
    assert [len(stop["sizes"]) for stop in page.stops] == list(range(1, topics.n_topics_ + 1))


def test_topics_without_names_of_words_have_numbers(corpus, page):
    assert "word 3" in page(HDPTopics().fit(corpus[0]), corpus[0]).text


def test_texts_stand_for_rows(clusters, customers, page):
    made = page(clusters, customers, texts=[f"the text of row {i}" for i in range(len(customers))])
    assert re.search(r"the text of row \d+", made.text)


def test_rows_that_are_pictures_are_shown_as_pictures(every_model, page):
    made = page(*every_model["BPMeans"], images=(6, 8))
    assert len(made.all("img", class_="centre")) == every_model["BPMeans"][0].n_components_
    assert len(made.all("img")) > 6
    X = pictures()
    assert page(DPMeans(n_clusters=2).fit(X), X, images=(6, 8)).all("img", alt="its centre")
    colours = np.random.default_rng(0).integers(255, size=(len(X), 30, 20, 3), dtype=np.uint8)
    beside = page(DPMeans(n_clusters=2).fit(X), X, images=colours)
    assert beside.all("img")
    assert not beside.all("img", alt="its centre")


def test_centres_that_are_shares_of_rows_are_drawn_in_shades_of_their_own():
    X = np.abs(pictures()) * 100 + 1
    asked = check_asked(DPMeans(n_clusters=2, divergence="kl").fit(X), X, None, (6, 8))
    centre = asked.model.cluster_centers_[0]
    assert asked.picture_of(centre) == asked.pictures.of_part(centre) != asked.pictures.of_mean(centre)
    asked = check_asked(DPMeans(n_clusters=2).fit(X), X, None, (6, 8))
    assert asked.picture_of(X[0]) == asked.pictures.of_mean(X[0])


def test_sparse_rows_have_a_page(page):
    X = sp.random(60, 12, 0.4, format="csr", random_state=0)
    X.data = np.ceil(10 * X.data)
    made = page(DPMeans(n_clusters=3, divergence="kl", smoothing=1.0).fit(X), X)
    assert "entries that are not zero" in made.text


@pytest.mark.parametrize("n", [1, 2, 3])
def test_tables_of_few_rows_have_a_page(n, page):
    X = np.arange(3.0 * n).reshape(n, 3)
    assert f"{n} row" in page(DPMeans(n_clusters=1).fit(X), X).text
    assert page(DPMeans(n_clusters=n).fit(X), X).text
    assert page(DPMeans(n_clusters=n).fit(sp.csr_matrix(X)), sp.csr_matrix(X)).text


def test_rows_that_are_all_the_same_have_a_page(page):
    assert "1 cluster in" in page(DPMeans(n_clusters=1).fit(np.ones((20, 4))), np.ones((20, 4))).text


@pytest.mark.parametrize("scale", [1e150, 1e-150])
def test_numbers_of_any_size_have_a_page(scale, page):
    X = groups_of_rows((20, 20), 3) * scale
    assert "clusters in 40 rows" in page(DPMeans(radius=(4 * scale) ** 2).fit(X), X).text


def test_no_features_at_all_have_a_page(page):
    from kfree import BPMeans

    X = np.random.default_rng(0).normal(size=(30, 4))
    assert "0 features in 30 rows" in page(BPMeans(lam=1e9, base=False).fit(X), X).text


def test_new_rows_have_a_page(clusters, customers, page):
    page(clusters, customers[:7])
    assert len(page(clusters, customers[:50]).all("article", class_="card")) == 4


def test_rows_in_no_cluster_are_counted(customers, page):
    X = customers.copy()
    X.iloc[:3] = 1e3
    model = DPMeans(n_clusters=4, outliers=True).fit(customers)
    made = page(model, X)
    assert "3 rows are in none" in made.text
    assert len(made.all("circle", class_="c0")) == (model.predict(X) == 0).sum()


def test_lists_and_polars_frames_have_a_page(clusters, customers, page):
    assert "4 clusters" in page(DPMeans(n_clusters=4).fit(customers.to_numpy()), customers.to_numpy().tolist()).text
    frame = pytest.importorskip("polars").from_pandas(customers)
    assert "polars DataFrame" in page(clusters, frame).text


def test_of_wide_tables_the_columns_that_vary_most_are_looked_at(page):
    X = groups_of_rows((200, 150), 400)
    X[:, 300:] = 0.01 * X[:, 300:]
    made = page(DPMeans(n_clusters=2).fit(X), X)
    assert "Other numbers of clusters are found in the 285 columns that vary most." in made.text
    assert "like row " in made.text


def test_when_the_time_is_up_there_is_no_slider(clusters, customers, page, monkeypatch):
    monkeypatch.setattr("kfree.reports.stops._SECONDS", -1.0)
    made = page(clusters, customers)
    assert not made.all("input", type="range")
    assert len(made.stops) == 1
    assert len(made.all("article", class_="card")) == 4


def test_a_hundred_clusters_take_less_than_half_a_megabyte(tmp_path):
    names = [f"a column with quite a long name, of which there are many: {j}" for j in range(12)]
    rows = [f"a row whose name is long as well: {i}" for i in range(500)]
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(500, 12)), columns=names, index=rows)
    model = DPMeans(n_clusters=100, search="points", init="k-means++", random_state=0).fit(X)
    file = report(model, X, tmp_path / "page.html")
    assert file.stat().st_size < 500_000
    assert len(read(file).all("article", class_="card")) == 100


def test_pictures_of_a_hundred_clusters_take_less_than_half_a_megabyte(tmp_path):
    rng = np.random.default_rng(0)
    X, photos = rng.normal(size=(200, 3)), rng.integers(255, size=(200, 64, 48, 3), dtype=np.uint8)  # noise: the worst
    model = DPMeans(n_clusters=100, search="points", init="k-means++", random_state=0).fit(X)
    assert report(model, X, tmp_path / "page.html", images=photos).stat().st_size < 500_000


def test_the_file_is_replaced_and_nothing_else_is_left(clusters, customers, tmp_path):
    file = tmp_path / "page.html"
    file.write_text("before")
    assert report(clusters, customers, str(file)) == file
    assert file.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert os.listdir(tmp_path) == ["page.html"]


def test_a_page_that_cannot_be_made_leaves_the_old_one(clusters, customers, tmp_path, monkeypatch):
    file = tmp_path / "page.html"
    file.write_text("before")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("no room")))
    with pytest.raises(OSError, match="no room"):
        report(clusters, customers, file)
    assert file.read_text() == "before"
    assert os.listdir(tmp_path) == ["page.html"]


def test_the_same_report_is_the_same_file(clusters, customers, clusters_page, tmp_path):
    assert report(clusters, customers, tmp_path / "again.html").read_bytes() == clusters_page.read_bytes()


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ({"texts": ["one"]}, ValueError, "1 texts for 210 rows"),
        ({"texts": "one"}, TypeError, "one text for each row"),
        ({"images": (3, 3)}, ValueError, "is not the shape of a row with 6 columns"),
        ({"images": (1, 6, 1)}, ValueError, "is not the shape"),
        ({"images": np.zeros((5, 2, 2))}, ValueError, "neither that of 210 pictures"),
        ({"images": np.full((210, 2, 2), "a")}, TypeError, "numbers are needed"),
    ],
)
def test_bad_arguments_are_told(clusters, customers, tmp_path, more, error, message):
    with pytest.raises(error, match=message):
        report(clusters, customers, tmp_path / "page.html", **more)
    assert not os.listdir(tmp_path)


def test_bad_models_rows_and_places_are_told(clusters, customers, tmp_path):
    with pytest.raises(TypeError, match="a fitted estimator of kfree, got int"):
        report(3, customers, tmp_path / "page.html")
    with pytest.raises(ValueError, match="This KFeatures has not been fitted"):
        report(KFeatures(), customers, tmp_path / "page.html")
    with pytest.raises(ValueError, match="feature names"):
        report(clusters, customers.iloc[:, :3], tmp_path / "page.html")
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        report(clusters, customers, tmp_path / "nowhere" / "page.html")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        report(clusters, customers, tmp_path)


def test_without_jinja2_the_extra_is_named(tmp_path):
    code = (
        "import sys; sys.modules['jinja2'] = None\n"
        "import numpy as np, kfree\n"
        "kfree.report(kfree.DPMeans(n_clusters=1).fit(np.eye(3)), np.eye(3), 'page.html')"
    )
    here = {**os.environ, "PYTHONPATH": str(Path(kfree.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=here, capture_output=True, text=True, check=False
    )
    assert 'pip install "kfree[report]"' in done.stderr
