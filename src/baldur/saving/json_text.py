"""JSON in model folders, read within limits and without repeated keys or NaN."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

from baldur.exceptions import InputError
from baldur.saving import limits


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
