"""Candidates that the user gives."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kfree.families import Array
from kfree.families.points import PointFamily, Spread
from kfree.inference.embedding.candidates import Sample
from kfree.models.checks import as_numbers, check_domain, check_entries
from kfree.rows.standardise import Units

_NAMES = ("means", "covariances")
# Means, in units of the spread of the rows, whose squares are numbers.
_FARTHEST = 1e100


def given_candidates(given: Any, family: PointFamily, sample: Sample, spread: Spread, units: Units) -> Any:
    """Components from an array of means, or a dict of means and covariances."""
    means, covariances = _read(given, family)
    means = _check_means(means, sample.X.shape[1])
    if not family.continuous:
        check_domain(means, family, "family", "candidates")
        empty = np.flatnonzero(means.sum(axis=1) == 0)
        if family.counted and empty.size:
            raise ValueError(f"candidates[{empty[0]}] is all zero; pass the probabilities of the columns.")
        return family.made_of(means, None)
    with np.errstate(over="ignore"):
        inside = (means - units.shift) / units.scale
    if not (np.abs(inside) <= _FARTHEST).all():
        raise ValueError(
            f"candidates are as far as {np.abs(inside).max():g} from the mean of X, in units of its spread, about "
            f"{units.scale.max():g}. Are their units those of X?"
        )
    if covariances is None:
        return family.made_of(inside, _near_covariances(inside, family, sample, spread))
    wanted = family.covariance_shape(*inside.shape)
    return family.made_of(inside, _check_covariances(covariances, wanted, spread, units))


def _read(given: Any, family: PointFamily) -> tuple[Array, Array | None]:
    """Means and, if they are given, covariances."""
    if not isinstance(given, Mapping):
        return as_numbers("candidates", given), None
    unknown = [name for name in given if name not in _NAMES]
    if unknown or "means" not in given:
        raise ValueError(
            f"candidates has the keys {sorted(map(str, given))}, and knows 'means', which is needed, and 'covariances'."
        )
    if "covariances" in given and not family.continuous:
        raise ValueError(f"candidates['covariances'] is for family='gaussian'; family={family.name!r} has none.")
    covariances = given.get("covariances")
    return (
        as_numbers("candidates['means']", given["means"]),
        None if covariances is None else as_numbers("candidates['covariances']", covariances),
    )


def _check_means(means: Array, columns: int) -> Array:
    if means.ndim != 2 or means.shape[0] < 1 or means.shape[1] != columns:
        raise ValueError(
            f"candidates have means of shape {means.shape}, but one row of {columns} numbers for each is needed."
        )
    check_entries("candidates", means)
    return means


def _check_covariances(given: Array, wanted: tuple[int, ...], spread: Spread, units: Units) -> Array:
    """Covariances in the units of the rows."""
    if given.shape != wanted:
        raise ValueError(f"candidates['covariances'] has shape {given.shape}, but {wanted} is needed.")
    check_entries("candidates['covariances']", given)
    with np.errstate(over="ignore"):
        inside = units.covariances_inside(given)
    least = np.linalg.eigvalsh(inside).min(axis=1) if inside.ndim == 3 else inside.reshape(wanted[0], -1).min(axis=1)
    if inside.ndim == 3 and not np.allclose(inside, inside.transpose(0, 2, 1)):
        raise ValueError("candidates['covariances'] must be symmetric matrices.")
    floor = float(spread.floor.min())
    if not (least >= floor).all() or not np.abs(inside).max() <= _FARTHEST:
        k = int(np.argmin(least))
        raise ValueError(
            f"candidates['covariances'][{k}] has the least variance {least[k]:g} in units in which the variances of "
            f"the columns of X are about 1; it must be at least {floor:g} there, and finite. Raise it, or check that "
            "its units are those of X."
        )
    return inside


def _near_covariances(means: Array, family: PointFamily, sample: Sample, spread: Spread) -> Array | None:
    """Covariances of the rows that are nearest to each mean, about their own mean."""
    apart = family.apart(sample.X, means)
    resp = (apart == apart.min(axis=1, keepdims=True)).astype(np.float64)  # repeated means share their rows
    resp *= (sample.weight / resp.sum(axis=1))[:, None]
    return family.covariances(family.estimate(sample.X, resp, spread))
