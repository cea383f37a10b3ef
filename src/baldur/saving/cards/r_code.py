"""Numbers, lists and text as R writes them, for a machine that has R and nothing else."""

from __future__ import annotations

from typing import Any


def r_code(value: Any) -> str:
    """Return an R expression for a printed model: vectors, matrices, and lists of them."""
    if isinstance(value, dict):
        # An entry that is NULL is left out, which reads as NULL.
        parts = [f"{_name(k)} = {r_code(v)}" for k, v in value.items() if v is not None]
        return f"list({', '.join(parts)})"
    if isinstance(value, list):
        if value and all(_is_number(v) for v in value):
            return f"c({', '.join(map(r_code, value))})"
        if value and all(_is_row(v) and len(v) == len(value[0]) for v in value):
            cells = ", ".join(r_code(v) for row in value for v in row)
            return f"matrix(c({cells}), nrow = {len(value)}, byrow = TRUE)"
        return f"list({', '.join(map(r_code, value))})"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return "NULL" if value is None else repr(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_row(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(_is_number(v) for v in value)


def _text(value: str) -> str:
    """A string with everything but plain letters written as a code point."""
    plain = (c if c.isascii() and c.isprintable() and c not in '"\\' else _code(c) for c in value)
    return f'"{"".join(plain)}"'


def _code(character: str) -> str:
    number = ord(character)
    return f"\\u{{{number:x}}}" if number < 0x10000 else f"\\U{{{number:x}}}"


def _name(text: str) -> str:
    return f"`{text}`" if text.replace("_", "").isalnum() and text.isascii() else _text(text)
