"""A short fit of every estimator, large enough for threads to share the work, and what came of it."""

import hashlib
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from kfree import (
    BPMeans,
    DPMeans,
    HDPMeans,
    HDPTopics,
    KernelDPMixture,
    KFeatures,
    StepwiseKFeatures,
    VariationalDPMixture,
)


class ShortFit(NamedTuple):
    """What to fit."""

    estimator: Any
    X: Any
    groups: Any = None

    def run(self, **parameters: Any) -> Any:
        """A fresh fitted estimator."""
        model = type(self.estimator)(**{**self.estimator.get_params(), **parameters})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(self.X) if self.groups is None else model.fit(self.X, groups=self.groups)

    def result(self) -> str:
        """What a fit comes to, bit for bit."""
        return digest(self.run())


def check(model: Any, fit: ShortFit) -> None:
    """A model must fit together."""
    if hasattr(model, "Z_"):
        left = ((fit.X - model.inverse_transform(model.Z_)) ** 2).sum()
        assert_allclose(model.inertia_, left, rtol=1e-7, atol=1e-7)
    elif hasattr(model, "doc_topic_"):
        assert_allclose(model.transform(fit.X).sum(axis=1), 1.0)
        assert model.objective_ == model.objective_trace_[-1]
    else:
        groups = {} if fit.groups is None else {"groups": fit.groups}
        assert_array_equal(model.labels_, model.predict(fit.X, **groups))
    trace = getattr(model, "objective_trace_", None)
    if trace is not None:
        assert np.isfinite(trace).all()
        assert (np.diff(trace) <= 1e-9 * (np.abs(trace[:-1]) + 1.0)).all()


def digest(model: Any) -> str:
    """A hash of all that a fit has found, in numbers."""
    found = hashlib.sha256()
    for name in sorted(name for name in vars(model) if name.endswith("_")):
        value = getattr(model, name)
        value = value.toarray() if sp.issparse(value) else value
        if isinstance(value, np.ndarray | float | int):
            found.update(f"{name} {np.shape(value)}".encode() + np.ascontiguousarray(value).tobytes())
    return found.hexdigest()


def clouds(n, p, k, gap=3.0):
    rng = np.random.default_rng([n, p, k])
    return (gap * rng.normal(size=(k, p)))[rng.integers(k, size=n)] + rng.normal(size=(n, p))


def counts(n, p, k):
    rng = np.random.default_rng([n, p, k])
    kinds = rng.dirichlet(np.full(p, 0.1), k)
    return sp.csr_matrix(rng.poisson(30 * kinds[rng.integers(k, size=n)]) + np.eye(p)[np.arange(n) % p])


def features(n, p, k):
    rng = np.random.default_rng([n, p, k])
    return rng.integers(2, size=(n, k)) @ (3 * rng.normal(size=(k, p))) + 0.5 * rng.normal(size=(n, p))


FITS = {
    "auto": ShortFit(DPMeans(), clouds(1000, 2, 3, 6.0)),
    "radius": ShortFit(DPMeans(radius=60.0), clouds(50_000, 5, 8)),
    "lam": ShortFit(DPMeans(lam=5000.0), clouds(12_000, 5, 8)),
    "number": ShortFit(DPMeans(n_clusters=8), clouds(1000, 2, 8)),
    "kl": ShortFit(DPMeans(radius=5.0, divergence="kl", smoothing=0.1), counts(600, 80, 4)),
    "shared": ShortFit(HDPMeans(8.0, 60.0, random_state=0), clouds(5000, 3, 8), np.arange(5000) % 7),
    "topics": ShortFit(HDPTopics(n_topics_init=15), counts(300, 200, 4)),
    "price": ShortFit(BPMeans(100.0, n_init=1), features(150, 6, 3)),
    "features": ShortFit(KFeatures(3, n_init=2, n_jobs=2), features(800, 10, 3)),
    "stepwise": ShortFit(StepwiseKFeatures(2000.0, n_init=1), features(100, 5, 2)),
    "mixture": ShortFit(VariationalDPMixture(accelerate=None), clouds(3000, 3, 3)),
    "kernel": ShortFit(KernelDPMixture(random_state=0), clouds(3000, 3, 3)),
    "tree": ShortFit(VariationalDPMixture(accelerate="tree"), clouds(12_000, 3, 3)),
}


def results(names: Iterable[str] = FITS) -> dict[str, str]:
    """What some fits come to."""
    return {name: FITS[name].result() for name in names}
