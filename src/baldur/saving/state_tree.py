"""State trees as JSON and named arrays, and back.

JSON has null, true, numbers, text, lists and objects; they stand for themselves. What it does not
have is an object whose first key begins with ``$``:

===========================================  ==================================================
``{"$float": "nan"}``                        NaN; ``inf`` and ``-inf`` likewise
``{"$array": "a7"}``                         an array of ``arrays.safetensors``
``{"$array": "a7", "order": "F"}``           the transpose of one, which was column-major
``{"$texts": "a8", "ends": "a9", ...}``      an array of text: UTF-8 in a8, where each ends in a9,
                                             its ``shape``, and ``dtype`` U or O
===========================================  ==================================================

A key of an ordinary object that begins with ``$`` gets a second one. Every array is referred to
exactly once: there is no sharing, so that reading takes time in proportion to the files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from baldur.core.escape import has_control
from baldur.exceptions import InputError
from baldur.saving import limits

DTYPES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
"""Types of numbers an array may have."""

_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


# -- to files ----------------------------------------------------------------------------------


def pack_tree(tree: Any) -> tuple[Any, dict[str, np.ndarray]]:
    """Return a state tree as a value for JSON, and its arrays by name."""
    packer = _Packer()
    return packer.node(tree, "model", 0), packer.arrays


class _Packer:
    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def node(self, value: Any, where: str, depth: int) -> Any:
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return _printable(str(value), where)
        if isinstance(value, int):
            if abs(value) >= limits.INTEGER:
                raise InputError(f"{where} cannot be saved: it is a whole number above 64 bits.")
            return int(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
        if depth >= limits.DEPTH:
            raise InputError(f"{where} cannot be saved: it is nested too deeply.")
        if isinstance(value, (list, tuple)):
            return [self.node(v, f"{where}[{i}]", depth + 1) for i, v in enumerate(value)]
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            made = {}
            for key, one in value.items():
                name = _printable(str(key), where)
                inner = self.node(one, f"{where}.{name}", depth + 1)
                made[f"${name}" if name.startswith("$") else name] = inner
            return made
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise InputError(
            f"{where} cannot be saved: it holds a {kind}, and model files have plain values only. "
            "Fit with plain values as settings."
        )

    def _array(self, array: np.ndarray, where: str) -> dict[str, Any]:
        if array.ndim > limits.DIMENSIONS:
            raise InputError(f"{where} cannot be saved: it is an array of {array.ndim} axes.")
        if array.dtype.kind in "UO":
            return self._texts(array, where)
        if array.dtype.str.lstrip("<>|=") not in DTYPES:
            raise InputError(
                f"{where} cannot be saved: it is an array of type {array.dtype}. Use numbers, "
                "truth values or text."
            )
        column_major = array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous
        stored = array.T if column_major else array
        stored = np.ascontiguousarray(stored, dtype=array.dtype.newbyteorder("<"))
        # A single number would have become an array of one.
        name = self._keep(stored.reshape(array.shape[::-1] if column_major else array.shape))
        node = {"$array": name}
        return {**node, "order": "F"} if column_major else node

    def _texts(self, array: np.ndarray, where: str) -> dict[str, Any]:
        listed = array.ravel().tolist()
        if not all(type(one) is str for one in listed):
            raise InputError(
                f"{where} cannot be saved: it is an array of objects that are not all text. Use "
                "numbers or text alone."
            )
        _printable("".join(listed), where)
        parts = [one.encode() for one in listed]
        data = np.frombuffer(b"".join(parts), dtype=np.uint8)
        ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
        return {
            "$texts": self._keep(data),
            "ends": self._keep(ends),
            "shape": list(array.shape),
            "dtype": array.dtype.kind,
        }

    def _keep(self, array: np.ndarray) -> str:
        name = f"a{len(self.arrays)}"
        self.arrays[name] = array
        return name


def _printable(text: str, where: str) -> str:
    if has_control(text):
        raise InputError(
            f"{where} cannot be saved: {text[:60]!a} holds control characters (line breaks, tabs, "
            "escape codes). Rename it before fit."
        )
    return text


# -- from files --------------------------------------------------------------------------------


def unpack_tree(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """Return the state tree of a value from JSON and its arrays; any fault is an InputError."""
    unpacker = _Unpacker(arrays)
    made = unpacker.tree(value, 0)
    if unpacker.left:
        raise InputError(f"an array {min(unpacker.left)!r} that no field refers to")
    return made


class _Unpacker:
    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.left = dict(arrays)

    def tree(self, node: Any, depth: int) -> Any:
        if node is None or type(node) in (bool, float):
            return node
        if type(node) is str:
            if has_control(node):
                raise InputError(f"text with control characters, {node[:40]!a}")
            return node
        if type(node) is int:
            if abs(node) >= limits.INTEGER:
                raise InputError("a whole number above 64 bits")
            return node
        if depth >= limits.DEPTH:
            raise InputError(f"it is nested more than {limits.DEPTH} levels deep")
        if type(node) is list:
            return [self.tree(one, depth + 1) for one in node]
        first = next(iter(node), "")
        if first.startswith("$") and not first.startswith("$$"):
            return self._special(node)
        made = {}
        for key, one in node.items():
            if (key.startswith("$") and not key.startswith("$$")) or has_control(key):
                raise InputError(f"a key {key[:40]!a} that is not allowed")
            made[key.removeprefix("$")] = self.tree(one, depth + 1)
        return made

    def _special(self, node: dict[str, Any]) -> Any:
        keys = list(node)
        if keys == ["$float"] and node["$float"] in ("nan", "inf", "-inf"):
            return _FLOATS[node["$float"]]
        if keys == ["$array"]:
            return self._take(node["$array"])
        if keys == ["$array", "order"] and node["order"] == "F":
            return self._take(node["$array"]).T
        if keys == ["$texts", "ends", "shape", "dtype"]:
            return self._texts(node)
        raise InputError(f"a value {keys[0][:40]!a} that is not allowed in model files")

    def _take(self, name: Any) -> np.ndarray:
        if type(name) is not str or name not in self.left:
            raise InputError(f"an array {str(name)[:40]!a} that does not exist, or is used twice")
        return self.left.pop(name)

    def _texts(self, node: dict[str, Any]) -> np.ndarray:
        data, ends = self._take(node["$texts"]), self._take(node["ends"])
        shape, dtype = node["shape"], node["dtype"]
        if data.dtype != np.uint8 or ends.dtype != np.int64 or data.ndim != 1 or ends.ndim != 1:
            raise InputError("an array of text without its letters or its ends")
        if type(shape) is not list or len(shape) > limits.DIMENSIONS or dtype not in ("U", "O"):
            raise InputError("an array of text without a shape or a type")
        # An axis is at most as long as there are texts, or as an array without cells may be.
        most = max(len(ends), limits.CELLS_OF_NOTHING)
        if not all(type(n) is int and 0 <= n <= most for n in shape):
            raise InputError("an array of text with an impossible shape")
        edges = np.concatenate([np.zeros(1, np.int64), ends])
        if (
            math.prod(shape) != len(ends)
            or (edges[1:] < edges[:-1]).any()
            or edges[-1] != len(data)
        ):
            raise InputError("an array of text that does not fit its ends")
        raw = data.tobytes()
        try:
            texts = [raw[a:b].decode() for a, b in pairwise(edges.tolist())]
        except UnicodeError:
            raise InputError("an array of text that is not UTF-8") from None
        if has_control("".join(texts)):
            raise InputError("an array of text with control characters")
        longest = max(map(len, texts), default=0)
        if dtype == "U" and 4 * longest * len(texts) <= limits.LARGEST_TEXT:
            return np.array(texts, dtype=f"<U{max(longest, 1)}").reshape(shape)
        made = np.empty(len(texts), dtype=object)
        made[:] = texts
        return made.reshape(shape)
