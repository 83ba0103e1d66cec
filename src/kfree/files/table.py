"""From pieces to the rows of a Source: which columns, of which type, and what is wrong with them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.files.formats import near_name, some, twice
from kfree.files.pieces import Piece, Wanted
from kfree.rows.source import Decoded, Facts

# Bytes of numbers that are decoded together, and the most rows.
_BYTES, _ROWS = 1 << 22, 65_536
# What messages list of files.
_FILES = 3


class Columns(NamedTuple):
    """What the columns of a table are for."""

    chosen: tuple[str, ...] | None  # those of X; all that are left if None
    weight: str | None
    ids: tuple[str, ...]  # not fitted, but written beside predictions

    @property
    def apart(self) -> list[str]:
        """Columns that are not fitted."""
        return [*self.ids, *([] if self.weight is None else [self.weight])]


class ArrowReader:
    """Tables that pyarrow reads, one after the other."""

    def __init__(self, pieces: Sequence[Piece], columns: Columns, dtype: Any) -> None:
        self._pieces, self._weight, self.ids = pieces, columns.weight, columns.ids
        schemas = [piece.schema() for piece in pieces]
        self._chosen = _choose(pieces, schemas, columns)
        _check_numbers(pieces, schemas, self._chosen, columns)
        self._id_types = _id_types(pieces, schemas, columns.ids)
        counts = [piece.count() for piece in pieces]
        rows = None if any(n is None for n, _ in counts) else sum(n or 0 for n, _ in counts)
        self.facts = Facts(
            label_of([piece.label for piece in pieces]),
            self._chosen,
            len(self._chosen),
            np.dtype(_precision(pieces, schemas, self._chosen) if dtype is None else dtype),
            rows,
            rows is not None and all(exact for _, exact in counts),
            self._weight is not None,
        )

    def mapped(self) -> Array | None:
        """All of these must be decoded."""
        return None

    def blocks(self) -> Iterator[Decoded]:
        """Numbers and weights of all rows."""
        import pyarrow as pa

        weights = () if self._weight is None else (self._weight,)
        most = max(1, min(_ROWS, _BYTES // (8 * max(1, len(self._chosen)))))
        try:
            for piece in self._pieces:
                start = 0
                for batch in piece.batches(Wanted((*self._chosen, *weights), (), most)):
                    yield self._decoded(piece, batch, start)
                    start += batch.num_rows
        finally:
            pa.default_memory_pool().release_unused()  # the fit that follows needs the room

    def _decoded(self, piece: Piece, batch: Any, start: int) -> Decoded:
        values = np.empty((batch.num_rows, len(self._chosen)), self.facts.dtype)
        for j, name in enumerate(self._chosen):
            values[:, j] = _numbers(piece, batch, name, start, self.facts.dtype)
        weight = None if self._weight is None else _numbers(piece, batch, self._weight, start, np.float64)
        return Decoded(values, weight)

    def beside(self, rows: int) -> Iterator[Any]:
        """Ids of all rows, as they are in the files, so many at a time."""
        import pyarrow as pa

        waiting: list[Any] = []
        for piece in self._pieces:
            for batch in piece.batches(Wanted((), self.ids, rows)):
                part = pa.Table.from_batches([batch.select(list(self.ids))])
                waiting.append(part.cast(self._id_types) if self._id_types is not None else part)
                if sum(table.num_rows for table in waiting) >= rows:
                    joined = pa.concat_tables(waiting)
                    yield joined.slice(0, rows)
                    waiting = [joined.slice(rows)]
        if waiting and sum(table.num_rows for table in waiting):
            yield pa.concat_tables(waiting)


def _id_types(pieces: Sequence[Piece], schemas: Sequence[Any], ids: Sequence[str]) -> Any:
    """Names and types of the ids of several pieces, whose integers may differ in width, say; None of one piece."""
    import pyarrow as pa

    if len(pieces) == 1 or not ids:
        return None
    fields = []
    for name in ids:
        kinds = [pa.string() if one.others_as_text else has.field(name).type for one, has in zip(pieces, schemas)]
        try:
            each = [pa.schema([(name, kind)]) for kind in kinds]
            fields.append(pa.unify_schemas(each, promote_options="permissive").field(0))
        except pa.ArrowTypeError:
            other = next(i for i, kind in enumerate(kinds) if kind != kinds[0])
            raise ValueError(
                f"Files differ: column {name!r} of {pieces[other].label} holds {kinds[other]}, that of "
                f"{pieces[0].label} {kinds[0]}. Make them alike, or name another column as id=."
            ) from None
    return pa.schema(fields)


def label_of(labels: Sequence[str]) -> str:
    """What messages call several files."""
    if len(labels) == 1:
        return labels[0]
    names = ", ".join(Path(label).name for label in labels[:_FILES])
    return f"{len(labels)} files ({names}{', ...' if len(labels) > _FILES else ''})"


def _choose(pieces: Sequence[Piece], schemas: Sequence[Any], columns: Columns) -> tuple[str, ...]:
    """Names of the columns of X, which all pieces must have."""
    first = schemas[0].names
    double = twice(first)
    if double is not None:
        raise ValueError(f"{pieces[0].label} has two columns called {double!r}. Rename one of them.")
    if not first:
        raise ValueError(f"{pieces[0].label} has no columns. Pass files that have some.")
    for name in (*(columns.chosen or ()), *columns.apart):
        if name not in first:
            raise ValueError(f"{pieces[0].label} has no column {name!r}. {near_name(str(name), first)}")
    double = twice(columns.chosen or ())
    if double is not None:
        raise ValueError(f"columns= names {double!r} twice. Name each once.")
    chosen = tuple(columns.chosen or (name for name in first if name not in columns.apart))
    both = [name for name in chosen if name in columns.apart]
    if both:
        raise ValueError(f"Column {both[0]!r} is in columns= and is weight or id too. Name it in one of them.")
    if not chosen:
        raise ValueError(f"No column of {pieces[0].label} is left to fit. Name fewer as id.")
    for piece, schema in zip(pieces[1:], schemas[1:]):
        missing = [name for name in (*chosen, *columns.apart) if name not in schema.names]
        more = [] if columns.chosen else [name for name in schema.names if name not in first]
        if missing or more:
            what = f"has no column {missing[0]!r}" if missing else f"has a column {more[0]!r} of its own"
            raise ValueError(
                f"Files differ: {piece.label} {what}, unlike {pieces[0].label}. Name columns that "
                "all have: columns=[...]"
            )
    return chosen


def _is_number(type_: Any) -> bool:
    import pyarrow as pa

    kinds = pa.types
    return any(
        is_(type_) for is_ in (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal, kinds.is_null)
    )


def _check_numbers(pieces: Sequence[Piece], schemas: Sequence[Any], chosen: Sequence[str], columns: Columns) -> None:
    wanted = [*chosen, *([] if columns.weight is None else [columns.weight])]
    for piece, schema in zip(pieces, schemas):
        other = [name for name in wanted if not _is_number(schema.field(name).type)]
        if other:
            good = [name for name in chosen if name not in other]
            example = f"columns={good}" if len(good) <= _FILES else f"columns=[{some(good, 2)}]"
            advice = f"Name those that are numbers, such as {example}" if good else "Make numbers of them first"
            raise ValueError(
                f"{piece.label} has columns that are no numbers: {some(other)} ({schema.field(other[0]).type} in the "
                f"first). {advice}, and those that name rows as id=. Lists and categories become columns with pandas, "
                "polars or kfree.TablePreparer."
            )


def _precision(pieces: Sequence[Piece], schemas: Sequence[Any], chosen: Sequence[str]) -> Any:
    """float32 if nothing is lost by it, and nothing hangs on how a text looks."""
    import pyarrow as pa

    kinds = (pa.float16(), pa.float32())
    single = all(piece.typed for piece in pieces) and all(
        schema.field(name).type in kinds for schema in schemas for name in chosen
    )
    return np.float32 if single else np.float64


def _numbers(piece: Piece, batch: Any, name: str, start: int, dtype: Any) -> Array:
    """A column as numbers; none may be missing."""
    import pyarrow as pa

    column = batch.column(batch.schema.get_field_index(name))
    if column.null_count:
        first = start + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise ValueError(
            f"Column {name!r} of {piece.label} has missing values: {column.null_count} in rows {start} to "
            f"{start + len(column) - 1}, the first in row {first}. Drop those rows or fill them in, or leave the "
            "column out: columns="
        )
    wide = pa.float32() if np.dtype(dtype) == np.float32 and column.type == pa.float16() else pa.from_numpy_dtype(dtype)
    return column.cast(wide, safe=False).to_numpy(zero_copy_only=False)
