"""One input: fit, and look at all that came of it."""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from fuzz import laws
from fuzz.case import Case
from fuzz.relations import RELATIONS, is_comparable
from fuzz.subjects import SUBJECTS
from fuzz.watched import Fault, Inconclusive, Refused, fit, watched

#: A fit may return so many seconds after ``max_time``.
LATE = 1.0


class Verdict(NamedTuple):
    """What came of an input."""

    status: str  # "fitted" or "refused"
    faults: list[Fault]
    seconds: float  # of the fit


def check(case: Case) -> Verdict:
    """Fit, and look at all that came of it."""
    faults: list[Fault] = []
    model, began = None, time.perf_counter()
    try:
        with watched(faults, "fit"):
            model = fit(case)
    except Refused:
        return Verdict("refused", faults, time.perf_counter() - began)
    seconds = time.perf_counter() - began
    for name, law in _laws(case, seconds) if model is not None else ():
        try:
            with watched(faults, name):
                faults += law(case, model)
        except Inconclusive:
            pass
        except Refused as refusal:
            faults.append(Fault(f"{name} refuses the rows of the fit", str(refusal.__cause__)[:200]))
    return Verdict("fitted", faults, seconds)


def _laws(case: Case, seconds: float) -> Iterator[tuple[str, Any]]:
    """Laws with their names."""
    yield "in time", lambda case, model: _in_time(case, seconds, model)
    estimator = isinstance(SUBJECTS[case.subject].target, type)
    for law in laws.OF_ESTIMATORS if estimator else laws.OF_FUNCTIONS:
        yield law.__name__.replace("_", " "), law
    if case.relation and is_comparable(case, seconds):
        yield case.relation, RELATIONS[case.relation]


def _in_time(case: Case, seconds: float, model: Any) -> list[Fault]:
    most = case.params.get("max_time")
    if most is not None and hasattr(model, "samples_"):  # chains end the sweep they are in
        most += seconds / model.n_iter_
    if most is None or seconds <= most + LATE:
        return []
    tries = [seconds]
    while min(tries) > most + LATE and len(tries) < 3:  # the first may have compiled something, or had to wait
        again = time.perf_counter()
        fit(case)
        tries.append(time.perf_counter() - again)
    late = min(tries) - most
    return [Fault("returns late", f"{late:.1f} s after max_time={most}")] if late > LATE else []
