"""What all displays draw with: axes, titles that fit, colours for a light or a dark ground."""

import re
import textwrap
from typing import Any, NamedTuple

import numpy as np

from kfree.displays.palette import colours

#: Width of a letter, as a share of the size of its font.
_LETTER = 0.52
#: Height of a line of text, as a share of the size of its font.
_LINE = 1.25
#: Small axes beside each other in a new figure, at most.
_ACROSS = 4
#: Inches of the title above small axes.
_HEAD = 0.4
#: Share of the axes that points cover, about.
_COVERED = 0.06
#: Inches up to which axes are small.
_SMALL = 4.0


def pyplot() -> Any:
    """``matplotlib.pyplot``, or an error that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('Pictures need matplotlib, which is not here: pip install "kfree[plot]"') from error
    return plt


def make_axes(ax: Any, size: tuple[float, float] | None = None) -> Any:
    """The axes of the user, or new ones; ``size`` is that of their figure in inches, matplotlib's own if None."""
    plt = pyplot()
    return plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


class Panels(NamedTuple):
    """Small axes in a grid."""

    outer: Any  # the axes in whose place they stand, invisible
    head: Any  # axes for the title, above the others
    inner: list[Any]  # from left to right, then down


def make_panels(ax: Any, count: int, size: tuple[float, float]) -> Panels:
    """As many small axes of about ``size`` inches as there is room for in the user's; all of them in a new figure."""
    plt = pyplot()
    if ax is None:
        columns = min(_ACROSS, count)
        rows = -(-count // columns)
        figure = plt.figure(figsize=(max(4.5, columns * size[0]), rows * size[1] + _HEAD), layout="constrained")
        ax = figure.add_subplot()
    else:
        columns = int(np.clip(width_of(ax) / size[0] * 1.25, 1, count))
        rows = int(np.clip(height_of(ax) / size[1] * 1.1, 1, -(-count // columns)))
    ax.set_axis_off()
    spots = [(r, c) for r in range(rows) for c in range(columns)][:count]
    head = _HEAD * rows / max(height_of(ax) - _HEAD, _HEAD)  # as a share of the height of a row
    place = ax.get_subplotspec()
    if place is None:  # axes that stand anywhere: a grid in their rectangle
        row = 1 / (rows + head)
        corners = [((c + 0.35) / columns, (rows - r - 0.95) * row) for r, c in spots]
        inner = [ax.inset_axes((*corner, 0.55 / columns, 0.75 * row)) for corner in corners]
        return Panels(ax, ax.inset_axes((0, rows * row, 1, head * row)), inner)
    grid = place.subgridspec(rows + 1, columns, height_ratios=[head, *[1] * rows])
    return Panels(ax, ax.figure.add_subplot(grid[0, :]), [ax.figure.add_subplot(grid[r + 1, c]) for r, c in spots])


def set_head(panels: Panels, text: str) -> Any:
    """A title above small axes, from the left of all of them."""
    from matplotlib.transforms import blended_transform_factory

    panels.head.set_axis_off()
    folded = fold(text, width_of(panels.outer))
    place = blended_transform_factory(panels.outer.transAxes, panels.head.transAxes)
    return panels.head.text(0, 0.5, folded, va="center", fontsize="medium", transform=place)


def width_of(ax: Any) -> float:
    """Inches from the left to the right of axes, as far as it is known before they are drawn."""
    return ax.get_position().width * ax.figure.get_figwidth()


def height_of(ax: Any) -> float:
    """Inches from the bottom to the top of axes, as far as it is known before they are drawn."""
    return ax.get_position().height * ax.figure.get_figheight()


def font_points(size: str | float) -> float:
    """A font size such as "small" in points."""
    from matplotlib.font_manager import FontProperties

    return FontProperties(size=size).get_size_in_points()


def as_written(text: str) -> str:
    """Words of a user in one line, with dollar signs that are not taken for formulas."""
    return re.sub(r"(?<!\\)\$", r"\\$", re.sub(r"[\t\n\r\v\f]+", " ", text))


def fold(text: str, inches: float, size: str | float = "medium", *, whole_words: bool = False) -> str:
    """Text in lines that are not wider than so much, but for words that are to be kept whole."""
    letters = int(72 * inches / (_LETTER * font_points(size)))
    return "\n".join(textwrap.wrap(as_written(text), max(6, letters), break_long_words=not whole_words))


def cut(text: str, letters: int) -> str:
    """Text of at most so many letters; an ellipsis stands for the rest."""
    short = text if len(text) <= letters else text[: max(1, letters - 1)].rstrip("\\ ") + "…"
    return as_written(short)


def short_number(value: float) -> str:
    """Three figures, with an exponent only where there must be one: 1490, 0.0123, 2.4e+07."""
    return f"{float(f'{value:.3g}'):g}"


def line_height(size: str | float) -> float:
    """Inches of a line of text."""
    return _LINE * font_points(size) / 72


def small_font(ax: Any) -> str:
    """The size of names: smaller in small axes."""
    return "small" if width_of(ax) > _SMALL else "x-small"


def set_title(ax: Any, text: str) -> None:
    """A title on the left, in as many lines as it takes."""
    ax.set_title(fold(text, width_of(ax)), loc="left", fontsize="medium")


def tidy(ax: Any, grid: str = "both") -> None:
    """A quiet frame; ``grid`` is "x", "y", "both" or "" for none."""
    ax.spines[["top", "right"]].set_visible(False)
    if grid:
        ax.grid(True, axis=grid, alpha=0.25, lw=0.6)
        ax.set_axisbelow(True)


def point_size(ax: Any, count: int) -> float:
    """Area of a point, in the units of ``scatter``, by how many there are."""
    area = width_of(ax) * height_of(ax) * 72**2
    return float(np.clip(_COVERED * area / max(count, 1), 4, 36))


def is_dark(colour: Any) -> bool:
    """Whether text on a colour should be white."""
    from matplotlib.colors import to_rgb

    return float(np.dot(to_rgb(colour), (0.299, 0.587, 0.114))) < 0.5


def ink_on(colour: Any) -> str:
    """The colour of text on another."""
    return "#ffffff" if is_dark(colour[:3] if not isinstance(colour, str) else colour) else "#22303c"


def ground(ax: Any) -> Any:
    """The colour that things are drawn on."""
    colour = ax.get_facecolor()
    return colour if colour[3] > 0 else ax.figure.get_facecolor()


def ink(ax: Any) -> str:
    """The colour of text on the ground."""
    return ink_on(ground(ax))


def main_colour(ax: Any) -> str:
    """A blue that is seen on the ground."""
    return colours(5)[4 if is_dark(ground(ax)) else 0]


def second_colour() -> str:
    """What is marked."""
    return colours(2)[1]


def diverging(ax: Any) -> Any:
    """Colours from blue by that of the ground to orange: less, the same, more."""
    from matplotlib.colors import LinearSegmentedColormap

    ends = ("#3dbffc", "#ff9e14") if is_dark(ground(ax)) else ("#1e55a4", "#d96a00")
    return LinearSegmentedColormap.from_list("kfree_diverging", [ends[0], ground(ax), ends[1]])


def sequential(ax: Any) -> Any:
    """Colours from that of the ground to blue: none to many."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("kfree_sequential", [ground(ax), main_colour(ax)])
