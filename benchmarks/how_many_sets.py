"""Tables on which the choice of the number of clusters is measured: with classes, generated, and without any groups.

Sets are numbered; what is chosen is chosen on those of even number (half A) and confirmed on the others (half B).
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.preprocessing import scale

from benchmarks import data

#: Number of clusters and ARI of the rule before this one, which counted valleys: commit ab8721a, the same sets.
BEFORE = {
    "iris": (2, 0.57),
    "wine": (3, 0.90),
    "breast_cancer": (1, 0.00),
    "digits": (9, 0.60),
    "digits, standardised": (1, 0.00),
    "digits_300": (3, 0.20),
    "digits_600": (4, 0.30),
    "digits_1000": (9, 0.60),
    "digits_1000, standardised": (1, 0.00),
    "digits PCA 16": (9, 0.59),
    "pendigits": (15, 0.60),
    "pendigits_300": (6, 0.45),
    "pendigits_1000": (11, 0.68),
    "letter": (21, 0.15),
    "letter, A to E": (4, 0.30),
    "letter_1000": (2, 0.00),
    "hipc_flow": (3, 0.51),
    "hipc_300": (3, 0.48),
    "hipc_1500": (3, 0.53),
    "segment": (5, 0.48),
    "segment_300": (4, 0.46),
    "segment_1000": (4, 0.48),
    "MNIST PCA 50": (5, 0.33),
    "mnist_1000": (1, 0.00),
    "shuttle": (26, 0.11),
    "wholesale, log (channel)": (1, 0.00),
    "olivetti PCA 50": (3, 0.04),
    "scrna, log PCA 20": (5, 1.00),
    "scrna, kl": (5, 1.00),
    "scrna, poisson": (5, 1.00),
    "classic400, kl": (1, 0.00),
    "scene15, kl": (1, 0.00),
    "citeseer SVD 50": (5, 0.13),
    "s1": (15, 0.99),
    "s2": (15, 0.94),
    "s3": (15, 0.73),
    "s4": (15, 0.63),
    "a1": (20, 0.97),
    "a3": (50, 0.97),
    "r15": (15, 0.99),
    "compound": (3, 0.74),
    "3 groups, 100 x 2, 5": (3, 0.94),
    "5 groups, 300 x 2, 5": (4, 0.74),
    "4 groups, 300 x 5, 2": (2, 0.36),
    "8 groups, 500 x 10, 2, uneven": (7, 0.99),
    "8 groups, 1000 x 2, 8, unequal": (8, 0.96),
    "10 groups, 1000 x 20, 1.5": (10, 1.00),
    "20 groups, 2000 x 16, 2, uneven": (19, 1.00),
    "15 groups, 3000 x 50, 1": (15, 1.00),
    "15 groups, 5000 x 2, 12, uneven, unequal": (14, 0.98),
    "60 groups, 5000 x 16, 2, uneven": (59, 1.00),
    "30 groups, 8000 x 3, 8": (28, 0.88),
    "30 groups, 10000 x 20, 2, unequal": (30, 0.99),
    "12 groups, 3000 x 200, 0.7": (12, 1.00),
    "grid of 100, 3000 rows": (2, 0.02),
    "grid of 100, 8000 rows": (78, 0.67),
    "4 groups and one-hot columns": (6, 0.00),
}


class Set(NamedTuple):
    """A table with classes."""

    name: str
    kind: str  # "real", "small", "generated" or "counts"
    X: Any
    truth: Any
    divergence: str = "sqeuclidean"
    options: Any = None


def _pick(X, truth, n, seed=0):
    rows = np.sort(np.random.default_rng(seed).choice(len(truth), min(n, len(truth)), replace=False))
    return X[rows], truth[rows]


def log_pca(X, truth, components=20):
    """Counts of equal depth, logarithms, principal components: what users of single cells do."""
    scores = PCA(components, random_state=0).fit_transform(np.log1p(data.equal_depth(X)))
    return np.ascontiguousarray(scores), truth


def real() -> Iterator[Set]:
    """Tables with classes; those of the shared folder if it is there."""
    for name, load in (("iris", load_iris), ("wine", load_wine), ("breast_cancer", load_breast_cancer)):
        X, y = load(return_X_y=True)
        yield Set(name, "small", scale(X), y)
    X, y = load_digits(return_X_y=True)
    yield Set("digits", "real", X / 16.0, y)
    yield Set("digits, standardised", "real", scale(X), y)
    for n in (300, 600, 1000):
        yield Set(f"digits_{n}", "small", *_pick(X / 16.0, y, n))
    yield Set("digits_1000, standardised", "small", *_pick(scale(X), y, 1000))
    yield Set("digits PCA 16", "real", PCA(16, random_state=0).fit_transform(X), y)
    if data.has("pendigits"):
        case = data.pendigits()
        yield Set("pendigits", "real", case.X, case.truth)
        for n in (300, 1000):
            yield Set(f"pendigits_{n}", "small", *_pick(case.X, case.truth, n))
    if data.has("letter"):
        case = data.letter()
        yield Set("letter", "real", case.X, case.truth)
        few = case.truth < 5
        yield Set("letter, A to E", "small", *_pick(case.X[few], case.truth[few], 1000))
        yield Set("letter_1000", "small", *_pick(case.X, case.truth, 1000))
    if data.has("hipc_flow"):
        case = data.hipc_flow()
        yield Set("hipc_flow", "real", case.X, case.truth)
        for n in (300, 1500):
            yield Set(f"hipc_{n}", "small", *_pick(case.X, case.truth, n))
    if data.has("segment"):
        case = data.segment()
        yield Set("segment", "real", scale(case.X), case.truth)
        for n in (300, 1000):
            yield Set(f"segment_{n}", "small", *_pick(scale(case.X), case.truth, n))
    if data.has("mnist_train"):
        case = data.mnist(10_000)
        yield Set("MNIST PCA 50", "real", case.X, case.truth)
        yield Set("mnist_1000", "small", *_pick(case.X, case.truth, 1000))
    if data.has("shuttle"):
        case = data.shuttle()
        yield Set("shuttle", "real", scale(case.X), case.truth)
    if data.has("wholesale"):
        found = data.arrays("wholesale")
        yield Set("wholesale, log (channel)", "small", np.log(found["X"].astype(float)), found["channel"])
    if data.has("olivetti"):
        found = data.arrays("olivetti")
        X = PCA(50, random_state=0).fit_transform(found["X"].reshape(400, -1) / 255.0) if "X" in found.files else None
        if X is not None:
            yield Set("olivetti PCA 50", "small", X, found["y"])
    if data.has("scrna_5lines"):
        counts, y = sp.load_npz(data.FOLDER / "scrna_5lines.npz").toarray().astype(float), data.scrna().truth
        yield Set("scrna, log PCA 20", "small", *log_pca(counts, y))
        case = data.scrna()
        yield Set("scrna, kl", "counts", case.X, case.truth, "kl", {"smoothing": 1.0})
        yield Set("scrna, poisson", "counts", data.equal_depth(case.X), case.truth, "poisson")
    if data.has("classic400"):
        X = sp.load_npz(data.FOLDER / "classic400.npz").astype(float).tocsr()
        yield Set("classic400, kl", "counts", X, data.arrays("classic400")["y"], "kl", {"smoothing": 1.0})
    if data.has("scene15_bow"):
        case = data.scenes()
        yield Set("scene15, kl", "counts", case.X, case.truth, "kl", {"smoothing": 1.0})
    if data.has("citeseer"):
        case = data.citeseer()
        kept = np.asarray(case.X.sum(axis=1)).ravel() > 0
        X = TruncatedSVD(50, random_state=0).fit_transform(case.X[kept])
        yield Set("citeseer SVD 50", "real", X, case.truth[kept])
    if data.has("synth2d"):
        for name in (*data.PLANE, "compound"):
            case = data.plane(name)
            yield Set(name, "generated", case.X, case.truth)


def gaussians(n, p, k, gap, seed, *, uneven=False, unequal=False):
    """Spherical groups around random centres."""
    rng = np.random.default_rng([seed, n, p, k])
    share = rng.dirichlet(np.full(k, 2.0)) if uneven else np.full(k, 1 / k)
    y = rng.choice(k, n, p=share)
    spread = np.exp(rng.uniform(-0.7, 0.7, k)) if unequal else np.ones(k)
    return (gap * rng.normal(size=(k, p)))[y] + spread[y][:, None] * rng.normal(size=(n, p)), y


def generated() -> Iterator[Set]:
    """Generated groups, far apart and touching, equal and not."""
    for n, p, k, gap, more in (
        (100, 2, 3, 5.0, {}),
        (300, 2, 5, 5.0, {}),
        (300, 5, 4, 2.0, {}),
        (500, 10, 8, 2.0, {"uneven": True}),
        (1000, 2, 8, 8.0, {"unequal": True}),
        (1000, 20, 10, 1.5, {}),
        (2000, 16, 20, 2.0, {"uneven": True}),
        (3000, 50, 15, 1.0, {}),
        (5000, 2, 15, 12.0, {"uneven": True, "unequal": True}),
        (5000, 16, 60, 2.0, {"uneven": True}),
        (8000, 3, 30, 8.0, {}),
        (10_000, 20, 30, 2.0, {"unequal": True}),
        (3000, 200, 12, 0.7, {}),
    ):
        words = ", ".join(more)
        yield Set(
            f"{k} groups, {n} x {p}, {gap:g}{', ' + words if words else ''}",
            "generated",
            *gaussians(n, p, k, gap, 1, **more),
        )
    for n in (3000, 8000):
        rng = np.random.default_rng(n)
        y = rng.integers(100, size=n)
        yield Set(
            f"grid of 100, {n} rows", "generated", np.stack([y % 10, y // 10], 1) * 4.0 + rng.normal(size=(n, 2)), y
        )
    rng = np.random.default_rng(5)
    y = rng.integers(4, size=1000)
    onehot = np.eye(6)[rng.integers(6, size=1000)]
    X = np.concatenate([4.0 * rng.normal(size=(4, 4))[y] + rng.normal(size=(1000, 4)), onehot], axis=1)
    yield Set("4 groups and one-hot columns", "generated", scale(X), y)


def sets() -> list[Set]:
    """All tables with classes."""
    return [*real(), *generated()]


def without_groups(n: int, p: int, seed: int) -> Iterator[tuple[str, Any]]:
    """Tables without groups: what is found in them is false."""
    rng = np.random.default_rng([seed, n, p])
    Z = rng.normal(size=(n, p))
    mix = rng.normal(size=(p, p))
    laws: dict[str, Callable[[], Any]] = {
        "normal": lambda: Z,
        "correlated": lambda: Z @ mix,
        "uniform": lambda: rng.uniform(size=(n, p)),
        "exponential": lambda: rng.exponential(size=(n, p)),
        "lognormal": lambda: np.exp(Z),
        "t3": lambda: rng.standard_t(3, size=(n, p)),
        "elliptical t5": lambda: Z @ mix / np.sqrt(rng.chisquare(5, size=(n, 1)) / 5),
        "Poisson": lambda: rng.poisson(3.0, size=(n, p)).astype(float),
        "rounded": lambda: np.rint(2 * Z),
        "one factor": lambda: rng.normal(size=(n, 1)) @ rng.normal(size=(1, p)) + 0.5 * Z,
        "binary, linked": lambda: (Z @ mix > 0).astype(float),
    }
    for name, make in laws.items():
        yield name, make()
