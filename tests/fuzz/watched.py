"""A fit, watched: what is raised, warned of or never ends is a fault, but for a refusal in proper words."""

import signal
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import kfree
from fuzz.case import Case
from fuzz.subjects import SUBJECTS

#: Seconds after which a fit is taken to hang.
HANGS = 120
#: Divergences in the squared units of the rows.
_IN_SQUARES = ("sqeuclidean", "mahalanobis")
_HOMES = (str(Path(kfree.__file__).parent), "sklearn/utils", "sklearn/base")


class Fault(NamedTuple):
    """A law that is broken."""

    law: str
    detail: str


class Refused(Exception):
    """The door said no, in proper words; the cause is what it said."""


class Inconclusive(Exception):
    """The clock had a say in a fit that was to be compared."""


@contextmanager
def watched(faults: list[Fault], where: str) -> Iterator[None]:
    """Turn whatever is raised into a fault, but for a refusal in proper words; and hangs into errors."""
    signal.signal(signal.SIGALRM, _alarm)
    signal.alarm(HANGS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)
            yield
    except (Refused, Inconclusive):
        raise
    except Exception as error:
        if is_refusal(error):
            raise Refused from error
        place, name = traceback.extract_tb(error.__traceback__)[-1], type(error).__name__
        text = f"{name}: {str(error)[:200]} ({Path(place.filename).name}:{place.lineno})"
        faults.append(Fault(f"{where} raises {name}", text))
    finally:
        signal.alarm(0)


def _alarm(*_: Any) -> None:
    raise TimeoutError(f"no end after {HANGS} seconds")


def is_refusal(error: BaseException) -> bool:
    """Whether an error is one of ours, with words of our own: not a chance find of a library below."""
    if type(error) not in (ValueError, TypeError):
        return False
    place = traceback.extract_tb(error.__traceback__)[-1].filename
    return any(home in place for home in _HOMES) and len(str(error)) > 20


def fit(case: Case) -> Any:
    """The fitted model, or what a function returns."""
    subject, weight = SUBJECTS[case.subject], None if case.weight is None else case.weight.copy()
    params = {name: tuple(value) if isinstance(value, list) else value for name, value in case.params.items()}
    if not isinstance(subject.target, type):
        return subject.target(case.X, **params, sample_weight=weight)
    extra = {} if case.groups is None else {"groups": case.groups}
    extra |= {"sample_weight": weight} if subject.weighs else {}
    model = subject.target(**params)
    before = {name: repr(value) for name, value in model.get_params().items()}
    X = case.X
    model.fit(X, **extra)
    assert {name: repr(value) for name, value in model.get_params().items()} == before, "fit changed a parameter"
    if weight is not None:
        assert np.array_equal(weight, case.weight), "fit changed sample_weight"
    if case.layout in ("C", "F", "strided"):
        assert np.array_equal(X, case.X, equal_nan=True), "fit changed X"
    return model


def weight_of(case: Case) -> np.ndarray:
    """Weights, ones if there are none."""
    return np.ones(len(case.values)) if case.weight is None else case.weight


def doubt(case: Case) -> float:
    """What an objective of these rows cannot be known better than: the rounding of sums of squares of the entries as
    they are, or of as many nats as rows weigh."""
    weight, more = weight_of(case), case.params.get("smoothing", 0.0)
    with np.errstate(all="ignore"):
        X = case.entries
        squares = (weight[:, None] * X**2).sum()
        if isinstance(more, float):
            squares += more * len(X) * (X**2).max(initial=0.0)
        if "family" in case.params or case.params.get("divergence", "sqeuclidean") not in _IN_SQUARES:
            squares += weight.sum()
        sticks = float(np.sum(case.params.get("concentration", 0.0)))  # differences of digamma functions
        nats = 1e-9 + 4e-16 * sticks * np.log1p(sticks) if "family" in case.params else 0.0
        return float(np.nan_to_num(1e-12 * squares)) + nats
