"""Learning from batches: clusters keep their numbers, new ones are appended, nothing seen is kept but sums."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.assign import assign, make_centres
from kfree.inference.batch import BatchSettings, fit_batch, start_on_samples
from kfree.inference.init import global_centre
from kfree.inference.loop import Budget
from kfree.inference.table import Table, make_memory

# Rounds of opening in one batch: each covers what the one before left beyond lam.
_ROUNDS = 20


class Absorbed(NamedTuple):
    """Clusters after a batch."""

    mean: Array  # (K, p)
    total: Array  # (K, p) weighted sums of all rows seen
    mass: Array  # (K,)


def absorb(table: Table, mean: Array, total: Array, mass: Array, lam: float, most: float) -> Absorbed:
    """Open what a batch needs, then let all clusters move to the mean of everything they have seen."""
    geometry = table.geometry
    memory = make_memory(table.n)
    known = mean.shape[0]
    for _ in range(_ROUNDS):
        sums = assign(table, make_centres(geometry, mean), memory, lam)
        novel = np.flatnonzero(table.excess(memory.cost, lam) > 0)
        if not novel.size or mean.shape[0] >= most:
            break
        mean = np.concatenate([mean, _open(table, novel, lam, most - mean.shape[0])])
        memory.low[:] = -np.inf
    else:
        sums = assign(table, make_centres(geometry, mean), memory, lam)
    seen = mass.size
    total = np.concatenate([total, np.zeros((mean.shape[0] - seen, total.shape[1]))]) + sums.total
    mass = np.concatenate([mass, np.zeros(mean.shape[0] - seen)]) + sums.mass
    # a cluster opened in this batch may have lost all its rows to another one
    keep = np.flatnonzero((mass > 0) | (np.arange(mass.size) < known))
    held = mass[keep] > 0
    moved = mean[keep]
    moved[held] = geometry.centre(total[keep][held], mass[keep][held])
    return Absorbed(moved, total[keep], mass[keep])


def _open(table: Table, novel: Array, lam: float, room: float) -> Array:
    """Centres of the clusters that the rows beyond lam form among themselves."""
    weight = table.rows.weights(novel)
    sample = table.sample(novel, weight)
    start = make_centres(table.geometry, global_centre(sample))
    settings = BatchSettings(lam, 1e-3, 100, room, moves=True)
    centres, level = start_on_samples(sample, start, settings, Budget())
    return fit_batch(sample, centres, level, make_memory(sample.n), settings, Budget()).state.centres.mean
