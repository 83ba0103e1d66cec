"""Tables as they are: columns of pandas, polars and Arrow frames and of arrays, as numbers, dates or levels."""

import re
from collections.abc import Callable
from datetime import date
from importlib import import_module
from numbers import Number
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.models.group_names import is_missing

# A day, or a day and a time, as most programs write them; and with points, where the day always comes first.
_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?")
_POINTS = re.compile(r"(\d\d?)\.(\d\d?)\.(\d{4})([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?")
#: How dates in text may be written, as users are told.
DATES = "2024-01-31 or 31.01.2024"
# A number as text; one that begins with a needless 0 is a code.
_NUMERAL = re.compile(r"[-+]?(0|[1-9]\d*)?(\.\d*)?([eE][-+]?\d+)?")
# Largest number that is taken, as everywhere.
_LARGEST = 1e150
#: Libraries whose frames are known, and what makes a frame of a dictionary of columns.
FRAMES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}


class TableColumn(NamedTuple):
    """A column of a table."""

    name: str
    values: Array  # (n,) numbers with NaN, dates in microseconds with NaT, or levels (objects) with None for missing
    kind: str  # "number", "date" or "category"
    integer: bool = False  # whether the table itself holds whole numbers

    @property
    def missing(self) -> Array:
        """(n,) which values are missing."""
        if self.kind == "category":
            return np.array([value is None for value in self.values], bool)
        return np.isnan(self.values) if self.kind == "number" else np.isnat(self.values)


def library_of(X: Any) -> str:
    """The library whose frame X is; empty for arrays and lists."""
    name = type(X).__module__.partition(".")[0]
    return name if name in FRAMES and hasattr(X, "columns") else ""


def frame_of(library: str, columns: dict[str, Any]) -> Any:
    """A frame of a library."""
    return getattr(import_module(library), FRAMES[library])(columns)


def raw_columns(X: Any) -> list[Any]:
    """The columns of a frame or of an array with two dimensions, as they are there."""
    if library_of(X) == "pandas":
        return [X.iloc[:, j] for j in range(X.shape[1])]
    if library_of(X):
        return list(X.get_columns() if hasattr(X, "get_columns") else X.columns)
    return list(X.T)


def read_column(name: str, raw: Any, kind: str | None = None) -> TableColumn:
    """A column as what it is, or as a kind that it has to be."""
    own = _own_kind(raw)
    values = _settled(np.asarray(raw.to_numpy() if hasattr(raw, "to_numpy") else raw))
    if kind is None:
        kind = own or {"f": "number", "i": "number", "M": "date", "m": "date"}.get(values.dtype.kind, "category")
    whole = values.dtype.kind == "i"
    if kind == "number":
        return TableColumn(name, _finite(name, _as_kind(name, values, kind, _numbers)), kind, whole)
    if kind == "date":
        return TableColumn(name, _as_kind(name, values, kind, _dates), kind)
    return TableColumn(name, _levels(values), kind)


def _own_kind(raw: Any) -> str | None:
    """What a frame itself calls a column, where its values would not tell."""
    return "category" if str(getattr(raw, "dtype", "")) == "category" else None


def _settled(values: Array) -> Array:
    """Floats, integers, dates or objects: whatever text and objects stand for."""
    if values.dtype.kind in "SU":
        values = values.astype(object)
    if values.dtype.kind == "u":
        return values.astype(np.int64 if values.dtype.itemsize < 8 else np.float64)
    return _objects(values) if values.dtype.kind == "O" else values


def _objects(values: Array) -> Array:
    """Objects that are all numbers, or all dates, as such."""
    there = np.array([not (is_missing(value) or value == "") for value in values], bool)
    some = values[there]
    for fits, make in ((_is_number, _from_numbers), (_is_day, _from_days), (_is_date, _from_dates), (_reads, float)):
        if some.size and all(map(fits, some)):
            made = np.array([make(value) for value in some])
            if there.all():
                return made
            whole = np.full(values.shape, np.nan if made.dtype.kind in "if" else np.datetime64("NaT"))
            whole = whole.astype(made.dtype if made.dtype.kind == "M" else np.float64)
            whole[there] = made
            return whole
    cleared = np.empty(values.shape, object)  # missing ones are None
    cleared[there] = some
    return cleared


def _is_number(value: Any) -> bool:
    return isinstance(value, Number) and not isinstance(value, bool | np.bool_ | complex)


def _from_numbers(value: Any) -> Any:
    return int(value) if isinstance(value, int | np.integer) and abs(int(value)) < 1 << 53 else float(value)


def _is_date(value: Any) -> bool:
    return isinstance(value, date | np.datetime64)


def _from_dates(value: Any) -> np.datetime64:
    """The time on the clock there, wherever that is."""
    if getattr(value, "tzinfo", None) is not None:
        value = value.replace(tzinfo=None)
    return np.datetime64(value, "us")


def _is_day(value: Any) -> bool:
    return isinstance(value, str) and _ISO.fullmatch(_year_first(value)) is not None and _is_day_of_the_calendar(value)


def _is_day_of_the_calendar(text: str) -> bool:
    try:
        _from_days(text)
    except ValueError:
        return False
    return True


def _from_days(text: str) -> np.datetime64:
    return np.datetime64(_year_first(text), "us")


def _year_first(text: str) -> str:
    """A date with points as others are written."""
    found = _POINTS.fullmatch(text)
    return text if found is None else f"{found[3]}-{found[2]:0>2}-{found[1]:0>2}{found[4] or ''}"


def _reads(value: Any) -> bool:
    """Whether a text is a number."""
    if not isinstance(value, str):
        return False
    text = value.strip()
    return any(map(str.isdigit, text)) and _NUMERAL.fullmatch(text) is not None and text[:1] not in "eE"


def _as_kind(name: str, values: Array, kind: str, make: Callable[[Array], Array]) -> Array:
    """Values as another kind, if they can be."""
    try:
        return make(values)
    except (ValueError, TypeError) as error:
        row = next(i for i in range(values.size) if not _can(make, values[i : i + 1]))
        raise ValueError(
            f"Column {name!r} must hold {kind}s, but row {row} holds {values[row]!r}. "
            f"{f'Write dates as {DATES}' if kind == 'date' else 'Correct the table'}, or pass "
            f"kinds={{{name!r}: 'category'}} when fitting."
        ) from error


def _can(make: Callable[[Array], Array], values: Array) -> bool:
    try:
        make(values)
    except (ValueError, TypeError):
        return False
    return True


def _numbers(values: Array) -> Array:
    if values.dtype.kind in "mM":
        raise TypeError("dates are no numbers")
    return values.astype(np.float64)


def _dates(values: Array) -> Array:
    if values.dtype.kind in "mM":
        return values.astype(f"{values.dtype.kind}8[us]")
    if values.dtype.kind != "O" and not np.isnan(values).all():
        raise TypeError("numbers are no dates")
    some = [_year_first(value) if isinstance(value, str) else value for value in values]
    return np.array([None if is_missing(value) else value for value in some], "datetime64[us]")


def _finite(name: str, values: Array) -> Array:
    """Numbers that are finite or missing."""
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        raise ValueError(
            f"Column {name!r} has {infinite.size} infinite values, the first in row {infinite[0]}. Replace them by "
            "numbers, or by NaN if they are missing."
        )
    large = np.flatnonzero(np.abs(values) > _LARGEST)
    if large.size:
        raise ValueError(
            f"Column {name!r} has {large.size} values beyond {_LARGEST:g}, the first in row {large[0]}, whose squares "
            "are no numbers. Divide the column by a larger unit."
        )
    return values


def _levels(values: Array) -> Array:
    """Levels as plain Python values, which files can hold; None where one is missing."""
    found = np.empty(values.shape, object)
    for i, value in enumerate(values.tolist() if values.dtype.kind not in "mM" else values):
        if not is_missing(value):
            found[i] = value if isinstance(value, str | bool | int | float) else str(value)
    return found
