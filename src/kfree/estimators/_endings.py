"""What a user is told of a fit that did not end by itself."""

import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from kfree.inference.loop import Budget


def warn_unfinished(estimator: Any, budget: Budget, otherwise: str) -> None:
    """Warn if a fit was interrupted, ran out of time, or else (``otherwise`` says how) did not converge."""
    if budget.interrupted:
        reason = "The fit was interrupted"
    elif estimator.converged_:
        return
    elif estimator.max_time is not None and budget.spent:
        reason = f"The fit stopped after max_time={estimator.max_time:g} s"
    else:
        reason = otherwise
    # the caller of fit, which calls _warn, which calls this
    warnings.warn(f"{reason}; this is the best model so far.", ConvergenceWarning, stacklevel=4)
