"""Whatever is wrong is said in one line that tells what to do; nothing is left behind."""

import errno
import json
import os

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

pytest.importorskip("click")
pytest.importorskip("rich")

import kfree
from kfree.cli.commands import _COLUMN_KINDS
from kfree.models.table_choices import USER_KINDS
from support.command_line import Caller, table, three_groups


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Caller(capsys)


#: What is in a file, what is run on it, and what is said.
WRONG = {
    "empty": ("", (), "bad.csv is empty."),
    "names only": ("a,b\n", (), "bad.csv has no rows."),
    "one row": ("a,b\n1,2\n", (), "bad.csv has one row. There is nothing to compare it with"),
    "constant": ("a,b\n1,2\n1,2\n1,2\n", (), "All 3 rows of bad.csv are equal, so there is nothing to find."),
    "ragged": ("a,b\n1,2\n3\n", (), "bad.csv is ragged: line 3 has 1 cells where the first has 2."),
    "names twice": ("a,b,a\n1,2,3\n4,5,6\n", (), "bad.csv has two columns called 'a' (columns 1 and 3). Rename one"),
    "no such column": ("age,b\n1,2\n4,5\n", ("--columns", "agee"), "bad.csv has no column 'agee'. Did you mean 'age'?"),
    "no such id": ("a,b\n1,2\n4,5\n", ("--id", "name"), "bad.csv has no column 'name'. There are a, b."),
    "nothing left": ("a\n1\n4\n", ("--drop", "a"), "No column of bad.csv is left to fit."),
    "text": (
        "a,b\n1,x\n4,y\n",
        ("--as-is",),
        "bad.csv has text in column 'b' ('x' in the first). Leave it out: --drop b",
    ),
    "slips": ("a,b\n1,2\n4,5\n4,5\n7,n.a.?\n", ("--as-is",), "Column 'b' of bad.csv holds text in row 3: 'n.a.?'."),
    "missing": (
        "a,b\n1,\n4,5\n",
        ("--as-is",),
        "bad.csv has missing values in column 'b' (1 in the first). Fill them in",
    ),
    "weights": ("a,b\n1,-2\n4,5\n", ("--weight", "b"), "Column 'b' of bad.csv is no column of weights"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_table_is_said(call, tmp_path, name):
    content, options, said = WRONG[name]
    (tmp_path / "bad.csv").write_text(content)
    assert said in call.fails("cluster", "bad.csv", *options)
    assert os.listdir(tmp_path) == ["bad.csv"]


def test_a_file_that_is_not_there_may_have_a_neighbour(call, tmp_path):
    (tmp_path / "customers.csv").touch()
    assert "Did you mean customers.csv?" in call.fails("cluster", "custmers.csv")
    assert "There is no file nothing.csv. Check the name" in call.fails("cluster", "nothing.csv")
    assert "is a folder" in call.fails("cluster", tmp_path)
    assert "*.csv is a pattern, and a command reads one file" in call.fails("cluster", "*.csv")


@pytest.mark.parametrize("content", ["naïve,b\n1,2\n3,4\n", "a,b\n1,x\n3,é\n", "a,b\n" + "1,2\n" * 300_000 + "3,é\n"])
def test_letters_that_are_not_utf8_are_told(call, tmp_path, content):
    for command, name in (("cluster", "bad.csv"), ("topics", "bad.txt")):
        (tmp_path / name).write_bytes(content.encode("latin1"))
        said = call.fails(command, name)
        assert f"{name} is not written in UTF-8" in said
        assert "Pass --encoding" in said


def test_files_that_are_no_text_or_two_bytes_a_letter_are_told(call, tmp_path):
    (tmp_path / "wide.csv").write_text("a,b\n1,2\n3,4\n9,9\n", encoding="utf16")
    assert "wide.csv is written in UTF-16. Pass --encoding utf16." in call.fails("cluster", "wide.csv")
    assert "3 rows, 2 columns" in call("info", "wide.csv", "--encoding", "utf16").out
    (tmp_path / "sheet.csv").write_bytes(b"PK\x03\x04\x00\x00 not a text")
    assert "sheet.csv is no text. Save it as CSV" in call.fails("cluster", "sheet.csv")
    assert "'klingon' is not known" in call.fails("cluster", "wide.csv", "--encoding", "klingon", code=2)


def test_another_encoding_can_be_said(call, tmp_path):
    frame = table(größe=np.arange(60.0))
    csv.write_csv(frame, tmp_path / "some.csv")
    content = (tmp_path / "some.csv").read_bytes().decode("utf-8").encode("latin1")
    (tmp_path / "some.csv").write_bytes(content)
    done = call("info", "some.csv", "--encoding", "latin1")
    assert done.code == 0, done.err
    assert "größe" in done.out


@pytest.mark.parametrize("name", ["bad.parquet", "bad.npy", "bad.npz", "bad.mtx", "bad.arrow", "bad.jsonl"])
def test_a_file_that_is_not_what_its_name_says_is_told(call, tmp_path, name):
    (tmp_path / name).write_bytes(b"this is no such file\n" * 3)
    assert f"{name} cannot be read as" in call.fails("cluster", name)


def test_records_in_a_column_are_told(call, tmp_path):
    (tmp_path / "nested.jsonl").write_text('{"a": {"b": 1}, "c": 2}\n{"a": {"b": 2}, "c": 3}\n')
    last = call.fails("cluster", "nested.jsonl")
    assert "nested.jsonl has lists or records in column 'a'. Make columns of them, or leave them out: --drop a" in last


def test_kinds_and_shapes_that_cannot_be_meant_are_told(call, tmp_path):
    csv.write_csv(table(), tmp_path / "some.csv")
    assert "such as region=category" in call.fails("cluster", "some.csv", "--kind", "region", code=2)
    assert "such as 28x28" in call.fails("cluster", "some.csv", "--images", "8", code=2)
    assert "no such" in call.fails("cluster", "some.csv", "--kind", "no such=category")
    said = "'numbr' is no kind of column. Pass number, category, date, leave out."
    assert said in call.fails("cluster", "some.csv", "--kind", "spent=numbr", code=2)
    assert "--images 4x4 means 16 numbers in a row, but some.csv has 3" in call.fails(
        "cluster", "some.csv", "--images", "4x4"
    )
    assert os.listdir(tmp_path) == ["some.csv"]


def test_kinds_of_columns_are_those_of_the_preparer():
    assert _COLUMN_KINDS == USER_KINDS


def test_without_a_command_there_is_help(call):
    done = call()
    assert done.code == 0
    assert done.out.startswith("Usage: kfree ")


def test_an_array_that_cannot_be_meant_is_told(call):
    np.savez("several.npz", first=np.zeros((3, 2)), second=np.zeros((3, 2)))
    assert "Pass --array, one of first, second." in call.fails("cluster", "several.npz")
    assert "has no array 'third'" in call.fails("cluster", "several.npz", "--array", "third")
    np.save("flat.npy", np.zeros(3))
    assert "shape (3,)" in call.fails("cluster", "flat.npy")
    np.save("objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    assert "objects.npy cannot be read" in call.fails("cluster", "objects.npy")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--lam", "atuo"), "Unknown lam 'atuo'. Choose one of 'auto', or a positive number."),
        (("--lam", "-1"), "lam must be"),
        (("--clusters", "2.5"), "n_clusters must be an integer"),
        (("--lam", "2", "--clusters", "3"), "Each of lam=2 and n_clusters=3 says how many clusters there are."),
        (("--divergence", "kll"), "kll"),
        (("--lam-local", "2"), "--lam-local is no option of DPMeans, but of HDPMeans, with --group COLUMN."),
        (("--group", "b", "--clusters", "3"), "--n-clusters is no option of HDPMeans, but of DPMeans, without it."),
        (("--frobnicate",), "No such option"),
    ],
)
def test_options_are_checked_before_a_file_is_read(call, options, said):
    last = call.fails("cluster", "not there.csv", *options, code=2)
    assert said in last
    assert "(see kfree cluster --help)" in last


def test_a_command_that_is_not_there_is_told(call):
    assert "No such command 'clutser'" in call.fails("clutser", code=2)


def test_a_traceback_is_shown_to_those_who_ask(call):
    done = call("cluster", "nothing.csv", "--debug")
    assert done.code == 1
    assert "Traceback" in done.err
    assert done.err.splitlines()[-1].startswith("kfree: There is no file nothing.csv.")


@pytest.fixture
def some(tmp_path):
    csv.write_csv(table(), tmp_path / "some.csv")
    return "some.csv"


def test_nothing_is_overwritten_unasked(call, some, tmp_path):
    found = tmp_path / "found"
    found.mkdir()
    (found / "labels.csv").write_text("mine")
    (found / "letter.txt").write_text("mine, too")
    options = (some, "--as-is", "--id", "customer", "-k", "3", "--out", "found")
    assert "found/labels.csv is already there. Pass --force" in call.fails("cluster", *options)
    assert (found / "labels.csv").read_text() == "mine"
    assert call.fit("cluster", *options, "--force").code == 0
    assert (found / "labels.csv").read_text() != "mine"
    assert (found / "letter.txt").read_text() == "mine, too"
    assert sorted(os.listdir(tmp_path)) == ["found", "some.csv"]


def test_a_file_in_the_way_and_a_folder_that_is_not_there_are_told(call, some):
    assert "is a file, and a folder of that name" in call.fails("cluster", some, "--out", some)
    assert "There is no folder" in call.fails("cluster", some, "--out", "no/such/place")


def test_a_read_only_folder_is_told_before_anything_is_fitted(call, some, tmp_path, monkeypatch):
    place = tmp_path / "locked"
    place.mkdir()
    place.chmod(0o500)
    if os.access(place, os.W_OK):  # the superuser may write anywhere
        monkeypatch.setattr("tempfile.mkdtemp", refuse)
    assert "cannot be written to. Pass --out" in call.fails("cluster", some, "--out", "locked/found")
    assert not os.listdir(place)


def refuse(*args, **kwargs):
    raise PermissionError(errno.EACCES, "Permission denied")


def test_a_full_disk_leaves_nothing_behind(call, some, tmp_path):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))  # as if there were room for 100 bytes
    try:
        code = call.fit("cluster", some, "--as-is", "--id", "customer", "-k", "3")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert code.code == 1
    assert "There is no room for some-clusters" in code.err
    assert os.listdir(tmp_path) == ["some.csv"]


def test_models_that_cannot_be_read_are_told(call, some, tmp_path):
    assert "There is no file nothing.kfree" in call.fails("predict", "nothing.kfree", some)
    assert "There is no model.kfree in" in call.fails("predict", tmp_path, some)
    (tmp_path / "bad.kfree").write_bytes(b"no model")
    assert "bad.kfree cannot be loaded" in call.fails("predict", "bad.kfree", some)


def test_a_recipe_of_another_version_is_told(call, some, tmp_path):
    assert call.fit("cluster", some, "--as-is", "--id", "customer", "-k", "3").code == 0
    recipe = tmp_path / "some-clusters" / "recipe.json"
    recipe.write_text(json.dumps({**json.loads(recipe.read_text()), "format": 99}))
    assert "its format is 99, and this kfree knows 1" in call.fails("predict", "some-clusters", some)
    recipe.write_text("[]")
    assert "recipe.json cannot be read" in call.fails("info", "some-clusters")


def test_new_rows_with_other_columns_are_told(call, some, tmp_path):
    assert call.fit("cluster", some, "--as-is", "--id", "customer", "-k", "3").code == 0
    csv.write_csv(pa.table({"spent": [1.0, 2.0], "visit": [1.0, 2.0]}), tmp_path / "other.csv")
    assert "other.csv has no column 'visits'. Did you mean 'visit'?" in call.fails(
        "predict", "some-clusters", "other.csv"
    )
    kfree.DPMeans(n_clusters=2).fit(three_groups()).save("plain.kfree")
    np.save("wide.npy", np.zeros((4, 3)))
    assert "fitted to 2 columns, but wide.npy has 3" in call.fails("predict", "plain.kfree", "wide.npy")
    assert "ends in .csv or .parquet" in call.fails("predict", "plain.kfree", "wide.npy", "--out", "a.xls")


def test_texts_that_are_not_there_are_told(call, some, tmp_path):
    assert "has no column 'text'. Say where the texts are: --text, one of customer" in call.fails("topics", some)
    assert "Column 'spent' of some.csv holds no text" not in call.fails("cluster", some, "--text", "spent", code=2)
    (tmp_path / "empty.txt").write_text("\n\n")
    assert "empty.txt is empty" in call.fails("topics", "empty.txt")
    (tmp_path / "folder").mkdir()
    assert "There are no .txt files in folder" in call.fails("topics", "folder")
    (tmp_path / "short.txt").write_text("a b\nc d\n")
    assert "No word is left of these 2 documents" in call.fails("topics", "short.txt")
    assert "is plain text, not a table" in call.fails("cluster", "short.txt")
