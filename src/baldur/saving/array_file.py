"""The array file in safetensors format; its header is checked before any array is read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from baldur.exceptions import InputError
from baldur.saving import limits
from baldur.saving.json_text import read_json

_WIDTH = {
    "BOOL": 1, "I8": 1, "U8": 1, "I16": 2, "U16": 2, "F16": 2, "I32": 4, "U32": 4, "F32": 4,
    "I64": 8, "U64": 8, "F64": 8,
}  # fmt: skip


def pack_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return the bytes of an array file."""
    return bytes(save_tensors(dict(arrays)))


def unpack_arrays(content: bytes) -> dict[str, np.ndarray]:
    """Return the arrays of an array file; any fault is an InputError."""
    names = list(_header(content))
    try:
        found = load_tensors(content)
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise InputError(f"it is not an array file ({error})") from None
    if set(found) != set(names):
        raise InputError("its header does not list what is in it")
    if any(
        one.dtype == bool and one.size and one.view(np.uint8).max() > 1 for one in found.values()
    ):
        # NumPy counts a mask by its bytes, and would read or write outside of an array.
        raise InputError("booleans that are neither 0 nor 1")
    # Copies lie where NumPy puts its own arrays, so products round as they did before saving. One
    # at a time, so that there are never two of all.
    return {name: np.array(found.pop(name)) for name in names}


def _header(content: bytes) -> dict[str, Any]:
    """Read the header and check that its arrays fill the rest of the file, one after the other."""
    size = int.from_bytes(content[:8], "little")
    if len(content) < 8 or size > len(content) - 8:
        raise InputError("it is cut short, or not an array file")
    header = read_json(content[8 : 8 + size], limits.HEADER_BYTES)
    if type(header) is not dict:
        raise InputError("its header is not a table")
    if len(header) > limits.ARRAYS:
        raise InputError(f"it has more than {limits.ARRAYS:,} arrays")
    spans = sorted(_span(name, about) for name, about in header.items())
    at = 0
    for start, end in spans:
        if start != at:
            raise InputError("its arrays overlap, or leave a gap")
        at = end
    if at != len(content) - 8 - size:
        raise InputError("it is cut short, or longer than its arrays")
    return header


def _span(name: str, about: Any) -> tuple[int, int]:
    """Return where an array begins and ends; each number is looked at before any is multiplied."""
    if len(name) > limits.ARRAY_NAME or not name.isascii() or not name.isalnum():
        raise InputError(f"an array has the name {name[:40]!a}")
    if type(about) is not dict or set(about) != {"dtype", "shape", "data_offsets"}:
        raise InputError(f"its header does not describe {name!r}")
    width = _WIDTH.get(about["dtype"]) if type(about["dtype"]) is str else None
    shape, offsets = about["shape"], about["data_offsets"]
    if width is None or type(shape) is not list or type(offsets) is not list:
        raise InputError(f"its header does not describe {name!r}")
    if len(shape) > limits.DIMENSIONS or len(offsets) != 2:
        raise InputError(f"the array {name!r} has more axes than any of a model")
    if not all(type(n) is int and 0 <= n <= limits.SIDE for n in (*shape, *offsets)):
        raise InputError(f"the array {name!r} has an impossible size")
    cells = math.prod(shape)
    if cells * width != offsets[1] - offsets[0]:
        raise InputError(f"the size of {name!r} is not what its shape says")
    if cells == 0 and any(n > limits.CELLS_OF_NOTHING for n in shape):
        raise InputError(
            f"the array {name!r} is empty, but one of its sides has length {max(shape):,}"
        )
    return offsets[0], offsets[1]
