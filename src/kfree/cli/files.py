"""Files that commands read: tables of columns, arrays, sparse matrices. Format by extension, or as the user says."""

import codecs
import io
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import scipy.io
import scipy.sparse as sp

from kfree.cli.talk import Problem, listed
from kfree.files.formats import HEAD, Dialect, decoded, format_of, formats, neighbour, open_parquet, ragged

_MANY_FILES = 'Tables in many files are read in Python: kfree.read("folder/*.parquet").'
#: How UTF-16 begins.
_TWO_BYTES = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Asked(NamedTuple):
    """How a file is to be read."""

    format: str | None = None  # by extension if None
    array: str | None = None  # name of an array in a .npz
    encoding: str = "utf8"
    as_text: tuple[str, ...] = ()  # columns that are names, not numbers


class File(NamedTuple):
    """A file that was found."""

    name: str  # what the user calls it
    data: Any  # its path, or its bytes if it is stdin
    format: str

    def open(self) -> Any:
        """Its bytes from the beginning, unpacked."""
        return pa.BufferReader(self.data) if isinstance(self.data, bytes) else pa.input_stream(str(self.data))

    def whole(self) -> Any:
        """What numpy and scipy read: a path or a stream."""
        return io.BytesIO(self.data) if isinstance(self.data, bytes) else str(self.data)


def find(name: str, format: str | None, otherwise: str) -> File:
    """The file of a name; "-" is stdin, whose format is ``otherwise`` unless it is said."""
    if name == "-":
        return File("stdin", sys.stdin.buffer.read(), format or otherwise)
    path = Path(name)
    if "*" in name and not path.exists():
        raise Problem(f"{name} is a pattern, and a command reads one file. {_MANY_FILES}")
    if not path.exists():
        near = neighbour(path)
        hint = f"Did you mean {near}?" if near else "Check the name, or pass - to read stdin."
        raise Problem(f"There is no file {name}. {hint}")
    if path.is_dir():
        raise Problem(f"{name} is a folder. Pass a file; kfree topics reads a folder of .txt files. {_MANY_FILES}")
    known = format or format_of(path)
    if known is None:
        raise Problem(
            f"The format of {name} cannot be told from its name. Pass --format, one of {listed(formats(), 20)}; save "
            "spreadsheets as CSV first."
        )
    return File(name, path, known)


def read(file: File, asked: Asked) -> Any:
    """What is in a file: a pyarrow Table, an array or a CSR matrix."""
    if file.format == "txt":
        raise Problem(
            f"{file.name} is plain text, not a table. For topics run kfree topics {file.name}; else pass --format csv."
        )
    try:
        return _READERS[file.format](file, asked)
    except Problem:
        raise
    except (pa.ArrowInvalid, ValueError, EOFError, KeyError) as error:
        why = str(error).rstrip(". ")
        raise Problem(
            f"{file.name} cannot be read as {file.format}: {why}. Is it whole, and is --format right?"
        ) from error


def _read_csv(file: File, asked: Asked) -> pa.Table:
    from pyarrow import csv

    dialect = Dialect.of(_head(file, asked.encoding), file.format == "tsv")
    reading = {"encoding": asked.encoding, "column_names": dialect.names}
    parsing = csv.ParseOptions(delimiter=dialect.mark, newlines_in_values=True)
    types: dict[str, Any] = dict.fromkeys(asked.as_text, pa.string())

    def attempt(threads: bool) -> pa.Table:
        converting = csv.ConvertOptions(column_types=types, strings_can_be_null=False, decimal_point=dialect.point)
        options = csv.ReadOptions(use_threads=threads, **reading)
        return csv.read_csv(file.open(), read_options=options, parse_options=parsing, convert_options=converting)

    while True:
        try:
            found = attempt(threads=True)
            if any(map(pa.types.is_binary, found.schema.types)):  # what pyarrow makes of letters it cannot read
                raise other_letters(file.name, asked.encoding)
            return found
        except pa.ArrowInvalid as error:
            wrong = re.search(r"CSV column #(\d+)", str(error))
            column = _columns(file, csv, reading, parsing)[int(wrong[1])] if wrong else None
            if column is None or types.get(column) == pa.string():
                raise _told(file, asked, attempt) from error
            # types come from the first block only: what looked whole may have decimals, what looked a number text
            types[column] = pa.float64() if column not in types else pa.string()


def _columns(file: File, csv: Any, reading: Any, parsing: Any) -> list[str]:
    return csv.open_csv(file.open(), read_options=csv.ReadOptions(**reading), parse_options=parsing).schema.names


def _head(file: File, encoding: str) -> str:
    """The first characters of a text file."""
    with file.open() as stream:
        start = stream.read(HEAD)
    if not start.strip():
        raise Problem(f"{file.name} is empty. Pass one with rows.")
    if start[:2] in _TWO_BYTES and encoding == "utf8":
        raise Problem(f"{file.name} is written in UTF-16. Pass --encoding utf16.")
    if b"\0" in start and start[:2] not in _TWO_BYTES:
        raise Problem(f"{file.name} is no text. Save it as CSV or Parquet, or pass --format.")
    head = decoded(start, encoding)
    if head is None:
        raise other_letters(file.name, encoding)
    return head


def other_letters(name: str, encoding: str, where: str = "") -> Problem:
    """A file is written in another way."""
    return Problem(
        f"{name} is not written in {encoding.upper().replace('UTF8', 'UTF-8')}{where}. Pass --encoding, for many files "
        "of older programs --encoding latin1."
    )


def _told(file: File, asked: Asked, attempt: Callable[..., Any]) -> Problem:
    """Why a CSV file cannot be read, and in which row: known where one thread reads them in order."""
    try:
        attempt(threads=False)
        said = "it changed while it was read"
    except (pa.ArrowInvalid, UnicodeError) as error:
        said = str(error)
    if "utf" in said.lower() or "codec" in said:
        return other_letters(file.name, asked.encoding)
    line = ragged(said)
    if line is not None:
        return Problem(f"{file.name} is ragged: {line}")
    return Problem(f"{file.name} cannot be read as {file.format}: {said}.")


def _read_json(file: File, asked: Asked) -> pa.Table:
    from pyarrow import json

    if _head(file, asked.encoding).lstrip().startswith("["):  # one list of records, not a record a line
        import json as plain

        with file.open() as stream:
            return pa.Table.from_pylist(plain.loads(stream.read().decode(asked.encoding)))
    return json.read_json(file.open())


def _read_parquet(file: File, asked: Asked) -> pa.Table:
    return open_parquet(file.whole()).read()


def _read_arrow(file: File, asked: Asked) -> pa.Table:
    try:
        return pa.ipc.open_file(pa.OSFile(str(file.data)) if not isinstance(file.data, bytes) else file.data).read_all()
    except pa.ArrowInvalid:
        return pa.ipc.open_stream(file.open()).read_all()


def _read_npy(file: File, asked: Asked) -> Any:
    if isinstance(file.data, bytes):
        return _as_table(file, np.load(file.whole(), allow_pickle=False))
    return _as_table(file, np.load(file.data, mmap_mode="r", allow_pickle=False))


def _read_npz(file: File, asked: Asked) -> Any:
    with np.load(file.whole(), allow_pickle=False) as arrays:
        if asked.array is None and {"format", "shape", "data"} <= set(arrays.files):
            return sp.csr_matrix(sp.load_npz(file.whole()))
        flat = [name for name in arrays.files if arrays[name].ndim == 2 and arrays[name].dtype.kind in "biuf"]
        name = asked.array or ("X" if "X" in arrays.files else flat[0] if len(flat) == 1 else None)
        if name is None or name not in arrays.files:
            wish = f"has no array {name!r}" if name else "holds several arrays or none"
            raise Problem(f"{file.name} {wish}. Pass --array, one of {listed(arrays.files)}.")
        return _as_table(file, arrays[name])


def _read_mtx(file: File, asked: Asked) -> Any:
    found = scipy.io.mmread(file.whole())
    return sp.csr_matrix(found) if sp.issparse(found) else np.asarray(found)


def _as_table(file: File, array: Any) -> Any:
    """An array of rows; pictures become rows of their pixels."""
    if array.ndim < 2 or array.dtype.kind not in "biuf":
        raise Problem(
            f"{file.name} holds an array of shape {array.shape} and type {array.dtype}. Pass one of numbers with rows "
            "and columns."
        )
    return array.reshape(len(array), -1)


_READERS: dict[str, Callable[[File, Asked], Any]] = {
    "csv": _read_csv,
    "tsv": _read_csv,
    "json": _read_json,
    "parquet": _read_parquet,
    "arrow": _read_arrow,
    "npy": _read_npy,
    "npz": _read_npz,
    "mtx": _read_mtx,
}


def names_of(data: Any) -> list[str]:
    """Names of columns; numbers where there are none."""
    return data.column_names if isinstance(data, pa.Table) else [str(j) for j in range(data.shape[1])]


def check_names(file: File, names: Iterable[str]) -> None:
    """No name twice."""
    names = list(names)
    seen = {name: [j + 1 for j, other in enumerate(names) if other == name] for name in names}
    for name, places in seen.items():
        if len(places) > 1:
            where = " and ".join(map(str, places[:2]))
            raise Problem(f"{file.name} has two columns called {name!r} (columns {where}). Rename one of them.")
