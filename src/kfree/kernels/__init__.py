"""Loops over rows: arrays in, arrays out. They know no family.

``native`` holds the compiled ones (C++, without the GIL), ``reference`` their obviously right numpy twins with the
same names and arguments. ``KFREE_KERNELS=reference`` runs everything without compiled code.
The choice is made when a kernel is first used, so that importing kfree costs nothing.
"""

import os
import warnings
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np

CHOICES = ("native", "reference")
# Bytes that must be free when the first kernel is asked for: BLAS ends the process where it finds no room for buffers.
_ROOM = 128 * 2**20


@cache
def kernels() -> ModuleType:
    """The module that holds the kernels in force."""
    built = any(Path(__file__).parent.glob("native/_cpu*"))
    choice = os.environ.get("KFREE_KERNELS", "native" if built else "reference")
    if choice not in CHOICES:
        raise ValueError(f"KFREE_KERNELS={choice!r} is not known. Set it to 'native' or 'reference'.")
    if not built and "KFREE_KERNELS" not in os.environ:
        warnings.warn(
            "kfree was installed without its compiled kernels: fits are right, but about ten times slower. Install "
            "kfree again where there is a C++ compiler, or set KFREE_KERNELS=reference to hide this warning.",
            stacklevel=2,
        )
    if choice == "native" and not built:
        raise ImportError("KFREE_KERNELS='native' asks for compiled kernels, but kfree was installed without them.")
    np.empty(_ROOM, np.uint8)  # a MemoryError now, which can be told and caught
    return import_module(f"kfree.kernels.{choice}")


def kernels_in_force() -> str:
    """Which kernels these are, in words."""
    module = kernels()
    return f"native, {module.LEVEL}" if hasattr(module, "LEVEL") else "reference (not compiled)"
