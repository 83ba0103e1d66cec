"""A small fit of every estimator, in every family and way of fitting, whose model holds every kind of record."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

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
    Mahalanobis,
    NegativeBinomial,
    StepwiseKFeatures,
    TablePreparer,
    VariationalDPMixture,
)

_RNG = np.random.default_rng(7)
CLOUDS = np.concatenate([_RNG.normal(mean, 1, size=(15, 3)) for mean in (-6, 0, 6)])
COUNTS = np.concatenate([_RNG.poisson(np.roll([9, 1, 0.5], i) + 0.1, size=(15, 3)) for i in range(3)]).astype(float)
COUNTS[:, 0] += COUNTS.sum(axis=1) == 0
BITS = (COUNTS > 3).astype(float)
GROUPS = list("abc") * 15
TABLE = np.array(
    [
        [f"row {i}", x, group, None if i % 5 else y, str(np.datetime64(i, "D"))]
        for i, ((x, y, _), group) in enumerate(zip(CLOUDS, GROUPS))
    ],
    dtype=object,
)
_CHAINS = {"n_samples": 6, "burn_in": 3, "random_state": 0, "warm_start": True}


class Saved(NamedTuple):
    """What is fitted."""

    model: Any
    X: Any
    fit: str = "fit"
    groups: Any = None

    def fitted(self) -> Any:
        """A fresh fitted model."""
        model = type(self.model)(**self.model.get_params())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if self.groups is None:
                return getattr(model, self.fit)(self.X)
            return model.fit(self.X, groups=self.groups)


def _clusters() -> dict[str, Saved]:
    rows = {
        "sqeuclidean": CLOUDS,
        "mahalanobis": CLOUDS,
        "cosine": CLOUDS,
        "kl": COUNTS,
        "poisson": COUNTS,
        "bernoulli": BITS,
        "binomial": COUNTS,
        "itakura_saito": COUNTS + 0.1,
        "negative_binomial": COUNTS,
    }
    found = {}
    for name, X in rows.items():
        prior = {} if name == "cosine" else {"smoothing": 0.1}
        found[f"clusters {name}"] = Saved(DPMeans(divergence=name, n_clusters=3, **prior), X)
        found[f"shared {name}"] = Saved(HDPMeans(2.0, 20.0, divergence=name, **prior), X, groups=GROUPS)
    return found


def _mixtures() -> dict[str, Saved]:
    counts = {"multinomial": COUNTS, "poisson": COUNTS, "bernoulli": BITS, "gamma": COUNTS + 0.1}
    found = {}
    for name in ("gaussian", "diag", "spherical", "multinomial", "poisson", "bernoulli", "known", "gamma"):
        X = counts.get(name, CLOUDS)
        if name not in ("known", "gamma"):
            found[f"variational {name}"] = Saved(VariationalDPMixture(family=name, random_state=0), X)
        found[f"sampled {name}"] = Saved(GibbsDPMixture(family=name, **_CHAINS), X)
    for name in ("gaussian", "diag", "poisson"):
        model = GibbsDPMixture(family=name, collapsed=False, **_CHAINS)
        found[f"sampled parameters {name}"] = Saved(model, counts.get(name, CLOUDS))
    for shape in ("full", "diag", "spherical"):
        found[f"kernel {shape}"] = Saved(KernelDPMixture(covariance=shape, random_state=0), CLOUDS)
    for name in ("multinomial", "bernoulli"):
        found[f"kernel {name}"] = Saved(KernelDPMixture(family=name, random_state=0), counts[name])
        found[f"kernel {name} batch"] = Saved(
            KernelDPMixture(family=name, random_state=0), sp.csr_matrix(counts[name]), "partial_fit"
        )
    return found


SAVED: dict[str, Saved] = {
    **_clusters(),
    "auto": Saved(DPMeans(), CLOUDS),
    "float32": Saved(DPMeans(radius=30.0), CLOUDS.astype(np.float32)),
    "stream": Saved(DPMeans(radius=30.0), CLOUDS, "partial_fit"),
    "sparse clusters": Saved(DPMeans(n_clusters=2, divergence="poisson", smoothing=0.1), sp.csr_matrix(COUNTS)),
    "own settings": Saved(DPMeans(n_clusters=2, divergence=NegativeBinomial(r=2.5), smoothing=0.1), COUNTS),
    "own covariance": Saved(DPMeans(n_clusters=2, divergence=Mahalanobis([[2.0, 0, 0], [0, 1, 0], [0, 0, 1]])), CLOUDS),
    "first centres": Saved(
        DPMeans(radius=30.0, init=CLOUDS[:2], order=np.arange(45)[::-1], algorithm="serial"), CLOUDS
    ),
    "without groups": Saved(HDPMeans(2.0, 20.0), CLOUDS),
    "groups of numbers": Saved(HDPMeans(2.0, 20.0), CLOUDS, groups=np.arange(45) % 4),
    "groups of several kinds": Saved(HDPMeans(2.0, 20.0), CLOUDS, groups=[1, "b", (2, "c")] * 15),
    "groups of odd names": Saved(HDPMeans(2.0, 20.0), CLOUDS, groups=["\ud800\udd4d", "a\0", "</script>"] * 15),
    "groups of days": Saved(
        HDPMeans(2.0, 20.0), CLOUDS, groups=np.arange(45).astype("datetime64[D]") - np.arange(45) % 40
    ),
    "topics": Saved(HDPTopics(), sp.csr_matrix(COUNTS)),
    "topics paper": Saved(HDPTopics(search="paper", mix=0.0), COUNTS),
    "features": Saved(BPMeans(n_init=1), CLOUDS),
    "features intercept": Saved(BPMeans(200.0, base="intercept", n_init=1), CLOUDS.astype(np.float32)),
    "given features": Saved(BPMeans(200.0, init=(BITS.astype(int), np.eye(3)), n_init=1), CLOUDS),
    "fixed features": Saved(KFeatures(2, n_init=1), CLOUDS),
    "grown features": Saved(StepwiseKFeatures(n_init=1), CLOUDS),
    "sampled features": Saved(GibbsIBP(**_CHAINS), CLOUDS),
    "tree": Saved(VariationalDPMixture(accelerate="tree", random_state=0), CLOUDS),
    "fixed prior": Saved(VariationalDPMixture(prior={"mean_precision": 0.1}, random_state=0), CLOUDS),
    "large counts": Saved(VariationalDPMixture(family="poisson", random_state=0), COUNTS * 1e9),
    "large rows of counts": Saved(VariationalDPMixture(family="multinomial", random_state=0), COUNTS * 1e9),
    "kernel batch": Saved(KernelDPMixture(random_state=0), CLOUDS, "partial_fit"),
    "kernel candidates": Saved(KernelDPMixture(candidates=CLOUDS[::9], bandwidth=[1.0, 2.0], random_state=0), CLOUDS),
    **_mixtures(),
    "table": Saved(TablePreparer(kinds={4: "date"}), TABLE),
}

#: What fitted models can be asked, by the method that it takes.
QUESTIONS: dict[str, Callable[[Any, Saved], Any]] = {
    **{
        name: lambda model, case, name=name: getattr(model, name)(case.X)
        for name in ("transform", "predict_proba", "score_samples", "decision_function", "score", "mmd2")
    },
    "predict": lambda model, case: model.predict(case.X, **({} if case.groups is None else {"groups": case.groups})),
    "sample": lambda model, case: model.sample(5),
    "inverse_transform": lambda model, case: model.inverse_transform(
        model.Z_ if hasattr(model, "Z_") else model.transform(case.X)
    ),
    "top_words": lambda model, case: model.top_words(3),
    "coherence": lambda model, case: model.coherence(2),
    "coclustering": lambda model, case: model.coclustering([0, 1, 20]),
    "mmd_test": lambda model, case: model.mmd_test(case.X, 20).statistic,
    "explain": lambda model, case: model.explain(),
    "__repr__": lambda model, case: repr(model),
}


def answers(model: Any, case: Saved) -> dict[str, Any]:
    """All that a model says of its rows."""
    return {name: ask(model, case) for name, ask in QUESTIONS.items() if hasattr(model, name)}


def differences(a: Any, b: Any, where: str = "model") -> list[str]:
    """Where two values, models among them, differ in type or in any bit."""
    if type(a) is not type(b):
        return [f"{where}: {type(a).__name__} and {type(b).__name__}"]
    if isinstance(a, np.ndarray) and a.dtype != object:
        alike = a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        return [] if alike and b.flags.writeable else [where]
    if sp.issparse(a):
        return [] if a.shape == b.shape and not differences(vars(a.tocoo()), vars(b.tocoo())) else [where]
    if isinstance(a, np.random.Generator):
        return differences(a.bit_generator.state, b.bit_generator.state, where)
    if isinstance(a, dict):
        gone = [f"{where}: {key!r} is in one only" for key in a.keys() ^ b.keys() if key not in _MADE_WHEN_ASKED]
        return gone + [line for key in a.keys() & b.keys() for line in differences(a[key], b[key], f"{where}.{key}")]
    if isinstance(a, list | tuple | np.ndarray):
        gone = [] if len(a) == len(b) else [f"{where}: {len(a)} and {len(b)} items"]
        return gone + [line for i, pair in enumerate(zip(a, b)) for line in differences(*pair, f"{where}[{i}]")]
    if isinstance(a, float | np.generic):
        return [] if np.asarray(a).tobytes() == np.asarray(b).tobytes() else [f"{where}: {a!r} and {b!r}"]
    if hasattr(a, "__dict__"):
        return differences(vars(a), vars(b), where)
    return [] if a == b else [f"{where}: {a!r} and {b!r}"]


#: Cached properties, which are not saved.
_MADE_WHEN_ASKED = {"_origin", "_root", "_whitener", "coclustering_"}
