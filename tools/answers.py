"""Answers of a panel of fits, bit for bit: what a change that should change nothing must leave alone.

    python tools/answers.py write before.json     # on the code before
    python tools/answers.py compare before.json   # on the code after: says which fits differ, and in what

Every public estimator, every algorithm, search and divergence on data drawn here and on scikit-learn's digits and wine;
with ``--data FOLDER`` also on tables of real data (``name.npz`` with an array ``X``).
"""

import argparse
import hashlib
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_wine

import kfree

#: Attributes that are no answers: seconds of restarts, objects that print where they are in memory.
NOT_ANSWERS = {"restarts_", "family_"}
DIVERGENCES = [
    "sqeuclidean",
    "mahalanobis",
    "kl",
    "poisson",
    "bernoulli",
    "itakura_saito",
    "negative_binomial",
    "cosine",
]


def clouds(n: int, p: int, K: int, seed: int, spread: float = 4.0) -> np.ndarray:
    """K unequal Gaussian clouds."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(K, p)) * spread
    share = rng.dirichlet(np.full(K, 2.0))
    return centres[rng.choice(K, n, p=share)] + rng.normal(size=(n, p))


def counts(n: int, p: int, K: int, seed: int) -> np.ndarray:
    """Counts from K profiles."""
    rng = np.random.default_rng(seed)
    profiles = rng.dirichlet(np.full(p, 0.3), K)
    return np.stack([rng.multinomial(60, profiles[k]) for k in rng.integers(K, size=n)]).astype(float)


def rows_for(divergence: str, seed: int, n: int = 400) -> np.ndarray:
    """Rows in the domain of a divergence."""
    if divergence in ("kl", "poisson", "negative_binomial"):
        return counts(n, 12, 5, seed)
    if divergence == "bernoulli":
        return (counts(n, 12, 5, seed) > 4).astype(float)
    X = clouds(n, 4, 6, seed)
    return np.exp(X / 4) if divergence == "itakura_saito" else X


def dp_means() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Fits of DPMeans."""
    for divergence in DIVERGENCES:
        X = rows_for(divergence, 1)
        keywords = {"smoothing": 0.1} if divergence in ("kl", "bernoulli") else {}
        radius = kfree.radius_for_k(X, 6, divergence=divergence, **keywords)
        for algorithm in ("batch", "serial", "delayed", "collapsed"):
            for search in ("auto", "polish", "full") if algorithm == "batch" else ("auto", "full"):
                common = {"divergence": divergence, "algorithm": algorithm, "search": search, "random_state": 0}
                yield (
                    f"DPMeans {divergence} {algorithm} {search}",
                    lambda c=common, k=keywords, X=X, r=radius: kfree.DPMeans(radius=r, **c, **k).fit(X),
                )
        yield f"DPMeans {divergence} auto", lambda d=divergence, X=X: kfree.DPMeans(divergence=d).fit(X)
        yield (
            f"DPMeans {divergence} price",
            lambda d=divergence, X=X, k=keywords: kfree.DPMeans(
                lam=kfree.lam_for_k(X, 6, divergence=d, **k), divergence=d, **k
            ).fit(X),
        )
        for number in (2, 5, 9):
            yield (
                f"DPMeans {divergence} n_clusters {number}",
                lambda d=divergence, X=X, k=keywords, K=number: kfree.DPMeans(n_clusters=K, divergence=d, **k).fit(X),
            )
        weight = np.random.default_rng(2).integers(0, 4, len(X)).astype(float)
        yield (
            f"DPMeans {divergence} weights",
            lambda d=divergence, X=X, k=keywords, w=weight, r=radius: kfree.DPMeans(radius=r, divergence=d, **k).fit(
                X, sample_weight=w
            ),
        )
        if divergence in ("sqeuclidean", "kl", "poisson"):
            yield (
                f"DPMeans {divergence} sparse full",
                lambda d=divergence, X=X, k=keywords, r=radius: kfree.DPMeans(
                    radius=r, divergence=d, search="full", **k
                ).fit(sp.csr_matrix(X)),
            )
    for n, p, K, spread in ((6000, 2, 12, 3.0), (30000, 8, 20, 2.0), (60000, 3, 9, 1.5), (12000, 16, 30, 1.0)):
        X = clouds(n, p, K, 3, spread)
        radius = 3.0 * p
        for search in ("auto", "points", "full"):
            yield (
                f"DPMeans {n} x {p} {search}",
                lambda X=X, r=radius, s=search: kfree.DPMeans(radius=r, search=s).fit(X),
            )
        yield f"DPMeans {n} x {p} float32", lambda X=X, r=radius: kfree.DPMeans(radius=r).fit(X.astype(np.float32))
        yield f"DPMeans {n} x {p} auto", lambda X=X: kfree.DPMeans().fit(X)
    X = clouds(5000, 3, 8, 5)
    for init in ("mean", "farthest_first", "k-means++"):
        yield f"DPMeans init {init}", lambda i=init: kfree.DPMeans(radius=9.0, init=i, random_state=1).fit(X)
    yield "DPMeans max_clusters", lambda: kfree.DPMeans(radius=2.0, max_clusters=5).fit(X)
    yield "DPMeans tol 0", lambda: kfree.DPMeans(radius=9.0, tol=0.0).fit(X)
    yield "DPMeans warm", lambda: kfree.DPMeans(radius=9.0, warm_start=True).fit(X).fit(X + 0.1)
    yield "DPMeans stream", lambda: kfree.DPMeans(radius=9.0).partial_fit(X[:1500]).partial_fit(X[1500:])
    yield "DPMeans stream auto", lambda: kfree.DPMeans().partial_fit(X[:1500]).partial_fit(X[1500:])
    digits = load_digits().data
    yield "DPMeans digits auto", lambda: kfree.DPMeans().fit(digits)
    yield "DPMeans digits full", lambda: kfree.DPMeans(radius=600.0, search="full").fit(digits)
    yield "DPMeans digits kl", lambda: kfree.DPMeans(divergence="kl").fit(digits)
    yield "lam_path digits", lambda: kfree.lam_path(digits)
    yield "lam_for_k digits", lambda: kfree.lam_for_k(digits, 9)
    yield "radius_for_k digits", lambda: kfree.radius_for_k(digits, 9)
    yield "DPMeans digits price", lambda: kfree.DPMeans(lam=20_000.0).fit(digits)
    yield "DPMeans digits 10", lambda: kfree.DPMeans(n_clusters=10).fit(digits)
    wine = load_wine().data
    yield "DPMeans wine", lambda: kfree.DPMeans(divergence="mahalanobis").fit(wine)


def hdp() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Fits of HDPMeans and HDPTopics."""
    for divergence in ("sqeuclidean", "kl", "poisson", "itakura_saito"):
        X, rng = rows_for(divergence, 7), np.random.default_rng(0)
        groups = rng.integers(0, 8, len(X))
        smoothing = {"smoothing": 0.1} if divergence == "kl" else {}
        for search in ("points", "full"):
            yield (
                f"HDPMeans {divergence} {search}",
                lambda d=divergence, s=search, X=X, g=groups, k=smoothing: kfree.HDPMeans(
                    divergence=d, search=s, random_state=0, **k
                ).fit(X, groups=g),
            )
    C = counts(300, 80, 6, 11)
    C = sp.csr_matrix(C)
    yield "HDPTopics", lambda: kfree.HDPTopics(random_state=0).fit(C)
    yield "HDPTopics refined", lambda: kfree.HDPTopics(refine="collapsed", random_state=0).fit(C)
    yield "HDPTopics paper", lambda: kfree.HDPTopics(mix=0.0, search="paper", random_state=0).fit(C)
    yield "HDPTopics n_topics", lambda: kfree.HDPTopics(n_topics=5, random_state=0).fit(C)
    yield "HDPTopics mix 0", lambda: kfree.HDPTopics(mix=0.0, random_state=0).fit(C)
    yield (
        "HDPTopics stream",
        lambda: kfree.HDPTopics(random_state=0).partial_fit(C[:200]).partial_fit(C[200:]),
    )


def features() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Fits of binary features."""
    rng = np.random.default_rng(5)
    Z = rng.random((500, 5)) < 0.4
    X = Z @ rng.normal(size=(5, 8)) * 3 + 0.3 * rng.normal(size=(500, 8))
    long = (rng.random((6000, 6)) < 0.3) @ rng.normal(size=(6, 40)) * 2 + 0.4 * rng.normal(size=(6000, 40))
    for algorithm in ("extended", "paper", "collapsed"):
        yield (
            f"BPMeans {algorithm}",
            lambda a=algorithm: kfree.BPMeans(lam=60.0, algorithm=a, random_state=0, n_init=4).fit(X),
        )
    yield "BPMeans auto", lambda: kfree.BPMeans(random_state=0, n_init=3).fit(X)
    yield "BPMeans long", lambda: kfree.BPMeans(lam=2000.0, random_state=0, n_init=3).fit(long)
    yield "BPMeans n_jobs", lambda: kfree.BPMeans(lam=60.0, random_state=0, n_init=4, n_jobs=2).fit(X)
    yield "KFeatures", lambda: kfree.KFeatures(5, random_state=0, n_init=4).fit(X)
    yield "KFeatures long", lambda: kfree.KFeatures(6, random_state=0, n_init=3).fit(long)
    yield "KFeatures sparse", lambda: kfree.KFeatures(4, random_state=0, n_init=3).fit(sp.csr_matrix(X * (X > 0)))
    yield "StepwiseKFeatures", lambda: kfree.StepwiseKFeatures(random_state=0).fit(X)
    yield "StepwiseKFeatures price", lambda: kfree.StepwiseKFeatures(lam=60.0, random_state=0).fit(X)


def mixtures() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Fits of mixtures."""
    X = clouds(3000, 3, 6, 13, 5.0)
    for family in ("gaussian", "diag", "spherical"):
        for accelerate in (None, "kdtree", "auto"):
            yield (
                f"VariationalDPMixture {family} {accelerate}",
                lambda f=family, a=accelerate: kfree.VariationalDPMixture(family=f, accelerate=a).fit(X),
            )
    C = counts(600, 20, 5, 17)
    for family in ("multinomial", "poisson", "bernoulli"):
        rows = C if family != "bernoulli" else (C > 2).astype(float)
        yield (
            f"VariationalDPMixture {family}",
            lambda f=family, rows=rows: kfree.VariationalDPMixture(family=f).fit(rows),
        )
    big = clouds(60000, 4, 10, 19, 5.0)
    yield "VariationalDPMixture 60000", lambda: kfree.VariationalDPMixture().fit(big)
    for covariance in ("full", "diag", "spherical"):
        yield f"KernelDPMixture {covariance}", lambda c=covariance: kfree.KernelDPMixture(covariance=c).fit(X)
    sparse = sp.csr_matrix(C)
    yield "KernelDPMixture sparse", lambda: kfree.KernelDPMixture(family="multinomial").fit(sparse)
    yield "VariationalDPMixture sparse", lambda: kfree.VariationalDPMixture(family="multinomial").fit(sparse)


def real(folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Fits of real tables."""
    for name, radius in (("pendigits", 8000.0), ("hipc_flow", 8.0), ("shuttle", 2000.0)):
        file = folder / f"{name}.npz"
        if file.exists():
            X = np.load(file, allow_pickle=False)["X"].astype(float)[:20000]
            yield f"DPMeans {name}", lambda X=X, r=radius: kfree.DPMeans(radius=r).fit(X)
            yield f"DPMeans {name} auto", lambda X=X: kfree.DPMeans().fit(X)


def digest(value: Any) -> dict[str, str]:
    """What an answer is, and a hash of its bits: all public attributes of an estimator, all fields of a record."""
    if hasattr(value, "get_params"):
        parts = {name: part for name, part in vars(value).items() if name.endswith("_") and not name.startswith("_")}
    else:
        parts = value._asdict() if hasattr(value, "_asdict") else {"value": value}
        if isinstance(value, kfree.LamPath):
            parts = {name: part for name, part in vars(value).items() if not name.startswith("_")}
    return {name: _brief(part) for name, part in sorted(parts.items()) if name not in NOT_ANSWERS}


def _brief(part: Any) -> str:
    if sp.issparse(part):
        part = part.toarray()
    if isinstance(part, np.ndarray) and part.dtype != object:
        bits = hashlib.sha256(np.ascontiguousarray(part).tobytes()).hexdigest()[:12]
        return f"{part.dtype} {part.shape} sum {part.sum() if part.dtype.kind in 'fiub' else ''!r} {bits}"
    if isinstance(part, tuple | list) and not hasattr(part, "_asdict"):
        return "[" + ", ".join(map(_brief, part)) + "]"
    return "; ".join(f"{k} {_brief(v)}" for k, v in part._asdict().items()) if hasattr(part, "_asdict") else repr(part)


def panel(folder: Path | None, only: str) -> dict[str, dict[str, str]]:
    """All answers."""
    answers = {}
    sources = [dp_means(), hdp(), features(), mixtures()] + ([real(folder)] if folder else [])
    for source in sources:
        for name, fit in source:
            if only not in name:
                continue
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answers[name] = digest(fit())
            print(f"{time.perf_counter() - start:7.2f} s  {name}", file=sys.stderr, flush=True)
    return answers


def main() -> int:
    """Write the answers, or compare them with those of a file; 1 if they differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--only", default="", help="a part of the names of the fits")
    chosen = parser.parse_args()
    answers = panel(chosen.data, chosen.only)
    if chosen.do == "write":
        chosen.file.write_text(json.dumps(answers, indent=1))
        return 0
    before = json.loads(chosen.file.read_text())
    before = {name: old for name, old in before.items() if chosen.only in name}
    different = [name for name in {**before, **answers} if before.get(name) != answers.get(name)]
    for name in different:
        old, new = before.get(name, {}), answers.get(name, {})
        for key in sorted(set(old) | set(new)):
            if old.get(key) != new.get(key):
                print(f"{name}: {key}\n    before {old.get(key)}\n    after  {new.get(key)}")
    print(f"{len(answers)} fits, {len(different)} differ")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
