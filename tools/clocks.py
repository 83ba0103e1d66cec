"""How late fits with a ``max_time`` come back, on tables of which a whole fit takes ten seconds and more.

    python tools/clocks.py                # every case
    python tools/clocks.py --only dp,vdp  # cases whose names begin with these

For each case and each ``max_time`` the least lateness of some fits (the machine may be busy with something else), and
beside it the processor time that the fit took. ``--stacks`` prints where a fit is half a second late. ``--gaps`` makes
one whole fit of each case instead, and prints the longest times that go by between two looks at the clock.
"""

import argparse
import faulthandler
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import kfree
from kfree.inference.loop import Budget

TIMES = (0.0, 0.05, 0.5, 2.0, 5.0)
#: What is still in time: seconds, or this share of ``max_time``.
SLACK, SHARE = 1.0, 0.1


class Case(NamedTuple):
    """A fit that takes long."""

    estimator: Any
    table: Callable[[int], Any]  # rows, as many as asked for
    n: int
    groups: int = 0  # of HDPMeans


def clouds(p: int, k: int, gap: float = 4.0) -> Callable[[int], Any]:
    """Gaussian groups."""

    def table(n: int) -> Any:
        rng = np.random.default_rng(p)
        centres = gap * rng.normal(size=(k, p))
        return centres[rng.integers(k, size=n)] + rng.normal(size=(n, p))

    return table


def counts(p: int, k: int, mean: float = 40.0) -> Callable[[int], Any]:
    """Sparse counts of k kinds."""

    def table(n: int) -> Any:
        rng = np.random.default_rng(p)
        kinds, size = rng.dirichlet(np.full(p, 0.05), k), int(mean)
        words = np.empty((n, size), np.int64)
        which = rng.integers(k, size=n)
        for kind in range(k):
            rows = which == kind
            words[rows] = rng.choice(p, size=(int(rows.sum()), size), p=kinds[kind])
        data = sp.csr_matrix((np.ones(n * size), (np.repeat(np.arange(n), size), words.ravel())), shape=(n, p))
        data.sum_duplicates()
        return data

    return table


def features(p: int, k: int) -> Callable[[int], Any]:
    """Sums of k features."""

    def table(n: int) -> Any:
        rng = np.random.default_rng(p)
        return rng.integers(2, size=(n, k)) @ (3 * rng.normal(size=(k, p))) + 0.5 * rng.normal(size=(n, p))

    return table


DP, HDP, VDP, KDP = kfree.DPMeans, kfree.HDPMeans, kfree.VariationalDPMixture, kfree.KernelDPMixture
CASES = {
    "dp auto long": Case(DP(), clouds(8, 20), 2_000_000),
    "dp auto wide": Case(DP(), clouds(100, 20), 200_000),
    "dp auto overlap": Case(DP(), clouds(8, 40, 1.0), 500_000),
    "dp radius": Case(DP(radius=6.0), clouds(8, 20, 1.0), 1_000_000),
    "dp radius many": Case(DP(radius=2.0), clouds(4, 200, 2.0), 500_000),
    "dp price": Case(DP(lam=60_000.0), clouds(8, 20, 1.0), 1_000_000),
    "dp number": Case(DP(n_clusters=20), clouds(8, 20, 1.0), 1_000_000),
    "dp many": Case(DP(n_clusters=400), clouds(4, 200, 2.0), 100_000),
    "dp full": Case(DP(radius=60.0, search="full"), clouds(8, 60, 1.0), 300_000),
    "dp full small radius": Case(DP(radius=10.0, search="full"), clouds(6, 60, 1.0), 50_000),
    "dp polish": Case(DP(radius=20.0, search="polish"), clouds(8, 60, 1.0), 300_000),
    "dp serial": Case(DP(radius=4.0, algorithm="serial", random_state=0), clouds(6, 60, 1.0), 500_000),
    "dp serial many": Case(DP(radius=0.5, algorithm="serial", random_state=0), clouds(6, 60, 1.0), 100_000),
    "dp collapsed": Case(DP(radius=8.0, algorithm="collapsed", random_state=0), clouds(6, 60, 1.0), 300_000),
    "dp delayed": Case(DP(radius=3.0, algorithm="delayed"), clouds(6, 60, 1.0), 500_000),
    "dp farthest": Case(DP(radius=3.0, init="farthest_first"), clouds(6, 60, 1.0), 500_000),
    "dp k-means++": Case(DP(radius=3.0, init="k-means++", n_init=3, random_state=0), clouds(6, 60, 1.0), 500_000),
    "dp kl sparse": Case(DP(radius=0.5, divergence="kl", smoothing=0.1), counts(2000, 20), 100_000),
    "dp kl sparse auto": Case(DP(divergence="kl", smoothing=0.1), counts(2000, 20), 100_000),
    "dp kl full": Case(DP(radius=5.0, divergence="kl", smoothing=0.1, search="full"), counts(500, 20), 50_000),
    "dp is": Case(
        DP(radius=1.0, divergence="itakura_saito", search="full"), lambda n: 0.01 + clouds(6, 30)(n) ** 2, 200_000
    ),
    "hdp auto": Case(HDP(), clouds(5, 20), 200_000, 50),
    "hdp full": Case(HDP(lam_local=8.0, lam_global=60.0, search="full"), clouds(5, 20, 2.0), 200_000, 50),
    "hdp points": Case(HDP(lam_local=8.0, lam_global=60.0, search="points"), clouds(5, 20, 2.0), 200_000, 50),
    "hdp groups": Case(HDP(), clouds(5, 20), 200_000, 5000),
    "topics": Case(kfree.HDPTopics(), counts(5000, 50, 100), 20_000),
    "topics refine": Case(kfree.HDPTopics(mix=0, refine="collapsed", tol=0), counts(5000, 50, 100), 20_000),
    "topics given": Case(kfree.HDPTopics(n_topics=30), counts(5000, 50, 100), 20_000),
    "topics paper": Case(kfree.HDPTopics(mix=0, search="paper", tol=0), counts(5000, 50, 100), 20_000),
    "bp": Case(kfree.BPMeans(), features(50, 12), 5000),
    "bp lam": Case(kfree.BPMeans(3000.0), features(50, 12), 5000),
    "bp paper": Case(kfree.BPMeans(3000.0, algorithm="paper"), features(50, 12), 5000),
    "bp collapsed": Case(kfree.BPMeans(3000.0, algorithm="collapsed"), features(50, 12), 5000),
    "bp long": Case(kfree.BPMeans(), features(50, 8), 200_000),
    "kf": Case(kfree.KFeatures(12), features(50, 12), 50_000),
    "kf paper": Case(kfree.KFeatures(12, algorithm="paper"), features(50, 12), 50_000),
    "kf wide": Case(kfree.KFeatures(12), features(3000, 12), 3000),
    "skf": Case(kfree.StepwiseKFeatures(), features(50, 12), 20_000),
    "vdp rows": Case(VDP(accelerate=None), clouds(10, 20, 2.0), 300_000),
    "vdp tree": Case(VDP(accelerate="tree"), clouds(10, 20, 1.0), 300_000),
    "vdp kdtree": Case(VDP(accelerate="kdtree"), clouds(10, 20, 1.0), 300_000),
    "vdp tree long": Case(VDP(accelerate="tree", final="polish"), clouds(10, 20, 1.0), 2_000_000),
    "vdp wide": Case(VDP(accelerate=None), clouds(200, 20, 1.0), 20_000),
    "vdp multinomial": Case(VDP(family="multinomial"), counts(300, 20), 50_000),
    "kernel": Case(KDP(), clouds(10, 20, 2.0), 20_000),
    "kernel local": Case(KDP(candidates="local", ridge="auto"), clouds(4, 20, 2.0), 20_000),
    "kernel features": Case(KDP(features="auto"), clouds(10, 20, 2.0), 1_000_000),
    "kernel refine": Case(KDP(refine=True), clouds(8, 20, 2.0), 10_000),
    "kernel documents": Case(KDP(family="multinomial"), counts(300, 20), 20_000),
}


def fit(case: Case, X: Any, max_time: float | None, stacks: bool = False) -> tuple[float, float, Any]:
    """Seconds on the clock and of the processor, and the model."""
    model, n = kfree_clone(case.estimator), X.shape[0]
    model.set_params(max_time=max_time)
    groups = {"groups": np.arange(n) % case.groups} if case.groups else {}
    if stacks and max_time is not None:
        faulthandler.dump_traceback_later(max_time + SLACK / 2, exit=False)
    start, busy = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, **groups)
    seconds = time.perf_counter() - start, time.process_time() - busy
    faulthandler.cancel_dump_traceback_later()
    return *seconds, model


class Gaps:
    """Watches how long nobody looks at the clock."""

    def __init__(self) -> None:
        self.last, self.place, self.found = time.perf_counter(), "begin", dict[tuple[str, str], float]()
        look = Budget.spent.fget

        def spent(budget: Budget) -> bool:
            self.look()
            return look(budget)  # type: ignore[misc]

        Budget.spent = property(spent)  # type: ignore[assignment]

    def look(self, place: str = "") -> None:
        """Somebody looks."""
        now = time.perf_counter()
        if not place:
            frames = [f for f in traceback.extract_stack(limit=12) if "/kfree/" in f.filename and "loop" not in f.name]
            names = [f"{Path(frame.filename).stem}.{frame.name}" for frame in frames if "loop.py" not in frame.filename]
            place = " > ".join(names[-2:])
        key = self.place, place
        self.found[key] = max(self.found.get(key, 0.0), now - self.last)
        self.last, self.place = time.perf_counter(), place

    def report(self, name: str, case: Case, X: Any, least: float = 0.4) -> None:
        """The longest times of one fit."""
        fit(case, X[:2000], 5.0)
        self.found.clear()
        self.last, self.place = time.perf_counter(), "begin"
        seconds, _, model = fit(case, X, 90.0)
        self.look("end")
        size = next((getattr(model, a) for a in ("n_clusters_", "n_components_") if hasattr(model, a)), None)
        print(f"{name}: {seconds:.1f} s, K = {size}", flush=True)
        for (before, after), gap in sorted(self.found.items(), key=lambda item: -item[1])[:4]:
            if gap > least:
                print(f"    {gap:6.2f} s  {before}  ->  {after}", flush=True)


def kfree_clone(estimator: Any) -> Any:
    """A fresh estimator with the same parameters."""
    return type(estimator)(**estimator.get_params())


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose names begin with this, or one of these (a,b)")
    parser.add_argument("--times", default=",".join(map(str, TIMES)))
    parser.add_argument("--repeat", type=int, default=3, help="most fits that are made of a late one")
    parser.add_argument("--stacks", action="store_true", help="print where a fit is when it is late")
    parser.add_argument("--gaps", action="store_true", help="print how long nobody looks at the clock")
    parser.add_argument("--scale", type=float, default=1.0, help="times the rows")
    options = parser.parse_args()
    if options.gaps:
        gaps = Gaps()
        for name, case in CASES.items():
            if name.startswith(tuple(options.only.split(","))):
                gaps.report(name, case, case.table(int(case.n * options.scale)))
        return
    times = [float(value) for value in options.times.split(",")]
    print("| case | rows | " + " | ".join(f"{t:g} s" for t in times) + " |")
    print("|---" * (len(times) + 2) + "|")
    late = []
    for name, case in CASES.items():
        if not name.startswith(tuple(options.only.split(","))):
            continue
        n = int(case.n * options.scale)
        X = case.table(n)
        fit(case, X[: min(n, 2000)], 5.0)  # compiled by now
        cells = []
        for t in times:
            tried = []
            while len(tried) < options.repeat and (not tried or min(tried)[0] > t + max(SLACK, SHARE * t)):
                tried.append(fit(case, X, t, options.stacks)[:2])
            seconds, busy = min(tried)
            cells.append(f"{seconds - t:+.2f} ({busy:.1f})")
            if seconds > t + max(SLACK, SHARE * t):
                late.append(f"{name}, max_time={t:g}: {seconds - t:.2f} s late")
        print(f"| {name} | {n} | " + " | ".join(cells) + " |", flush=True)
    print("\n".join(late) or "None is late.")
    sys.exit(bool(late))


if __name__ == "__main__":
    main()
