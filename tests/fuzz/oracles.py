"""Objectives of published models, every formula spelled out; and by how much rounding may change them."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Separable

_EPS = {"float32": 2.0**-22, "float64": 2.0**-50}


class Reading(NamedTuple):
    """What a twin says an objective is."""

    value: float
    doubt: float  # of it, as published centres are rounded


def objective(case, model, weight):
    """The objective of a fitted model by the formula of its docstring, None if there is no twin for it."""
    found = _TWINS.get(case.subject)
    return None if found is None else found(case, model, weight)


def rounding(case, model, weight):
    """What rounding of the published centres may make of an objective; 0 where there are none."""
    if not hasattr(model, "cluster_centers_"):
        return 0.0
    return 8 * (_divergence_sums(case, model, _weights(case, model, weight))[1] + _felt_by_prior(case, model, weight))


def _felt_by_prior(case, model, weight):
    """What rounding of the published centres may make of what they cost beside the prior."""
    eta, family, given = case.params.get("smoothing", 0.0), model.family_, case.params.get("smoothing_mean")
    if not eta:
        return 0.0
    X = _statistics(family, case.entries[weight > 0])
    centres = np.asarray(model.cluster_centers_, dtype=np.float64)
    prior = np.average(X, axis=0, weights=weight[weight > 0]) if given is None else np.asarray(given, dtype=np.float64)
    prior = np.repeat(_statistics(family, prior[None]), len(centres), axis=0)
    step = _eps(model.cluster_centers_) * (np.abs(X).max(axis=0) if family.translates else np.abs(centres))
    with np.errstate(all="ignore"):
        felt = _felt(family, prior, centres, step).sum()
        if not family.translates:  # a difference of numbers of the size of the prior's mean
            felt += _EPS["float64"] * (np.abs(prior) + np.abs(centres)).sum()
        return eta * float(felt)


def _eps(values):
    return _EPS.get(str(values.dtype), _EPS["float64"])


def _divergence_sums(case, model, weight):
    """Weighted divergences of the rows from their centres, and what rounding may make of them.

    Centres are published with some digits; and what a fit knows of a row is its difference from the mean of all, or, of
    sparse rows and families that do not translate, its entries.
    """
    family, active = model.family_, weight > 0
    X, weight = _statistics(family, case.entries[active]), weight[active]
    mean = np.asarray(model.cluster_centers_, dtype=np.float64)[model.labels_[active]]
    eps = _eps(model.cluster_centers_)
    with np.errstate(all="ignore"):
        D = _by_row(family, X, mean)
        doubt = _felt(family, X, mean, eps * (np.abs(X).max(axis=0) if family.translates else np.abs(mean)))
        far = np.repeat(family.centre(weight @ X / weight.sum() * np.ones((1, 1)), np.ones(1)), len(X), axis=0)
        doubt += _EPS["float64"] * (D + _by_row(family, X, far))
        if not family.translates:
            doubt += _EPS["float64"] * (1.0 + np.abs(X).sum(axis=1))  # nats
        elif sp.issparse(case.X):  # which are not centred
            doubt += _EPS["float64"] * (X**2).sum(axis=1)
        return float(weight @ D), float(weight @ doubt)


def _felt(family, X, mean, step):
    """By how much divergences change if centres move by a step: column by column where columns depend on each other."""
    if isinstance(family, Separable):
        return np.abs(_by_row(family, X, mean + step) - _by_row(family, X, mean - step))
    D, felt = _by_row(family, X, mean), np.zeros(len(X))
    for j in range(X.shape[1]):
        moved = mean.copy()
        moved[:, j] += step[j]
        felt += np.abs(_by_row(family, X, moved) - D)
    return felt


def _statistics(family, X):
    """Rows as the family sees them."""
    if family.normalise == "sum":
        return X / X.sum(axis=1, keepdims=True)
    if family.normalise is None:
        return X
    X = X / np.abs(X).max(axis=1, keepdims=True)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def _by_row(family, X, mean):
    return np.array([float(family.divergence(x, m)) for x, m in zip(X, mean)])


def _weights(case, model, weight):
    """The weights of the objective: those of the user, times lengths where histograms count by theirs."""
    how = case.params.get("weighting", "none")
    if how == "none":
        return weight
    size = case.entries.sum(axis=1)
    return weight * (size if how == "length" else size / np.average(size, weights=weight))


def _dp_means(case, model, weight):
    if case.params.get("smoothing"):  # the prior's share is told by the law tests
        return None
    total, doubt = _divergence_sums(case, model, _weights(case, model, weight))
    each = model.radius_ if case.params.get("radius") is not None else model.lam_ or 0.0
    return Reading(total + (each if np.isfinite(each) else 0.0) * model.n_clusters_, doubt)


def _hdp_means(case, model, weight):
    if case.params.get("smoothing"):
        return None
    total, doubt = _divergence_sums(case, model, _weights(case, model, weight))
    active = weight > 0
    pairs = len(set(zip(case.groups[active].tolist(), model.labels_[active].tolist())))
    used = np.unique(model.labels_[active]).size
    return Reading(total + model.lam_local_ * pairs + model.lam_global_ * used, doubt)


def _features(case, model, weight):
    X, Z = case.entries, np.asarray(model.Z_, dtype=np.float64)
    A, base = np.asarray(model.components_, dtype=np.float64), np.asarray(model.intercept_, dtype=np.float64)
    gap = X - base - Z @ A
    eps = max(_eps(model.components_), _EPS["float64"])
    near = eps * (np.abs(X).max(axis=0) + np.abs(base) + Z @ np.abs(A))  # rows are looked at less their mean
    active = weight > 0
    inertia = float(weight[active] @ (gap**2).sum(axis=1)[active])
    doubt = float(weight[active] @ (2 * np.abs(gap) * near + near**2).sum(axis=1)[active])
    lam = getattr(model, "lam_", 0.0)
    return Reading(inertia + lam * int(Z[active].any(axis=0).sum()), doubt)


_TWINS = {
    "DPMeans": _dp_means,
    "HDPMeans": _hdp_means,
    "BPMeans": _features,
    "KFeatures": _features,
    "StepwiseKFeatures": _features,
}
