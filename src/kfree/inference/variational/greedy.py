"""Greedy growth: split the component whose split gains most, update everything, keep it if the free energy fell."""

from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.inference.loop import Budget, Info, run
from kfree.inference.variational.partition import Partition, all_in_one
from kfree.inference.variational.posterior import Mixture, Setting, View, arranged, best_mixture
from kfree.inference.variational.prune import prune
from kfree.inference.variational.split import Proposal, propose, split_mixture
from kfree.inference.variational.sweep import Swept, sums_of
from kfree.rows import Tied

# Components that weigh less are not split.
_LEAST = 2.0
# Share of what tied rows leave in doubt that an update must gain, or it is the last.
_ROUGH = 0.05
# Share of a fall that counts that an update of single rows must gain; nodes are not worth more than one that counts.
_FINE = 0.1
# Share of what the best split gains that others must gain to be made along with it.
_AS_GOOD = 0.25
# Share of what splits promise one by one that they must gain together.
_KEPT = 0.5
# Updates on finer rows until components are looked at that these may not need.
_SOON = 3
# A split that has further to fall than this many times its last step is given up.
_HOPELESS = 50
# Rounding of a covariance over what the prior adds to it, for each unit of weight.
_PRIOR = 2e-14
# A proposal is good as long as the weight of its component has changed by no more than this share.
_STALE = 0.01


class Plan(NamedTuple):
    """How to search."""

    n_candidates: int
    n_failed: int  # splits that may fail in a row
    max_components: float
    max_iter: int  # updates for each number of components
    tol: float | None  # fall of the free energy per row and column that counts; None: 1e-5 of its size

    def enough(self, tied: Tied, energy: float) -> float:
        """The fall of the free energy that counts, in nats."""
        return 1e-5 * abs(energy) if self.tol is None else self.tol * tied.total * tied.mean.shape[1]


class State(NamedTuple):
    """A mixture and the sums under its responsibilities."""

    mixture: Mixture
    view: View
    names: Array  # (T,) numbers that components keep as they change places
    swept: Swept
    energy: float
    fall: float  # of the free energy in the last update
    cycle: int


class Found(NamedTuple):
    """Result of a search."""

    mixture: Mixture
    energy: float  # on the partition the search ended with
    trace: list[float]  # free energy after each update that was kept
    n_iter: int  # updates, those of failed splits included
    converged: bool


def search(setting: Setting, partition: Partition, plan: Plan, budget: Budget) -> Found:
    """Grow a mixture from one component."""
    return _Search(setting, partition, plan, budget).run()


def polish(setting: Setting, partition: Partition, found: Found, plan: Plan, budget: Budget) -> Found:
    """Update a mixture that was found on another partition; a few updates are enough, converged or not."""
    work = _Search(setting, partition, plan, budget)
    try:
        state, _ = work._settle(work._swept(found.mixture, np.arange(found.mixture.size)))
    except KeyboardInterrupt:
        budget.interrupted = True
        return found
    trace = [*found.trace, *work._settled[1:]]
    return Found(state.mixture, state.energy, trace, found.n_iter + work.n_iter, found.converged)


class _Search:
    def __init__(self, setting: Setting, partition: Partition, plan: Plan, budget: Budget):
        self.setting, self.partition, self.plan, self.budget = setting, partition, plan, budget
        self.known: dict[int, Proposal] = {}
        self.trace: list[float] = []
        self.named = self.n_iter = 0
        self.state: State | None = None
        self._lean: State | None = None  # the last state that no component could be removed from

    def run(self) -> Found:
        converged = False
        try:
            self.state, converged = self._first()
            while not self.budget.spent:
                full = self.state.mixture.size >= self.plan.max_components
                grown, settled = (False, True) if full else self._grow()
                if grown:
                    converged = settled
                elif self.partition.sharpen():
                    converged = self._again()
                else:
                    converged = self._prune(converged)
                    break
        except KeyboardInterrupt:
            self.budget.interrupted = True
        if self.state is None:  # interrupted before there was anything: a component at the prior
            mixture, _ = arranged(self.setting, self.setting.prior, np.array([self.partition.tied.total]), 0.0)
            return Found(mixture, np.inf, [np.inf], 0, False)
        state = self.state
        return Found(state.mixture, state.energy, self.trace, self.n_iter, converged and not self.budget.spent)

    @property
    def _fine(self) -> float:
        """Share of a fall that counts that an update must gain, or it is the last."""
        return _FINE if self.partition.fixed else 1.0

    def _names(self, count: int) -> Array:
        self.named += count
        return np.arange(self.named - count, self.named)

    def _first(self) -> tuple[State, bool]:
        """One component that has all rows."""
        tied = self.partition.tied
        sums = sums_of(tied, self.setting.family.form(self.setting.prior), all_in_one(tied))
        mixture, _ = best_mixture(self.setting, Swept(sums, 0.0, 0.0))
        start = self._swept(mixture, self._names(1))
        self.state, self.trace = start, [start.energy]
        self.state, converged = self._settle(start)
        self.trace = self._settled
        return self.state, converged

    def _again(self) -> bool:
        """Update everything where rows are told apart more finely; whether that converged."""
        assert self.state is not None
        self.state, converged = self._settle(self.state, most=_SOON)
        self.trace += self._settled[1:]
        if not converged:  # what coarse rows made too many dies slowly: it is removed as soon as finer rows are there
            self._prune(converged)
            self.state, converged = self._settle(self.state)
            self.trace += self._settled[1:]
        converged = self._prune(converged)
        # clear verdicts stand where components are what they should be; all else is tried again
        state, prices = self.state, self.setting.divergence(self.state.mixture.params)
        sure = dict(zip(state.names.tolist(), self.partition.sure(state.view, np.arange(prices.size), prices)))
        self.known = {name: known for name, known in self.known.items() if known.hopeless and sure.get(name, False)}
        return converged

    def _prune(self, converged: bool) -> bool:
        """Remove components that were made for what nodes mixed up; whether the last updates converged."""
        assert self.state is not None
        if self.partition.fixed or self.budget.spent or self.state is self._lean:
            return converged
        mixture, swept, energy, origin = prune(self.setting, self.partition.tied, self.state.mixture)
        if mixture.size < self.state.mixture.size:
            view, names = mixture.view(self.setting), self.state.names[origin]
            self.state, converged = self._settle(State(mixture, view, names, swept, energy, np.inf, 0))
            self.trace += self._settled
        else:
            self._lean = self.state
        return converged

    def _swept(
        self, mixture: Mixture, names: Array, before: float = np.inf, cycle: int = 0, view: View | None = None
    ) -> State:
        view = mixture.view(self.setting) if view is None else view
        swept, energy = mixture.sweep(self.setting, self.partition.tied, view)
        return State(mixture, view, names, swept, energy, before - energy, cycle)

    def _settle(self, start: State, target: float = np.inf, most: float = np.inf) -> tuple[State, bool]:
        """Update everything, at most so often, until the free energy falls no more, or will not reach the target."""
        enough, rough = self.plan.enough(self.partition.tied, start.energy), self.partition.rough
        # what tied rows leave in doubt need not be known any better
        enough = max(enough * self._fine, _ROUGH * rough * self.partition.tied.total)

        def step(state: State) -> tuple[State, Info]:
            mixture, order = best_mixture(self.setting, state.swept)
            view = mixture.view(self.setting)
            opened = self.partition.expand(view)
            after = self._swept(mixture, state.names[order], state.energy, state.cycle + 1, view)
            # divergences are differences of numbers of the order of D for each component, and beside a large weight
            # little is left of the prior where a component has few rows
            terms, total = 1e-4 * mixture.size * self.partition.tied.mean.shape[1], self.partition.tied.total
            terms += 1e9 * total * min(1.0, _PRIOR * total)
            scale = abs(after.swept.evidence) + abs(after.energy) + terms
            fall = max(after.fall, 0.0)
            if after.cycle > 1 and after.energy - target > _HOPELESS * fall:
                fall = 0.0
            return after, Info(after.energy, scale, fall, opened, mixture.size)

        # rounding must not keep a search going
        tol = max(enough, 1e-13 * abs(start.energy))
        limit = int(min(self.plan.max_iter, most))
        outcome = run(step, start, self.budget, phase="update", tol=tol, max_iter=limit, guard=start.energy)
        self.n_iter += len(outcome.trace)
        self._settled = [start.energy, *outcome.trace]
        return outcome.state, outcome.converged

    def _grow(self) -> tuple[bool, bool]:
        """Try the best splits; whether some were kept, and whether the updates after them had converged."""
        failed, together = 0, not self.partition.fixed
        while failed < self.plan.n_failed and not self.budget.spent:
            assert self.state is not None
            c = self._candidate(self.state)
            if c is None or not self._is_clear(self.state, c):
                return False, True
            chosen = self._all_clear(self.state, c) if together else [c]
            names, rows = self.state.names[chosen], self.partition.tied
            after, converged = self._split(self.state, chosen)
            followed = [] if self.partition.tied is rows else self._follow(after.energy)
            energy = self.state.energy
            least = max(self.plan.enough(self.partition.tied, energy), 1e-13 * abs(energy))  # rounding is no gain
            if len(chosen) > 1:
                least = max(least, _KEPT * sum(self.known[int(name)].gain for name in names))
            if after.energy <= energy - least:
                self._accept(after)
                return True, converged
            self.trace += followed
            if len(chosen) > 1:  # they were in each other's way
                together = False
                continue
            failed += 1
            self.known[int(names[0])] = Proposal(-np.inf, self.known[int(names[0])].mass)
        return False, True

    def _is_clear(self, state: State, c: int) -> bool:
        """Whether a split gains more than tied rows leave in doubt."""
        return self._gain(state, c) >= self.partition.rough * state.swept.sums.mass[c]

    def _all_clear(self, state: State, best: int) -> list[int]:
        """The best split, and others that are clear and not much worse, if there is room for them."""
        least = _AS_GOOD * self._gain(state, best)
        others = [c for c in range(state.mixture.size) if c != best and self._gain(state, c) > least]
        others = sorted((c for c in others if self._is_clear(state, c)), key=lambda c: -self._gain(state, c))
        sizes = np.cumsum([self.known[int(state.names[c])].sizes.size - 1 for c in [best, *others]])
        room = self.plan.max_components - state.mixture.size
        return [best, *others][: max(1, int((sizes <= room).sum()))]

    def _follow(self, target: float) -> list[float]:
        """Bring the state onto the rows as they are now, where the target is from, and update it until it is clear
        which of the two is better: finer rows alone must not pass for a better mixture. Free energies on the way."""
        assert self.state is not None
        state = self._swept(self.state.mixture, self.state.names, view=self.state.view)
        enough, trace = self.plan.enough(self.partition.tied, state.energy), [state.energy]
        for _ in range(self.plan.max_iter):
            # while rows are tied roughly, only splits whose own gain was clear come this far
            if self.partition.rough > 0 or self.budget.spent or state.energy < target + enough:
                break
            mixture, order = best_mixture(self.setting, state.swept)
            state = self._swept(mixture, state.names[order], state.energy)
            trace.append(state.energy)
            if state.fall <= enough * self._fine or state.energy - target > _HOPELESS * state.fall:
                break
        self.state = state
        self.n_iter += len(trace) - 1
        return trace

    def _split(self, state: State, chosen: list[int]) -> tuple[State, bool]:
        proposals = {c: self.known[int(state.names[c])] for c in chosen}
        for proposal in proposals.values():
            self.partition.keep(proposal.token)
        mixture, origin = split_mixture(self.setting, state.mixture, state.swept, proposals)
        names = np.where(origin < 0, -1, state.names[origin])
        names[origin < 0] = self._names(int((origin < 0).sum()))
        # on a finer partition the state to beat can only be lower than on its own
        return self._settle(self._swept(mixture, names), state.energy)

    def _accept(self, after: State) -> None:
        last = self.trace[-1]
        self.trace += [value for value in self._settled if value <= last] if self.partition.fixed else self._settled
        rows = self.partition.tied
        self.partition.coarsen(after.view)
        if self.partition.tied is not rows:
            after = self._swept(after.mixture, after.names, view=after.view)
            self.trace.append(after.energy)
        self.state = after

    def _candidate(self, state: State) -> int | None:
        """The component whose split promises most; None if there is none to split."""
        mass = state.swept.sums.mass
        eligible = [c for c in range(mass.size) if mass[c] > _LEAST]
        room = min(self.plan.max_components - mass.size + 1, self.partition.ways)
        open_ = [c for c in eligible if self._stale(int(state.names[c]), float(mass[c]), room)]
        enough = self.plan.enough(self.partition.tied, state.energy)
        while open_ and not self.budget.spent:
            now, open_ = np.array(open_[: self.plan.n_candidates]), open_[self.plan.n_candidates :]
            found = propose(self.setting, self.partition, state.mixture, state.view, state.swept, now, enough, room)
            self.known |= {int(state.names[c]): proposal for c, proposal in zip(now, found)}
            if max(self._gain(state, c) for c in eligible) > enough:
                break
        best: Any = max(eligible, key=lambda c: self._gain(state, c), default=None)
        return best if best is not None and self._gain(state, best) > -np.inf else None

    def _gain(self, state: State, c: int) -> float:
        known = self.known.get(int(state.names[c]))
        return -np.inf if known is None else known.gain

    def _stale(self, name: int, mass: float, room: float) -> bool:
        known = self.known.get(name)
        if known is None or abs(known.mass - mass) > _STALE * mass:
            return True
        return known.sizes is not None and known.sizes.size > room
