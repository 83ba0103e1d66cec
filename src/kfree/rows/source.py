"""Tables that are read from files or queries: decoded once into a scratch file, which is then a table like any other.

A fit passes over all rows many times, and to decode a file costs more than a pass. So one survey writes plain numbers
to a scratch file, and everything else works on its memory map: answers are those for the same numbers in memory.
"""

import errno
import logging
import mmap
import os
import queue
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from kfree.families import Array

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Seconds after which a thread that waits for room looks whether it is still wanted.
_PATIENCE = 0.1
_LOGGER = logging.getLogger("kfree")


class Facts(NamedTuple):
    """What is known of a table before it is read."""

    label: str  # what messages call it
    columns: tuple[str, ...] | None  # names of the p columns, if they have names
    width: int  # p
    dtype: Any  # float32 or float64
    rows: int | None  # n, if that is known
    exact: bool  # whether ``rows`` is no estimate
    weighted: bool  # whether there is a column of weights


class Decoded(NamedTuple):
    """Some rows of a table."""

    values: Array  # (m, p)
    weight: Array | None  # (m,)


class Reader(Protocol):
    """Where a table comes from; it may be read as often as is needed."""

    facts: Facts
    ids: tuple[str, ...]  # names of the columns that name the rows

    def mapped(self) -> Array | None:
        """The table as a memory map, if it is one already."""

    def blocks(self) -> Iterator[Decoded]:
        """All rows, in order."""

    def beside(self, rows: int) -> Iterator[Any]:
        """Columns that name the rows, as Arrow tables of so many rows (the last of fewer)."""


class Source:
    """A table in files, as :func:`kfree.read` gives it: pass it to estimators where they take X.

    It is read once, when its rows are first asked for, into a scratch file; ``close()``, the end of a ``with`` block or
    of the process gives the room back. Models that were fitted to it do not need it.

    Attributes
    ----------
    columns : tuple of str or None
        Names of the columns.
    array : array (n, p)
        The rows, read-only; a memory map, so that only what is used is in memory.
    weight : array (n,) or None
        The column of weights, if one was named.
    shape : tuple of int
        Rows and columns.
    """

    def __init__(self, reader: Reader, scratch: Any = None, span: slice | None = None) -> None:
        self._reader, self._scratch = reader, scratch
        self._span = span  # which rows of the table these are; None for all
        self._lock = threading.RLock()
        self._rows: _Kept | None = None

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns; None if they have none."""
        return self._reader.facts.columns

    @property
    def array(self) -> Array:
        """The rows, (n, p), read-only."""
        return self._read().values

    @property
    def weight(self) -> Array | None:
        """The column of weights, (n,), or None."""
        return self._read().weight if self._reader.facts.weighted else None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._read().values.shape

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if dtype is None or np.dtype(dtype) == self.array.dtype:
            return np.array(self.array) if copy else self.array
        if copy is False:
            raise ValueError(f"These rows are {self.array.dtype}; {np.dtype(dtype)} would be a copy.")
        return self.array.astype(dtype)

    def parts(self, rows: Any) -> Iterator["Source"]:
        """The same table so many rows at a time, for ``partial_fit`` or for results that need room.

        Parameters
        ----------
        rows : int

        Yields
        ------
        Source
        """
        if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 1:
            raise ValueError(f"rows must be an integer >= 1, got {rows!r}.")
        kept = self._read()
        for start in range(0, len(kept.values), int(rows)):
            span = slice(start, start + int(rows))
            first = start if self._span is None else self._span.start + start
            part = Source(self._reader, self._scratch, slice(first, first + len(kept.values[span])))
            part._rows = kept.cut(span)
            yield part

    def close(self) -> None:
        """Give the room of the scratch file back; rows that are asked for later are read again."""
        with self._lock:
            if self._rows is not None and self._rows.file is not None:
                self._rows.file.close()  # the map goes with the last array that shows it
            self._rows = None

    def __enter__(self) -> "Source":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        # another process reads for itself
        return {"_reader": self._reader, "_scratch": self._scratch, "_span": self._span}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_reader"], state["_scratch"], state["_span"])  # type: ignore[misc]

    def __repr__(self) -> str:
        facts = self._reader.facts
        n, known = facts.rows, facts.exact
        if self._span is not None:
            n, known = self._span.stop - self._span.start, True
        elif self._rows is not None:
            n, known = len(self._rows.values), True
        rows = "unknown number of" if n is None else f"{'' if known else 'about '}{n}"
        return f"Source({facts.label}: {rows} rows, {facts.width} columns, {np.dtype(facts.dtype)})"

    def _read(self) -> "_Kept":
        with self._lock:  # two threads that fit one table wait for one survey
            if self._rows is None:
                whole = _survey(self._reader, self._scratch)
                self._rows = whole if self._span is None else whole.cut(self._span)
            return self._rows


class _Kept(NamedTuple):
    values: Array
    weight: Array | None
    file: Any  # the scratch file, or None if there is none

    def cut(self, span: slice) -> "_Kept":
        """Some of the rows; the file stays with whoever has all."""
        return _Kept(self.values[span], None if self.weight is None else self.weight[span], None)


def _survey(reader: Reader, folder: Any) -> _Kept:
    """Read everything once; numbers go to a scratch file unless they are mapped already."""
    there = reader.mapped()
    if there is not None:
        return _Kept(there, None, None)
    facts = reader.facts
    folder = scratch_folder() if folder is None else os.fspath(folder)
    _announce(facts, folder)
    try:
        # It has no name, or is deleted with the process: however a process ends, nothing is left behind.
        file = tempfile.TemporaryFile(prefix="kfree-scratch-", dir=folder, buffering=0)  # noqa: SIM115
    except OSError as error:
        raise OSError(
            error.errno,
            f"No scratch file can be made in {folder} ({error.strerror}). Pass scratch= a folder that is there and can "
            "be written to",
        ) from error
    try:
        n, weight = _write(reader, file, folder)
        if not n:
            raise ValueError(f"{facts.label} has no rows. Pass files that have some.")
        return _Kept(_map(file, n, facts), weight, file)
    except BaseException:
        file.close()
        raise


def _write(reader: Reader, file: Any, folder: str) -> tuple[int, Array | None]:
    """Rows into the file, as they are decoded by another thread; their number and weights."""
    facts, n, weights = reader.facts, 0, []
    for block in prefetched(reader.blocks):
        try:
            _put(file, np.ascontiguousarray(block.values, dtype=facts.dtype))
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            size = (n + len(block.values)) * facts.width * np.dtype(facts.dtype).itemsize
            raise OSError(
                error.errno,
                f"The disk became full while {facts.label} was read: the scratch file in {folder} had "
                f"{gigabytes(size)} by then. It is removed. Make room, or pass scratch= a folder on a larger disk",
            ) from error
        n += len(block.values)
        if block.weight is not None:
            weights.append(block.weight)
    return n, np.concatenate(weights) if weights else None


def _put(file: Any, values: Array) -> None:
    left = values.reshape(-1).view(np.uint8).data if values.size else memoryview(b"")
    while left:  # a raw file may take a part only
        left = left[file.write(left) :]


def _map(file: Any, n: int, facts: Facts) -> Array:
    file.flush()
    whole = mmap.mmap(file.fileno(), n * facts.width * np.dtype(facts.dtype).itemsize, access=mmap.ACCESS_READ)
    return np.frombuffer(whole, dtype=facts.dtype).reshape(n, facts.width)


def scratch_folder() -> str:
    """Where large files go that nobody keeps: what the environment says, else not the folder that may be memory."""
    said = any(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    large = "/var/tmp"  # /tmp is in memory on many machines
    return large if not said and os.path.isdir(large) and os.access(large, os.W_OK) else tempfile.gettempdir()


def _announce(facts: Facts, folder: str) -> None:
    """Say how large the scratch file will be, and stop if there is no room for it."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise OSError(error.errno, f"There is no folder {folder} for a scratch file. Pass another scratch=") from error
    if facts.rows is None:
        _LOGGER.info("%s is read once into a scratch file in %s (%s free)", facts.label, folder, gigabytes(free))
        return
    size = facts.rows * facts.width * np.dtype(facts.dtype).itemsize
    about = "" if facts.exact else "about "
    if size > free:
        raise OSError(
            errno.ENOSPC,
            f"{facts.label} needs {about}{gigabytes(size)} for a scratch file, and {folder} has {gigabytes(free)}. "
            "Make room, pass scratch= a folder on a larger disk, or read fewer columns=",
        )
    _LOGGER.info(
        "%s is read once into a scratch file of %s%s in %s (%s free)",
        *(facts.label, about, gigabytes(size), folder, gigabytes(free)),
    )


def gigabytes(size: float) -> str:
    """A size in words."""
    return f"{size / 1e9:.3g} GB" if size >= 1e8 else f"{size / 1e6:.3g} MB"


def prefetched(make: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    """What ``make`` gives, with one thread that works on the next one meanwhile; three at most are held."""
    ready: queue.Queue[tuple[Any, BaseException | None, bool]] = queue.Queue(1)
    stop = threading.Event()

    def put(*item: Any) -> None:
        while not stop.is_set():
            try:
                return ready.put(item, timeout=_PATIENCE)
            except queue.Full:
                continue

    def work() -> None:
        try:
            for item in make():
                put(item, None, False)
                del item
                if stop.is_set():
                    return
            put(None, None, True)
        except BaseException as error:
            put(None, error, True)

    thread = threading.Thread(target=work, name="kfree-read", daemon=True)
    thread.start()
    try:
        while True:
            item, error, last = ready.get()
            if error is not None:
                raise error
            if last:
                return
            yield item
            del item
    finally:
        stop.set()
        thread.join()
