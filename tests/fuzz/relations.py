"""Second fits that must give what the first gave."""

import re
import time
from typing import Any

import numpy as np

from fuzz.case import Case
from fuzz.subjects import SUBJECTS, is_tied
from fuzz.tables import LAYOUTS
from fuzz.watched import Fault, Inconclusive, Refused, doubt, fit, watched, weight_of


def again(case: Case, model: Any) -> list[Fault]:
    """The same input twice: the same bits."""
    return _differences(case, model, _second_fit(case), exact=True)


def layout(case: Case, model: Any) -> list[Fault]:
    """The same values in another container; sparse for dense only where no rounding decides."""
    dense_too = case.ordinary and case.dtype == "float64" and case.layout != "list"
    names = [name for name in LAYOUTS if dense_too or _sparse(name) == _sparse(case.layout)]
    if case.dtype != "float64":  # a list has a type of its own
        names = [name for name in names if name != "list"]
    other = names[np.random.default_rng(case.seed).integers(len(names))]
    try:
        with watched([], "layout"):
            second = _second_fit(case._replace(layout=other))
    except Refused:  # sparse rows that an estimator does not take
        return []
    found = _differences(case, model, second, exact=_sparse(other) == _sparse(case.layout))
    return [fault._replace(detail=f"{other}: {fault.detail}") for fault in found]


def order(case: Case, model: Any) -> list[Fault]:
    """Rows in another order, where the order is nobody's business."""
    # where rows are equally far, sums that are not exact decide, and these have an order
    exact = is_tied(case) and (case.weight is None or bool((weight_of(case) == np.rint(weight_of(case))).all()))
    if not _free_of_order(case) or not (case.ordinary or (exact and weight_of(case).sum() < 2.0**50)):
        return []
    mixed = np.random.default_rng(case.seed).permutation(len(case.values))
    return _differences(case, model, _second_fit(case.rows(mixed)), rows=mixed)


def repeat(case: Case, model: Any) -> list[Fault]:
    """A whole weight is so many copies of a row."""
    weight = weight_of(case)
    if not _free_of_order(case) or not case.ordinary or (weight != np.floor(weight)).any() or weight.sum() > 2000:
        return []
    copies = np.repeat(np.arange(len(weight)), weight.astype(int))
    return _differences(case, model, _second_fit(case.rows(copies)._replace(weight=None)), rows=copies)


def zero_weights(case: Case, model: Any) -> list[Fault]:
    """Rows without weight might as well not be there."""
    kept = np.flatnonzero(weight_of(case) > 0)
    if kept.size == len(case.values) or not _free_of_order(case) or not case.ordinary:
        return []
    return _differences(case, model, _second_fit(case.rows(kept)), rows=kept)


def price(case: Case, model: Any) -> list[Fault]:
    """The price that a fit publishes finds its clusters again, and so does that of ``lam_for_k``."""
    params = {name: value for name, value in case.params.items() if name not in ("lam", "n_clusters", "radius", "k")}
    if case.subject == "lam_for_k":
        try:
            with watched([], "price"):
                second = _second_fit(case._replace(subject="DPMeans", params=params | {"n_clusters": case.params["k"]}))
        except Refused:  # fewer rows differ; the price is that of as many clusters as there can be
            return []
        if second.lam_ is None or second.lam_ == model:
            return []
        return [Fault("price: that of n_clusters is another", f"{second.lam_!r} and {model!r}")]
    if model.lam_ is None or (model.choice_ is not None and not model.choice_.complete):
        return []
    return _differences(case, model, _second_fit(case._replace(params=params | {"lam": model.lam_})), exact=True)


RELATIONS = {
    "again": again,
    "layout": layout,
    "order": order,
    "price": price,
    "repeat": repeat,
    "zero weights": zero_weights,
}


def is_comparable(case: Case, seconds: float) -> bool:
    """Whether nothing but the input decided what was found in so many seconds: the clock did not."""
    most = case.params.get("max_time")
    return most is None or seconds < 0.5 * most


def _second_fit(case: Case) -> Any:
    began = time.perf_counter()
    model = fit(case)
    if not is_comparable(case, time.perf_counter() - began):
        raise Inconclusive
    return model


def _sparse(name: str) -> bool:
    return name.startswith("cs")


def _free_of_order(case: Case) -> bool:
    """Whether the docs promise the same for rows in another order."""
    get = case.params.get
    if get("algorithm", "batch") not in ("batch", "delayed") or not isinstance(get("init", ""), str):
        return False
    if get("init") == "k-means++":
        return False
    if get("refine") is True:  # steps of L-BFGS make more of the rounding of sums
        return False
    if case.subject == "HDPMeans":  # "points" is the papers' walk over the rows
        return get("search") == "full" or (get("search") == "auto" and "auto" in (get("lam_local"), get("lam_global")))
    if get("ridge") == 0.0:  # the best weights are not unique
        return False
    # of splits that are equally good, as those of a few whole numbers are, one is taken by the order
    return case.subject != "VariationalDPMixture" or case.dtype.startswith("float")


def _differences(case: Case, one: Any, two: Any, rows: Any = None, exact: bool = False) -> list[Fault]:
    """What two fits that must agree differ in; ``rows`` are those of the first that the second saw."""
    if not isinstance(SUBJECTS[case.subject].target, type):
        a, b = (np.asarray(getattr(some, "inertia", some), dtype=np.float64) for some in (one, two))
        return [] if a.shape == b.shape and np.allclose(a, b, rtol=1e-6, atol=doubt(case)) else [_unlike(case, a, b)]
    a, b = (_value(model) for model in (one, two))
    if a != b and abs(a - b) > 1e-6 * abs(a) + doubt(case):
        return [_unlike(case, a, b)]
    if not exact and (not case.ordinary or is_tied(case)):
        return []
    which = next(name for name in ("labels_", "cell_labels_", "Z_") if hasattr(one, name))
    first, second = getattr(one, which), getattr(two, which)
    first = first if rows is None else first[rows]
    if np.array_equal(first, second):
        return []
    return [Fault(f"{case.relation}: {which} differ", re.sub(r"\s+", " ", f"{first!r} and {second!r}")[:300])]


def _value(model: Any) -> float:
    """What a fit is judged by."""
    for name in ("objective_", "free_energy_"):
        if hasattr(model, name):
            return float(getattr(model, name))
    return float(model.log_posterior_trace_[0, -1])


def _unlike(case: Case, a: Any, b: Any) -> Fault:
    return Fault(f"{case.relation}: another result", re.sub(r"\s+", " ", f"{a!r} and {b!r}")[:200])
