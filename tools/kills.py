"""Fits on a Dask cluster whose workers are killed at random: the same bits, or an error; never a hang.

python tools/kills.py 200             at least so many kills; prints a line for every fit and the counts at the end
python tools/kills.py 50 topics       of one kind of fit
"""

import logging
import os
import signal
import sys
import threading
import time
import warnings

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from kfree import DPMeans, HDPTopics, KernelDPMixture, KFeatures, VariationalDPMixture

N, P, K = 240_000, 6, 12
CHUNK = 30_000


def rows():
    """A table of a dozen groups."""
    rng = np.random.default_rng(0)
    return (rng.normal(0, 6, size=(K, P))[rng.integers(K, size=N)] + rng.normal(size=(N, P))).astype("f4")


def counts():
    """Short documents about five things."""
    rng = np.random.default_rng(1)
    kinds = rng.dirichlet(np.full(40, 0.1), 5)
    return rng.poisson(30 * kinds[rng.integers(5, size=N)]).astype(float) + np.eye(40)[np.arange(N) % 40]


def sums():
    """Rows that are sums of three parts."""
    rng = np.random.default_rng(2)
    return rng.integers(2, size=(N, 3)) @ rng.normal(0, 4, size=(3, P)) + rng.normal(size=(N, P))


CENTRES = "labels_", "cluster_centers_", "objective_trace_", "inertia_"
MIXTURE = "labels_", "weights_", "means_", "covariances_"
#: Fits of different walks, each with its rows and what is compared: of clusters few passes, many that open clusters,
#: and extremes.
FITS = {
    "auto": (lambda: DPMeans(), rows, CENTRES),
    "n_clusters": (lambda: DPMeans(n_clusters=9), rows, CENTRES),
    "radius": (lambda: DPMeans(radius=14.0, tol=0.0, max_iter=25), rows, CENTRES),
    "mixture": (lambda: VariationalDPMixture(), rows, (*MIXTURE, "free_energy_trace_")),
    "kernel": (lambda: KernelDPMixture(features=200, n_candidates=20, random_state=0), rows, (*MIXTURE, "objective_")),
    "topics": (lambda: HDPTopics(random_state=0), counts, ("doc_labels_", "components_", "objective_trace_")),
    "features": (lambda: KFeatures(3, n_init=2, random_state=0), sums, ("components_", "Z_", "objective_trace_")),
}


class Killer(threading.Thread):
    """Kills a worker every now and then, if another is there; every tenth time it stops one for a while, as a slow
    machine would."""

    def __init__(self, cluster, seed):
        super().__init__(daemon=True)
        self.cluster, self.rng, self.stop, self.kills = cluster, np.random.default_rng(seed), threading.Event(), 0

    def run(self):
        """Until it is stopped."""
        while not self.stop.wait(0.1 + self.rng.exponential(0.7)):
            there = set(self.cluster.scheduler_info["workers"])
            nannies = [nanny for nanny in self.cluster.workers.values() if nanny.worker_address in there]
            pids = [nanny.process.pid for nanny in nannies if nanny.process is not None and nanny.process.pid]
            if len(pids) < 2:
                continue
            pid = int(self.rng.choice(pids))
            try:
                if self.rng.random() < 0.1:
                    os.kill(pid, signal.SIGSTOP)
                    time.sleep(1.0)
                    os.kill(pid, signal.SIGCONT)
                else:
                    os.kill(pid, signal.SIGKILL)
                    self.kills += 1
            except ProcessLookupError:
                pass


def found(model, names):
    """What a fit has found, as arrays."""
    values = (getattr(model, name) for name in names)
    return [np.asarray(value.compute() if hasattr(value, "compute") else value) for value in values]


def main(wanted, *names):
    """Fit until so many workers have been killed: all kinds of fits, or those named."""
    warnings.simplefilter("ignore")
    logging.getLogger("kfree").setLevel(logging.ERROR)
    names = names or tuple(FITS)
    tables = {make: make() for make in {FITS[name][1] for name in names}}

    def blocks(name):
        return da.from_array(tables[FITS[name][1]], chunks=(CHUNK, -1))

    # without a client blocks are made here; what clusters are has been compared with memory elsewhere
    whole = {name: found(FITS[name][0]().fit(blocks(name)), FITS[name][2]) for name in names}
    counts, kills, turn, longest = {"equal": 0, "error": 0, "OTHER BITS": 0}, 0, 0, 0.0
    while kills < wanted:
        with (
            LocalCluster(
                n_workers=3, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
            ) as cluster,
            Client(cluster),
        ):
            for _ in range(6):  # a cluster that has lost many
                name = names[turn % len(names)]
                make, _, compared = FITS[name]
                killer, begun = Killer(cluster, turn), time.monotonic()
                said, error = "error", None
                killer.start()
                try:
                    spread = make().fit(blocks(name))
                    killer.stop.set()
                    killer.join()
                    equal = map(np.array_equal, found(spread, compared), whole[name])
                    said = "equal" if all(equal) else "OTHER BITS"
                except Exception as raised:
                    error = raised
                killer.stop.set()
                killer.join()
                counts[said] += 1
                kills, turn, seconds = kills + killer.kills, turn + 1, time.monotonic() - begun
                longest = max(longest, seconds)
                print(f"{turn}: {name}, {killer.kills} kills, {seconds:.1f} s: {said} {error or ''}", flush=True)
    print(f"{kills} kills in {turn} fits: {counts}; the longest took {longest:.0f} s", flush=True)
    return counts["OTHER BITS"]


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, *sys.argv[2:]))
