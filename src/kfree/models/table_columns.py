"""Columns of a table as numbers that a clusterer can compare, and back: each weighs as one column.

The variance of a column of numbers or dates is about 1, also if a second column tells where values are missing; that
of a category is at most a quarter, however many levels it has.
"""

from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.models.profile_names import Spoken
from kfree.models.table_reading import TableColumn

#: What levels are called that stand for others.
RARE, MISSING = "(rare)", "(missing)"
# Share of the rows of a centre that is none but for rounding.
_NONE_THERE = 1e-9
# Microseconds of a day.
_DAY = 86_400e6


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

    @property
    def kind(self) -> str:
        """What later tables must hold."""
        return "number"

    def names(self) -> list[str]:
        """The column itself, and whether it is missing."""
        return [self.name, f"{self.name}_missing"] if self.flag else [self.name]

    def spoken(self) -> list[Spoken]:
        """As what it is, and as often missing."""
        return [Spoken(self.name, ""), Spoken(f"no {self.name}", "choice")][: len(self.names())]

    def shown(self, block: Array) -> list[Array]:
        """Each of its columns as it is told: values in the users' units, and shares of missing ones."""
        told = [self.decode(block)]
        return [*told, np.clip(block[:, 1] / self.flag, 0.0, 1.0)] if self.flag else told

    def encode(self, column: TableColumn) -> Array:
        """Scaled values, and the flag."""
        x = column.values
        missing = np.isnan(x)
        scaled = (bent(x, self.bend, self.unit) - self.centre) / self.scale
        scaled = np.clip(np.where(missing, 0.0, scaled), -self.reach, self.reach)
        return np.column_stack([scaled, missing * self.flag]) if self.flag else scaled[:, None]

    def decode(self, block: Array) -> Array:
        """Values in the users' units: of a centre, the mean of those that are not missing; NaN if all are."""
        scaled = block[:, 0]
        if self.flag:
            there = 1.0 - np.clip(block[:, 1] / self.flag, 0.0, 1.0)  # missing ones were put at 0
            scaled = np.divide(scaled, there, out=np.full(len(block), np.nan), where=there > _NONE_THERE)
        return _straight(scaled * self.scale + self.centre, self.bend, self.unit)


class DateColumn(NamedTuple):
    """Dates or durations: days, as numbers are."""

    days: NumberColumn
    duration: bool  # whether they are durations
    whole: bool  # whether all are whole days, and those that come back are to be

    @property
    def kind(self) -> str:
        """What later tables must hold."""
        return "date"

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

    def spoken(self) -> list[Spoken]:
        """As early or late."""
        return [Spoken(self.name, "date"), *self.days.spoken()[1:]]

    def shown(self, block: Array) -> list[Array]:
        """Dates or durations, and shares of missing ones."""
        return [self.decode(block), *self.days.shown(block)[1:]]

    def encode(self, column: TableColumn) -> Array:
        """Scaled days, and the flag."""
        return self.days.encode(column._replace(values=days_of(column.values)))

    def decode(self, block: Array) -> Array:
        """Dates or durations again."""
        kind = "timedelta64[us]" if self.duration else "datetime64[us]"
        days = self.days.decode(block)
        found = (np.rint(days) if self.whole else days) * _DAY
        gone = np.isnan(found)
        return np.where(gone, np.array("NaT", kind), np.rint(np.where(gone, 0.0, found)).astype(np.int64).view(kind))


class CategoryColumn(NamedTuple):
    """Levels: one column for each, or one alone if there are two; all together weigh less than a number."""

    name: str
    levels: tuple[Any, ...]  # L of them; those that stand for rare and missing ones come last
    share: Array  # (L,) of the rows
    pooled: bool  # whether rare levels are one
    blank: bool  # whether missing is a level
    weight: float  # what a row is in the column of its level, less the mean of that column
    why: str

    @property
    def kind(self) -> str:
        """What later tables must hold."""
        return "category"

    def names(self) -> list[str]:
        """The column and a level."""
        if len(self.levels) == 2:
            plain = self.levels[0] in (False, 0) and self.levels[1] in (True, 1)
            return [self.name if plain else f"{self.name}_{self.levels[1]}"]
        return [f"{self.name}_{level}" for level in self.levels]

    def spoken(self) -> list[Spoken]:
        """As often or rarely at a level."""
        levels = self.levels[1:] if len(self.levels) == 2 else self.levels
        return [
            Spoken(self.name if name == self.name else f"{self.name} {level}", "choice")
            for name, level in zip(self.names(), levels)
        ]

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

    def shown(self, block: Array) -> list[Array]:
        """Shares of the levels."""
        return list(np.clip(self._shares(block), 0.0, 1.0).T)

    def _shares(self, block: Array) -> Array:
        """(n, L), or of two levels the share of the second alone."""
        if len(self.levels) == 2:
            return block / (self.weight * np.sqrt(2.0)) + self.share[1]
        return block / self.weight + self.share

    def decode(self, block: Array) -> Array:
        """The level with the largest share; None if that is to be missing."""
        share = self._shares(block)
        code = (share[:, 0] > 0.5).astype(np.intp) if len(self.levels) == 2 else share.argmax(axis=1)
        found = np.empty(code.size, object)
        for i, k in enumerate(code):  # all at once would look into text
            found[i] = None if self.blank and k == len(self.levels) - 1 else self.levels[k]
        return found


class LeftOut(NamedTuple):
    """A column that says nothing of groups."""

    name: str
    value: Any  # that all rows have, or None
    why: str

    def names(self) -> list[str]:
        """None."""
        return []

    def spoken(self) -> list[Spoken]:
        """Not at all."""
        return []

    def shown(self, block: Array) -> list[Array]:
        """Not at all."""
        return []

    def decode(self, block: Array) -> Array:
        """The one value, if there is one."""
        if isinstance(self.value, np.generic):
            return np.full(len(block), self.value)
        return np.array([self.value] * len(block), object)


PreparedColumn = NumberColumn | DateColumn | CategoryColumn | LeftOut


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
    """Dates or durations, in microseconds, as days since 1970 or since they began; NaN where they are missing."""
    return np.where(np.isnat(values), np.nan, values.astype(np.int64) / _DAY)
