"""Estimators give the same answers, bit for bit, for files of every format as for the same numbers in memory."""

import gc
import logging
import os
import pickle
import subprocess
import sys
import threading
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow")

import kfree
from kfree.files import pieces, table
from support.table_files import COLUMNS, TEXTS, TYPED, counts, rows, write_parquet
from support.table_files import table as made_of

FORMATS = TYPED | TEXTS


def fitted(model, X, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, **more)


def same(found, expected):
    """All fitted arrays and numbers are equal."""
    named = ("topic_names_", "vocabulary_")  # by the names of columns, which arrays have none of
    names = [name for name in vars(expected) if name.endswith("_") and not name.startswith("_") and name not in named]
    compared = 0
    for name in names:
        value, other = getattr(expected, name), getattr(found, name)
        if isinstance(value, np.ndarray) or np.isscalar(value):
            np.testing.assert_array_equal(other, value, err_msg=name)
            compared += 1
    assert compared >= 5


def read_as(name, folder, X, **more):
    made = made_of(X, **more.pop("beside", {}))
    return kfree.read(FORMATS[name](folder, made), id="id", scratch=folder, **more)


@pytest.mark.parametrize("format", FORMATS)
def test_clusters_of_files_are_those_of_memory(format, tmp_path):
    X = rows()
    expected = fitted(kfree.DPMeans(), X)
    with read_as(format, tmp_path, X) as source:
        found = fitted(kfree.DPMeans(), source)
        same(found, expected)
        assert list(found.feature_names_in_) == list(COLUMNS)
        np.testing.assert_array_equal(found.predict(source), expected.labels_)
        np.testing.assert_array_equal(found.transform(source), expected.transform(X))
        np.testing.assert_array_equal(found.decision_function(source), expected.decision_function(X))
        assert found.score(source) == expected.score(X)
        np.testing.assert_array_equal(kfree.DPMeans(n_clusters=3).fit_predict(source), expected.labels_)


@pytest.mark.parametrize("format", TYPED)
def test_single_precision_stays_as_it_is(format, tmp_path):
    X = rows(dtype=np.float32)
    source = read_as(format, tmp_path, X)
    assert source.array.dtype == np.float32
    np.testing.assert_array_equal(source.array, X)
    same(fitted(kfree.DPMeans(lam=400.0), source), fitted(kfree.DPMeans(lam=400.0), X))


@pytest.mark.parametrize("format", ["parquet", "csv", "json", "polars"])
def test_a_column_of_weights_is_sample_weight(format, tmp_path):
    X, weight = rows(), np.random.default_rng(1).integers(1, 5, size=600)
    source = read_as(format, tmp_path, X, weight="w", beside={"w": weight})
    assert source.columns == COLUMNS
    model = kfree.DPMeans(lam=400.0)
    same(fitted(model, source), fitted(kfree.DPMeans(lam=400.0), X, sample_weight=weight))
    assert model.score(source) == model.score(X, sample_weight=weight)
    with pytest.raises(ValueError, match="sample_weight is given too"):
        model.fit(source, sample_weight=weight)
    assert kfree.lam_for_k(source, 3) == kfree.lam_for_k(X, 3, sample_weight=weight)
    with pytest.raises(ValueError, match="GibbsIBP takes no weights"):
        kfree.GibbsIBP(n_samples=2, burn_in=2).fit(source)


@pytest.mark.parametrize("format", ["parquet", "csv", "feather", "npy"])
@pytest.mark.parametrize(
    ("model", "data"),
    [
        (kfree.DPMeans(n_clusters=2, divergence="poisson"), counts),
        (kfree.DPMeans(n_clusters=3, divergence="cosine"), rows),
        (kfree.VariationalDPMixture(), rows),
        (kfree.KernelDPMixture(random_state=0), rows),
        (kfree.KFeatures(2, random_state=0), rows),
        (kfree.BPMeans(random_state=0), rows),
        (kfree.HDPTopics(), counts),
        (kfree.HDPMeans(lam_local=50.0, lam_global=300.0), rows),
        (kfree.GibbsDPMixture(random_state=0, n_samples=5, burn_in=5, n_chains=1), rows),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_estimator_takes_files(format, model, data, tmp_path):
    from sklearn.base import clone

    X = data(n=200)
    if format == "npy":
        np.save(tmp_path / "x.npy", X)
        source = kfree.read(tmp_path / "x.npy")
    else:
        source = read_as(format, tmp_path, X)
    found, expected = fitted(clone(model), source), fitted(clone(model), X)
    same(found, expected)
    for method in ("predict", "transform", "predict_proba", "score_samples", "score", "profile"):
        if hasattr(model, method):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                value = getattr(found, method)(source)
            other = getattr(expected, method)(X)
            if method == "profile":
                value, other = value.centre, other.centre
            np.testing.assert_array_equal(value, other)


def test_arrays_are_mapped_as_they_are(tmp_path):
    for X in (rows(), rows(dtype=np.float32), np.asfortranarray(rows()), counts()):
        np.save(tmp_path / "x.npy", X)
        source = kfree.read(tmp_path / "x.npy", scratch=tmp_path / "nowhere")  # none is needed
        assert isinstance(source.array, np.memmap)
        assert source.array.dtype == X.dtype
        assert source.columns is None
        same(fitted(kfree.DPMeans(n_clusters=3), source), fitted(kfree.DPMeans(n_clusters=3), X))


def test_columns_of_arrays_are_chosen_by_number(tmp_path):
    X = np.column_stack([rows(), np.arange(600) % 3])
    np.save(tmp_path / "x.npy", X)
    source = kfree.read([tmp_path / "x.npy"] * 2, columns=[2, 0], weight="3")
    np.testing.assert_array_equal(source.array, np.tile(X[:, [2, 0]], (2, 1)))
    np.testing.assert_array_equal(source.weight, np.tile(X[:, 3], 2))


@settings(max_examples=25, deadline=None)
@given(
    batch=st.integers(1, 300),
    group=st.integers(1, 300),
    text=st.integers(200, 5000),
    cuts=st.lists(st.integers(0, 257), max_size=3),
    format=st.sampled_from(["parquet", "csv", "json", "feather", "stream", "polars"]),
)
def test_numbers_do_not_depend_on_how_they_are_cut(batch, group, text, cuts, format, tmp_path_factory):
    X, folder = rows(n=257), tmp_path_factory.mktemp("cut")
    ends = [0, *sorted(cuts), 257]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "_ROWS", batch)
        patch.setattr(pieces, "_TEXT", text)
        files = []
        for i, (start, stop) in enumerate(pairwise(ends)):
            if stop == start and format == "json":  # a file without lines has no columns
                continue
            place = folder / str(i)
            place.mkdir()
            files.append(FORMATS[format](place, made_of(X).slice(start, stop - start), group=group))
        if format == "polars":
            import polars

            files = polars.concat(files)
        source = kfree.read(files, columns=list(COLUMNS), id="id")
        np.testing.assert_array_equal(source.array, X)
        path = kfree.write(kfree.DPMeans(lam=400.0).fit(source), source, folder / "labels.parquet")
    from pyarrow import parquet

    written = parquet.read_table(path)
    assert len(written) == 257
    np.testing.assert_array_equal(written["label"], fitted(kfree.DPMeans(lam=400.0), X).labels_)


def test_whole_numbers_that_become_decimals_late_are_read(tmp_path):
    lines = ["a,b", *["1,2"] * 400_000, "1.5,-2.25"]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    X = kfree.read(tmp_path / "x.csv").array
    assert X.shape == (400_001, 2)
    assert X[-1].tolist() == [1.5, -2.25]
    assert (X[:-1] == [1, 2]).all()


def test_texts_are_read_however_they_are_written(tmp_path):
    (tmp_path / "x.csv").write_text('"a";"b"\n1,5;2\n-3,25;4\n')
    assert kfree.read(tmp_path / "x.csv").array.tolist() == [[1.5, 2.0], [-3.25, 4.0]]
    (tmp_path / "y.csv").write_text("1.5,2\n-3.25,4\n")
    assert kfree.read(tmp_path / "y.csv").array.tolist() == [[1.5, 2.0], [-3.25, 4.0]]
    (tmp_path / "x.tsv").write_text("a\tb\n1,5\t2\n-3,25\t4\n")
    assert kfree.read(tmp_path / "x.tsv").array.tolist() == [[1.5, 2.0], [-3.25, 4.0]]
    (tmp_path / "z.csv").write_bytes("größe,b\n1,2\n".encode("latin1"))
    assert kfree.read(tmp_path / "z.csv", encoding="latin1").columns == ("größe", "b")


def test_types_of_numbers_are_all_read(tmp_path):
    import decimal

    import pyarrow as pa

    columns = {
        "small": pa.array([1, 2], pa.int8()),
        "large": pa.array([2**60, 3], pa.uint64()),
        "half": pa.array(np.array([0.5, 1.5], np.float16)),
        "bit": pa.array([True, False]),
        "exact": pa.array([decimal.Decimal("1.25"), decimal.Decimal("2.5")]),
    }
    source = kfree.read(write_parquet(tmp_path, pa.table(columns)))
    assert source.array.dtype == np.float64
    assert source.array.tolist() == [[1, 2.0**60, 0.5, 1, 1.25], [2, 3, 1.5, 0, 2.5]]
    assert kfree.read(write_parquet(tmp_path, pa.table(columns)), columns=["half"]).array.dtype == np.float32
    assert kfree.read(tmp_path / "x.parquet", dtype=np.float32).array.dtype == np.float32


def test_true_and_false_are_numbers_in_texts_too(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,true\n2.5,False\n")
    (tmp_path / "x.jsonl").write_text('{"a": 1, "b": true}\n{"a": 2.5, "b": false}\n')
    for name in ("x.csv", "x.jsonl"):
        assert kfree.read(tmp_path / name).array.tolist() == [[1.0, 1.0], [2.5, 0.0]]


def test_batches_of_a_file_can_be_learned_in_turn(tmp_path):
    X = rows()
    source = read_as("parquet", tmp_path, X)
    found, expected = kfree.DPMeans(radius=60.0), kfree.DPMeans(radius=60.0)
    for part in source.parts(250):
        found.partial_fit(part)
    for start in range(0, 600, 250):
        expected.partial_fit(X[start : start + 250])
    same(found, expected)
    with pytest.raises(ValueError, match="rows must be an integer >= 1"):
        next(source.parts(0))


def test_a_part_stays_a_part_when_it_is_copied_or_read_again(tmp_path):
    X, weight = rows(), np.arange(600) + 1
    source = read_as("parquet", tmp_path, X, weight="w", beside={"w": weight})
    part = list(source.parts(250))[1]
    again = pickle.loads(pickle.dumps(part))
    assert "250 rows" in repr(again)
    inner = list(again.parts(100))[2]
    for one, span in ((part, slice(250, 500)), (again, slice(250, 500)), (inner, slice(450, 500))):
        for _ in range(2):
            np.testing.assert_array_equal(one.array, X[span])
            np.testing.assert_array_equal(one.weight, weight[span])
            one.close()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(inner)).array, X[450:500])


def test_files_are_read_once(tmp_path, monkeypatch, caplog):
    source = read_as("csv", tmp_path, rows())
    assert "about" in repr(source)
    with caplog.at_level(logging.INFO, "kfree"):
        threads = [threading.Thread(target=lambda: source.array) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        kfree.DPMeans(lam=400.0).fit(source).predict(source)
    told = [record.getMessage() for record in caplog.records if "scratch file" in record.getMessage()]
    assert len(told) == 1
    assert "MB" in told[0]
    assert str(tmp_path) in told[0]
    assert repr(source).endswith("600 rows, 3 columns, float64)")
    assert "about" not in repr(source)


def test_room_is_given_back_and_rows_can_be_read_again(tmp_path):
    X = rows()
    source = read_as("parquet", tmp_path, X)
    before = open_files()
    with source:
        kept = source.array
        assert open_files() > before
        assert len(list(tmp_path.iterdir())) == 1  # the scratch file has no name that could be left behind
    del kept
    assert open_files() == before
    np.testing.assert_array_equal(np.asarray(source), X)
    other = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(other.array, X)
    source.close()
    other.close()
    assert not source.array.flags.writeable


def open_files():
    gc.collect()
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def test_a_fitted_model_does_without_the_source(tmp_path):
    X = rows()
    with read_as("parquet", tmp_path, X) as source:
        model = kfree.DPMeans(lam=400.0).fit(source)
        path = kfree.lam_path(source, max_clusters=3)
    model = pickle.loads(pickle.dumps(model))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # X has no names
        np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(path.labels(3), kfree.DPMeans(n_clusters=3).fit(X).labels_)


def test_other_columns_than_those_of_the_fit_are_refused(tmp_path):
    X = rows()
    model = kfree.DPMeans(lam=400.0).fit(read_as("parquet", tmp_path, X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(read_as("parquet", tmp_path, X, columns=["c", "b", "a"]))


def test_polars_without_batches_writes_a_file(tmp_path, monkeypatch):
    import polars

    X = rows()
    monkeypatch.delattr(polars.LazyFrame, "collect_batches", raising=False)
    source = read_as("polars", tmp_path, X)
    np.testing.assert_array_equal(source.array, X)
    assert [path.name for path in tmp_path.iterdir()] == ["x.parquet"]


def test_displays_and_reports_take_files(tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    X = rows()
    source = read_as("parquet", tmp_path, X)
    model = kfree.DPMeans(n_clusters=3).fit(source)
    kfree.ClusterMapDisplay.from_estimator(model, source)
    kfree.report(model, source, tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 1000


def test_a_preparer_refuses_a_source(tmp_path):
    with pytest.raises(TypeError, match="TablePreparer looks at columns of all kinds"):
        kfree.TablePreparer().fit(read_as("parquet", tmp_path, rows()))


@pytest.mark.parametrize(
    "model",
    [
        kfree.HDPMeans(),
        kfree.GibbsDPMixture(),
        kfree.GibbsIBP(),
        kfree.TablePreparer(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_dask_collections_are_not_pulled_silently(model):
    da = pytest.importorskip("dask.array")
    dd = pytest.importorskip("dask.dataframe")
    import pandas

    pulled = []

    def look(block):
        pulled.append(len(block))
        return block

    X = da.from_array(counts(), chunks=(100, 3)).map_blocks(look, meta=np.empty((0, 0)))
    frame = dd.from_pandas(pandas.DataFrame(counts(), columns=list(COLUMNS)), npartitions=2)
    pulled.clear()
    for given_ in (X, frame):
        with pytest.raises(TypeError, match=r"is a Dask .*kfree\.read\(X\)"):
            model.fit(given_)
    if "sample_weight" in model.fit.__code__.co_varnames:
        with pytest.raises(TypeError, match="sample_weight is a Dask Array"):
            model.fit(counts(), sample_weight=X[:, 0])
    assert not pulled


def test_pictures_and_words_do_not_pull_dask_collections(tmp_path):
    da = pytest.importorskip("dask.array")
    pytest.importorskip("jinja2")
    X = da.from_array(rows(), chunks=(100, -1)).map_blocks(lambda block: 1 / 0, meta=np.empty((0, 0)))
    model = kfree.DPMeans(n_clusters=3).fit(rows())
    for ask in (
        kfree.ClusterMapDisplay.from_estimator,
        kfree.ClusterTreeDisplay.from_estimator,
        kfree.CentersDisplay.from_estimator,
        lambda model, X: model.profile(X),
        lambda model, X: model.partial_fit(X),
        lambda model, X: kfree.report(model, X, tmp_path / "page.html"),
        lambda model, X: kfree.lam_path(X),
    ):
        with pytest.raises(TypeError, match="is a Dask Array"):
            ask(model, X)


#: Fits a file with less memory for data than it has; prints what was found.
CHILD = """
import resource, sys
import numpy as np, pyarrow.csv, pyarrow.parquet
import kfree
kfree.DPMeans(lam=50.0).fit(np.random.default_rng(0).normal(size=(3000, 8)))  # imports, threads and buffers of BLAS
source = kfree.read(sys.argv[1], scratch=sys.argv[2])
with open("/proc/self/status") as file:
    used = next(int(line.split()[1]) for line in file if line.startswith("VmData")) * 1024
resource.setrlimit(resource.RLIMIT_DATA, (used + int(sys.argv[3]), resource.RLIM_INFINITY))
try:
    if sys.argv[4] == "read":
        print(source.shape[0], float(source.array.sum()))
    else:
        model = kfree.DPMeans(lam=1e6).fit(source if sys.argv[4] == "fit" else np.array(source.array))
        print(model.n_clusters_, int((model.labels_ == model.predict(source)).sum()))
except MemoryError:
    print("MemoryError")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits as Linux has them")
@pytest.mark.parametrize(("format", "n", "megabytes"), [("parquet", 700_000, 256), ("csv", 200_000, 80)])
def test_files_larger_than_memory_are_read_and_fitted(format, n, megabytes, tmp_path):
    path, size, total = write_large(tmp_path, format, n, 160)
    assert size > 3 * (megabytes << 20)

    def run(what):
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "MALLOC_ARENA_MAX": "2"}
        order = [sys.executable, "-c", CHILD, str(path), str(tmp_path), str(megabytes << 20), what]
        done = subprocess.run(order, env=environment, capture_output=True, text=True, timeout=500, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout.split()

    if format == "csv":  # what follows the reading is the same for all formats
        assert run("read") == [str(n), str(total)]
        return
    assert run("fit") == ["4", str(n)]
    assert run("copy") == ["MemoryError"]  # so that the limit is one


def write_large(folder, format, n, p):
    """Four groups of rows, so many at a time; the file, the size of its numbers and their sum."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    names, rng, total = [f"c{j}" for j in range(p)], np.random.default_rng(0), 0.0
    schema = pa.schema([(name, pa.float64()) for name in names])
    path = folder / f"x.{format}"
    centres = rng.integers(-40, 40, size=(4, p))
    with csv.CSVWriter(path, schema) if format == "csv" else parquet.ParquetWriter(path, schema) as writer:
        for _ in range(0, n, 10_000):
            part = (centres[rng.integers(4, size=10_000)] + rng.integers(-2, 3, size=(10_000, p))).astype(float)
            total += part.sum()
            writer.write_table(pa.table(dict(zip(names, part.T)), schema=schema))
    return path, n * p * 8, total
