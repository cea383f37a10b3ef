"""Read the tables of a results folder: their form, columns and types are checked.

A folder may come from somebody else, may have been edited, or may be cut off by a full disk.
Nothing in it is run or unpickled. What does not fit is refused by an `InputError` of one line that
names the file, the place and what to do.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.escape import one_line, unescape_cell, unescape_frame
from baldur.evaluation.result_files import (
    ANY,
    COUNT,
    COUNTS,
    GRIDS,
    NUMBER,
    RECALIBRATED,
    SHARE,
    TABLES,
    TEXT,
)
from baldur.exceptions import InputError

AGAIN = "Run the study again, or restore the file."
"""What to do about a damaged file."""
_LARGEST_RECORD = 20_000_000
"""Bytes of a JSON file; that of a study with a thousand models has less than one million."""
_LARGEST = 1 << 28
"""Bytes of a table: three million predictions fit, and reading takes up to ten times as much
memory."""
_LONGEST_HEADING = 1 << 20
_MOST_COLUMNS = 10_000
"""Bytes and columns of a heading; predictions have a column for each class."""


def read_json_file(file: Path) -> Any:
    """Return the content of a JSON file, or refuse it in one line."""
    try:
        if file.stat().st_size > _LARGEST_RECORD:
            raise InputError(f"{file} is larger than {_LARGEST_RECORD:,} bytes. {AGAIN}")
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{file} cannot be read as JSON: {one_line(str(error))}. {AGAIN}"
        ) from None


def is_number(value: Any) -> bool:
    """Return whether a value of a JSON file is a finite number."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    # Whole numbers of JSON have any length; those beyond a float are refused by the comparison.
    return abs(value) <= sys.float_info.max


def read_result_table(folder: str | Path, name: str) -> pd.DataFrame:
    """Read one table of a results folder and check it."""
    file = Path(folder) / f"{name}.csv"
    if not file.is_file():
        return pd.DataFrame()
    schema = TABLES[name.removeprefix(RECALIBRATED)]
    try:
        _check_form(file)
        heading = list(pd.read_csv(file, nrows=0, index_col=False).columns)
        types = {column: schema.type_of(unescape_cell(column)) for column in heading}
        if {"label", "predicted"} & {c for c, t in types.items() if t == ANY}:
            types |= _types_of_labels(name, heading)
        texts = [column for column, kind in types.items() if kind in (TEXT, COUNTS)]
        frame = pd.read_csv(
            file,
            dtype=dict.fromkeys(texts, str),
            index_col=False,
            keep_default_na=False,
            na_values={column: [""] for column in heading if column not in texts},
            float_precision="round_trip",
        )
    except InputError:
        raise
    except (OSError, ValueError, OverflowError) as error:
        raise InputError(
            f"{file} cannot be read as a table: {one_line(str(error))}. {AGAIN}"
        ) from None
    lacking = [c for c in schema.columns if c not in {unescape_cell(h) for h in heading}]
    if lacking:
        raise InputError(f"{file} has no column {lacking[0]!r}. {AGAIN}")
    for column in heading if len(frame) else ():
        _check(frame[column], types[column], file)
    return unescape_frame(frame)


def _check_form(file: Path) -> None:
    """Refuse a table that is too large or too wide to be read, or truncated."""
    with file.open("rb") as stream:
        size = stream.seek(0, 2)
        if size > _LARGEST:
            raise InputError(f"{file} is larger than {_LARGEST:,} bytes. {AGAIN}")
        stream.seek(max(size - 1, 0))
        if size > 0 and stream.read(1) != b"\n":
            raise InputError(f"{file} is truncated: its last line has no line break. {AGAIN}")
        stream.seek(0)
        start = stream.read(_LONGEST_HEADING).splitlines(keepends=True)
    quotes = commas = 0
    for line in start:
        quotes += line.count(b'"')
        commas += line.count(b",")
        # A line end between quotes belongs to a name.
        if line.endswith(b"\n") and quotes % 2 == 0:
            break
    else:
        commas = _MOST_COLUMNS if start else 0
    if commas >= _MOST_COLUMNS:
        raise InputError(f"{file} has a heading of more than {_MOST_COLUMNS:,} columns. {AGAIN}")


def _types_of_labels(name: str, heading: list[str]) -> dict[str, str]:
    """Return the types of outcomes: names of classes, or numbers in regression."""
    if name == "presence":
        # Only run.json says whether these are names; both can be read as text.
        return {"label": TEXT}
    classes = any(unescape_cell(column).startswith("p_") for column in heading)
    return dict.fromkeys({"label", "predicted"} & set(heading), TEXT if classes else NUMBER)


def _check(column: pd.Series, kind: str, file: Path) -> None:
    """Refuse a column that does not have its type, and say where."""
    if kind == ANY:
        return
    if kind == TEXT:
        bad, wanted = column.isna(), "a text"
    elif kind == COUNTS:
        good = column.str.fullmatch(r"\d{1,12}(;\d{1,12})*").astype("boolean")
        bad, wanted = ~good.fillna(False).astype(bool), "whole numbers, such as 3;0;2"
    elif pd.api.types.is_bool_dtype(column):
        bad, wanted = column.notna(), "a number"
    elif not pd.api.types.is_numeric_dtype(column):
        bad = column.notna() & pd.to_numeric(column, errors="coerce").isna()
        wanted = "a number"
    elif kind == COUNT:
        values = column.to_numpy(dtype=float)
        with np.errstate(invalid="ignore"):
            whole = (values >= 0) & (values == np.floor(values)) & (values < 2**53)
        bad, wanted = ~whole & ~np.isnan(values), "a whole number"
    elif kind == SHARE:
        bad, wanted = ~column.between(0, 1), "a number from 0 to 1"
    else:
        return
    if bad.any():
        at = int(np.flatnonzero(np.asarray(bad, dtype=bool))[0])
        seen = one_line(str(column.iloc[at]))[:40]
        raise InputError(
            f"{file}: column {column.name!r} should hold {wanted}, but line {at + 2} has {seen!r}. "
            f"{AGAIN}"
        )
    if kind in (NUMBER, SHARE, COUNT) and not pd.api.types.is_numeric_dtype(column):
        raise InputError(f"{file}: column {column.name!r} does not hold numbers. {AGAIN}")


def read_grids(folder: str | Path) -> dict[str, dict[str, Any]]:
    """Read shape and affine of every view made of images; empty where there is none."""
    file = Path(folder) / GRIDS
    if not file.is_file():
        return {}
    grids = read_json_file(file)
    good = isinstance(grids, dict) and all(
        isinstance(grid, dict)
        and _is_numbers(grid.get("shape"), 3)
        and isinstance(grid.get("affine"), list)
        and len(grid["affine"]) == 4
        and all(_is_numbers(row, 4) for row in grid["affine"])
        for grid in grids.values()
    )
    if not good:
        raise InputError(f"{file} does not hold the grids of images. {AGAIN}")
    return dict(grids)


def _is_numbers(value: Any, length: int) -> bool:
    return isinstance(value, list) and len(value) == length and all(map(is_number, value))


def digest(content: bytes) -> str:
    """Return the SHA-256 digest of a file's content, as ``run.json`` records it."""
    return hashlib.sha256(content).hexdigest()


def changed_files(folder: str | Path, record: Mapping[str, Any]) -> dict[str, str]:
    """Return which recorded files are missing, or differ from what the study wrote."""
    changes = {}
    for name, wanted in record.get("files", {}).items():
        stem, _, ending = name.rpartition(".")
        if not (ending == "csv" and stem in TABLES) and name != GRIDS:
            continue  # only files that this reader knows; a name may point anywhere
        file = Path(folder) / name
        if not file.is_file():
            changes[name] = "missing"
        elif file.stat().st_size > _LARGEST or digest(file.read_bytes()) != wanted:
            changes[name] = "changed"
    return changes
