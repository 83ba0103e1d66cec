"""What must hold of any fitted model: every number can be trusted, whatever was fitted."""

import pickle
from copy import deepcopy
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from fuzz.case import Case
from fuzz.oracles import objective, rounding
from fuzz.subjects import SUBJECTS
from fuzz.tables import lay_out
from fuzz.watched import Fault, Refused, doubt, watched, weight_of

#: Ends of windows of lam, which may be infinite or, off the envelope, missing; lam as a share of what may be nothing;
#: deviations of what has no variance.
_OPEN = ("lam_window_", "choice_", "path_", "lam_share_", "means_sd_")


def _numbers(value: Any) -> np.ndarray | None:
    """All numbers in a fitted attribute, None if it has none."""
    if sp.issparse(value):
        return np.asarray(value.data, dtype=np.float64)
    if isinstance(value, bool | str) or value is None:
        return None
    if isinstance(value, int | float | np.number):
        return np.array([value], dtype=np.float64)
    if isinstance(value, np.ndarray):
        return value.astype(np.float64).ravel() if value.dtype.kind in "iufb" else None
    if isinstance(value, list | tuple):
        parts = [part for part in map(_numbers, value) if part is not None]
        return np.concatenate(parts) if parts else None
    return None


def finite(case: Case, model: Any) -> list[Fault]:
    wrong = []
    for name, value in vars(model).items():
        given = isinstance(value, float) and value == getattr(model, name.strip("_"), None)  # lam=inf is allowed
        found = _numbers(value) if name.endswith("_") and name not in _OPEN and not given else None
        if found is not None and not np.isfinite(found).all():
            wrong.append(Fault(f"{name} is not finite", repr(value)[:200]))
    return wrong


def finite_value(case: Case, value: Any) -> list[Fault]:
    """The same for what a function returns: a price, a radius, a path."""
    path = case.subject == "lam_path"
    parts = [value.inertia, value.score, value.choice.clearness] if path else [value]
    if not all(np.isfinite(np.asarray(part, dtype=np.float64)).all() for part in parts):
        return [Fault("the result is not finite", repr(value)[:200])]
    if not path:
        return [] if value > 0 else [Fault("the result is not positive", repr(value))]
    wrong = _fits_together(case, value.choice) + _nested(case, value)
    if not np.array_equal(value.n_clusters, np.arange(1, len(value.n_clusters) + 1)):
        wrong.append(Fault("numbers of clusters are missing", repr(value.n_clusters)[:200]))
    return wrong


def how_many(case: Case, model: Any) -> list[Fault]:
    """What was asked for is there: so many clusters, a price inside its window, the radius."""
    if case.subject != "DPMeans":
        return []
    wrong, number, late = [], case.params.get("n_clusters"), _hurried(case)
    if number is not None and not (model.n_clusters_ == number or (late and model.n_clusters_ < number)):
        wrong.append(Fault("another number of clusters", f"{model.n_clusters_} for n_clusters={number}"))
    if case.params.get("radius") is not None:
        if (model.lam_, model.lam_window_, model.radius_) != (None, None, case.params["radius"]):
            wrong.append(Fault("a radius is published as something else", repr((model.lam_, model.radius_))))
    elif (model.lam_ is None) != (model.lam_window_ is None) or (model.lam_ is None and number is None):
        wrong.append(Fault("there is no price, or no window of it", repr((model.lam_, model.lam_window_))))
    elif model.lam_ is not None and not model.lam_window_[0] <= model.lam_ <= model.lam_window_[1]:
        wrong.append(Fault("the price is not in its window", repr((model.lam_, model.lam_window_))))
    if not model.radius_ >= 0:
        wrong.append(Fault("radius_ is negative", repr(model.radius_)))
    chosen = number is None and case.params.get("radius") is None and case.params.get("lam", "auto") == "auto"
    if chosen != (model.choice_ is not None):
        return [*wrong, Fault("choice_ is there, or not", repr(model.choice_)[:200])]
    return wrong + (_fits_together(case, model.choice_) if chosen else [])


def _hurried(case: Case) -> bool:
    """Whether there was little time."""
    return case.params.get("max_time") is not None and case.params["max_time"] < 1


def _fits_together(case: Case, choice: Any) -> list[Fault]:
    """A choice: what it says can be."""
    scores = np.concatenate([choice.score, choice.score_without_groups])
    scores = scores[~np.isnan(scores)]
    sound = ((scores >= 0) & (scores <= 1 + 1e-12)).all() and np.isfinite(choice.inertia).all()
    sound &= choice.clearness >= 0 and choice.n_groups >= 1 and choice.best in choice.n_clusters
    wrong = [] if sound else [Fault("the choice does not fit together", repr(choice)[:300])]
    return wrong + _nested(case, choice)


def _nested(case: Case, record: Any) -> list[Fault]:
    """Windows of prices: that of one number ends where that of the next begins, and all prices are in one."""
    window = record.window[np.isfinite(record.window[:, 0])]
    if len(window) and window[0, 1] == np.inf and window[-1, 0] >= 0 and np.array_equal(window[:-1, 0], window[1:, 1]):
        return []
    return [Fault("windows of prices do not nest", repr(record.window)[:300])]


def never_rises(case: Case, model: Any) -> list[Fault]:
    trace = getattr(model, "objective_trace_", getattr(model, "free_energy_trace_", np.zeros(0)))
    last = getattr(model, "objective_", None)
    if case.params.get("accelerate") is not None:
        return []  # nodes may be joined again
    scale = np.maximum(np.abs(trace[:-1]), np.abs(trace[1:]))
    risen = (np.diff(trace) - 1e-8 * scale).max(initial=0.0) - doubt(case)
    if risen > 0 and risen > rounding(case, model, weight_of(case)):  # the last value is that of published centres
        return [Fault("the trace rises", repr(trace)[:300])]
    if last is not None and trace.size and abs(trace[-1] - last) > 1e-6 * abs(last) + doubt(case):
        return [Fault("the trace ends elsewhere", f"{trace[-1]!r} for {last!r}")]
    return []


def labels(case: Case, model: Any) -> list[Fault]:
    """Labels are those that the model gives, and every cluster has some."""
    extra = {} if case.groups is None else {"groups": case.groups}
    wrong = []
    if hasattr(model, "predict"):
        found = model.predict(case.X, **extra)
        # of samples, labels_ is the partition that stands for all; predict asks them about rows as if these were new.
        # Documents that there was no time for have their hard labels.
        documents = hasattr(model, "doc_labels_")
        given, same = (
            (model.doc_labels_, model.converged_) if documents else (model.labels_, not hasattr(model, "samples_"))
        )
        if same and not np.array_equal(found, given):
            wrong.append(Fault("labels_ differ from predict", f"{int((found != given).sum())} rows"))
        K = model.n_clusters_ if hasattr(model, "n_clusters_") else model.n_components_
        if given.shape != (len(case.values),) or given.min() < 0 or given.max() >= K:
            wrong.append(Fault("labels_ out of range", repr(given)[:200]))
        active = weight_of(case) > 0
        if hasattr(model, "n_clusters_") and np.unique(model.labels_[active]).size != K:
            wrong.append(Fault("clusters without rows", f"{K} clusters, {np.unique(model.labels_[active]).size} used"))
    if hasattr(model, "Z_"):
        expected = (len(case.values), model.n_components_)
        if model.Z_.shape != expected or not np.isin(model.Z_, (0, 1)).all():
            wrong.append(Fault("Z_ is no allocation", f"shape {model.Z_.shape}"))
    if hasattr(model, "weights_") and abs(model.weights_.sum() + getattr(model, "tail_weight_", 0.0) - 1.0) > 1e-9:
        wrong.append(Fault("weights do not sum to one", repr(model.weights_)))
    return wrong


def topics(case: Case, model: Any) -> list[Fault]:
    """Shares are shares, also of topics that are merged, and all have a name."""
    if case.subject != "HDPTopics":
        return []
    wrong = []
    fewer = deepcopy(model).reduce_topics((model.n_topics_ + 1) // 2)
    for what, some in (("topics", model), ("merged topics", fewer)):
        for name in ("components_", "doc_topic_"):
            if not np.allclose(getattr(some, name).sum(axis=1), 1.0, atol=1e-6):
                wrong.append(Fault(f"{name} of {what} do not sum to one", repr(getattr(some, name).sum(axis=1))[:200]))
        if len(set(some.topic_names_)) != some.n_topics_:
            wrong.append(Fault(f"{what} share names", repr(some.topic_names_)[:200]))
        if not some.explain() or not np.isfinite(some.objective_):
            wrong.append(Fault(f"{what} are not explained", repr(some.objective_)))
    return wrong


def twin(case: Case, model: Any) -> list[Fault]:
    reading = objective(case, model, weight_of(case))
    if reading is None or not np.isfinite(reading.doubt):
        return []
    gap = abs(model.objective_ - reading.value)
    if gap <= 1e-8 * abs(reading.value) + 8 * reading.doubt:
        return []
    detail = f"{model.objective_!r}, twin {reading.value!r}, doubt {reading.doubt:g}"
    return [Fault("objective_ is not that of the twin", detail)]


def asked(case: Case, model: Any) -> list[Fault]:
    """Every method, on the rows of the fit and on others: numbers, or a refusal."""
    wrong = []
    active = weight_of(case) > 0
    for name in SUBJECTS[case.subject].asks:
        for what, values in (("its rows", case.values[active]), ("other rows", case.other)):
            if values is None:
                continue
            # with other weights than those of the fit its rows are another input
            own = name == "score" and what == "its rows" and case.weight is not None
            extra = {"sample_weight": case.weight[active]} if own else {}
            faults: list[Fault] = []
            try:
                with watched(faults, f"{name} of {what}"):
                    found = _numbers(getattr(model, name)(lay_out(values, case.dtype, case.layout), **extra))
                    # infinitely far is a number: a row that a component cannot have
                    if found is None or np.isnan(found).any() or (what == "its rows" and _bad_infinity(name, found)):
                        faults.append(Fault(f"{name} of {what} is not finite", repr(found)[:200]))
            except Refused as refusal:
                if what == "its rows":
                    faults.append(Fault(f"{name} refuses the rows of the fit", str(refusal.__cause__)[:200]))
            wrong += faults
    if hasattr(model, "sample"):
        rows, labels = model.sample(5)
        if not np.isfinite(rows).all() or rows.shape != (5, case.values.shape[1]) or labels.shape != (5,):
            wrong.append(Fault("sample is not finite", repr(rows)[:200]))
    if hasattr(model, "inverse_transform") and not np.isfinite(model.inverse_transform(model.Z_)).all():
        wrong.append(Fault("inverse_transform is not finite", ""))
    return wrong


def _bad_infinity(name: str, found: np.ndarray) -> bool:
    return name not in ("transform", "decision_function") and bool(np.isinf(found).any())


def words(case: Case, model: Any) -> list[Fault]:
    """Models explain themselves; names of clusters differ, contributions are shares, strengths lie between 0 and 1."""
    wrong = []
    if not model.explain() or "nan" in model.explain():
        wrong.append(Fault("explain says nothing", model.explain()[:200]))
    strength = getattr(model, "probabilities_", np.zeros(1))
    if not ((strength >= 0) & (strength <= 1)).all():
        wrong.append(Fault("strengths are not between 0 and 1", repr(strength)[:200]))
    if not hasattr(model, "profile"):
        return wrong
    model.profile(case.X, case.weight)
    profile = model._profile(case.X, case.weight)  # frames are answered by frames
    size = np.abs(profile.contribution).sum(axis=1)
    if len(set(profile.names)) != len(profile.names) or max(map(len, profile.names)) > 48:
        wrong.append(Fault("clusters share names, or these are long", repr(profile.names)[:300]))
    if not (np.isclose(size, 1.0) | (size == 0)).all() or not np.isfinite(profile.overall).all():
        wrong.append(Fault("contributions are no shares", repr(size)[:200]))
    return wrong


def kept(case: Case, model: Any) -> list[Fault]:
    """Pickled and cloned, a model is the same."""
    again = pickle.loads(pickle.dumps(model))
    wrong = [
        Fault("a pickle loses something", name)
        for name, value in vars(model).items()
        if name.endswith("_") and pickle.dumps(value) != pickle.dumps(getattr(again, name))
    ]
    clone(model)
    if hasattr(model, "predict") and not np.array_equal(again.predict(case.X), model.predict(case.X)):
        wrong.append(Fault("a pickle predicts something else", ""))
    return wrong


#: Laws of estimators, and of functions.
OF_ESTIMATORS = (finite, never_rises, labels, topics, twin, how_many, words, asked, kept)
OF_FUNCTIONS = (finite_value,)
