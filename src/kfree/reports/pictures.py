"""Rows that are pictures, or have one: made small enough for a page."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.reports.png import data_address, shaded, shrunk

#: Bytes that all pictures of a page may have together, about, and sides that are tried.
_BYTES, _SIDES = 220_000, (64, 48, 40, 32, 24, 16, 12, 8)
#: Rows that a card shows as pictures, and rows at its border.
EXAMPLES, BORDER = 5, 2
#: Values that are looked at to choose the shades.
_LOOKED = 1_000_000
#: A picture that subtracts less than this share of what it adds counts as one that only adds.
_SUBTRACTED = 0.1
_HINT = "Pass the shape (h, w) or (h, w, 3) of a row, or an array of pictures (n, h, w) or (n, h, w, 3)."


class Pictures(NamedTuple):
    """How to draw rows."""

    shape: tuple[int, ...] | None  # of a row of X that is a picture; None if there are pictures beside X
    given: Any  # (n, h, w) or (n, h, w, 3) pictures beside X, or X itself
    low: float  # values that are black and white
    high: float
    side: int  # pixels of the longer side

    def of_row(self, row: int) -> str:
        """The picture of a row."""
        some = self.given[row]
        some = some.toarray() if sp.issparse(some) else np.asarray(some)
        return self._address(some if self.shape is None else some.reshape(self.shape), self.low, self.high)

    def of_mean(self, mean: Array) -> str:
        """The picture of a centre, in the shades of the rows; none if X holds no pictures."""
        return "" if self.shape is None else self._address(mean.reshape(self.shape), self.low, self.high)

    def of_part(self, part: Array) -> str:
        """The picture of something that is added to others, in shades of its own: grey is 0 if some is subtracted."""
        if self.shape is None:
            return ""
        reach = float(np.abs(part).max()) or 1.0
        low = -reach if part.min() < -_SUBTRACTED * reach else 0.0
        return self._address(part.reshape(self.shape), low, reach)

    def _address(self, picture: Array, low: float, high: float) -> str:
        return data_address(shaded(shrunk(picture, self.side), low, high))


def check_pictures(images: Any, X: Any, shown: int) -> Pictures | None:
    """Pictures of the rows of X, of which ``shown`` cards will show some."""
    if images is None:
        return None
    n, p = X.shape
    shape = np.shape(images)
    if shape in ((2,), (3,)):
        size = tuple(int(s) for s in images)
        if min(size) < 1 or np.prod(size) != p or (len(size) == 3 and size[2] != 3):
            raise ValueError(f"images={tuple(images)} is not the shape of a row with {p} columns. {_HINT}")
        return Pictures(size, X, *_range(X), _side(size, shown))
    if len(shape) in (3, 4) and shape[0] == n and min(shape) > 0 and shape[3:] in ((), (3,)):
        given = np.asarray(images)
        if given.dtype.kind not in "buif":
            raise TypeError(f"images has dtype {given.dtype}, but numbers are needed.")
        return Pictures(None, given, *_range(given), _side(shape[1:], shown))
    raise ValueError(f"images has shape {shape}, which is neither that of {n} pictures nor of one row. {_HINT}")


def _range(values: Any) -> tuple[float, float]:
    """Values that are black and white; of many, a few extremes are cut off."""
    if sp.issparse(values):
        return float(values.min()), float(values.max())
    some = values.ravel()[:: max(1, values.size // _LOOKED)]
    return float(np.percentile(some, 0.1)), float(np.percentile(some, 99.9))


def _side(shape: tuple[int, ...], shown: int) -> int:
    """The largest side with which all pictures have room; noise does not shrink, so that is what is reckoned with."""
    long, channels = max(shape[:2]), 3 if len(shape) == 3 else 1
    area = channels * (min(shape[:2]) / long)
    for side in _SIDES:
        if shown * (1 + EXAMPLES + BORDER) * (120 + 1.34 * area * min(side, long) ** 2) <= _BYTES:
            return side
    return _SIDES[-1]
