"""Rows that are taken out of their clusters: what they leave behind, and where they go."""

from kfree.kernels.compiled.cache import njit


@njit(nogil=True, cache=True)
def less(whole, part, tiny):
    """What is left of nothing is nothing, not rounding."""
    rest = whole - part
    return rest if abs(rest) > tiny * abs(part) else 0.0


@njit(nogil=True, cache=True)
def destination(home, best, least, lam, gain, room, count):
    """The cluster that a row moves to: ``best``, where it costs ``least``, or an empty one for lam, if there is room;
    -1 if it gains no more by that than ``gain`` of what is at stake and stays where it costs ``home``.

    One more than there are if it would be alone and no cluster is empty.
    """
    option = min(least, lam) if room else least
    if not option < home - gain * (home + (lam if lam < float("inf") else 0.0)):
        return -1
    if best >= 0 and not (least > lam and room):
        return best
    for k in range(count.shape[0]):
        if count[k] == 0:
            return k
    return count.shape[0]
