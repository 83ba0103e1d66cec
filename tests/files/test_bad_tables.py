"""What is wrong with files is said in words: which file, which column, about where, and what to do."""

import errno
import gc
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

import kfree
from kfree.rows import source as source_module
from support.table_files import as_function, rows, table, write_csv, write_feather, write_json, write_parquet


def fails(kind, path, *words, **options):
    """Reading fails, before or while rows are read, with these words."""
    with pytest.raises(kind) as caught:
        _ = kfree.read(path, **options).array
    for word in words:
        assert word in str(caught.value)
    return str(caught.value)


def test_a_missing_file_is_told_with_one_that_is_like_it(tmp_path):
    write_csv(tmp_path, table(rows(n=5)))
    assert "Did you mean" not in fails(FileNotFoundError, tmp_path / "y.csv", "There is no file")
    (tmp_path / "x.csv").rename(tmp_path / "sales.csv")
    fails(FileNotFoundError, tmp_path / "sale.csv", "Did you mean", "sales.csv")
    fails(FileNotFoundError, tmp_path / "sales.parquet", "Did you mean", "sales.csv")
    fails(FileNotFoundError, tmp_path / "*.parquet", "There is no file")
    fails(ValueError, "s3://bucket/x.parquet", "is an address", "polars.scan_parquet")


def test_unknown_formats_are_told(tmp_path):
    (tmp_path / "x.dat").write_text("1,2\n")
    fails(ValueError, tmp_path / "x.dat", "cannot be told from its name", "format=")
    assert kfree.read(tmp_path / "x.dat", format="csv").array.tolist() == [[1.0, 2.0]]
    (tmp_path / "x.npz").write_bytes(b"")
    fails(ValueError, tmp_path / "x.npz", "load it with scipy")
    fails(ValueError, tmp_path / "x.dat", "Unknown format", format="excel")


def test_folders_are_read_in_order_and_mixed_ones_refused(tmp_path):
    fails(ValueError, tmp_path, "There are no files to read")
    write_csv(tmp_path, table(rows(n=5)))
    write_parquet(tmp_path, table(rows(n=5)))
    fails(ValueError, tmp_path, "csv, parquet", "format=")
    assert len(kfree.read(tmp_path / "*.csv", id="id")) == 5
    fails(ValueError, [], "The list of files is empty")


@pytest.mark.parametrize("write", [write_parquet, write_feather, write_csv, write_json])
def test_text_columns_are_named(write, tmp_path):
    path = write(tmp_path, table(rows(n=5)))
    said = fails(ValueError, path, "no numbers: 'id'", "columns=['a', 'b', 'c']", "id=")
    assert str(path) in said
    fails(ValueError, path, "has no column 'aa'", "Did you mean 'a'?", columns=["aa"])
    fails(ValueError, path, "has no column 'q'", "There are 'id', 'a', 'b', 'c'", columns=["q"])


@pytest.mark.parametrize("write", [write_parquet, write_feather, write_csv, write_json, as_function])
def test_missing_values_are_told_with_column_and_row(write, tmp_path):
    a = [1.0] * 150
    a[120] = None
    path = write(tmp_path, pa.table({"a": a, "b": [2.0] * 150}))
    fails(ValueError, path, "Column 'a' of", "missing values", "the first in row 120", "columns=")
    assert kfree.read(path, columns=["b"]).array.shape == (150, 1)


def test_nan_is_told_as_in_memory(tmp_path):
    X = rows(n=50)
    X[7, 1] = np.nan
    source = kfree.read(write_parquet(tmp_path, table(X)), id="id")
    with pytest.raises(ValueError, match=r"X\[7, 1\] = nan"):
        kfree.DPMeans().fit(source)


def test_a_cell_that_is_no_number_is_told_with_its_line(tmp_path):
    lines = ["name,a,b", *[f"n{i},{i},2" for i in range(200_000)], "x,1,oops", "y,1,2"]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    fails(ValueError, tmp_path / "x.csv", "Column 'b' of", "'oops'", "in line 200002", columns=["a", "b"])
    assert kfree.read(tmp_path / "x.csv", columns=["a"]).shape == (200_002, 1)


def test_ragged_lines_and_other_letters_are_told(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n" + "1,2\n" * 10 + "1,2,3\n")
    fails(ValueError, tmp_path / "x.csv", "is ragged: line 12 has 3 cells where the first has 2")
    (tmp_path / "y.csv").write_bytes("größe,b\n1,2\n".encode("latin1"))
    fails(ValueError, tmp_path / "y.csv", "not written in utf8", "encoding='latin1'")


def test_texts_that_cannot_be_looked_at_are_named(tmp_path):
    import gzip

    packed = gzip.compress(b"a,b\n" + b"1,2\n" * 100_000)
    (tmp_path / "x.csv.gz").write_bytes(packed[:-50])
    fails(ValueError, tmp_path / "x.csv.gz", "x.csv.gz cannot be read as", "Is it whole")
    (tmp_path / "y.csv").write_bytes(bytes(3))
    fails(ValueError, tmp_path / "y.csv", "y.csv cannot be read as csv", "Is it whole")


def test_a_broken_line_of_json_is_told(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"a": 1}\n' * 50 + '{"a": \n')
    fails(ValueError, tmp_path / "x.jsonl", "cannot be read as json")
    (tmp_path / "y.jsonl").write_text('[{"a": 1}]')
    fails(ValueError, tmp_path / "y.jsonl", "one list of records")


def test_a_stream_that_loses_a_column_is_told():
    names = iter("aab")
    source = kfree.read(lambda: pa.table({next(names): [1.0, 2.0]}))
    assert source.shape == (2, 1)
    source.close()
    with pytest.raises(ValueError, match=r'the stream cannot be read as an Arrow stream: Field "a" does not exist'):
        _ = source.array


def test_a_torn_parquet_file_is_told(tmp_path):
    path = write_parquet(tmp_path, table(rows()))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    fails(ValueError, path, str(path), "cannot be read as parquet", "Is it whole")


def test_a_file_that_is_broken_inside_is_told_with_about_where(tmp_path):
    from pyarrow import parquet

    path = tmp_path / "x.parquet"
    parquet.write_table(table(rows()), path, row_group_size=100, compression="gzip", use_dictionary=False)
    start = parquet.read_metadata(path).row_group(3).column(1).data_page_offset
    content = bytearray(path.read_bytes())
    content[start : start + 400] = bytes(400)
    path.write_bytes(content)
    fails(ValueError, path, str(path), "cannot be read as parquet after row 300", id="id")


@pytest.mark.parametrize("write", [write_parquet, write_csv])
def test_files_with_other_columns_are_told(write, tmp_path):
    first, second = tmp_path / "1", tmp_path / "2"
    first.mkdir()
    second.mkdir()
    paths = [write(first, pa.table({"a": [1.0], "b": [2.0]})), write(second, pa.table({"a": [1.0], "c": [2.0]}))]
    fails(ValueError, paths, "Files differ", str(paths[1]), "has no column 'b'", "columns=")
    assert kfree.read(paths, columns=["a"]).array.tolist() == [[1.0], [1.0]]
    write(second, pa.table({"b": [4.0], "a": [3.0]}))
    assert kfree.read(paths).array.tolist() == [[1.0, 2.0], [3.0, 4.0]]  # by name, in the order of the first
    write(second, pa.table({"a": [1.0], "b": [2.0], "c": [3.0]}))
    fails(ValueError, paths, "has a column 'c' of its own")


def test_files_without_rows_are_told(tmp_path):
    empty = table(rows(n=5)).slice(0, 0)
    fails(ValueError, write_parquet(tmp_path, empty), "has no rows", id="id")
    (tmp_path / "empty.csv").write_text("")
    fails(ValueError, tmp_path / "empty.csv", "is empty")
    (tmp_path / "header.csv").write_text("a,b\n")
    fails(ValueError, tmp_path / "header.csv", "no rows")
    np.save(tmp_path / "x.npy", np.empty((0, 3)))
    fails(ValueError, tmp_path / "x.npy", "has no rows")


def test_arrays_that_are_no_tables_are_told(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3.0))
    fails(ValueError, tmp_path / "x.npy", "shape (3,)")
    np.save(tmp_path / "y.npy", np.array([["a", "b"]]))
    fails(ValueError, tmp_path / "y.npy", "<U1")
    (tmp_path / "z.npy").write_bytes(b"\x93NUMPY\x01\x00")
    fails(ValueError, tmp_path / "z.npy", "cannot be read as npy")
    np.save(tmp_path / "w.npy", rows(n=4))
    fails(ValueError, tmp_path / "w.npy", "no column 9", columns=[9])
    fails(ValueError, tmp_path / "w.npy", "without ids", id="id")


def test_what_can_be_read_once_only_is_refused(tmp_path):
    made = table(rows(n=5))
    fails(TypeError, (batch for batch in made.to_batches()), "once only", "function that returns a new")
    fails(TypeError, made.to_reader(), "once only", "function that returns a new")
    fails(TypeError, made, "pass it to fit as it is")
    fails(TypeError, rows(n=5), "pass it to fit as it is")
    fails(TypeError, 7, "got int")
    fails(TypeError, lambda: 7, "returned int", "__arrow_c_stream__")


def test_options_that_make_no_sense_are_told(tmp_path):
    path = write_parquet(tmp_path, table(rows(n=5)))
    fails(TypeError, path, "Pass ['a']", columns="a")
    fails(ValueError, path, "columns is empty", columns=[])
    fails(ValueError, path, "has no column 0. There are 'id', 'a'", columns=[0])
    fails(ValueError, path, "has no column 0. There are 'id', 'a'", id=0)
    fails(ValueError, path, "twice", columns=["a", "a"])
    fails(ValueError, path, "is in columns= and is weight", columns=["a"], weight="a")
    fails(ValueError, path, "dtype must be", dtype=np.int32)
    fails(ValueError, path, "No column", id=["id", "a", "b", "c"])


def test_weights_that_are_none_are_told_as_in_memory(tmp_path):
    path = write_parquet(tmp_path, table(rows(n=5), w=np.array([1.0, 1, -1, 1, 1])))
    with pytest.raises(ValueError, match=r"sample_weight\[2\] = -1"):
        kfree.DPMeans(lam=1.0).fit(kfree.read(path, id="id", weight="w"))


def test_without_room_nothing_is_begun(tmp_path, monkeypatch):
    path = write_parquet(tmp_path, table(rows()))
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(10**6, 10**6, 1000))
    said = fails(OSError, path, "needs 0.0144 MB for a scratch file", "has 0.001 MB", "scratch=", id="id")
    assert str(path) in said
    monkeypatch.undo()
    fails(OSError, path, "There is no folder", "scratch=", id="id", scratch=tmp_path / "nowhere")


def test_a_disk_that_becomes_full_is_told_and_room_given_back(tmp_path):
    resource = pytest.importorskip("resource")
    path = write_parquet(tmp_path, table(rows(n=5000)))
    source = kfree.read(path, id="id", scratch=tmp_path)
    before, number = resource.getrlimit(resource.RLIMIT_FSIZE), open_files()
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))  # as if there were room for 1000 bytes
    try:
        with pytest.raises(OSError, match=r"The disk became full.* It is removed.* scratch=") as caught:
            kfree.DPMeans().fit(source)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert caught.value.errno in (errno.EFBIG, errno.ENOSPC)
    assert [one.name for one in tmp_path.iterdir()] == ["x.parquet"]
    assert open_files() == number
    assert source.shape == (5000, 3)  # there is room now


def open_files():
    gc.collect()
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def test_an_interrupt_while_files_are_read_leaves_nothing_behind(tmp_path, monkeypatch):
    source = kfree.read(write_parquet(tmp_path, table(rows(n=5000))), id="id", scratch=tmp_path)
    number, put = open_files(), source_module._put

    def interrupt(*given):
        put(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(source_module, "_put", interrupt)
    model = kfree.DPMeans()
    with pytest.raises(KeyboardInterrupt):
        model.fit(source)
    assert not hasattr(model, "labels_")
    assert [one.name for one in tmp_path.iterdir()] == ["x.parquet"]
    assert open_files() == number
    monkeypatch.undo()
    assert source.shape == (5000, 3)


KILLED = """
import sys, time, pyarrow as pa, kfree
def slow():
    def each():
        for _ in range(1000):
            time.sleep(0.05)
            yield pa.record_batch({"a": [1.0] * 1000})
    return pa.RecordBatchReader.from_batches(pa.schema([("a", pa.float64())]), each())
print("begun", flush=True)
kfree.read(slow, scratch=sys.argv[1]).array
"""


@pytest.mark.skipif(os.name != "posix", reason="signals as Unix has them")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_process_that_is_ended_leaves_no_scratch_file(number, tmp_path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdout.readline() == "begun\n"
    time.sleep(1.0)
    child.send_signal(number)
    assert child.wait(timeout=20) != 0
    child.stdout.close()
    assert not list(tmp_path.iterdir())


def test_pyarrow_is_asked_for_where_it_is_missing(tmp_path, monkeypatch):
    path = write_parquet(tmp_path, table(rows(n=5)))
    np.save(tmp_path / "x.npy", rows())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pip install "kfree\[files\]"'):
        kfree.read(path)
    source = kfree.read(tmp_path / "x.npy")
    model = kfree.DPMeans(lam=400.0).fit(source)
    with pytest.raises(ImportError, match=r'pip install "kfree\[files\]"'):
        kfree.write(model, source, tmp_path / "labels.parquet")
