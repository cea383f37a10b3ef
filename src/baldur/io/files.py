"""Checks of files before they are parsed, and of the ids and column names that they hold."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.escape import check_names, has_control, one_line
from baldur.core.limits import MAX_BYTES, ReadLimits, text_array
from baldur.exceptions import BaldurError, InputError
from baldur.views.validate import check_unique, repeated, some

_DOUBLE = (".nii.gz", ".csv.gz", ".tsv.gz", ".tab.gz", ".txt.gz")


def file_ending(path: Path) -> str:
    """Return the lower-case ending of a file name, both parts of '.nii.gz' and the like."""
    name = path.name.lower()
    for double in _DOUBLE:
        if name.endswith(double):
            return double
    return path.suffix.lower()


def as_path(file: Any) -> Path:
    """Turn text or a path into a Path; refuse addresses and anything else."""
    if not isinstance(file, (str, os.PathLike)):
        raise InputError(f"Expected the path of a file, but got {type(file).__name__}: {file!r}.")
    text = os.fspath(file)
    if isinstance(text, bytes):
        text = os.fsdecode(text)
    if has_control(text) or not text.strip():
        raise InputError(f"Expected the path of a file, but got {text!a}.")
    if "://" in text:
        raise InputError(
            f"{text}: files are read from disk, and nothing is fetched from an address. Download "
            "the file and give its path."
        )
    return Path(text)


def find_file(file: Any, what: str, suffixes: Sequence[str] = ()) -> Path:
    """Return the path of a regular, non-empty file with one of the endings, or raise an error.

    Devices and pipes are refused: reading one may never end.
    """
    path = as_path(file)
    if suffixes and file_ending(path) not in suffixes:
        raise InputError(
            f"{path}: expected {what} ({', '.join(suffixes)}), but the name ends in "
            f"{file_ending(path) or 'nothing'!r}. Convert the file, or rename it if only its name "
            "is wrong."
        )
    try:
        state = path.stat()
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: expected {what}, but {_reason(path, error)}.") from error
    if not stat.S_ISREG(state.st_mode):
        kind = "a folder" if stat.S_ISDIR(state.st_mode) else "not a regular file"
        raise InputError(f"{path}: expected {what}, but the path is {kind}.")
    if state.st_size == 0:
        raise InputError(f"{path}: expected {what}, but the file is empty. Write or copy it again.")
    return path


def _reason(path: Path, error: Exception) -> str:
    """Return for a message why a file cannot be found or read."""
    if isinstance(error, FileNotFoundError):
        # Going up as far as something exists tells a typing mistake from a missing disk.
        existing = path.absolute()
        while not existing.exists() and existing != existing.parent:
            existing = existing.parent
        return f"there is no such file; the path exists up to {existing}"
    if isinstance(error, PermissionError):
        return "reading it is not permitted"
    return str(error)


def check_unique_columns(path: Path | str, names: Sequence[str]) -> None:
    """Refuse column names that occur twice."""
    check_unique(str(path), "column names", names, "Rename these columns.")


def check_header(path: Path, names: list[str]) -> None:
    """Refuse names of columns that are missing, repeated or not printable."""
    check_unique_columns(path, names)
    check_names(names, "column name", str(path))
    unnamed = [j for j, name in enumerate(names) if not name and j > 0]
    if unnamed or not names:
        raise InputError(
            f"{path}: every column but the first needs a name, but column "
            f"{unnamed[0] + 1 if unnamed else 1} has none. Add it to the header line."
        )


def id_position(path: Path, id_column: str | int | None, names: Sequence[str]) -> int | None:
    """Return the number of the column of sample ids, None where no column holds them."""
    if id_column is None:
        return None
    if isinstance(id_column, int) and not isinstance(id_column, bool):
        if 0 <= id_column < len(names):
            return id_column
    elif isinstance(id_column, str) and id_column in names:
        return list(names).index(id_column)
    raise InputError(
        f"{path}: id_column must be a column name, a number from 0 to {len(names) - 1} or "
        f"None, but got {id_column!r}; the columns are {some(names)}."
    )


@contextmanager
def parsing(path: Path | str, what: str) -> Iterator[None]:
    """Turn any exception of a parser into an error that names the file."""
    try:
        yield
    except (BaldurError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except MemoryError as error:
        raise InputError(
            f"{path}: there is not enough memory to read it as {what}; the file is too large, or "
            "damaged so that it claims to be."
        ) from error
    # Parsers written in other languages raise outside Exception as well (a panic in Rust).
    except BaseException as error:
        # What a parser says may quote the file.
        reason = one_line(str(error)[:1000])[:300] or type(error).__name__
        raise InputError(
            f"{path}: cannot be read as {what}: {reason}. The file is damaged, cut short, or of "
            "another kind than its name says; write or copy it again."
        ) from error


def check_ids(ids: Any, n: int, origin: str, limits: ReadLimits | None = None) -> np.ndarray:
    """Return sample ids as text (whole numbers stay numbers), or explain what is wrong."""
    # There may be millions: the time is looked at between any two passes over them.
    check_time = (lambda: None) if limits is None else limits.check_time
    # Not an array of text yet, which would be as wide as its longest entry.
    array = ids if isinstance(ids, np.ndarray) else np.asarray(ids, dtype=object)
    if array.shape != (n,):
        raise InputError(
            f"{origin}: expected {n} sample ids, one per row, but got "
            f"{len(array) if array.ndim else 'one value'}."
        )
    if array.dtype == object and pd.api.types.infer_dtype(array, skipna=False) == "integer":
        array = np.asarray(ids)
    if array.dtype.kind in "iu":
        checked = array
    else:
        check_time()
        texts = [str(v).strip() for v in ids]
        lacking = np.flatnonzero(pd.isna(array) | (np.asarray(texts, dtype=object) == ""))
        if lacking.size:
            raise InputError(
                f"{origin}: every row needs a sample id, but {len(lacking)} of {n} have none "
                f"(first at row {lacking[0] + 1}). Fill them in, or name another column."
            )
        check_time()
        checked = text_array(texts, origin, MAX_BYTES if limits is None else limits.max_bytes)
        check_time()
        check_names(texts, "sample id", origin)
    check_time()
    if twice := repeated(checked):
        check_time()
        rows = (np.flatnonzero(checked == twice[0]) + 1).tolist()
        raise InputError(
            f"{origin}: sample ids must be unique, but {some(twice)} "
            f"{'occurs' if len(twice) == 1 else 'occur'} more than once ({twice[0]!r} in rows "
            f"{some(rows)}). Remove or rename the repeated rows, or name the column that tells "
            "them apart."
        )
    return checked
