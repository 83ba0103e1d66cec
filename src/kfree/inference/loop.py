"""The only loop: it owns the stopping rule, the clock, the trace and the guard that the objective never rises."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

S = TypeVar("S")


class ObjectiveRose(RuntimeError):
    """The objective rose in an exact step: a bug, never to be passed over in silence."""


class Info(NamedTuple):
    """What a reader wants to know of one pass."""

    objective: float  # penalised objective after the pass
    scale: float  # magnitude of the sums it is a difference of: what its rounding scales with
    changed: float  # share of the weight that changed label
    opened: int  # clusters opened (or other moves made)
    n_clusters: int
    earlier: "tuple[Info, ...]" = ()  # passes made in the same step before this one


class Budget:
    """The user's limits and the reports of a fit; shared by all its phases."""

    def __init__(self, max_time: float | None = None, report: Callable[[str, int, Info], None] | None = None):
        self._deadline = None if max_time is None else time.monotonic() + max_time
        self._report = report
        self.interrupted = False
        self.best: Any = None  # centres of the last complete step, whatever happens next

    @property
    def spent(self) -> bool:
        """True once the time is used up or the user has interrupted."""
        return self.interrupted or (self._deadline is not None and time.monotonic() >= self._deadline)

    @property
    def told(self) -> bool:
        """True if somebody listens to reports."""
        return self._report is not None

    def tell(self, phase: str, count: int, info: Info) -> None:
        """Report a pass, if anybody listens."""
        if self._report is not None:
            self._report(phase, count, info)


class Outcome(NamedTuple):
    """How a loop ended."""

    state: Any
    trace: list[float]  # objective after each pass
    converged: bool


def run(
    step: Callable[[S], tuple[S, Info]],
    state: S,
    budget: Budget,
    *,
    phase: str,
    tol: float,
    max_iter: int,
    guard: float | None = np.inf,
) -> Outcome:
    """Repeat ``step`` until a pass opens nothing and at most ``tol`` of the weight changes label.

    ``guard`` is the objective the first pass must not exceed; None where it may rise.
    """
    trace: list[float] = []
    last = np.inf if guard is None else guard
    while len(trace) < max_iter:
        if budget.spent:
            return Outcome(state, trace, False)
        state, info = step(state)
        budget.best = state
        for one in (*info.earlier, info):
            trace.append(one.objective)
            if guard is not None and one.objective > last + 1e-9 * (abs(last) + one.scale):
                raise ObjectiveRose(
                    f"The objective rose from {last!r} to {one.objective!r} in pass {len(trace)} of {phase}. "
                    "This is a bug in kfree; please report it with the data."
                )
            last = one.objective
            budget.tell(phase, len(trace), one)
        if info.opened == 0 and info.changed <= tol:
            return Outcome(state, trace, True)
    return Outcome(state, trace, False)
