"""Where compiled kernels are kept for the next process.

numba's own cache knows a kernel by the one file it is written in: after a helper in another file has changed, its
callers run the old machine code. Here all kernels are kept in one folder, named by a hash of every file of code
under ``kernels``, the versions of all that takes part in compiling and numba's settings: what was made of other files
is never looked at. A kernel with the types of its arguments is one file, put in place as a whole and read only if its
checksum is right: processes need not know of each other, and what is broken is compiled anew.
"""

import hashlib
import os
import pickle
import shutil
import stat
import sys
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import serialize
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher

from kfree.kernels import files
from kfree.kernels.undisturbed import undisturbed

_NAME = "kfree-kernels"
# Folders made of other files are removed if not used for so many seconds, or if there are so many newer ones.
_OLD, _MANY = 30 * 86400, 50
# Settings of numba that change what it makes of a kernel.
_SETTINGS = ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE")
# Bytes that must be free before a kernel is loaded or compiled.
_ROOM = 64 * 2**20
_CHECKSUM = hashlib.sha256().digest_size


def njit(*, cache: bool, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit``, but what it compiles is kept in a folder of ours."""

    def decorate(function: Callable[..., Any]) -> Any:
        kernel: Any = numba.njit(**options)(function)
        place = folder() if cache and _as_at_start(function.__module__) else None
        # NUMBA_DISABLE_JIT leaves functions as they are; what a closure holds is not part of any name
        compiles = isinstance(kernel, Dispatcher) and function.__closure__ is None
        if place is not None and compiles:
            kernel._cache = KernelCache(function, options, place)
        if isinstance(kernel, Dispatcher):
            kernel._compile_for_args = partial(_compile_for_args, kernel)  # type: ignore[attr-defined]
        return kernel

    return decorate


def _compile_for_args(kernel: Any, *args: Any) -> Any:
    """What numba calls for types that it has not seen: load or compile a kernel."""
    np.empty(_ROOM, np.uint8)  # a MemoryError now, as LLVM ends the process if it gets no memory
    return undisturbed(partial(type(kernel)._compile_for_args, kernel, *args))


class KernelCache(NullCache):
    """The compiled forms of one kernel, as numba asks for them. Nothing that goes wrong here may stop a fit."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any], place: Path):
        self._place, self._name = place, f"{function.__module__.removeprefix('kfree.kernels.')}.{function.__qualname__}"
        chosen = sorted((name, sorted(v) if isinstance(v, set) else v) for name, v in options.items())
        self._kernel = (self._name, function.__code__.co_firstlineno, chosen)

    @property
    def cache_path(self) -> str:
        """The folder; part of ``stats`` of a kernel."""
        return str(self._place)

    def _path(self, signature: Any, codegen: Any) -> Path:
        """The file for some types of arguments on a kind of processor."""
        what = repr((self._kernel, signature, codegen.magic_tuple()))
        return self._place / f"{self._name}-{hashlib.sha256(what.encode()).hexdigest()[:16]}.nbc"

    def load_overload(self, sig: Any, target_context: Any) -> CompileResult | None:
        """What was compiled for a signature; None if there is nothing, or nothing whole."""
        target_context.refresh()
        try:
            content = self._path(sig, target_context.codegen()).read_bytes()
            if hashlib.sha256(content[_CHECKSUM:]).digest() != content[:_CHECKSUM]:
                return None
            signature, parts = pickle.loads(content[_CHECKSUM:])
            return CompileResult._rebuild(target_context, *parts) if signature == sig else None
        except Exception:
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled for a signature."""
        if data.library.has_dynamic_globals or data.lifted:
            return
        try:
            if files.snapshot() != files.AT_START or fingerprint() != self._place.name:
                return  # files were replaced after this process had begun to read them
            content = serialize.dumps((sig, data._reduce()))
            _write(self._path(sig, data.codegen), hashlib.sha256(content).digest() + content)
        except Exception:
            return


def _write(path: Path, content: bytes) -> None:
    """A file that is there as a whole or not at all."""
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def fingerprint() -> str:
    """A name for all that the machine code depends on; empty if the files cannot be read (as in an archive)."""
    digest, count = hashlib.sha256(), 0
    for path in files.code_files():
        with open(path, "rb") as file:
            content = file.read()
        digest.update(os.fsencode(os.path.relpath(path, files.SOURCE)) + f" {len(content)} ".encode() + content)
        count += 1
    version = sys.modules["kfree"].__version__
    settings = [(name, getattr(numba.config, name, None)) for name in _SETTINGS]
    versions = (version, sys.version, numba.__version__, llvmlite.__version__, np.__version__)
    digest.update(repr((versions, settings)).encode())
    return f"{version}-{digest.hexdigest()[:16]}" if count else ""


@cache
def _as_at_start(module: str) -> bool:
    """Whether the files are those that this process began with, when a module of kernels is read."""
    return files.snapshot() == files.AT_START


@cache
def folder() -> Path | None:
    """The folder of this process, None if there is nowhere to keep anything."""
    try:
        name = fingerprint()
    except OSError:
        name = ""
    if not name:
        warnings.warn(
            "The files of the kernels cannot be read (an archive, or a broken link), so every process compiles what it "
            "uses anew. Install kfree as a folder.",
            stacklevel=2,
        )
        return None
    for parent in _parents():
        if _writable(parent / name):
            _remove_old(parent, name)
            return parent / name
    warnings.warn(
        "There is no folder in which compiled code can be kept, so every process compiles what it uses anew. "
        "Set NUMBA_CACHE_DIR to a folder that can be written to.",
        stacklevel=2,
    )
    return None


def _parents() -> Iterator[Path]:
    """Where the folder may be, best first."""
    chosen = getattr(numba.config, "CACHE_DIR", "")
    if chosen:
        yield Path(os.path.abspath(chosen)) / _NAME
    yield Path(files.SOURCE) / "__pycache__" / _NAME
    yield from (Path(path) / _NAME for path in _user_caches() if os.path.isabs(path))
    temporary = _temporary()
    if temporary is not None:
        yield temporary


def _user_caches() -> Iterator[str]:
    """The user's folders for caches: chosen ones, and where the system has them."""
    yield os.environ.get("XDG_CACHE_HOME", "")
    if os.name == "nt":
        yield os.environ.get("LOCALAPPDATA", "")
    else:
        yield os.path.expanduser("~/Library/Caches" if sys.platform == "darwin" else "~/.cache")


def _temporary() -> Path | None:
    """A temporary folder that is the user's alone, as code is read from it: None if another made it or may write."""
    try:
        parent = tempfile.gettempdir()
        if not hasattr(os, "getuid"):  # Windows, where it is the user's own anyway
            return Path(parent) / _NAME
        path = Path(parent) / f"{_NAME}-{os.getuid()}"
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError:
        return None
    mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return path if mine else None


def _writable(path: Path) -> bool:
    """Make a folder, mark it as used, and try to write in it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        os.utime(path)
        probe = path / uuid.uuid4().hex
        probe.touch()
        probe.unlink()
    except OSError:
        return False
    return True


def _remove_old(parent: Path, name: str) -> None:
    """Remove folders that nobody uses any more. A process that does after all compiles anew."""
    try:
        others = [(path.stat().st_mtime, path) for path in parent.iterdir() if path.name != name]
    except OSError:
        return
    for place, (used, path) in enumerate(sorted(others, reverse=True), 1):
        if used < time.time() - _OLD or place > _MANY:
            shutil.rmtree(path, ignore_errors=True)
