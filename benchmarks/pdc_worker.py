"""Run inside the environment of pdc-dp-means: read a task, fit, print seconds and clusters as JSON.

The published wheel fails to relocate empty clusters (its compiled part does not fit the scikit-learn it asks for) and
prints a traceback in every pass. The fit goes on; the hooks below spare it the cost of printing.
"""

import json
import sys
from time import perf_counter

import numpy as np
from pdc_dp_means import DPMeans, MiniBatchDPMeans


def fit(X, task):
    """A fit to convergence, from one random row, as in the package's own example."""
    model = DPMeans(n_clusters=1, n_init=1, delta=task["lam"], max_iter=task["max_iter"], random_state=0)
    start = perf_counter()
    model.fit(X)
    return perf_counter() - start, model.labels_, model.n_iter_


def stream(X, task):
    """Batches one after the other; the labels are those of the final centres."""
    model = MiniBatchDPMeans(n_clusters=1, n_init=1, delta=task["lam"], random_state=0)
    step, start = task["batch"], perf_counter()
    for first in range(0, X.shape[0], step):
        model.partial_fit(X[first : first + step])
    return perf_counter() - start, model.predict(X), X.shape[0] // step


def main():
    """Repeat the task and keep the least time."""
    sys.excepthook = sys.unraisablehook = lambda *_: None
    task = json.loads(sys.argv[1])
    X = np.load(task["data"])
    runs = [{"fit": fit, "stream": stream}[task["kind"]](X, task) for _ in range(task["repeats"])]
    _, labels, n_iter = runs[-1]
    np.save(task["labels"], labels)
    print(json.dumps({"seconds": min(run[0] for run in runs), "n_iter": int(n_iter)}))


main()
