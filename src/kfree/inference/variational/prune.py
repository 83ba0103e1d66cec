"""Removing components that do not pay: while nodes were coarse, some may have been made for what nodes mixed up."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.families.conjugate import take
from kfree.inference.variational.expected_likelihood import soften
from kfree.inference.variational.posterior import Mixture, Setting, arranged, best_mixture
from kfree.inference.variational.sweep import Swept
from kfree.rows import Tied

# Updates of the others before a removal is judged.
_UPDATES = 5
# Times its own divergence, or nats per row and column, that the rows of a component may lose at first if it is to be
# tried without it.
_HOPE, _SLIGHT = 3.0, 0.1
# Shares of a component below this are not looked at when it is asked what would be lost without it.
_PART = 1e-6


class Pruned(NamedTuple):
    """A mixture on a table of tied rows."""

    mixture: Mixture
    swept: Swept
    energy: float
    origin: Array  # where its components came from


def prune(setting: Setting, tied: Tied, mixture: Mixture) -> Pruned:
    """Remove components for as long as that lowers the free energy."""
    state = Pruned(mixture, *mixture.sweep(setting, tied), np.arange(mixture.size))
    while state.mixture.size > 1:
        for c in _doubtful(setting, tied, state.mixture):
            lighter = _without(setting, tied, state, int(c))
            if lighter.energy < state.energy:
                state = lighter
                break
        else:
            break
    return state


def _doubtful(setting: Setting, tied: Tied, mixture: Mixture) -> Array:
    """Components that rows could do without, or nearly so; the least needed first."""
    scores = mixture.view(setting).scores(tied)
    resp, lse = soften(scores)
    mass = resp @ tied.n
    own, slight = setting.divergence(mixture.params), _SLIGHT * tied.mean.shape[1] * mass[:-1]
    enough = np.maximum(_HOPE * own, slight)
    loss = _at_least(tied.n, resp, mass)
    for c in np.flatnonzero(loss < enough):
        loss[c] = _loss(tied.n, scores, resp, lse, mass, int(c))
    doubtful = np.flatnonzero(loss < enough)
    return doubtful[np.argsort((loss - own)[doubtful], kind="stable")]


def _at_least(n: Array, resp: Array, mass: Array) -> Array:
    """A bound from below on what rows lose without a component: sum m' log(m' / m) over the others, m' = m + moved, is
    at most what moves times 1 + log(1 + moved / m)."""
    lightest = np.partition(mass, 1)[:2]
    lightest = np.where(mass[:-1] == lightest[0], lightest[1], lightest[0])  # of the others
    alone = -np.log(np.maximum(1.0 - resp[:-1], np.finfo(float).eps)) @ n
    return np.asarray(alone - mass[:-1] * (1.0 + np.log1p(mass[:-1] / (lightest + 1.0))))


def _loss(n: Array, scores: Array, resp: Array, lse: Array, mass: Array, c: int) -> float:
    """What rows lose without a component, about, if its weight goes to those that take its rows: of two that share a
    group neither is missed."""
    rows = np.flatnonzero(resp[c] > _PART)
    left, rest, weight = np.delete(scores[rows], c, axis=1), np.delete(mass, c), n[rows]
    moved = soften(left).resp @ (weight * resp[c, rows])
    lift = np.log1p(moved / (rest + 1.0))
    elsewhere = rest - np.delete(resp[:, rows] @ weight, c)
    return float(weight @ (lse[rows] - soften(left + lift).lse) - lift @ elsewhere)


def _without(setting: Setting, tied: Tied, state: Pruned, c: int) -> Pruned:
    """The state without a component, after a few updates of the others."""
    keep = np.delete(np.arange(state.mixture.size), c)
    sums = state.swept.sums.mass
    mixture, order = arranged(setting, take(state.mixture.params, keep), sums[keep], state.swept.tail + sums[c])
    origin = state.origin[keep][order]
    swept, energy = mixture.sweep(setting, tied)
    for left in range(_UPDATES, 0, -1):
        if energy < state.energy:
            break
        mixture, order = best_mixture(setting, swept)
        origin, last = origin[order], energy
        swept, energy = mixture.sweep(setting, tied)
        if energy - state.energy > left * (last - energy):  # updates gain less and less: it will not get there
            break
    return Pruned(mixture, swept, energy, origin)
