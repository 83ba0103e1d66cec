"""``kfree.read``: tables in files, larger than memory if need be, for every estimator."""

import glob
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kfree.files.arrays import DaskReader, NpyReader
from kfree.files.formats import format_of, neighbour
from kfree.files.pieces import (
    ArrowPiece,
    CsvPiece,
    DaskPiece,
    JsonPiece,
    LazyPiece,
    ParquetPiece,
    Piece,
    StreamPiece,
    is_lazy,
)
from kfree.files.table import ArrowReader, Columns
from kfree.rows.dask import is_dask
from kfree.rows.source import Source, scratch_folder

#: Formats that are read a few rows at a time.
STREAMED = ("parquet", "csv", "tsv", "json", "arrow", "npy")


def read(
    paths: Any,
    *,
    columns: Sequence[str] | None = None,
    weight: str | None = None,
    id: str | Sequence[str] | None = None,
    dtype: Any = None,
    format: str | None = None,
    encoding: str = "utf8",
    scratch: Any = None,
) -> Source:
    """A table in files, for estimators, where it may be larger than memory.

    Give what it returns to ``fit``, ``partial_fit``, ``predict``, ``transform`` or ``score`` of any estimator in place
    of X: the answers are those for the same numbers in memory. When rows are first needed the files are read once, and
    their numbers are written to a scratch file, whose size is announced on the logger "kfree"; from then on it is
    mapped. NPY files are mapped as they are.

    Parameters
    ----------
    paths : path, list of paths, function, LazyFrame or Dask collection
        Parquet, CSV, TSV (also packed: .gz, .bz2, .zst), JSON lines, Arrow IPC, Feather and NPY files; a list of them,
        a pattern such as ``"data/*.parquet"``, or a folder, whose files are read in the order of their names (2 before
        10).
        A polars LazyFrame, a Dask array or dataframe, or a function that returns a new object with
        ``__arrow_c_stream__`` whenever it is called.
    columns : list of str, default=None
        The columns to fit; all but ``weight`` and ``id`` if None. They must hold numbers, none missing.
    weight : str, default=None
        A column of weights: ``sample_weight`` of what it is passed to.
    id : str or list of str, default=None
        Columns that name the rows, for :func:`kfree.write`.
    dtype : float32 or float64, default=None
        None is float32 if all columns are (or float16), else float64.
    format : {"parquet", "csv", "tsv", "json", "arrow", "npy"}, default=None
        None is by the ends of names.
    encoding : str, default="utf8"
        Of CSV, TSV and JSON lines.
    scratch : path, default=None
        A folder for the scratch file, on a disk with room; the folder for temporary files if None (TMPDIR, else
        /var/tmp where there is one).

    Returns
    -------
    Source

    See Also
    --------
    write : Predictions beside the ids of the rows, in a file.

    Examples
    --------
    >>> import kfree, numpy as np, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = folder.name + "/rows.csv"
    >>> with open(path, "w") as file:
    ...     _ = file.write("name,a,b\\nx,0,1\\ny,0.5,1\\nz,9,8\\n")
    >>> with kfree.read(path, id="name") as source:
    ...     model = kfree.DPMeans(n_clusters=2).fit(source)
    >>> model.labels_
    array([0, 0, 1], dtype=int32)
    >>> folder.cleanup()
    """
    ids = () if id is None else (id,) if isinstance(id, str | int) else tuple(id)
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of names, got the text {columns!r}. Pass [{columns!r}].")
    chosen = Columns(None if columns is None else tuple(columns), weight, ids)
    if columns is not None and not chosen.chosen:
        raise ValueError("columns is empty. Name some, or pass None for all.")
    if dtype is not None and np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}.")
    if format is not None and format not in STREAMED:
        raise ValueError(f"Unknown format {format!r}. Choose one of {', '.join(map(repr, STREAMED))}.")
    if is_dask(paths) and not hasattr(paths, "columns"):
        return Source(DaskReader(paths, chosen, dtype), scratch)
    queries = _query(paths, scratch)
    if queries is not None:
        _check_pyarrow()
        return Source(ArrowReader(queries, chosen, dtype), scratch)
    files = _files(paths, format)
    if {kind for _, kind in files} == {"npy"}:
        return Source(NpyReader([path for path, _ in files], chosen, dtype), scratch)
    _check_pyarrow()
    return Source(ArrowReader([_piece(path, kind, encoding) for path, kind in files], chosen, dtype), scratch)


def _check_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ImportError('Files other than NPY are read by pyarrow. Install it: pip install "kfree[files]"') from None


def _piece(path: Path, kind: str, encoding: str) -> Piece:
    if kind in ("csv", "tsv"):
        return CsvPiece(path, encoding, kind == "tsv")
    if kind == "json":
        return JsonPiece(path, encoding)
    return ParquetPiece(path) if kind == "parquet" else ArrowPiece(path)


def _query(paths: Any, scratch: Any) -> list[Piece] | None:
    """A query or a function as a piece; None if these are paths, an error if they are neither."""
    folder = scratch_folder() if scratch is None else scratch
    if is_lazy(paths):
        return [LazyPiece(paths, folder)]
    if is_dask(paths):
        return [DaskPiece(paths)]
    if isinstance(paths, str | os.PathLike):
        return None
    if isinstance(paths, Iterable) and isinstance(paths, list | tuple):
        return None
    kind = type(paths).__name__
    if hasattr(paths, "__arrow_c_stream__") or hasattr(paths, "__array__"):
        raise TypeError(
            f"{kind} is not a file. If it is in memory, pass it to fit as it is; if it is a stream, it can be read "
            "once only: pass a function that returns a new one, such as kfree.read(lambda: connection.sql(...))."
        )
    if hasattr(paths, "__next__"):
        raise TypeError(
            f"A {kind} can be read once only. Pass a function that returns a new object with __arrow_c_stream__ "
            "whenever it is called, or write a Parquet file."
        )
    if callable(paths):
        return [StreamPiece(paths, folder)]
    raise TypeError(f"read needs a path, a list of paths, a function or a LazyFrame, got {kind}.")


def _files(paths: Any, format: str | None) -> list[tuple[Path, str]]:
    """All files with their formats, in order."""
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise ValueError("The list of files is empty. Pass at least one.")
    found = [(path, kind) for one in given for path, kind in _expanded(Path(one), format)]
    kinds = {"csv" if kind == "tsv" else kind for _, kind in found}
    if "npy" in kinds and len(kinds) > 1:
        other = next(path for path, kind in found if kind != "npy")
        raise ValueError(f"{other} has named columns and NPY files have none. Read them apart.")
    return found


def _expanded(path: Path, format: str | None) -> list[tuple[Path, str]]:
    if path.is_dir():
        inside = [one for one in path.rglob("*") if one.is_file() and not _is_hidden(one.relative_to(path))]
        files = [one for one in inside if format is not None or format_of(one) in STREAMED]
        if not files:
            raise ValueError(f"There are no files to read in the folder {path}. Their names end in .parquet, say.")
        kinds = sorted({format or str(format_of(one)) for one in files})
        if len(kinds) > 1:
            raise ValueError(
                f"The folder {path} holds files of formats {', '.join(kinds)}. Pass format=, or a pattern."
            )
        return [(one, kinds[0]) for one in sorted(files, key=_natural)]
    if not path.exists():
        matched = [Path(one) for one in glob.glob(str(path), recursive=True)] if re.search(r"[*?\[]", str(path)) else []
        if matched:
            return [(one, kind) for some in sorted(matched, key=_natural) for one, kind in _expanded(some, format)]
        if re.match(r"\w\w+:/", path.as_posix()):
            raise ValueError(
                f"{path.as_posix()} is an address, and files are read from disks. Pass polars.scan_parquet(...), which "
                "reads addresses, or fetch the file first."
            )
        near = neighbour(path)
        raise FileNotFoundError(f"There is no file {path}. " + (f"Did you mean {near}?" if near else "Check the name."))
    kind = format or format_of(path)
    if kind in ("npz", "mtx"):
        raise ValueError(f"{path} is read as a whole: load it with scipy, and pass the matrix to fit.")
    if kind not in STREAMED:
        raise ValueError(
            f"The format of {path} cannot be told from its name. Pass format=, one of {', '.join(STREAMED)}."
        )
    return [(path, kind)]


def _is_hidden(path: Path) -> bool:
    """Whether other programs left it beside the tables."""
    return any(part.startswith((".", "_")) for part in path.parts)


def _natural(path: Path) -> list[Any]:
    """Order in which part.10 comes after part.2."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", path.as_posix())]
