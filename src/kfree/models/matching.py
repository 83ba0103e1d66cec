"""Numbers of clusters that stay from one fit to the next: which clusters are the same as earlier ones?"""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from kfree.families import Array
from kfree.models.checks import as_numbers, check_domain, check_entries, row_scale
from kfree.models.mixture_model import MixtureModel
from kfree.models.sights import Yardstick
from kfree.rows.threads import cut

# How far from its centre the centre of the same cluster may have been: so many times the mean divergence of rows from
# their centres.
_SAME = 2.0
# Rows measured together.
_ROWS = 16_384


class Matched(NamedTuple):
    """New numbers of clusters."""

    order: Array  # (K,) the cluster that gets each number
    earlier: Array  # (K,) what the cluster of each number was called earlier, -1 if there was none

    @property
    def rank(self) -> Array:
        """(K,) The number that each cluster gets, int32."""
        rank = np.empty(self.order.size, np.int32)
        rank[self.order] = np.arange(self.order.size)
        return rank


def earlier_centres(match_to: Any, p: int) -> Array:
    """The centres (J, p) of an earlier model, or those that were given."""
    given = getattr(match_to, "cluster_centers_", getattr(match_to, "means_", match_to))
    if hasattr(given, "get_params"):
        raise ValueError(
            f"match_to is a {type(match_to).__name__} without centres: it is not fitted, or scikit-learn's clone has "
            "made it forget its fit. Pass a fitted model, or its cluster_centers_ or means_."
        )
    centres = as_numbers("match_to", given)
    if centres.ndim != 2 or centres.shape[1] != p or not centres.shape[0]:
        raise ValueError(f"match_to has centres of shape {centres.shape}, but X has {p} columns. Pass (K, {p}).")
    check_entries("match_to", centres)
    return centres


def match_clusters(yardstick: Yardstick, match_to: Any, size: float) -> Matched:
    """Number clusters so that those that are the same as earlier ones keep their numbers, where these are below K.

    Two are the same if the earlier centre is no farther from the new one than ``_SAME`` times ``size``, and one of them
    is the nearest to the other; where several may be, they are paired so that divergences sum to the least.
    """
    new = yardstick.model.centres - yardstick.model.shift
    earlier = earlier_centres(match_to, new.shape[1])
    check_domain(earlier, yardstick.family, name="match_to")
    scale, _ = row_scale(earlier, yardstick.family, "match_to")
    earlier = yardstick.inside(earlier * scale[:, None] if scale.size else earlier)
    with np.errstate(over="ignore", invalid="ignore"):
        apart = np.stack([yardstick.family.divergence(centre[None], new) for centre in earlier])
    apart = np.where(np.isnan(apart), np.inf, apart)
    nearest = (apart == apart.min(axis=0)) | (apart == apart.min(axis=1, keepdims=True))
    limit = _SAME * size
    cost = np.where(nearest & (apart <= limit), apart / limit if limit > 0 else 0.0, 2.0)
    old, found = linear_sum_assignment(cost)
    same = cost[old, found] <= 1.0
    return _numbers(old[same], found[same], new.shape[0])


def _numbers(old: Array, found: Array, K: int) -> Matched:
    """Earlier numbers below K stay; other clusters fill what is free, those that have moved before new ones."""
    name = np.full(K, -1)
    name[found] = old
    order = np.full(K, -1)
    stays = np.flatnonzero((name >= 0) & (name < K))
    order[name[stays]] = stays
    moved = np.flatnonzero(name >= K)
    rest = np.concatenate([moved[np.argsort(name[moved])], np.flatnonzero(name < 0)])
    order[order < 0] = rest
    return Matched(order, name[order])


def match_components(mixture: MixtureModel, match_to: Any, X: Any, labels: Array) -> Matched:
    """The same for the components of a mixture whose rows have these labels."""
    yardstick = Yardstick.of_mixture(mixture)
    cost = finite_costs(yardstick, X, labels)
    return match_clusters(yardstick, match_to, float(cost.mean()) if cost.size else 0.0)


def finite_costs(yardstick: Yardstick, X: Any, labels: Array) -> Array:
    """Divergences of rows from their centres, of those that can be measured."""
    cost = np.concatenate([yardstick.own(X[span], labels[span]) for span in cut(X.shape[0], _ROWS)])
    return cost[np.isfinite(cost)]
