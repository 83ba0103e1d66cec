"""The kernel that the user wants: bandwidths by name, chosen from the data, or as numbers."""

from typing import Any

import numpy as np

from kfree.families import Array
from kfree.families.points import Kernel, PointFamily
from kfree.inference.embedding.bandwidths import squared_bandwidth
from kfree.inference.embedding.candidates import Sample
from kfree.models.checks import as_numbers, check_entries, check_number
from kfree.rows.standardise import Units

BANDWIDTHS = ("local", "median")
#: Bandwidths, in units of the spread of the rows, whose squares and inverses are numbers among others.
_BANDWIDTHS = 1e-6, 1e6


def by_column(family: PointFamily, bandwidth: Any) -> bool:
    """Whether every column has a unit of its own; numbers are in the units of X, the same for all columns."""
    return family.column_units and isinstance(bandwidth, str)


def make_kernel(bandwidth: Any, family: PointFamily, sample: Sample, units: Units, brevity: float) -> Kernel:
    """The kernel that the user wants, in the units of the rows."""
    if not family.has_width:
        if not (isinstance(bandwidth, str) and bandwidth == "local"):
            raise ValueError(
                f"family={family.name!r} compares shares by their inner product, which has no bandwidth, but "
                f"bandwidth={bandwidth!r}. Leave bandwidth='local'."
            )
        return Kernel(np.ones(1), brevity)
    if isinstance(bandwidth, str):
        width = squared_bandwidth(family, sample, bandwidth)
        least, most = _BANDWIDTHS  # as for numbers: beside one row far away all others may be as one
        return Kernel(np.array([np.clip(width, least**2, most**2) if width > 0 else 1.0]), brevity)
    return Kernel(_given_widths(bandwidth, float(units.scale[0])), brevity)


def check_widths(bandwidth: Any) -> None:
    """Several bandwidths."""
    hint = f"Pass one of {', '.join(map(repr, BANDWIDTHS))}, a number > 0, or a list of such."
    values = as_numbers("bandwidth", bandwidth)
    if values.ndim != 1 or not values.size:
        raise ValueError(f"bandwidth has shape {values.shape}. {hint}")
    check_entries("bandwidth", values)
    for value in values:
        check_number("bandwidth", float(value), above=0.0, hint=hint)


def _given_widths(bandwidth: Any, unit: float) -> Array:
    """Squared bandwidths in the units of the rows."""
    with np.errstate(over="ignore"):
        inside = np.atleast_1d(np.asarray(bandwidth, dtype=np.float64)) / unit
    least, most = _BANDWIDTHS
    if not (least <= inside.min() and inside.max() <= most):
        raise ValueError(
            f"bandwidth={bandwidth!r} is from {inside.min():g} to {inside.max():g} in units of the spread of X, about "
            f"{unit:g}, and must be within {least:g} and {most:g} there. Are its units those of X?"
        )
    return inside**2
