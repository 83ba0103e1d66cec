"""``kfree.write``: what a model says of the rows of files, beside the columns that name them."""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kfree.files.whole import new_file
from kfree.rows.dask import asked_of_parts, header_of, is_dask
from kfree.rows.source import Source

# Rows that are predicted and written together.
_ROWS = 65_536
#: What a model can be asked for, row by row, and what the column is called; several columns get a number.
ASKED = {
    "predict": "label",
    "transform": "transform",
    "predict_proba": "probability",
    "decision_function": "decision",
    "score_samples": "score",
}


def write(
    model: Any,
    source: Any,
    path: str | os.PathLike[str],
    *,
    what: str | Sequence[str] | None = None,
    overwrite: bool = False,
) -> Path:
    """Write what a fitted model says of each row to a file, beside the columns that name the rows.

    Rows are predicted and written some at a time, those of a Dask collection where they are, a block at a time. The
    file takes its name when it is complete.

    Parameters
    ----------
    model : fitted estimator
    source : Source, or Dask array or dataframe
        From :func:`kfree.read`. Its ``id`` columns are written first; without them a column "row" counts from 0.
    path : path
        A file whose name ends in .parquet or .csv.
    what : str or list of str, default=None
        Methods of the model: "predict" (column "label"), "decision_function" ("decision"), "score_samples" ("score"),
        "predict_proba" ("probability_0", ...), "transform" (as ``get_feature_names_out`` calls them). None is
        "predict", or "transform" for models that do not predict.
    overwrite : bool, default=False
        Whether a file that is there is replaced.

    Returns
    -------
    Path
        Where it was written.

    Examples
    --------
    >>> import kfree, numpy as np, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> np.save(folder.name + "/rows.npy", np.array([[0.0, 1.0], [0.5, 1.0], [9.0, 8.0]]))
    >>> source = kfree.read(folder.name + "/rows.npy")
    >>> model = kfree.DPMeans(n_clusters=2).fit(source)
    >>> print(kfree.write(model, source, folder.name + "/labels.csv").read_text())
    "row","label"
    0,0
    1,0
    2,1
    <BLANKLINE>
    >>> folder.cleanup()
    """
    if not isinstance(source, Source) and not is_dask(source):
        raise TypeError(f"write needs a Dask collection, or what kfree.read returns, got {type(source).__name__}.")
    if isinstance(source, Source) and source._span is not None:
        raise ValueError(
            "write needs the whole table, and these are some rows of it, from parts(). Pass what they are parts of: "
            "its rows are read some at a time anyway."
        )
    path = Path(path)
    asked = _check_asked(model, what)
    _check_target(path, overwrite)
    try:
        with new_file(path) as part:
            _write_all(part, path.suffix.lower() == ".csv", model, source, asked)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, f"{path} cannot be written ({error.strerror}). Nothing is left of it") from error
    return path


def _check_asked(model: Any, what: Any) -> tuple[str, ...]:
    name = type(model).__name__
    if what is None:
        what = next((one for one in ("predict", "transform") if hasattr(model, one)), None)
        if what is None:
            raise TypeError(f"{name} says nothing of new rows: it has neither predict nor transform.")
    asked = (what,) if isinstance(what, str) else tuple(what)
    for one in asked:
        if one not in ASKED:
            raise ValueError(f"Unknown what={one!r}. Choose one or some of {', '.join(map(repr, ASKED))}.")
        if not hasattr(model, one):
            there = [other for other in ASKED if hasattr(model, other)]
            raise ValueError(f"{name} has no {one}. Choose of {', '.join(map(repr, there))}.")
    if not asked:
        raise ValueError("what is empty. Name a method, or leave it out.")
    return asked


def _check_target(path: Path, overwrite: bool) -> None:
    """Before hours are spent on what could not be written."""
    if path.suffix.lower() not in (".parquet", ".csv"):
        raise ValueError(f"path must end in .parquet or .csv, got {path}.")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {path.absolute().parent} to write {path.name} into. Make it first."
        )
    if path.is_dir() or (path.exists() and not overwrite):
        raise FileExistsError(f"{path} is already there. Pass overwrite=True to replace it, or another name.")
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ImportError('Files are written by pyarrow. Install it: pip install "kfree[files]"') from None


def _write_all(part: Path, as_csv: bool, model: Any, source: Any, asked: tuple[str, ...]) -> None:
    import pyarrow as pa
    from pyarrow import csv, parquet

    writer = None
    try:
        for ids, answers in _of_blocks(model, source, asked) if is_dask(source) else _of_source(model, source, asked):
            columns = dict(zip(ids.column_names, ids.columns))
            for one, answer in zip(asked, answers):
                for name, values in _said(model, one, answer):
                    while name in columns:
                        name += "_"
                    columns[name] = pa.array(values)
            table = pa.table(columns)
            if writer is None:
                writer = (csv.CSVWriter if as_csv else parquet.ParquetWriter)(str(part), table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def _of_blocks(model: Any, X: Any, asked: tuple[str, ...]) -> Iterator[tuple[Any, list[Any]]]:
    """The numbers of the rows of a block, and what the model says of them; the rows stay where they are."""
    import pyarrow as pa

    start, lazy = 0, [getattr(model, one)(X) for one in asked]  # which also checks the columns
    nothing = [
        np.empty((0, *said.shape[1:]), said.dtype) if hasattr(said, "chunks") else header_of(said) for said in lazy
    ]
    for answers in asked_of_parts(X, partial(_answers, model, asked)):
        answers = nothing if answers is None else answers
        n = len(answers[0])
        yield pa.table({"row": np.arange(start, start + n)}), answers
        start += n


def _answers(model: Any, asked: tuple[str, ...], X: Any) -> list[Any] | None:
    """What a model says of the rows of a block; None if there are none."""
    return [getattr(model, one)(X) for one in asked] if X.shape[0] else None


def _of_source(model: Any, source: Source, asked: tuple[str, ...]) -> Iterator[tuple[Any, list[Any]]]:
    """The ids of some rows at a time, and what the model says of them."""
    for ids, rows in _pairs(source):
        yield ids, [getattr(model, one)(rows) for one in asked]


def _pairs(source: Source) -> Iterator[tuple[Any, Source]]:
    """Some rows at a time, with their ids."""
    import pyarrow as pa

    named = source._reader.ids
    ids, start = source._reader.beside(_ROWS) if named else iter(()), 0
    for rows in source.parts(_ROWS):
        n = len(rows)
        beside = next(ids, None) if named else pa.table({"row": np.arange(start, start + n)})
        if beside is None or beside.num_rows != n:
            raise ValueError("There are other rows now than when the numbers were read. Read the files again.")
        yield beside, rows
        start += n
    if next(ids, None) is not None:
        raise ValueError("There are other rows now than when the numbers were read. Read the files again.")


def _said(model: Any, what: str, values: Any) -> Iterator[tuple[str, Any]]:
    """What a model said of some rows, as columns with names."""
    if not isinstance(values, np.ndarray):  # a frame after set_output, or sparse
        values = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
    if values.ndim == 1:
        yield ASKED[what], values
        return
    names = [f"{ASKED[what]}_{k}" for k in range(values.shape[1])]
    if what == "transform" and hasattr(model, "get_feature_names_out"):
        names = [str(name) for name in model.get_feature_names_out()]
    for name, column in zip(names, values.T):
        yield name, np.ascontiguousarray(column)
