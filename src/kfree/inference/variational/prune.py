"""Removing components that do not pay: while nodes were coarse, some may have been made for what nodes mixed up."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.families.conjugate import take
from kfree.inference.variational.forms import soften
from kfree.inference.variational.mixture import Mixture, Setting, arranged, best_mixture
from kfree.inference.variational.sweep import Swept
from kfree.rows import Tied

# Updates of the others before a removal is judged.
_UPDATES = 5
# Times its own divergence, or nats per row and column, that the rows of a component may lose at first if it is to be
# tried without it.
_HOPE, _SLIGHT = 3.0, 0.1


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
    slight = _SLIGHT * tied.mean.shape[1] * (resp[:-1] @ tied.n)
    loss = np.empty(mixture.size)
    for c in range(mixture.size):
        loss[c] = tied.n @ (lse - soften(np.delete(scores, c, axis=1)).lse)
    own = setting.divergence(mixture.params)
    doubtful = np.flatnonzero(loss < np.maximum(_HOPE * own, slight))
    return doubtful[np.argsort((loss - own)[doubtful], kind="stable")]


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
