"""Rows on the workers of a Dask cluster against the same rows in memory."""

import logging
import re
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn import config_context
from sklearn.metrics import pairwise_distances_argmin_min

from benchmarks.report import Mark, Table
from kfree import DPMeans

HEADER = [
    "rows x columns",
    "asked",
    "K",
    "passes",
    "memory, s",
    "Dask, s",
    "ratio",
    "MB sent",
    "same bits",
    "dask-ml, s",
    "times kfree's",
    "inertia / kfree's",
]
TEXT = (
    "Made-up groups in float32, in blocks of 500 000 rows on two worker processes with one thread each, against memory "
    "with two threads, on one machine: the best of some fits of either, one after the other. The blocks are with the "
    "workers already. *MB sent*: all that scheduler, workers and client say to each other during a fit. *Same bits*: "
    "labels, centres, inertia and the objective after every pass. Beside it KMeans of dask-ml on the same blocks and "
    "workers, told K."
)
NOTES = [
    "A pass costs its tasks about 30 milliseconds besides the work: where most rows are settled, as in the 300 passes "
    "of overlapping groups, that is a quarter of it. A fit of two passes feels the race for the sample, too."
]
#: Where the system counts bytes by interface.
INTERFACES = Path("/proc/net/dev")
#: Rows, columns, groups, and how far these are apart: where they overlap a fit makes many passes.
SIZES = ((1_000_000, 16, 50, 4.0), (10_000_000, 16, 50, 4.0), (1_000_000, 8, 30, 1.5))
ASKS = {"n_clusters": lambda K: {"n_clusters": K}, "nothing": lambda K: {}}


def rows(n, p, K, apart):
    """Groups of rows."""
    rng = np.random.default_rng(0)
    X = (apart * rng.normal(size=(K, p))).astype("f4")[rng.integers(K, size=n)]
    for start in range(0, n, 500_000):
        X[start : start + 500_000] += rng.standard_normal(X[start : start + 500_000].shape, dtype="f4")
    return X


def sent():
    """Bytes that processes of this machine have sent to each other; None where nobody counts them."""
    if not INTERFACES.exists():
        return None
    received, *_ = re.search(r"lo:(.*)", INTERFACES.read_text())[1].split()
    return int(received)


def megabytes(before):
    """What has been sent since."""
    return None if before is None else (sent() - before) / 1e6


def equal(spread, model):
    """Whether two fits are equal to the last bit."""
    return bool(
        spread.inertia_ == model.inertia_
        and np.array_equal(spread.cluster_centers_, model.cluster_centers_)
        and np.array_equal(spread.objective_trace_, model.objective_trace_)
        and np.array_equal(spread.labels_.compute(), model.labels_)
    )


def timed(make, X):
    """Seconds and the model."""
    begun = time.perf_counter()
    model = make().fit(X)
    return time.perf_counter() - begun, model


def by_dask_ml(X, spread, K):
    """Seconds and inertia of dask-ml's KMeans, whose own is a sum of distances; None if it is not installed."""
    if find_spec("dask_ml") is None:
        return None, None
    from dask_ml.cluster import KMeans

    seconds, model = timed(lambda: KMeans(n_clusters=K, random_state=0), spread)
    with config_context(working_memory=64):
        nearest = pairwise_distances_argmin_min(X, model.cluster_centers_.astype("f4"), metric="sqeuclidean")[1]
    return seconds, float(nearest.sum(dtype=float))


def make(settings):
    """The table."""
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    found = []
    with (
        warnings.catch_warnings(),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
        ) as cluster,
        Client(cluster),
    ):
        warnings.simplefilter("ignore")
        for n, p, K, apart in SIZES:
            n = n // 8 if settings.quick else n
            if settings.quick and found:
                continue
            X = rows(n, p, K, apart)
            spread = da.from_array(X, chunks=(500_000, -1)).persist()
            wait(spread)
            for asked, settings_of in ASKS.items():

                def model(settings_of=settings_of, K=K):
                    return DPMeans(**settings_of(K))

                runs = []
                for _ in range(min(settings.repeats, 2)):
                    first, before = timed(model, X), sent()
                    runs.append((first, timed(model, spread)))
                    wire = megabytes(before)
                here, there = (min(run[i][0] for run in runs) for i in (0, 1))
                one, other = runs[-1][0][1], runs[-1][1][1]
                same = "yes" if equal(other, one) else "NO"
                line = [f"{n} x {p}", asked, one.n_clusters_, one.n_iter_, here, there, there / here, wire, same]
                seconds, inertia = (
                    by_dask_ml(X, spread, K) if asked == "n_clusters" and settings.rivals else (None, None)
                )
                beside = [None, None] if seconds is None else [seconds / there, inertia / one.inertia_]
                found.append([*line, seconds, *beside])
    largest = [row[6] for row in found if row[0].startswith("10000000")] or [row[6] for row in found]
    marks = [
        Mark("Dask over memory, 10 million rows, most", max(largest), 1.5, at_least=False),
        Mark("share of fits with the same bits", float(np.mean([row[8] == "yes" for row in found])), 1.0),
    ]
    return Table("spread", "Rows on a Dask cluster", TEXT, HEADER, found, NOTES, marks)
