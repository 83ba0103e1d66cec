"""Loops over rows: arrays in, arrays out. They know no family.

``compiled`` holds the fast ones (numba, no GIL, kept on disk by ``compiled/cache.py``), ``reference`` their obviously
right numpy twins with the same names and arguments. ``KFREE_KERNELS=reference`` runs everything without numba, and so
does ``NUMBA_DISABLE_JIT=1``, under which there is nothing compiled.
The choice is made when a kernel is first used, so that importing kfree does not import numba.
"""

import os
from functools import cache
from importlib import import_module
from types import ModuleType

import numpy as np

from kfree.kernels import files  # noqa: F401 - first of all: it notes the files before any other is read
from kfree.kernels.undisturbed import undisturbed

CHOICES = ("compiled", "reference")
# Bytes of addresses that numba and LLVM take.
_ROOM = 384 * 2**20


@cache
def kernels() -> ModuleType:
    """The module that holds the kernels in force."""
    plain = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
    choice = os.environ.get("KFREE_KERNELS", "reference" if plain else "compiled")
    if choice not in CHOICES:
        raise ValueError(f"KFREE_KERNELS={choice!r} is not known. Set it to 'compiled' or 'reference'.")
    if choice == "compiled":
        np.empty(_ROOM, np.uint8)  # a MemoryError now, as libraries that find no room say all kinds of things
    return undisturbed(lambda: import_module(f"kfree.kernels.{choice}"))
