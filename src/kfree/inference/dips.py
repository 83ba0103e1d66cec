"""The dip test of Hartigan & Hartigan (1985): is there a valley in some numbers?"""

import numpy as np

from kfree.families import Array
from kfree.kernels import kernels

#: Valleys that may be found where there are none: a share of all tests, or (in many tests) of all that are found.
RATE = 0.02
#: Rows there must be on each side of a valley, and in a group.
FEWEST = 8
#: sqrt(n) dip of uniform samples (simulated) and how often it is exceeded; beyond, a decade for every 0.083.
_QUANTILES = np.array([0.0, 0.371, 0.491, 0.529, 0.609, 0.692, 0.692 + 20 * 0.083])
_LOG_P = np.array([np.log10(2), np.log10(0.5), -1.0, np.log10(0.05), -2.0, -3.0, -23.0])


def valley_chances(t: Array, edges: Array) -> Array:
    """How often a unimodal density would show a valley like that at 0 in each of some lists of numbers, one after the
    other and sorted; on equally many of both signs, those nearest to 0."""
    count = edges.size - 1
    which = np.repeat(np.arange(count), np.diff(edges))
    border = edges[:-1] + np.bincount(which[t < 0], minlength=count)
    side = np.minimum(border - edges[:-1], edges[1:] - border)
    side[side < FEWEST] = 0
    rank = np.arange(t.size) - border[which]
    kept = t[(rank >= -side[which]) & (rank < side[which])]
    dips = np.empty(count)
    kernels().dip(kept, np.concatenate([[0], np.cumsum(2 * side)]), dips)
    return np.where(side > 0, 10 ** np.interp(np.sqrt(2 * side) * dips, _QUANTILES, _LOG_P), 1.0)
