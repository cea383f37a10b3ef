"""JSON as a model file has it: no key twice, no number that JSON does not know."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from baldur.exceptions import InputError

__all__ = ["digest", "read_json", "write_json"]


def read_json(content: bytes) -> Any:
    """Parse JSON; any fault is an InputError."""
    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=_once, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        said = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise InputError(f"it is no JSON ({said})") from None


def write_json(value: Any, indent: int | None = None, sort: bool = True) -> bytes:
    """Return the JSON text of a value, in ASCII alone, with sorted keys unless told otherwise."""
    separators = (",", ": ") if indent else (",", ":")
    text = json.dumps(value, sort_keys=sort, separators=separators, allow_nan=False, indent=indent)
    return text.encode("ascii") + b"\n"


def digest(value: bytes | dict[str, Any]) -> str:
    """Return the SHA-256 of bytes, or of the JSON text of a table."""
    content = value if isinstance(value, bytes) else write_json(value)
    return hashlib.sha256(content).hexdigest()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key comes twice")
    return made


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")
