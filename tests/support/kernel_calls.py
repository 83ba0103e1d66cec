"""Real arguments of compiled kernels, taken from fits, and what can be wrong with them."""

import copy
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from kfree import (
    BPMeans,
    DPMeans,
    GibbsDPMixture,
    GibbsIBP,
    HDPMeans,
    HDPTopics,
    KernelDPMixture,
    KFeatures,
    StepwiseKFeatures,
    VariationalDPMixture,
)
from kfree.kernels import native
from support.short_fits import clouds, counts, features


def fits() -> Iterator[tuple[Any, Any, dict[str, Any]]]:
    """Fits of few rows that together call nearly every kernel."""
    X, docs, rng = clouds(300, 3, 4), counts(80, 40, 3), np.random.default_rng(0)
    tokens = sp.csr_matrix(rng.poisson(1.0, (40, 30)).astype(float) + np.eye(30)[np.arange(40) % 30])
    groups, table = {"groups": np.arange(300) % 3}, features(60, 5, 3)
    for search in ("points", "polish", "full"):
        yield DPMeans(radius=20.0, search=search), X, {}
    yield DPMeans(), X, {"sample_weight": rng.integers(1, 3, 300)}
    yield DPMeans(radius=20.0, algorithm="serial"), X, {}
    yield DPMeans(radius=20.0, algorithm="delayed"), X, {}
    for divergence, rows in (("sqeuclidean", X), ("poisson", docs), ("poisson", docs.toarray()), ("kl", docs)):
        yield DPMeans(radius=9.0, algorithm="collapsed", divergence=divergence, smoothing=0.1), rows, {}
    yield DPMeans(radius=9.0, divergence="kl", smoothing=0.1), docs, {}
    yield DPMeans(n_clusters=4), sp.csr_matrix(X), {}
    yield DPMeans(n_clusters=4), X.astype(np.float32), {}
    yield HDPMeans(8.0, 60.0), X, groups
    for search in ("anneal", "points", "paper"):
        yield HDPTopics(search=search, n_topics_init=5), tokens, {}
    yield HDPTopics(components="hard", n_topics_init=5), tokens, {}
    for algorithm in ("extended", "paper", "collapsed"):
        yield BPMeans(60.0, algorithm=algorithm, n_init=1), table, {}
    yield GibbsIBP(n_samples=3, burn_in=0, random_state=0), table, {}
    yield KFeatures(3, n_init=2), table, {}
    yield KFeatures(3, row="sweep", n_init=2), table, {}
    yield StepwiseKFeatures(2000.0, n_init=1), table, {}
    for family in ("gaussian", "diag", "spherical", "multinomial"):
        rows = docs if family == "multinomial" else X
        for accelerate in (None, "tree"):
            yield VariationalDPMixture(family=family, accelerate=accelerate), rows, {}
    yield KernelDPMixture(random_state=0), X, {}
    bits = (docs.toarray() > 0).astype(float)
    tables = {"multinomial": docs, "poisson": docs, "bernoulli": bits, "gamma": bits + 0.5}
    for family in ("gaussian", "diag", "spherical", "known", *tables):
        yield GibbsDPMixture(family=family, n_samples=3, burn_in=0, init="one"), tables.get(family, X), {}
    yield GibbsDPMixture(collapsed=False, n_samples=3, burn_in=0, init="one"), X, {}


def recorded_calls() -> dict[str, tuple[Any, ...]]:
    """For each kernel that the fits call, the arguments of one call as they were before it."""
    calls: dict[str, tuple[Any, ...]] = {}

    def watched(name: str, kernel: Any) -> Any:
        def call(*arguments: Any) -> Any:
            if name not in calls:
                calls[name] = copy.deepcopy(arguments)
            return kernel(*arguments)

        return call

    own = {name: getattr(native, name) for name in native.__all__}
    for name, kernel in own.items():
        setattr(native, name, watched(name, kernel))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for model, X, more in fits():
                try:
                    model.fit(X, **more)
                except (TypeError, ValueError) as error:
                    print("not fitted:", model, error, file=sys.stderr)
    finally:
        for name, kernel in own.items():
            setattr(native, name, kernel)
    return calls


def spoilt(value: Any, place: bool = False) -> Iterator[tuple[str, Any]]:
    """A value, made wrong in one way or another; ``place`` if it says where something is, and not how often."""
    if isinstance(value, tuple):
        yield "a shorter tuple", value[:-1]
        yield "a list", list(value)
        for i, item in enumerate(value):
            for how, wrong in spoilt(item):
                yield f"item {i}: {how}", (*value[:i], wrong, *value[i + 1 :])
    elif isinstance(value, np.ndarray):
        yield from _spoilt_array(value)
    else:
        yield "no number", "text"
        yield "none", None
        yield "too large", 2**70
        if place:
            yield "huge", 2**62
        yield "negative", -(2**62)
        yield "not a number", np.nan
        yield "an array", np.zeros(3)


def _spoilt_array(value: np.ndarray) -> Iterator[tuple[str, Any]]:
    yield "none", None
    yield "a list", value.tolist()
    yield "a scalar", 1.0
    yield "empty", np.empty((0,) * value.ndim, value.dtype)
    yield "one axis empty", np.empty((*value.shape[:-1], 0), value.dtype)
    yield "another axis", value[None].copy()
    yield "no axis", np.array(1.0)
    yield "strided", np.repeat(value, 2, axis=-1)[..., ::2]
    yield "backwards", value[::-1].copy()[::-1]
    yield "repeated", np.broadcast_to(value[:1], (2**40, *value.shape[1:])) if value.size else value
    yield "Fortran order", np.asfortranarray(np.vstack([value, value]).T) if value.ndim == 2 else None
    yield "longer", np.concatenate([value, value[-1:], value[-1:]])
    yield "shorter", value[: len(value) // 2].copy()
    yield "wider", np.concatenate([value, value[..., -1:]], axis=-1)
    for dtype in ("f2", "f4", "f8", "i1", "i4", "i8", "u1", "u8", "?", ">f8", "c16", "O", "S3"):
        if value.dtype != np.dtype(dtype):
            with np.errstate(all="ignore"):
                yield f"of type {dtype}", value.astype(dtype) if dtype != "S3" else np.zeros(value.shape, "S3")
    unaligned = np.empty(value.nbytes + 1, np.uint8)[1:].view(value.dtype).reshape(value.shape)
    unaligned[...] = value
    yield "unaligned", unaligned
    fixed = value.copy()
    fixed.flags.writeable = False
    yield "read-only", fixed
