"""What a table is read from, a piece after the other: files of all formats, and queries. Each gives Arrow batches."""

import itertools
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from kfree.files.formats import HEAD, Dialect, decoded, is_packed, open_parquet, ragged
from kfree.rows.dask import header_of, parts_of

# Bytes of text that are parsed together, and where lines are long: one must fit in.
_TEXT, _LONG = 1 << 20, 1 << 25
# How Arrow files begin; streams do not.
_ARROW = b"ARROW1"
_WRONG_CELL = re.compile(r"CSV column #(\d+): (?:Row #(\d+): )?CSV conversion error to \w+: invalid value '(.*)'", re.S)
_WRONG_LETTERS = re.compile(r"utf-?8|codec|decod", re.IGNORECASE)


class Wanted(NamedTuple):
    """Columns that are asked of a piece."""

    numbers: tuple[str, ...] = ()  # read as float64 from texts
    others: tuple[str, ...] = ()  # as they are; text where a text does not say
    rows: int = 65_536  # of a batch, at most

    @property
    def names(self) -> list[str]:
        """All of them."""
        return [*self.numbers, *self.others]


class Piece(Protocol):
    """One file or query."""

    label: str
    typed: bool  # whether types of columns are written in it
    others_as_text: bool  # whether columns that are not read as numbers come as text, whatever they look like

    def schema(self) -> Any:
        """Names and types of the columns; those of a text as its first lines look."""

    def count(self) -> tuple[int | None, bool]:
        """How many rows there are, if that is known, and whether it is exact."""

    def batches(self, wanted: Wanted) -> Iterator[Any]:
        """All rows of some columns, in order."""


@contextmanager
def _told(label: str, format: str, where: Callable[[], str] = str) -> Iterator[None]:
    """Errors of pyarrow name the file, and about where it is broken."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, EOFError, KeyError) as error:  # the last: a column has gone since
        if isinstance(error, FileNotFoundError | PermissionError):
            raise
        place = where()
        said = str(error.args[0] if isinstance(error, KeyError) else error).strip().rstrip(".")
        raise ValueError(
            f"{label} cannot be read as {format}{place}: {said}. Is it whole, and is format= right?"
        ) from error


class _Counted:
    """Batches of a file whose errors say after which row they are."""

    def __init__(self, label: str, format: str) -> None:
        self._label, self._format, self._rows = label, format, 0

    def each(self, batches: Callable[[], Iterator[Any]], most: int) -> Iterator[Any]:
        with _told(self._label, self._format, lambda: f" after row {self._rows}" if self._rows else ""):
            for batch in batches():
                for start in range(0, batch.num_rows, most):
                    part = batch.slice(start, most)
                    yield part
                    self._rows += part.num_rows


class ParquetPiece:
    """A Parquet file."""

    typed, others_as_text = True, False

    def __init__(self, path: Path) -> None:
        self.label, self._path = str(path), path

    def schema(self) -> Any:
        """As it is written in the file."""
        with _told(self.label, "parquet"), open_parquet(self._path) as file:
            return file.schema_arrow

    def count(self) -> tuple[int | None, bool]:
        """As it is written in the file."""
        with _told(self.label, "parquet"), open_parquet(self._path) as file:
            return file.metadata.num_rows, True

    def batches(self, wanted: Wanted) -> Iterator[Any]:
        """Row groups, a few rows at a time."""

        def each() -> Iterator[Any]:
            with open_parquet(self._path) as file:
                for group in range(file.num_row_groups):  # a batch over several would not tell which one is broken
                    yield from file.iter_batches(wanted.rows, row_groups=[group], columns=wanted.names)

        return _Counted(self.label, "parquet").each(each, wanted.rows)


class ArrowPiece:
    """An Arrow IPC file, which is also what Feather is, or a stream of it."""

    typed, others_as_text = True, False

    def __init__(self, path: Path) -> None:
        self.label, self._path = str(path), path

    @contextmanager
    def _open(self) -> Iterator[tuple[Any, bool]]:
        import pyarrow as pa

        with open(self._path, "rb") as start:
            whole = start.read(len(_ARROW)) == _ARROW
        if whole:
            with pa.memory_map(str(self._path)) as file:
                yield pa.ipc.open_file(file), True
            return
        with pa.input_stream(str(self._path)) as stream:
            yield pa.ipc.open_stream(stream), False

    def schema(self) -> Any:
        """As it is written in the file."""
        with _told(self.label, "arrow"), self._open() as (reader, _):
            return reader.schema

    def count(self) -> tuple[int | None, bool]:
        """Batches are mostly as long as the first; to know better, all would have to be unpacked."""
        with _told(self.label, "arrow"), self._open() as (reader, whole):
            if not whole:
                return None, False
            some = reader.num_record_batches
            return (reader.get_batch(0).num_rows * some if some else 0), some <= 1

    def batches(self, wanted: Wanted) -> Iterator[Any]:
        """Its batches, cut if they are long."""

        def each() -> Iterator[Any]:
            with self._open() as (reader, whole):
                some = (reader.get_batch(i) for i in range(reader.num_record_batches)) if whole else reader
                for batch in some:
                    yield batch.select(wanted.names)

        return _Counted(self.label, "arrow").each(each, wanted.rows)


class _TextPiece:
    """A text with a row a line."""

    typed, others_as_text = False, False

    def __init__(self, path: Path, encoding: str) -> None:
        self.label, self._path, self._encoding = str(path), path, encoding

    def _stream(self) -> Any:
        import pyarrow as pa

        return pa.input_stream(str(self._path))  # which unpacks what its name says is packed

    def _head(self) -> str:
        with _told(self.label, "text"), self._stream() as stream:
            start = stream.read(HEAD)
        if not start.strip():
            raise ValueError(f"{self.label} is empty. Leave it out, or write it again.")
        head = decoded(start, self._encoding)
        if head is None:
            raise self._letters()
        return head

    def _letters(self) -> ValueError:
        return ValueError(
            f"{self.label} is not written in {self._encoding}. Pass encoding=, for many files of older programs "
            "encoding='latin1'."
        )

    def _count(self, names: int) -> tuple[int | None, bool]:
        """About as many rows as the lines of the beginning would be in the whole file."""
        if is_packed(self._path):
            return None, False
        with open(self._path, "rb") as file:
            start = file.read(HEAD)
        lines = start.count(b"\n")
        if len(start) < HEAD:
            return lines + (not start.endswith(b"\n")) - names, False
        return int(self._path.stat().st_size / len(start) * lines) - names, False


class CsvPiece(_TextPiece):
    """A CSV or TSV file; packed ones too."""

    others_as_text = True

    def __init__(self, path: Path, encoding: str, tabs: bool) -> None:
        super().__init__(path, encoding)
        self._tabs, self._format = tabs, "tsv" if tabs else "csv"
        self._known: tuple[Dialect, Any] | None = None
        self._block = _TEXT

    def _facts(self) -> tuple[Dialect, Any]:
        if self._known is None:
            head = self._head()
            dialect = Dialect.of(head, self._tabs)
            self._block = _TEXT if "\n" in head or len(head) < HEAD // 2 else _LONG
            with _told(self.label, self._format), self._errors(), self._open(dialect, {}, None) as reader:
                self._known = dialect, reader.schema
        return self._known

    def _open(self, dialect: Dialect, types: dict[str, Any], names: list[str] | None) -> Any:
        from pyarrow import csv

        return csv.open_csv(
            self._stream(),
            # rows are counted, so that errors say where, by one thread only
            csv.ReadOptions(
                use_threads=False, block_size=self._block, encoding=self._encoding, column_names=dialect.names
            ),
            csv.ParseOptions(delimiter=dialect.mark, newlines_in_values=True),
            csv.ConvertOptions(
                column_types=types, include_columns=names, strings_can_be_null=False, decimal_point=dialect.point
            ),
        )

    def schema(self) -> Any:
        """As the first rows look."""
        return self._facts()[1]

    def count(self) -> tuple[int | None, bool]:
        """By the length of the file."""
        return self._count(self._facts()[0].names is None)

    def batches(self, wanted: Wanted) -> Iterator[Any]:
        """Numbers as float64 from the first row on: what looks whole may have decimals after a million rows."""
        import pyarrow as pa

        dialect, first = self._facts()
        types = {**_number_types(first, wanted.numbers), **dict.fromkeys(wanted.others, pa.string())}

        def each() -> Iterator[Any]:
            with self._errors(), self._open(dialect, types, wanted.names) as reader:
                yield from reader

        return _Counted(self.label, self._format).each(each, wanted.rows)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What the user can put right, in plain words."""
        import pyarrow as pa

        try:
            yield
        except (pa.ArrowInvalid, UnicodeError) as error:
            said = str(error)
            cell, line = _WRONG_CELL.search(said), ragged(said)
            if line is not None:
                raise ValueError(f"{self.label} is ragged: {line}") from error
            if cell is not None and self._known is not None:
                where = f" in line {cell[2]}" if cell[2] else ""
                name = self._known[1].names[int(cell[1])]
                raise ValueError(
                    f"Column {name!r} of {self.label} holds {cell[3][:40]!r}{where}, which is no number. Put it right, "
                    "or leave the column out: columns="
                ) from error
            if _WRONG_LETTERS.search(said):
                raise self._letters() from error
            raise


class JsonPiece(_TextPiece):
    """JSON lines: a record a line."""

    def schema(self) -> Any:
        """As the first records look."""
        if self._head().lstrip().startswith("["):
            raise ValueError(
                f"{self.label} is one list of records, which must be read as a whole. Write a record a line (JSON "
                "lines), or load it and pass the table to fit."
            )
        with _told(self.label, "json"):
            return next(self._tables(None, HEAD * 4)).schema

    def count(self) -> tuple[int | None, bool]:
        """By the length of the file."""
        return self._count(0)

    def batches(self, wanted: Wanted) -> Iterator[Any]:
        """Some lines at a time, with the types of the first."""
        import pyarrow as pa

        first = self.schema()
        others = {name: first.field(name).type for name in wanted.others}
        others |= {name: pa.string() for name, type_ in others.items() if pa.types.is_null(type_)}  # names, most likely
        types = pa.schema(_number_types(first, wanted.numbers) | others)

        def each() -> Iterator[Any]:
            for table in self._tables(types, _TEXT):
                yield from table.select(wanted.names).to_batches()

        return _Counted(self.label, "json").each(each, wanted.rows)

    def _tables(self, types: Any, size: int) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import json

        parsing = json.ParseOptions(
            explicit_schema=types, unexpected_field_behavior="infer" if types is None else "ignore"
        )
        with self._stream() as stream:
            for text in _whole_lines(stream, size):
                if self._encoding.lower().replace("-", "") != "utf8":
                    text = text.decode(self._encoding).encode()
                reading = json.ReadOptions(use_threads=False, block_size=len(text) + 1)
                yield json.read_json(pa.BufferReader(text), reading, parsing)


def _number_types(first: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Types that the numbers of a text are read as: float64, unless they are written as true and false."""
    import pyarrow as pa

    return {name: pa.bool_() if pa.types.is_boolean(first.field(name).type) else pa.float64() for name in names}


def _whole_lines(stream: Any, size: int) -> Iterator[bytes]:
    """A stream in pieces that end where lines do."""
    rest = b""
    while chunk := stream.read(size):
        end = chunk.rfind(b"\n") + 1
        if end:
            if (rest + chunk[:end]).strip():
                yield rest + chunk[:end]
            rest = chunk[end:]
        else:
            rest += chunk
    if rest.strip():
        yield rest


def is_lazy(frame: Any) -> bool:
    """Whether something is a LazyFrame of polars."""
    return (
        type(frame).__module__.split(".")[0] == "polars"
        and hasattr(frame, "collect_schema")
        and hasattr(frame, "sink_parquet")
    )


class LazyPiece:
    """A LazyFrame of polars, which runs anew for each reading."""

    typed, others_as_text = True, False
    label = "the LazyFrame"

    def __init__(self, frame: Any, scratch: Any) -> None:
        self._frame, self._scratch = frame, scratch

    def schema(self) -> Any:
        """As polars plans it."""
        return self._frame.clear().collect().to_arrow().schema

    def count(self) -> tuple[int | None, bool]:
        """Nobody knows before it has run."""
        return None, False

    def batches(self, wanted: Wanted) -> Iterator[Any]:
        """By polars' own batches; where it has none, by a Parquet file that it writes."""
        chosen = self._frame.select(wanted.names)
        if hasattr(chosen, "collect_batches"):
            try:
                frames = iter(chosen.collect_batches(chunk_size=wanted.rows, maintain_order=True))
            except TypeError:  # it is documented as unstable
                frames = None
            if frames is not None:
                tables = (frame.to_arrow() for frame in frames)
                each = itertools.chain.from_iterable(table.to_batches() for table in tables)
                return _Counted(self.label, "a query").each(lambda: each, wanted.rows)
        return self._by_file(chosen, wanted)

    def _by_file(self, chosen: Any, wanted: Wanted) -> Iterator[Any]:
        with tempfile.TemporaryDirectory(prefix="kfree-scratch-", dir=self._scratch) as folder:
            path = Path(folder) / "query.parquet"
            chosen.sink_parquet(path)
            yield from ParquetPiece(path).batches(wanted)


class StreamPiece:
    """What a function returns: anew for each reading, with an Arrow stream in it."""

    typed, others_as_text = True, False
    label = "the stream"

    def __init__(self, make: Callable[[], Any], scratch: Any) -> None:
        self._make, self._scratch = make, scratch

    def _open(self) -> Any:
        import pyarrow as pa

        made = self._make()
        if is_lazy(made):
            return LazyPiece(made, self._scratch)
        if not hasattr(made, "__arrow_c_stream__"):
            raise TypeError(
                f"The function that was passed to read returned {type(made).__name__}, which has no "
                "__arrow_c_stream__. Return an Arrow table or reader, a frame of polars or pandas, or a relation."
            )
        return pa.RecordBatchReader.from_stream(made)

    def schema(self) -> Any:
        """As the stream says."""
        opened = self._open()
        if isinstance(opened, LazyPiece):
            return opened.schema()
        with opened:
            return opened.schema

    def count(self) -> tuple[int | None, bool]:
        """Nobody knows before it has run."""
        return None, False

    def batches(self, wanted: Wanted) -> Iterator[Any]:
        """A new stream, from its beginning."""

        def each() -> Iterator[Any]:
            opened = self._open()
            if isinstance(opened, LazyPiece):
                yield from opened.batches(wanted)
                return
            with opened:
                for batch in opened:
                    yield batch.select(wanted.names)

        return _Counted(self.label, "an Arrow stream").each(each, wanted.rows)


class DaskPiece:
    """A Dask dataframe, a partition after the other."""

    typed, others_as_text = True, False
    label = "the Dask dataframe"

    def __init__(self, frame: Any) -> None:
        names = {name: str(name) for name in frame.columns if not isinstance(name, str)}
        self._frame = frame.rename(columns=names) if names else frame  # Arrow calls columns by text

    def schema(self) -> Any:
        """As Dask plans it."""
        import pyarrow as pa

        return pa.Schema.from_pandas(header_of(self._frame), preserve_index=False)

    def count(self) -> tuple[int | None, bool]:
        """Nobody knows before it is made."""
        return None, False

    def batches(self, wanted: Wanted) -> Iterator[Any]:
        """Partitions that are made one at a time."""
        import pyarrow as pa

        def each() -> Iterator[Any]:
            for part in parts_of(self._frame[wanted.names]):
                yield from pa.Table.from_pandas(part, preserve_index=False).to_batches()

        return _Counted(self.label, "a dataframe").each(each, wanted.rows)
