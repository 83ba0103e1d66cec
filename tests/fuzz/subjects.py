"""What is fitted: every public estimator and function, with parameters drawn up to their ends."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import kfree
from fuzz.case import Case
from fuzz.tables import DTYPES, ENDS, KINDS, LAYOUTS, TAME, TIED, draw_values, draw_weight

DIVERGENCES = (
    "sqeuclidean",
    "mahalanobis",
    "kl",
    "poisson",
    "bernoulli",
    "binomial",
    "itakura_saito",
    "negative_binomial",
    "cosine",
)
COUNTS = ("kl", "poisson", "binomial", "negative_binomial")
#: What nobody should pass, as any parameter.
NONSENSE = ("nonsense", -1, float("nan"), None, [], [[1.0]], True, 0, float("inf"), 2.5, "auto")


class Subject(NamedTuple):
    """A public name that is tried."""

    name: str
    share: float  # of all inputs
    draw: Callable[[np.random.Generator, np.ndarray], dict[str, Any]]  # parameters for a table
    asks: tuple[str, ...]  # methods that a fitted model is asked by
    relations: tuple[str, ...]  # second fits that must give the same
    most_rows: int = 300
    most_columns: int = 30

    @property
    def target(self) -> Any:
        """The class or function."""
        return getattr(kfree, self.name)

    @property
    def weighs(self) -> bool:
        """Whether rows may have weights."""
        call = self.target.fit if isinstance(self.target, type) else self.target
        return "sample_weight" in inspect.signature(call).parameters


def choose(rng, *options):
    """One of some values, as Python knows them."""
    return options[int(rng.integers(len(options)))]


def price(rng, X):
    """A lam: chosen from the data, a share of their spread, of any size, or at an end."""
    with np.errstate(all="ignore"):
        spread = float(np.nan_to_num(((X - X.mean(axis=0)) ** 2).sum(), nan=1.0, posinf=1e300))
    pick = rng.integers(6)
    if pick < 2:
        return "auto"
    if pick < 4:
        return max(float(spread * 10.0 ** rng.uniform(-3, 0.3)), 1e-320)
    return float(10.0 ** rng.uniform(-6, 6)) if pick == 4 else choose(rng, 5e-324, 1e-300, 1e-20, 1e20, 1e300)


def radius(rng, X):
    """A radius: a share of the spread of the rows, of any size, or at an end."""
    found = "auto"
    while isinstance(found, str):
        found = price(rng, X)
    return found


def how_many(rng, X):
    """What says how many clusters there are: a price, a radius or a number."""
    ask = choose(rng, "lam", "lam", "lam", "radius", "radius", "n_clusters")
    if ask == "lam":
        return {"lam": price(rng, X) if rng.random() < 0.98 else float("inf")}
    if ask == "radius":
        return {"radius": radius(rng, X) if rng.random() < 0.98 else float("inf")}
    n, distinct = len(X), len(np.unique(X, axis=0))
    return {"n_clusters": choose(rng, 1, 2, 3, 5, 10, max(n // 3, 1), max(distinct - 1, 1), distinct, n, n + 1)}


def limits(rng, most):
    """Clocks and counts; ``most`` seconds in general."""
    return {
        "max_time": choose(rng, most, most, most, most, most, most, most, 0, 0.001, 0.02),
        "max_iter": choose(rng, 300, 300, 300, 300, 1, 2),
        "random_state": int(rng.integers(3)),
    }


def divergence_for(rng, X):
    """A divergence whose domain the table lies in, most of the time."""
    with np.errstate(all="ignore"):
        fits = ["sqeuclidean", "mahalanobis", "cosine"]
        if np.nanmin(X) >= 0:
            fits += COUNTS + (("itakura_saito",) if np.nanmin(X) > 0 else ())
            fits += ["bernoulli"] if np.nanmax(X) <= 1 else []
    return choose(rng, *DIVERGENCES) if rng.random() < 0.1 else choose(rng, *fits)


def _hard(rng, X):
    """What DPMeans and HDPMeans share."""
    divergence = divergence_for(rng, X)
    smoothing = choose(rng, 0.0, 0.0, 0.0, 0.1, 2.0, 1e-300, 1e-9, 1e9, 1e300)
    return {
        "divergence": divergence,
        "smoothing": 0.0 if divergence == "cosine" and rng.random() < 0.9 else smoothing,
        "smoothing_mean": None if rng.random() < 0.9 else X[0].clip(-1e280, 1e280) * choose(rng, 1.0, 1.0, 1e20),
        "weighting": choose(rng, "none", "length", "relative") if divergence == "kl" else "none",
        "init": choose(rng, "auto", "auto", "auto", "mean", "farthest_first", "k-means++"),
        "order": choose(rng, "random", "index"),
        "n_init": choose(rng, 1, 1, 2),
        "max_clusters": choose(rng, None, None, None, 1, 2, 5),
        "tol": choose(rng, 1e-4, 0.0, 0.0, 1.0),
        **limits(rng, 10),
    }


def _dp_means(rng, X):
    return {
        **how_many(rng, X),
        "algorithm": choose(rng, "batch", "batch", "batch", "serial", "delayed", "collapsed"),
        "search": choose(rng, "auto", "auto", "points", "polish", "full"),
        **_hard(rng, X),
    }


def _hdp_means(rng, X):
    search = choose(rng, "auto", "points", "full")
    return {"lam_local": price(rng, X), "lam_global": price(rng, X), "search": search, **_hard(rng, X)}


def _hdp_topics(rng, X):
    mix = choose(rng, 1.0, 1.0, 0.0, 0.5)
    search = choose(rng, "anneal", "paper") if mix == 0 else "anneal"
    return {
        "lam_local": choose(rng, "auto", "auto", 0.0, 1.0, 1e-300, 1e300),
        "lam_global": choose(rng, "auto", "auto", 0.0, 10.0, 1e-300, 1e300),
        "mix": mix,
        "search": search,
        "n_topics": None if search == "paper" else choose(rng, None, None, 1, 2, 5),
        "n_topics_init": choose(rng, "auto", "auto", 1, 4, 50),
        "components": choose(rng, "soft", "hard"),
        "refine": choose(rng, None, "collapsed"),
        "smoothing": choose(rng, "auto", "auto", 1e-300, 0.1, 1e9, 1e300),
        "tol": choose(rng, 1e-3, 0.0, 1.0),
        **limits(rng, 10),
    }


def _features(rng, most=1.0):
    return {
        "row": choose(rng, "exact", "exact", "coordinate"),
        "base": choose(rng, "auto", "intercept", True, False),
        "n_init": choose(rng, 1, 2, 3),
        **limits(rng, most),
    }


def _bp_means(rng, X):
    return {
        "lam": price(rng, X),
        "algorithm": choose(rng, "extended", "paper", "collapsed"),
        "init": choose(rng, "auto", "auto", "empty"),
        "shuffle": choose(rng, False, True),
        **_features(rng),
    }


def _k_features(rng, X):
    count = choose(rng, 1, 2, 3, 5, 8, 14)
    return {"n_components": count, "algorithm": choose(rng, "extended", "paper"), **_features(rng)}


def _stepwise(rng, X):
    return {
        "lam": price(rng, X),
        "max_components": choose(rng, None, None, 1, 3),
        "patience": choose(rng, 1, 2),
        "algorithm": choose(rng, "extended", "paper"),
        **_features(rng),
    }


def _some_of_the_prior(rng, family):
    """Some hyperparameters, held."""
    if family in ("gaussian", "diag", "spherical"):
        given = {"mean_precision": 10.0 ** rng.integers(-20, 8), "degrees_of_freedom": 100.0, "sd": 1.0}
    elif family == "known":
        given = {"mean_precision": 10.0 ** rng.integers(-6, 4), "sd": 10.0 ** rng.integers(-3, 3)}
    elif family == "gamma":
        given = {"mean_precision": 10.0 ** rng.integers(-3, 3), "shape": 3.0}
    elif family == "poisson":
        given = {"shape": 1.0, "rate": 10.0 ** rng.integers(-6, 6)}
    else:
        given = {"counts": 10.0 ** rng.integers(-6, 6)} if family == "multinomial" else {"ones": 2.0, "zeros": 0.1}
    return {name: float(value) for name, value in given.items() if rng.random() < 0.5}


def _family(rng, X, *more):
    """A family that the table may be of, most of the time; ``more`` are for any numbers."""
    with np.errstate(all="ignore"):
        whole = np.nanmin(X) >= 0 and (np.floor(X) == X).all()
    fits = ["gaussian", "diag", "spherical", *more] + (["multinomial", "poisson"] if whole else [])
    fits += ["bernoulli"] if np.isin(X, (0, 1)).all() else []
    families = ("gaussian", "diag", "spherical", "multinomial", "poisson", "bernoulli", *more)
    return choose(rng, *families) if rng.random() < 0.1 else choose(rng, *fits)


def _mixture(rng, X):
    family = _family(rng, X)
    return {
        "family": family,
        "accelerate": choose(rng, "auto", None, "tree", "kdtree"),
        "concentration": choose(rng, 1.0, 1.0, 1e-9, 1e-300, 30.0, 1e6, [0.5, 2.0]),
        "prior": choose(rng, "learn", "learn", "fixed", _some_of_the_prior(rng, family)),
        "max_components": choose(rng, None, None, 1, 3),
        "n_candidates": choose(rng, 10, 1),
        "n_failed": choose(rng, 1, 3),
        "tol": choose(rng, 1e-5, 1e-5, 0.0, "relative"),
        "expand": choose(rng, "gain", "q"),
        "final": choose(rng, "labels", "refine", "polish"),
        "max_nodes": choose(rng, None, None, 1, 7),
        **limits(rng, 10),
    }


def _kernel_mixture(rng, X):
    with np.errstate(all="ignore"):
        whole = np.nanmin(X) >= 0 and (np.floor(X) == X).all()
    fits = ["gaussian", "gaussian"] + (["multinomial"] if whole else [])
    fits += ["bernoulli"] if np.isin(X, (0, 1)).all() else []
    family = choose(rng, "gaussian", "multinomial", "bernoulli") if rng.random() < 0.1 else choose(rng, *fits)
    given = choose(rng, "local", "prior", X[:3].clip(-1e280, 1e280), np.repeat(X[:1], 3, axis=0))
    wide = choose(rng, 1.0, [0.5, 2.0], 1e-300, 1e300) if rng.random() < 0.2 else choose(rng, "local", "median")
    return {
        "family": family,
        "covariance": choose(rng, "full", "full", "diag", "spherical"),
        "candidates": "clusters" if rng.random() < 0.6 else given,
        "n_candidates": choose(rng, "auto", "auto", 1, 7, 40),
        "bandwidth": "local" if family == "multinomial" and rng.random() < 0.9 else wide,
        "ridge": choose(rng, 1e-6, 1e-6, 0.0, "auto", 1e-300, 1e300),
        "features": choose(rng, "auto", "auto", None, 1, 100),
        "refine": bool(family == "gaussian" and rng.random() < 0.1),
        "concentration": choose(rng, 1.0, 1e-9, 30.0),
        "max_time": choose(rng, 10, 10, 10, 10, 0, 0.001),
        "random_state": int(rng.integers(3)),
    }


def _chains(rng, *inits):
    """Short chains."""
    return {
        "n_samples": choose(rng, 1, 5, 5, 20),
        "burn_in": choose(rng, 3, 3, 0, 20),
        "thin": choose(rng, 1, 1, 2),
        "n_chains": choose(rng, 2, 2, 1, 3),
        "init": choose(rng, *inits),
        "max_time": choose(rng, 10, 10, 10, 10, 10, 10, 0, 0.001, 0.02),
        "random_state": int(rng.integers(3)),
    }


def _gibbs_mixture(rng, X):
    family = _family(rng, X, "known", *(("gamma",) if np.nanmin(X) > 0 else ()))
    chains = _chains(rng, "dpmeans", "dpmeans", "one", "singles", np.arange(len(X)) % 3)
    beta = choose(rng, 1.0, 1.0, 1.0, 1e-6, 1e3, 1e9, [0.5] * min(chains["burn_in"], 2) + [2.0])
    given = (1.0, 1.0, 1e-9, 1e-90, 30.0, 1e6)
    return {
        "family": family,
        "concentration": choose(rng, *given, [0.5, 2.0], [2.0, 1e-3]) if beta == 1.0 else choose(rng, *given),
        "prior": choose(rng, None, None, None, "fixed", "learn", _some_of_the_prior(rng, family)),
        "beta": beta,
        "collapsed": choose(rng, True, True, False),
        "moves": choose(rng, "split_merge", "split_merge", None),
        "point_estimate": choose(rng, "vi", "vi", "binder", "map"),
        **chains,
    }


def _gibbs_ibp(rng, X):
    return {
        "concentration": choose(rng, 1.0, 1.0, 1e-6, 30.0, [0.5, 2.0]),
        "noise": choose(rng, "auto", "auto", "auto", 0.5, [2.0, 1.0], 1e-300, 1e300),
        "feature_scale": choose(rng, "auto", "auto", "auto", 2.0, [2.0, 1.0], 1e-300, 1e300),
        **_chains(rng, "bpmeans", "bpmeans", "prior", "empty", np.arange(2 * len(X)).reshape(-1, 2) % 2),
    }


def _for_k(rng, X):
    return {
        "k": choose(rng, 1, 2, 3, 10, len(X)),
        "divergence": divergence_for(rng, X),
        "smoothing": choose(rng, 0.0, 0.0, 0.5),
    }


def _lam_path(rng, X):
    return {
        "divergence": divergence_for(rng, X),
        "smoothing": choose(rng, 0.0, 0.0, 0.5),
        "max_clusters": choose(rng, 1, 5, 20, len(X)),
    }


def _lam_for_n_components(rng, X):
    return {"n_components": choose(rng, 1, 2, 3), "n_init": 1, "random_state": 0}


_SAME = ("layout", "again", "repeat", "zero weights")
_CLUSTERS = ("predict", "transform", "decision_function", "score")
_TOPICS = ("predict", "transform", "score", "perplexity", "representative_documents")
_FEATURES = ("transform", "score")
_MIXTURES = ("predict", "predict_proba", "score_samples", "score")
SUBJECTS = {
    subject.name: subject
    for subject in (
        Subject("DPMeans", 0.27, _dp_means, _CLUSTERS, (*_SAME, "order", "price", "price"), 10_000),
        Subject("HDPMeans", 0.10, _hdp_means, _CLUSTERS, (*_SAME, "order")),
        Subject("HDPTopics", 0.06, _hdp_topics, _TOPICS, ("layout", "again"), 100),
        Subject("BPMeans", 0.03, _bp_means, _FEATURES, ("again", "zero weights"), 20, 5),
        Subject("KFeatures", 0.08, _k_features, _FEATURES, ("again", "zero weights"), 100, 8),
        Subject("StepwiseKFeatures", 0.02, _stepwise, _FEATURES, ("again", "zero weights"), 10, 5),
        Subject("VariationalDPMixture", 0.20, _mixture, _MIXTURES, (*_SAME, "order")),
        Subject("KernelDPMixture", 0.09, _kernel_mixture, (*_MIXTURES, "mmd2"), (*_SAME, "order"), 200, 12),
        Subject("GibbsDPMixture", 0.06, _gibbs_mixture, _MIXTURES, ("layout", "again", "zero weights"), 100, 8),
        Subject("GibbsIBP", 0.03, _gibbs_ibp, ("transform",), ("layout", "again"), 40, 5),
        Subject("lam_for_k", 0.02, _for_k, (), ("layout", "again", "order", "price")),
        Subject("radius_for_k", 0.01, _for_k, (), ("layout", "again", "order")),
        Subject("lam_path", 0.02, _lam_path, (), ("layout", "again", "order"), 100),
        Subject("lam_for_n_components", 0.01, _lam_for_n_components, (), ("again",), 10, 5),
    )
}
#: Kinds of tables that a subject sees mostly, where others would mostly be refused.
_MOSTLY = {"HDPTopics": ("topics", "topics", "counts", "bits", "grid", "large counts", "zeros")}


def draw_case(name, seed):
    """The case that belongs to a seed."""
    subject, rng = SUBJECTS[name], np.random.default_rng(seed)
    usual = rng.random() < 0.9
    kinds = _MOSTLY.get(name, tuple(KINDS)) if usual else tuple(KINDS)
    kind, values = draw_values(rng, kinds, subject.most_rows, subject.most_columns)
    if rng.random() < 0.004 and subject.most_rows >= 10_000:  # a long table of an ordinary kind
        kind = choose(rng, *TAME, "counts")
        values = KINDS[kind](rng, 10_000, 3)
    weight, plain = draw_weight(rng, len(values))
    params = subject.draw(rng, values)
    if rng.random() < 0.03:
        params[choose(rng, *(name for name in params if name != "random_state"))] = choose(rng, *NONSENSE)
    relation = choose(rng, *subject.relations) if rng.random() < 0.5 else ""
    others = KINDS[choose(rng, *KINDS)](rng, 3, values.shape[1])
    if rng.random() < 0.3:
        others[0] = choose(rng, *ENDS)
    return Case(
        name,
        params,
        values,
        weight if subject.weighs else None,
        rng.integers(0, choose(rng, 1, 2, 5), len(values)) if name == "HDPMeans" else None,
        others,
        relation,
        dtype=choose(rng, "float64", "float64", "float64", "float64", *DTYPES),
        layout=choose(rng, "C", "C", *LAYOUTS),
        kind=kind,
        ordinary=kind in TAME and plain,
        seed=int(rng.integers(2**31)),
    )


def is_tied(case):
    """Whether many numbers of the table are equal by its kind."""
    return case.kind in TIED
