"""Files that are written whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def part_beside(path: Path) -> Iterator[Path]:
    """A folder beside ``path`` for what is not complete, which goes whatever happens."""
    part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.absolute().parent))
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A file that takes the place of the one that is wanted at the end."""
    with part_beside(path) as part:
        yield part / path.name
        os.replace(part / path.name, path)
