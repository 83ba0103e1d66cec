"""Run in a fresh process: how much a fit needs beyond its data. Prints JSON."""

import json
import resource
import sys
import tracemalloc

import numpy as np

from kfree import DPMeans


def peak_rss():
    """Largest resident size so far, in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(path, lam, traced):
    """Fit once; with ``traced`` count numpy's allocations instead of pages."""
    DPMeans(1.0).fit(np.arange(20.0).reshape(10, 2))  # kernels are loaded, pools are up
    X = np.load(path)
    X.sum()
    if traced:
        tracemalloc.start()
        model = DPMeans(lam).fit(X)
        beyond = tracemalloc.get_traced_memory()[1]
    else:
        before = peak_rss()
        model = DPMeans(lam).fit(X)
        beyond = peak_rss() - before
    print(json.dumps({"bytes": beyond, "n_clusters": model.n_clusters_, "n_iter": model.n_iter_}))


main(sys.argv[1], float(sys.argv[2]), sys.argv[3] == "traced")
