"""Columns of a table as numbers that a clusterer can compare, and back: each weighs as one column.

The squared distance of two rows, expected over pairs of rows, is about 2 for a column of numbers; a category, a date
and a column with missing values have no more, however many numbers they become.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from kfree.families import Array
from kfree.models.table_reading import TableColumn

#: What levels are called that stand for others.
RARE, MISSING = "(rare)", "(missing)"


class PreparedColumn(Protocol):
    """A column as it was prepared."""

    name: str
    why: str  # what was done, in words

    @property
    def kind(self) -> str | None:
        """What later tables must hold; None if it does not matter."""

    def names(self) -> list[str]:
        """Names of the numbers it becomes."""

    def encode(self, column: TableColumn) -> Array:
        """(n, width) numbers."""

    def decode(self, block: Array) -> Array:
        """(n,) values in the users' units."""


class NumberColumn(NamedTuple):
    """Numbers, straightened and scaled."""

    name: str
    bend: str  # "none", "root" or "log", before scaling
    unit: float  # the log is that of 1 + x / unit
    centre: float  # median of bent values; missing ones are put there
    scale: float  # standard deviation of bent values
    reach: float  # values farther than so many scales from the centre are drawn in
    flag: float  # what a missing value is in a column of its own; 0 if there is none
    why: str

    kind = "number"

    def names(self) -> list[str]:
        """The column itself, and whether it is missing."""
        return [self.name, f"{self.name}_missing"] if self.flag else [self.name]

    def encode(self, column: TableColumn) -> Array:
        """Scaled values, and the flag."""
        x = column.values
        missing = np.isnan(x)
        scaled = (bent(x, self.bend, self.unit) - self.centre) / self.scale
        scaled = np.clip(np.where(missing, 0.0, scaled), -self.reach, self.reach)
        return np.column_stack([scaled, missing * self.flag]) if self.flag else scaled[:, None]

    def decode(self, block: Array) -> Array:
        """Values in the users' units; flags are not looked at, so that centres have a number in any case."""
        return _straight(block[:, 0] * self.scale + self.centre, self.bend, self.unit)


class DateColumn(NamedTuple):
    """Dates or durations: days, as numbers are."""

    days: NumberColumn
    dtype: str  # of numpy, such as "<M8[us]"

    kind = "date"

    @property
    def name(self) -> str:
        """Of the column."""
        return self.days.name

    @property
    def why(self) -> str:
        """What was done."""
        return self.days.why

    def names(self) -> list[str]:
        """As of numbers."""
        return self.days.names()

    def encode(self, column: TableColumn) -> Array:
        """Scaled days, and the flag."""
        return self.days.encode(column._replace(values=days_of(column.values)))

    def decode(self, block: Array) -> Array:
        """Dates in the users' own unit."""
        kind = np.dtype(self.dtype)
        per_day = np.timedelta64(1, "D") / np.timedelta64(1, np.datetime_data(kind)[0])
        return np.rint(self.days.decode(block) * per_day).astype(np.int64).view(kind)


class CategoryColumn(NamedTuple):
    """Levels: one column for each, or one alone if there are two; all together weigh as one number at most."""

    name: str
    levels: tuple[Any, ...]  # L of them; those that stand for rare and missing ones come last
    share: Array  # (L,) of the rows
    pooled: bool  # whether rare levels are one
    blank: bool  # whether missing is a level
    weight: float  # what a row is in the column of its level, less the mean of that column
    why: str

    kind = "category"

    def names(self) -> list[str]:
        """The column and a level."""
        if len(self.levels) == 2:
            plain = self.levels[0] in (False, 0) and self.levels[1] in (True, 1)
            return [self.name if plain else f"{self.name}_{self.levels[1]}"]
        return [f"{self.name}_{level}" for level in self.levels]

    def encode(self, column: TableColumn) -> Array:
        """Indicators of levels, less their means; a level that is not known is at the mean, and so tells nothing."""
        code = self._codes(column.values)
        block = ((code[:, None] == np.arange(len(self.levels))) - self.share) * self.weight
        block[code < 0] = 0.0
        return block[:, 1:] * np.sqrt(2.0) if len(self.levels) == 2 else block

    def _codes(self, values: Array) -> Array:
        """(n,) the number of each level, -1 where it is not known."""
        last = len(self.levels) - 1
        number = {level: i for i, level in enumerate(self.levels[: last + 1 - self.pooled - self.blank])}
        other = last - self.blank if self.pooled else -1
        blank = last if self.blank else -1
        return np.array([blank if value is None else number.get(value, other) for value in values], np.intp)

    def decode(self, block: Array) -> Array:
        """The level with the largest share; None if that is to be missing."""
        if len(self.levels) == 2:
            second = block[:, 0] / (self.weight * np.sqrt(2.0)) + self.share[1]
            code = (second > 0.5).astype(np.intp)
        else:
            code = (block / self.weight + self.share).argmax(axis=1)
        found = np.empty(code.size, object)
        for i, k in enumerate(code):  # all at once would look into text
            found[i] = None if self.blank and k == len(self.levels) - 1 else self.levels[k]
        return found


class LeftOut(NamedTuple):
    """A column that says nothing of groups."""

    name: str
    value: Any  # that all rows have, or None
    why: str

    kind = None

    def names(self) -> list[str]:
        """None."""
        return []

    def encode(self, column: TableColumn) -> Array:
        """Nothing."""
        return np.empty((len(column.values), 0))

    def decode(self, block: Array) -> Array:
        """The one value, if there is one."""
        found = np.empty(len(block), object)
        found[:] = self.value
        return found


def bent(x: Array, bend: str, unit: float) -> Array:
    """Values with a shorter tail; below 0, where a bend had none to learn from, the odd continuation."""
    if bend == "none":
        return x
    size = np.abs(x)
    return np.sign(x) * (np.sqrt(size) if bend == "root" else np.log1p(size / unit))


def _straight(y: Array, bend: str, unit: float) -> Array:
    """The inverse of it."""
    if bend == "none":
        return y
    return np.sign(y) * (y**2 if bend == "root" else np.expm1(np.abs(y)) * unit)


def days_of(values: Array) -> Array:
    """Dates or durations in days, since 1970 or since they began; NaN where they are missing."""
    since = values - np.datetime64(0, "D") if values.dtype.kind == "M" else values
    return since / np.timedelta64(1, "D")
