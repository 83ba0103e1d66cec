"""Fitted models as JSON and arrays, and back: only types on a list, so that reading runs no code of the file's choice.

JSON's own values stand for themselves; everything else is an object with a ``kind``.
"""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property as standard_cached_property
from inspect import signature
from typing import Any, get_type_hints

import numpy as np
import scipy.sparse as sp

from kfree.families import Array
from kfree.families.cached import cached_property
from kfree.models.stored_files import can_be_stored
from kfree.models.stored_types import (
    FITTED_SHAPES,
    KIND_OF,
    KINDS,
    Kind,
    check_shapes,
    check_types,
    check_values,
)
from kfree.rows.dask import is_dask

_SPARSE: dict[str, type] = {kind.__name__: kind for kind in (sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.csc_array)}
_ODD_FLOATS = ("inf", "-inf", "nan")
# Names of arrays in a file are cut here; a number is added where two become one.
_LONGEST_NAME = 100
# Parts of the state of numpy's default generator, and the bits they have.
_GENERATOR_BITS = {"state": 128, "inc": 128, "has_uint32": 1, "uinteger": 32}


class Writer:
    """Takes a model apart."""

    def __init__(self, estimators: Mapping[str, type], left_out: Collection[str] = ()) -> None:
        self.arrays: dict[str, Array] = {}
        self._estimators, self._left_out = estimators, {*left_out}  # attributes that are not kept
        self._names: dict[int, str] = {}  # by identity: what is one array stays one
        self._columns: int | None = None

    def write(self, value: Any, where: str) -> Any:
        """The JSON of a value; its arrays are noted."""
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"kind": "float", "value": str(value)}
        if kind is list:
            return [self.write(one, f"{where}.{i}") for i, one in enumerate(value)]
        if kind is tuple:
            return {"kind": "tuple", "items": self.write(list(value), where)}
        if kind is dict:
            return self._dict(value, where)
        if isinstance(value, np.generic) and can_be_stored(np.asarray(value)):
            item = value.view(np.int64).item() if value.dtype.kind in "mM" else value.item()
            return {"kind": "scalar", "dtype": value.dtype.str, "value": self.write(item, where)}
        if kind in (np.ndarray, np.memmap):
            return self._array(np.asarray(value), where)
        if kind in _SPARSE.values():
            parts = {
                name: self.write(getattr(value, name), f"{where}.{name}") for name in ("data", "indices", "indptr")
            }
            return {"kind": "sparse", "format": kind.__name__, "shape": [int(size) for size in value.shape], **parts}
        if kind is np.random.Generator and type(value.bit_generator) is np.random.PCG64:
            return {"kind": "generator", "state": value.bit_generator.state}
        if kind in KIND_OF:
            return self._record(value, KIND_OF[kind], where)
        if kind in self._estimators.values():
            return self._estimator(value, where)
        raise _unknown(value, where)

    def _dict(self, value: dict[Any, Any], where: str) -> Any:
        if all(type(key) is str for key in value):
            return {"kind": "dict", "items": {key: self.write(one, f"{where}.{key}") for key, one in value.items()}}
        pairs = [[self.write(key, where), self.write(one, f"{where}.{key}")] for key, one in value.items()]
        return {"kind": "pairs", "items": pairs}

    def _array(self, array: Array, where: str) -> Any:
        if array.dtype.kind == "O":
            return {"kind": "objects", "shape": list(array.shape), "items": self.write(array.ravel().tolist(), where)}
        if not can_be_stored(array):
            raise _unknown(array, where)
        if id(array) not in self._names:
            self._names[id(array)] = self._new_name(where)
            self.arrays[self._names[id(array)]] = array
        return {
            "kind": "array",
            "file": self._names[id(array)],
            "dtype": array.dtype.name,
            "shape": list(array.shape),
        }

    def _new_name(self, where: str) -> str:
        """A name for an array that says where it belongs, and is one for a file."""
        parts = where.split(".")[1:]
        name = ".".join(re.sub(r"\W", "_", part, flags=re.ASCII) for part in parts)[:_LONGEST_NAME] or "array"
        if name in self.arrays:
            name = f"{name}-{len(self.arrays)}"
        return name

    def _record(self, value: Any, kind: Kind, where: str) -> Any:
        parts = {name: getattr(value, name) for name in kind.types}
        check_types(kind.types, parts, where)
        check_shapes(kind.shapes, parts, self._columns, where)
        written = {name: self.write(part, f"{where}.{name}") for name, part in parts.items()}
        return {"kind": "record", "type": kind.of.__name__, "parts": written}

    def _estimator(self, model: Any, where: str) -> Any:
        of = type(model)
        parameters = model.get_params(deep=False)
        names = sorted(vars(model), key=lambda name: name.startswith("_"))  # arrays get their public names
        cached = {name for name in names if isinstance(getattr(of, name, None), _CACHED)}
        kept = [name for name in names if name not in {*parameters, *cached, *self._left_out}]
        fitted = {name: vars(model)[name] for name in kept if not is_dask(vars(model)[name])}  # that stays where it is
        check_fitted(of, fitted, where)
        with _columns_of(self, fitted):
            return {
                "kind": "estimator",
                "type": of.__name__,
                "parameters": {name: self.write(value, f"{where}.{name}") for name, value in parameters.items()},
                "fitted": {name: self.write(value, f"{where}.{name}") for name, value in fitted.items()},
            }


_CACHED = (cached_property, standard_cached_property)


def _unknown(value: Any, where: str) -> TypeError:
    """What cannot be saved, and what can be done about it."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, np.ndarray | np.generic):
        kind += f" of {value.dtype}"
    if isinstance(value, np.random.RandomState):
        return TypeError(
            f"{where} is a RandomState, whose state would go with the model. save keeps whole numbers and None: call "
            f"set_params(random_state=0) first, or keep the model with joblib.dump(model, path)."
        )
    return TypeError(
        f"{where} is a {kind}, which save cannot keep: it keeps numbers, text, arrays and kfree's own classes, so that "
        "loading runs no code. joblib.dump(model, path) keeps it, by pickle."
    )


@contextmanager
def _columns_of(owner: Any, fitted: Mapping[str, Any]) -> Iterator[None]:
    """While an estimator is written or read: how many columns its rows have."""
    before, columns = owner._columns, fitted.get("n_features_in_")
    owner._columns = columns if type(columns) is int else None
    try:
        yield
    finally:
        owner._columns = before


def check_fitted(of: type, fitted: Mapping[str, Any], where: str) -> None:
    """Whether fitted attributes are what they should be for such an estimator."""
    parameters = signature(of).parameters
    for name in fitted:
        if hasattr(of, name) or name in parameters or name.startswith("__") or not name.isidentifier():
            raise ValueError(f"{where}.{name} is no attribute of a fitted {of.__name__}")
    check_types(get_type_hints(of), fitted, where)
    columns = fitted.get("n_features_in_")
    check_shapes(FITTED_SHAPES, fitted, columns if type(columns) is int else None, where)


class Reader:
    """Puts a model together."""

    def __init__(self, estimators: Mapping[str, type], arrays: Mapping[str, Array]) -> None:
        self._estimators, self._arrays = estimators, arrays
        self.unused = set(arrays)
        self._columns: int | None = None
        self._kinds: dict[str, Callable[[dict[str, Any], str], Any]] = {
            "float": self._float,
            "scalar": self._scalar,
            "tuple": self._tuple,
            "dict": self._dict,
            "pairs": self._pairs,
            "array": self._array,
            "objects": self._objects,
            "sparse": self._sparse,
            "generator": self._generator,
            "record": self._record,
            "estimator": self._estimator,
        }

    def read(self, value: Any, where: str) -> Any:
        """The value of a JSON; a ValueError says where it is none."""
        if isinstance(value, list):
            return [self.read(one, f"{where}.{i}") for i, one in enumerate(value)]
        if not isinstance(value, dict):
            return value
        kind = value.get("kind")
        if not isinstance(kind, str) or kind not in self._kinds:
            raise ValueError(f"{where} is of an unknown kind, {str(kind)[:50]!r}")
        return self._kinds[kind](value, where)

    def _float(self, node: dict[str, Any], where: str) -> float:
        value = _part(node, "value", str, where)
        if value not in _ODD_FLOATS:
            raise ValueError(f"{where} is no number")
        return float(value)

    def _scalar(self, node: dict[str, Any], where: str) -> Any:
        name, value = _part(node, "dtype", str, where), self.read(node.get("value"), where)
        try:
            array = np.array(value, dtype=name)
        except (ValueError, TypeError, OverflowError, SyntaxError):
            array = np.empty(0)
        if array.ndim or not can_be_stored(array) or array.dtype.str != name:
            raise ValueError(f"{where} is no number of type {name[:50]!r}")
        return array[()]

    def _tuple(self, node: dict[str, Any], where: str) -> tuple[Any, ...]:
        return tuple(self.read(_part(node, "items", list, where), where))

    def _dict(self, node: dict[str, Any], where: str) -> dict[str, Any]:
        return {key: self.read(one, f"{where}.{key}") for key, one in _part(node, "items", dict, where).items()}

    def _pairs(self, node: dict[str, Any], where: str) -> dict[Any, Any]:
        pairs = self.read(_part(node, "items", list, where), where)
        try:
            return dict(pairs)
        except (TypeError, ValueError):
            raise ValueError(f"{where} are no pairs of a key and a value") from None

    def _array(self, node: dict[str, Any], where: str) -> Array:
        name, shape = _part(node, "file", str, where), _part(node, "shape", list, where)
        if name not in self._arrays:
            raise ValueError(f"{where} refers to an array {name[:100]!r}, which is not there")
        array = self._arrays[name]
        if list(array.shape) != shape or array.dtype.name != node.get("dtype"):
            raise ValueError(
                f"{where} should have shape {shape} and type {node.get('dtype')!s:.50}, but {name}.npy has "
                f"{list(array.shape)} and {array.dtype}"
            )
        self.unused.discard(name)
        return array

    def _objects(self, node: dict[str, Any], where: str) -> Array:
        items, shape = self.read(_part(node, "items", list, where), where), _sizes(node, where)
        if math.prod(shape) != len(items):
            raise ValueError(f"{where} has {len(items)} items, which shape {shape} does not make")
        array = np.empty(len(items), object)
        for i, item in enumerate(items):  # all at once would look into tuples
            array[i] = item
        return array.reshape(shape)

    def _sparse(self, node: dict[str, Any], where: str) -> Any:
        parts = [self.read(node.get(name), f"{where}.{name}") for name in ("data", "indices", "indptr")]
        made, shape = _SPARSE.get(_part(node, "format", str, where)), _sizes(node, where)
        sound = all(isinstance(part, np.ndarray) and part.ndim == 1 for part in parts) and len(shape) == 2
        if made is None or not sound or parts[0].dtype.kind not in "biuf":
            raise ValueError(f"{where} is no sparse matrix")
        if any(part.dtype.kind != "i" for part in parts[1:]):
            raise ValueError(f"{where} has positions that are no whole numbers")
        matrix = made(tuple(parts), shape=shape)
        matrix.check_format(full_check=True)  # a ValueError for positions beyond the shape
        return matrix

    def _generator(self, node: dict[str, Any], where: str) -> np.random.Generator:
        state = _part(node, "state", dict, where)
        inner = state.get("state")
        numbers = {**state, **(inner if isinstance(inner, dict) else {})}
        for name, bits in _GENERATOR_BITS.items():
            if type(numbers.get(name)) is not int or not 0 <= numbers[name] < 1 << bits:
                raise ValueError(f"{where} has a state that is none of a random number generator")
        rng = np.random.PCG64(0)
        rng.state = {
            "bit_generator": "PCG64",
            "state": {"state": numbers["state"], "inc": numbers["inc"]},
            "has_uint32": numbers["has_uint32"],
            "uinteger": numbers["uinteger"],
        }
        return np.random.Generator(rng)

    def _record(self, node: dict[str, Any], where: str) -> Any:
        kind = KINDS.get(_part(node, "type", str, where))
        if kind is None:
            raise ValueError(f"{where} is a {node['type'][:50]!r}, which this kfree does not know")
        given = _part(node, "parts", dict, where)
        odd = (set(given) - set(kind.types)) | (set(kind.types) - kind.optional - set(given))
        if odd:
            raise ValueError(f"{where} is a {kind.of.__name__} that has or lacks {sorted(odd)[0][:50]!r}")
        parts = {name: self.read(part, f"{where}.{name}") for name, part in given.items()}
        check_types(kind.types, parts, where)
        check_shapes(kind.shapes, parts, self._columns, where)
        try:
            made = kind.make(**parts)
        except (
            ValueError,
            TypeError,
            AttributeError,
            LookupError,
        ) as error:  # what is made of Any must suit each other
            raise ValueError(f"{where} cannot be made a {kind.of.__name__}: {error}") from error
        check_values(made, where)
        return made

    def _estimator(self, node: dict[str, Any], where: str) -> Any:
        of = self._estimators.get(_part(node, "type", str, where))
        if of is None:
            raise ValueError(f"{where} is a {node['type'][:50]!r}, which this kfree does not know")
        given, fitted = _part(node, "parameters", dict, where), _part(node, "fitted", dict, where)
        odd = sorted(set(given) - set(signature(of).parameters))
        if odd:
            raise ValueError(f"{of.__name__} has no parameter {odd[0][:50]!r}")
        where = of.__name__
        with _columns_of(self, fitted):
            model = of(**{name: self.read(value, f"{where}.{name}") for name, value in given.items()})
            found = {name: self.read(value, f"{where}.{name}") for name, value in fitted.items()}
        check_fitted(of, found, where)
        vars(model).update(found)
        return model


def _part(node: Mapping[str, Any], name: str, kind: type, where: str) -> Any:
    """A part that must be there."""
    value = node.get(name)
    if not isinstance(value, kind):
        raise ValueError(f"{where} lacks {name!r}, or it is not a {kind.__name__}")
    return value


def _sizes(node: Mapping[str, Any], where: str) -> tuple[int, ...]:
    """The shape of something."""
    shape = _part(node, "shape", list, where)
    if not all(type(size) is int and 0 <= size < 1 << 60 for size in shape):
        raise ValueError(f"{where} has no shape")
    return tuple(shape)
