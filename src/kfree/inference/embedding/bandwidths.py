"""Bandwidths of a Gaussian kernel from the data."""

import numpy as np

from kfree.families import Array
from kfree.families.points import PointFamily
from kfree.inference.content import uniform
from kfree.inference.embedding.candidates import Sample
from kfree.inference.embedding.embedding_numbers import EMBEDDING
from kfree.rows.threads import cut


def squared_bandwidth(family: PointFamily, sample: Sample, rule: str) -> float:
    """Half the median squared distance: of rows from their 20th neighbour ("local"), or of pairs ("median"); 0 if no
    rows differ."""
    value = _local(family, sample) if rule == "local" else _median(family, sample)
    return value or _median(family, sample)


def _local(family: PointFamily, sample: Sample) -> float:
    """Median over rows of the squared distance from the 20th neighbour, by weight."""
    some = sample.first(EMBEDDING.pairs)
    apart, alike = np.empty(some.weight.size), bool((sample.weight == sample.weight[0]).all())
    for span in cut(some.weight.size, max(1, EMBEDDING.entries // sample.weight.size)):
        squares = family.apart(some.seen[span], sample.seen)
        if alike:  # the so-maniest neighbour of every row
            nth = int(np.argmax(np.cumsum(sample.weight) > _nth(sample) * (1 - 1e-9)))
            apart[span] = np.partition(squares, nth, axis=1)[:, nth]
            continue
        order = np.argsort(squares, axis=1, kind="stable")
        # the row itself is the first; a heavy row is as many neighbours as it weighs
        reached = np.cumsum(sample.weight[order], axis=1) > _nth(sample) * (1 - 1e-9)
        place = np.where(reached.any(axis=1), reached.argmax(axis=1), order.shape[1] - 1)
        rows = np.arange(len(squares))
        apart[span] = squares[rows, order[rows, place]]
    return 0.5 * _weighted_median(apart, some.weight)


def _nth(sample: Sample) -> float:
    """Weight within which the neighbour that counts is: of few rows, half of them."""
    weight = float(sample.weight.sum())
    return min(EMBEDDING.neighbour * weight / sample.weight.size, 0.5 * weight)


def _median(family: PointFamily, sample: Sample) -> float:
    """Median squared distance of pairs of rows, each with another one."""
    n = sample.weight.size
    if n < 2:
        return 0.0
    count = min(EMBEDDING.pairs, n * (n - 1) // 2)
    if count < EMBEDDING.pairs:
        first, second = np.triu_indices(n, 1)
    else:
        seeds = np.arange(count, dtype=np.uint64)
        first = (uniform(seeds, 1) * n).astype(np.intp)
        second = (first + 1 + (uniform(seeds, 2) * (n - 1)).astype(np.intp)) % n
    apart = family.paired(sample.seen[first], sample.seen[second])
    weight = sample.weight[first] * sample.weight[second]
    positive = apart > 0
    if not positive.any():
        return 0.0
    median = _weighted_median(apart, weight)
    return 0.5 * (median or _weighted_median(apart[positive], weight[positive]))


def _weighted_median(values: Array, weight: Array) -> float:
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weight[order])
    low = int(np.searchsorted(share, 0.5 * share[-1] * (1 - 1e-12)))
    high = int(np.searchsorted(share, 0.5 * share[-1] * (1 + 1e-12), side="right"))
    return float(0.5 * (values[order[low]] + values[order[min(high, order.size - 1)]]))
