"""Reference kernels: numpy only, written to be read. The compiled twins must agree with them."""

from kfree.kernels.registry import NAMES, finder

__all__ = NAMES
__getattr__ = finder(__name__, globals())
