"""How fitted models see rows when they are asked what their clusters are: how near, how clearly, by which columns."""

from typing import Any, NamedTuple, Protocol

import numpy as np

from kfree.families import Array, Family, Geometry, SquaredEuclidean, Summary, make_family
from kfree.families.components import take
from kfree.families.gaussian import Mahalanobis
from kfree.inference.clusters.exact import margins, own_cost, rivals
from kfree.models.clusters import Model
from kfree.models.mixture_model import Asked, MixtureModel
from kfree.rows.standardise import Units

# Weight of components that have next to none.
_LIGHTEST = 1e-300
#: Divergences that go with components that have no covariance.
DIVERGENCES = {"multinomial": "kl", "poisson": "poisson", "bernoulli": "bernoulli", "gamma": "itakura_saito"}


class RowFit(NamedTuple):
    """What a model says of some rows whose clusters are known."""

    cost: Array  # (n,) divergence from the centre
    rival: Array  # (n,) the best of the other clusters, -1 if there is none
    margin: Array  # (n,) by how much it is worse, 0 to 1


class Yardstick(NamedTuple):
    """Centres and a divergence that tell how far rows are from them, column by column."""

    model: Model
    units: Units | None = None  # in which it measures, None for the users'

    @classmethod
    def of_mixture(cls, mixture: MixtureModel) -> "Yardstick":
        """Gaussians are measured by the mean covariance of the components, others by the divergence of their family."""
        params = take(mixture.params, slice(mixture.size))
        means, covariances = mixture.family.means(params), mixture.family.covariances(params)
        weights = np.maximum(mixture.weights[: mixture.size], _LIGHTEST)  # all may be in the tail
        weights = weights / weights.sum()
        if covariances is None:
            return cls(_plain_model(make_family(DIVERGENCES[mixture.family.name]), means, weights))
        pooled = np.einsum("k,k...->...", weights, covariances)
        units, family = mixture.units, Mahalanobis()
        if pooled.ndim == 2:
            adapted = family.adapt(Summary(np.zeros(means.shape[1]), 0.0, lambda: pooled))
            return cls(_plain_model(adapted, means, weights), units)
        width = np.sqrt(pooled) * np.ones(means.shape[1])
        return cls(_plain_model(SquaredEuclidean(), means / width, weights), Units(units.shift, units.scale * width))

    @property
    def family(self) -> Family:
        """The divergence."""
        return self.model.geometry.family

    def rows(self, X: Any) -> Any:
        """Rows in the units of the yardstick."""
        return X if self.units is None else self.units.rows(X)

    def inside(self, points: Array) -> Array:
        """Centres (K, p) in the users' units as the divergence takes them."""
        if self.units is not None:
            return (points - self.units.shift) / self.units.scale
        return points - self.model.shift

    def contribution(self, centre: Array, overall: Array, differs: Array) -> Array:
        """Shares (K, p) of columns in the divergences of centres from a point, signed; those that ``differs`` is False
        for are rounding."""
        points = np.concatenate([centre, overall[None]])
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            inside = self.inside(points)
            terms = self.family.by_column(inside[:-1], inside[-1])
        terms = np.where(differs & ~np.isnan(terms), terms, 0.0)
        endless = np.isinf(terms)
        terms = np.where(endless.any(axis=1, keepdims=True), endless, terms)
        peak = terms.max(axis=1, keepdims=True)
        terms = terms / np.where(peak > 0, peak, 1.0)  # first, so that the sum of large ones is a number
        total = terms.sum(axis=1, keepdims=True)
        return np.sign(centre - overall) * terms / np.where(total > 0, total, 1.0)

    def own(self, X: Any, labels: Array) -> Array:
        """Divergences of rows from their centres; those of rows that cannot be measured are infinite."""
        cost, usable = np.full(X.shape[0], np.inf), np.ones(X.shape[0], bool)
        if self.family.normalise == "sum":
            usable = np.asarray(X.sum(axis=1)).ravel() > 0
        rows = np.flatnonzero(usable)
        if rows.size:
            table = self.model.table(self.rows(X if rows.size == X.shape[0] else X[rows]), np.empty(0))
            cost[rows] = own_cost(table, slice(0, rows.size), self.model.inside(table), labels[rows].astype(np.int32))
        return cost


def _plain_model(family: Family, centres: Array, weights: Array) -> Model:
    """Centres that are only measured from."""
    shift, anchor = np.zeros(centres.shape[1]), family.inside(weights @ centres)
    return Model(Geometry(family, anchor), shift, centres, centres, weights, 0.0, np.inf)


class Sight(Protocol):
    """What a profile asks of a fitted model."""

    @property
    def yardstick(self) -> Yardstick:
        """How far rows are from centres."""

    def centres(self) -> Array:
        """Centres (K, p) in the users' units."""

    def look(self, X: Any, labels: Array) -> RowFit:
        """How well a few rows fit to their clusters."""


class HardSight(NamedTuple):
    """Clusters as divergences from their centres see them."""

    model: Model

    @property
    def yardstick(self) -> Yardstick:
        """The model's own divergence."""
        return Yardstick(self.model)

    def centres(self) -> Array:
        """The centres."""
        return self.model.centres

    def look(self, X: Any, labels: Array) -> RowFit:
        """The margin is the share of the second divergence that the own one is short of it."""
        table = self.model.table(X, np.empty(0))
        found = rivals(table, self.model.inside(table), labels.astype(np.int32))
        return RowFit(found.own, found.rival, margins(found.own, found.second))


class SoftSight(NamedTuple):
    """Components as the shares of rows see them."""

    model: Asked
    yardstick: Yardstick

    @classmethod
    def of(cls, model: Asked) -> "SoftSight":
        """The components of a mixture."""
        return cls(model, Yardstick.of_mixture(model.point))

    def centres(self) -> Array:
        """Means of the components."""
        return self.model.means()

    def look(self, X: Any, labels: Array) -> RowFit:
        """The margin is the difference of the two largest shares."""
        share, lines = np.array(self.model.shares(X)), np.arange(labels.size)
        cost = self.yardstick.own(X, labels)
        if share.shape[1] == 1:
            return RowFit(cost, np.full(labels.size, -1), np.ones(labels.size))
        own = share[lines, labels]
        share[lines, labels] = -1.0
        rival = share.argmax(axis=1)
        return RowFit(cost, rival, np.maximum(own - share[lines, rival], 0.0))


class Seen(NamedTuple):
    """Rows as a fitted model sees them."""

    sight: Sight
    labels: Array  # (n,) clusters, -1 for rows of none
    weighting: str = "none"  # how rows that are made histograms are weighted: see ``models.checks.WEIGHTINGS``
