"""NPY files, which are mapped as they are."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kfree.families import Array
from kfree.files.table import _BYTES, _ROWS, Columns, label_of
from kfree.rows.dask import parts_of, rows_as_blocks
from kfree.rows.source import Decoded, Facts


class NpyReader:
    """Arrays of numbers. One of them is mapped; several, or some columns of it, are copied to a scratch file."""

    ids: tuple[str, ...] = ()

    def __init__(self, paths: Sequence[Path], columns: Columns, dtype: Any) -> None:
        self._paths = paths
        arrays = [_load(path) for path in paths]
        p = arrays[0].shape[1]
        for path, array in zip(paths, arrays):
            if array.shape[1] != p:
                raise ValueError(
                    f"Files differ: {path} has {array.shape[1]} columns, unlike {paths[0]}, which has {p}. Read "
                    "them apart."
                )
        if columns.ids:
            raise ValueError(f"{paths[0]} is an array of numbers without ids. Leave id= out: rows are numbered.")
        self._weight = None if columns.weight is None else _number_of(columns.weight, p, paths[0])
        self._chosen = (
            [j for j in range(p) if j != self._weight]
            if columns.chosen is None
            else [_number_of(name, p, paths[0]) for name in columns.chosen]
        )
        if self._weight in self._chosen or not self._chosen:
            raise ValueError(f"Column {self._weight} of {paths[0]} is the weight; other columns are needed to fit.")
        single = all(array.dtype in (np.float16, np.float32) for array in arrays)
        kind = np.dtype((np.float32 if single else np.float64) if dtype is None else dtype)
        plain = all(array.dtype.itemsize <= 8 and array.dtype not in (np.float16,) for array in arrays)
        whole = self._weight is None and self._chosen == list(range(p))
        self._direct = len(paths) == 1 and whole and plain and (dtype is None or arrays[0].dtype == kind)
        kind = arrays[0].dtype if self._direct else kind
        rows = sum(map(len, arrays))
        label = label_of(list(map(str, paths)))
        if not rows:
            raise ValueError(f"{label} has no rows. Pass files that have some.")
        self.facts = Facts(label, None, len(self._chosen), kind, rows, True, self._weight is not None)

    def mapped(self) -> Array | None:
        """The one array, if nothing needs to be done to it."""
        return _load(self._paths[0]) if self._direct else None

    def blocks(self) -> Iterator[Decoded]:
        """Rows of all arrays."""
        for path in self._paths:
            array = _load(path)
            most = max(1, min(_ROWS, _BYTES // (8 * array.shape[1])))
            for start in range(0, len(array), most):
                part = np.asarray(array[start : start + most])
                weight = None if self._weight is None else part[:, self._weight].astype(np.float64)
                yield Decoded(part[:, self._chosen].astype(self.facts.dtype), weight)

    def beside(self, rows: int) -> Iterator[Any]:
        """There are no columns beside the numbers."""
        return iter(())


class DaskReader:
    """A Dask array, a block after the other."""

    ids: tuple[str, ...] = ()

    def __init__(self, array: Any, columns: Columns, dtype: Any) -> None:
        if columns.ids or columns.weight is not None or columns.chosen is not None:
            raise ValueError("A Dask array has no names: leave columns=, weight= and id= out, and select by X[:, ...].")
        self._array = rows_as_blocks(array)
        n, p = self._array.shape
        known = not np.isnan(n)
        kind = np.float32 if self._array.dtype in (np.float16, np.float32) else np.float64
        rows = int(n) if known else None
        self.facts = Facts(
            "the Dask array", None, int(p), np.dtype(kind if dtype is None else dtype), rows, known, False
        )

    def mapped(self) -> Array | None:
        """Blocks must be made."""
        return None

    def blocks(self) -> Iterator[Decoded]:
        """Rows of all blocks."""
        for part in parts_of(self._array):
            if not isinstance(part, np.ndarray):
                raise TypeError(
                    f"Blocks of the Dask array are {type(part).__name__}, and only dense ones are read. Pass it to an "
                    "estimator that is fitted where the rows are, or X.compute() if there is room."
                )
            yield Decoded(part.astype(self.facts.dtype), None)

    def beside(self, rows: int) -> Iterator[Any]:
        """There are no columns beside the numbers."""
        return iter(())


def _number_of(name: Any, p: int, path: Path) -> int:
    text = str(name)
    if isinstance(name, bool) or not text.isdigit() or int(text) >= p:
        raise ValueError(f"{path} has no column {name!r}: its {p} columns have numbers, 0 to {p - 1}.")
    return int(text)


def _load(path: Path) -> Array:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} cannot be read as npy: {error}. Is it whole, and is format= right?") from error
    if not isinstance(array, np.ndarray) or array.ndim < 2 or array.dtype.kind not in "biuf":
        what = f"an array of shape {array.shape} and type {array.dtype}" if isinstance(array, np.ndarray) else "arrays"
        raise ValueError(f"{path} holds {what}. Pass one of numbers with rows and columns.")
    return array.reshape(len(array), math.prod(array.shape[1:]))
