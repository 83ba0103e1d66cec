"""What the estimators of binary features have in common: the door, the fitted surface, canonical form."""

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted

from kfree.estimators._card import Parts
from kfree.estimators._endings import warn_unfinished
from kfree.estimators._running import RunningEstimator, Words
from kfree.estimators._sklearn import check_table, check_weighted_table
from kfree.estimators._spread import Rows, RowsHere, blocks_of, by_block
from kfree.estimators._spread_features import of_features
from kfree.families import Array
from kfree.inference.features.best_rows import RowRule
from kfree.inference.features.feature_goal import FeatureGoal
from kfree.inference.loop import Budget, attempt
from kfree.models.explain_features import Priced, explain_priced
from kfree.models.features import FeatureModel, FeatureProblem, FittedFeatures, HeldFeatures
from kfree.models.spread_features import SpreadFeatures, score_of_blocks
from kfree.rows import set_span_threads
from kfree.rows.dask import is_dask


class BinaryFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, RunningEstimator):
    """An estimator whose model is a set of means, of which a row has none, one or many."""

    _words = Words("features", details=("K-features", "collapsed", "BP-means"))

    algorithm: Any
    row: Any
    base: Any
    init: Any
    n_init: Any
    max_iter: Any
    max_time: Any
    random_state: Any
    n_jobs: Any
    verbose: Any
    converged_: bool
    n_components_: int
    Z_: Any
    _model: FeatureModel
    #: Of rows that were fitted in blocks, how many there are, and how many have no features.
    _spread: tuple[int, int]

    def fit_transform(self, X, y=None, sample_weight=None):
        """Fit and return ``Z_``: which row has which feature.

        Parameters
        ----------
        X : array or CSR matrix (n, p)
        y : ignored
        sample_weight : array (n,), default=None

        Returns
        -------
        array (n, K), uint8
        """
        return self.fit(X, y, sample_weight=sample_weight).Z_

    @by_block(np.uint8, lambda self: self.n_components_)
    def transform(self, X):
        """The best features of each row, means fixed; no features are added.

        Parameters
        ----------
        X : array or CSR matrix (n, p)

        Returns
        -------
        array (n, K), uint8
        """
        check_is_fitted(self)
        X = check_table(self, X, reset=False)
        with set_span_threads():
            return self._model.allocate(X)

    def inverse_transform(self, Z):
        """Rows made of features: ``Z @ components_ + intercept_``.

        Parameters
        ----------
        Z : array (n, K)

        Returns
        -------
        array (n, p)
        """
        check_is_fitted(self)
        Z = check_array(Z, ensure_min_features=0, input_name="Z")
        if Z.shape[1] != self.n_components_:
            raise ValueError(f"Z has {Z.shape[1]} columns, but there are {self.n_components_} features.")
        return self._model.compose(Z)

    def score(self, X, y=None, sample_weight=None):
        """Minus the sum of squared residuals of rows after ``transform``; larger is better. lam plays no part.

        Of a Dask collection it is summed where the rows are: the same but for rounding.

        Parameters
        ----------
        X : array or CSR matrix (n, p)
        y : ignored
        sample_weight : array (n,), default=None

        Returns
        -------
        float
        """
        check_is_fitted(self)
        if is_dask(X):
            with blocks_of(self, X, sample_weight) as blocks:
                return score_of_blocks(blocks, self._model)
        X, sample_weight = check_weighted_table(self, X, sample_weight, reset=False)
        with set_span_threads():
            return -self._model.inertia(X, sample_weight)

    def canonicalize(self):
        """Bring the features into canonical form: the same rows ``Z_ @ components_`` in the plainest words.

        If some feature is in all rows (a base), any other one may be complemented: removed from the rows that have
        it and given to those that have not, its mean subtracted instead of added. A pair of features of which each
        row has exactly one is a base and a feature. This makes a base from such a pair, complements features that
        more than half of the rows have, and orders by the weight of their rows. ``transform`` then works with the new
        means. Fits to long Dask collections, whose ``Z_`` lies elsewhere, do not have it.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        if hasattr(self, "_spread"):
            raise ValueError(
                "canonicalize looks at the features of all rows of the fit together, and these lie in blocks of Dask. "
                "Bring them to a file with kfree.read(X) and fit them from there, or compare Z_ @ components_, which "
                "is the same for all forms."
            )
        with set_span_threads():
            model = self._model.canonical()
            self._publish_model(model, model.Z, HeldFeatures.of(model.Z).counts)
        return self

    def explain(self):
        """Why there are so many features, and who has them, in a few sentences.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        price = getattr(self, "lam_", None), getattr(self, "lam_window_", None)
        return explain_priced(Priced(self._held(), self.explained_, *price))

    def _parts(self) -> Parts:
        return Parts("features", self.counts_, float(self._held().n))

    def _held(self) -> HeldFeatures:
        """Who has features."""
        if hasattr(self, "_spread"):
            return HeldFeatures(*self._spread, self.counts_)
        return HeldFeatures.of(self._model.Z)

    @property
    def _n_features_out(self):
        return self.n_components_

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_model")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _problem(self, X: Any, sample_weight: Any) -> FeatureProblem:
        """Checked rows, in memory."""
        return RowsHere(self, X, sample_weight).bind(of_features(self))

    def _goal(
        self,
        problem: FeatureProblem | SpreadFeatures,
        *,
        row: str,
        K: int | None = None,
        shuffle: bool = False,
        lam: float | None = None,
    ) -> FeatureGoal:
        """What is asked for, with K features or with a price."""
        start = problem.start(self.init, K)
        first = "in turn" if isinstance(self.base, str) else "mean" if self.base else "drawn"
        once = start is not None and self.algorithm != "extended" and not shuffle
        return FeatureGoal(
            self.algorithm,
            RowRule.of(problem.n, row == "exact"),
            max_iter=int(self.max_iter),
            n_init=1 if once else int(self.n_init),
            n_jobs=self.n_jobs,
            first=first,
            shuffle=shuffle,
            start=start,
            price=lam,
        )

    def _seed(self) -> np.random.SeedSequence:
        """The user's seed; None always makes the same choices."""
        if self.random_state is None:
            return np.random.SeedSequence(0)
        return np.random.SeedSequence(int(check_random_state(self.random_state).randint(2**31 - 1)))

    def _publish(self, fitted: FittedFeatures, rows: Rows, budget: Budget) -> None:
        """Write every fitted attribute; again from the first if the user interrupts."""
        write = partial(self._write, fitted, rows)
        attempt(write, write, budget)

    def _write(self, fitted: FittedFeatures, rows: Rows) -> None:
        self.inertia_, self.objective_, self.objective_trace_ = fitted.inertia, fitted.objective, fitted.trace
        self.explained_ = 1.0 - fitted.inertia / fitted.total if fitted.total > 0 else 1.0
        self.n_iter_, self.converged_ = max(1, len(fitted.trace)), fitted.converged
        self.restarts_ = fitted.restarts
        if fitted.lam is not None:
            self.lam_, self.lam_window_, self.path_ = fitted.lam, fitted.window, fitted.path
            self.lam_share_ = fitted.lam / fitted.total if fitted.total > 0 else np.inf
        self._publish_model(fitted.model, rows.lazily(fitted.model.Z, fitted.rows), fitted.held.counts)
        self.__dict__.pop("_spread", None)
        if fitted.rows is not None:
            self._spread = fitted.held.n, fitted.held.bare

    def _publish_model(self, model: FeatureModel, Z: Any, counts: Array) -> None:
        self.components_, self.intercept_, self.Z_ = model.components, model.intercept, Z
        self.n_components_, self.counts_ = int(model.Z.shape[1]), counts
        self._model = model

    def _warn(self, budget: Budget, fitted: FittedFeatures) -> None:
        """What the user should know; to be called by ``fit``, whose caller is told."""
        chosen = fitted.chosen
        if chosen is not None and not chosen.clear:
            warnings.warn(
                f"No number of features stands out: {chosen.n_components} are best only for lam from "
                f"{chosen.window[0]:.3g} to {chosen.window[1]:.3g}. Look at path_.plot() and choose lam yourself.",
                UserWarning,
                stacklevel=3,
            )
        warn_unfinished(self, budget, f"Features still change after max_iter={self.max_iter} passes (raise max_iter)")
