"""The tree over the number of clusters: one line of bars for each stop, and bands of what goes from one to the next."""

from typing import NamedTuple

import numpy as np

from kfree.families import Array
from kfree.reports.stops import Stops
from kfree.reports.svg import Picture, Table, element, shade, svg, text
from kfree.reports.wording import number, percent

_WIDTH, _LEFT, _BAR, _BAND = 640.0, 34.0, 10.0, 12.0
#: Room between bars, for all of them, as a share of the width; bands below this share of all are not drawn.
_GAPS, _LEAST = 0.12, 0.004


class Line(NamedTuple):
    """The bars of a stop."""

    left: Array  # (K,)
    width: Array  # (K,)
    order: Array  # (K,) from left to right


def tree_of(stops: Stops) -> Picture:
    """The tree of all stops."""
    lines = _lines(stops)
    height = len(lines) * (_BAR + _BAND) - _BAND + 4
    parts = [_bands(stops, lines, i) for i in range(1, len(lines))]
    parts += [_row(stops, lines[i], i) for i in range(len(lines))]
    fewest, most = (number(stop.n_clusters) for stop in (stops.stops[0], stops.stops[-1]))
    title = f"How {stops.noun}s part as there are more of them, from {fewest} to {most}"
    rows = tuple(
        (number(stop.n_clusters), stop.price, ", ".join(percent(s) for s in _largest(stop.sizes)))
        for stop in stops.stops
    )
    table = Table((f"{stops.noun}s", "price", "shares of the largest"), rows)
    note = f"Each line is one number of {stops.noun}s; a bar is as wide as its {stops.noun} is large."
    return Picture(title, svg(_WIDTH, height, title, parts, class_="tree"), table, note)


def _largest(sizes: Array) -> Array:
    return np.sort(sizes)[::-1][:6] / sizes.sum()


def _lines(stops: Stops) -> list[Line]:
    """Bars of each stop, below those that they come from."""
    most, room = stops.stops[-1].n_clusters, _WIDTH - _LEFT
    gap = room * min(_GAPS / max(most - 1, 1), 0.01)
    unit = (room - gap * (most - 1)) / stops.weight.sum()
    lines: list[Line] = []
    for i, stop in enumerate(stops.stops):
        if i:
            shared, above = stops.shared(i - 1, i), lines[-1]
            middle = above.left + above.width / 2
            order = np.lexsort(
                (middle @ shared / np.maximum(shared.sum(axis=0), 1e-300), middle[shared.argmax(axis=0)])
            )
        else:
            order = np.arange(stop.n_clusters)
        width = unit * stop.sizes
        left = np.empty(width.size)
        total = width.sum() + gap * (width.size - 1)
        left[order] = _LEFT + (room - total) / 2 + np.cumsum(width[order] + gap) - width[order] - gap
        lines.append(Line(left, width, order))
    return lines


def _bands(stops: Stops, lines: list[Line], i: int) -> str:
    """What goes to a stop from the one before."""
    shared, above, below = stops.shared(i - 1, i), lines[i - 1], lines[i]
    total, stop = shared.sum(), stops.stops[i]
    start, end = above.left.copy(), below.left.copy()
    found: dict[str, str] = {}
    unit = above.width.sum() / total
    top, bottom = _top(i - 1) + _BAR, _top(i)
    for a in above.order:
        for b in below.order:
            width = unit * shared[a, b]
            if shared[a, b] >= _LEAST * total:
                kind = shade(stop.shade[b])
                path = f"M{start[a]:.0f} {top:.0f}h{width:.1f}L{end[b] + width:.0f} {bottom:.0f}h-{width:.1f}z"
                found[kind] = found.get(kind, "") + path
            start[a] += width
            end[b] += width
    paths = [element("path", d=path, class_=kind) for kind, path in found.items()]
    return element("g", "".join(paths) or " ", class_="bands")


def _row(stops: Stops, line: Line, i: int) -> str:
    """The bars of a stop, and its number."""
    stop, y, wide = stops.stops[i], _top(i), np.maximum(line.width, 0.4)
    parts = [element("rect", x=0, y=y - 5, width=_WIDTH, height=_BAR + 10, class_="reach")]
    parts.append(text(stop.n_clusters, x=_LEFT - 8, y=y + _BAR - 1, text_anchor="end"))
    parts += [
        element("path", d=f"M{line.left[k]:.1f} {y:.0f}h{wide[k]:.1f}v{_BAR:.0f}h-{wide[k]:.1f}z", class_=shade(s))
        for k, s in enumerate(stop.shade)
    ]
    return element("g", "".join(parts), class_="stop now" if i == stops.chosen else "stop", data_stop=str(i))


def _top(i: int) -> float:
    """Where a line begins."""
    return 2 + i * (_BAR + _BAND)
