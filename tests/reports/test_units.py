"""Centres of prepared tables are told in the units of the table."""

import re

import numpy as np
import pytest

pytest.importorskip("jinja2")

from kfree import DPMeans, TablePreparer, report
from kfree.reports.wording import number


@pytest.fixture
def columns():
    rng = np.random.default_rng(0)
    pay = np.concatenate([rng.normal(mean, 20, 30) for mean in (1500, 7000)])
    return {"pay": pay, "colour": ["red", "blue", "blue"] * 20}


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_centres_are_told_in_the_units_of_the_table(columns, tmp_path, library):
    frames = pytest.importorskip(library)
    make = frames.table if library == "pyarrow" else frames.DataFrame
    preparer = TablePreparer().fit(make(columns))
    X = make(dict(zip(preparer.get_feature_names_out(), preparer.transform(make(columns)).T)))
    model = DPMeans(n_clusters=2).fit(X)
    text = report(model, X, tmp_path / "page.html", preparer=preparer).read_text(encoding="utf-8")
    centres = np.asarray(preparer.inverse_transform(model.cluster_centers_)["pay"])
    np.testing.assert_allclose(sorted(centres), [1500, 7000], rtol=0.02)
    assert all(f">{number(centre)}<" in text.replace("\n", "") for centre in centres)


def test_dates_are_told_as_dates_and_levels_as_shares(columns, tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({**columns, "since": ["2020-03-01"] * 30 + ["2024-05-02"] * 30})
    frame.loc[:29, "colour"] = "red"
    frame.loc[:1, "since"] = "2020-03-02"
    preparer = TablePreparer().set_output(transform="pandas").fit(frame)
    X = preparer.transform(frame)
    page = report(DPMeans(n_clusters=2).fit(X), X, tmp_path / "page.html", preparer=preparer).read_text("utf-8")
    cells = set(re.findall(r">([^<>]+)<", page))
    assert {"2020-03-01", "2024-05-02", "100\u00a0%", "33\u00a0%", "67\u00a0%"} <= cells


def test_what_cannot_be_the_preparer_is_told(columns, tmp_path):
    X = columns["pay"][:, None]
    model = DPMeans(n_clusters=2).fit(X)
    with pytest.raises(TypeError, match="preparer must be a fitted TablePreparer, got str"):
        report(model, X, tmp_path / "page.html", preparer="robust")
    other = TablePreparer().fit(np.column_stack([X, X[::-1]]))
    with pytest.raises(ValueError, match="preparer gives 2 columns, but X has 1"):
        report(model, X, tmp_path / "page.html", preparer=other)
    assert not list(tmp_path.iterdir())
