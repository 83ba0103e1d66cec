"""From what is in a file to the rows that are fitted: which columns, which ids, groups and weights."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from kfree.cli.files import Asked, File, check_names, names_of, read
from kfree.cli.talk import Problem, figure, listed
from kfree.files.formats import is_number, near_name

#: What stands for the id of a row that has none.
ROW = "row"
#: Types of columns that are numbers.
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null, pa.types.is_decimal)


class Pick(NamedTuple):
    """What the columns of a file are for."""

    columns: tuple[str, ...] = ()  # those to fit; all others that are free if there are none
    drop: tuple[str, ...] = ()
    id: str | None = None
    group: str | None = None
    weight: str | None = None

    @property
    def apart(self) -> list[str]:
        """Columns that are not fitted."""
        return [name for name in (self.id, self.group, self.weight) if name is not None]


class Rows(NamedTuple):
    """What is fitted, and what is known of each row."""

    X: Any  # (n, p) pyarrow Table of numbers, array or CSR matrix
    columns: tuple[str, ...]  # p names
    frame: Any  # (n, q) pyarrow Table of the columns as they are in the file; None for arrays
    ids: list[Any]  # n ids
    id_name: str
    groups: list[Any] | None  # n
    weight: Any  # (n,) or None

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.ids)

    def prepared(self, preparer: Any) -> "Rows":
        """The same with columns as a fitted preparer makes them."""
        names = tuple(map(str, preparer.get_feature_names_out()))
        return self._replace(X=pa.table(dict(zip(names, preparer.transform(self.frame).T))), columns=names)

    def as_numbers(self, file: File) -> "Rows":
        """The same with columns as they are, which must be numbers."""
        return self if self.frame is None else self._replace(X=_numbers(file, self.frame))


def read_rows(file: File, asked: Asked, pick: Pick) -> Rows:
    """The rows of a file; those of a frame are not numbers yet."""
    names = tuple(name for name in (pick.id, pick.group) if name is not None)
    data = read(file, asked._replace(as_text=names))
    check_names(file, names_of(data))
    if data.shape[0] == 0 or data.shape[1] == 0:
        raise Problem(f"{file.name} has no {'rows' if data.shape[1] else 'columns'}. Pass one with both.")
    columns = _chosen(file, names_of(data), pick)
    apart = {name: _column(data, name) for name in pick.apart}
    framed = isinstance(data, pa.Table)
    nested = [name for name in columns if framed and pa.types.is_nested(data.schema.field(name).type)]
    if nested:
        raise Problem(
            f"{file.name} has lists or records in {_quoted(nested)}. Make columns of them, or leave them out: "
            f"--drop {','.join(nested)}"
        )
    all_ = columns == tuple(names_of(data))
    return Rows(
        None if framed else data if all_ else data[:, [int(name) for name in columns]],
        columns,
        data.select(columns) if framed else None,
        list(range(data.shape[0])) if pick.id is None else apart[pick.id],
        ROW if pick.id is None else pick.id,
        None if pick.group is None else apart[pick.group],
        None if pick.weight is None else check_weights(file, pick.weight, apart[pick.weight]),
    )


class Sentences(Sequence[str]):
    """Rows in words, as they are in the file, each made when it is asked for."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return self._rows.n

    def called(self, i: int) -> str:
        """What a row is called."""
        return f"row {i}" if self._rows.id_name == ROW else str(self._rows.ids[i])

    def __getitem__(self, i: Any) -> Any:
        frame = self._rows.frame
        values = ((name, frame.column(name)[int(i)].as_py()) for name in frame.column_names)
        said = ", ".join(f"{name} {figure(value)}" for name, value in values if value is not None)
        return said if self._rows.id_name == ROW else f"{self._rows.ids[int(i)]}: {said}"


def check_enough(file: File, X: Any) -> None:
    """Two rows that differ, at least."""
    n = X.shape[0]
    if n == 1:
        raise Problem(f"{file.name} has one row. There is nothing to compare it with: pass a file with more.")
    if not _varies(X):
        raise Problem(f"All {n} rows of {file.name} are equal, so there is nothing to find. Pass columns that vary.")


def _varies(X: Any) -> bool:
    if isinstance(X, pa.Table):
        return any(len(column.unique()) > 1 for column in X.columns)
    if sp.issparse(X):
        return bool((X.max(axis=0) != X.min(axis=0)).nnz)
    return any((X[start : start + 4096] != X[0]).any() for start in range(0, X.shape[0], 4096))


def _chosen(file: File, names: list[str], pick: Pick) -> tuple[str, ...]:
    """The columns to fit."""
    check_columns(file, names, (*pick.columns, *pick.drop, *pick.apart))
    free = [name for name in names if name not in pick.apart and name not in pick.drop]
    columns = tuple(name for name in pick.columns or free if name not in pick.drop)
    if not columns:
        raise Problem(f"No column of {file.name} is left to fit. Drop fewer.")
    return columns


def check_columns(file: File, names: Sequence[str], wanted: Sequence[str]) -> None:
    """The columns that are wanted are there."""
    for name in wanted:
        if name not in names:
            raise Problem(f"{file.name} has no column {name!r}. {near_name(name, names, listed)}")


def _column(data: Any, name: str) -> list[Any]:
    if isinstance(data, pa.Table):
        return data.column(name).to_pylist()
    column = data[:, int(name)]
    return (column.toarray() if sp.issparse(column) else np.asarray(column)).ravel().tolist()


def check_weights(file: File, name: str, column: list[Any]) -> Any:
    """A column of weights as an array."""
    try:
        weight = np.array(column, dtype=np.float64)
    except (TypeError, ValueError):
        weight = np.array([np.nan])
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise Problem(f"Column {name!r} of {file.name} is no column of weights: they are numbers >= 0, none missing.")
    return weight


def _numbers(file: File, data: pa.Table) -> pa.Table:
    """Columns as numbers, or an error that says which are not."""
    chosen = {name: _as_numbers(data.column(name)) for name in data.column_names}
    text = [name for name, column in chosen.items() if column is None]
    if text:
        raise Problem(_text_message(file, data, text))
    missing = [name for name, column in chosen.items() if column is not None and column.null_count]
    if missing:
        raise Problem(
            f"{file.name} has missing values in {_quoted(missing)} ({chosen[missing[0]].null_count} in the first). "
            f"Fill them in, or leave the columns out: --drop {','.join(missing)}"
        )
    return pa.table(chosen)


def _as_numbers(column: Any) -> Any:
    """A column as float64; None if it holds text or anything else that is no number. NaN is a missing value."""
    kinds = pa.types
    if not any(is_(column.type) for is_ in (*_NUMBERS, kinds.is_string, kinds.is_large_string)):
        return None
    try:
        numbers = column.cast(pa.float64(), safe=False)
    except pa.ArrowInvalid:
        return None
    return pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)


def _text_message(file: File, data: pa.Table, text: list[str]) -> str:
    """What to do about columns that hold text."""
    first = text[0]
    values = data.column(first).to_pylist()
    numbers = sum(value is None or is_number(str(value)) for value in values)
    row, value = next((i, value) for i, value in enumerate(values) if value is not None and not is_number(str(value)))
    if 2 * numbers > len(values):  # a column of numbers with some slips in it
        return (
            f"Column {first!r} of {file.name} holds text in row {row}: {str(value)[:40]!r}. Put it right, or leave the "
            f"column out: --drop {first}"
        )
    return (
        f"{file.name} has text in {_quoted(text)} ({str(value)[:40]!r} in the first). Leave it out: "
        f"--drop {','.join(text)} (or --id {first}, if it names the rows)."
    )


def _quoted(names: list[str]) -> str:
    return f"column{'s' * (len(names) > 1)} {listed(map(repr, names))}"
