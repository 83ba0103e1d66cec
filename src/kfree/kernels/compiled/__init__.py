"""Compiled kernels (numba). The reference says what each computes, the registry what they are called."""

from kfree.kernels.registry import NAMES, finder

__all__ = NAMES
__getattr__ = finder(__name__, globals())
