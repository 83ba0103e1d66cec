"""Reference kernels: numpy only, written to be read. The compiled twins must agree with them."""

from importlib import import_module
from typing import Any

from kfree.kernels.registry import HOME, NAMES

__all__ = NAMES


def __getattr__(name: str) -> Any:
    """A file is imported when a kernel in it is first asked for, as all of them together take a tenth of a second."""
    if name not in HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{HOME[name]}"), name)
    globals()[name] = found  # found at once from now on
    return found
