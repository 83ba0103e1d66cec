"""What is left of a fit that did not end by itself, and what a user is told of it."""

import errno
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from kfree.inference.loop import Budget


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """An error or an interrupt inside leaves the estimator as it was, not half fitted; a lack of memory is always a
    MemoryError."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException as error:
        estimator.__dict__ = before
        if _no_room(error):
            raise MemoryError(f"There is not enough memory for this fit: {error}.") from error
        raise


def _no_room(error: BaseException) -> bool:
    """Whether locks or threads of the system found no memory."""
    lock = isinstance(error, OSError) and error.errno == errno.ENOMEM
    return lock or (isinstance(error, RuntimeError) and "can't start new thread" in str(error))


def ending(estimator: Any, budget: Budget) -> str:
    """Why a fit whose budget is spent came to its end."""
    if budget.interrupted:
        return "was interrupted"
    if budget.stopped:
        return "was stopped by a callback"
    return f"stopped after max_time={estimator.max_time:g} s"


def warn_unfinished(estimator: Any, budget: Budget, otherwise: str) -> None:
    """Warn if a fit was interrupted, stopped, ran out of time, or else (``otherwise`` says how) did not converge."""
    if estimator.converged_ and not budget.interrupted:
        return
    reason = f"The fit {ending(estimator, budget)}" if budget.spent else otherwise
    # the caller of fit, which calls _warn, which calls this
    warnings.warn(f"{reason}; this is the best model so far.", ConvergenceWarning, stacklevel=4)
