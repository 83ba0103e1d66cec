"""A smaller input that breaks the same law."""

import time
from collections.abc import Iterator

import numpy as np

from fuzz.case import Case
from fuzz.check import check
from fuzz.subjects import SUBJECTS


def shrink(case: Case, law: str, seconds: float = 60.0) -> Case:
    """Take away whatever the fault does not need, until nothing can go or the time is up."""
    end = time.perf_counter() + seconds
    smaller = True
    while smaller and time.perf_counter() < end:
        smaller = False
        for candidate in _smaller(case):
            if time.perf_counter() > end:
                break
            if law in {fault.law for fault in check(candidate).faults}:
                case, smaller = candidate, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    """Inputs with a little less in them, the boldest cuts first."""
    n, p = case.values.shape
    for part in _parts(n):
        yield case.rows(part)
    for part in _parts(p):
        other = None if case.other is None else case.other[:, part]
        yield case._replace(values=case.values[:, part], other=other)
    for name, plain in (("weight", None), ("other", None), ("relation", ""), ("dtype", "float64"), ("layout", "C")):
        if not (isinstance(getattr(case, name), str | None) and getattr(case, name) == plain):
            yield case._replace(**{name: plain})
    estimator = isinstance(SUBJECTS[case.subject].target, type)
    for name in case.params:
        if name != "max_time" and (estimator or name not in ("k", "n_components")):
            yield case._replace(params={key: value for key, value in case.params.items() if key != name})
    for rounded in (np.sign(case.values), np.round(case.values), _digits(case.values)):
        if not np.array_equal(rounded, case.values, equal_nan=True):
            yield case._replace(values=rounded)


def _parts(n: int) -> Iterator[np.ndarray]:
    """Halves, quarters, ... left out; single ones of a few at last."""
    size = n // 2
    while size:
        for start in range(0, n, size):
            left = np.delete(np.arange(n), slice(start, start + size))
            if left.size:
                yield left
        size = size // 2 if n <= 40 or size > n // 8 else 0


def _digits(values: np.ndarray) -> np.ndarray:
    """Values with two digits."""
    return np.array([float(f"{value:.1e}") for value in values.ravel()]).reshape(values.shape)
