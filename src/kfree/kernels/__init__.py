"""Loops over rows: arrays in, arrays out. They know no family.

``compiled`` holds the fast ones (numba, no GIL, kept on disk by ``compiled/cache.py``), ``reference`` their obviously
right numpy twins with the same names and arguments. ``KFREE_KERNELS=reference`` runs everything without numba.
The choice is made when a kernel is first used, so that importing kfree does not import numba.
"""

import os
from functools import cache
from importlib import import_module
from types import ModuleType

CHOICES = ("compiled", "reference")


@cache
def kernels() -> ModuleType:
    """The module that holds the kernels in force."""
    choice = os.environ.get("KFREE_KERNELS", "compiled")
    if choice not in CHOICES:
        raise ValueError(f"KFREE_KERNELS={choice!r} is not known. Set it to 'compiled' or 'reference'.")
    return import_module(f"kfree.kernels.{choice}")
