"""Rows as pictures, side by side."""

from typing import Any

import numpy as np

from kfree.displays.drawing import cut, fold, font_points, height_of, line_height, small_font, width_of
from kfree.families import Array

#: Dots of a picture that is drawn, at most: a figure has no room for more.
_DOTS = 400
#: Of the numbers of signed pictures so many per cent are below the strongest colour: a few bright dots hide the rest.
_BRIGHT = 99.5
#: From a picture to the next, as a share of its width.
_STEP = 1.06
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


def draw_tiles(ax: Any, pictures: list[Array], captions: list[str], multiple: int = 1, **how: Any) -> list[Any]:
    """Pictures side by side in one axes, captions above them, a multiple of some number in each row.

    ``how`` goes to ``imshow``. Gives the images.
    """
    height, width = pictures[0].shape[:2]
    wide, high, size = width_of(ax), height_of(ax), small_font(ax)
    text_height = line_height(size)
    columns = _best_columns(range(multiple, len(pictures) + 1, multiple), wide, high, height / width, text_height)
    folded = _fold_captions(captions, 0.96 * wide / columns, size)
    above = max(text.count("\n") + 1 for text in folded) * text_height * _STEP * width * columns / wide
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


def _best_columns(choices: range, wide: float, high: float, ratio: float, text: float) -> int:
    """Columns with which the pictures, ``ratio`` times as high as wide with text above them, are largest."""

    def largest(columns: int) -> float:
        rows = -(-choices[-1] // columns)
        return min(wide / columns, (high / rows - _LINES * text) / ratio)

    return max(choices, key=largest)


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
