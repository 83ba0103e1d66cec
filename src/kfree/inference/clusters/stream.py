"""Learning from batches: clusters keep their numbers, new ones are appended, nothing seen is kept but sums."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.clusters.assign import Centres, assign, loosen
from kfree.inference.clusters.batch import BatchSettings, fit_batch, start_on_samples
from kfree.inference.clusters.seeds import global_centre
from kfree.inference.clusters.table import Table, make_memory
from kfree.inference.loop import Budget

# Rounds of opening in one batch: each covers what the one before left beyond lam.
_ROUNDS = 20


class Absorbed(NamedTuple):
    """Clusters after a batch, and where its rows went."""

    mean: Array  # (K, p)
    total: Array  # (K, p) weighted sums of all rows seen
    mass: Array  # (K,)
    labels: Array  # (n,) int32, of the batch
    inertia: float  # weighted divergences of the batch from the final centres
    prior: float  # the prior's share in the objective
    complete: bool  # the budget sufficed to open all that was needed


def absorb(
    table: Table,
    mean: Array,
    total: Array,
    mass: Array,
    lam: float,
    most: float,
    publish: Callable[[Array], Array],
    budget: Budget,
) -> Absorbed:
    """Open what a batch needs, then let all clusters move to the mean of everything they have seen."""
    geometry, memory = table.geometry, make_memory(table.n)
    known, complete = mean.shape[0], True
    for _ in range(_ROUNDS):
        centres = Centres(geometry, mean)
        sums = assign(table, centres, memory, lam)
        if not sums.reach.max() > lam or mean.shape[0] >= most:  # weights and smoothing only make rows open less
            break
        if budget.spent:
            complete = False
            break
        novel = np.flatnonzero(table.excess(memory.cost, lam) > 0)
        if not novel.size:
            break
        table = table.hashed()
        mean = np.concatenate([mean, _open(table, novel, lam, most - mean.shape[0], budget)])
        memory.low[:] = -np.inf
    else:
        centres = Centres(geometry, mean)
        sums = assign(table, centres, memory, lam)
    grown = mean.shape[0] - mass.size
    total = np.concatenate([total, np.zeros((grown, total.shape[1]))]) + sums.total
    mass = np.concatenate([mass, np.zeros(grown)]) + sums.mass
    # a cluster opened in this batch may have lost all its rows to another one
    keep = np.flatnonzero((mass > 0) | (np.arange(mass.size) < known))
    total, mass, moved = total[keep], mass[keep], mean[keep]
    held = mass > 0
    moved[held] = geometry.centre(total[held], mass[held])
    after = Centres(geometry, publish(moved))
    if keep.size == mean.shape[0]:
        loosen(table, centres, after, keep, memory, sums.reach)
    else:
        memory.low[:] = -np.inf
    last = assign(table, after, memory)
    prior = float(geometry.prior_costs(after.mean, after.affine).sum())
    return Absorbed(after.mean, total, mass, memory.labels, last.cost, prior, complete)


def _open(table: Table, novel: Array, lam: float, room: float, budget: Budget) -> Array:
    """Centres of the clusters that the rows beyond lam form among themselves, as far as the budget goes."""
    weight = table.rows.weights(novel)
    sample = table.sample(novel, weight)
    start = Centres(table.geometry, global_centre(sample))
    settings = BatchSettings(lam, 1e-3, 100, room, moves=True)
    budget.best = None
    try:
        centres, level = start_on_samples(sample, start, settings, budget)
        return fit_batch(sample, centres, level, make_memory(sample.n), settings, budget).state.centres.mean
    except KeyboardInterrupt:
        budget.interrupted = True
        return start.mean[:0] if budget.best is None else budget.best.centres.mean
