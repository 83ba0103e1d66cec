"""A table, prepared: what was done with each of its columns, for other tables like it and for the way back."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.models.profile_names import Spoken
from kfree.models.table_choices import choose
from kfree.models.table_columns import LeftOut, PreparedColumn
from kfree.models.table_reading import frame_of, library_of, raw_columns, read_column


class PreparedTable(NamedTuple):
    """What a preparer has learned."""

    columns: tuple[PreparedColumn, ...]  # in the order of the table
    library: str  # whose frame it was; empty for an array

    @classmethod
    def of(cls, X: Any, names: list[str], kinds: dict[int, str]) -> "PreparedTable":
        """Look at a table; ``kinds`` by position are what a user has said."""
        found = (_looked_at(name, raw, kinds.get(j)) for j, (name, raw) in enumerate(zip(names, raw_columns(X))))
        return cls(tuple(found), library_of(X))

    def names(self) -> list[str]:
        """Names of the prepared columns, each once."""
        made: list[str] = []
        for name in (name for column in self.columns for name in column.names()):
            number, once = 2, name
            while once in made:
                once, number = f"{name}_{number}", number + 1
            made.append(once)
        return made

    def spoken(self) -> list[Spoken]:
        """How each of the prepared columns is spoken of."""
        return [own for column in self.columns for own in column.spoken()]

    def encode(self, X: Any) -> Array:
        """(n, width) the prepared table."""
        blocks = [
            column.encode(read_column(column.name, raw, column.kind))
            for column, raw in zip(self.columns, raw_columns(X))
            if not isinstance(column, LeftOut)
        ]
        return np.hstack(blocks)

    def shown(self, X: Array) -> list[Array]:
        """Each of the prepared columns as it is told: values in the users' units, dates, and shares of levels."""
        return [told for column, block in self._blocks(X) for told in column.shown(block)]

    def _blocks(self, X: Array) -> Iterator[tuple[PreparedColumn, Array]]:
        """Each column, and what was made of it."""
        at = 0
        for column in self.columns:
            width = len(column.names())
            yield column, X[:, at : at + width]
            at += width

    def decode(self, X: Array) -> Any:
        """The table in the users' units, as the kind of frame it was."""
        blocks = {column.name: column.decode(block) for column, block in self._blocks(X)}
        if self.library:
            return frame_of(self.library, {name: _listed(block) for name, block in blocks.items()})
        return _array(list(blocks.values()))


def _looked_at(name: str, raw: Any, kind: str | None) -> PreparedColumn:
    """What becomes of a column, which a user may have said something of."""
    if kind == "leave out":
        return LeftOut(name, None, "left out; as asked for")
    return choose(read_column(name, raw, kind), kind is not None)


def _listed(block: Array) -> Any:
    """Objects as a list, whose types frames find out."""
    return block.tolist() if block.dtype.kind == "O" else block


def _array(blocks: list[Array]) -> Array:
    """Numbers if all are, otherwise objects; what is not known is NaN among numbers."""
    if any(block.dtype.kind in "mM" for block in blocks):
        return np.column_stack([block.astype(object) for block in blocks])
    try:
        return np.column_stack([block.astype(np.float64) for block in blocks])
    except (ValueError, TypeError):
        return np.column_stack([block.astype(object) for block in blocks])
