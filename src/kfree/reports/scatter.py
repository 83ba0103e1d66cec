"""The map: some rows, or topics, as points in a plane."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kfree.families import Array
from kfree.reports.contours import contour
from kfree.reports.frame import Frame, around, round_ticks
from kfree.reports.svg import Markup, element, polyline, shade, svg, text

#: Numbers of clusters are written into the map up to so many.
NUMBERED = 60
#: Room around the points, as a share of their width.
_ROOM = 0.09
#: Points to a side of the grid on which a density is looked at, and the shares of it that lines enclose.
_GRID, _ENCLOSED = 80, (0.5, 0.8, 0.95)
#: Logs of a density below this are as good as nothing.
_LOWEST = -60.0


class Plane(NamedTuple):
    """Where points lie."""

    xy: Array  # (m, 2)
    axes: tuple[str, str]  # what is to the right, and what is up
    units: tuple[bool, bool]  # whether the numbers of an axis mean something to users
    radius: Array  # (m,) of the points, in pixels
    each: bool = False  # whether every point is numbered, not only the middle of each cluster


def frame_of(plane: Plane) -> Frame:
    """Room for all points, as high as they need it."""
    x, y = around(plane.xy[:, 0], _ROOM), around(plane.xy[:, 1], _ROOM)
    if any(plane.units):
        return Frame(x, y, height=460.0)
    tall = np.clip((y[1] - y[0]) / (x[1] - x[0]), 0.5, 0.85)  # distances are those of the plane, as far as possible
    unit = max((y[1] - y[0]) / tall, x[1] - x[0])
    middle = (sum(x) / 2, sum(y) / 2)
    x, y = ((m - s / 2, m + s / 2) for m, s in zip(middle, (unit, unit * tall)))
    return Frame(x, y, height=620.0 * tall + 62, left=8.0, bottom=28.0)


def draw_map(plane: Plane, labels: Array, shades: Array, title: str, under: list[str]) -> Markup:
    """Points in the colours of their clusters, which have numbers; ``under`` lies below."""
    frame = frame_of(plane)
    ticks = (round_ticks(*frame.x) if plane.units[0] else None, round_ticks(*frame.y) if plane.units[1] else None)
    x, y = frame.across(plane.xy[:, 0]), frame.down(plane.xy[:, 1])
    points = [
        element("circle", cx=x[i], cy=y[i], r=plane.radius[i], class_=shade(shades[labels[i]]))
        for i in range(labels.size)
    ]
    groups = [np.array([i]) for i in range(labels.size)] if plane.each else [labels == k for k in np.unique(labels)]
    numbers = [
        text(labels[some][0], x=x[some].mean(), y=y[some].mean() + 5, text_anchor="middle")
        for some in (groups if len(groups) <= NUMBERED else ())
    ]
    parts = [*frame.axes(plane.axes, ticks), *under, element("g", "".join(points), class_="points")]
    each = {"data_each": "yes"} if plane.each else {}
    parts.append(element("g", "".join(numbers) or " ", class_="numbers", **each))
    return svg(frame.width, frame.height, title, parts, class_="map")


def density_lines(frame: Frame, log_density: Callable[[Array], Any]) -> list[str]:
    """Lines that enclose shares of a density of the plane; ``log_density`` takes places (m, 2)."""
    xs, ys = np.linspace(*frame.x, _GRID), np.linspace(*frame.y, _GRID)
    logs = np.asarray(log_density(np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2))).reshape(_GRID, _GRID)
    if not np.isfinite(logs.max()):
        return []
    heights = np.maximum(logs - logs.max(), _LOWEST)
    falling = np.sort(heights, axis=None)[::-1]
    inside = np.cumsum(np.exp(falling)) / np.exp(falling).sum()
    parts = []
    for share in _ENCLOSED:
        level = float(falling[min(int(np.searchsorted(inside, share)), falling.size - 1)])
        for line in contour(heights, level):
            places = np.array(line) / (_GRID - 1)
            x = frame.across(frame.x[0] + places[:, 0] * (frame.x[1] - frame.x[0]))
            y = frame.down(frame.y[0] + places[:, 1] * (frame.y[1] - frame.y[0]))
            parts.append(element("polyline", points=polyline(x, y), class_="contour"))
    return parts
