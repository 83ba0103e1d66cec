"""Names beside what they are names of, none over another."""

from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from kfree.displays.drawing import (
    cut,
    fold,
    font_points,
    ground,
    height_of,
    ink,
    line_height,
    small_font,
    width_of,
)
from kfree.families import Array

#: How far from its place room is looked for, in heights of the text: for a name, and for its short form; directions.
_NEAR, _FAR, _DIRECTIONS = 3, 10, 16
#: A name moves so many rings for each share of the points that it no longer hides.
_HIDDEN = 40.0
_NONE = np.empty((0, 2))
#: Share of the axes that names beside and below it may take.
_SHARE = 0.3
#: From a name to its frame, as a share of the size of its font; and free room around that, in points.
_PAD, _ROOM = 0.25, 1.5


def place_names(
    ax: Any, places: Array, names: list[str], short: list[str], shades: list[str], points: Array = _NONE
) -> tuple[list[Any], list[Any]]:
    """Names at places (K, 2) of the data, moved to where there is room, with a thin line back to their place.

    Names never hide others, and few of the ``points`` (n, 2) if there is room beside them. The first take the best
    room. A name without room becomes its short form, and one without room even then is not shown. Gives the texts and
    the lines.
    """
    ax.figure.draw_without_rendering()  # what is where is known after a drawing only
    texts, lines, size = [], [], small_font(ax)
    inside, taken, points = ax.get_window_extent(), np.empty((0, 4)), ax.transData.transform(points)
    rings = 2 * _NEAR if len(points) else _NEAR
    for place, name, number, shade in zip(np.asarray(places, dtype=np.float64), names, short, shades):
        frame = {"boxstyle": f"round,pad={_PAD}", "fc": ground(ax), "ec": shade, "lw": 1.2, "alpha": 0.8}
        text = ax.text(*place, name, ha="center", va="center", fontsize=size, color=ink(ax), bbox=frame, zorder=6)
        home = ax.transData.transform(place)
        box = _find_room(_boxes(text, home, inside, rings), taken, points)
        if box is None:
            text.set_text(number)
            box = _find_room(_boxes(text, home, inside, _FAR), taken, points)
        text.set_visible(box is not None)
        texts.append(text)
        if box is None:
            continue
        taken = np.vstack([taken, box])
        middle = (box[:2] + box[2:]) / 2
        text.set_position(ax.transData.inverted().transform(middle))
        if np.abs(middle - home).max() > text.get_window_extent().height:
            ends = np.array([place, ax.transData.inverted().transform(middle)])
            lines += ax.plot(*ends.T, color=shade, lw=1.2, alpha=0.85, zorder=5, scalex=False, scaley=False)
    return texts, lines


def _boxes(text: Any, home: Array, inside: Any, rings: int) -> Array:
    """Rectangles (m, 4), x0, y0, x1, y1 in dots, around a place for a text, the nearest first."""
    extent, room = text.get_window_extent(), (_ROOM + _PAD * font_points(text.get_size())) * text.figure.dpi / 72
    half = np.array([extent.width, extent.height]) / 2 + room
    low, high = np.array([inside.x0, inside.y0]) + half, np.array([inside.x1, inside.y1]) - half
    if (low > high).any():
        return np.empty((0, 4))
    angles = np.arange(_DIRECTIONS) * 2 * np.pi / _DIRECTIONS + np.pi / 2
    ring = np.stack([1.6 * np.cos(angles), np.sin(angles)], axis=1)
    steps = np.arange(1, rings + 1)[:, None, None] * extent.height * ring
    middles = np.clip(home + np.vstack([np.zeros((1, 2)), steps.reshape(-1, 2)]), low, high)
    return np.hstack([middles - half, middles + half])


def _find_room(boxes: Array, taken: Array, points: Array) -> Array | None:
    """The first of the rectangles that are free, or a later one that hides fewer points; None if none is free."""
    apart = (boxes[:, None, :2] >= taken[None, :, 2:]) | (boxes[:, None, 2:] <= taken[None, :, :2])
    free = boxes[np.all(apart.any(axis=2), axis=1)]
    if not len(free):
        return None
    hidden = (points > free[:, None, :2]) & (points < free[:, None, 2:])
    share = hidden.all(axis=2).sum(axis=1) / max(len(points), 1)
    return free[np.argmin(np.arange(len(free)) / _DIRECTIONS + _HIDDEN * share)]


def label_columns(ax: Any, names: list[str]) -> None:
    """Names below the columns 0, 1, 2, ... of a picture: level, slanting or upright, as many as there is room for."""
    ax.figure.draw_without_rendering()  # the room that names beside it take is known after a drawing only
    size, inches = small_font(ax), width_of(ax) / len(names)
    letters = max(5, int(_SHARE * height_of(ax) * 72 / (0.55 * font_points(size))))
    step = max(1, int(np.ceil(line_height(size) / inches)))
    words = [cut(name, letters) for name in names]
    level = max(map(len, words)) * 0.62 * font_points(size) / 72 < inches
    ax.set_xticks(range(0, len(names), step), words[::step], fontsize=size)
    if not level:
        upright = inches < 2 * line_height(size)
        ax.tick_params(axis="x", rotation=90 if upright else 30)
        for text in () if upright else ax.get_xticklabels():
            text.set(ha="right", rotation_mode="anchor")


def label_rows(ax: Any, names: list[str]) -> None:
    """Names beside the rows 0, 1, 2, ... of a picture, folded to what there is room for."""
    size, inches = small_font(ax), height_of(ax) / len(names)
    step = max(1, int(np.ceil(line_height(size) / inches)))
    lines = max(1, int(inches / line_height(size)))
    width = _SHARE * width_of(ax)
    letters = int(72 * width / (0.6 * font_points(size)))
    words = [fold(cut(name, min(lines, 3) * letters), width, size) for name in names]
    words = [text if text.count("\n") < lines else cut(name, letters) for text, name in zip(words, names)]
    ax.set_yticks(range(0, len(names), step), words[::step], fontsize=size)


def label_ends(lines: list[Any], names: list[str]) -> list[Any]:
    """Names to the right of lines, apart from each other; of many lines those that come first. Gives the texts."""
    ax = lines[0].axes
    ax.figure.draw_without_rendering()  # the room that names below take is known after a drawing only
    size = small_font(ax)
    low, high = ax.get_ylim()
    gap = line_height(size) / height_of(ax) * (high - low)
    lines = lines[: max(1, int((high - low) / gap))]
    places = spread(np.array([line.get_ydata()[-1] for line in lines]), gap)
    places += max(0.0, low + gap / 2 - places.min())
    places -= max(0.0, places.max() - high + gap / 2)
    letters = int(_SHARE * width_of(ax) * 72 / (0.6 * font_points(size)))
    texts = []
    for line, name, y in zip(lines, names, places):
        arrow = {"arrowstyle": "-", "color": line.get_color(), "lw": 1.0, "shrinkA": 0, "shrinkB": 0}
        end = (line.get_xdata()[-1], line.get_ydata()[-1])
        texts.append(
            ax.annotate(
                cut(name, letters),
                end,
                (1.04, (y - low) / (high - low)),
                textcoords="axes fraction",
                va="center",
                fontsize=size,
                arrowprops={**arrow, "relpos": (0, 0.5)},
                annotation_clip=False,
            )
        )
    return texts


def spread(values: Array, gap: float) -> Array:
    """The values nearest to these (in their squares) that are at least a gap apart, in the same order."""
    order = np.argsort(values, kind="stable")
    steps = gap * np.arange(len(values))
    apart = np.empty(len(values))
    apart[order] = isotonic_regression(np.asarray(values, dtype=np.float64)[order] - steps).x + steps
    return apart
