"""Greedy growth: split the component whose split gains most, update everything, keep it if the free energy fell."""

from typing import NamedTuple

import numpy as np

from kfree.inference.loop import Budget, Info, Outcome, attempt, repeat, run
from kfree.inference.variational.partition import Partition, SingleRows
from kfree.inference.variational.posterior import (
    MeasuredMixture,
    Mixture,
    Setting,
    best_mixture,
    measure,
    size_of_sums,
    updated,
)
from kfree.inference.variational.prior_learning import Learner
from kfree.inference.variational.prune import prune
from kfree.inference.variational.split import Proposal, propose, split_mixture
from kfree.inference.variational.sweep import ExpectedSums, sums_of
from kfree.inference.variational.variational_numbers import VARIATIONAL
from kfree.rows import Summable


class GreedyGoal(NamedTuple):
    """What the user wants of a search."""

    n_candidates: int
    n_failed: int  # splits that may fail in a row
    max_components: float
    max_iter: int  # updates for each number of components
    tol: float  # fall of the free energy that counts, per row and column
    relative: bool = False  # whether it is a share of the free energy instead

    def enough(self, tied: Summable, energy: float) -> float:
        """The fall of the free energy that counts, in nats."""
        return self.tol * abs(energy) if self.relative else self.tol * tied.total * tied.columns


class FoundMixture(NamedTuple):
    """Result of a search."""

    mixture: Mixture
    energy: float  # on the rows or nodes the search ended with
    n_nodes: int  # of these
    trace: list[float]  # free energy after each update that was kept
    n_iter: int  # updates, those of failed splits included
    converged: bool
    setting: Setting  # with the prior that was learned, if it was
    penalty: float  # what that costs beside the free energy


class _Work(NamedTuple):
    """What a search works on and is bound by."""

    setting: Setting
    partition: Partition
    goal: GreedyGoal
    budget: Budget
    learner: Learner | None = None

    @property
    def penalty(self) -> float:
        """What a learned prior costs beside the free energy."""
        return 0.0 if self.learner is None else self.learner.penalty(self.setting)

    @property
    def hurried(self) -> bool:
        """Whether single rows are so many that splits are made together and settle only once growth has ended."""
        rows = self.partition.rows
        size = max(rows.size, rows.total)  # the same for copies
        return self.learner is not None and self.partition.fixed and size >= VARIATIONAL.auto_rows

    @property
    def together(self) -> bool:
        """Whether clear splits are made together."""
        return not self.partition.fixed or self.hurried

    @property
    def fine(self) -> float:
        """Share of a fall that counts that an update must gain, or it is the last."""
        return VARIATIONAL.fine if self.partition.fixed and not self.hurried else 1.0


class _GreedyState(NamedTuple):
    """What a search has come to."""

    best: MeasuredMixture
    trace: list[float]
    n_iter: int
    converged: bool  # whether the last updates met the tolerance
    named: int  # components that were ever given a name
    together: bool  # whether clear splits are made together
    known: dict[int, Proposal]  # splits of components by their names
    setting: Setting
    failed: int = 0  # splits that have failed in a row
    lean: MeasuredMixture | None = None  # the last that no component could be removed from
    learned_at: int = 0  # components when the prior was last moved
    rounds: int = 0  # times that growth has ended and the prior was moved

    def gain(self, c: int) -> float:
        """What the split of a component promises."""
        known = self.known.get(int(self.best.names[c]))
        return -np.inf if known is None else known.gain

    def after(self, outcome: Outcome, trace: list[float], penalty: float) -> "_GreedyState":
        """After updates that are kept, with what they add to the trace."""
        return self._replace(
            best=outcome.state,
            trace=[*self.trace, *(energy + penalty for energy in trace)],
            n_iter=self.n_iter + len(outcome.trace),
            converged=outcome.converged,
        )


def search(
    setting: Setting, partition: Partition, goal: GreedyGoal, budget: Budget, learner: Learner | None = None
) -> FoundMixture:
    """Grow a mixture from one component, from where the learner wants it with a prior that is learned."""
    work = _Work(setting, partition, goal, budget, learner)
    # made again if it is interrupted, so that there is something
    start = attempt(lambda: _one_component(work), lambda: _one_component(work), budget)
    trace = [start.energy + work.penalty]
    first = _GreedyState(start, trace, 0, False, start.names.size, work.together, {}, setting)
    growth = attempt(lambda: _learn_in_passing(work, _update(work, first)), lambda: first, budget)
    growth, _ = repeat(lambda growth: _round(work._replace(setting=growth.setting), growth), growth, budget)
    best, converged = growth.best, growth.converged and not budget.spent
    penalty = work._replace(setting=growth.setting).penalty
    return FoundMixture(
        best.mixture, best.energy, best.tied.size, growth.trace, growth.n_iter, converged, growth.setting, penalty
    )


def polish(
    setting: Setting, partition: Partition, found: FoundMixture, goal: GreedyGoal, budget: Budget
) -> FoundMixture:
    """Update a mixture that was found on another partition; a few updates are enough, converged or not."""
    if budget.spent:
        return found

    def on_rows() -> Outcome | None:
        start = measure(setting, partition.tied, found.mixture, np.arange(found.mixture.size))
        return _settle(_Work(setting, partition, goal, budget), start)

    outcome = attempt(on_rows, lambda: None, budget)
    if outcome is None or not outcome.trace:
        return found
    trace = [*found.trace, *(energy + found.penalty for energy in outcome.trace)]
    n_iter = found.n_iter + len(outcome.trace)
    return found._replace(mixture=outcome.state.mixture, energy=outcome.state.energy, trace=trace, n_iter=n_iter)


def close(
    setting: Setting, tied: Summable, found: FoundMixture, goal: GreedyGoal, budget: Budget, learner: Learner | None
) -> FoundMixture:
    """Update a mixture that was found in a sample of these rows, and move its prior, until the free energy of all of
    them falls no more; no component is added."""
    work = _Work(setting, SingleRows(tied), goal, budget, learner)

    def look() -> MeasuredMixture:
        return measure(setting, tied, found.mixture, np.arange(found.mixture.size))

    start = attempt(look, look, budget)  # made again if it is interrupted, so that there is something
    trace = [start.energy + work.penalty]
    growth = _update(work, _GreedyState(start, trace, 0, False, start.names.size, False, {}, setting))
    if learner is not None:
        growth = _learn(work, growth, VARIATIONAL.learn_at_end)
        growth = _update(work._replace(setting=growth.setting), growth)
    best, converged = growth.best, found.converged and growth.converged and not budget.spent
    n_iter, penalty = found.n_iter + growth.n_iter, work._replace(setting=growth.setting).penalty
    return FoundMixture(
        best.mixture, best.energy, found.n_nodes, growth.trace, n_iter, converged, growth.setting, penalty
    )


def _one_component(work: _Work) -> MeasuredMixture:
    """One component that has all rows."""
    setting, tied = work.setting, work.partition.tied
    sums = sums_of(tied, setting.family.form(setting.prior), np.ones((1, tied.size)))
    mixture, _ = best_mixture(setting, ExpectedSums(sums, 0.0, 0.0))
    return measure(setting, tied, mixture, np.arange(1))


def _settle(
    work: _Work, start: MeasuredMixture, target: float = np.inf, most: float = np.inf, passing: float = np.inf
) -> Outcome:
    """Update everything, at most so often, ``passing`` times in a hurry, until the free energy falls no more; or will
    not reach the target."""
    setting, partition, goal, budget, _ = work
    # what tied rows leave in doubt need not be known any better
    rough = VARIATIONAL.rough * partition.rough * start.tied.total
    enough = max(goal.enough(start.tied, start.energy) * work.fine, rough)
    hurried = 0  # updates of many single rows, which may take over on the way

    def step(state: MeasuredMixture) -> tuple[MeasuredMixture, Info]:
        nonlocal hurried
        mixture, order = best_mixture(setting, state.swept)
        view = mixture.view(setting)
        opened = partition.expand(view)
        after = measure(setting, partition.tied, mixture, state.names[order], view)
        scale = size_of_sums(setting, after) if after.energy > state.energy else 0.0  # only a rise asks for it
        fall = max(state.energy - after.energy, 0.0)
        hurried += work.hurried
        hopeless = state is not start and after.energy - target > VARIATIONAL.hopeless * fall
        if hopeless or hurried >= passing:
            fall = 0.0
        return after, Info(after.energy, scale, fall, opened, mixture.size)

    tol = max(enough, VARIATIONAL.rounding * abs(start.energy))  # rounding must not keep a search going
    limit = int(min(goal.max_iter, most))
    return run(step, start, budget, phase="update", tol=tol, max_iter=limit, guard=start.energy)


def _update(work: _Work, growth: _GreedyState, most: float = np.inf) -> _GreedyState:
    """Update everything."""
    outcome = _settle(work, growth.best, most=most)
    return growth.after(outcome, outcome.trace, work.penalty)


def _learn_in_passing(work: _Work, growth: _GreedyState) -> _GreedyState:
    """Move the prior a little, if there are many more components than when it was moved last."""
    size = growth.best.mixture.size
    if work.learner is None or size < max(work.learner.first, VARIATIONAL.learn_again * growth.learned_at):
        return growth
    return _learn(work, growth, VARIATIONAL.learn_in_passing)._replace(learned_at=size)


def _learn(work: _Work, growth: _GreedyState, most: int) -> _GreedyState:
    """Move the prior, at most so often, until the penalised free energy falls no more."""
    learner = work.learner
    assert learner is not None

    def step(growth: _GreedyState) -> tuple[_GreedyState, bool]:
        setting, best, fall = learner.step(growth.setting, growth.best)
        enough = max(work.goal.enough(best.tied, best.energy), VARIATIONAL.rounding * abs(best.energy))
        if not fall > VARIATIONAL.rounding * abs(best.energy):
            return growth, True
        trace = [*growth.trace, best.energy + learner.penalty(setting)]
        after = growth._replace(setting=setting, best=best, trace=trace, n_iter=growth.n_iter + 1)
        return after, fall < enough

    return repeat(step, growth, work.budget, most=most)[0]


def _learn_at_the_end(work: _Work, growth: _GreedyState) -> tuple[_GreedyState, bool]:
    """Growth has ended: move the prior to its best; whether that is worth growing again."""
    if work.learner is None or growth.rounds >= VARIATIONAL.learn_rounds:
        return growth, False
    before = growth.best.energy + work.penalty
    growth = _learn(work, growth, VARIATIONAL.learn_at_end)
    work, growth = work._replace(setting=growth.setting), growth._replace(rounds=growth.rounds + 1)
    if not work.hurried:
        growth = _update(work, growth)
    fall = before - growth.best.energy - work.penalty
    worth = fall > VARIATIONAL.learn_worth * work.goal.enough(growth.best.tied, before)
    if worth and growth.rounds < VARIATIONAL.learn_rounds:
        return growth._replace(known={}, failed=0), True
    return _update(work, growth) if work.hurried else growth, False


def _round(work: _Work, growth: _GreedyState) -> tuple[_GreedyState, bool]:
    """Try the best splits; or, once growth has ended, look more closely; whether there is nothing left to do."""
    growth, chosen = _choose(work, growth)
    if chosen:
        return _learn_in_passing(work, _try_splits(work, growth, chosen)), False
    if work.budget.spent:
        return growth, True
    if not work.hurried and work.partition.sharpen():
        return _look_closely(work, growth), False
    growth, again = _learn_at_the_end(work, growth)
    work = work._replace(setting=growth.setting)
    return (growth, False) if again else (_remove(work, growth), True)


def _choose(work: _Work, growth: _GreedyState) -> tuple[_GreedyState, list[int]]:
    """Components to split at once, and the proposals this took; none if growth has ended."""
    if growth.best.mixture.size >= work.goal.max_components or growth.failed >= work.goal.n_failed:
        return growth, []
    growth, best = _candidate(work, growth)
    if best is None or not _is_clear(work, growth, best):
        return growth, []
    return growth, _all_clear(work, growth, best) if growth.together else [best]


def _candidate(work: _Work, growth: _GreedyState) -> tuple[_GreedyState, int | None]:
    """The component whose split promises most, None if there is none to split; and the proposals this took."""
    state, partition, goal = growth.best, work.partition, work.goal
    mass = state.swept.sums.mass
    eligible = [c for c in range(mass.size) if mass[c] > VARIATIONAL.least_mass]
    room = min(goal.max_components - mass.size + 1, partition.ways)
    known = (growth.known.get(int(state.names[c])) for c in eligible)
    if work.hurried:  # what nodes said before rows took over does not count
        known = (one if one is None or one.token is None else None for one in known)
    stale = [c for c, one in zip(eligible, known) if _is_stale(one, float(mass[c]), room)]
    enough = goal.enough(partition.tied, state.energy)
    some = max(len(stale), 1) if work.hurried else goal.n_candidates
    for start in range(0, len(stale), some):
        if work.budget.spent:
            break
        now = np.array(stale[start : start + some])
        found = propose(work.setting, partition, state, now, enough, room, work.budget)
        growth = growth._replace(known=growth.known | {int(state.names[c]): split for c, split in zip(now, found)})
        if max(growth.gain(c) for c in eligible) > enough:
            break
    best = max(eligible, key=growth.gain, default=None)
    return growth, best if best is not None and growth.gain(best) > -np.inf else None


def _is_stale(known: Proposal | None, mass: float, room: float) -> bool:
    """Whether the split of a component must be tried anew."""
    if known is None or abs(known.mass - mass) > VARIATIONAL.stale * mass:
        return True
    return known.sizes is not None and known.sizes.size > room


def _is_clear(work: _Work, growth: _GreedyState, c: int) -> bool:
    """Whether a split gains more than tied rows leave in doubt."""
    return growth.gain(c) >= work.partition.rough * growth.best.swept.sums.mass[c]


def _all_clear(work: _Work, growth: _GreedyState, best: int) -> list[int]:
    """The best split, and others that are clear and not much worse, if there is room for them."""
    state, least = growth.best, VARIATIONAL.as_good * growth.gain(best)
    others = [c for c in range(state.mixture.size) if c != best and growth.gain(c) > least]
    others = sorted((c for c in others if _is_clear(work, growth, c)), key=lambda c: -growth.gain(c))
    sizes = np.cumsum([growth.known[int(state.names[c])].sizes.size - 1 for c in [best, *others]])
    room = work.goal.max_components - state.mixture.size
    return [best, *others][: max(1, int((sizes <= room).sum()))]


def _try_splits(work: _Work, growth: _GreedyState, chosen: list[int]) -> _GreedyState:
    """Make splits and update everything; they are kept if the free energy fell."""
    before = growth.best
    names = before.names[chosen].tolist()
    start = _split(work, growth, chosen)
    # on a finer partition the state to beat can only be lower than on its own
    outcome = _settle(work, start, before.energy, passing=VARIATIONAL.passing)
    after: MeasuredMixture = outcome.state
    growth = growth._replace(named=growth.named + int((start.names >= growth.named).sum()))
    rival, followed = (before, []) if after.tied is before.tied else _follow(work, before, after)
    growth = growth._replace(n_iter=growth.n_iter + max(0, len(followed) - 1))
    # rounding is no gain
    least = max(work.goal.enough(after.tied, rival.energy), VARIATIONAL.rounding * abs(rival.energy))
    if len(chosen) > 1:
        least = max(least, VARIATIONAL.kept * sum(growth.known[name].gain for name in names))
    if after.energy <= rival.energy - least:
        return _keep(work, growth, start, outcome)
    followed = [energy + work.penalty for energy in followed]
    growth = growth._replace(best=rival, trace=[*growth.trace, *followed], n_iter=growth.n_iter + len(outcome.trace))
    if len(chosen) > 1:  # they were in each other's way
        return growth._replace(together=False)
    failed = {names[0]: Proposal(-np.inf, growth.known[names[0]].mass)}
    return growth._replace(failed=growth.failed + 1, known=growth.known | failed)


def _split(work: _Work, growth: _GreedyState, chosen: list[int]) -> MeasuredMixture:
    """The mixture with components replaced by their children, on rows that tell these apart."""
    state = growth.best
    proposals = {c: growth.known[int(state.names[c])] for c in chosen}
    for proposal in proposals.values():
        work.partition.keep(proposal.token)
    mixture, origin = split_mixture(work.setting, state.mixture, state.swept, proposals)
    new = origin < 0
    names = np.where(new, -1, state.names[origin])
    names[new] = growth.named + np.arange(new.sum())
    return measure(work.setting, work.partition.tied, mixture, names)


def _follow(work: _Work, state: MeasuredMixture, rival: MeasuredMixture) -> tuple[MeasuredMixture, list[float]]:
    """Bring a state onto the rows of its rival, and update it until it is clear which of the two is better: finer rows
    alone must not pass for a better mixture. Free energies on the way."""
    state = measure(work.setting, rival.tied, state.mixture, state.names, state.view)
    enough, start = work.goal.enough(rival.tied, state.energy), (state, [state.energy])

    def step(at: tuple[MeasuredMixture, list[float]]) -> tuple[tuple[MeasuredMixture, list[float]], bool]:
        after, last = updated(work.setting, at[0]), at[0].energy
        fall, ahead = last - after.energy, after.energy - rival.energy
        done = after.energy < rival.energy + enough or fall <= enough * work.fine or ahead > VARIATIONAL.hopeless * fall
        return (after, [*at[1], after.energy]), done

    # while rows are tied roughly, only splits whose own gain was clear come this far
    if work.partition.rough > 0 or state.energy < rival.energy + enough:
        return start
    return repeat(step, start, work.budget, most=work.goal.max_iter)[0]


def _keep(work: _Work, growth: _GreedyState, start: MeasuredMixture, outcome: Outcome) -> _GreedyState:
    """The state after a split that is kept, on rows joined where it does not tell them apart."""
    settled, last, partition = [start.energy, *outcome.trace], growth.trace[-1] - work.penalty, work.partition
    settled = [value for value in settled if value <= last] if partition.fixed else settled
    growth = growth.after(outcome, settled, work.penalty)
    after = growth.best

    def coarsened() -> MeasuredMixture:
        partition.coarsen(after.view)
        if partition.tied is after.tied:
            return after
        return measure(work.setting, partition.tied, after.mixture, after.names, after.view)

    if not work.budget.interrupted:  # nodes may not fit together any more
        best = attempt(coarsened, lambda: after, work.budget)
        growth = (
            growth if best is after else growth._replace(best=best, trace=[*growth.trace, best.energy + work.penalty])
        )
    return growth._replace(failed=0, together=work.together)


def _look_closely(work: _Work, growth: _GreedyState) -> _GreedyState:
    """Update everything where rows are told apart more finely, and see what can be done without."""
    growth = _update(work, growth, VARIATIONAL.soon)
    if not growth.converged:
        # what coarse rows made too many dies slowly: it is removed as soon as finer rows are there
        growth = _update(work, _remove(work, growth))
    after = _remove(work, growth)
    if work.budget.spent:
        return after
    known = attempt(lambda: _verdicts(work, after), lambda: after.known, work.budget)
    return after._replace(known=known, failed=0, together=work.together)


def _verdicts(work: _Work, growth: _GreedyState) -> dict[int, Proposal]:
    """Clear verdicts stand where components are what they should be; all else is tried again."""
    state, prices = growth.best, work.setting.divergence(growth.best.mixture.params)
    sure = dict(zip(state.names.tolist(), work.partition.sure(state.view, np.arange(prices.size), prices)))
    return {name: known for name, known in growth.known.items() if known.hopeless and sure.get(name, False)}


def _remove(work: _Work, growth: _GreedyState) -> _GreedyState:
    """Remove components that were made for what nodes mixed up."""
    if work.partition.fixed or work.budget.spent or growth.best is growth.lean:
        return growth
    fewer = prune(work.setting, growth.best, work.budget)
    if fewer.mixture.size == growth.best.mixture.size:
        return growth._replace(lean=growth.best)
    outcome = _settle(work, fewer)
    return growth.after(outcome, [fewer.energy, *outcome.trace], work.penalty)
