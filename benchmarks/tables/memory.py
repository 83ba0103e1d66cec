"""Memory of a fit beyond its data, with many rows and many clusters."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.report import Mark, Table
from benchmarks.workloads import gauss, lambda_for

WORKER = Path(__file__).resolve().parents[1] / "memory_worker.py"
HEADER = [
    "rows",
    "columns",
    "clusters found",
    "data MB",
    "measured as",
    "MB over the data",
    "bytes a row",
    "rows x clusters would be MB",
]
TEXT = (
    "Peak memory of a fit in a fresh process, over what it held before (interpreter, loaded kernels, the data). "
    "Resident pages are what the system saw; numpy's allocations are counted by tracemalloc in another process."
)
#: Besides 40 bytes a row, one block of rows x clusters is allowed.
BLOCK = 16384


def measure(path, X, lam, how):
    """A line of the table."""
    command = [sys.executable, WORKER, path, str(lam), how]
    answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    n, d = X.shape
    label = {"traced": "numpy's allocations", "pages": "resident pages"}[how]
    found = answer["n_clusters"]
    return [n, d, found, X.nbytes / 1e6, label, answer["bytes"] / 1e6, answer["bytes"] / n, n * found * 8 / 1e6]


def both_ways(n, k):
    """Two lines: the same fit measured in two ways."""
    X, _ = gauss(n, 16, k, 2.0)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/X.npy"
        np.save(path, X)
        return [measure(path, X, lambda_for(X, k), how) for how in ("pages", "traced")]


def make(settings):
    """The table."""
    n, ks = (3000, (10,)) if settings.quick else (1_000_000, (50, 1000))
    groups = {k: both_ways(n, k) for k in ks}
    marks = [
        Mark(
            f"bytes a row with {k} clusters, {row[4]} (40 and a block of {BLOCK} x {k})",
            row[6],
            40 + 8 * BLOCK * k / n,
            at_least=False,
        )
        for k, rows in groups.items()
        for row in rows
    ]
    return Table("memory", "Memory", TEXT, HEADER, [row for rows in groups.values() for row in rows], marks=marks)
