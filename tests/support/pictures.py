"""What tests ask of a picture: its texts, whether they are inside and apart."""

from itertools import combinations
from unittest import mock

#: How displays are drawn: sizes of figures in inches, small, usual and large; on white and on black.
LOOKS = (
    ((4.0, 3.0), "default"),
    ((6.4, 4.8), "default"),
    ((6.4, 4.8), "dark_background"),
    ((11.0, 7.0), "default"),
)


def texts(figure):
    """Texts that a figure draws, with their boxes in dots: axes also keep some that they do not draw."""
    from matplotlib.text import Text

    drawn, draw = {}, Text.draw

    def note(text, renderer):
        drawn[id(text)] = text
        draw(text, renderer)

    with mock.patch.object(Text, "draw", note):
        figure.draw_without_rendering()
    shown = [text for text in drawn.values() if text.get_visible() and text.get_text().strip()]
    return [(text, Text.get_window_extent(text)) for text in shown]


def collisions(figure):
    """Pairs of texts of which one covers part of the other; slanting ones, whose boxes are larger, are left out."""
    boxes = [(text, box) for text, box in texts(figure) if text.get_rotation() % 90 == 0]
    found = []
    for (one, a), (other, b) in combinations(boxes, 2):
        wide = min(a.x1, b.x1) - max(a.x0, b.x0)
        high = min(a.y1, b.y1) - max(a.y0, b.y0)
        if wide > 1.5 and high > 0.25 * min(a.height, b.height):
            found.append((one.get_text(), other.get_text()))
    return found


def outside(figure, slack=2.0):
    """Texts that do not lie within the figure."""
    return [
        text.get_text()
        for text, box in texts(figure)
        if min(box.x0, box.y0) < -slack or box.x1 > figure.bbox.x1 + slack or box.y1 > figure.bbox.y1 + slack
    ]
