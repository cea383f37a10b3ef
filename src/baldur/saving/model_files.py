"""The array file in safetensors format; its header is checked before any array is read."""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

import baldur
from baldur.exceptions import InputError
from baldur.saving import limits
from baldur.saving.estimator_state import kind_of
from baldur.saving.layout import FORMAT, SCHEMA
from baldur.saving.saved_model import SavedModel


def read_json(content: bytes, most_bytes: int) -> Any:
    """Return the value of a JSON text; any fault is an InputError."""
    if len(content) > most_bytes:
        raise InputError(f"it has {len(content):,} bytes, and {most_bytes:,} are the most")
    # Every value but the first follows one of these; text may hold more of them, never fewer.
    if sum(map(content.count, (b",", b"[", b"{"))) > limits.NODES:
        raise InputError(f"it has more than {limits.NODES:,} values")
    try:
        return json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_without_repeats,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except (ValueError, RecursionError) as error:
        said = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise InputError(f"it is not valid JSON for a model file ({said})") from None


def write_json(value: Any, indent: int | None = None) -> bytes:
    """Return the JSON text of a value, in ASCII, keys in the order they have."""
    separators = (",", ": ") if indent else (",", ":")
    text = json.dumps(value, separators=separators, allow_nan=False, indent=indent)
    return text.encode("ascii") + b"\n"


def checksum(value: bytes | dict[str, Any]) -> str:
    """Return the SHA-256 of bytes, or of a dictionary whatever its order and layout."""
    if isinstance(value, dict):
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
        value = text.encode("ascii")
    return hashlib.sha256(value).hexdigest()


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key occurs twice")
    return made


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number that JSON allows")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


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


COMPARED = ("model", "task", "classes", "views", "samples", "steps", "regress_out",
            "training_rows_inside", "fingerprint")  # fmt: skip
"""What a manifest must say as the loaded model does; the rest may be put otherwise one day."""


def describe(model: SavedModel) -> dict[str, Any]:
    """Return what a manifest says about a model, as JSON has it.

    A loaded model is described again and the two are compared, so a manifest cannot describe
    another model than the one beside it.
    """
    estimator, kind = model.estimator, kind_of(model.estimator)
    preparation = estimator.preparation_
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "model": kind,
        "class": type(estimator).__name__,
        "task": getattr(estimator, "_task", "regression"),
        "classes": [_plain(label) for label in model.classes],
        "views": [
            {"name": name, "features": int(width)} for name, width in model.n_features.items()
        ],
        "samples": int(preparation.n_samples_),
        "steps": [type(step).__name__ for step in preparation.steps_],
        "regress_out": [] if preparation.covariates_ is None else preparation.covariates_.names,
        "training_rows_inside": estimator.predictor.holds_training_rows,
        "fingerprint": fingerprint(preparation),
        "details": _plain(model.details),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries used for the fit."""
    found = {"baldur": baldur.__version__, "python": platform.python_version()}
    for name in ("numpy", "scikit-learn"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # installed without its metadata
            found[name] = "unknown"
    return found


def fingerprint(preparation: Any) -> str:
    """Return a checksum of what was learned about every column of the training rows.

    Number of rows, and mean, scale, smallest and largest value of every column: two models with one
    fingerprint saw the same data, or data that agree in all of these to the last digit.
    """
    found = hashlib.sha256(str(preparation.n_samples_).encode())
    for name, width in preparation.n_features_.items():
        found.update(f"\0{name}\0{width}".encode("utf-8", "surrogatepass"))
        for part in (
            preparation.mean_, preparation.scale_, preparation.minimum_, preparation.maximum_,
        ):  # fmt: skip
            found.update(np.ascontiguousarray(part[name], dtype="<f8").tobytes())
    return found.hexdigest()


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; what JSON does not know becomes text."""
    if value is None or type(value) in (bool, str, int):
        return value
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else repr(value)
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    return type(value).__name__
