"""The array file: safetensors, read only after its header was found to tell the truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from baldur.exceptions import InputError
from baldur.persist.plain import read_json

__all__ = ["pack_arrays", "unpack_arrays"]

_WIDTH = {
    "BOOL": 1, "I8": 1, "U8": 1, "I16": 2, "U16": 2, "F16": 2, "I32": 4, "U32": 4, "F32": 4,
    "I64": 8, "U64": 8, "F64": 8,
}  # fmt: skip
MOST_HEADER = 100_000_000
"""Bytes of a header, the limit of the format itself."""


def pack_arrays(arrays: Mapping[str, np.ndarray], notes: Mapping[str, str]) -> bytes:
    """Return the bytes of an array file.

    Parameters
    ----------
    arrays : dict of str to ndarray
        C-contiguous.
    notes : dict of str to str
        For the header.

    Returns
    -------
    bytes
    """
    return bytes(save_tensors(dict(arrays), dict(notes)))


def unpack_arrays(content: bytes) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the arrays and the notes of an array file; any fault is an InputError.

    Parameters
    ----------
    content : bytes
        The file.

    Returns
    -------
    arrays : dict of str to ndarray
        In memory of their own.
    notes : dict of str to str
    """
    header = _header(content)
    notes = header.pop("__metadata__", {})
    if not isinstance(notes, dict) or not all(isinstance(v, str) for v in notes.values()):
        raise InputError("its header has notes that are no text")
    try:
        found = load_tensors(content)
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise InputError(f"it is no array file ({error})") from None
    if set(found) != set(header):
        raise InputError("its header does not tell what is in it")
    # Copies lie where NumPy puts its own arrays, so products round as they did before saving.
    return {name: np.array(found[name]) for name in header}, notes


def _header(content: bytes) -> dict[str, Any]:
    """Read the header and check that the arrays tile the rest of the file."""
    size = int.from_bytes(content[:8], "little")
    if len(content) < 8 or size > min(MOST_HEADER, len(content) - 8):
        raise InputError("it is cut short, or no array file")
    header = read_json(content[8 : 8 + size])
    if not isinstance(header, dict):
        raise InputError("its header is no table")
    spans = []
    for name, about in header.items():
        if name == "__metadata__":
            continue
        try:
            width, shape = _WIDTH[about["dtype"]], about["shape"]
            start, end = about["data_offsets"]
            whole = all(type(n) is int and n >= 0 for n in (*shape, start, end))
        except (KeyError, TypeError, ValueError):
            raise InputError(f"its header does not describe {name[:40]!r}") from None
        cells = 1
        for n in shape if whole else ():
            cells *= n
        if not whole or len(shape) > 8 or cells * width != end - start:
            raise InputError(f"the size of {name[:40]!r} is not what its shape says")
        spans.append((start, end))
    at = 0
    for start, end in sorted(spans):
        if start != at:
            raise InputError("its arrays overlap, or leave a gap")
        at = end
    if at != len(content) - 8 - size:
        raise InputError("it is cut short, or longer than its arrays")
    return header
