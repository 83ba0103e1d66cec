"""What models say of rows is written whole, beside the ids of the rows, and over nothing."""

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
from pyarrow import csv, parquet

import kfree
from support.table_files import TEXTS, TYPED, counts, rows, table, write_parquet


@pytest.fixture(autouse=True)
def few_rows_at_a_time(monkeypatch):
    monkeypatch.setitem(kfree.write.__globals__, "_ROWS", 128)


@pytest.mark.parametrize("format", TYPED | TEXTS)
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_labels_stand_beside_ids(format, ending, tmp_path):
    X = rows()
    source = kfree.read((TYPED | TEXTS)[format](tmp_path, table(X)), id="id")
    model = kfree.DPMeans(n_clusters=3).fit(source)
    path = kfree.write(model, source, tmp_path / f"labels.{ending}")
    written = parquet.read_table(path) if ending == "parquet" else csv.read_csv(path)
    assert written.column_names == ["id", "label"]
    assert written["id"].to_pylist() == [f"row {i}" for i in range(600)]
    np.testing.assert_array_equal(written["label"], model.labels_)


def test_rows_without_ids_are_numbered(tmp_path):
    X = rows()
    np.save(tmp_path / "x.npy", X)
    source = kfree.read(tmp_path / "x.npy")
    model = kfree.VariationalDPMixture().fit(source)
    what = ["predict", "predict_proba", "score_samples"]
    written = parquet.read_table(kfree.write(model, source, tmp_path / "out.parquet", what=what))
    shares = [f"probability_{k}" for k in range(model.n_components_)]
    assert written.column_names == ["row", "label", *shares, "score"]
    np.testing.assert_array_equal(written["row"], np.arange(600))
    np.testing.assert_array_equal(written["label"], model.predict(X))
    np.testing.assert_allclose(np.column_stack([written[name] for name in shares]), model.predict_proba(X), rtol=1e-12)
    np.testing.assert_allclose(written["score"], model.score_samples(X), rtol=1e-12)


def test_models_that_do_not_predict_transform(tmp_path):
    X = rows()
    source = kfree.read(write_parquet(tmp_path, table(X)), id="id")
    model = kfree.KFeatures(2, random_state=0).fit(source)
    written = parquet.read_table(kfree.write(model, source, tmp_path / "out.parquet"))
    assert written.column_names == ["id", *model.get_feature_names_out()]
    np.testing.assert_array_equal(np.column_stack(written.columns[1:]), model.transform(X))


def test_ids_of_any_kind_stay_as_they_are_and_names_are_not_lost(tmp_path):
    made = table(rows(), label=pa.array(range(600), pa.int32()))
    source = kfree.read(write_parquet(tmp_path, made), id=["label", "id"])
    model = kfree.DPMeans(n_clusters=3).fit(source)
    written = parquet.read_table(kfree.write(model, source, tmp_path / "out.parquet"))
    assert written.column_names == ["label", "id", "label_"]
    assert written.schema.field("label").type == pa.int32()
    np.testing.assert_array_equal(written["label_"], model.labels_)


def test_ids_of_files_that_differ_in_width_are_joined(tmp_path):
    X, paths = rows(), []
    for i, kind in enumerate((pa.int64(), pa.int32(), pa.int64())):
        (tmp_path / str(i)).mkdir()
        part = table(X[200 * i : 200 * i + 200], number=pa.array(range(200 * i, 200 * i + 200), kind))
        paths.append(write_parquet(tmp_path / str(i), part))
    source = kfree.read(paths, id=["number", "id"])
    model = kfree.DPMeans(n_clusters=3).fit(source)
    written = parquet.read_table(kfree.write(model, source, tmp_path / "out.parquet"))
    assert written["number"].to_pylist() == list(range(600))
    write_parquet(tmp_path / "1", table(X[:9], number=[f"{i}" for i in range(9)]))
    with pytest.raises(ValueError, match=r"Files differ: column 'number' of .*x.parquet holds string, .* int64"):
        kfree.read(paths, id=["number", "id"])


def test_ids_that_are_missing_at_first_are_names(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"id": null, "a": 1}\n' * 80_000 + '{"id": "x", "a": 9}\n')
    source = kfree.read(tmp_path / "x.jsonl", id="id")
    written = parquet.read_table(kfree.write(kfree.DPMeans(n_clusters=2).fit(source), source, tmp_path / "o.parquet"))
    assert written["id"].to_pylist()[-2:] == [None, "x"]


def test_a_part_of_a_table_is_not_written(tmp_path):
    source = kfree.read(write_parquet(tmp_path, table(rows())), id="id")
    model = kfree.DPMeans(n_clusters=3).fit(source)
    for part in source.parts(300):
        with pytest.raises(ValueError, match="write needs the whole table"):
            kfree.write(model, part, tmp_path / "labels.csv")


def test_numbers_with_zeros_in_front_stay_names(tmp_path):
    (tmp_path / "x.csv").write_text("id,a\n007,1\n08,2\nx,9\n")
    source = kfree.read(tmp_path / "x.csv", id="id")
    written = parquet.read_table(kfree.write(kfree.DPMeans(n_clusters=2).fit(source), source, tmp_path / "o.parquet"))
    assert written["id"].to_pylist() == ["007", "08", "x"]


def test_nothing_is_written_over_unless_asked(tmp_path):
    source = kfree.read(write_parquet(tmp_path, table(rows())), id="id")
    model = kfree.DPMeans(n_clusters=3).fit(source)
    path = tmp_path / "labels.csv"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        kfree.write(model, source, path)
    assert path.read_text() == "mine"
    kfree.write(model, source, path, overwrite=True)
    assert path.read_text().startswith('"id","label"')


def test_nothing_half_written_is_left(tmp_path, monkeypatch):
    source = kfree.read(write_parquet(tmp_path, table(rows())), id="id")
    model = kfree.DPMeans(n_clusters=3).fit(source)
    said, calls = kfree.write.__globals__["_said"], []

    def stop(*given):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return said(*given)

    monkeypatch.setitem(kfree.write.__globals__, "_said", stop)
    (tmp_path / "labels.parquet").write_text("mine")
    with pytest.raises(KeyboardInterrupt):
        kfree.write(model, source, tmp_path / "labels.parquet", overwrite=True)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["labels.parquet", "x.parquet"]
    assert (tmp_path / "labels.parquet").read_text() == "mine"


def test_a_full_disk_is_told(tmp_path):
    resource, signal = pytest.importorskip("resource"), pytest.importorskip("signal")
    source = kfree.read(write_parquet(tmp_path, table(rows())), id="id")
    model = kfree.DPMeans(n_clusters=3).fit(source)
    before, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(OSError, match=r"labels.parquet cannot be written .* Nothing is left of it"):
            kfree.write(model, source, tmp_path / "labels.parquet")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert [one.name for one in tmp_path.iterdir()] == ["x.parquet"]


def test_files_that_changed_are_told(tmp_path):
    path = write_parquet(tmp_path, table(rows()))
    source = kfree.read(path, id="id")
    model = kfree.DPMeans(n_clusters=3).fit(source)
    for n in (599, 700):
        write_parquet(tmp_path, table(rows(n=n)))
        with pytest.raises(ValueError, match="other rows now"):
            kfree.write(model, source, tmp_path / "labels.parquet")


def test_what_cannot_be_asked_is_told(tmp_path):
    source = kfree.read(write_parquet(tmp_path, table(counts())), id="id")
    model = kfree.KFeatures(1).fit(source)
    with pytest.raises(ValueError, match=r"KFeatures has no predict\. Choose of 'transform'"):
        kfree.write(model, source, tmp_path / "o.csv", what="predict")
    with pytest.raises(ValueError, match="Unknown what='fit'"):
        kfree.write(model, source, tmp_path / "o.csv", what="fit")
    with pytest.raises(ValueError, match=r"end in \.parquet or \.csv"):
        kfree.write(model, source, tmp_path / "o.xlsx")
    with pytest.raises(FileNotFoundError, match="Make it first"):
        kfree.write(model, source, tmp_path / "no" / "o.csv")
    with pytest.raises(TypeError, match=r"what kfree.read returns, got ndarray"):
        kfree.write(model, rows(), tmp_path / "o.csv")
    with pytest.raises(TypeError, match="neither predict nor transform"):
        kfree.write(object(), source, tmp_path / "o.csv")
