"""Samples of partitions: which rows are together, and the partition that is nearest to all of them.

Sums are of whole numbers, so that they are the same in any order.
"""

import numpy as np


def together(labels, first, second, counts):
    """In how many samples, the columns of labels, a row of ``first`` has the label of a row of ``second``."""
    for place, row in enumerate(first):
        counts[place] = (labels[second] == labels[row]).sum(axis=1)


def overlaps(candidates, samples, weight, value, total):
    """For each candidate the sum of ``value[n_ab]`` over clusters a of its own and b of each sample, n_ab rows in
    both; ``value[0] = 0``. Samples count ``weight`` times."""
    for c, mine in enumerate(candidates):
        total[c] = 0
        for other, times in zip(samples, weight):
            pairs = mine.astype(np.int64) * (other.max(initial=0) + 1) + other
            total[c] += times * value[np.bincount(pairs)].sum()


def improve_partition(ids, weight, gain, labels, sizes, counts):
    """One pass in which each row goes where the expected loss is least; returns how many rows have moved.

    With n_a rows in cluster a, n_at of them also in cluster t of a sample, the loss is the sum over samples of
    ``weight * (sum_a f(n_a) - 2 sum_at f(n_at))``, and ``gain[n] = f(n + 1) - f(n)``. The clusters of all samples are
    numbered through: ``ids[i]`` are those of row i. Among equals a row stays, or goes to the first. An empty cluster is
    one like the others, so K bounds how many there can be. ``sizes`` and ``counts`` are filled with n_a and n_at.
    """
    rows, every, moves = np.arange(labels.size), weight.sum(), 0
    sizes[:], counts[:] = np.bincount(labels, minlength=sizes.size), 0
    np.add.at(counts, (ids, labels[:, None]), 1)
    for i in rows:
        own, mine = labels[i], ids[i]
        sizes[own] -= 1
        counts[mine, own] -= 1
        cost = every * gain[sizes] - 2 * (weight[:, None] * gain[counts[mine]]).sum(axis=0)
        best = own if cost[own] == cost.min() else cost.argmin()
        moves += int(best != own)
        labels[i] = best
        sizes[best] += 1
        counts[mine, best] += 1
    return moves
