"""Powers and logarithms of rows."""

import numpy as np


def raise_rows(counts, first, last, factor, own, column, power, out, logs):
    """``out = value ** power`` for ``value = counts * factor + own * column`` of some rows, and sums of log value.

    What is not positive stays zero and has no logarithm: padded columns.
    """
    rows = slice(first, last)
    value = counts[rows] * factor + own[rows, None] * column
    there = value > 0
    value[~there] = 1.0
    logs[rows] = np.log(value).sum(axis=1, dtype=np.float64)
    out[rows] = np.where(there, value**power, 0.0)
