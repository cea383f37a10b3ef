"""Text tables (CSV, TSV): checked line by line, then parsed by pandas."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from typing import Any

import pandas as pd

from baldur.exceptions import InputError
from baldur.io._files import check_size, parsing, suffix_of
from baldur.views.validate import some

__all__ = ["SEPARATORS", "id_position", "read_delimited"]

SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}

_CHUNK = 1 << 20
_WIDEST_CELL = 1 << 17
_ADVICE = "Give a larger max_bytes=, or save the table as .npy, .npz or Parquet."


def read_delimited(
    path: Path,
    *,
    separator: str | None,
    decimal: str,
    encoding: str,
    missing: list[str],
    id_column: str | int | None,
    max_bytes: int,
    as_text: bool = False,
) -> pd.DataFrame:
    """Return the table; the column of ids is text exactly as written, leading zeros included.

    With `as_text` every cell is.
    """
    text = _decode(_bytes(path, max_bytes), path, encoding)
    if separator is None:
        separator = SEPARATORS[suffix_of(path).removesuffix(".gz")]
    header, raw_ids = _check_lines(text, path, separator, id_column)
    with parsing(path, "a text table"):
        frame = pd.read_csv(
            io.StringIO(text),
            sep=separator,
            header=0,
            names=list(range(len(header))),
            index_col=False,
            na_values=missing,
            keep_default_na=False,
            decimal=decimal,
            low_memory=False,
            float_precision=None if decimal != "." else "round_trip",
            dtype=str if as_text else None,
            na_filter=not as_text,
        )
    frame.columns = pd.Index(header)
    if raw_ids is not None:
        frame[header[id_position(id_column, header)]] = pd.Series(raw_ids, dtype=object)
    return frame


def id_position(id_column: str | int | None, header: list[str]) -> int:
    """Return the number of the column of ids, or -1 where there is no such column."""
    if isinstance(id_column, str):
        return header.index(id_column) if id_column in header else -1
    if isinstance(id_column, int) and not isinstance(id_column, bool):
        return id_column if 0 <= id_column < len(header) else -1
    return -1


def _bytes(path: Path, max_bytes: int) -> bytes:
    """Read a file whole; a compressed one only as far as the limit."""
    check_size(path, path.stat().st_size, max_bytes, _ADVICE)
    if not suffix_of(path).endswith(".gz"):
        return path.read_bytes()
    pieces, size = [], 0
    with parsing(path, "a compressed text table"), gzip.open(path) as stream:
        while piece := stream.read(_CHUNK):
            size += len(piece)
            check_size(path, size, max_bytes, _ADVICE)
            pieces.append(piece)
    return b"".join(pieces)


def _decode(raw: bytes, path: Path, encoding: str) -> str:
    if b"\0" in raw and not encoding.lower().replace("_", "-").startswith("utf-16"):
        raise InputError(
            f"{path}: expected a text table, but it holds zero bytes, as binary files do. If it is "
            "text in UTF-16, give encoding='utf-16'; otherwise the file is of another kind."
        )
    try:
        return raw.decode("utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding)
    except (UnicodeDecodeError, LookupError) as error:
        raise InputError(
            f"{path}: cannot be read as text in {encoding} ({error}). Give the encoding it was "
            "written in, often encoding='latin-1' or 'cp1252'."
        ) from error


def _check_lines(
    text: str, path: Path, separator: str, id_column: str | int | None
) -> tuple[list[str], list[str] | None]:
    """Return header and ids as written, and refuse lines with more or fewer fields than the header.

    pandas fills short lines with missing cells, which would hide a file that was cut short.
    """
    header: list[str] = []
    ids: list[str] = []
    at = -1
    lines = 0
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    with parsing(path, "a text table"):
        for fields in reader:
            if not fields:
                continue
            if not header:
                header = fields
                _check_separator(path, header, separator)
                continue
            lines += 1
            if lines == 1:
                # R leaves the header cell of the row names out.
                if len(header) == len(fields) - 1:
                    header = ["", *header]
                at = id_position(id_column, [name.strip() for name in header])
            if len(fields) != len(header):
                raise InputError(
                    f"{path}: line {reader.line_num} has {len(fields)} fields and the header has "
                    f"{len(header)}. The file was cut short, or a cell holds the separator "
                    f"{separator!r} without quotes."
                )
            if at >= 0:
                ids.append(fields[at])
    if not lines:
        raise InputError(
            f"{path}: expected a header and at least one row, but found "
            f"{'only a header' if header else 'nothing'}."
        )
    names = [name.strip() for name in header]
    twice = sorted({name for name in names if names.count(name) > 1}) if _repeats(names) else []
    if twice:
        raise InputError(
            f"{path}: column names must be unique, but {some(twice)} "
            f"{'occurs' if len(twice) == 1 else 'occur'} more than once. Rename these columns."
        )
    unnamed = [j for j, name in enumerate(names) if not name and j > 0]
    if unnamed:
        raise InputError(
            f"{path}: every column but the first needs a name, but column {unnamed[0] + 1} has "
            "none. Add it to the header line."
        )
    return names, ids if at >= 0 else None


def _check_separator(path: Path, header: list[str], separator: str) -> None:
    if len(header) > 1:
        return
    for other in ";\t,|":
        if other != separator and other in header[0]:
            raise InputError(
                f"{path}: expected columns separated by {separator!r}, but the header looks "
                f"separated by {other!r}. Give separator={other!r}"
                + (" and perhaps decimal=','." if other == ";" else ".")
            )


def _repeats(names: list[Any]) -> bool:
    return len(set(names)) != len(names)


csv.field_size_limit(max(_WIDEST_CELL, csv.field_size_limit()))
