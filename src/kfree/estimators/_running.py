"""What every fit has in common, whatever is fitted: parameters are checked, and who wants to know is told how it goes.

Progress goes to the logger "kfree.<class>": INFO for what ``verbose=1`` prints, DEBUG for what 2 adds. ``verbose`` is a
handler of these records for one fit; it changes no logger, so that fits in other threads are not heard.
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from kfree.estimators._card import Parts, card
from kfree.estimators._saving import Saveable
from kfree.estimators._sklearn import CallbackSupport, FitTask, NotebookSupport, is_fitted
from kfree.inference.loop import Budget, Info
from kfree.models.parameters import Table, check_parameters
from kfree.rows.dask import is_dask

# Lines about a phase whose length is known: about so many.
_LINES = 10
# Phases that are called after what is counted; those of others are passes.
_COUNTED = ("fit", "merge", "moving", "path, step", "restart", "sweep", "table without groups", "update", "weights")


class Words(NamedTuple):
    """How a class tells of its passes."""

    noun: str = "clusters"  # what there is a number of
    measure: str = "objective"  # what falls
    moves: bool = False  # whether changed labels and opened clusters are told
    unmeasured: tuple[str, ...] = ()  # phases whose objective is not told, as it need not fall
    details: tuple[str, ...] = ("sample",)  # phases, by how they begin, that are told at level DEBUG
    step: int = 1  # passes from one line to the next, at least, where the length of a phase is known

    def say(self, phase: str, count: int, info: Info) -> str:
        """One line about a pass."""
        far = f" of {info.of} ({100 * count // info.of} %)" if info.of else ""
        parts = [f"{info.n_clusters} {self.noun}"] if info.n_clusters >= 0 else []
        if np.isfinite(info.objective) and phase not in self.unmeasured:
            parts.append(f"{self.measure} {info.objective:.8g}")
        if self.moves and np.isfinite(info.changed):
            parts.append(f"{100 * info.changed:.3g} % changed label, {info.opened} opened")
        what = phase if phase in _COUNTED else f"{phase}, pass"
        return f"{what} {count}{far}" + (": " + ", ".join(parts) if parts else "")


class Reporter:
    """Tells of the passes of one fit: to the logger of the class, to whoever set ``verbose``, and to callbacks."""

    def __init__(self, name: str, words: Words, verbose: int, task: FitTask | None) -> None:
        self._logger, self._words, self._task = logging.getLogger(f"kfree.{name}"), words, task
        self._printer = _printer(name, verbose) if verbose else None
        self._lock = Lock()  # restarts run in threads
        self._seen = ("", 0)  # the last pass of a phase of known length

    def listens(self, level: int) -> bool:
        """Whether there is anybody who would be told at a level."""
        printed = self._printer is not None and level >= self._printer.level
        return self._task is not None or printed or self._logger.isEnabledFor(level)

    def __call__(self, phase: str, count: int, info: Info) -> bool:
        """Tell of a pass; True if a callback wants it to be the last."""
        with self._lock:
            level = self._level(phase, count, info)
            if self.listens(level):
                self._write(level, self._words.say(phase, count, info))
            return self._task is not None and self._task.passed(phase, count, info)

    def _level(self, phase: str, count: int, info: Info) -> int:
        """INFO for most passes; of a phase whose length is known for some, so that there are about ten lines."""
        if phase.startswith(self._words.details):
            return logging.DEBUG
        if not info.of:
            return logging.INFO
        step, (last, before) = max(self._words.step, -(-info.of // _LINES)), self._seen
        before = before if last == phase and before < count else 0
        self._seen = phase, count
        first = before == 0 and info.of > step
        return logging.INFO if first or count == info.of or count // step > before // step else logging.DEBUG

    def _write(self, level: int, text: str) -> None:
        record = self._logger.makeRecord(self._logger.name, level, __file__, 0, text, (), None)
        if self._printer is not None and level >= self._printer.level:
            self._printer.handle(record)
        if self._logger.isEnabledFor(level):
            self._logger.handle(record)


def _printer(name: str, verbose: int) -> logging.Handler:
    """What ``verbose`` prints by."""
    printer = logging.StreamHandler(sys.stdout)
    printer.setFormatter(logging.Formatter(f"[{name}] %(message)s"))
    printer.setLevel(logging.INFO if verbose == 1 else logging.DEBUG)
    return printer


class RunningEstimator(Saveable, CallbackSupport, NotebookSupport, BaseEstimator):
    """An estimator of kfree."""

    #: What each parameter may be.
    _parameters: ClassVar[Table]
    #: How passes are told of.
    _words: ClassVar[Words] = Words()

    max_time: Any
    verbose: Any

    def _parts(self) -> Parts:
        """What a fitted model consists of."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        """What is kept elsewhere for each row, such as labels in a Dask array, stays there: the model goes anywhere."""
        return {name: value for name, value in super().__getstate__().items() if not is_dask(value)}

    def _card(self) -> str:
        """What a notebook shows above scikit-learn's diagram: nothing before a fit."""
        explain = getattr(self, "explain", None)
        return card(type(self).__name__, self._parts(), explain() if explain else "") if is_fitted(self) else ""

    def _check_parameters(self) -> None:
        """Every parameter by itself; classes add what joins several."""
        check_parameters(self._parameters, {name: getattr(self, name) for name in self._parameters})

    @contextmanager
    def _running(self) -> Iterator[Budget]:
        """The budget of a fit whose parameters are checked: its clock runs, and who wants to know is told."""
        with self._callbacks() as task:
            reporter = Reporter(type(self).__name__, self._words, int(self.verbose), task)
            heard = reporter.listens(logging.INFO)
            yield Budget(self.max_time, reporter if heard else None, reporter.listens(logging.DEBUG))
