"""Lines of equal height through a grid of heights: marching squares."""

import numpy as np

from kfree.families import Array

#: For the corners that are above (1: lower left, 2: lower right, 4: upper right, 8: upper left) the sides that lines
#: join: 0 below, 1 right, 2 above, 3 left.
_SIDES = {
    1: ((3, 0),),
    2: ((0, 1),),
    3: ((3, 1),),
    4: ((1, 2),),
    5: ((3, 2), (0, 1)),
    6: ((0, 2),),
    7: ((3, 2),),
    8: ((2, 3),),
    9: ((0, 2),),
    10: ((3, 0), (1, 2)),
    11: ((1, 2),),
    12: ((3, 1),),
    13: ((0, 1),),
    14: ((3, 0),),
}


def contour(heights: Array, level: float) -> list[list[tuple[float, float]]]:
    """Lines (column, row) of a grid (h, w) along which it has this height, joined as far as they go."""
    above = heights >= level
    case = above[:-1, :-1] + 2 * above[:-1, 1:] + 4 * above[1:, 1:] + 8 * above[1:, :-1]
    pieces = [
        (_key(i, j, one), _key(i, j, two))
        for i, j in np.argwhere((case > 0) & (case < 15)).tolist()
        for one, two in _SIDES[int(case[i, j])]
    ]
    return [[_place(heights, level, key) for key in line] for line in _joined(pieces)]


def _key(i: int, j: int, side: int) -> tuple[int, int, int]:
    """A side of a cell by its lower or left corner and whether it goes up: the same for both cells at it."""
    return ((i, j, 0), (i, j + 1, 1), (i + 1, j, 0), (i, j, 1))[side]


def _place(heights: Array, level: float, key: tuple[int, int, int]) -> tuple[float, float]:
    """Where a line crosses a side."""
    i, j, up = key
    one, two = float(heights[i, j]), float(heights[i + up, j + 1 - up])
    share = (level - one) / (two - one) if two != one else 0.5
    return (float(j), i + share) if up else (j + share, float(i))


def _joined(pieces: list[tuple[tuple[int, int, int], tuple[int, int, int]]]) -> list[list[tuple[int, int, int]]]:
    """Lines from pieces that meet."""
    at: dict[tuple[int, int, int], list[int]] = {}
    for number, ends in enumerate(pieces):
        for end in ends:
            at.setdefault(end, []).append(number)
    left, lines = set(range(len(pieces))), []
    starts = [n for n, ends in enumerate(pieces) if any(len(at[end]) == 1 for end in ends)]  # open lines first
    for first in [*starts, *range(len(pieces))]:
        if first not in left:
            continue
        left.discard(first)
        one, two = pieces[first]
        line = [two, one] if len(at[two]) == 1 else [one, two]
        while following := [n for n in at[line[-1]] if n in left]:
            left.discard(following[0])
            one, two = pieces[following[0]]
            line.append(two if one == line[-1] else one)
        lines.append(line)
    return lines
