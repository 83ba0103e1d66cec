"""``kfree demo``: three files, what is found in them, and a page about each."""

import csv
import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

from kfree.cli.demo_pictures import photographs
from kfree.cli.demo_table import customers
from kfree.cli.demo_texts import messages
from support.command_line import Caller, labels

STORIES = {"customers": "customers.csv", "texts": "texts.txt", "pictures": "pictures.npy"}


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Caller(capsys)


def test_the_demo_tells_three_stories_and_a_second_run_spoils_nothing(call):
    done = call("demo")
    assert done.code == 0
    assert done.out == ""
    for number, (name, file) in enumerate(STORIES.items(), 1):
        assert Path("demo", file).exists()
        page = Path("demo", name, "report.html").read_text(encoding="utf-8")
        assert f"\n   Open {Path('demo', name, 'report.html')}\n" in done.err
        assert f"{number}. " in done.err
        assert ("<img" in page) == (name == "pictures")
    assert "4 kinds were found" in done.err
    assert "5 topics were found" in done.err
    assert "7 parts were found" in done.err
    assert "Warning" not in done.err
    customers_page = Path("demo", "customers", "report.html").read_text(encoding="utf-8")
    assert "At least 6 groups" not in customers_page  # of four
    assert re.search(r"customer since</th>\s*<td[^>]*>.*?<td[^>]*>\d{4}-\d\d-\d\d<", customers_page, re.DOTALL)
    assert max(map(len, done.err.splitlines())) <= 110
    assert len(done.err.splitlines()) < 50
    assert len(labels("demo/customers/labels.csv")) == 600

    own = Path("demo", "my notes.txt")
    own.write_text("mine")
    before = Path("demo/customers/labels.csv").read_text()
    assert "already there" in call.fails("demo")
    assert call("demo", "--force", "--no-report").code == 0
    assert Path("demo/customers/labels.csv").read_text() == before
    assert own.read_text() == "mine"


def test_a_demo_without_room_leaves_nothing(call):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for room in (100, 40_000):  # not even for a file; for one, but not for what is found in it
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
        try:
            done = call("demo")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert done.code == 1
        assert "There is no room for demo" in done.err
        assert not os.listdir()


def test_a_quiet_demo_says_nothing_and_finds_the_things_that_were_drawn(call):
    done = call("demo", "--quiet", "--no-report", "--out", "elsewhere")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert not list(Path("elsewhere").rglob("report.html"))
    with open("elsewhere/pictures/labels.csv", newline="") as file:
        found = np.array([row[1:] for row in csv.reader(file)][1:], dtype=int)
    drawn = photographs(120, np.random.default_rng(0))[1]
    assert found[:, 0].all()  # the desk
    for thing in drawn.T:
        assert any(np.array_equal(part, thing) for part in found[:, 1:].T)


def test_customers_have_what_tables_have():
    names, values = customers(600, np.random.default_rng(0))
    table = dict(zip(names, values))
    assert len(set(table["customer"])) == 600
    assert 5 < Counter(table["buys by"])[""] < 50
    assert np.mean(table["basket"]) > 1.2 * np.median(table["basket"])  # a long tail
    assert min(table["customer since"]) < "2020" < "2024" < max(table["customer since"])


def test_messages_are_sentences_and_some_are_about_two_things():
    texts = messages(300, np.random.default_rng(0))
    assert len(set(texts)) == 300
    assert all("{" not in text and text.endswith((".", "?")) for text in texts)
    assert np.ptp([len(text.split()) for text in texts]) > 20
