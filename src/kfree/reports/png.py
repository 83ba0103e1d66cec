"""Small pictures as data addresses, so that a page needs no other file."""

import base64
import struct
import zlib

import numpy as np

from kfree.families import Array

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY, _COLOUR = 0, 2  # colour types of the format


def data_address(pixels: Array) -> str:
    """A picture (h, w) or (h, w, 3) of uint8 as an address that holds it whole."""
    return "data:image/png;base64," + base64.b64encode(encode(pixels)).decode("ascii")


def encode(pixels: Array) -> bytes:
    """The bytes of a PNG file: 8 bits a channel, lines as they are."""
    h, w = pixels.shape[:2]
    lines = np.zeros((h, 1 + pixels[0].size), np.uint8)  # each begins with the number of its filter, 0: none
    lines[:, 1:] = pixels.reshape(h, -1)
    header = struct.pack(">IIBBBBB", w, h, 8, _COLOUR if pixels.ndim == 3 else _GREY, 0, 0, 0)
    body = zlib.compress(lines.tobytes(), 9)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def shrunk(picture: Array, side: int) -> Array:
    """A picture (h, w) or (h, w, 3) whose longer side is at most so many pixels: means over blocks."""
    for axis in (0, 1):
        size = picture.shape[axis]
        wanted = max(1, round(size * min(1.0, side / max(picture.shape[:2]))))
        edges = np.linspace(0, size, wanted + 1).astype(np.intp)[:-1]
        counts = np.diff(np.append(edges, size)).astype(np.float64)
        sums = np.add.reduceat(np.asarray(picture, dtype=np.float64), edges, axis=axis)
        picture = sums / counts.reshape((-1,) + (1,) * (sums.ndim - 1 - axis))
    return picture


def shaded(picture: Array, low: float, high: float) -> Array:
    """Values from ``low`` to ``high`` as shades from black to white."""
    width = high - low if high > low else 1.0
    return np.round(255 * np.clip((picture - low) / width, 0.0, 1.0)).astype(np.uint8)
