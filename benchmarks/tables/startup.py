"""What the first call costs once the compiled kernels are on disk."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.report import Mark, Table

WORKER = Path(__file__).resolve().parents[1] / "startup_worker.py"
HEADER = ["step", "seconds"]
TEXT = (
    "A fresh process, after another one has filled the cache of compiled kernels: imports, then a fit of 5000 x 3 "
    "rows twice. The first fit loads the kernels from disk; what it takes longer than the second is spent on them."
)


def fresh_process():
    """Seconds of each step."""
    return json.loads(subprocess.run([sys.executable, WORKER], check=True, stdout=subprocess.PIPE).stdout)


def make(settings):
    """The table."""
    runs = [fresh_process() for _ in range(settings.repeats + 1)][1:]
    steps = {name: min(run[name] for run in runs) for name in runs[0]}
    kernels = min(run["first fit"] - run["second fit"] for run in runs)
    rows = [[name, seconds] for name, seconds in steps.items()] + [["kernels: first fit minus second", kernels]]
    marks = [
        Mark("seconds on kernels in the second process", kernels, 0.5, at_least=False),
        Mark("seconds of import kfree", steps["import kfree"], 0.5, at_least=False),
    ]
    return Table("startup", "First call", TEXT, HEADER, rows, marks=marks)
