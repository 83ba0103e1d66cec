"""Data on which KernelDPMixture is measured."""

import numpy as np
from scipy.special import logsumexp
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from benchmarks import data


def six_gaussians(D, seed, n=1500, held_out=5000):
    """Rows of six unit Gaussians of different weight, held-out rows, and the log of the true density."""
    rng = np.random.default_rng(seed)
    means, weights = 4 * rng.normal(size=(6, D)), rng.dirichlet(np.full(6, 5.0))

    def draw(count):
        return means[rng.choice(6, size=count, p=weights)] + rng.normal(size=(count, D))

    def log_density(X):
        squares = ((X[:, None] - means) ** 2).sum(axis=2)
        return logsumexp(-0.5 * squares + np.log(weights), axis=1) - 0.5 * D * np.log(2 * np.pi)

    return draw(n), draw(held_out), log_density


def real_sets(quick):
    """Name and rows of real tables; columns of different units standardised."""
    for name in ("faithful", "hipc_flow", "segment", "digits"):
        if name != "digits" and not data.has(name):
            continue
        X = np.asarray(getattr(data, name)().X, float)
        if name == "digits":
            X = PCA(8, random_state=0).fit_transform(X)
        elif name != "hipc_flow":
            X = StandardScaler().fit_transform(X)
        order = np.random.default_rng(0).permutation(X.shape[0])[: 400 if quick else 20_000]
        yield name, X[order]
