"""What commands write: whole or not at all, and over nothing that is there unless the user says so."""

import csv
import errno
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from kfree.cli.talk import Problem
from kfree.files.whole import part_beside


class Columns(NamedTuple):
    """A table to write."""

    names: list[str]
    values: Sequence[Sequence[Any]]  # one for each name, equally long


def check_free(folder: Path, files: Sequence[str], force: bool) -> None:
    """Nothing is in the way, before hours are spent on what could not be written."""
    if folder.exists() and not folder.is_dir():
        raise Problem(f"{folder} is a file, and a folder of that name is to be written. Pass --out with another name.")
    there = [name for name in files if (folder / name).exists()]
    if there and not force:
        raise Problem(f"{folder / there[0]} is already there. Pass --force to replace it, or --out with another name.")
    if not folder.absolute().parent.is_dir():
        raise Problem(f"There is no folder {folder.absolute().parent} to make {folder.name} in. Make it first.")


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder beside the one that is wanted, whose place it takes at the end."""
    with _part(folder) as part:
        yield part
        _move(part, folder)


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A file that takes the place of the one that is wanted at the end."""
    with _part(path) as part:
        yield part / path.name
        os.replace(part / path.name, path)


@contextmanager
def _part(path: Path) -> Iterator[Path]:
    """A folder for what is not complete, which goes whatever happens."""
    with ExitStack() as stack:
        try:
            part = stack.enter_context(part_beside(path))
        except PermissionError:
            raise Problem(
                f"{path.absolute().parent} cannot be written to. Pass --out with a place elsewhere."
            ) from None
        try:
            yield part
        except OSError as error:
            raise _told(error, path) from error


def _move(part: Path, folder: Path) -> None:
    if not folder.exists():
        os.chmod(part, 0o777 & ~_umask())  # mkdtemp's folders are for their owner only
        os.rename(part, folder)
        return
    for path in sorted(part.iterdir()):
        os.replace(path, folder / path.name)


def _told(error: OSError, path: Path) -> BaseException:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return Problem(
            f"There is no room for {path}: {error.strerror}. Nothing was written; pass --out with another disk."
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Problem(f"{path} cannot be written to: {error.strerror}. Pass --out with a place elsewhere.")
    return error


def _umask() -> int:
    """What new files of this process may not be."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_table(path: Path, columns: Columns) -> None:
    """A CSV or Parquet file, by its ending."""
    if path.suffix == ".parquet":
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.table(dict(zip(columns.names, map(list, columns.values)))), path)
        return
    with open(path, "w", newline="", encoding="utf-8") as file:
        _write_csv(file, columns)


def print_table(columns: Columns) -> None:
    """CSV on stdout."""
    text = io.StringIO(newline="")
    _write_csv(text, columns)
    print_text(text.getvalue())


def print_text(text: str) -> None:
    """Text on stdout, all of it or an error."""
    left = memoryview(text.encode())
    try:
        while left:  # an unbuffered stdout may take a part only
            left = left[sys.stdout.buffer.write(left) :]
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains once more when it ends
        why = "was closed" if isinstance(error, BrokenPipeError) else f"cannot be written to ({error.strerror})"
        raise Problem(f"stdout {why} before everything was written. Pass --out to write files.") from error


def _write_csv(file: Any, columns: Columns) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns.names)
    writer.writerows(zip(*columns.values))
