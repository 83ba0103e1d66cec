"""Whether there is a valley between two sides of a sample: the dip test on what lies nearest to the border."""

import numpy as np

from kfree.families import Array
from kfree.kernels import kernels

#: Rows there must be on each side of a valley.
FEWEST = 8
# sqrt(n) dip of uniform samples (simulated) and how often it is exceeded; beyond, a decade for every 0.083.
_QUANTILES = np.array([0.0, 0.371, 0.491, 0.529, 0.609, 0.692, 0.692 + 20 * 0.083])
_LOG_P = np.array([np.log10(2), np.log10(0.5), -1.0, np.log10(0.05), -2.0, -3.0, -23.0])


def p_values(sample: Array, value: Array, count: int) -> Array:
    """For each of some samples how often a unimodal one would show a valley at 0 like it; entries in any order."""
    order = np.lexsort((value, sample))
    return p_values_sorted(value[order], np.searchsorted(sample[order], np.arange(count + 1)))


def p_values_sorted(values: Array, edges: Array) -> Array:
    """The same for samples that are sorted, ``values[edges[s]:edges[s + 1]]``.

    Equally many values of both sides are looked at, those nearest to the border; with too few of them there is no
    telling (nan).
    """
    count = edges.size - 1
    sample = np.repeat(np.arange(count), np.diff(edges))
    border = edges[:-1] + np.bincount(sample[values < 0], minlength=count)
    side = np.minimum(border - edges[:-1], edges[1:] - border)
    side[side < FEWEST] = 0
    rank = np.arange(values.size) - border[sample]
    kept = values[(rank >= -side[sample]) & (rank < side[sample])]
    dips = np.empty(count)
    kernels().dip(kept, np.concatenate([[0], np.cumsum(2 * side)]), dips)
    return np.where(side > 0, 10 ** np.interp(np.sqrt(2 * side) * dips, _QUANTILES, _LOG_P), np.nan)


def discoveries(p: Array, rate: float) -> Array:
    """Benjamini & Hochberg (1995): hypotheses rejected at a false discovery rate."""
    if not p.size:
        return np.zeros(0, bool)
    ranked = np.sort(p)
    below = np.flatnonzero(ranked <= rate * np.arange(1, p.size + 1) / p.size)
    return p <= ranked[below[-1]] if below.size else np.zeros(p.size, bool)
