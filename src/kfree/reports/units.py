"""Centres of prepared tables in the units that their columns had before."""

from typing import Any

import numpy as np

from kfree.families import Array


def in_units(profile: Any, preparer: Any) -> Any:
    """A profile whose centres are in the units of the table; columns that are made of levels stay as they are."""
    values = _decoded(preparer, profile.columns, np.vstack([profile.centre, profile.overall]))
    return profile._replace(centre=values[:-1], overall=values[-1])


def _decoded(preparer: Any, columns: tuple[str, ...], values: Array) -> Array:
    table, shown = preparer.inverse_transform(values), values.copy()
    names = [str(name) for name in getattr(preparer, "feature_names_in_", ())]
    for j, name in enumerate(columns):
        column = np.asarray(table[name]) if name in names else np.empty(0, object)
        if column.dtype.kind in "iuf":
            shown[:, j] = np.where(np.isfinite(column), column, values[:, j])
    return shown
