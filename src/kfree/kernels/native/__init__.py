"""Compiled kernels (C++, folder ``native`` of the sources). The reference says what each computes.

They are compiled once for each set of instructions; the widest that the machine runs is taken. ``KFREE_LEVEL`` asks
for another by its name or place in ``LEVELS``.
"""

import os
import sys
from importlib import import_module
from importlib.util import find_spec

#: Sets of instructions, narrowest first. On arm the baseline has NEON.
LEVELS = ("baseline", "avx2", "avx512")


def usable() -> list[str]:
    """Levels that are built and that this machine runs, narrowest first."""
    return [
        level for level in LEVELS[: import_module(f"{__name__}._cpu").level() + 1] if _built(f"{__name__}._{level}")
    ]


def _built(name: str) -> bool:
    # an interrupted import may leave a module that works but has no spec, of which ``find_spec`` will not hear
    return name in sys.modules or find_spec(name) is not None


def _choose() -> str:
    asked, found = os.environ.get("KFREE_LEVEL"), usable()
    if not found:
        raise ImportError(
            "kfree was built for instructions that this machine does not have. Install it on this machine."
        )
    if asked is None:
        return found[-1]
    level = LEVELS[int(asked)] if asked in map(str, range(len(LEVELS))) else asked
    if level not in found:
        raise ValueError(f"KFREE_LEVEL={asked!r} is not to be had here. Set it to one of {', '.join(found)}.")
    return level


LEVEL = _choose()
_module = import_module(f"{__name__}._{LEVEL}")
globals().update({name: kernel for name, kernel in vars(_module).items() if not name.startswith("_")})
__all__ = sorted(name for name in vars(_module) if not name.startswith("_"))
