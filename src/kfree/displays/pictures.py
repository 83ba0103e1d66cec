"""Rows as pictures, side by side."""

from typing import Any, NamedTuple

import numpy as np

from kfree.displays.drawing import cut, fold, font_points, height_of, line_height, small_font, width_of
from kfree.families import Array

#: Dots of a picture that is drawn, at most: a figure has no room for more.
_DOTS = 400
#: Of the numbers of signed pictures so many per cent are below the strongest colour: a few bright dots hide the rest.
_BRIGHT = 99.5
#: From a picture to the next, as a share of its width.
_STEP = 1.06
#: Inches of a figure of pictures.
_WIDTH = 6.4
#: Lines of a caption, at most.
_LINES = 2


def as_pictures(rows: Array, shape: tuple[int, ...]) -> list[Array]:
    """Rows as pictures (h, w) or (h, w, 3), thinned to what can be seen."""
    rows = np.asarray(rows, dtype=np.float64)
    if int(np.prod(shape)) != rows.shape[1] or len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] != 3):
        raise ValueError(
            f"image_shape={tuple(shape)} does not fit rows of {rows.shape[1]} numbers. Pass (height, width), or "
            "(height, width, 3) for colours, whose product is that number."
        )
    step = max(1, -(-max(shape[:2]) // _DOTS))
    return [row.reshape(shape)[::step, ::step] for row in rows]


def tiles_size(count: int, shape: tuple[int, ...] | None) -> tuple[float, float] | None:
    """Inches of a figure that so many pictures fill; matplotlib's own size if their shape is not known."""
    if shape is None:
        return None
    ratio = shape[0] / shape[1]
    columns = min(count, max(3, round(np.sqrt(1.8 * count * ratio))))
    return _WIDTH, -(-count // columns) * (_WIDTH / max(columns, 4) * ratio + 0.25) + 0.4


class Room(NamedTuple):
    """Where pictures go, in inches."""

    wide: float
    high: float
    ratio: float  # height of a picture by its width
    text: float  # height of a line of a caption

    def largest(self, count: int, columns: int) -> float:
        """Width of so many pictures in so many columns, with captions above them."""
        rows = -(-count // columns)
        return max(min(self.wide / columns, (self.high / rows - _LINES * self.text) / self.ratio) / _STEP, 0.05)


def draw_tiles(ax: Any, pictures: list[Array], captions: list[str], multiple: int = 1, **how: Any) -> list[Any]:
    """Pictures side by side in one axes, captions above them, a multiple of some number in each row.

    ``how`` goes to ``imshow``. Gives the images.
    """
    height, width = pictures[0].shape[:2]
    size = small_font(ax)
    room = Room(width_of(ax), height_of(ax), height / width, line_height(size))
    columns = max(range(multiple, len(pictures) + 1, multiple), key=lambda some: room.largest(len(pictures), some))
    inches = room.largest(len(pictures), columns)
    folded = _fold_captions(captions, inches, size)
    above = max(text.count("\n") + 1 for text in folded) * room.text * width / inches
    step = _STEP * height + above
    images = []
    for i, (picture, text) in enumerate(zip(pictures, folded)):
        x, y = (i % columns) * _STEP * width, (i // columns) * step
        images.append(ax.imshow(picture, extent=(x, x + width, y + height, y), interpolation="nearest", **how))
        ax.text(x + width / 2, y - 0.02 * height, text, ha="center", va="bottom", fontsize=size)
    rows = -(-len(pictures) // columns)
    ax.set(xlim=(0, _STEP * width * columns), ylim=(rows * step - above, -above), aspect="equal")
    ax.set_axis_off()
    ax.set_anchor("NW")
    return images


def _fold_captions(captions: list[str], inches: float, size: str) -> list[str]:
    """Captions in few lines; what is before the first sign of punctuation, if there is no room for more."""
    letters = int(72 * inches / (0.6 * font_points(size)))
    if letters < 7:
        return [cut(caption.split(",")[0].split(":")[0], max(2, letters)) for caption in captions]
    lines = [fold(caption, inches, size).split("\n") for caption in captions]
    return ["\n".join([*some[: _LINES - 1], cut(" ".join(some[_LINES - 1 :]), letters)]).strip() for some in lines]


def colour_limits(pictures: list[Array], signed: bool) -> dict[str, Any]:
    """What ``imshow`` should be told of grey pictures, so that they can be compared; nothing of coloured ones."""
    if pictures[0].ndim == 3:
        return {}
    values = np.concatenate([picture.ravel() for picture in pictures])
    if signed:
        end = float(np.percentile(np.abs(values), _BRIGHT)) or float(np.abs(values).max()) or 1.0
        return {"vmin": -end, "vmax": end}
    low, high = float(values.min()), float(values.max())
    return {"vmin": low, "vmax": high if high > low else low + 1.0}


def as_colours(pictures: list[Array]) -> list[Array]:
    """Coloured pictures between 0 and 1; grey ones as they are."""
    if pictures[0].ndim == 2:
        return pictures
    scale = 255.0 if max(p.max() for p in pictures) > 2.0 else 1.0
    return [np.clip(p / scale, 0.0, 1.0) for p in pictures]
