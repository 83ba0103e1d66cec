"""What samples of partitions say: which rows are together, how many clusters, and one partition for all of them.

A sample is a row of an array (S, N) of labels 0 to K - 1, every one of them used; S samples, N rows.
"""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.gibbs.summary_numbers import SUMMARIES
from kfree.inference.loop import Budget, repeat
from kfree.kernels import kernels
from kfree.rows.threads import cut, over


class PointEstimate(NamedTuple):
    """A partition that stands for all samples."""

    labels: Array  # (N,) int32, clusters in the order in which they appear
    loss: float  # its expected loss; for "map" the variation of information


class _Distinct(NamedTuple):
    """Samples, each partition once."""

    labels: Array  # (U, N) int32, clusters in the order in which they appear
    times: Array  # (U,) int64 how often it was visited


def in_order_of_rows(samples: Array) -> Array:
    """(S, N) int32 The same partitions, each with its clusters in the order in which they appear."""
    return np.stack([_renumbered(labels) for labels in np.atleast_2d(samples)])


def _renumbered(labels: Array) -> Array:
    n = labels.size
    first = np.full(int(labels.max(initial=-1)) + 1, n)
    first[labels[::-1]] = np.arange(n - 1, -1, -1)  # of several rows the last one written stays: the first row
    rank = np.empty(first.size, np.int32)
    rank[np.argsort(first)] = np.arange(first.size, dtype=np.int32)
    return rank[labels]


def coclustering(samples: Array, rows: Array | None = None, others: Array | None = None) -> Array:
    """(n, m) How probable it is that a row of ``rows`` is in one cluster with a row of ``others``.

    All rows if not given; ``others`` are ``rows`` if not given. All pairs of N rows need 8 N^2 bytes.
    """
    first = np.arange(samples.shape[1]) if rows is None else np.ascontiguousarray(rows, np.int64)
    second = first if others is None else np.ascontiguousarray(others, np.int64)
    kind = np.uint8 if samples.max(initial=0) < 256 else np.int32
    labels = np.ascontiguousarray(samples.T, dtype=kind)
    share = np.empty((first.size, second.size))

    def fill(span: slice) -> None:
        counts = np.empty((span.stop - span.start, second.size), np.int32)
        kernels().together(labels, first[span], second, counts)
        np.divide(counts, samples.shape[0], out=share[span])

    list(over(cut(first.size, SUMMARIES.rows), fill, float(share.size) * samples.shape[0] / 64))
    return share


def posterior_of_count(counts: Array) -> tuple[Array, Array]:
    """Numbers of clusters (or features) that occur in samples, rising, and their probabilities."""
    values, times = np.unique(counts, return_counts=True)
    return values, times / times.sum()


def own_probability(labels: Array, samples: Array) -> Array:
    """(N,) How probable it is that a row is with another of its own cluster, mean over these.

    For a row that has a cluster of its own, how probable it is that it is alone.
    """
    own = _renumbered(labels)
    size, total = np.bincount(own)[own], np.zeros(own.size)
    for other in samples:
        other = other.astype(np.int64)
        pairs = own * (other.max() + 1) + other
        shared = np.bincount(pairs)[pairs]
        total += np.where(size > 1, (shared - 1) / np.maximum(size - 1, 1), np.bincount(other)[other] == 1)
    return total / samples.shape[0]


def expected_loss(labels: Array, samples: Array, loss: str) -> Array:
    r"""(C,) Mean over samples of the loss of each of some partitions (C, N).

    "binder": the share of pairs of rows that are together in one partition and apart in the other (Binder 1978).
    "vi": the variation of information in nats (Meila 2007), :math:`H(a) + H(b) - 2 I(a, b)`.
    """
    return _Losses(_distinct(samples), loss)(in_order_of_rows(labels))


def point_estimate(samples: Array, loss: str, log_posterior: Array | None = None) -> PointEstimate:
    """The partition that stands for all samples.

    "map" is the sample of largest log posterior. For "binder" and "vi" it is the one of least expected loss that was
    visited, improved one row at a time (to any of its clusters, or to one of its own) until no row gains
    (Wade & Ghahramani 2018; Dahl, Johnson & Mueller 2022).
    """
    if loss == "map":
        if log_posterior is None:
            raise ValueError("point_estimate='map' needs the log posterior of each sample.")
        labels = _renumbered(samples[int(np.argmax(log_posterior))])
        return PointEstimate(labels, float(expected_loss(labels, samples, "vi")[0]))
    distinct = _distinct(samples)
    measure = _Losses(distinct, loss)
    tried = _candidates(distinct)
    losses = measure(distinct.labels[tried])
    best = int(np.argmin(losses))
    start = distinct.labels[tried[best]]
    better = _improved(start, distinct, measure)
    after = float(measure(better[None])[0])
    return PointEstimate(better, after) if after < losses[best] else PointEstimate(start, float(losses[best]))


def _distinct(samples: Array) -> _Distinct:
    """Each partition once, in the order of the visits; if there is no memory for all, of some, evenly spread."""
    most = max(int(SUMMARIES.entries / max(samples.shape[1], 1)), 1)
    some = _spread(samples.shape[0], most)
    labels = in_order_of_rows(samples[some])
    seen: dict[bytes, int] = {}
    place = np.array([seen.setdefault(row.tobytes(), len(seen)) for row in labels])
    _, first, times = np.unique(place, return_index=True, return_counts=True)
    return _Distinct(labels[first], times.astype(np.int64))


def _spread(count: int, most: int) -> Array:
    """0 to count - 1, or as many of them as wanted, evenly spread."""
    return np.arange(count) if count <= most else np.unique(np.linspace(0, count - 1, most).astype(np.int64))


def _candidates(distinct: _Distinct) -> Array:
    """Partitions whose expected loss is measured: all, or as many as there is time for, evenly spread."""
    count, n = distinct.labels.shape
    return _spread(count, max(int(SUMMARIES.comparisons / max(count * n, 1)), 1))


def _values(loss: str, n: int, n_samples: int) -> tuple[Array, float]:
    """f(0), ..., f(n) as whole numbers, and how many of them are one: f(n) = n^2 (Binder) or n log n (VI).

    Both losses of two partitions are the sum of f over the clusters of each, less twice that over what they share.
    Sums of whole numbers do not depend on their order. They stay below 2^62.
    """
    count = np.arange(n + 1, dtype=np.int64)
    if loss == "binder":
        return count * count, 1.0
    if loss != "vi":
        raise ValueError(f"The loss is 'binder' or 'vi', got {loss!r}.")
    value = count * np.log(np.maximum(count, 1))
    unit = 2.0 ** np.floor(60 - np.log2(max(value[-1], 1.0) * max(n_samples, 1)))
    return np.round(value * unit).astype(np.int64), float(unit)


class _Losses:
    """Expected losses of partitions."""

    def __init__(self, distinct: _Distinct, loss: str) -> None:
        self._distinct, self._n = distinct, distinct.labels.shape[1]
        self._total = int(distinct.times.sum())
        self.value, self._unit = _values(loss, self._n, self._total)
        self._every = sum(int(t) * self._own(row) for t, row in zip(distinct.times, distinct.labels))
        # pairs of rows, each counted twice; or rows
        self._scale = max(self._n * (self._n - 1), 1) if loss == "binder" else self._n

    def _own(self, labels: Array) -> int:
        return int(self.value[np.bincount(labels)].sum())

    def __call__(self, candidates: Array) -> Array:
        """(C,) The expected loss of each of some partitions (C, N)."""
        d, overlap = self._distinct, np.empty(len(candidates), np.int64)

        def fill(span: slice) -> None:
            kernels().overlaps(candidates[span], d.labels, d.times, self.value, overlap[span])

        list(over(cut(len(candidates), SUMMARIES.candidates), fill, float(overlap.size) * d.labels.size))
        own = [self._total * self._own(row) for row in candidates]
        found = [mine + self._every - 2 * int(shared) for mine, shared in zip(own, overlap)]
        return np.array(found, float) / (self._unit * self._total * self._scale)


def _improved(start: Array, distinct: _Distinct, measure: _Losses) -> Array:
    """(N,) A partition in which no row gains by another label."""
    most = int(start.max()) + 1
    most = min(most + SUMMARIES.more_clusters + int(SUMMARIES.more_share * most), start.size)
    seen = _most_samples(distinct, most)
    ids, clusters = _numbered_through(seen.labels)
    labels, sizes = start.copy(), np.empty(most, np.int32)
    counts, gain = np.empty((clusters, most), np.int32), np.diff(measure.value)

    def one_pass(_: None) -> tuple[None, bool]:
        return None, kernels().improve_partition(ids, seen.times, gain, labels, sizes, counts) == 0

    repeat(one_pass, None, Budget(), most=SUMMARIES.passes)
    return _renumbered(labels)


def _most_samples(distinct: _Distinct, width: int) -> _Distinct:
    """As many samples as there is memory for, evenly spread."""
    total = np.cumsum(distinct.labels.max(axis=1) + 1.0) * width
    if total[-1] <= SUMMARIES.counts:
        return distinct
    count = len(distinct.labels)
    part = _spread(count, max(int(count * SUMMARIES.counts / total[-1]), 1))
    return _Distinct(distinct.labels[part], distinct.times[part])


def _numbered_through(labels: Array) -> tuple[Array, int]:
    """(N, S) int32 clusters of each row in all samples, with numbers of their own, and how many there are."""
    sizes = labels.max(axis=1).astype(np.int64) + 1
    start = np.cumsum(sizes) - sizes
    return np.ascontiguousarray((labels + start[:, None]).T, dtype=np.int32), int(sizes.sum())
