"""What the first call costs: on a machine that has just installed kfree, and in every later process."""

import compileall
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import kfree
from benchmarks.report import Mark, Table

WORKER = Path(__file__).resolve().parents[1] / "startup_worker.py"
PACKAGE = Path(kfree.__file__).parent
RIVAL = "KMeans"
ESTIMATORS = [
    "DPMeans",
    "HDPMeans",
    "HDPTopics",
    "BPMeans",
    "KFeatures",
    "StepwiseKFeatures",
    "VariationalDPMixture",
    "KernelDPMixture",
    "GibbsDPMixture",
    "GibbsIBP",
]
HEADER = ["estimator", "import", "first fit ever", "first fit of a later process", "its second fit", "peak memory, MB"]
TEXT = (
    "Each line is a fresh process: imports (numpy and scikit-learn among them), then a fit of 3000 x 5 rows twice "
    "(topics: 500 x 200; features: of two binary ones), with the default parameters (samplers: 40 sweeps, features "
    "from none). *First fit ever* is on a copy of "
    "the package that no process has used before; *later* the best of several. Seconds. A default fit of kfree also "
    f"finds out how many clusters there are; {RIVAL} of scikit-learn is told."
)


def fresh(name, package):
    """Seconds of each step in a fresh process that finds kfree in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(package)}
    command = [sys.executable, WORKER, name]
    return json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)


def installed(folder):
    """A copy of the package as pip leaves it: with Python's bytecode."""
    shutil.copytree(PACKAGE, folder / "kfree", ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(folder / "kfree", quiet=2)
    return folder


def size_of(package):
    """Megabytes of the files of a package."""
    return sum(path.stat().st_size for path in package.rglob("*") if path.is_file()) / 2**20


def make(settings):
    """The table."""
    names, found = [RIVAL, *ESTIMATORS], {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            package = installed(Path(folder, name))
            found[name] = [fresh(name, package)]
        size = size_of(package / "kfree")
        for _ in range(settings.repeats):  # in turn, so that what else the machine does meets all of them
            for name in names:
                found[name].append(fresh(name, Path(folder, name)))
    best = {name: {key: min(run[key] for run in runs[1:]) for key in runs[0]} for name, runs in found.items()}
    rows = [
        [name, best[name]["import"], runs[0]["first"], *(best[name][key] for key in ("first", "second", "peak"))]
        for name, runs in found.items()
    ]
    loading = {name: best[name]["first"] - best[name]["second"] for name in ESTIMATORS}
    together = {name: best[name]["import"] + best[name]["first"] for name in ("DPMeans", RIVAL)}
    marks = [
        Mark("slowest first fit ever, s", max(found[name][0]["first"] for name in ESTIMATORS), 1.0, at_least=False),
        Mark("most that a first fit takes longer than the second, s", max(loading.values()), 0.3, at_least=False),
        Mark(f"import and first fit, DPMeans over {RIVAL}", together["DPMeans"] / together[RIVAL], 2.0, at_least=False),
    ]
    notes = [
        f"Installed: {size:.1f} MB with the kernels of {_levels()}.",
        "Nothing is compiled: the second fit of an estimator takes as long as the first. Fits of features take seconds "
        "because they make ten restarts with moves; `max_time` and `n_init` are there for whoever has none.",
    ]
    return Table("startup", "First call", TEXT, HEADER, rows, notes, marks)


def _levels():
    return ", ".join(sorted(path.name.split(".")[0][1:] for path in PACKAGE.glob("kernels/native/_[ab]*.so")))
