"""Why there are so many clusters, in plain words; every figure is an attribute of the estimator."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.how_many.choose import Choice
from kfree.inference.clusters.how_many.how_many_numbers import HOW_MANY
from kfree.models.how_many import Ask

# Clusters whose sizes are told one by one.
_TOLD = 6


class Found(NamedTuple):
    """What a fit has published."""

    n_clusters: int
    lam: float | None
    window: tuple[float, float] | None
    radius: float
    weights: Array  # (K,)


def explain(ask: Ask, found: Found, choice: Choice | None) -> str:
    """Two to five sentences."""
    if choice is not None:
        parts = _chosen(found, choice)
    elif ask.n_clusters is not None:
        parts = [f"{_clusters(found.n_clusters)}, as asked for.", _price(found)]
    elif ask.radius is not None:
        how = f"a row farther than radius = {found.radius:.4g} from every centre opens one"
        parts = [f"{_clusters(found.n_clusters)}: {how}."]
    else:
        parts = [f"{_clusters(found.n_clusters)} at a price of lam = {found.lam:.4g} each.", _price(found)]
    return " ".join(part for part in (*parts, _sizes(found)) if part)


def _chosen(found: Found, choice: Choice) -> list[str]:
    """Sentences on a choice."""
    if not choice.complete:
        return [f"{_clusters(found.n_clusters)}: the best of what was looked at until the time was up.", _price(found)]
    others = [K for K in choice.suggestions if found.n_clusters != K]
    if choice.best == 1:
        near = f" The nearest to it are {_or(others[:3])} clusters." if others else ""
        return [
            f"One cluster: no number of clusters is {HOW_MANY.clear:g} standard deviations ahead of tables without "
            f"groups (the best is {choice.clearness:.1f})." + near
        ]
    first = (
        f"{_clusters(found.n_clusters)}: rows belong to their cluster more clearly than in tables without groups "
        f"({choice.clearness:.1f} standard deviations)."
    )
    if found.n_clusters != choice.best:
        first += f" {choice.best} would be better, but that number is best for no price."
    gaps = f"{choice.n_groups} groups certainly have a gap between them." if choice.n_groups > 1 else ""
    if choice.furthest < choice.best:
        gaps = f"{choice.furthest} would stand out more, but {choice.least} groups have a gap between them."
    return [first, f"{_or(others[:2])} would be next." if others else "", gaps, _price(found)]


def _price(found: Found) -> str:
    """A sentence on the prices."""
    if found.window is None or found.lam is None:
        return "That number is best for no price of a cluster, so there is no lam that finds them."
    lo, hi = found.window
    if np.isinf(hi):
        return f"At any price above {lo:.4g} there is one."
    if lo <= 0:
        return f"The price of a cluster could be anything below {hi:.4g}."
    return f"The price of a cluster could lie anywhere between {lo:.4g} and {hi:.4g}."


def _sizes(found: Found) -> str:
    """A sentence on the weights of the clusters."""
    weights = [f"{weight:.6g}" for weight in found.weights]
    if len(weights) == 1:
        return ""
    if len(weights) <= _TOLD:
        return f"They hold {', '.join(weights[:-1])} and {weights[-1]} rows."
    return f"The largest holds {weights[0]} rows, the smallest {weights[-1]}."


def _clusters(K: int) -> str:
    return "1 cluster" if K == 1 else f"{K} clusters"


def _or(numbers: list[int]) -> str:
    words = [str(K) for K in sorted(numbers)]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
