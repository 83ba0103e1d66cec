"""Groups of rows as users name them."""

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array

_HINT = "Pass one label for each row: integers, strings or anything that can be a dictionary key."


def _listed(groups: Any) -> list[Any]:
    """The labels as Python objects; numbers keep their kind."""
    if hasattr(groups, "to_numpy") and not isinstance(groups, np.ndarray):
        groups = groups.to_numpy()
    if hasattr(groups, "__array__") and not isinstance(groups, np.ndarray):
        groups = np.asarray(groups)
    if isinstance(groups, np.ndarray):
        if groups.ndim != 1:
            raise ValueError(f"groups has shape {groups.shape}, but one dimension is needed. {_HINT}")
        return list(groups) if groups.dtype.kind in "mM" else groups.tolist()
    if isinstance(groups, str | bytes) or not hasattr(groups, "__iter__"):
        raise TypeError(f"groups must hold one label for each row, got {type(groups).__name__}. {_HINT}")
    return list(groups)


def check_groups(groups: Any, n: int) -> list[Any]:
    """One label for each row, none of them missing."""
    labels = _listed(groups)
    if len(labels) != n:
        raise ValueError(f"groups has {len(labels)} labels, but X has {n} rows. {_HINT}")
    try:
        odd = [label for label in set(labels) if is_missing(label)]
    except TypeError as error:
        raise TypeError(f"groups holds labels that cannot be compared ({error}). {_HINT}") from None
    if odd:
        where = [i for i, label in enumerate(labels) if is_missing(label)]
        raise ValueError(
            f"groups[{where[0]}] is missing ({labels[where[0]]!r}), and {len(where)} labels are in all. "
            "Drop those rows, or give them a group of their own."
        )
    return labels


def is_missing(label: Any) -> bool:
    """None, NaN, NaT and NA: whatever does not equal itself."""
    if label is None:
        return True
    try:
        return bool(label != label)
    except (TypeError, ValueError):
        return True


class GroupIndex(NamedTuple):
    """The groups of a fit and their numbers."""

    labels: Array  # (J,) in order: sorted if they can be, otherwise as they first occur
    number: dict[Any, int]

    @classmethod
    def of(cls, labels: list[Any]) -> tuple["GroupIndex", Array]:
        """The index of some labels, and the number (n,) of each."""
        distinct = list(dict.fromkeys(labels))
        with suppress(TypeError):  # labels of several kinds have no order
            distinct = sorted(distinct)
        number = {label: j for j, label in enumerate(distinct)}
        return cls(_as_array(distinct), number), np.fromiter(map(number.__getitem__, labels), np.int32, len(labels))

    def codes(self, labels: list[Any]) -> Array:
        """The number (n,) of each label; -1 where it is not known."""
        return np.fromiter((self.number.get(label, -1) for label in labels), np.int32, len(labels))


def _as_array(labels: list[Any]) -> Array:
    """A plain array if all labels are of one kind, otherwise an array of objects."""
    if len({type(label) for label in labels}) == 1 and not isinstance(labels[0], tuple | frozenset):
        return np.array(labels)
    array = np.empty(len(labels), object)
    array[:] = labels
    return array
