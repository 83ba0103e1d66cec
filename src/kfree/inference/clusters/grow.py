"""GROW: assign all rows, open clusters at the farthest ones, move the centres; repeat.

Over-opening comes from opening again before a new centre has moved to the mean of its cluster, not from opening
several at once: so one row per cluster opens, and then come a few plain passes.
"""

from typing import NamedTuple

import numpy as np

from kfree.families import Array, Geometry
from kfree.inference.clusters.centres import Centres, Sums
from kfree.inference.clusters.cluster_numbers import CLUSTERS
from kfree.inference.clusters.labelling import Clustering, Labelling
from kfree.inference.goal import Goal
from kfree.inference.labels import compact
from kfree.inference.loop import Budget, Info, Outcome, run


class Grown(NamedTuple):
    """State between two passes."""

    clustering: Clustering
    pause: int  # plain passes since the last opening

    @property
    def centres(self) -> Centres:
        """The centres."""
        return self.clustering.centres


class Phase(NamedTuple):
    """A part of a fit."""

    name: str
    guard: float | None = np.inf  # objective that its first pass must not exceed; None where it may rise


def grow(
    labelling: Labelling, centres: Centres, goal: Goal, budget: Budget, phase: Phase, *, delayed: bool = False
) -> Outcome:
    """Run GROW to its end; the outcome's state is a Clustering.

    ``delayed``: one row opens in a pass, the farthest of all, and no pass goes by without (Dinari & Freifeld 2022).
    """
    opening = Opening(0, True) if delayed else Opening(CLUSTERS.pause, False)
    made = 0

    def step(state: Grown) -> tuple[Grown, Info]:
        nonlocal made
        state, info = _pass(labelling, state, goal, opening, goal.max_iter - made, budget)
        made += len(info.earlier) + 1
        return state, info

    start = Grown(Clustering(centres, labelling), opening.pause)
    outcome = run(step, start, budget, phase=phase.name, tol=goal.tol, max_iter=goal.max_iter, guard=phase.guard)
    return outcome._replace(state=outcome.state.clustering)


class Opening(NamedTuple):
    """How clusters open."""

    pause: int  # plain passes between two openings
    one_at_a_time: bool  # only the farthest row of all opens


def _pass(
    labelling: Labelling, state: Grown, goal: Goal, opening: Opening, room: int, budget: Budget
) -> tuple[Grown, Info]:
    """One pass, and before it those in which nothing but the means moves, if they can be made in one call."""
    state, earlier, sums = _plain_passes(labelling, state, goal, opening, room)
    if sums is None:
        sums = labelling.assign(state.centres, goal.lam)
    K = int(np.count_nonzero(sums.mass > 0))
    objective = penalised(labelling.geometry, state.centres, sums, goal.lam)
    changed = sums.changed / labelling.total_weight
    openers = None
    if goal.max_clusters > K and (state.pause >= opening.pause or changed <= goal.tol):
        openers = labelling.openers(goal.lam, sums.reach, opening.one_at_a_time, budget)
        openers = openers[: int(min(goal.max_clusters - K, len(openers)))]
    opened = 0 if openers is None else len(openers)
    total, mass = labelling.open(openers, len(sums.mass)) if opened else (sums.total, sums.mass)
    centres = update(labelling, state.centres, total, mass, sums.reach)
    scale = rounding_scale(labelling.geometry, labelling.total_weight, state.centres, sums)
    info = Info(objective, scale, changed, opened, K, earlier)
    if opened or centres.mean.shape != state.centres.mean.shape:
        return Grown(Clustering(centres, labelling), 0 if opened else state.pause + 1), info
    moved = not np.array_equal(centres.mean, state.centres.mean)
    return Grown(Clustering(centres, labelling, sums, moved), state.pause + 1), info


def _plain_passes(
    labelling: Labelling, state: Grown, goal: Goal, opening: Opening, room: int
) -> tuple[Grown, tuple[Info, ...], Sums | None]:
    """Passes in which nothing opens or vanishes, as many as can be made in one call.

    Returns the state after them, what is to be told of them, and the sums of the assignment to the centres of that
    state, if it has been made.
    """
    K, weight = state.centres.mean.shape[0], labelling.total_weight
    rule = state.pause, opening.pause, goal.tol, bool(goal.max_clusters > K)
    done = labelling.plain_passes(state.centres, goal.lam, rule, room)
    if done is None:
        return state, (), None
    lines = done.trace[: len(done.trace) - (done.last is not None)].tolist()
    penalty = goal.lam * K if np.isfinite(goal.lam) else 0.0
    told = tuple(Info(cost + penalty, _scale(weight, cost, size), moved / weight, 0, K) for cost, moved, size in lines)
    centres = Centres(labelling.geometry, done.mean)
    return Grown(Clustering(centres, labelling), state.pause + len(told)), told, done.last


def penalised(geometry: Geometry, centres: Centres, sums: Sums, lam: float) -> float:
    """The objective of an assignment: costs, the prior's share, and lam for every cluster that holds weight."""
    held = sums.mass > 0
    penalty = lam * np.count_nonzero(held) if np.isfinite(lam) else 0.0
    if not geometry.eta:
        return float(sums.cost + penalty)
    prior = float(geometry.prior_costs(centres.mean, centres.affine)[held].sum())
    return float(sums.cost + prior + penalty)


def rounding_scale(geometry: Geometry, weight: float, centres: Centres, sums: Sums) -> float:
    """Magnitude that the rounding of an objective of rows of so much weight scales with."""
    scale = _scale(weight, sums.cost, centres.affine.size)
    if not geometry.eta:
        return scale
    return scale + float((1e-4 * geometry.prior_magnitude(centres.affine) + 1e-6 * geometry.eta).sum())


def _scale(weight: float, cost: float, size: float) -> float:
    # the guard allows 1e-9 of this; shares that should sum to 1 do so up to rounding, however small a divergence is
    return cost + weight * (1e-4 * size + 1e-6)


def update(labelling: Labelling, centres: Centres, total: Array, mass: Array, reach: Array) -> Centres:
    """Drop clusters without weight and move the rest to their best centres; labels and bounds follow.

    ``reach`` holds the largest cost in each of the clusters that ``centres`` are of.
    """
    held = np.flatnonzero(mass > 0)
    if held.size < mass.size:
        labelling.relabel(compact(mass > 0), np.flatnonzero(mass == 0))
    kept = held[held < centres.mean.shape[0]]
    after = centres.moved(labelling.geometry.centre(total[held], mass[held]), kept)
    labelling.loosen(centres, after, kept, reach)
    return after
