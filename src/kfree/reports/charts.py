"""Charts: how clear each number of clusters is, how probable numbers are, curves, features that come together."""

from typing import Any

import numpy as np

from kfree.families import Array
from kfree.reports.frame import Frame, around, round_ticks
from kfree.reports.svg import Picture, Table, element, polyline, svg, text
from kfree.reports.wording import count, number, percent

#: Most numbers on a curve, and most rows of a table below a picture.
_POINTS, _ROWS = 300, 60


def thinned(size: int, most: int) -> Array:
    """At most so many places out of a number of them, even and with both ends."""
    return np.unique(np.linspace(0, size - 1, min(size, most)).round().astype(np.intp))


def clearness_chart(choice: Any, found: int) -> list[Picture]:
    """How clearly rows belong to their clusters, by a ``choice_`` of DPMeans; nothing if hardly any were looked at."""
    if choice is None:
        return []
    known = np.isfinite(choice.score) & np.isfinite(choice.score_without_groups) & (choice.n_clusters > 1)
    if known.sum() < 2:
        return []
    places = np.flatnonzero(known)[thinned(int(known.sum()), _POINTS)]
    ks, here, none = choice.n_clusters[places], choice.score[places], choice.score_without_groups[places]
    wide = 2 * np.nan_to_num(choice.spread_without_groups[places])
    low, high = none - wide, none + wide
    frame = Frame(around(np.log(ks)), around([*here, *low, *high]))
    across = frame.across(np.log(ks))
    parts = frame.axes(("number of clusters", "how clearly rows belong to one"), (None, round_ticks(*frame.y)))
    parts += _numbers(frame, ks)
    band = polyline([*across, *across[::-1]], [*frame.down(high), *frame.down(low)[::-1]])
    parts.append(element("polygon", points=band, class_="band"))
    parts.append(element("polyline", points=polyline(across, frame.down(none)), class_="curve other"))
    if 1 < found <= ks[-1]:
        at = float(frame.across(np.log(found)))
        parts.append(element("line", x1=at, x2=at, y1=frame.top, y2=frame.height - frame.bottom, class_="mark"))
    parts.append(element("polyline", points=polyline(across, frame.down(here)), class_="curve"))
    parts += [element("circle", cx=x, cy=y, r=3, class_="knot") for x, y in zip(across, frame.down(here))]
    best = choice.best
    says = f"{count(best, 'cluster')} stand out from tables without groups" if best > 1 else "No number stands out"
    rows = thinned(ks.size, _ROWS)
    table = Table(
        ("clusters", "your table", "tables without groups", "their standard deviation"),
        tuple((number(ks[i]), number(here[i]), number(none[i]), number(wide[i] / 2)) for i in rows),
    )
    note = "Dark line: your table. Grey: made-up tables with columns like yours but no groups, and twice their spread."
    return [Picture(says, svg(frame.width, frame.height, says, parts), table, note)]


def _numbers(frame: Frame, ks: Array) -> list[str]:
    """Ticks at whole numbers, on a scale of logs, where there is room."""
    parts, last = [], -np.inf
    for K, at in zip(ks, frame.across(np.log(ks))):
        if at - last >= 26:
            parts.append(text(number(K), x=at, y=frame.height - frame.bottom + 16, text_anchor="middle"))
            last = at
    return parts


def bars(caption: str, xname: str, values: Array, heights: Array, note: str = "") -> Picture:
    """Probabilities of whole numbers."""
    kept = np.sort(np.argsort(-heights, kind="stable")[:_ROWS])
    values, heights = values[kept], heights[kept]
    frame = Frame((float(values.min()) - 0.6, float(values.max()) + 0.6), (0.0, float(heights.max()) * 1.08))
    wide = min(64.0, float(frame.across(values.min() + 0.84) - frame.across(values.min())))
    parts = frame.axes((xname, "probability"), (None, round_ticks(*frame.y)))
    low = frame.height - frame.bottom
    for value, height in zip(values, heights):
        x, y = float(frame.across(value)), float(frame.down(height))
        likely = "bar" if height == heights.max() else "bar other"
        parts.append(element("rect", x=x - wide / 2, y=y, width=wide, height=low - y, class_=likely))
    for tick in values[thinned(values.size, 20)]:
        parts.append(text(number(tick), x=float(frame.across(tick)), y=low + 16, text_anchor="middle"))
    table = Table((xname, "probability"), tuple((number(v), percent(h)) for v, h in zip(values, heights)))
    return Picture(caption, svg(frame.width, frame.height, caption, parts), table, note)


def curve(caption: str, names: tuple[str, str], xs: Array, ys: Array, *, note: str = "", marked: float | None = None):
    """A line through points, and a mark at one place."""
    places = thinned(xs.size, _POINTS)
    frame = Frame(around(xs), around([*ys[places], 0.0], 0.06))
    across, down = frame.across(xs[places]), frame.down(ys[places])
    parts = frame.axes(names, (round_ticks(*frame.x), round_ticks(*frame.y)))
    if marked is not None:
        at = float(frame.across(marked))
        parts.append(element("line", x1=at, x2=at, y1=frame.top, y2=frame.height - frame.bottom, class_="mark"))
    parts.append(element("polyline", points=polyline(across, down), class_="curve"))
    rows = thinned(xs.size, _ROWS)
    table = Table(names, tuple((number(xs[i]), number(ys[i])) for i in rows))
    return Picture(caption, svg(frame.width, frame.height, caption, parts), table, note)


def together(caption: str, shares: Array, names: list[str]) -> Picture:
    """A square table of shares (K, K) as shades."""
    K, side, left = len(names), min(40.0, 480.0 / len(names)), 34.0
    parts: list[Any] = []
    for i in range(K):
        parts.append(text(i, x=left - 8, y=left + (i + 0.66) * side, text_anchor="end"))
        parts.append(text(i, x=left + (i + 0.5) * side, y=left - 8, text_anchor="middle"))
        for j in range(K):
            x, y = left + j * side, left + i * side
            level = round(9 * float(shares[i, j]))
            parts.append(element("rect", x=x, y=y, width=side - 1, height=side - 1, class_=f"level l{level}"))
    size = left + K * side + 4
    rows = tuple((names[i], *(percent(s) for s in shares[i])) for i in range(K))
    table = Table(("", *(str(k) for k in range(K))), rows)
    note = "Of the rows that have the feature of a line, the share that also has that of a column."
    return Picture(caption, svg(size, size, caption, parts, style=f"max-width:{size:.0f}px"), table, note)
