"""What users' words and numbers look like on a page: short, on one line, and never NaN."""

import math
import re
import unicodedata
from typing import Any

#: Characters of the name of a cluster.
NAME = 80
#: What a number that is none looks like.
NOTHING = "–"
#: Characters that are not shown: controls, halves of pairs, and those that turn the direction of what follows.
_HIDDEN = {"Cc", "Cs", "Cn", "Co"}
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_SPACES = re.compile(r"\s+")
#: Whole numbers below this are written in full.
_WHOLE = 1e9


def clean(text: Any, most: int = 60) -> str:
    """A user's words on one line, at most so many characters, without what cannot be shown."""
    words = _SPACES.sub(" ", str(text)[: 4 * most + 100]).strip()
    shown = "".join(c for c in words if c not in _TURNING and unicodedata.category(c) not in _HIDDEN)
    return shown if len(shown) <= most else shown[: most - 1].rstrip() + "…"


def number(value: Any) -> str:
    """Four digits, or a whole number in full with its thousands apart."""
    value = float(value) + 0.0  # zero has no sign
    if math.isnan(value):
        return NOTHING
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == round(value) and abs(value) < _WHOLE:
        return f"{value:,.0f}".replace(",", "\u202f").replace("-", "−")
    size = abs(value)
    text = f"{value:,.0f}" if 1e3 <= size < _WHOLE else f"{value:.4g}"
    return text.replace(",", "\u202f").replace("e+0", "e").replace("e+", "e").replace("e-0", "e-").replace("-", "−")


def tick(value: Any) -> str:
    """A number beside an axis, where there is no room for seven digits."""
    value = float(value)
    return (
        number(value) if abs(value) < 1e5 else f"{value:.3g}".replace("e+0", "e").replace("e+", "e").replace("-", "−")
    )


def percent(share: Any) -> str:
    """A share in percent."""
    share = 100 * float(share)
    if not math.isfinite(share):
        return NOTHING
    if 0 < share < 0.1:
        return "<\u00a00.1\u00a0%"
    return (f"{share:.0f}" if share >= 10 or share == round(share) else f"{share:.1f}") + "\u00a0%"


def count(n: int, thing: str) -> str:
    """``3 clusters``, ``1 cluster``."""
    return f"{number(n)} {thing}" if n == 1 else f"{number(n)} {thing}s"
