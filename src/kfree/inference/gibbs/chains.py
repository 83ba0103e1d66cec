"""Chains of a sampler: each with a generator of its own, side by side, and all samples so far if they are cut short.

What a chain draws depends on its seed alone, not on how many run at a time, nor on when the clock is looked at.
"""

from collections.abc import Sequence
from threading import Lock
from time import perf_counter, sleep
from typing import Any, NamedTuple, Protocol

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from kfree.families import Array
from kfree.inference.loop import Budget, Info, attempt, repeat

# Seconds between two looks at the clock, and at whether chains that were interrupted have ended their sweeps.
_ROUND, _LOOK = 0.3, 0.01


class Sampler(Protocol):
    """What is sampled. States are not written to once they have been returned."""

    def start(self, chain: int, rng: np.random.Generator) -> Any:
        """First state of a chain."""

    def sweep(self, state: Any, turn: int, rng: np.random.Generator) -> Any:
        """Update of everything, the ``turn``-th of the chain (from 0, burn-in included)."""

    def trace(self, state: Any) -> tuple[float, ...]:
        """Numbers that are noted after every sweep."""

    def keep(self, state: Any) -> Any:
        """What is kept of a state as a sample."""

    def info(self, state: Any) -> Info:
        """What is told of a state."""


class Length(NamedTuple):
    """How long chains are."""

    n_samples: int  # samples kept of each chain
    burn_in: int = 0  # sweeps before the first of them
    thin: int = 1  # sweeps from one to the next

    @property
    def sweeps(self) -> int:
        """Sweeps of a chain."""
        return self.burn_in + self.n_samples * self.thin


class Chain:
    """A chain so far."""

    def __init__(self, seed: np.random.SeedSequence) -> None:
        self.rng = np.random.default_rng(seed)
        self.state: Any = None  # after the last complete sweep; None before the start
        self.swept = 0  # complete sweeps
        self.traces: list[tuple[float, ...]] = []  # after each sweep
        self.kept: list[Any] = []

    def go(self, sampler: Sampler, length: Length, until: int, budget: Budget) -> None:
        """Sweep until there are so many sweeps, or the time is up; an interrupt leaves the last complete one."""

        def one(_: None) -> tuple[None, bool]:
            self._sweep(sampler, length)
            return None, False

        first = self.swept == 0 and not budget.interrupted
        repeat(one, None, budget, most=until - self.swept, always=int(first))

    def _sweep(self, sampler: Sampler, length: Length) -> None:
        turn = self.swept
        after = sampler.sweep(self.state, turn, self.rng)
        beyond = turn + 1 - length.burn_in
        sample = [sampler.keep(after)] if beyond > 0 and beyond % length.thin == 0 else []
        trace = sampler.trace(after)
        # an interrupt between these lines leaves more than was counted, which ``cut`` takes off
        self.traces[turn:] = [trace]
        self.kept[max(beyond - 1, 0) // length.thin :] = sample
        self.state, self.swept = after, turn + 1

    def cut(self, length: Length, sweeps: int) -> None:
        """Forget what came after so many sweeps; the state stays."""
        self.swept = min(self.swept, sweeps)
        del self.traces[self.swept :]
        del self.kept[max(self.swept - length.burn_in, 0) // length.thin :]


class ChainSamples(NamedTuple):
    """What all chains came to."""

    chains: list[Chain]  # to go on with
    kept: list[list[Any]]  # samples of each chain, as many of each; the last state where burn-in did not end
    traces: Array  # (chains, sweeps, numbers), burn-in included
    in_kept: Array  # (chains, samples, numbers) the same of the samples
    complete: bool  # whether chains are as long as was wanted
    burnt_in: bool  # whether burn-in ended


def new_chains(count: int, seed: int | np.random.SeedSequence) -> list[Chain]:
    """Chains that have not begun."""
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return [Chain(own) for own in root.spawn(count)]


def run_chains(
    sampler: Sampler, chains: Sequence[Chain], length: Length, budget: Budget, n_jobs: int | None = None
) -> ChainSamples:
    """Run chains, or go on with them, until they are as long as ``length`` says.

    They go on together, a few sweeps at a time, so that they are of equal length whenever they have to end.
    """
    runs = list(chains)
    for number, chain in enumerate(runs):
        if chain.state is None:
            chain.state = sampler.start(number, chain.rng)
    workers = _Workers(min(effective_n_jobs(n_jobs), len(runs)))

    def one_round(stride: int) -> tuple[int, bool]:
        clock, until = perf_counter(), min(runs[0].swept + stride, length.sweeps)
        workers.spread([(chain, sampler, length, until, budget) for chain in runs], budget)
        budget.tell("sweep", runs[0].swept, sampler.info(runs[0].state)._replace(of=length.sweeps))
        seconds = perf_counter() - clock
        faster = min(_ROUND / max(seconds, 1e-9), 2.0)
        return max(int(stride * faster), 1), until >= length.sweeps

    if runs[0].swept < length.sweeps:
        repeat(one_round, 1, budget, always=1)
    return _gather(sampler, runs, length)


class _Workers:
    """Chains in turn, or several at a time: kernels release the GIL, so threads do."""

    def __init__(self, count: int) -> None:
        self.count = count

    def spread(self, tasks: Sequence[tuple[Any, ...]], budget: Budget) -> None:
        """Let every chain go on. If the user interrupts, those under way end their sweeps first."""
        if self.count == 1:
            for chain, *rest in tasks:
                chain.go(*rest)
            return
        board = [_Busy(task) for task in tasks]
        workers = Parallel(n_jobs=self.count, prefer="threads")
        attempt(lambda: workers(delayed(job)() for job in board), lambda: _wait(board), budget)


class _Busy:
    """A chain under way."""

    def __init__(self, task: tuple[Any, ...]) -> None:
        self.task, self.lock = task, Lock()

    def __call__(self) -> None:
        with self.lock:
            chain, *rest = self.task
            chain.go(*rest)


def _wait(board: Sequence[_Busy]) -> None:
    """Until no chain is under way; a second interrupt ends the wait."""

    def look(_: None) -> tuple[None, bool]:
        sleep(_LOOK)
        return None, not any(job.lock.locked() for job in board)

    repeat(look, None, Budget())


def _gather(sampler: Sampler, runs: list[Chain], length: Length) -> ChainSamples:
    """Chains of equal length."""
    sweeps = min(chain.swept for chain in runs)
    for chain in runs:
        chain.cut(length, sweeps)
    burnt_in = all(chain.kept for chain in runs)
    numbers = [chain.traces or [sampler.trace(chain.state)] for chain in runs]
    traces = np.array(numbers, dtype=np.float64)
    if not burnt_in:
        return ChainSamples(runs, [[sampler.keep(chain.state)] for chain in runs], traces, traces[:, -1:], False, False)
    in_kept = traces[:, length.burn_in + length.thin - 1 :: length.thin]
    return ChainSamples(runs, [list(chain.kept) for chain in runs], traces, in_kept, sweeps >= length.sweeps, True)
