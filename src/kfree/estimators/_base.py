"""What the hard clusterers have in common: parameters they share, divergences from centres, reports and warnings."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kfree.estimators._card import Parts
from kfree.estimators._endings import warn_unfinished
from kfree.estimators._profiled import Profiled
from kfree.estimators._running import RunningEstimator, Words
from kfree.estimators._sklearn import check_table
from kfree.estimators._spread import by_block
from kfree.families import FAMILIES, Array, make_family
from kfree.inference.goal import Goal, Order, Start
from kfree.inference.loop import Budget
from kfree.models.checks import works_on_sparse
from kfree.models.clusters import LocalProblem, Model
from kfree.models.matching import Matched, match_clusters
from kfree.models.sights import Yardstick
from kfree.rows import set_span_threads


def finite_part(trace: list[float]) -> Array:
    """The objective after each pass, without first ones whose centres exclude rows: it is infinite there."""
    return np.array([value for value in trace if value < np.inf])


class HardClusters(Profiled, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, RunningEstimator):
    """An estimator whose model is a set of centres."""

    _words = Words(moves=True)
    _model: Model
    n_clusters_: int
    converged_: bool
    cluster_weights_: Any
    divergence: Any
    init: Any
    order: Any
    n_init: Any
    max_clusters: Any
    max_iter: Any
    tol: Any
    max_time: Any
    weighting: Any
    smoothing: Any
    smoothing_mean: Any
    random_state: Any
    warm_start: Any
    match_to: Any
    verbose: Any

    @by_block(None, lambda self: self.n_clusters_)
    def transform(self, X):
        """Divergence of each row from each centre.

        Parameters
        ----------
        X : array or CSR matrix (n, p)

        Returns
        -------
        array (n, K), float32 if X is and they fit
        """
        check_is_fitted(self)
        X = check_table(self, X, reset=False)
        with set_span_threads():
            return self._model.divergences(X)

    def _parts(self) -> Parts:
        return Parts("clusters", self.cluster_weights_, float(self.cluster_weights_.sum()))

    @property
    def _n_features_out(self):
        return self.n_clusters_

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_model")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        known = not isinstance(self.divergence, str) or self.divergence in FAMILIES
        family = make_family(self.divergence if known else "sqeuclidean")
        tags.input_tags.sparse = works_on_sparse(family)
        tags.input_tags.positive_only = family.lower >= 0
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _problem(self, X: Any, sample_weight: Any) -> LocalProblem:
        return LocalProblem.of(X, sample_weight, self.divergence, self.weighting, self.smoothing, self.smoothing_mean)

    def _match(self, model: Model, inertia: float) -> Matched | None:
        """Which clusters are the same as earlier ones; None if there are none."""
        if self.match_to is None:
            return None
        return match_clusters(Yardstick(model), self.match_to, inertia / float(model.mass.sum()))

    def _limits(self) -> dict[str, Any]:
        """Fields of the goal: the limits of a fit."""
        most = np.inf if self.max_clusters is None else self.max_clusters
        return {"tol": self.tol, "max_iter": self.max_iter, "max_clusters": most}

    def _seeds(self, goal: Goal) -> Array:
        """A seed for each fit; one where nothing is random, so that numpy's own generator is left alone."""
        if goal.order is Order.RANDOM or goal.start is Start.KMEANS_PLUS_PLUS:
            return check_random_state(self.random_state).randint(2**31 - 1, size=self.n_init)
        return np.zeros(1, np.int64)

    def _warn(self, message: str, budget: Budget) -> None:
        if message:
            warnings.warn(message, UserWarning, stacklevel=3)
        warn_unfinished(
            self, budget, f"Labels still change after max_iter={self.max_iter} passes (raise max_iter or tol)"
        )
