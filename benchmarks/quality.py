"""A quality panel for DP-means: a few seconds of fits that say whether a constant, or a part, brings anything.

Clusters that overlap, are of unequal size, have heavy tails or outliers, hide inside what a radius covers, are counts,
or are real; every set in several draws. No time is measured.
"""

import sys
import warnings
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks import data
from benchmarks.measure import nmi
from benchmarks.workloads import counts, dense_counts, gauss, heavy_tails, lambda_for, unequal, with_outliers
from kfree import DPMeans, radius_for_k

#: Draws of each set: seeds of the generated ones, units of the real ones (samples depend on the content of rows); of
#: those that take long fewer.
DRAWS, FEW_DRAWS = 4, 2


class Fit(NamedTuple):
    """A fit of the panel before it is made."""

    name: str  # of the set
    X: np.ndarray | sp.csr_matrix
    truth: np.ndarray
    settings: dict


class Score(NamedTuple):
    """What came of it."""

    labels: np.ndarray
    nmi: float
    objective: float


def covered(n, *, p=16, k=30, distance=8.0, seed=0):
    """Groups far apart that a radius covers all: nothing but a search for gaps tells them apart."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(k, p))
    squares = ((means[:, None] - means) ** 2).sum(axis=2)
    means *= distance / np.sqrt(squares[np.triu_indices(k, 1)].min())
    truth = rng.integers(k, size=n)
    return means[truth] + rng.normal(size=(n, p)), truth


def generated(seed):
    """The generated sets of one draw."""
    for name, make, *size in (
        ("separation 1.0", gauss, 20_000, 16, 30, 1.0),
        ("separation 0.7", gauss, 20_000, 16, 30, 0.7),
        ("sizes 1:100", unequal, 20_000, 16, 30, 2.0),
        ("t3 noise", heavy_tails, 20_000, 16, 30, 2.0),
        ("1 % outliers", with_outliers, 20_000, 16, 30, 2.0),
        ("short, overlap", gauss, 3000, 8, 20, 1.2),
        ("short, outliers", with_outliers, 3000, 8, 20, 2.0),
    ):
        X, truth = make(*size, seed=seed)
        yield Fit(name, X, truth, {"radius": lambda_for(X, size[2])})
    for name, n in (("covered", 6000), ("short, covered", 3000)):
        X, truth = covered(n, seed=seed)
        yield Fit(name, X, truth, {"radius": 1.2 * ((X - X.mean(axis=0)) ** 2).sum(axis=1).max()})
    for name, X, truth in (
        ("dense counts, kl", *dense_counts(8000, 60, 20, length=80, seed=seed)),
        ("sparse counts, kl", *counts(6000, 500, 20, 40, seed=seed)),
    ):
        settings = {"divergence": "kl", "smoothing": 1.0}
        yield Fit(name, X, truth, {"radius": radius_for_k(X, 20, **settings), **settings})


def real(draw):
    """The real sets, in other units for every draw."""
    sets = [("pendigits", data.pendigits), ("hipc_flow", data.hipc_flow), ("letter", data.letter)]
    for name, load in sets if draw < FEW_DRAWS else sets[:1]:
        if data.has(name):
            case, unit = load(), 1 + 0.01 * draw
            yield Fit(name, case.X * unit, case.truth, {"radius": lambda_for(case.X, case.k) * unit**2})


def panel(draws=DRAWS):
    """All fits of the panel."""
    return [fit for draw in range(draws) for fit in (*generated(draw), *real(draw))]


def score(fit):
    """Make one fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DPMeans(**fit.settings).fit(fit.X)
    return Score(model.labels_, nmi(fit.truth, model.labels_), model.objective_)


@contextmanager
def replaced(name, value):
    """Another value of a name, in every module of the library that reads it: a record of constants, a function."""
    held = [module for key, module in list(sys.modules.items()) if key.startswith("kfree.") and hasattr(module, name)]
    before = [getattr(module, name) for module in held]
    try:
        for module in held:
            setattr(module, name, value)
        yield
    finally:
        for module, old in zip(held, before):
            setattr(module, name, old)
