"""Real data from the shared folder beside the repository (``KFREE_DATA`` names another place)."""

import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from benchmarks.workloads import Case

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(os.environ.get("KFREE_DATA", ROOT.parent / "shared" / "data"))
PLANE = ("s1", "s2", "s3", "s4", "a1", "a3", "r15")


def has(*files):
    """Whether the shared data are there."""
    return all((FOLDER / f"{name}.npz").exists() for name in files)


def arrays(name):
    """The arrays of a file."""
    return np.load(FOLDER / f"{name}.npz", allow_pickle=False)


def _some_rows(X, truth, n, seed=0):
    chosen = np.sort(np.random.default_rng(seed).choice(X.shape[0], min(n, X.shape[0]), replace=False))
    return X[chosen], truth[chosen]


def _classes(truth):
    return int(np.unique(truth).size)


def plane(name):
    """A two-dimensional benchmark set: s1 to s4, a1, a3, r15."""
    found = arrays("synth2d")
    truth = found[f"{name}_y"]
    return Case(name, found[f"{name}_X"].astype(float), truth, _classes(truth))


def pendigits():
    """Pen strokes of digits, divided by 25."""
    found = arrays("pendigits")
    return Case("pendigits", found["X"] / 25.0, found["y"], 10)


def letter():
    """Letter recognition, columns standardised."""
    found = arrays("letter")
    X = found["X"].astype(float)
    return Case("letter", (X - X.mean(axis=0)) / X.std(axis=0), found["y"], 26)


def hipc_flow():
    """Flow cytometry, arcsinh(x / 150)."""
    found = arrays("hipc_flow")
    return Case("hipc_flow", np.arcsinh(found["X"].astype(float) / 150.0), found["y"], _classes(found["y"]))


def faithful():
    """Eruptions of a geyser and the waits before them; no classes."""
    X = arrays("faithful")["X"].astype(float)
    return Case("faithful", X, np.zeros(X.shape[0], int), 1)


def segment():
    """Image segmentation, seven classes."""
    found = arrays("segment")
    return Case("segment", found["X"].astype(float), found["y"], 7)


def mnist(rows=20_000):
    """MNIST digits: rows at random, pixels / 255, the first 50 principal components."""
    found = arrays("mnist_train")
    X, truth = _some_rows(found["X"].reshape(60_000, -1), found["y"], rows)
    scores = PCA(50, random_state=0).fit_transform(X / 255.0)
    return Case(f"MNIST {rows // 1000}k PCA 50", np.ascontiguousarray(scores), truth, 10)


def skin(rows=100_000):
    """Skin and other pixels, blue green red; two classes, but lam is taken for 20 clusters."""
    found = arrays("skin")
    X, truth = _some_rows(found["X"].astype(float), found["y"], rows)
    return Case("skin 100k (lam for 20)", X, truth, 20)


def shuttle():
    """Sensors of a space shuttle, seven classes of very unequal size."""
    found = arrays("shuttle")
    return Case("shuttle", found["X"].astype(float), found["y"], _classes(found["y"]))


def mnist_images(rows):
    """The images that ``mnist`` projects, (rows, 784) in [0, 1]."""
    found = arrays("mnist_train")
    return _some_rows(found["X"].reshape(60_000, -1), found["y"], rows)[0] / 255.0


def citeseer():
    """Words of scientific papers, 0/1, CSR."""
    X = sp.load_npz(FOLDER / "citeseer.npz").astype(float).tocsr()
    return Case("citeseer", X, arrays("citeseer")["y"], 6)


def digits():
    """The 8 x 8 digits of scikit-learn, divided by 16."""
    X, truth = load_digits(return_X_y=True)
    return Case("digits", X / 16.0, truth, 10)


def scrna(genes=500):
    """Single cells of five lines: counts of the genes that vary most (variance of the log of the normalised ones)."""
    X, truth = sp.load_npz(FOLDER / "scrna_5lines.npz").astype(float).toarray(), arrays("scrna_5lines")["y"]
    spread = np.log1p(equal_depth(X)).var(axis=0)
    chosen = np.sort(np.argsort(-spread, kind="stable")[:genes])
    return Case("scrna_5lines", np.ascontiguousarray(X[:, chosen]), truth, 5)


def equal_depth(X):
    """Rows scaled to the median total."""
    total = X.sum(axis=1, keepdims=True)
    return X / total * np.median(total)


def scenes():
    """Visual words of 1500 images of 15 kinds of scene, CSR counts."""
    X = sp.load_npz(FOLDER / "scene15_bow.npz").astype(float).tocsr()
    X.sort_indices()
    return Case("scene15_bow", X, arrays("scene15_bow")["y"], 15)


def kos():
    """Words of blog entries, CSR counts."""
    return sp.load_npz(FOLDER / "kos.npz").astype(float).tocsr()
