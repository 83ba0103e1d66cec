"""What each parameter of each estimator may be; what joins several parameters is checked by the estimators."""

from kfree.families import FAMILIES, make_family
from kfree.families.conjugate import SAMPLED
from kfree.families.points import POINTS
from kfree.inference.clusters.fit import ALGORITHMS
from kfree.inference.embedding.embedding_numbers import EMBEDDING
from kfree.inference.features.feature_algorithms import FIXED, PRICED
from kfree.inference.topics.topic_search import SEARCHES
from kfree.models.acceleration import ACCELERATE, EXPAND, FINAL
from kfree.models.checks import WEIGHTINGS
from kfree.models.ibp_problem import STARTS
from kfree.models.kernel_bandwidth import BANDWIDTHS, check_widths
from kfree.models.kernel_problem import SOURCES
from kfree.models.mixture import CONJUGATE, PRIORS
from kfree.models.parameters import Choice, Flag, Given, Nothing, Number, Or, Table
from kfree.models.table_choices import check_kinds
from kfree.models.topics import COMPONENTS, LARGEST_LAM, MOST_WEIGHT

_COUNT = Number(least=1, integer=True)
_NO_LIMIT = Or(_COUNT, Nothing())
_SHARE = Number(least=0.0)
#: The same in every class.
_SECONDS = Or(Number(least=0.0), Nothing())
_SEED = Given("an integer, a RandomState or None")
_VERBOSE = Or(Flag(), Number(least=0, integer=True, hint="0 is silent."))
_EARLIER = Or(Given("a fitted model, or its centres"), Nothing())
_JOBS = Or(Number(integer=True, but=0, hint="-1 is for all cores."), Nothing())

_CLUSTERS: Table = {
    "divergence": Given("a Family instance", make_family, tuple(FAMILIES)),
    "order": Or(Choice("random", "index"), Given("a permutation of the rows")),
    "init": Or(Choice("auto", "mean", "farthest_first", "k-means++"), Given("centres (K, p)")),
    "n_init": _COUNT,
    "weighting": Choice(*WEIGHTINGS),
    "smoothing": Number(least=0.0, finite=True),
    "smoothing_mean": Or(Given("a mean (p,)"), Nothing()),
    "max_clusters": _NO_LIMIT,
    "max_iter": _COUNT,
    "tol": _SHARE,
    "match_to": _EARLIER,
    "max_time": _SECONDS,
    "warm_start": Flag(),
    "random_state": _SEED,
    "verbose": _VERBOSE,
}

DP_MEANS: Table = {
    "lam": Or(Choice("auto"), Number(above=0.0)),
    "n_clusters": _NO_LIMIT,
    "radius": Or(Number(above=0.0), Nothing()),
    "algorithm": Choice(*ALGORITHMS),
    "search": Choice("auto", "points", "polish", "full"),
    "outliers": Flag(),
    **_CLUSTERS,
}

HDP_MEANS: Table = {
    "lam_local": Or(
        Choice("auto"), Number(least=0.0, finite=True, hint="With an infinite one no group could hold two clusters.")
    ),
    "lam_global": Or(Choice("auto"), Number(least=0.0)),
    "search": Choice("auto", "points", "full"),
    **_CLUSTERS,
}

_LAM_OF_TOPICS = Or(Choice("auto"), Number(least=0.0, most=LARGEST_LAM))

HDP_TOPICS: Table = {
    "lam_local": _LAM_OF_TOPICS,
    "lam_global": _LAM_OF_TOPICS,
    "mix": Number(least=0.0, most=1.0),
    "search": Choice(*SEARCHES),
    "n_topics": _NO_LIMIT,
    "n_topics_init": Or(Choice("auto"), _COUNT),
    "components": Choice(*COMPONENTS),
    "refine": Or(Choice("collapsed"), Nothing()),
    "smoothing": Or(
        Choice("auto"),
        Number(least=1e-6, most=MOST_WEIGHT, hint="Without smoothing no topic could take new words."),
    ),
    "max_iter": _COUNT,
    "tol": _SHARE,
    "max_time": _SECONDS,
    "random_state": _SEED,
    "verbose": _VERBOSE,
}

_FEATURES: Table = {
    "base": Or(Choice("auto", "intercept"), Flag()),
    "n_init": _COUNT,
    "max_iter": _COUNT,
    "max_time": _SECONDS,
    "random_state": _SEED,
    "n_jobs": _JOBS,
    "verbose": _VERBOSE,
}
_LAM_OF_FEATURES = Or(
    Choice("auto"),
    Number(
        above=0.0,
        finite=True,
        hint="It is what one more feature must save; one above the sum of squares of X gives no features.",
    ),
)
_ALLOCATION = Given("an allocation Z (n, K)"), Given("a tuple (Z, A)")

BP_MEANS: Table = {
    "lam": _LAM_OF_FEATURES,
    "algorithm": Choice(*PRICED),
    "row": Choice("auto", "exact", "coordinate"),
    "init": Or(Choice("auto", "empty"), *_ALLOCATION),
    "shuffle": Flag(),
    **_FEATURES,
}

K_FEATURES: Table = {
    "n_components": _COUNT,
    "algorithm": Choice(*FIXED),
    "row": Choice("exact", "coordinate"),
    "init": Or(Choice("auto"), *_ALLOCATION),
    **_FEATURES,
}

STEPWISE_K_FEATURES: Table = {
    "lam": _LAM_OF_FEATURES,
    "max_components": _NO_LIMIT,
    "patience": _COUNT,
    "algorithm": Choice(*FIXED),
    "row": Choice("exact", "coordinate"),
    **_FEATURES,
}

VARIATIONAL_DP_MIXTURE: Table = {
    "family": Choice(*CONJUGATE),
    "accelerate": Or(Choice(*ACCELERATE), Nothing()),
    "concentration": Or(Number(above=0.0), Given("a pair (a1, a2)")),
    "prior": Or(Choice(*PRIORS), Given("a dict of hyperparameters")),
    "max_components": _NO_LIMIT,
    "n_candidates": _COUNT,
    "n_failed": _COUNT,
    "tol": Or(Choice("relative"), Number(least=0.0)),
    "max_iter": _COUNT,
    "max_time": _SECONDS,
    "expand": Choice(*EXPAND),
    "final": Choice(*FINAL),
    "max_nodes": _NO_LIMIT,
    "match_to": _EARLIER,
    "random_state": _SEED,
    "verbose": _VERBOSE,
}

KERNEL_DP_MIXTURE: Table = {
    "family": Choice(*POINTS),
    "covariance": Choice(*POINTS["gaussian"]),
    "candidates": Or(Choice(*SOURCES), Given("means (T, D)"), Given("a dict")),
    "n_candidates": Or(Choice("auto"), _COUNT),
    "bandwidth": Or(Choice(*BANDWIDTHS), Number(above=0.0, finite=True), Given("a list of such", check_widths)),
    "ridge": Or(Choice("auto"), Number(least=0.0, finite=True)),
    "features": Or(Choice("auto"), _COUNT, Nothing()),
    "refine": Flag(),
    "concentration": Number(above=0.0, most=EMBEDDING.most_concentration),
    "match_to": _EARLIER,
    "random_state": _SEED,
    "verbose": _VERBOSE,
    "max_time": _SECONDS,
}

_CHAINS: Table = {
    "n_samples": _COUNT,
    "burn_in": Number(least=0, integer=True),
    "thin": _COUNT,
    "n_chains": _COUNT,
    "random_state": _SEED,
    "n_jobs": _JOBS,
    "warm_start": Flag(),
    "verbose": _VERBOSE,
    "max_time": _SECONDS,
}

GIBBS_DP_MIXTURE: Table = {
    "family": Choice(*SAMPLED),
    "concentration": Or(Number(above=0.0), Given("a pair (shape, rate)")),
    "prior": Or(Choice(*PRIORS), Given("a dict of hyperparameters"), Nothing()),
    "beta": Or(Number(), Given("a sequence of such that does not fall")),  # its range goes with other parameters
    "collapsed": Flag(),
    "moves": Or(Choice("split_merge"), Nothing()),
    "init": Or(Choice("dpmeans", "one", "singles"), Given("labels (N,)")),
    "point_estimate": Choice("vi", "binder", "map"),
    "match_to": _EARLIER,
    **_CHAINS,
}

_DEVIATION = Or(
    Choice("auto"),
    Number(above=0.0, finite=True, hint="It is a standard deviation; 'auto' learns it."),
    Given("a pair (shape, scale)"),
)

GIBBS_IBP: Table = {
    "concentration": Or(Number(above=0.0, finite=True), Given("a pair (shape, rate)")),
    "noise": _DEVIATION,
    "feature_scale": _DEVIATION,
    "init": Or(Choice(*STARTS), Given("an allocation (n, K)")),
    **_CHAINS,
}

TABLE_PREPARER: Table = {"kinds": Or(Given("a dict from columns to kinds", check_kinds), Nothing())}
