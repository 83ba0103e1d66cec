"""What is done with a column of a table, decided by its values and said in words."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from kfree.families import Array
from kfree.models.checks import check_choice
from kfree.models.table_columns import (
    MISSING,
    RARE,
    CategoryColumn,
    DateColumn,
    LeftOut,
    NumberColumn,
    PreparedColumn,
    bent,
    days_of,
)
from kfree.models.table_reading import DATES, TableColumn

#: What a user may call a column.
USER_KINDS = ("number", "category", "date", "leave out")
# Share of the rows at either end that scales and skewness do not look at, and how far values may be from the centre.
_ENDS, _REACH = 0.01, 6.0
# A tail is long from this skewness on (an exponential distribution has 2), and shorter if a bend leaves so much of it.
_SKEWED, _LEFT = 1.0, 0.7
# Where 1 + x / unit turns from linear to logarithmic: this share of the values above 0 lie below the unit, which is not
# smaller than that share of the largest value.
_LOW, _SMALLEST_UNIT = 0.05, 1e-12
# Missing values are told apart if there are more than this share of them.
_MANY_MISSING = 0.05
# A level is rare below this share of the rows, or if one row alone has it.
_RARE_LEVEL, _ONE_ROW = 0.01, 2
# Variance of all columns of a category together, where a number has 1: two rows of different levels are then one
# standard deviation apart, or less if there are many levels. Levels make lumps, which look like groups if they weigh
# more: over 40 made tables the mean agreement with the groups was .66 for 1, .74 for 1/2, .81 for 1/4, .83 for 1/7.
_VARIANCE = 0.25
# Rows from which on whole numbers may count them; how much of their range they fill; and how straight they rise.
_COUNTED_ROWS, _DENSE, _STRAIGHT = 20, 0.9, 0.9999
# What may be a date whose day and month nobody can tell apart, with a time or without.
_DATE = re.compile(r"\d{1,4}([/.-])\d{1,2}\1\d{1,4}([T ].*)?")
# Names that say number of a row, which prove something for whole numbers that are all different.
_ID_NAME = re.compile(r"(^|[^a-z])(id|ids|key|uuid|guid|index|idx|nr|no|number)$", re.IGNORECASE)


def check_kinds(kinds: Any) -> None:
    """Whether kinds of columns are some that there are."""
    if not isinstance(kinds, Mapping):
        raise TypeError(f"kinds must be a dict from columns to kinds, or None, got {type(kinds).__name__}.")
    for name, kind in kinds.items():
        check_choice(f"kinds[{name!r}]", kind, USER_KINDS)


def choose(column: TableColumn, forced: bool) -> PreparedColumn:
    """What becomes of a column; ``forced`` if a user has said what it is."""
    there = column.values[~column.missing]
    n, m = len(column.values), len(column.values) - len(there)
    if not len(there):
        return LeftOut(column.name, None, "left out; every value is missing")
    distinct = len(set(there.tolist()))
    if distinct == 1 and m <= _MANY_MISSING * n:
        only = _plain(there[0])
        return LeftOut(column.name, only, f"left out; every value is {_shown(only)}{_but(m)}")
    if column.kind == "category" or (distinct <= 2 and column.kind == "number" and not forced):
        return _category(column, distinct, forced)
    if column.kind == "date":
        return _date(column, there)
    reason = "" if forced else _counts_rows(column, there, distinct)
    if reason:
        return LeftOut(column.name, None, f"left out; {reason}")
    number = _number(column, bends=("none", "root", "log"))
    return number._replace(why=f"number; {number.why}")


def _date(column: TableColumn, there: Array) -> DateColumn:
    """Dates: as numbers are, without a bend."""
    days = _number(column._replace(values=days_of(column.values)), bends=("none",))
    days = days._replace(why=f"date; {_from_to(there)}, in days; {days.why}")
    since = days_of(there)
    return DateColumn(days, there.dtype.kind == "m", bool((since == np.rint(since)).all()))


def _number(column: TableColumn, bends: tuple[str, ...]) -> NumberColumn:
    """Numbers: how they are bent, scaled and filled."""
    x = column.values[~np.isnan(column.values)]
    n, m = column.values.size, column.values.size - x.size
    bend, unit, words = _bend(x, bends)
    y = bent(x, bend, unit)
    centre, scale = float(np.median(y)), _spread(y)
    far = int((np.abs(y - centre) > _REACH * scale).sum())
    flag = float(np.sqrt(min(n / max(n - m, 1), 2.0))) if m > _MANY_MISSING * n else 0.0
    parts = [words, "scaled"]
    if far:
        parts.append(f"{_values(far)} beyond {_REACH:g} standard deviations drawn in to there")
    if m:
        filled = float(np.median(x))
        told = f"and told apart in {column.name}_missing" if flag else "too few to be told apart"
        parts.append(f"{_values(m)} missing ({_percent(m / n)}), set to the median{_at(column, filled)}, {told}")
    return NumberColumn(column.name, bend, unit, centre, scale, _REACH, flag, "; ".join(filter(None, parts)))


def _at(column: TableColumn, value: float) -> str:
    return f" {value:.6g}" if column.kind == "number" else ""


def _bend(x: Array, bends: tuple[str, ...]) -> tuple[str, float, str]:
    """The bend that leaves least skewness, its unit, and why."""
    above = x[x > 0]
    unit = max(float(np.quantile(above, _LOW)), _SMALLEST_UNIT * float(above.max())) if above.size else 1.0
    before = _skewness(x)
    if x.min() < 0 or before <= _SKEWED:
        return "none", 1.0, ""
    after = {bend: abs(_skewness(bent(x, bend, unit))) for bend in bends}
    best = min(after, key=lambda bend: after[bend])
    if best == "none" or after[best] > _LEFT * before:
        return "none", 1.0, ""
    what = "square root" if best == "root" else f"log(1 + x / {unit:.4g})"
    words = f"a long tail of large values (skewness {before:.1f}), so {what} is taken (then {after[best]:.1f})"
    return best, unit if best == "log" else 1.0, words


def _skewness(x: Array) -> float:
    """Third moment of what lies between the ends."""
    z = _without_ends(x / _largest(x))
    spread = z.std()
    return float((((z - z.mean()) / spread) ** 3).mean()) if spread > 0 else 0.0


def _spread(y: Array) -> float:
    """Standard deviation of what lies between the ends; of all, if that is one value; 1 if they are."""
    unit = _largest(y)  # squares of tiny numbers are 0
    z = y / unit
    return unit * (float(_without_ends(z).std()) or float(z.std())) or 1.0


def _largest(x: Array) -> float:
    return float(np.abs(x).max()) or 1.0


def _without_ends(x: Array) -> Array:
    """Values with those at the ends drawn in."""
    low, high = np.quantile(x, (_ENDS, 1 - _ENDS))
    return np.clip(x, low, high)


def _counts_rows(column: TableColumn, there: Array, distinct: int) -> str:
    """Why numbers are names of rows, if they are."""
    if distinct < len(there) or len(there) < _COUNTED_ROWS or (there != np.rint(there)).any():
        return ""
    if len(there) >= _DENSE * (there.max() - there.min() + 1):
        return f"whole numbers from {there.min():.15g} to {there.max():.15g}, each once, as of a row"
    if abs(np.corrcoef(there, np.arange(len(there)))[0, 1]) > _STRAIGHT:
        return "whole numbers, all different, that rise evenly from row to row"
    if column.integer and _ID_NAME.search(column.name):
        return "whole numbers, all different, with the name of an id"
    return ""


def _category(column: TableColumn, distinct: int, forced: bool) -> PreparedColumn:
    """Levels: which are kept, pooled or told as missing."""
    missing = column.missing
    count = Counter(map(_plain, column.values[~missing]))
    n, m = len(missing), int(missing.sum())
    least = max(_ONE_ROW, _RARE_LEVEL * n)
    rare = [level for level, size in count.items() if size < least] if distinct > 2 else []
    pooled = sum(count[level] for level in rare)
    if pooled > n / 2:
        why = f"{distinct} different values, most of them in few rows"
        if distinct == n - m and not forced:
            why = "text that is different in every row"
        return LeftOut(column.name, None, f"left out; {why}{_may_be_dates(count)}")
    rare = rare if len(rare) > 1 else []
    kept = _in_order([level for level in count if level not in set(rare)])
    blank = m > _MANY_MISSING * n
    levels = [*kept, *([RARE] if rare else []), *([MISSING] if blank else [])]
    size = np.array([*(count[level] for level in kept), *([pooled] if rare else []), *([m] if blank else [])], float)
    share = size / size.sum()
    weight = float(np.sqrt(_VARIANCE / max(1 - (share**2).sum(), 0.5)))
    why = _said(levels, rare, m, blank, n)
    return CategoryColumn(column.name, tuple(levels), share, bool(rare), blank, weight, why)


def _may_be_dates(levels: Iterable[Any]) -> str:
    """What to do if text is a date of which nobody knows what comes first."""
    if not all(isinstance(level, str) and _DATE.fullmatch(level) for level in levels):
        return ""
    return f"; if they are dates, write them as {DATES}"


def _said(levels: list[Any], rare: list[Any], m: int, blank: bool, n: int) -> str:
    """What was done with a category."""
    if levels == [RARE, MISSING]:
        return f"category; missing ({_percent(m / n)}) or not, as its {len(rare)} values are rare"
    listed = " or ".join(map(_shown, levels)) if len(levels) == 2 else f"{len(levels)} levels"
    parts = ["category", listed]
    if rare:
        parts.append(f"{len(rare)} rare levels (each below {_percent(_RARE_LEVEL)} of the rows) are one, {RARE}")
    if m:
        told = f"a level of their own, {MISSING}" if blank else "set to the mean of the levels"
        parts.append(f"{_values(m)} missing ({_percent(m / n)}), {told}")
    return "; ".join(parts)


def _plain(value: Any) -> Any:
    """A level as files can hold it; whole numbers without a point."""
    if isinstance(value, float | np.floating):
        return int(value) if float(value).is_integer() else float(value)
    return value


def _in_order(levels: list[Any]) -> list[Any]:
    """Sorted if they can be."""
    try:
        return sorted(levels)
    except TypeError:
        return sorted(levels, key=str)


def _values(count: int) -> str:
    return "1 value" if count == 1 else f"{count} values"


def _but(missing: int) -> str:
    return f" ({_values(missing)} missing)" if missing else ""


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value) if isinstance(value, str) else str(value)


def _from_to(there: Array) -> str:
    """The first and the last date."""
    return f"{str(there.min())[:10]} to {str(there.max())[:10]}" if there.dtype.kind == "M" else "durations"
