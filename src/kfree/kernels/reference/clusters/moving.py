"""Rows that are taken out of their clusters: what they leave behind, and where they go."""

import numpy as np


def less(whole, part, tiny):
    """What is left of nothing is nothing, not rounding."""
    rest = whole - part
    return np.where(np.abs(rest) > tiny * np.abs(part), rest, 0.0)


def destination(home, rise, lam, gain, most, count):
    """The cluster that a row moves to, where its ``rise`` (K,) is least, or an empty one for lam if that is less and
    there are not ``most`` clusters yet; -1 if it gains no more by that than ``gain`` of what is at stake and stays
    where it costs ``home``.

    One more than there are if it would be alone and no cluster is empty.
    """
    best, room = int(rise.argmin()), np.count_nonzero(count) < most
    option = min(rise[best], lam) if room else rise[best]
    if home == np.inf or not option < home - gain * (home + (lam if np.isfinite(lam) else 0.0)):
        return -1
    if rise[best] < np.inf and not (rise[best] > lam and room):
        return best
    return int(np.append(count, 0).argmin())
