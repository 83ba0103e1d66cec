"""Where the slider stops: the same things in 1, 2, 3, ... clusters, with colours that stay from stop to stop."""

import time
import warnings
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from kfree.estimators.dp_means import DPMeans
from kfree.families import Array
from kfree.reports.asked import Asked
from kfree.reports.sampling import Sample
from kfree.reports.wording import NAME, clean, count, number

#: Every number of clusters up to this is a stop; beyond it each is so much larger than the one before.
_EVERY, _STEP = 24, 1.6
#: Entries of the rows that they are looked for in, columns that are left at least, and seconds that it may take.
_ENTRIES, _LEAST, _SECONDS = 100_000, 50, 20.0
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


class Look:
    """The rows and columns in which other numbers of clusters are looked for, and the time there is for it."""

    def __init__(self, asked: Asked, sample: Sample):
        X, spoken = asked.X, asked.spoken
        most = max(_LEAST, _ENTRIES // max(1, sample.rows.size))
        rows = X[sample.rows]
        self.columns = np.arange(X.shape[1]) if X.shape[1] <= most else np.sort(np.argsort(-_spread(rows))[:most])
        self.whole = self.columns.size == X.shape[1]
        self.X = rows if self.whole else rows[:, self.columns]
        self.weight = None if sample.whole else sample.weight
        self.spoken = [spoken[j] for j in self.columns] if spoken else ()
        self.names = np.array(asked.columns, dtype=object)[self.columns]
        self.model, self.end = asked.model, time.monotonic() + _SECONDS
        self._asked, self._rows = asked, sample.rows

    def called(self, row: int) -> str:
        """What tells a row of the sample from others."""
        return self._asked.in_short(int(self._rows[row]))

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() > self.end

    def fit(self, n_clusters: int | None) -> DPMeans | None:
        """So many clusters, or as many as there are, by the divergence of the model; None if that cannot be."""
        mean = self.model.smoothing_mean
        found = DPMeans(
            n_clusters=n_clusters,
            divergence=self.model.divergence,
            weighting=self.model.weighting,
            smoothing=self.model.smoothing,
            smoothing_mean=None if mean is None else np.asarray(mean)[self.columns],
            max_time=max(0.0, self.end - time.monotonic()),
        )
        with warnings.catch_warnings(), suppress(ValueError):
            # fewer different rows, a prior that draws them together, numbers that have no squares
            warnings.simplefilter("ignore")
            return found.fit(self.X, sample_weight=self.weight)
        return None


def _spread(X: Any) -> Array:
    """Variances of columns, in a unit of their own."""
    largest = float(abs(X).max()) or 1.0
    X = X / largest
    squares = X.multiply(X) if sp.issparse(X) else X * X
    return np.asarray(squares.mean(axis=0)).ravel() - np.asarray(X.mean(axis=0)).ravel() ** 2


def stops_of_rows(look: Look, sample: Sample, labels: Array, names: tuple[str, ...]) -> Stops:
    """The clusters of a sample for other numbers of them; where the model is, those it found.

    ``labels`` are those of the sample, ``names`` those of the model's clusters, empty if they have none.
    """
    window = look.model.lam_window_ if look.model.lam_ is not None else None
    sizes, K = np.bincount(labels, weights=sample.weight, minlength=len(names)), len(names)
    found = {K: Stop(labels, sizes, names, price_words(window, "cluster"), np.empty(0))}
    for number_of_clusters in sorted(numbers_to_try(K, labels.size), key=lambda some: abs(some - K)):
        other = None if look.over else look.fit(number_of_clusters)
        if other is not None and other.n_clusters_ == number_of_clusters:
            found[number_of_clusters] = _stop(look, other, named=any(names))
    numbers = sorted(found)
    return with_colours([found[some] for some in numbers], numbers.index(K), sample.weight, "cluster")


def _stop(look: Look, other: DPMeans, *, named: bool) -> Stop:
    """The stop of other clusters of the sample; prices are those of all columns."""
    names = ("",) * other.n_clusters_
    if named:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the sample is an array, whose columns have no names
            other.feature_names_in_ = look.names
            names = tuple(
                clean(name, NAME) for name in other._profile(look.X, spoken=look.spoken, called=look.called).names
            )
    price = price_words(other.lam_window_, "cluster") if look.whole else ""
    return Stop(other.labels_, other.cluster_weights_, names, price, np.empty(0))


def choice_of(look: Look) -> Any:
    """How clear each number of clusters is: the ``choice_`` of the model, or found by looking; None if unknown."""
    if look.model.choice_ is not None or look.over or look.X.shape[0] < 2:
        return look.model.choice_
    choice = getattr(look.fit(None), "choice_", None)
    return choice if choice is not None and choice.complete else None


def numbers_to_try(found: int, most: int) -> list[int]:
    """Numbers of clusters beside the one that was found."""
    far = max(_FEW, found + 4, round(_BEYOND * found))
    numbers = list(range(1, min(far, _EVERY) + 1))
    while numbers[-1] * _STEP < found / _BEYOND:
        numbers.append(round(numbers[-1] * _STEP))
    return [K for K in sorted({*numbers, far}) if found != K < most]


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
