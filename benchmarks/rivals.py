"""The other side of every ratio. What is given to one is given to all: the same rows, lam, threads and clock."""

import json
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.cluster._k_means_lloyd import lloyd_iter_chunked_dense
from threadpoolctl import threadpool_limits

from benchmarks import THREADS
from benchmarks.compiled import njit
from benchmarks.measure import best_of

HOME = Path(__file__).resolve().parent
PDC = "pdc-dp-means==0.0.8"
PDC_FOLDER = HOME.parent / ".venv-pdc"
#: Passes after which pdc-dp-means and kfree are stopped; KMeans has its own 300.
MAX_ITER = 1000


class Run(NamedTuple):
    """What a clusterer did."""

    seconds: float | None  # None: nothing was run
    labels: np.ndarray
    n_iter: int | None


@cache
def pdc_python():
    """The interpreter of the environment of pdc-dp-means, made on first use; None if it cannot be had.

    Its wheel asks for numpy < 2 and scikit-learn 1.2, which pip finds for Python 3.11.
    """
    python = PDC_FOLDER / "bin" / "python"
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", PDC_FOLDER], check=True)
        if subprocess.run([python, "-c", "import pdc_dp_means"], capture_output=True).returncode:
            subprocess.run([python, "-m", "pip", "install", "--quiet", PDC], check=True)
            subprocess.run([python, "-c", "import pdc_dp_means"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return python


def _pdc(X, settings, **task):
    """A run of pdc-dp-means in a process of its own, which times the fit alone; None without it."""
    python = pdc_python() if settings.rivals else None
    if python is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        task |= {"data": f"{folder}/X.npy", "labels": f"{folder}/labels.npy", "repeats": settings.repeats}
        np.save(task["data"], X)
        command = [python, HOME / "pdc_worker.py", json.dumps(task)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        answer = json.loads(done.stdout)
        return Run(answer["seconds"], np.load(task["labels"]), answer["n_iter"])


def pdc_fit(X, lam, settings):
    """pdc-dp-means to convergence."""
    return _pdc(X, settings, kind="fit", lam=lam, max_iter=MAX_ITER)


def pdc_stream(X, lam, batch, settings):
    """pdc's MiniBatchDPMeans, batch by batch."""
    return _pdc(X, settings, kind="stream", lam=lam, batch=batch)


def kmeans(X, k, settings):
    """scikit-learn's KMeans, told the true number of clusters."""
    seconds, model = best_of(settings.repeats, lambda: KMeans(k, n_init=1, random_state=0).fit(X))
    return Run(seconds, model.labels_, model.n_iter_)


def lloyd_step(X, centres, *, update):
    """A call that runs scikit-learn's Lloyd E-step (with ``update`` also the M-step); returns its labels."""
    X = np.ascontiguousarray(X)
    centres = np.ascontiguousarray(centres, X.dtype)
    k = centres.shape[0]
    weight, labels = np.ones(X.shape[0], X.dtype), np.empty(X.shape[0], np.int32)
    moved, mass, shift = centres.copy(), np.zeros(k, X.dtype), np.zeros(k, X.dtype)

    def call():
        with threadpool_limits(limits=1, user_api="blas"):
            lloyd_iter_chunked_dense(X, weight, centres, moved, mass, labels, shift, THREADS, update_centers=update)
        return labels

    return call


def scipy_nearest(hist, coef, offset):
    """A call that assigns CSR rows by scipy's product followed by argmax."""
    coef = np.ascontiguousarray(coef.T)
    return lambda: (hist @ coef - offset).argmax(axis=1)


@njit(cache=True)
def _serial_pass(X, mean, k, lam, labels):
    """The papers' sweep, one row at a time; appends new centres to ``mean`` and returns how many there are."""
    n, d = X.shape
    for i in range(n):
        least, nearest = np.inf, -1
        for c in range(k):
            distance = 0.0
            for j in range(d):
                gap = X[i, j] - mean[c, j]
                distance += gap * gap
            if distance < least:
                least, nearest = distance, c
        if least > lam:
            mean[k] = X[i]
            nearest = k
            k += 1
        labels[i] = nearest
    return k


def serial_loop(X, lam, most=2000):
    """DP-means by that sweep in the order of the rows, to its fixed point."""
    mean = np.empty((most, X.shape[1]))
    mean[0] = X.mean(axis=0)
    labels, k, n_iter = np.full(X.shape[0], -1, np.int32), 1, 0
    while True:
        before = labels.copy()
        n_iter += 1
        opened = -k
        k = _serial_pass(X, mean, k, lam, labels)
        opened += k
        size = np.bincount(labels, minlength=k)
        for j in range(X.shape[1]):
            total = np.bincount(labels, weights=X[:, j], minlength=k)
            mean[: (size > 0).sum(), j] = total[size > 0] / size[size > 0]
        labels = (np.cumsum(size > 0) - 1).astype(np.int32)[labels]
        k = int((size > 0).sum())
        if not opened and np.array_equal(before, labels):
            return labels, n_iter
