"""Short names of clusters, made of what is much or little in them."""

import re
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

import numpy as np

from kfree.families import Array

# Letters a name may have, how many more where another cluster has the same name, and columns it may speak of.
_LONGEST, _ROOM, _MOST = 40, 8, 3
# Letters of a column's name that are shown.
_COLUMN = 22
# Standard deviations from the overall mean that a word is worth, and those that are worth "very".
_WORTH, _VERY = 0.5, 2.0
# Share of all differences that has one sign where a cluster has more, or less, of everything; standard deviations from
# which a column stands out from the others all the same.
_ONE_SIDED, _STANDS_OUT = 0.9, 1.0
# Shares of rows from which a cluster "has" something, and up to which it has "no" such thing.
_HAS, _NO = 0.75, 0.05
# Share of the overall mean up to which a count is "never" there.
_NEVER = 0.01
# Words for what there is less of.
_BELOW = {"little", "low", "no", "rarely", "never", "early"}
AVERAGE = "about average"


class Spoken(NamedTuple):
    """How a column that was prepared is spoken of."""

    words: str  # in place of its name
    kind: str  # as in Traits; "" for what its numbers are


class Traits(NamedTuple):
    """What clusters are named by."""

    columns: tuple[str, ...]
    centre: Array  # (K, p)
    overall: Array  # (p,)
    gap: Array  # (K, p) centre less overall, in standard deviations of the column
    order: Array  # (K, p) how much a column has to do with what makes a cluster different
    kind: Array  # (p,) "amount", "level", "flag", "count", "date" or "choice"


def name_clusters(traits: Traits) -> tuple[str, ...]:
    """A name for each cluster, no two alike."""
    short = [_short(column) for column in traits.columns]
    names = [
        _of_everything(traits.gap[k], traits.kind) or _name(_notable(traits, k, short))
        for k in range(traits.centre.shape[0])
    ]
    for group in _alike(names):
        for k in group:
            others = [other for other in group if other != k]
            apart = traits.gap[k] - traits.gap[others].mean(axis=0)
            j = int(np.argmax(np.abs(apart)))
            if abs(apart[j]) > 0:
                names[k] = _with(names[k], f"{'more' if apart[j] > 0 else 'less'} {short[j]}")
    return _numbered(names)


def _numbered(names: list[str]) -> tuple[str, ...]:
    """Names of which those that repeat have a number."""
    told: dict[str, None] = {}
    last: dict[str, int] = {}
    for name in names:
        unique = name
        while unique in told:
            last[name] = last.get(name, 1) + 1
            number = f" ({last[name]})"
            unique = name[: _LONGEST + _ROOM - len(number)].rstrip(" ,") + number
        told[unique] = None
    return tuple(told)


def _alike(names: list[str]) -> list[list[int]]:
    """Clusters that share a name."""
    groups: dict[str, list[int]] = {}
    for k, name in enumerate(names):
        groups.setdefault(name, []).append(k)
    return [group for group in groups.values() if len(group) > 1]


def _with(name: str, more: str) -> str:
    """A name and one thing more, in place of what there is no room for."""
    if name == AVERAGE:
        return f"average, {more}"
    while len(name) + len(more) + 2 > _LONGEST + _ROOM and (cut := max(name.rfind(", "), name.rfind(" and "))) > 0:
        name = name[:cut]
    room = _LONGEST + _ROOM - len(name) - 2
    return f"{name}, {more if len(more) <= room else more[: room - 1].rstrip() + '…'}"


def _of_everything(gap: Array, kind: Array) -> str:
    """A name for clusters that are a little more, or less, in nearly all there is and stand out in nothing."""
    size = np.abs(gap)
    one_sided = abs(gap.sum()) >= _ONE_SIDED * size.sum()
    if not one_sided or size.max() >= _STANDS_OUT or np.count_nonzero(size >= _WORTH / 2) < _MOST:
        return ""
    if (kind == "level").any():
        return "all high" if gap.sum() > 0 else "all low"
    return "much of everything" if gap.sum() > 0 else "little of everything"


def _notable(traits: Traits, k: int, short: list[str]) -> Iterable[tuple[str, str]]:
    """Words and columns that tell what is different in a cluster, the most different first."""
    for j in np.argsort(-traits.order[k], kind="stable"):
        if abs(traits.gap[k, j]) >= _WORTH:
            yield _word(traits, k, int(j)), short[j]


def _word(traits: Traits, k: int, j: int) -> str:
    """What is said of a column in which a cluster differs."""
    centre, gap, kind = traits.centre[k, j], traits.gap[k, j], traits.kind[j]
    if kind == "flag":
        if gap > 0:
            return "has" if centre >= _HAS else "often"
        return "no" if centre <= _NO else "rarely"
    if kind == "count":
        if gap > 0:
            return "often"
        return "never" if centre <= _NEVER * traits.overall[j] else "rarely"
    if kind == "choice":  # scaled, so that how many rows have it cannot be read off
        return "often" if gap > 0 else "rarely"
    more, less = {"amount": ("much", "little"), "date": ("late", "early")}.get(str(kind), ("high", "low"))
    return ("very " if abs(gap) >= _VERY else "") + (more if gap > 0 else less)


def _name(parts: Iterable[tuple[str, str]]) -> str:
    """The first few parts that fit, columns of the same word together."""
    said: list[tuple[str, str]] = []
    for part in islice(parts, 2 * _MOST):
        if len(said) < _MOST and (not said or len(_joined([*said, part])) <= _LONGEST):
            said.append(part)
    return _joined(said) if said else AVERAGE


def _joined(parts: list[tuple[str, str]]) -> str:
    """ "much milk and bread, little fish"."""
    groups: dict[str, list[str]] = {}
    for word, column in sorted(parts, key=lambda part: part[0].removeprefix("very ") in _BELOW):  # what is there first
        groups.setdefault(word, []).append(column)
    return ", ".join(f"{word} {_and(columns)}" for word, columns in groups.items())


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _short(column: str) -> str:
    """A column's name without its unit, on one line, cut where it is long."""
    text = " ".join(column.split())
    text = re.sub(r"\s*[(\[][^()\[\]]*[)\]]$", "", text) or text
    return text if len(text) <= _COLUMN else text[: _COLUMN - 1].rstrip() + "…"
