"""Sums of rows by label that do not depend on the order in which rows are added.

An entry times a power of two (the ``inverse`` of its column) is below 1. It is cut in a multiple of 2^-36, one of 2^-72
and so on, and whole numbers of these are added up: ``limbs`` of 36 bits, lowest first. The last column holds weights.
"""

import numpy as np
import scipy.sparse as sp

from kfree.kernels.reference.rows.sums import _csr, _dense

_BITS = 36


def _whole_parts(value, count=2):
    """The parts of entries, as whole numbers of 2^-36, 2^-72, ..."""
    parts = []
    for _ in range(count):
        value = value * 2.0**_BITS
        parts.append(np.rint(value).astype(np.int64))
        value = value - parts[-1]
    return parts


def _carry(limbs):
    for place in range(len(limbs) - 1):
        limbs[place + 1] += limbs[place] >> _BITS
        limbs[place] &= (1 << _BITS) - 1


def _move(x, rows, scale, weight, before, labels, ledger):
    inverse, whole, parts, limbs, _ = ledger
    if weight.size and not weight[rows].all():
        held = weight[rows] > 0
        x, rows, before, labels = x[held], rows[held], before[held], labels[held]
    w = weight[rows] if weight.size else np.ones(rows.size)
    s = scale[rows] if scale.size else np.ones(rows.size)
    factor, mass = (s, np.ones(rows.size)) if whole else (w * s, w)
    entries = np.concatenate([x * factor[:, None], mass[:, None]], axis=1) * inverse
    times = w.astype(np.int64)[:, None] if whole else 1
    for place, part in enumerate(reversed(_whole_parts(entries, len(parts)))):
        for here, sign in ((labels, 1), (before, -1)):
            moved = (labels != before) & (here >= 0)
            np.add.at(limbs[place], here[moved], sign * (part * times)[moved])
    _carry(limbs)


def move_dense(X, rows, shift, scale, weight, before, labels, ledger):
    """Take rows whose label has changed out of the sums of the label before and add them to those of the new one (-1:
    none). A row counts as w t(x) and, in the last column, w.

    ``ledger`` holds the inverses of the columns; whether weights are whole, so that parts are multiplied by them as if
    there were so many copies (else entries are, before they are cut); parts (what has been added, exactly, but is not
    in the limbs yet: here nothing), limbs, and the weight of what is in the parts.
    """
    _move(_dense(X, rows, shift, np.empty(0)), rows, scale, weight, before, labels, ledger)


def move_csr(data, indices, indptr, rows, scale, weight, before, labels, ledger):
    """The same for compressed sparse rows."""
    x = _csr(data, indices, indptr, rows, np.empty(0), ledger[3].shape[2] - 1)
    _move(x, rows, scale, weight, before, labels, ledger)


def carry_sums(ledger):
    """Bring what is in the parts to the limbs."""
    _, _, parts, limbs, held = ledger
    for place, part in enumerate(parts[::-1]):
        limbs[place] += np.rint(part * 2.0 ** (_BITS * (len(parts) - place))).astype(np.int64)
    _carry(limbs)
    parts[:], held[:] = 0.0, 0


def read_sums(ledger, total, mass):
    """Sums and weights as numbers; what is in the parts is brought to the limbs first."""
    carry_sums(ledger)
    *lower, middle, high = ledger[3]
    value = (high * 2.0**_BITS + middle) * 2.0**-_BITS
    for place, limb in enumerate(reversed(lower), start=2):
        value = value + limb * 2.0 ** (-place * _BITS)
    value = value / ledger[0]
    total[:], mass[:] = value[:, :-1], value[:, -1]


def sum_costs(weight, cost, whole, inverse):
    """The weighted sum of costs, each of which times ``inverse`` is below 1, in limbs."""
    w = weight if weight.size else np.ones(cost.size)
    w, cost = w[w > 0], cost[w > 0]
    coarse, fine = _whole_parts((cost if whole else w * cost) * inverse)
    times = w.astype(np.int64) if whole else 1
    limbs = [int((fine * times).sum()), int((coarse * times).sum()), 0]
    _carry(limbs)
    return tuple(limbs)


def extent_dense(X, rows, scale, least, largest, finest):
    """Lower ``least`` and raise ``largest`` to the extremes of each column of rows times their scales, and lower
    ``finest`` to the smallest size of an entry that is not 0."""
    x = _dense(X, rows, np.zeros(X.shape[1]), scale)
    np.minimum(least, x.min(axis=0, initial=np.inf), out=least)
    np.maximum(largest, x.max(axis=0, initial=-np.inf), out=largest)
    np.minimum(finest, np.abs(x).min(axis=0, where=x != 0, initial=np.inf), out=finest)


def extent_csr(data, indices, indptr, rows, scale, least, largest, finest):
    """The same for the stored entries of compressed sparse rows."""
    x = sp.csr_matrix((data, indices, indptr), shape=(indptr.size - 1, least.size))[rows]
    values = x.data * np.repeat(scale[rows], np.diff(x.indptr)) if scale.size else x.data.astype(float)
    np.minimum.at(least, x.indices, values)
    np.maximum.at(largest, x.indices, values)
    np.minimum.at(finest, x.indices, np.where(values != 0, np.abs(values), np.inf))
