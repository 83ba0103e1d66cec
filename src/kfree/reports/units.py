"""Prepared rows and centres as their table had them: values in its units, dates, and shares of levels in percent."""

from typing import Any

import numpy as np

from kfree.families import Array
from kfree.reports.wording import NOTHING, number, percent


def told_in_units(preparer: Any, values: Array) -> Array:
    """(m, p) what is told of the entries of m prepared rows or centres."""
    spoken, shown = preparer._spoken(), preparer._shown(values)
    cells = [[_told(entry, own.kind) for entry in column] for own, column in zip(spoken, shown)]
    return np.array(cells, dtype=object).reshape(len(spoken), len(values)).T


def _told(entry: Any, kind: str) -> str:
    if kind == "choice":
        return percent(entry)
    if not isinstance(entry, np.datetime64 | np.timedelta64):
        return number(entry)
    if np.isnat(entry):
        return NOTHING
    day = np.timedelta64(1, "D")
    return f"{number(entry / day)} days" if isinstance(entry, np.timedelta64) else str(entry.astype("datetime64[D]"))
