"""Rows that stand for others: chosen by keys that depend on nothing but where a row is among all."""

import numpy as np

from kfree.kernels.splitmix import mix


def key_rows(X, centre, unit, key):
    """Numbers that look like chance, one for each distance from a centre; distances are told apart in steps of
    ``1 / unit``, so that rounding does not change them, nor a rotation."""
    steps = np.minimum(np.sqrt(((X - centre) ** 2).sum(axis=1)) * unit, 2.0**62)
    key[:] = mix(steps.astype(np.int64).astype(np.uint64)) >> np.uint64(32)


def sample_rows(X, weight, key, start, stop, total, most, merged, first, chosen, n):
    """The rows of slices, and their weights; of slices with more than ``most`` rows those with the ``most`` least keys,
    their weights scaled to the slice's ``total``. Copies are chosen as one row (of slices that are taken whole only if
    they are to be ``merged``). Those of slice t are written from place ``first[t]`` on."""
    place = 0
    for t in range(start.shape[0]):
        own = np.arange(start[t], stop[t])
        whole = own.size <= most
        if not whole or merged:
            order = np.argsort(key[own], kind="stable")
            own = own[order[key[own][order] <= np.unique(key[own])[:most][-1]]]
        w = weight[own] if weight.size else np.ones(own.size)
        if own.size < stop[t] - start[t]:
            w = w * (total[t] / w.sum())
        first[t] = place
        for row, mass in zip(own, w):
            last = chosen[place - 1]
            if place > first[t] and (merged or not whole) and (X[row] == X[last]).all():
                n[place - 1] += mass
            else:
                chosen[place], n[place] = row, mass
                place += 1
    first[-1] = place
