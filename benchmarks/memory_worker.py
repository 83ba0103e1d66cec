"""Run in a fresh process: how much a fit needs beyond its data. Prints JSON."""

import json
import sys
import tracemalloc
from pathlib import Path

import numpy as np

from kfree import DPMeans


def resident(field):
    """A resident size of this process in bytes: VmRSS now, VmHWM the largest (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


def main(path, lam, traced):
    """Fit once; with ``traced`` count numpy's allocations instead of pages."""
    DPMeans(radius=1.0).fit(np.arange(20.0).reshape(10, 2))  # kernels are loaded, pools are up
    X = np.load(path)
    X.sum()
    if traced:
        tracemalloc.start()
        model = DPMeans(radius=lam).fit(X)
        beyond = tracemalloc.get_traced_memory()[1]
    else:
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far, which is the parent's at first
        before = resident("VmRSS")
        model = DPMeans(radius=lam).fit(X)
        beyond = resident("VmHWM") - before
    print(json.dumps({"bytes": beyond, "n_clusters": model.n_clusters_, "n_iter": model.n_iter_}))


main(sys.argv[1], float(sys.argv[2]), sys.argv[3] == "traced")
