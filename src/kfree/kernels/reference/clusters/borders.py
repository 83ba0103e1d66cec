"""Rows between pairs of clusters."""

import numpy as np


def three_least(products, offset, first, least):
    """The least of ``offset[k] - products[i, k]``, rising, ties by index: as many as ``first`` has columns."""
    values = offset - products
    first[:] = np.argsort(values, axis=1, kind="stable")[:, : first.shape[1]]
    least[:] = np.take_along_axis(values, first.astype(np.intp), axis=1)


def rows_of_pairs(first, least, pairs, start, incident, edges, rows, third):
    """For each pair the rows that have a or b among their ``first`` centres, and their ``third``: the cost of the
    first centre that is neither (+inf if there is none).

    Rows come by pair and side, rising: those whose first centre is a, then b, then another; ``edges`` (3 P + 1)
    bounds these parts. ``incident[start[k]:start[k + 1]]`` are the pairs that centre k is in.
    """
    filled = 0
    edges[0] = 0
    for e, (a, b) in enumerate(pairs):
        near = ((first == a) | (first == b)).any(axis=1)
        side = np.where(first[:, 0] == a, 0, np.where(first[:, 0] == b, 1, 2))
        for s in range(3):
            found = np.flatnonzero(near & (side == s))
            part = slice(filled, filled + found.size)
            rows[part] = found
            neither = (first[found] != a) & (first[found] != b)
            third[part] = np.where(neither, least[found], np.inf).min(axis=1, initial=np.inf)
            filled += found.size
            edges[3 * e + s + 1] = filled


def sort_segments(edges, values):
    """Sort each segment ``values[edges[s]:edges[s + 1]]`` in place."""
    for s in range(edges.size - 1):
        values[edges[s] : edges[s + 1]].sort()


def lower_medians(values, start, stop, medians):
    """Lower median of each segment ``values[start[s]:stop[s]]``; left as given where it is empty."""
    for s in range(start.size):
        segment = np.sort(values[start[s] : stop[s]])
        if segment.size:
            medians[s] = segment[(segment.size - 1) // 2]
