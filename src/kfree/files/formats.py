"""How files are written: formats by their names, and what the first lines of a text say about all the others."""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

#: Formats by the ends of names.
ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".npy": "npy",
    ".npz": "npz",
    ".mtx": "mtx",
    ".txt": "txt",
}
_PACKED = (".gz", ".bz2", ".zst", ".lz4", ".br")
#: Bytes of a text file that are looked at to see how it is written.
HEAD = 65_536
#: Decimals in a cell between semicolons or tabs, with a comma and with a point.
_CELL_COMMA = re.compile(r'(?:^|[;\t])"?-?\d+,\d+"?[ \r]*(?:[;\t]|$)', re.MULTILINE)
_CELL_POINT = re.compile(r'(?:^|[;\t])"?-?\d+\.\d+"?[ \r]*(?:[;\t]|$)', re.MULTILINE)
_RAGGED = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)")
_SHOWN = 5


class Dialect(NamedTuple):
    """How a text with a row a line is written."""

    mark: str  # what parts the cells
    names: list[str] | None  # numbers for names, where the first line holds none
    point: str  # before decimals

    @classmethod
    def of(cls, head: str, tabs: bool) -> "Dialect":
        """As the first characters of a file say."""
        line = head.split("\n", 1)[0]
        mark = "\t" if tabs else max((",", ";", "\t"), key=line.count)
        first = [cell.strip().strip('"') for cell in line.split(mark)]
        names = [str(j) for j in range(len(first))] if all(map(is_number, first)) else None
        point = "," if mark != "," and _CELL_COMMA.search(head) and not _CELL_POINT.search(head) else "."
        return cls(mark, names, point)


def format_of(path: Path) -> str | None:
    """The format of a file by its name, whether it is packed or not."""
    ends = [end for end in path.suffixes if end.lower() not in _PACKED]
    return ENDINGS.get(ends[-1].lower() if ends else "")


def is_packed(path: Path) -> bool:
    """Whether a file is compressed as a whole."""
    return path.suffix.lower() in _PACKED


def formats() -> list[str]:
    """All formats."""
    return list(dict.fromkeys(ENDINGS.values()))


def is_number(text: str) -> bool:
    """Whether a cell is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def decoded(start: bytes, encoding: str) -> str | None:
    """The first characters of a text; None if it is written in other letters."""
    head = start.decode(encoding, errors="replace").lstrip("\ufeff")
    return None if "\ufffd" in head.split("\n", 1)[0] else head


def ragged(said: str) -> str | None:
    """What pyarrow says of a line with too many or too few cells, in plain words; None if it says something else."""
    found = _RAGGED.search(said)
    if found is None:
        return None
    where = f"line {found[1]} has" if found[1] else "a line has"
    return (
        f"{where} {found[3]} cells where the first has {found[2]}. Put the line right; cells with a comma in them need "
        "quotes."
    )


def open_parquet(path: Any) -> Any:
    """A Parquet file; a buffer of pyarrow's takes four times the memory."""
    from pyarrow import parquet

    return parquet.ParquetFile(path, pre_buffer=False)


def neighbour(path: Path) -> Path | None:
    """A file that is there, with a name much like one that is not."""
    try:
        beside = [other.name for other in path.absolute().parent.iterdir()]
    except OSError:
        return None
    near = [name for name in beside if difflib.get_close_matches(path.stem, [Path(name).stem])]  # ".csv" is no likeness
    best = difflib.get_close_matches(path.name, near, n=1, cutoff=0.0)
    return path.parent / best[0] if best else None


def near_name(name: str, names: Sequence[str], listed: Callable[[Sequence[str]], str] | None = None) -> str:
    """Which column may be meant, or which there are."""
    near = difflib.get_close_matches(name, names, n=1)
    return f"Did you mean {near[0]!r}?" if near else f"There are {(listed or some)(names)}."


def twice(names: Sequence[str]) -> str | None:
    """A name that occurs twice."""
    return next((name for name in names if list(names).count(name) > 1), None)


def some(names: Iterable[Any], most: int = _SHOWN) -> str:
    """The first names of a list."""
    names = [repr(name) for name in names]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
