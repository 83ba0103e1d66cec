"""The row of each cluster that would open one of its own first."""

import numpy as np


def farthest(cost, unit, alone, lam, labels, hashes, rows, excess):
    """Row whose cost exceeds its threshold most, and the excess, in each cluster; left as given where none does.

    The excess is ``unit * cost - lam - alone`` (``unit``, ``alone`` of length 0: ones, zeros).
    Ties: smaller hash, then lower index.
    """
    one = unit * np.where(unit > 0, cost, 0.0) if unit.size else cost
    e = one - (alone if alone.size else 0.0) - lam
    for i in np.lexsort((-np.arange(e.size), ~hashes, e)):
        if e[i] > 0:
            rows[labels[i]], excess[labels[i]] = i, e[i]
