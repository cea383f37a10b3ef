"""A study file as text to nested dictionaries, whoever wrote it."""

from __future__ import annotations

import re
import stat
import tomllib
from pathlib import Path
from typing import Any

from baldur.exceptions import StudyError
from baldur.safety.escape import has_control
from baldur.study.schema import problem

__all__ = ["parse_study"]

_MAX_FILE = 1 << 20
"""Longest study file: 1 MB, room for a list of 10,000 images."""

_MAX_PARTS = 100
"""Most parts of a dotted key: the parser takes the square of their number, hours for 1 MB."""

# The one option that may be a control character: tables are often separated by tabulators.
_MAY_BE_TAB = "separator"
_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'')
_BETWEEN_KEYS = re.compile(r"[=,\[\]{}\n#]")


def parse_study(file: Path) -> dict[str, Any]:
    """Return the content of a study file.

    Parameters
    ----------
    file : Path

    Returns
    -------
    dict
        Its names and texts hold no control characters.

    Raises
    ------
    StudyError
        One line that says what is wrong with the file.
    """
    text = _read(file)
    plain = _QUOTED.sub('""', text)
    if any(key.count(".") > _MAX_PARTS for key in _BETWEEN_KEYS.split(plain)):
        raise StudyError(f"{file.name}: a key has more than {_MAX_PARTS} parts; shorten it.")
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StudyError(
            f"{file.name}: not valid TOML: {error}; correct that line (text needs quotes)."
        ) from None
    except RecursionError:
        raise StudyError(
            f"{file.name}: lists or tables are nested too deeply; write them plainly."
        ) from None
    _check_texts(file.name, "", found)
    return found


def _read(file: Path) -> str:
    try:
        state = file.stat()
        if stat.S_ISREG(state.st_mode) and state.st_size > _MAX_FILE:
            raise StudyError(
                f"{file.name}: has {state.st_size:,} bytes, and a study file at most "
                f"{_MAX_FILE:,}; name files by a pattern instead of one by one."
            )
        if not stat.S_ISREG(state.st_mode) and not stat.S_ISDIR(state.st_mode):
            raise StudyError(f"{file}: cannot be read (no regular file); give a study file.")
        content = file.read_bytes()
    except FileNotFoundError:
        raise StudyError(
            f"{file}: there is no such study file; write one with 'baldur init {file}'."
        ) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise StudyError(f"{file}: cannot be read ({why}); give a study file.") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise StudyError(f"{file.name}: is not UTF-8 text; save it as UTF-8.") from None


def _check_texts(file: str, where: str, value: Any) -> None:
    """Refuse control characters in every key and every text below."""
    if isinstance(value, dict):
        for key, inner in value.items():
            _check_text(file, f"{where}.{key}" if where else key, key)
            if key != _MAY_BE_TAB:
                _check_texts(file, f"{where}.{key}" if where else key, inner)
    elif isinstance(value, list):
        for inner in value:
            _check_texts(file, where, inner)
    elif isinstance(value, str):
        _check_text(file, where, value)


def _check_text(file: str, where: str, text: str) -> None:
    if has_control(text):
        raise problem(
            file, where, f"{text[:80]!a} holds control characters",
            "write names and texts on one line, without escape codes",
        )  # fmt: skip
