"""Files of a state: a tree of plain values as JSON, and its arrays in safetensors format.

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

Each limit is checked before anything of that size is made. A model is saved only within them, so
that whatever was saved can be loaded.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from baldur.core.escape import has_control
from baldur.exceptions import InputError

NODES = 2_000_000
"""Values in one JSON file. Each takes some hundred bytes of memory once it is read."""

DEPTH = 40
"""Levels of nesting. Models have about 12."""

INTEGER = 2**64
"""Whole numbers are smaller than this: seeds have up to 64 bits."""

ARRAYS = 50_000
"""Arrays in one file, which take 3 s to read. A model of ten classes has some hundred."""

HEADER_BYTES = 16 << 20
"""Of the header of ``arrays.safetensors``: up to 150 bytes for each array."""

ARRAY_NAME = 12
"""Letters in the name of an array: they are called a0, a1 and so on."""

DIMENSIONS = 6
"""Axes of an array. Models have up to 4."""

CELLS_OF_NOTHING = 10_000_000
"""Length of an axis of an array without cells, whose length no byte in the file vouches for: the
features of the widest view (genotypes of whole genomes after imputation)."""

LARGEST_TEXT = 256 << 20
"""Bytes of an array of text in NumPy's fixed width, where every entry takes the room of the
longest. Above, it is read as an array of objects, which takes the room of its text."""

DTYPES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
"""Types of numbers an array may have."""


def write_json(value: Any, indent: int | None = None) -> bytes:
    """Return the JSON text of a value, in ASCII, keys in the order they have."""
    separators = (",", ": ") if indent else (",", ":")
    text = json.dumps(value, separators=separators, allow_nan=False, indent=indent)
    return text.encode("ascii") + b"\n"


def read_json(content: bytes, most_bytes: int) -> Any:
    """Return the value of a JSON text; any fault is an InputError."""
    if len(content) > most_bytes:
        raise InputError(f"it has {len(content):,} bytes, and {most_bytes:,} are the most")
    # Every value but the first follows one of these; text may hold more of them, never fewer.
    if sum(map(content.count, (b",", b"[", b"{"))) > NODES:
        raise InputError(f"it has more than {NODES:,} values")
    try:
        return json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_without_repeats,
            parse_constant=_finite,
            parse_float=_finite,
        )
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise InputError(f"it is not valid JSON for a model file ({reason})") from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key occurs twice")
    return values


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits[:40]} is not a number that JSON allows, or is too large")
    return value


def checksum(value: bytes | dict[str, Any]) -> str:
    """Return the SHA-256 of bytes, or of a dictionary whatever its order and layout."""
    if isinstance(value, dict):
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
        value = text.encode("ascii")
    return hashlib.sha256(value).hexdigest()


# -- to files ----------------------------------------------------------------------------------


def pack_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return the bytes of an array file."""
    return bytes(save_tensors(dict(arrays)))


def pack_tree(tree: Any) -> tuple[Any, dict[str, np.ndarray]]:
    """Return plain values (`baldur.core.state.plain`) as a value for JSON, and arrays by name."""
    arrays: dict[str, np.ndarray] = {}
    return _pack(tree, "model", 0, arrays), arrays


def _pack(value: Any, where: str, depth: int, arrays: dict[str, np.ndarray]) -> Any:
    """Return a value for JSON, and add its arrays to `arrays`; `where` names it in errors."""
    if isinstance(value, np.ndarray):
        return _pack_array(value, where, arrays)
    if isinstance(value, str):
        return _check_printable(value, where)
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if value is None or (isinstance(value, int) and abs(value) < INTEGER):
        return value
    if depth >= DEPTH:
        raise InputError(f"{where} cannot be saved: it is nested too deeply.")
    if isinstance(value, list):
        return [_pack(v, f"{where}[{i}]", depth + 1, arrays) for i, v in enumerate(value)]
    if isinstance(value, dict):
        packed = {}
        for key, entry in value.items():
            inner = _pack(entry, f"{where}.{_check_printable(key, where)}", depth + 1, arrays)
            packed[f"${key}" if key.startswith("$") else key] = inner
        return packed
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    raise InputError(
        f"{where} cannot be saved: it holds a {kind}, and model files have plain values only, with "
        "whole numbers below 2^64. Fit with plain values as settings."
    )


def _pack_array(array: np.ndarray, where: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the node that stands for an array, and add its cells to `arrays`."""
    if array.ndim > DIMENSIONS:
        raise InputError(f"{where} cannot be saved: it is an array of {array.ndim} axes.")
    texts = array.ravel().tolist() if array.dtype.kind in "UO" else None
    if texts is not None and all(type(text) is str for text in texts):
        _check_printable("".join(texts), where)
        parts = [text.encode() for text in texts]
        return {
            "$texts": _add(np.frombuffer(b"".join(parts), dtype=np.uint8), arrays),
            "ends": _add(np.cumsum([len(part) for part in parts], dtype=np.int64), arrays),
            "shape": list(array.shape),
            "dtype": array.dtype.kind,
        }
    if texts is not None or array.dtype.str.lstrip("<>|=") not in DTYPES:
        kind = "objects that are not all text" if texts is not None else f"type {array.dtype}"
        raise InputError(
            f"{where} cannot be saved: it is an array of {kind}. Use numbers, truth values or text."
        )
    column_major = array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous
    stored = array.T if column_major else array
    cells = np.ascontiguousarray(stored, dtype=array.dtype.newbyteorder("<"))
    # `ascontiguousarray` has made an array of one axis of a single number.
    content = cells.reshape(stored.shape)
    node = {"$array": _add(content, arrays)}
    return {**node, "order": "F"} if column_major else node


def _add(array: np.ndarray, arrays: dict[str, np.ndarray]) -> str:
    name = f"a{len(arrays)}"
    arrays[name] = array
    return name


def _check_printable(text: str, where: str) -> str:
    if has_control(text):
        raise InputError(
            f"{where} cannot be saved: {text[:60]!a} holds control characters (line breaks, tabs, "
            "escape codes). Rename it before fit."
        )
    return text


# -- from files --------------------------------------------------------------------------------


def unpack_arrays(content: bytes) -> dict[str, np.ndarray]:
    """Return the arrays of an array file; any fault is an InputError."""
    size = int.from_bytes(content[:8], "little")  # of the header, which is JSON
    if len(content) < 8 or size > len(content) - 8:
        raise InputError("it is cut short, or not an array file")
    header = read_json(content[8 : 8 + size], HEADER_BYTES)
    if type(header) is not dict:
        raise InputError("its header is not a table")
    if len(header) > ARRAYS:
        raise InputError(f"it has more than {ARRAYS:,} arrays")
    try:
        # It refuses sizes that do not agree with the shapes, overlaps, gaps and unknown types.
        arrays = load_tensors(content)
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise InputError(f"it is not an array file ({str(error)[:120]})") from None
    if set(arrays) != set(header):
        raise InputError("its header does not list what is in it")
    for name, array in arrays.items():
        _check_array(name, array)
    # Copies lie where NumPy puts its own arrays, so products round as they did before saving. One
    # at a time, so that there are never two of all.
    return {name: np.array(arrays.pop(name)) for name in header}


def _check_array(name: str, array: np.ndarray) -> None:
    """Refuse an array that no model has."""
    if len(name) > ARRAY_NAME or not name.isascii() or not name.isalnum():
        raise InputError(f"an array has the name {name[:40]!a}")
    if array.ndim > DIMENSIONS or array.dtype.str.lstrip("<>|=") not in DTYPES:
        raise InputError(f"the array {name!r} has more axes than any of a model, or another type")
    if not array.size and max(array.shape) > CELLS_OF_NOTHING:
        raise InputError(
            f"the array {name!r} is empty, but one of its sides has length {max(array.shape):,}"
        )
    if array.dtype == bool and array.size and array.view(np.uint8).max() > 1:
        # NumPy counts a mask by its bytes, and would read or write outside of an array.
        raise InputError("booleans that are neither 0 nor 1")


def unpack_tree(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """Return the state tree of a value from JSON and its arrays; any fault is an InputError."""
    unused = dict(arrays)
    tree = _unpack(value, 0, unused)
    if unused:
        raise InputError(f"an array {min(unused)!r} that no field refers to")
    return tree


def _unpack(node: Any, depth: int, unused: dict[str, np.ndarray]) -> Any:
    """Return what a node of JSON stands for, and take its arrays out of `unused`."""
    if type(node) is str and has_control(node):
        raise InputError(f"text with control characters, {node[:40]!a}")
    if type(node) is int and abs(node) >= INTEGER:
        raise InputError("a whole number above 64 bits")
    if type(node) not in (list, dict):
        return node
    if depth >= DEPTH:
        raise InputError(f"it is nested more than {DEPTH} levels deep")
    if type(node) is list:
        return [_unpack(entry, depth + 1, unused) for entry in node]
    if _is_special(next(iter(node), "")):
        return _unpack_special(node, unused)
    tree = {}
    for key, entry in node.items():
        if _is_special(key) or has_control(key):
            raise InputError(f"a key {key[:40]!a} that is not allowed")
        tree[key.removeprefix("$")] = _unpack(entry, depth + 1, unused)
    return tree


def _is_special(key: str) -> bool:
    return key.startswith("$") and not key.startswith("$$")


def _unpack_special(node: dict[str, Any], unused: dict[str, np.ndarray]) -> Any:
    """Return the number, array or texts that an object with a key of ``$`` stands for."""
    keys = list(node)
    if keys == ["$float"] and node["$float"] in ("nan", "inf", "-inf"):
        return float(node["$float"])
    if keys == ["$array"]:
        return _take(node["$array"], unused)
    if keys == ["$array", "order"] and node["order"] == "F":
        return _take(node["$array"], unused).T
    if keys == ["$texts", "ends", "shape", "dtype"]:
        data, ends = _take(node["$texts"], unused), _take(node["ends"], unused)
        return _unpack_texts(data, ends, node["shape"], node["dtype"])
    raise InputError(f"a value {keys[0][:40]!a} that is not allowed in model files")


def _take(name: Any, unused: dict[str, np.ndarray]) -> np.ndarray:
    if type(name) is not str or name not in unused:
        raise InputError(f"an array {str(name)[:40]!a} that does not exist, or is used twice")
    return unused.pop(name)


def _unpack_texts(data: np.ndarray, ends: np.ndarray, shape: Any, dtype: Any) -> np.ndarray:
    """Return an array of text from its letters and where each text ends."""
    if data.dtype != np.uint8 or ends.dtype != np.int64 or data.ndim != 1 or ends.ndim != 1:
        raise InputError("an array of text without its letters or its ends")
    if type(shape) is not list or len(shape) > DIMENSIONS or dtype not in ("U", "O"):
        raise InputError("an array of text without a shape or a type")
    # An axis is at most as long as there are texts, or as an array without cells may be.
    most = max(len(ends), CELLS_OF_NOTHING)
    if not all(type(n) is int and 0 <= n <= most for n in shape):
        raise InputError("an array of text with an impossible shape")
    edges = np.concatenate([np.zeros(1, np.int64), ends])
    ordered = (edges[1:] >= edges[:-1]).all() and edges[-1] == len(data)
    if math.prod(shape) != len(ends) or not ordered:
        raise InputError("an array of text that does not fit its ends")
    raw = data.tobytes()
    try:
        texts = [raw[a:b].decode() for a, b in pairwise(edges.tolist())]
    except UnicodeError:
        raise InputError("an array of text that is not UTF-8") from None
    if has_control("".join(texts)):
        raise InputError("an array of text with control characters")
    longest = max(map(len, texts), default=0)
    if dtype == "U" and 4 * longest * len(texts) <= LARGEST_TEXT:
        return np.array(texts, dtype=f"<U{max(longest, 1)}").reshape(shape)
    return np.array(texts, dtype=object).reshape(shape)
