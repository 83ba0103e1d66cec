"""Run in a fresh process: fit the rows in a file, and tell the peak of the memory that is not the file's. Prints JSON.

python beyond_worker.py PATH K      an .npy file, which is mapped, or anything that kfree.read takes
"""

import json
import re
import sys
import threading
import time
from pathlib import Path

import numpy as np

import kfree

STATUS = Path("/proc/self/status")


def anonymous():
    """Bytes of memory that hold no file."""
    return 1024 * int(re.search(r"RssAnon:\s+(\d+)", STATUS.read_text())[1])


def watched(call):
    """What a call returns, its seconds, and the peak of the memory above what there was before."""
    before, peak, over = anonymous(), [0], threading.Event()

    def watch():
        while not over.wait(0.05):
            peak[0] = max(peak[0], anonymous())

    thread = threading.Thread(target=watch)
    thread.start()
    start = time.perf_counter()
    try:
        result = call()
    finally:
        seconds = time.perf_counter() - start
        over.set()
        thread.join()
    return result, seconds, peak[0] - before


def main():
    """Fit as the command line says."""
    path, K = sys.argv[1], int(sys.argv[2])
    mapped = path.endswith(".npy")
    X = np.load(path, mmap_mode="r") if mapped else kfree.read(path)
    small = np.random.default_rng(0).normal(size=(1000, 4))
    kfree.DPMeans(n_clusters=3).fit(small)
    if not mapped:
        _, decoded, _ = watched(lambda: X.array)
    model, seconds, peak = watched(lambda: kfree.DPMeans(n_clusters=K).fit(X))
    told = {"K": model.n_clusters_, "passes": model.n_iter_, "seconds": seconds, "peak": peak, "rows": X.shape[0]}
    print(json.dumps(told | {"decoding": 0.0 if mapped else decoded, "inertia": model.inertia_}))


if __name__ == "__main__":
    main()
