"""Photographs of a desk, drawn here: each shows some of five things, sometimes in the sun, with grain."""

from typing import Any

import numpy as np

#: Height and width of a picture, which has three colours.
SHAPE = (48, 64)
#: Points in each direction that make a pixel: edges are soft.
_FINE = 3
#: How often a thing is there.
_OFTEN = 0.4
#: How much the light changes from picture to picture, and how grainy they are (white is 1).
_LIGHT, _GRAIN = 0.008, 0.04

Array = Any


def photographs(n: int, rng: Any) -> tuple[Array, Array]:
    """So many rows of pixels in 0..255, and which of the things each shows; the last is the sun."""
    y, x = np.mgrid[0 : SHAPE[0] * _FINE, 0 : SHAPE[1] * _FINE] / _FINE
    things = (_lamp(y, x), _mug(y, x), _books(y, x), _plant(y, x), _clock(y, x))
    sun = _sun(y, x)[:, :, None]
    seen = rng.random((n, len(things) + 1)) < _OFTEN
    rows = np.empty((n, SHAPE[0] * SHAPE[1] * 3), dtype=np.uint8)
    for row, shown in zip(rows, seen):
        scene = _desk(y)
        for thing, there in zip(things, shown):
            if there:
                _put(scene, thing)
        scene += sun * shown[-1]  # what a light adds does not depend on what it falls on
        small = scene.reshape(SHAPE[0], _FINE, SHAPE[1], _FINE, 3).mean(axis=(1, 3))
        small = small * (1 + _LIGHT * rng.normal()) + _GRAIN * rng.normal(size=small.shape)
        row[:] = np.rint(255 * small.clip(0, 1)).ravel()
    return rows, seen


def _put(scene: Array, thing: list[tuple[Array, Any]]) -> None:
    """Draw the parts of a thing, later ones over earlier ones."""
    for where, colour in thing:
        scene[where] = np.broadcast_to(colour, scene.shape)[where]


def _desk(y: Array) -> Array:
    """A wall above a desk."""
    wall, wood = np.array([0.62, 0.66, 0.70]), np.array([0.55, 0.41, 0.29])
    shade = 1 - 0.003 * np.abs(y - 24)[:, :, None]
    return np.where(y[:, :, None] < 33, wall, wood) * shade


def _sun(y: Array, x: Array) -> Array:
    """Light through a window with a bar in it, on the wall, the desk and whatever stands there."""
    across = x + 0.45 * y
    bar = (np.abs(across - 38) < 0.9) | (np.abs(y - 22) < 0.7)
    return np.where((across > 24) & (across < 52) & (y > 3) & (y < 41) & ~bar, 0.2, 0.0)


def _round(y: Array, x: Array, centre: tuple[float, float], radii: tuple[float, float]) -> Array:
    return ((y - centre[0]) / radii[0]) ** 2 + ((x - centre[1]) / radii[1]) ** 2 < 1


def _box(y: Array, x: Array, top: float, left: float, bottom: float, right: float) -> Array:
    return (top <= y) & (y < bottom) & (left <= x) & (x < right)


def _lamp(y: Array, x: Array) -> list[tuple[Array, Any]]:
    arm = (np.abs((x - 6) - 0.35 * (36 - y)) < 0.8) & (y > 14) & (y < 37)
    hood = (np.abs(x - 14) < 1.5 + 0.75 * (y - 9)) & (y > 9) & (y < 17)
    return [
        (_round(y, x, (38, 6), (2, 5)), (0.25, 0.27, 0.3)),
        (arm, (0.3, 0.32, 0.36)),
        (hood, (0.78, 0.24, 0.2)),
        (_round(y, x, (17, 14), (1.6, 7)), (1.0, 0.93, 0.62)),
    ]


def _mug(y: Array, x: Array) -> list[tuple[Array, Any]]:
    handle = _round(y, x, (37, 29.5), (4, 4)) & ~_round(y, x, (37, 29.5), (2.2, 2.2))
    shade = (0.92 - 0.025 * np.abs(x - 22))[:, :, None] * np.array([0.25, 0.5, 0.85])
    return [
        (handle, (0.17, 0.37, 0.65)),
        (_box(y, x, 31, 18, 42, 28), shade),
        (_round(y, x, (42, 23), (1.8, 5)), shade),
        (_round(y, x, (31, 23), (1.8, 5)), (0.3, 0.2, 0.14)),
    ]


def _books(y: Array, x: Array) -> list[tuple[Array, Any]]:
    return [
        (_box(y, x, 40, 34, 44, 50), (0.45, 0.13, 0.2)),
        (_box(y, x, 41, 49, 43, 50), (0.93, 0.9, 0.82)),
        (_box(y, x, 36, 36, 40, 49), (0.16, 0.42, 0.35)),
        (_box(y, x, 37, 36, 39, 37), (0.93, 0.9, 0.82)),
        (_box(y, x, 33, 35, 36, 47), (0.88, 0.68, 0.22)),
    ]


def _plant(y: Array, x: Array) -> list[tuple[Array, Any]]:
    pot = (np.abs(x - 57) < 5.5 - 0.18 * (y - 32)) & (y > 32) & (y < 43)
    leaves: list[tuple[Array, Any]] = []
    for angle, green in ((-65, 0.42), (65, 0.45), (-32, 0.5), (32, 0.55), (0, 0.6)):
        along, across = np.sin(np.radians(angle)), np.cos(np.radians(angle))
        far = (x - 57) * along - (y - 32) * across
        side = (x - 57) * across + (y - 32) * along
        inside = (far > 0) & (far < 13) & (np.abs(side) < 2.1 * np.sin(np.pi * np.clip(far / 13, 0, 1)))
        leaves.append((inside, (0.16, green, 0.22)))
    return [*leaves, (pot, (0.76, 0.42, 0.27))]


def _clock(y: Array, x: Array) -> list[tuple[Array, Any]]:
    face = _round(y, x, (12, 36), (8.5, 8.5))
    hands = _box(y, x, 6, 35.4, 12.6, 36.6) | _box(y, x, 11.4, 35.4, 12.6, 41)
    return [
        (_round(y, x, (12, 36), (9.6, 9.6)), (0.2, 0.2, 0.24)),
        (face, (0.97, 0.96, 0.92)),
        (hands, (0.1, 0.1, 0.12)),
    ]
