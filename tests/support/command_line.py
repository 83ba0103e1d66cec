"""The command line inside of this process and in one of its own, and small files for it."""

import csv
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import kfree
from kfree.cli.commands import run


class Done(NamedTuple):
    """What a command has left."""

    code: int
    out: str
    err: str


class Caller:
    """Runs commands in this process."""

    def __init__(self, capsys):
        self.capsys = capsys

    def __call__(self, *args):
        self.capsys.readouterr()
        code = run([str(arg) for arg in args])
        return Done(code, *self.capsys.readouterr())

    def fit(self, command, file, *args):
        """A command that fits, without a page."""
        return self(command, file, "--no-report", *args)

    def fails(self, *args, code=1):
        """The one line that a command ends with."""
        done = self(*args)
        assert done.code == code, done
        assert done.out == ""
        assert "Traceback" not in done.err
        last = done.err.splitlines()[-1]
        assert last.startswith("kfree: ")
        return last


def process(*args, **settings):
    """The real command, in a process of its own; ``settings`` are those of Popen."""
    source = str(Path(kfree.__file__).parents[1])
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COV")}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [source, environment.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "kfree", *map(str, args)]
    return subprocess.Popen(command, env={**environment, **settings.pop("env", {})}, **settings)


def three_groups(n=20, seed=0):
    """Rows in three groups that are far apart, (3 n, 2)."""
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(mean, 1.0, size=(n, 2)) for mean in ((0, 0), (40, 0), (0, 40))])


def table(**more):
    """The same as a frame: an id, two figures, and whatever else."""
    X = three_groups()
    names = [f"C{i:03d}" for i in range(len(X))]
    return pa.table({"customer": names, "spent": X[:, 0], "visits": X[:, 1], **more})


def labels(path, column="cluster"):
    """A column of a CSV file that a command has written."""

    with open(path, newline="", encoding="utf-8") as file:
        return [row[column] for row in csv.DictReader(file)]


def in_three(found):
    """Whether labels tell the three groups apart."""
    first, second, third = found[:20], found[20:40], found[40:]
    return all(len(set(part)) == 1 for part in (first, second, third)) and len({first[0], second[0], third[0]}) == 3
