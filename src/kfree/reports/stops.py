"""Where the slider stops: the same things in 1, 2, 3, ... clusters, with colours that stay from stop to stop."""

import warnings
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from kfree.estimators.dp_means import DPMeans
from kfree.families import Array
from kfree.reports.sampling import Sample
from kfree.reports.wording import NAME, clean, count, number

#: Every number of clusters up to this is a stop; beyond it each is so much larger than the one before.
_EVERY, _STEP = 24, 1.6
#: Stops go at least so far, and this much beyond what was found.
_FEW, _BEYOND = 12, 1.3


class Stop(NamedTuple):
    """One number of clusters."""

    labels: Array  # (m,) cluster of each thing, 0 to K-1
    sizes: Array  # (K,) what they weigh
    names: tuple[str, ...]  # K
    price: str  # a sentence on the prices for which this number is best
    shade: Array  # (K,) numbers of colours

    @property
    def n_clusters(self) -> int:
        """K."""
        return self.sizes.size


class Stops(NamedTuple):
    """All of them, fewest clusters first."""

    stops: tuple[Stop, ...]
    chosen: int  # place of the one that the model is
    weight: Array  # (m,) of the things
    noun: str  # what they are: "cluster"

    def shared(self, one: int, two: int) -> Array:
        """Weights (K, L) of what is in a cluster of one stop and a cluster of another."""
        return crossed(self.stops[one], self.stops[two], self.weight)


def crossed(one: Stop, two: Stop, weight: Array) -> Array:
    """Weights (K, L) of what is in a cluster of one and a cluster of the other."""
    table = np.zeros((one.n_clusters, two.n_clusters))
    np.add.at(table, (one.labels, two.labels), weight)
    return table


def with_colours(stops: list[Stop], chosen: int, weight: Array, noun: str) -> Stops:
    """Stops whose clusters keep the colour of what they mostly are; those of the chosen one are 0 to K-1."""
    found = dict(enumerate(stops))
    found[chosen] = stops[chosen]._replace(shade=np.arange(stops[chosen].n_clusters))
    for here, before in [(i, i - 1) for i in range(chosen + 1, len(stops))] + [
        (i, i + 1) for i in range(chosen - 1, -1, -1)
    ]:
        shared = crossed(found[before], found[here], weight)
        found[here] = found[here]._replace(shade=_inherited(shared, found[before].shade))
    return Stops(tuple(found[i] for i in range(len(stops))), chosen, weight, noun)


def _inherited(shared: Array, shade: Array) -> Array:
    """Colours of the clusters of a stop (columns) from those of its neighbour (rows); others are new."""
    here = np.full(shared.shape[1], -1)
    rows, columns = linear_sum_assignment(-shared)
    for row, column in zip(rows, columns):
        if shared[row, column] > 0:
            here[column] = shade[row]
    free = iter(np.setdiff1d(np.arange(shade.max() + 1 + here.size), shade))
    return np.array([next(free) if some < 0 else some for some in here])


def stops_of_rows(model: DPMeans, X: Any, sample: Sample, labels: Array, names: tuple[str, ...]) -> Stops:
    """The clusters of a sample for other numbers of them; where the model is, those it found.

    ``X`` and ``labels`` are those of the sample, ``names`` those of the model's clusters, empty if they have none.
    """
    window = model.lam_window_ if model.lam_ is not None else None
    sizes = np.bincount(labels, weights=sample.weight, minlength=len(names))
    found = {len(names): Stop(labels, sizes, names, price_words(window, "cluster"), np.empty(0))}
    for K in numbers_to_try(len(names), X.shape[0]):
        other = _clusters(model, X, sample, K, named=any(names))
        if other is not None:
            found[K] = other
    numbers = sorted(found)
    return with_colours([found[K] for K in numbers], numbers.index(len(names)), sample.weight, "cluster")


def numbers_to_try(found: int, most: int) -> list[int]:
    """Numbers of clusters beside the one that was found."""
    far = max(_FEW, found + 4, round(_BEYOND * found))
    numbers = list(range(1, min(far, _EVERY) + 1))
    while numbers[-1] * _STEP < found / _BEYOND:
        numbers.append(round(numbers[-1] * _STEP))
    return [K for K in sorted({*numbers, far}) if found != K < most]


def _clusters(model: DPMeans, X: Any, sample: Sample, K: int, *, named: bool) -> Stop | None:
    """Exactly so many clusters of a sample, by the divergence of the model; None if there are not as many."""
    other = DPMeans(
        n_clusters=K,
        divergence=model.divergence,
        weighting=model.weighting,
        smoothing=model.smoothing,
        smoothing_mean=model.smoothing_mean,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            other.fit(X, sample_weight=None if sample.whole else sample.weight)
        except ValueError:  # fewer different rows, a prior that draws them together, or numbers that have no squares
            return None
        if hasattr(model, "feature_names_in_"):  # the sample is an array, which has none
            other.feature_names_in_ = model.feature_names_in_
        names = tuple(clean(name, NAME) if named else "" for name in other._profile(X).names)
    return Stop(other.labels_, other.cluster_weights_, names, price_words(other.lam_window_, "cluster"), np.empty(0))


def choice_of(model: DPMeans, X: Any, sample: Sample) -> Any:
    """How clear each number of clusters is: the ``choice_`` of the model, or found by looking at the sample."""
    if model.choice_ is not None or X.shape[0] < 2:
        return model.choice_
    look = DPMeans(
        divergence=model.divergence,
        weighting=model.weighting,
        smoothing=model.smoothing,
        smoothing_mean=model.smoothing_mean,
    )
    with warnings.catch_warnings(), suppress(ValueError):  # too large or too small for squares
        warnings.simplefilter("ignore")
        return look.fit(X, sample_weight=None if sample.whole else sample.weight).choice_
    return None


def stops_of_topics(groups: list[Array], sizes: Array, names: list[str], prices: list[str]) -> Stops:
    """Topics merged step by step: ``groups`` has the group of each topic, fewest groups first, all topics last."""
    stops = []
    for group, price in zip(groups, prices):
        total = np.bincount(group, weights=sizes)
        heaviest = [int(np.flatnonzero(group == g)[sizes[group == g].argmax()]) for g in range(total.size)]
        merged = np.bincount(group)
        called = [
            names[k] if merged[g] == 1 else f"{names[k]} and {count(int(merged[g]) - 1, 'more topic')}"
            for g, k in enumerate(heaviest)
        ]
        stops.append(Stop(group, total, tuple(called), price, np.empty(0)))
    return with_colours(stops, len(stops) - 1, sizes, "topic")


def price_words(window: Any, noun: str) -> str:
    """A sentence on the prices for which a number of clusters is best."""
    if window is None or not window[0] < window[1]:
        return f"That number is best for no price of a {noun}."
    low, high = window
    if np.isinf(high):
        return f"Best where a {noun} costs more than {number(low)}."
    if low <= 0:
        return f"Best where a {noun} costs less than {number(high)}."
    return f"Best where a {noun} costs from {number(low)} to {number(high)}."
