"""Axes of drawings: where values come to lie, ticks at round numbers, words beside them."""

from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.reports.svg import element, text
from kfree.reports.wording import tick


class Frame(NamedTuple):
    """A rectangle of a drawing and the values of its sides."""

    x: tuple[float, float]  # least and largest value
    y: tuple[float, float]
    width: float = 640.0
    height: float = 300.0
    left: float = 68.0
    top: float = 34.0
    right: float = 12.0
    bottom: float = 46.0

    def across(self, values: Any) -> Array:
        """Where values are, from the left."""
        return self.left + _share(values, *self.x) * (self.width - self.left - self.right)

    def down(self, values: Any) -> Array:
        """Where values are, from the top."""
        return self.height - self.bottom - _share(values, *self.y) * (self.height - self.top - self.bottom)

    def axes(self, names: tuple[str, str], ticks: tuple[Array | None, Array | None]) -> list[str]:
        """Names, and fine lines at the ticks; None for an axis whose values mean nothing."""
        low, high = self.height - self.bottom, self.top
        end = self.width - self.right
        parts = []
        for value in ticks[0] if ticks[0] is not None else ():
            at = float(self.across(value))
            parts.append(element("line", x1=at, x2=at, y1=low, y2=high, class_="grid"))
            parts.append(text(tick(value), x=at, y=low + 16, text_anchor="middle"))
        for value in ticks[1] if ticks[1] is not None else ():
            at = float(self.down(value))
            parts.append(element("line", x1=self.left, x2=end, y1=at, y2=at, class_="grid"))
            parts.append(text(tick(value), x=self.left - 7, y=at + 4, text_anchor="end"))
        if names[0]:
            parts.append(text(f"{names[0]} →", x=end, y=self.height - 6, text_anchor="end", class_="axis"))
        if names[1]:
            parts.append(text(f"↑ {names[1]}", x=0, y=16, class_="axis"))
        return parts


def around(values: Any, margin: float = 0.05) -> tuple[float, float]:
    """Least and largest value, with some room."""
    low, high = float(np.min(values)), float(np.max(values))
    room = margin * (high - low) or abs(high) * margin or 1.0
    return low - room, high + room


def round_ticks(low: float, high: float, most: int = 5) -> Array:
    """At most so many round numbers from ``low`` to ``high``."""
    wide = high - low
    if not np.isfinite(wide) or wide <= 0:
        return np.empty(0)
    rough = wide / most
    scale = 10.0 ** np.floor(np.log10(rough))
    step = next(s * scale for s in (1, 2, 5, 10) if s * scale >= rough * (1 - 1e-9))
    ticks = np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
    return np.round(ticks / step) * step


def _share(values: Any, low: float, high: float) -> Array:
    """Places between two values, 0 to 1; halves where they are one."""
    values = np.asarray(values, dtype=np.float64)
    return (values - low) / (high - low) if high > low else np.full(values.shape, 0.5)
