"""What each command finds, says and writes."""

import json
import re
import shlex
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from pyarrow import csv, parquet

pytest.importorskip("click")
pytest.importorskip("rich")

import click

import kfree
from kfree.cli.commands import commands
from kfree.cli.options import ModelCommand, ModelOption, parameters
from support.command_line import Caller, in_three, labels, table, three_groups
from support.docstrings import parameters as documented

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "command_line.md"
MODELS = [(name, model) for name, own in commands.commands.items() for model in getattr(own, "models", ())]


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Caller(capsys)


@pytest.fixture
def some(tmp_path):
    csv.write_csv(table(), tmp_path / "some.csv")
    return "some.csv"


@pytest.fixture
def notes(tmp_path):
    """Documents about two subjects, one of them empty."""
    rng = np.random.default_rng(0)
    subjects = [
        ["seed", "soil", "bed", "compost", "tomato", "water", "leaf", "root"],
        ["oven", "flour", "butter", "salt", "onion", "knife", "bake"],
    ]
    lines = [" ".join(rng.choice(subjects[i % 2], 30)) for i in range(60)]
    lines[7] = ""
    (tmp_path / "notes.txt").write_text("\n".join(lines) + "\n")
    return lines


@pytest.mark.parametrize(("command", "model"), MODELS)
def test_options_are_the_parameters_of_the_estimators(command, model):
    table, own = getattr(kfree, model)._parameters, commands.commands[command]
    context = click.Context(own, info_name=command)
    offered = {param.name for param in own.get_params(context) if isinstance(param, ModelOption)}
    said = documented(getattr(kfree, model))
    assert list(parameters(model)) == list(said)
    assert {name: text.kind for name, text in parameters(model).items()} == {n: text.kind for n, text in said.items()}
    left = {name for name in table if name not in offered and not own.only}
    assert left <= {"verbose", "warm_start", "smoothing_mean"}


@pytest.mark.parametrize("name", commands.commands)
def test_no_two_options_of_a_command_have_one_name(name):
    command = commands.commands[name]
    every = [
        opt for param in command.get_params(click.Context(command)) for opt in (*param.opts, *param.secondary_opts)
    ]
    assert len(every) == len(set(every))
    assert isinstance(command, ModelCommand) == (name in dict(MODELS))


def test_prepared_tables_are_told_and_centres_have_the_units_of_the_file(call, tmp_path):
    colour = ["red", "red", "blue"] * 20
    since = ["2024-01-31", "2023-05-05"] * 30
    csv.write_csv(table(colour=colour, always=["x"] * 60, since=since), tmp_path / "some.csv")
    done = call.fit("cluster", "some.csv", "-k", "3")
    assert done.code == 0, done.err
    assert "customer: left out" in done.err
    assert "colour: " in done.err
    assert in_three(labels("some-clusters/labels.csv"))
    spent = sorted(map(float, labels("some-clusters/clusters.csv", "spent")))
    assert spent[2] == pytest.approx(40, abs=2)
    assert spent == [float(f"{value:.6g}") for value in spent]
    assert set(labels("some-clusters/clusters.csv", "colour")) <= {"red", "blue"}
    assert all(re.fullmatch(r"202\d-\d\d-\d\d", day) for day in labels("some-clusters/clusters.csv", "since"))
    done = call("predict", "some-clusters", "some.csv")
    assert done.out == (tmp_path / "some-clusters" / "labels.csv").read_text()


@pytest.mark.parametrize(
    ("command", "options"),
    [("cluster", ()), ("cluster", ("--group", "shop")), ("cluster", ("-k", "5")), ("mixture", ())],
)
def test_sizes_are_numbers_of_labels(call, tmp_path, command, options):
    rng = np.random.default_rng(0)
    frame = table(third=rng.normal(size=60), shop=["a", "b", "c"] * 20)
    csv.write_csv(frame, tmp_path / "some.csv")
    done = call.fit(command, "some.csv", "--id", "customer", *options, "--out", "found")
    assert done.code == 0, done.err
    noun, parts = ("cluster", "clusters") if command == "cluster" else ("component", "components")
    counts = np.bincount([int(k) for k in labels("found/labels.csv", noun)])
    assert labels(f"found/{parts}.csv", "size") == [str(n) for n in counts]
    names = labels(f"found/{parts}.csv", "name")
    assert len(set(names)) == len(names)


def test_a_number_that_is_next_is_found(call, some):
    options = ("--as-is", "--id", "customer", "--json")
    numbers = [
        json.loads(call.fit("cluster", some, *options, "--out", f"out{step}", *step).out)["n_clusters"]
        for step in ((), ("--finer",), ("--coarser",))
    ]
    assert numbers[2] < numbers[0] == 3 < numbers[1]


def test_no_number_that_is_next_is_told(call, tmp_path):
    np.save("two.npy", np.array([[0.0], [0.1], [9.0], [9.1]]))
    last = call.fails("cluster", "two.npy", "--clusters", "2", "--finer")
    assert "2 were found, and no number of more clusters suggests itself. Pass --clusters K" in last


def test_json_is_all_there_is_on_stdout(call, some):
    done = call.fit("cluster", some, "--id", "customer", "--as-is", "--json", "--quiet", "-k", "3")
    told = json.loads(done.out)
    assert done.err == ""
    assert told["n_clusters"] == 3
    assert told["sizes"] == [20, 20, 20]
    assert len(set(told["names"])) == 3
    assert told["converged"]
    assert not told["interrupted"]
    assert "some-clusters/model.kfree" in told["files"]
    assert kfree.load("some-clusters/model.kfree").n_clusters_ == 3
    assert "cannot both go to stdout" in call.fails("cluster", some, "--out", "-", "--json", code=2)


def test_clusters_keep_the_numbers_of_earlier_ones(call, some, tmp_path):
    assert call.fit("cluster", some, "--id", "customer", "-k", "3", "--out", "may").code == 0
    frame = table().slice(15)  # fewer of the first group, which would have another number
    csv.write_csv(frame, tmp_path / "june.csv")
    done = call.fit("cluster", "june.csv", "--id", "customer", "-k", "3", "--out", "june", "--match-to", "may")
    assert done.code == 0, done.err
    assert labels("june/labels.csv") == labels("may/labels.csv")[15:]


def test_topics_are_found_in_lines(call, notes):
    done = call.fit("topics", "notes.txt")
    assert done.code == 0, done.err
    assert "60 documents, 15 words: those in at least 2 documents and at most 50% of them" in done.err
    assert "1 documents have no words that count; their topic is -1." in done.err
    found = labels("notes-topics/labels.csv", "topic")
    assert found[7] == "-1"
    assert found[0] != found[1]
    assert set(found[::2]) == {found[0]}
    assert "tomato" in " ".join(labels("notes-topics/topics.csv", "words"))
    assert call("predict", "notes-topics", "notes.txt").out.splitlines()[1].startswith(f"0,{found[0]},")
    assert "Next: kfree topics notes.txt" in call("info", "notes.txt").err


def test_topics_are_found_in_tables_folders_and_counts(call, notes, tmp_path):
    kept = [line for line in notes if line]
    (tmp_path / "notes.jsonl").write_text(
        "\n".join(json.dumps({"who": f"n{i}", "text": line}) for i, line in enumerate(kept))
    )
    (tmp_path / "folder").mkdir()
    for i, line in enumerate(kept):
        (tmp_path / "folder" / f"n{i:02d}.txt").write_text(line)
    vocabulary = sorted({word for line in kept for word in line.split()})
    counts = np.array([[line.split().count(word) for word in vocabulary] for line in kept])
    sp.save_npz("counts.npz", sp.csr_matrix(counts))
    with np.load("counts.npz") as arrays:
        np.savez("counts.npz", vocab=np.array(vocabulary), **arrays)
    found = []
    every = ("--max-df", "1.0")  # counts are taken as they are
    for name, options in (("notes.jsonl", ("--id", "who", *every)), ("folder", every), ("counts.npz", ())):
        done = call.fit("topics", name, "--out", f"of-{name}", *options)
        assert done.code == 0, done.err
        found.append(labels(f"of-{name}/labels.csv", "topic"))
    assert found[0] == found[1] == found[2]
    assert labels("of-folder/labels.csv", "document")[0] == "n00.txt"
    assert labels("of-notes.jsonl/labels.csv", "who")[0] == "n0"
    assert "tomato" in " ".join(labels("of-counts.npz/topics.csv", "words"))
    assert call("predict", "of-notes.jsonl", "notes.jsonl").out.splitlines()[0] == "who,topic,share"
    np.save("few.npy", counts[:, :3] + 1)
    assert "knows 15 words, but few.npy has 3" in call.fails("predict", "of-counts.npz/model.kfree", "few.npy")


def test_stop_words_are_left_out_of_english_texts(call, tmp_path, notes):
    english = "\n".join(f"the seed is in the soil and the bed is by the {line}" for line in notes)
    (tmp_path / "english.txt").write_text(english)
    assert "English stop words left out (" in call.fit("topics", "english.txt", "--max-df", "1.0").err
    done = call.fit("topics", "english.txt", "--stop-words", "none", "--min-df", "3", "--out", "all")
    assert "in at least 3 documents" in done.err
    assert "no stop words left out" in done.err


def test_features_are_found(call):
    rng = np.random.default_rng(0)
    Z = rng.integers(0, 2, (60, 2))
    np.save("sums.npy", Z @ np.array([[9.0, 9.0, 0.0], [0.0, 0.0, 9.0]]) + rng.normal(0, 0.1, (60, 3)))
    done = call.fit("features", "sums.npy", "--features", "2", "--n-init", "2")
    assert done.code == 0, done.err
    found = np.loadtxt("sums-features/labels.csv", delimiter=",", skiprows=1, dtype=int)[:, 1:]
    assert {tuple(column) for column in found.T} == {tuple(column) for column in Z.T}
    assert "--lam is no option of KFeatures, but of BPMeans" in call.fails(
        "features", "sums.npy", "-k", "2", "--lam", "3", code=2
    )


def test_mixtures_are_found(call, some):
    done = call.fit("mixture", some, "--id", "customer")
    assert done.code == 0, done.err
    assert in_three(labels("some-components/labels.csv", "component"))
    assert min(map(float, labels("some-components/labels.csv", "probability"))) > 0.9
    assert labels("some-components/components.csv", "size") == ["20"] * 3


def test_a_path_is_a_table_and_a_picture(call, some, tmp_path):
    done = call("path", some, "--drop", "customer", "--max-clusters", "4")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == "clusters,lam_from,lam_to,inertia,score,score_without_groups"
    assert [line.split(",")[0] for line in lines[1:5]] == ["1", "2", "3", "4"]
    assert "Next: kfree cluster some.csv --clusters 3" in done.err
    assert call("path", some, "--drop", "customer", "--max-clusters", "4", "--out", "seen").out == ""
    assert (tmp_path / "seen" / "path.png").read_bytes().startswith(b"\x89PNG")


def test_labels_of_new_rows_go_to_a_file(call, some, tmp_path):
    assert call.fit("cluster", some, "--as-is", "--id", "customer", "-k", "3").code == 0
    assert call("predict", "some-clusters", some, "--out", "new.parquet").code == 0
    new = parquet.read_table("new.parquet").to_pydict()
    assert [str(k) for k in new["cluster"]] == labels("some-clusters/labels.csv")
    assert "already there" in call.fails("predict", "some-clusters", some, "--out", "new.parquet")
    assert call("predict", "some-clusters", some, "--out", "new.parquet", "--force").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.parquet", "some-clusters", "some.csv"]


def test_new_rows_need_no_ids(call, some, tmp_path):
    assert call.fit("cluster", some, "--as-is", "--id", "customer", "-k", "3").code == 0
    csv.write_csv(table().drop_columns(["customer"]), tmp_path / "new.csv")
    assert call("predict", "some-clusters", "new.csv").out.splitlines()[0] == "row,cluster"


def test_models_that_were_saved_in_python_are_used(call):
    X = three_groups()
    np.save("some.npy", X)
    for model in (kfree.DPMeans(n_clusters=3), kfree.VariationalDPMixture(), kfree.KFeatures(2, n_init=1)):
        model.fit(X).save("own.kfree")
        assert len(call("predict", "own.kfree", "some.npy").out.splitlines()) == 61
        assert re.match(rf"model: {type(model).__name__}\(", call("info", "own.kfree").out)


def test_a_look_at_a_file(call, tmp_path):
    csv.write_csv(table(city=["Rom", None] * 30), tmp_path / "some.csv")
    done = call("info", "some.csv")
    assert done.out.splitlines()[0] == "some.csv: csv, 60 rows, 4 columns"
    assert re.search(r"customer +text +60 values", done.out)
    told = json.loads(call("info", "some.csv", "--json").out)
    assert [column["name"] for column in told["columns"]] == ["customer", "spent", "visits", "city"]
    np.save("some.npy", three_groups())
    assert "60 rows, 2 columns" in call("info", "some.npy").out


@pytest.mark.parametrize("command", ["cluster", "mixture", "features"])
@pytest.mark.parametrize("columns", ["spent", "spent,visits"])
def test_no_warning_of_a_library_gets_through(call, some, command, columns):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = call(command, some, "--id", "customer", "--columns", columns)
    assert done.code == 0, done.err


def test_pages_are_written(call, some, tmp_path):
    assert call("cluster", some, "--id", "customer", "-k", "3").code == 0
    page = (tmp_path / "some-clusters" / "report.html").read_text(encoding="utf-8")
    spent = sorted(map(float, labels("some-clusters/clusters.csv", "spent")))
    assert f"{spent[2]:.4g}" in page  # in the units of the file, though the model saw others
    assert call("report", "some-clusters", some, "--out", "again.html").code == 0
    assert "3 clusters" in (tmp_path / "again.html").read_text(encoding="utf-8")
    assert "already there" in call.fails("report", "some-clusters", some, "--out", "again.html")


def test_the_commands_of_the_page_run_from_top_to_bottom(call):
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("kfree ")]
    assert len(lines) > 10
    for line in lines:
        done = call(*shlex.split(line)[1:])
        assert done.code == 0, (line, done.err)
