"""Documents that stand for topics."""

import numpy as np

from kfree.families import Array
from kfree.rows import Documents

# Tokens of other topics that are added to every document before it is judged, in documents of median length: the share
# of a topic in a few tokens is hardly known.
_DOUBT = 0.25


def representatives(documents: Documents, shares: Array, n: int) -> Array:
    """(K, n) Documents with the largest share (D, K) of each topic, -1 where there are no more.

    They are looked for among those whose main topic it is, or among all if there is none. Shares of short documents
    count for less, and of several documents with the same words the first is taken.
    """
    found = np.full((shares.shape[1], n), -1)
    first = np.sort(np.unique(documents.hash(), return_index=True)[1])
    first = first[documents.length[first] > 0]
    if not first.size:
        return found
    length = documents.length[first]
    known = length / (length + _DOUBT * np.median(length))
    main = shares[first].argmax(axis=1)
    for k, share in enumerate(shares[first].T):
        own = np.flatnonzero(main == k) if (main == k).any() else np.arange(first.size)
        best = own[np.argsort(-(known * share)[own], kind="stable")[:n]]
        found[k, : best.size] = first[best]
    return found
