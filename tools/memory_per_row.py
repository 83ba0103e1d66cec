"""Peak memory of fits beyond their data, in bytes a row: how much more a table twice as long takes.

    python tools/memory_per_row.py            # print the table
    python tools/memory_per_row.py --write    # write it into docs/theory/tested.md

Every fit is made on two tables of the same kind, one of them longer. What numpy and Python allocate is counted by
tracemalloc; the difference of the two peaks, over that of the rows, leaves out whatever does not grow with them.
"""

import argparse
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import kfree
from pages import filled

PAGE = Path(__file__).parent.parent / "docs" / "theory" / "tested.md"


class Case(NamedTuple):
    """A fit, and how its table grows."""

    name: str
    estimator: Any
    table: Callable[[int], Any]
    sizes: tuple[int, int]
    groups: int = 0


def clouds(p: int, k: int, gap: float = 4.0, dtype: Any = np.float64) -> Callable[[int], Any]:
    """Gaussian groups."""

    def table(n: int) -> Any:
        rng = np.random.default_rng(p)
        centres = gap * rng.normal(size=(k, p))
        return (centres[rng.integers(k, size=n)] + rng.normal(size=(n, p))).astype(dtype)

    return table


def counts(p: int, k: int, size: int) -> Callable[[int], Any]:
    """Sparse counts of k kinds."""

    def table(n: int) -> Any:
        rng = np.random.default_rng(p)
        kinds, which = rng.dirichlet(np.full(p, 0.05), k), rng.integers(k, size=n)
        words = np.concatenate([rng.choice(p, size=size, p=kinds[kind]) for kind in which])
        found = sp.csr_matrix((np.ones(n * size), (np.repeat(np.arange(n), size), words)), shape=(n, p))
        found.sum_duplicates()
        return found

    return table


def features(p: int, k: int) -> Callable[[int], Any]:
    """Sums of k features."""

    def table(n: int) -> Any:
        rng = np.random.default_rng(p)
        return rng.integers(2, size=(n, k)) @ (3 * rng.normal(size=(k, p))) + 0.5 * rng.normal(size=(n, p))

    return table


DP, VDP, KDP = kfree.DPMeans, kfree.VariationalDPMixture, kfree.KernelDPMixture
LONG, MIDDLE, SHORT = (400_000, 1_000_000), (100_000, 300_000), (3000, 9000)
CASES = [
    Case("DPMeans(radius)", DP(radius=100.0), clouds(10, 20), LONG),
    Case("DPMeans(radius), float32", DP(radius=100.0), clouds(10, 20, dtype=np.float32), LONG),
    Case("DPMeans(), lam chosen", DP(), clouds(10, 20), LONG),
    Case("DPMeans(lam)", DP(lam=30_000.0), clouds(10, 20), LONG),
    Case("DPMeans(n_clusters)", DP(n_clusters=20), clouds(10, 20), LONG),
    Case('DPMeans(algorithm="delayed")', DP(radius=100.0, algorithm="delayed"), clouds(10, 20), LONG),
    Case('DPMeans(algorithm="serial")', DP(radius=100.0, algorithm="serial"), clouds(10, 20), LONG),
    Case('DPMeans(algorithm="collapsed")', DP(radius=100.0, algorithm="collapsed"), clouds(10, 20), LONG),
    Case('DPMeans(search="full")', DP(radius=3000.0, search="full"), clouds(10, 20), MIDDLE),
    Case("DPMeans, kl, sparse", DP(radius=5.0, divergence="kl", smoothing=0.1), counts(500, 10, 30), (20_000, 60_000)),
    Case("HDPMeans", kfree.HDPMeans(20.0, 200.0), clouds(10, 20), MIDDLE, 20),
    Case("HDPMeans(), chosen", kfree.HDPMeans(), clouds(10, 20), MIDDLE, 20),
    Case("HDPTopics, from 40 topics", kfree.HDPTopics(n_topics_init=40), counts(1000, 10, 60), SHORT),
    Case("HDPTopics, from 80 topics", kfree.HDPTopics(n_topics_init=80), counts(1000, 10, 60), SHORT),
    Case("BPMeans(lam)", kfree.BPMeans(3000.0, n_init=1), features(20, 4), SHORT),
    Case("KFeatures", kfree.KFeatures(4, n_init=1), features(20, 4), SHORT),
    Case("StepwiseKFeatures", kfree.StepwiseKFeatures(3000.0, n_init=1), features(20, 4), SHORT),
    Case('VariationalDPMixture("tree")', VDP(accelerate="tree"), clouds(10, 20), LONG),
    Case('VariationalDPMixture("kdtree")', VDP(accelerate="kdtree"), clouds(10, 8), (20_000, 60_000)),
    Case("VariationalDPMixture, rows", VDP(accelerate=None), clouds(10, 8), (20_000, 60_000)),
    Case("KernelDPMixture", KDP(), clouds(10, 8), (20_000, 60_000)),
    Case("KernelDPMixture(features=500)", KDP(features=500), clouds(10, 8), (20_000, 60_000)),
]


def size_of(X: Any) -> int:
    """Bytes of a table."""
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes


def peak(case: Case, X: Any) -> tuple[int, int]:
    """Bytes at the peak of a fit beyond those before it, and the number of clusters found."""
    model = type(case.estimator)(**case.estimator.get_params())
    groups = {"groups": np.arange(X.shape[0]) % case.groups} if case.groups else {}
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, **groups)
    most = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    found = getattr(model, "n_clusters_", None) or model.n_components_
    return most, int(found)


def line(case: Case) -> str:
    """A line of the table."""
    tables = [case.table(n) for n in case.sizes]
    peak(case, tables[0][: case.sizes[0] // 4])  # kernels are loaded by now
    (small, _), (large, K) = (peak(case, X) for X in tables)
    more = case.sizes[1] - case.sizes[0]
    data, beyond = (size_of(tables[1]) - size_of(tables[0])) / more, (large - small) / more
    return f"| {case.name} | {case.sizes[1]} x {tables[0].shape[1]} | {K} | {data:.0f} | {beyond:.0f} |"


def main() -> None:
    """Measure, and print or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", default="", help="fits whose names begin with this, or one of these (a,b)")
    options = parser.parse_args()
    lines = ["| fit | rows x columns | found | data, bytes a row | beyond it, bytes a row |", "|---|---|---|---|---|"]
    print("\n".join(lines))
    for case in CASES:
        if case.name.startswith(tuple(options.only.split(","))):
            lines.append(line(case))
            print(lines[-1], flush=True)
    if options.write:
        PAGE.write_text(filled(PAGE.read_text(), "memory", "\n".join(lines) + "\n"))


if __name__ == "__main__":
    main()
