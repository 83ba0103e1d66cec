"""The only loop: it owns stopping, the clock, the trace, Ctrl-C, and the guard that the objective never rises.

``run`` repeats passes that have an objective; ``repeat`` rounds of anything else, whole runs among them; ``attempt``
does something once. Whatever the user interrupts, the last complete state is what comes back, and ``budget.spent`` is
true from then on, so that all that would follow ends soon.
"""

import threading
import time
import weakref
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from kfree.families import Array

S = TypeVar("S")

# Rounding of an objective, as a share of the sums that it is a difference of.
_ROUNDING = 1e-9


class ObjectiveRose(RuntimeError):
    """The objective rose in an exact step: a bug, never to be passed over in silence."""


class Info(NamedTuple):
    """What a reader wants to know of one pass."""

    objective: float  # penalised objective after the pass
    scale: float  # magnitude of the sums it is a difference of: what its rounding scales with
    changed: float  # what must be at most ``tol`` for a run to end: mostly the share of the weight that changed label
    opened: int  # clusters opened (or other moves made)
    n_clusters: int  # below 0 where there are none to speak of
    earlier: "tuple[Info, ...]" = ()  # passes made in the same step before this one
    anew: bool = False  # measured by another objective than the pass before it, so that it may be higher
    idle: bool = False  # a look that found nothing to do: no pass is counted, nor told of
    of: int = 0  # passes that the phase has in all, where that is known: 0 else


class Budget:
    """The user's limits and the reports of a fit; shared by all its phases.

    ``report`` is told of a phase, how many passes of it there were, and the last of them; if it returns True the fit
    ends. Without ``each``, single passes of restarts need not be told of.
    """

    def __init__(
        self,
        max_time: float | None = None,
        report: Callable[[str, int, Info], bool | None] | None = None,
        each: bool = True,
    ):
        self._deadline = None if max_time is None else time.monotonic() + max_time
        self._report, self._each = report, each
        self.interrupted = False
        self.stopped = False  # whoever is told of passes has asked for the end

    @property
    def spent(self) -> bool:
        """True once the time is used up, or the user has interrupted or stopped the fit."""
        if self.interrupted or self.stopped:
            return True
        return self._deadline is not None and time.monotonic() >= self._deadline

    @cached_property
    def stop(self) -> Array:
        """(1,) bool for compiled loops, which cannot ask: true once the time is used up or the fit stopped."""
        flag = np.full(1, self.stopped)
        if self._deadline is not None:
            left = max(self._deadline - time.monotonic(), 0.0)
            timer = threading.Timer(min(left, threading.TIMEOUT_MAX), flag.fill, (True,))
            timer.daemon = True
            timer.start()
            weakref.finalize(self, timer.cancel)
        return flag

    def __getstate__(self) -> dict[str, Any]:
        """For other processes, which need a timer of their own, and where nobody listens."""
        return {name: value for name, value in vars(self).items() if name != "stop"} | {"_report": None}

    @property
    def told(self) -> bool:
        """True if somebody listens to single passes."""
        return self._report is not None and self._each

    def tell(self, phase: str, count: int, info: Info) -> None:
        """Report a pass, if anybody listens; it may be the last one that is wanted."""
        if self._report is not None and self._report(phase, count, info):
            self.stopped = True
            self.stop.fill(True)


class Outcome(NamedTuple):
    """How a run ended."""

    state: Any
    trace: list[float]  # objective after each pass
    converged: bool


def check_fall(before: float, after: float, scale: float, where: str) -> None:
    """An objective must not rise, but by the rounding of the sums of size ``scale`` that it is a difference of."""
    if after > before + _ROUNDING * (abs(before) + scale) or np.isinf(after) > np.isinf(before):
        raise ObjectiveRose(
            f"The objective rose from {before!r} to {after!r} {where}. "
            "This is a bug in kfree; please report it with the data."
        )


def attempt(work: Callable[[], S], otherwise: Callable[[], S], budget: Budget) -> S:
    """What ``work`` gives; what ``otherwise`` gives if the user interrupts it."""
    try:
        return work()
    except KeyboardInterrupt:
        budget.interrupted = True
    return otherwise()


def repeat(
    step: Callable[[S], tuple[S, bool]], state: S, budget: Budget, *, most: float = np.inf, always: int = 0
) -> tuple[S, bool]:
    """Repeat ``step`` until it says that all is done; returns the last complete state and whether it was.

    At most ``most`` times, and no more often than the budget allows but ``always`` times.
    """
    made = 0
    try:
        while made < most and not (made >= always and budget.spent):
            state, done = step(state)
            made += 1
            if done:
                return state, True
    except KeyboardInterrupt:
        budget.interrupted = True
    return state, False


def run(
    step: Callable[[S], tuple[S, Info]],
    state: S,
    budget: Budget,
    *,
    phase: str,
    tol: float,
    max_iter: int,
    guard: float | None = np.inf,
    always: int = 0,
    whole: bool = False,
) -> Outcome:
    """Repeat ``step`` until a pass opens nothing and changes at most ``tol`` (see ``Info``).

    ``guard`` is the objective the first pass must not exceed; None where it may rise. ``always``: see ``repeat``.
    ``whole`` says that all ``max_iter`` passes are made, so that whoever is told knows how far it is.
    """
    trace: list[float] = []
    last = np.inf if guard is None else guard

    def one_step(now: _Made) -> tuple[_Made, bool]:
        nonlocal last
        state, info = step(now.state)
        made = now.made
        for one in (*info.earlier, info):
            if one.idle:
                continue
            made += 1
            if guard is not None and not one.anew and not one.objective <= last:
                check_fall(last, one.objective, one.scale, f"in pass {made} of {phase}")
            last = one.objective
            budget.tell(phase, made, one._replace(of=max_iter) if whole else one)
            trace.append(one.objective)
        # a pass at the end of which the time is up may have been cut short, and tells nothing of the rest
        converged = bool(info.opened == 0 and info.changed <= tol) and not budget.spent
        after = _Made(state, made, converged)
        return after, after.converged or after.made >= max_iter

    last_complete, _ = repeat(one_step, _Made(state, 0, False), budget, most=max_iter, always=always)
    del trace[last_complete.made :]
    return Outcome(last_complete.state, trace, last_complete.converged)


class _Made(NamedTuple):
    """State of a run."""

    state: Any
    made: int  # passes that are complete: an interrupt may leave one more in the trace
    converged: bool
