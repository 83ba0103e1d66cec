"""The row of each cluster that would open one of its own first."""

from kfree.kernels.compiled.cache import njit


@njit(nogil=True, cache=True)
def farthest(cost, unit, alone, lam, labels, hashes, rows, excess):  # noqa: D103
    for i in range(cost.shape[0]):
        k = labels[i]
        e = cost[i]
        if unit.shape[0]:
            e = e * unit[i] if unit[i] > 0 else 0.0
        if alone.shape[0]:
            e -= alone[i]
        e -= lam
        if e > excess[k] or (e == excess[k] and rows[k] >= 0 and hashes[i] < hashes[rows[k]]):
            excess[k] = e
            rows[k] = i
