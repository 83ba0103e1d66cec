"""Why there are so many clusters, in plain words; every figure is an attribute of the estimator."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.how_many.choose import Choice
from kfree.inference.clusters.how_many.how_many_numbers import HOW_MANY
from kfree.models.how_many import Ask
from kfree.models.sentences import count, listed, sizes, together


class Found(NamedTuple):
    """What a fit has published."""

    n_clusters: int
    lam: float | None
    window: tuple[float, float] | None
    radius: float
    weights: Array  # (K,)


def explain(ask: Ask, found: Found, choice: Choice | None) -> str:
    """Two to five sentences."""
    clusters = count(found.n_clusters, "cluster")
    if choice is not None:
        parts = _chosen(found, choice)
    elif ask.n_clusters is not None:
        parts = [f"{clusters}, as asked for.", _price(found)]
    elif ask.radius is not None:
        parts = [f"{clusters}: a row farther than radius = {found.radius:.4g} from every centre opens a new one."]
    else:
        parts = [f"{clusters} at a price of lam = {found.lam:.4g} each.", _price(found)]
    return together(*parts, sizes(found.weights))


def _chosen(found: Found, choice: Choice) -> list[str]:
    """Sentences on a choice."""
    clusters = count(found.n_clusters, "cluster")
    if not choice.complete:
        return [f"{clusters}: the best number among those tried before time was up.", _price(found)]
    others = [K for K in choice.suggestions if found.n_clusters != K]
    if choice.best == 1:
        near = f" The numbers that come closest are {listed(sorted(others[:3]))}." if others else ""
        return [
            "One cluster: no number of clusters stands out. To do so its clusters would have to be clearer than those "
            f"of random tables without groups by {HOW_MANY.clear:g} standard deviations; the best reaches "
            f"{choice.clearness:.1f}." + near
        ]
    first = (
        f"{clusters}: rows belong to their clusters more clearly than in random tables without groups "
        f"({choice.clearness:.1f} standard deviations)."
    )
    if found.n_clusters != choice.best:
        first += f" {choice.best} would be clearer still, but no price of a cluster leads to that number."
    gaps = f"At least {choice.n_groups} groups are separated by clear gaps." if choice.n_groups > 1 else ""
    if choice.n_groups > found.n_clusters:  # "4 clusters" and "at least 6 groups" would not be believed together
        gaps = f"Clear gaps part them further, into at least {choice.n_groups} groups."
    if choice.furthest < choice.best == found.n_clusters:
        gaps = f"{choice.furthest} would stand out more, but {choice.least} groups are separated by clear gaps."
    next_best = f"The next best numbers are {listed(sorted(others[:2]))}." if len(others) > 1 else ""
    return [first, next_best, gaps, _price(found)]


def _price(found: Found) -> str:
    """A sentence on the prices."""
    if found.window is None or found.lam is None:
        return "No price of a cluster leads to this number, so lam_ is None."
    lo, hi = found.window
    if np.isinf(hi):
        return f"Any price of a cluster above {lo:.4g} leads to one cluster."
    if lo <= 0:
        return f"Any price of a cluster below {hi:.4g} leads to this number."
    return f"Any price of a cluster between {lo:.4g} and {hi:.4g} leads to this number."


class FoundShared(NamedTuple):
    """What a fit of groups has published."""

    weights: Array  # (K,)
    lams: tuple[float, float]  # local, global
    chosen: bool  # whether any of them was chosen from the rows
    users: Array  # (K,) groups that use each cluster
    n_groups: int


def explain_shared(found: FoundShared) -> str:
    """Two to five sentences on clusters that groups share."""
    local, top = found.lams
    K, T, J = found.users.size, int(found.users.sum()), found.n_groups
    origin = "chosen from the rows" if found.chosen else "as given"
    if J == 1:
        return together(
            f"{count(K, 'cluster')} at a price of {local + top:.4g} each (lam_local_ + lam_global_, {origin}).",
            "All rows are one group: DPMeans does the same, and says more of the number of clusters.",
            sizes(found.weights),
        )
    everyone, one = int((found.users == J).sum()), int((found.users == 1).sum())
    return together(
        f"{count(K, 'cluster')}, shared by {J} groups: a group uses {T / J:.2g} of them on average "
        f"({T} local clusters).",
        f"A cluster costs {top:.4g} once (lam_global_), and {local:.4g} in each group that uses it (lam_local_), "
        f"{origin}.",
        f"Every group uses {_some(everyone)}, and {_some(one)} {'is' if one < 2 else 'are'} used by one group only."
        if K > 1
        else "",
        sizes(found.weights),
    )


def _some(number: int) -> str:
    return str(number) if number else "none"
