"""Files of saved models: a zip of arrays (.npy), one JSON text that says what they are, and checksums of all of these.

Nothing in it is compressed, so that no file unpacks to more than its own length, and nothing in it is pickled.
"""

import errno
import hashlib
import io
import json
import os
import re
import stat
import struct
import uuid
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kfree.families import Array

#: What this kfree writes; it reads this and all before.
FORMAT = 1
_JSON, _SUMS, _SUFFIX = "model.json", "SHA256SUMS", ".npy"
_ENCODING = "utf-8", "surrogatepass"  # texts in Python may hold halves of characters
_MAGIC = b"\x93NUMPY\x01\x00"
# Types of arrays by numpy's names: bits, numbers, text, times.
_TYPES = r"\|b1|[<>|][iu][1248]|[<>]f[248]|[<>]U\d{1,6}|[<>][mM]8\[(?:\d{0,4}(?:Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as))\]"
_SHAPE = r"(?:\d{1,15}, ?)*(?:\d{1,15})?"
_HEADER = re.compile(rf"\{{'descr': '({_TYPES})', 'fortran_order': (False|True), 'shape': \(({_SHAPE})\), \}} *\n")
_ENTRY = re.compile(r"[\w.-]{1,200}", re.ASCII)
_SUM = re.compile(r"([0-9a-f]{64})  ([\w.-]{1,200})", re.ASCII)
_LARGEST_CHARACTER = 0x10FFFF
_HINT = "Files that model.save wrote are meant; those of joblib or pickle are read by joblib.load, if you trust them"
# What zipfile raises for files that are none, or not whole.
_BROKEN = (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, KeyError, OverflowError, struct.error)


def can_be_stored(array: Array) -> bool:
    """Whether a file may hold an array of this type."""
    return re.fullmatch(_TYPES, array.dtype.str) is not None


def write_file(path: Any, version: str, model: Any, arrays: Mapping[str, Array]) -> None:
    """Write a model, whole or not at all: an error or an interrupt leaves the file that was there."""
    entries = {_JSON: _json({"format": FORMAT, "kfree": version, "numpy": np.__version__, "model": model})}
    whole = _place(path)
    beside = whole.with_name(f".{whole.name[:100]}.{uuid.uuid4().hex}.tmp")
    try:
        with open(beside, "xb") as file:
            _write_entries(file, entries, arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, whole)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _place(path: Any) -> Path:
    """Where the file is to be, links followed."""
    place = Path(os.path.realpath(os.fspath(path)))
    if not place.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {place.parent} to save {place.name} in. Make it first.")
    if place.exists() and not stat.S_ISREG(place.stat().st_mode):
        raise ValueError(f"{path} is a folder or a device. Pass the path of a file, new or to be overwritten.")
    return place


def _json(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, ensure_ascii=False).encode(*_ENCODING)


def _write_entries(file: Any, texts: Mapping[str, bytes], arrays: Mapping[str, Array]) -> None:
    """All entries, one at a time, and their checksums at the end."""
    sums = []
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:

        def add(name: str, data: bytes) -> None:
            info = zipfile.ZipInfo(name)  # of a fixed date: equal models are equal files
            info.external_attr = 0o644 << 16
            archive.writestr(info, data)

        for name, data in texts.items():
            sums.append(_line(name, data))
            add(name, data)
        for name, array in arrays.items():
            data = _npy(array)
            sums.append(_line(name + _SUFFIX, data))
            add(name + _SUFFIX, data)
        add(_SUMS, "".join(sums).encode())


def _line(name: str, data: bytes) -> str:
    return f"{hashlib.sha256(data).hexdigest()}  {name}\n"


def _npy(array: Array) -> bytes:
    data = io.BytesIO()
    np.lib.format.write_array(data, array, version=(1, 0), allow_pickle=False)
    return data.getvalue()


def read_file(path: Any, version: str) -> tuple[Any, dict[str, Array]]:
    """The model's JSON and its arrays by name, if they are as they were written; otherwise a ValueError."""
    with open(path, "rb") as file:
        length = os.fstat(file.fileno()).st_size
        try:
            with zipfile.ZipFile(file) as archive:
                return _read_entries(archive, length, version)
        except _BROKEN as error:
            raise ValueError(f"it is no zip file, or not a whole one ({error}). {_HINT}") from error
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            raise ValueError("an entry begins before the file does") from error


def _read_entries(archive: zipfile.ZipFile, length: int, version: str) -> tuple[Any, dict[str, Array]]:
    infos = archive.infolist()
    entries = {info.filename: info for info in infos}
    text = _read(archive, entries, _JSON, length)
    model = _read_header(text, version)  # first of all: files of a newer format may differ in all that follows
    _check_entries(infos, length)
    sums = _read_sums(_read(archive, entries, _SUMS, length))
    odd = sorted((set(sums) | {_SUMS}) ^ set(entries))
    if odd:
        raise ValueError(f"{odd[0]} is in only one of zip file and {_SUMS} ({len(odd)} such entries)")
    _check_sum(_JSON, text, sums)
    arrays = {}
    for name in sorted(set(entries) - {_JSON, _SUMS}):
        if not name.endswith(_SUFFIX):
            raise ValueError(f"entry {name} is of an unknown kind")
        data = _read(archive, entries, name, length)
        _check_sum(name, data, sums)
        arrays[name.removesuffix(_SUFFIX)] = _read_npy(name, data)
    return model, arrays


def _check_entries(infos: list[zipfile.ZipInfo], length: int) -> None:
    """None is twice there or has a strange name, and together they are no longer than the file."""
    if len({info.filename for info in infos}) < len(infos):
        raise ValueError("it has two entries of one name")
    for info in infos:
        if not _ENTRY.fullmatch(info.filename):
            raise ValueError(f"entry {info.filename[:100]!r} has a name that kfree does not give")
    if sum(info.file_size for info in infos) > length:
        raise ValueError(f"its entries are said to be longer than the whole file of {length} bytes")


def _read(archive: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo], name: str, length: int) -> bytes:
    """An entry that is there, as long as it says, and neither compressed nor encrypted."""
    if name not in entries:
        raise ValueError(f"it has no entry {name}. {_HINT}")
    info = entries[name]
    if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 or info.compress_size != info.file_size:
        raise ValueError(f"entry {name} is compressed or encrypted, which kfree's files never are")
    if info.file_size > length:
        raise ValueError(f"entry {name} is said to be longer than the whole file of {length} bytes")
    return archive.read(info)


def _read_header(text: bytes, version: str) -> Any:
    """What the JSON says of the model, if it is of a format that is known."""
    try:
        header = json.loads(text.decode(*_ENCODING), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{_JSON} cannot be read ({error})") from error
    if not isinstance(header, dict) or type(header.get("format")) is not int or header["format"] < 1:
        raise ValueError(f"{_JSON} does not say which format it has")
    if header["format"] > FORMAT:
        raise ValueError(
            f"it has format {header['format']}, written by kfree {header.get('kfree')!s:.20}; this is kfree {version}, "
            f"which reads formats up to {FORMAT}. Upgrade kfree"
        )
    if set(header) != {"format", "kfree", "numpy", "model"}:
        raise ValueError(f"{_JSON} does not have the four parts that format {header['format']} has")
    return header["model"]


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _read_sums(data: bytes) -> dict[str, str]:
    """Checksums by name of entry."""
    try:
        found = [_SUM.fullmatch(line) for line in data.decode("ascii").splitlines()]
    except UnicodeDecodeError:
        found = [None]
    if None in found:
        raise ValueError(f"{_SUMS} cannot be read")
    return {match[2]: match[1] for match in found if match}


def _check_sum(name: str, data: bytes, sums: Mapping[str, str]) -> None:
    if hashlib.sha256(data).hexdigest() != sums[name]:
        raise ValueError(f"{name} is not as it was saved: its checksum differs from that in {_SUMS}")


def _read_npy(name: str, data: bytes) -> Array:
    """An array of a type on the list; the header is matched, not evaluated."""
    begin = len(_MAGIC) + 2
    stop = begin + int.from_bytes(data[len(_MAGIC) : begin], "little")
    header = _HEADER.fullmatch(data[begin:stop].decode("latin-1"))
    if not data.startswith(_MAGIC) or header is None:
        raise ValueError(f"{name} is no array of numbers or texts")
    dtype, shape = np.dtype(header[1]), tuple(int(size) for size in header[3].split(",") if size.strip())
    entries = 1
    for size in shape:
        entries *= size
    if entries * dtype.itemsize != len(data) - stop:
        raise ValueError(f"{name} has {len(data) - stop} bytes, which shape {shape} and type {dtype} do not make")
    order: Any = "F" if header[2] == "True" else "C"
    array = np.ndarray(shape, dtype, buffer=data, offset=stop, order=order)
    array = array.astype(dtype.newbyteorder("="), order="K")  # a copy, which can be written to
    if _impossible(array):
        raise ValueError(f"{name} holds bytes that are no {dtype}")
    return array


def _impossible(array: Array) -> bool:
    """Whether bits are neither 0 nor 1, or characters none that there are."""
    if not array.size or array.dtype.kind not in "bU" or not array.dtype.itemsize:
        return False
    plain = np.ascontiguousarray(array).reshape(-1)
    if array.dtype.kind == "b":
        return bool(plain.view(np.uint8).max() > 1)
    return bool(plain.view(np.uint32).max() > _LARGEST_CHARACTER)
