"""What every mixture can be asked, however it was fitted."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClusterMixin, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kfree.estimators._card import Parts
from kfree.estimators._profiled import Profiled
from kfree.estimators._running import RunningEstimator
from kfree.estimators._sklearn import check_table, weight_of
from kfree.estimators._spread import blocks_of, by_block
from kfree.families.components import Components
from kfree.models.checks import check_number, check_weight
from kfree.models.matching import Matched, match_components
from kfree.models.mixture_model import Asked, MixtureModel
from kfree.models.sharded_mixtures import mean_log_density
from kfree.models.sights import Seen, SoftSight
from kfree.rows import set_span_threads
from kfree.rows.dask import is_dask


class MixtureEstimator(Profiled, DensityMixin, ClusterMixin, RunningEstimator):
    """A mixture: soft clusters and a density."""

    #: Families by the names users give.
    _families: ClassVar[Mapping[str, type[Components]]]

    family: Any
    match_to: Any
    random_state: Any
    weights_: Any
    means_: Any
    n_components_: int
    _model: Asked

    @by_block(np.intp)
    def predict(self, X):
        """Likeliest component of each row.

        Parameters
        ----------
        X : array or CSR matrix (n, D)

        Returns
        -------
        array (n,) of int
        """
        check_is_fitted(self)
        X = check_table(self, X, reset=False)
        with set_span_threads():
            return self._model.labels(X)

    @by_block(np.float64, lambda self: self.n_components_)
    def predict_proba(self, X):
        """Shares of the components in each row.

        Parameters
        ----------
        X : array or CSR matrix (n, D)

        Returns
        -------
        array (n, T)
            Rows sum to 1.
        """
        check_is_fitted(self)
        X = check_table(self, X, reset=False)
        with set_span_threads():
            return self._model.shares(X)

    @by_block(np.float64)
    def score_samples(self, X):
        """Log of the density of each row.

        It integrates (for counts and bits: sums) to one over all rows; "multinomial": over rows of the same total.

        Parameters
        ----------
        X : array or CSR matrix (n, D)

        Returns
        -------
        array (n,)
        """
        check_is_fitted(self)
        X = check_table(self, X, reset=False)
        with set_span_threads():
            return self._model.log_density(X)

    def score(self, X, y=None, sample_weight=None):
        """Mean log density. Of a Dask collection it is summed block by block: the same but for rounding.

        Parameters
        ----------
        X : array or CSR matrix (n, D)
        y : ignored
        sample_weight : array (n,), default=None

        Returns
        -------
        float
        """
        if is_dask(X):
            check_is_fitted(self)
            with blocks_of(self, X, sample_weight) as blocks:
                return mean_log_density(blocks, self._model)
        value = self.score_samples(X)
        weight = check_weight(weight_of(X, sample_weight), value.shape[0])
        return float(np.average(value, weights=weight if weight.size else None))

    def sample(self, n_samples=1):
        """Draw rows from the density.

        Parameters
        ----------
        n_samples : int, default=1

        Returns
        -------
        X : array (n_samples, D)
            "multinomial": rows whose total is the mean total of the training rows, rounded.
        labels : array (n_samples,)
            Component of each row; -1 for one beyond those that were found.
        """
        check_is_fitted(self)
        check_number("n_samples", n_samples, least=1, integer=True)
        return self._model.sample(int(n_samples), self._draws())

    def _seen(self, X: Any, **asked: Any) -> Seen:
        """Rows as the components see them; each count of a document counts."""
        sight = SoftSight.of(self._model)
        return Seen(sight, self._model.labels(X), "length" if sight.yardstick.family.normalise else "none")

    def _match(self, point: MixtureModel, X: Any, labels: Any) -> Matched | None:
        """Which components are the same as earlier ones; None if there are none."""
        return None if self.match_to is None else match_components(point, self.match_to, X, labels)

    def _draws(self) -> np.random.Generator:
        """What draws are made with."""
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))

    def _publish_model(self, model: Asked, labels: Any) -> None:
        """Write what every mixture has."""
        self._model, self.labels_ = model, labels
        self.n_components_ = model.size
        self.weights_ = model.weights[: model.size]
        self.means_ = model.means()
        covariances = model.covariances()
        if covariances is not None:
            self.covariances_ = covariances

    def _parts(self) -> Parts:
        return Parts(self._words.noun, self.weights_, 1.0)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_model")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        family = self._families.get(self.family) if isinstance(self.family, str) else None
        tags.input_tags.sparse = family is not None and not (family.continuous or family.lower_open)
        tags.input_tags.positive_only = family is not None and family.lower >= 0
        return tags
