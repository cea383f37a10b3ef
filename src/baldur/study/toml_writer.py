"""Write nested dictionaries as TOML, the same bytes every time."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["dump_toml"]

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def dump_toml(data: dict[str, Any]) -> str:
    """Return a dictionary as TOML.

    Parameters
    ----------
    data : dict
        Text, numbers, true and false, lists, dictionaries; None is left out.

    Returns
    -------
    str
    """
    lines: list[str] = []
    _section(data, [], lines)
    return "\n".join(lines).strip() + "\n"


def _section(data: dict[str, Any], path: list[str], lines: list[str]) -> None:
    plain = {k: v for k, v in data.items() if not _is_table(v) and not _is_tables(v)}
    for key, value in plain.items():
        if value is not None:
            lines.append(f"{_key(key)} = {_value(value)}")
    for key, value in data.items():
        where = [*path, key]
        if _is_table(value):
            lines += ["", f"[{'.'.join(map(_key, where))}]"]
            _section(value, where, lines)
        elif _is_tables(value):
            for one in value:
                lines += ["", f"[[{'.'.join(map(_key, where))}]]"]
                for inner, cell in one.items():
                    if cell is not None:
                        lines.append(f"{_key(inner)} = {_value(cell)}")


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    # JSON's escapes are TOML's, apart from DEL, which TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    if isinstance(value, dict):
        inside = ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None)
        return "{ " + inside + " }" if inside else "{}"
    raise TypeError(f"TOML has no form for {type(value).__name__}")
