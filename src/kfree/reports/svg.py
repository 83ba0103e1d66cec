"""Drawings: elements of SVG as text that is safe to stand in a page."""

from html import escape
from typing import Any, NamedTuple

#: Colours of the palette before it repeats.
SHADES = 60


class Markup(str):
    """Text that is markup already: templates do not escape it."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


class Table(NamedTuple):
    """The figures of a picture."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Picture(NamedTuple):
    """A drawing with what it says, for those who read it and those who cannot see it."""

    caption: str  # what is to be seen
    drawing: Markup
    table: Table
    note: str = ""  # how it was made


def element(name: str, content: str = "", **attributes: Any) -> str:
    """An element; ``content`` is markup, attributes are escaped and their underscores are dashes."""
    text = "".join(f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items())
    return f"<{name}{text}>{content}</{name}>" if content else f"<{name}{text}/>"


def text(content: Any, **attributes: Any) -> str:
    """Words in a drawing."""
    return element("text", escape(str(content)) or " ", **attributes)


def svg(width: float, height: float, title: str, parts: list[str], **attributes: Any) -> Markup:
    """A drawing that scales with the page and has a name."""
    inside = element("title", escape(title)) + "".join(parts)
    box = f"0 0 {_value(width)} {_value(height)}"
    return Markup(element("svg", inside, viewBox=box, role="img", **attributes))


def polyline(xs: Any, ys: Any) -> str:
    """Points of a line or an area as an attribute."""
    return " ".join(f"{_value(x)},{_value(y)}" for x, y in zip(xs, ys))


def _value(value: Any) -> str:
    """Numbers to a tenth, which no eye tells apart; words escaped."""
    if isinstance(value, str):
        return escape(value)
    shown = f"{float(value):.1f}"
    return shown.removesuffix(".0")


def shade(k: int) -> str:
    """The class of things in the k-th colour."""
    return f"c{int(k) % SHADES}"
