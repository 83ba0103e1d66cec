"""Fits on a Dask cluster whose workers are killed at random: the same bits, or an error; never a hang.

python tools/kills.py 200        at least so many kills; prints a line for every fit and the counts at the end
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

from kfree import DPMeans

N, P, K = 240_000, 6, 12
#: Fits of different walks: few passes; many passes that open clusters; extremes.
FITS = {"auto": {}, "n_clusters": {"n_clusters": 9}, "radius": {"radius": 14.0, "tol": 0.0, "max_iter": 25}}


def rows():
    """A table of a dozen groups."""
    rng = np.random.default_rng(0)
    return (rng.normal(0, 6, size=(K, P))[rng.integers(K, size=N)] + rng.normal(size=(N, P))).astype("f4")


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


def same(spread, whole):
    """Whether two models are equal to the last bit."""
    return (
        np.array_equal(spread.labels_.compute(), whole.labels_)
        and np.array_equal(spread.cluster_centers_, whole.cluster_centers_)
        and np.array_equal(spread.objective_trace_, whole.objective_trace_)
        and spread.inertia_ == whole.inertia_
    )


def main(wanted):
    """Fit until so many workers have been killed."""
    warnings.simplefilter("ignore")
    logging.getLogger("kfree").setLevel(logging.ERROR)
    X, counts, kills, turn, longest = rows(), {"equal": 0, "error": 0, "OTHER BITS": 0}, 0, 0, 0.0
    whole = {name: DPMeans(**kind).fit(X) for name, kind in FITS.items()}
    while kills < wanted:
        with (
            LocalCluster(
                n_workers=3, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
            ) as cluster,
            Client(cluster),
        ):
            for _ in range(6):  # a cluster that has lost many
                name = list(FITS)[turn % len(FITS)]
                killer, begun = Killer(cluster, turn), time.monotonic()
                made, error = da.from_array(X, chunks=(30_000, -1)), None
                killer.start()
                try:
                    spread = DPMeans(**FITS[name]).fit(made)
                except Exception as raised:
                    error = raised
                killer.stop.set()
                killer.join()
                said = "error" if error is not None else "equal" if same(spread, whole[name]) else "OTHER BITS"
                counts[said] += 1
                kills, turn, seconds = kills + killer.kills, turn + 1, time.monotonic() - begun
                longest = max(longest, seconds)
                print(f"{turn}: {name}, {killer.kills} kills, {seconds:.1f} s: {said} {error or ''}", flush=True)
    print(f"{kills} kills in {turn} fits: {counts}; the longest took {longest:.0f} s", flush=True)
    return counts["OTHER BITS"]


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
