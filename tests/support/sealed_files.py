"""Saved models taken apart and sealed again with true checksums, as somebody would who means harm."""

import copy
import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

SUMS, TEXT = "SHA256SUMS", "model.json"


def entries_of(path: Path) -> dict[str, bytes]:
    """What is in a file, but for the checksums."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != SUMS}


def seal(path: Path, entries: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    """Write entries with their checksums."""
    lines = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in entries.items()]
    return pack(path, {**entries, SUMS: "".join(lines).encode()}, compression)


def pack(path: Path, entries: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    """Write entries as they are."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return path


def edited(entries: dict[str, bytes], edit: Any) -> dict[str, bytes]:
    """Entries whose JSON was changed by a function of it."""
    header = json.loads(entries[TEXT])
    changed = edit(header)
    return {**entries, TEXT: json.dumps(header if changed is None else changed).encode()}


def npy(array: Any, **settings: Any) -> bytes:
    """An array as a file holds it."""
    data = io.BytesIO()
    np.save(data, array, **settings)
    return data.getvalue()


def places(node: Any) -> list[tuple[Any, Any]]:
    """Every part of a JSON: what holds it, and its key there."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [place for key, part in items for place in [(node, key), *places(part)]]


_ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**63, 2**70, 10**18, 0.5, -1.5, 1e300, "", "x", "../x", "O", "object",
    "DPMeans", "predict", [], [[]], [1, 2], {}, {"kind": "x"}, {"kind": "tuple", "items": []}, {"kind": "float"},
    {"kind": "float", "value": "nan"}, {"kind": "scalar", "dtype": "O", "value": 1}, {"kind": "dict", "items": {}},
    {"kind": "scalar", "dtype": "<f8", "value": "x"}, {"kind": "scalar", "dtype": "<M8[D]", "value": 1},
    {"kind": "pairs", "items": [[[], 1]]}, {"kind": "pairs", "items": [[1, 1], [1, 2]]},
    {"kind": "objects", "shape": [10**17], "items": []}, {"kind": "record", "type": "Model", "parts": {}},
    {"kind": "record", "type": "SquaredEuclidean", "parts": {"variance": -1}}, {"kind": "generator", "state": {}},
    {"kind": "record", "type": "KL", "parts": {}},
    {"kind": "estimator", "type": "DPMeans", "parameters": {}, "fitted": {}},
)  # fmt: skip


def disturbed(header: Any, rng: np.random.Generator) -> Any:
    """A JSON with one to three parts exchanged, dropped, renamed or made into something else."""
    header = copy.deepcopy(header)
    for _ in range(rng.integers(1, 4)):
        found = places(header)
        holder, key = found[rng.integers(len(found))]
        other, where = found[rng.integers(len(found))]
        what = rng.integers(5)
        if what == 0:
            holder[key] = copy.deepcopy(_ODD[rng.integers(len(_ODD))])
        elif what == 1:
            holder[key] = copy.deepcopy(other[where])
        elif what == 2:
            del holder[key]
        elif what == 3 and isinstance(holder, dict):
            holder[str(_ODD[rng.integers(len(_ODD))])] = holder.pop(key)
        elif isinstance(holder[key], int | float):
            holder[key] = holder[key] + int(rng.integers(-3, 4))
    return header


def disturbed_array(data: bytes, rng: np.random.Generator) -> bytes:
    """An array of another shape, type or content, or no array at all."""
    array = np.load(io.BytesIO(data))
    what = rng.integers(6)
    if what == 0:
        return npy(np.resize(array, rng.integers(0, 5, size=rng.integers(0, 4))))
    if what == 1:
        return npy(array.astype(rng.choice(["f4", "i8", "u1", "U5", "b1"])))
    if what == 2:
        return npy(np.roll(array, 1) if array.dtype.kind == "U" else -array.astype(float))
    if what == 3:
        return npy(array.astype(object), allow_pickle=True)
    noise = bytearray(data)
    for place in rng.integers(len(noise), size=3):
        noise[place] = rng.integers(256)
    return bytes(noise)[: None if what == 4 else rng.integers(len(noise))]
