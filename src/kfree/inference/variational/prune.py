"""Removing components that do not pay: while nodes were coarse, some may have been made for what nodes mixed up."""

import numpy as np

from kfree.families import Array
from kfree.families.conjugate import take
from kfree.inference.loop import Budget, repeat
from kfree.inference.variational.expected_likelihood import soften
from kfree.inference.variational.posterior import MeasuredMixture, Setting, arranged, measure, updated
from kfree.inference.variational.variational_numbers import VARIATIONAL


def prune(setting: Setting, state: MeasuredMixture, budget: Budget) -> MeasuredMixture:
    """Remove components for as long as that lowers the free energy."""

    def step(state: MeasuredMixture) -> tuple[MeasuredMixture, bool]:
        for c in _doubtful(setting, state) if state.mixture.size > 1 else ():
            if budget.spent:
                break
            lighter = _without(setting, state, int(c), budget)
            if lighter.energy < state.energy:
                return lighter, False
        return state, True

    return repeat(step, state, budget)[0]


def _doubtful(setting: Setting, state: MeasuredMixture) -> Array:
    """Components that rows could do without, or nearly so; the least needed first."""
    n, scores = state.tied.n, state.view.scores(state.tied)
    resp, lse = soften(scores)
    mass = resp @ n
    own = setting.divergence(state.mixture.params)
    slight = VARIATIONAL.removal_slight * state.tied.mean.shape[1] * mass[:-1]
    enough = np.maximum(VARIATIONAL.removal_hope * own, slight)
    loss = least_loss(n, resp, mass)
    for c in np.flatnonzero(loss < enough):
        loss[c] = loss_without(n, scores, resp, lse, mass, int(c))
    doubtful = np.flatnonzero(loss < enough)
    return doubtful[np.argsort((loss - own)[doubtful], kind="stable")]


def least_loss(n: Array, resp: Array, mass: Array) -> Array:
    """A bound from below on what rows lose without a component: sum m' log(m' / m) over the others, m' = m + moved, is
    at most what moves times 1 + log(1 + moved / m)."""
    lightest = np.partition(mass, 1)[:2]
    lightest = np.where(mass[:-1] == lightest[0], lightest[1], lightest[0])  # of the others
    alone = -np.log(np.maximum(1.0 - resp[:-1], np.finfo(float).eps)) @ n
    return np.asarray(alone - mass[:-1] * (1.0 + np.log1p(mass[:-1] / (lightest + 1.0))))


def loss_without(n: Array, scores: Array, resp: Array, lse: Array, mass: Array, c: int) -> float:
    """What rows lose without a component, about, if its weight goes to those that take its rows: of two that share a
    group neither is missed."""
    rows = np.flatnonzero(resp[c] > VARIATIONAL.removal_share)
    left, rest, weight = np.delete(scores[rows], c, axis=1), np.delete(mass, c), n[rows]
    moved = soften(left).resp @ (weight * resp[c, rows])
    lift = np.log1p(moved / (rest + 1.0))
    elsewhere = rest - np.delete(resp[:, rows] @ weight, c)
    return float(weight @ (lse[rows] - soften(left + lift).lse) - lift @ elsewhere)


def _without(setting: Setting, state: MeasuredMixture, c: int, budget: Budget) -> MeasuredMixture:
    """The state without a component, after a few updates of the others."""
    keep, mass = np.delete(np.arange(state.mixture.size), c), state.swept.sums.mass
    mixture, order = arranged(setting, take(state.mixture.params, keep), mass[keep], state.swept.tail + mass[c])
    start = measure(setting, state.tied, mixture, state.names[keep][order])

    def step(at: tuple[MeasuredMixture, int]) -> tuple[tuple[MeasuredMixture, int], bool]:
        last, left = at
        after = updated(setting, last)
        # updates gain less and less: it will not get there
        hopeless = after.energy - state.energy > left * (last.energy - after.energy)
        return (after, left - 1), hopeless or after.energy < state.energy

    if start.energy < state.energy:
        return start
    updates = VARIATIONAL.removal_updates
    return repeat(step, (start, updates), budget, most=updates)[0][0]
