"""Files of every format are read, and what comes out is what went in, with labels."""

import gzip
import io
import json
import sys

import numpy as np
import pyarrow as pa
import pytest
import scipy.io
import scipy.sparse as sp
from pyarrow import csv, feather, parquet

pytest.importorskip("click")
pytest.importorskip("rich")

from support.command_line import Caller, in_three, labels, table, three_groups


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Caller(capsys)


def write_stream(frame, path):
    with pa.ipc.new_stream(path, frame.schema) as stream:
        stream.write_table(frame)


def write_packed(frame, path):
    plain = io.BytesIO()
    csv.write_csv(frame, plain)
    path.write_bytes(gzip.compress(plain.getvalue()))


def write_lines(frame, path):
    path.write_text("\n".join(map(json.dumps, frame.to_pylist())))


FRAMES = {
    "some.csv": csv.write_csv,
    "some.tsv": lambda frame, path: csv.write_csv(frame, path, csv.WriteOptions(delimiter="\t")),
    "semicolons.csv": lambda frame, path: csv.write_csv(frame, path, csv.WriteOptions(delimiter=";")),
    "some.csv.gz": write_packed,
    "some.parquet": parquet.write_table,
    "some.jsonl": write_lines,
    "list.json": lambda frame, path: path.write_text(json.dumps(frame.to_pylist())),
    "some.feather": feather.write_feather,
    "stream.arrow": write_stream,
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames_of_every_format_are_clustered(call, tmp_path, name):
    FRAMES[name](table(), tmp_path / name)
    done = call.fit("cluster", name, "--id", "customer", "--as-is", "--out", "found", "-k", "3")
    assert done.code == 0, done.err
    assert done.out == ""
    assert in_three(labels("found/labels.csv"))
    assert labels("found/labels.csv", "customer")[:2] == ["C000", "C001"]
    assert "3 clusters" in done.err
    assert "Next: kfree predict found NEWFILE" in done.err


ARRAYS = {
    "some.npy": np.save,
    "some.npz": lambda path, X: np.savez(path, X=X, y=np.zeros(len(X))),
    "sparse.npz": lambda path, X: sp.save_npz(path, sp.csr_matrix(X)),
    "some.mtx": lambda path, X: scipy.io.mmwrite(path, sp.csr_matrix(X)),
    "dense.mtx": scipy.io.mmwrite,
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_every_format_are_clustered(call, name):
    ARRAYS[name](name, three_groups())
    done = call.fit("cluster", name, "--out", "-", "-k", "3")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == "row,cluster"
    assert in_three([line.split(",")[1] for line in lines[1:]])


def test_pictures_become_rows_of_their_pixels(call):
    np.savez("pictures.npz", pictures=three_groups().reshape(60, 1, 2))
    assert call.fit("cluster", "pictures.npz", "--out", "-", "-k", "3", "--array", "pictures").code == 0


def test_stdin_goes_to_stdout(call, monkeypatch):
    plain = io.BytesIO()
    csv.write_csv(table(), plain)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(plain.getvalue())))
    done = call.fit("cluster", "-", "--id", "customer", "-k", "3")
    assert done.code == 0, done.err
    assert len(done.out.splitlines()) == 61


def test_a_format_that_is_said_wins(call, tmp_path):
    csv.write_csv(table(), tmp_path / "some.data")
    assert "Pass --format" in call.fails("cluster", "some.data")
    assert call.fit("cluster", "some.data", "--format", "csv", "--drop", "customer", "-k", "3").code == 0


def test_decimals_may_have_a_comma_between_semicolons(call, tmp_path):
    lines = [f"{a:.3f};{b:.3f}".replace(".", ",") for a, b in three_groups()]
    (tmp_path / "comma.csv").write_text("\n".join(["a;b", *lines]))
    done = call.fit("cluster", "comma.csv", "--out", "-", "--as-is", "-k", "3")
    assert done.code == 0, done.err
    assert in_three([line.split(",")[1] for line in done.out.splitlines()[1:]])


def test_a_table_without_names_of_columns_is_read(call, tmp_path):
    np.savetxt("plain.csv", three_groups(), delimiter=",")
    done = call.fit("cluster", "plain.csv", "--out", "-", "--as-is", "-k", "3")
    assert in_three([line.split(",")[1] for line in done.out.splitlines()[1:]])


def test_whole_numbers_may_turn_into_decimals_after_many_lines(call, tmp_path):
    lines = [f"{i % 3 * 10},{i % 3 * 10}" for i in range(400_000)] + ["1.5,2.5"]
    (tmp_path / "long.csv").write_text("\n".join(["a,b", *lines]))
    done = call("info", "long.csv")
    assert done.code == 0, done.err
    assert "400001 rows" in done.out


def test_tables_can_be_parquet(call, tmp_path):
    parquet.write_table(table(), tmp_path / "some.parquet")
    assert call.fit("cluster", "some.parquet", "--id", "customer", "-k", "3", "--tables", "parquet").code == 0
    assert parquet.read_table("some-clusters/labels.parquet").column_names == ["customer", "cluster"]
    assert parquet.read_table("some-clusters/clusters.parquet").num_rows == 3


HOSTILE = ['a "quoted", name', "<script>alert(1)</script>", "emoji 🦉", "שלום", "[bold]x[/bold]", "=1+1", "two\nlines"]


def test_names_arrive_unharmed(call, tmp_path):
    X = three_groups()
    ids = [f"{HOSTILE[i % len(HOSTILE)]} {i}" for i in range(60)]
    parquet.write_table(pa.table({"id": ids, HOSTILE[0]: X[:, 0], HOSTILE[1]: X[:, 1]}), tmp_path / "odd.parquet")
    done = call.fit("cluster", "odd.parquet", "--id", "id", "-k", "3")
    assert done.code == 0, done.err
    assert labels("odd-clusters/labels.csv", "id") == ids
    header = (tmp_path / "odd-clusters" / "clusters.csv").read_text(encoding="utf-8")
    assert '"a ""quoted"", name",<script>alert(1)</script>' in header.splitlines()[0]


def test_columns_are_chosen(call, tmp_path):
    X = three_groups()
    frame = table(noise=np.arange(60.0), shop=["a", "b"] * 30, w=np.ones(60))
    csv.write_csv(frame, tmp_path / "some.csv")
    fitted = ("--columns", "spent,visits", "--id", "customer", "--weight", "w", "--as-is")
    assert call.fit("cluster", "some.csv", *fitted, "-k", "3").code == 0
    centres = sorted(map(float, labels("some-clusters/clusters.csv", "spent")))
    np.testing.assert_allclose(centres, sorted(X[i : i + 20, 0].mean() for i in (0, 20, 40)))
    done = call.fit("cluster", "some.csv", "--drop", "noise,w", "--id", "customer", "--group", "shop", "--force")
    assert done.code == 0, done.err
    assert json.loads((tmp_path / "some-clusters" / "recipe.json").read_text())["group"] == "shop"
