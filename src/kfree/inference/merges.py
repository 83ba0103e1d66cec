"""Which of many possible merges are made together."""

from collections.abc import Iterable

import numpy as np

from kfree.families import Array


def disjoint(pairs: Array, changes: Array, *, taken: Iterable[int] = (), most: float = np.inf) -> list[tuple[int, int]]:
    """Pairs (m, 2) to be merged: those that change the objective best first, each cluster once; none of ``taken``."""
    used, merges = set(taken), list[tuple[int, int]]()
    for a, b in pairs[np.lexsort((pairs[:, 1], pairs[:, 0], changes))].tolist():
        if len(merges) >= most:
            break
        if a not in used and b not in used:
            merges.append((a, b))
            used |= {a, b}
    return merges
