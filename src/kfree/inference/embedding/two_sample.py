"""Do two tables come from one distribution? The distance of their kernel means, and how often chance is as large."""

from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.families.points import Kernel, PointFamily
from kfree.inference.embedding.embedding_numbers import EMBEDDING
from kfree.rows.threads import cut, over


class Comparison(NamedTuple):
    """What a comparison of two tables found."""

    statistic: float  # squared distance of their kernel means, each row with itself included
    pvalue: float  # share of the permutations of all rows, this one included, whose statistic is as large
    n_rows: tuple[int, int]


def permutation_test(
    family: PointFamily, kernel: Kernel, rows: Any, n: int, count: int, rng: np.random.Generator
) -> Comparison:
    """Compare the first n rows with the others, as the kernel sees them.

    Nothing but which rows belong to which table differs between permutations, so that under the hypothesis all are
    alike and the level is exact: the kernel must not know which rows are which, either.
    """
    m = rows.shape[0] - n
    signs = np.concatenate([np.full(n, 1 / n), np.full(m, -1 / m)])
    statistics = []
    for start in range(0, count + 1, EMBEDDING.permuted):
        some = range(start, min(start + EMBEDDING.permuted, count + 1))
        columns = np.stack([signs if i == 0 else rng.permutation(signs) for i in some], axis=1)
        statistics.append(_statistics(family, kernel, rows, columns))
    value = np.concatenate(statistics)
    # statistics are differences of means of the kernel
    rounding = EMBEDDING.rounding * float(family.own(rows).mean())
    as_large = int((value[1:] >= value[0] - rounding).sum())
    return Comparison(float(max(value[0], 0.0)), (1 + as_large) / (1 + count), (n, m))


def _statistics(family: PointFamily, kernel: Kernel, rows: Any, signs: Array) -> Array:
    """s' K s for columns s, a block of rows of K at a time."""
    N = rows.shape[0]

    def of_span(span: slice) -> Array:
        return ((family.between(kernel, rows[span], rows) @ signs) * signs[span]).sum(axis=0)

    return np.asarray(sum(over(cut(N, max(16, EMBEDDING.entries // N)), of_span, float(N) * N)))
