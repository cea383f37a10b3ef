"""Text tables (CSV, TSV): read as a stream of lines, numbers at once and texts in a second pass.

pandas is not used for parsing: it needs a fraction of a millisecond for every column, which is
minutes for a wide table, and many times the size of a file in memory.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from baldur.core.escape import check_names, unescape_cell, unescape_frame
from baldur.core.limits import MAX_BYTES, Deadline, check_size
from baldur.exceptions import InputError
from baldur.io.files import check_unique, parsing, suffix_of

_BUFFER = 1 << 20
# A cell of a line takes a pointer, and as a number eight bytes twice; long texts may be held twice.
_PER_BYTE = 2
_PER_CELL = 24
_STREAM_ADVICE = "Give a larger max_bytes=, or save the table as .npy, .npz or Parquet."
# Encodings of Python that take the square of the length, or are not meant for files.
_NO_ENCODINGS = ("idna", "punycode", "unicode", "raw", "undefined", "utf7")


class BoundedText(io.RawIOBase):
    """The bytes of a file, counted as they are read; refused when a table of them is too large."""

    def __init__(
        self, path: Path, separator: bytes, max_bytes: int, deadline: Deadline, zeros: bool
    ) -> None:
        self.path = path
        self.separator = separator
        self.max_bytes = max_bytes
        self.deadline = deadline
        self.zeros = zeros
        self.apostrophes = False
        self._size = self._cells = 0
        packed = suffix_of(path).endswith(".gz")
        self._stream: Any = (gzip.open if packed else open)(path, "rb")

    def readable(self) -> bool:
        """Return True, because the stream can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes into a buffer, and count them."""
        self.deadline.check()
        piece = self._stream.read(len(buffer))
        self._size += len(piece)
        self._cells += piece.count(self.separator) + piece.count(b"\n")
        needed = _PER_BYTE * self._size + _PER_CELL * self._cells
        check_size(self.path, needed, self.max_bytes, _STREAM_ADVICE)
        if not self.zeros and b"\0" in piece:
            raise InputError(
                f"{self.path}: expected a text table, but it holds zero bytes, as binary files do. "
                "If it is text in UTF-16, give encoding='utf-16'; otherwise the file is of another "
                "kind."
            )
        self.apostrophes = self.apostrophes or b"'" in piece
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        """Close the file and the stream."""
        self._stream.close()
        super().close()


@contextmanager
def open_text(
    path: Path, separator: str, encoding: str, max_bytes: int, deadline: Deadline
) -> Iterator[tuple[IO[str], BoundedText]]:
    """Yield a file as text with unchanged line ends, and the stream of bytes behind it."""
    # Before a byte is read: the size of a plain file is known.
    check_size(path, path.stat().st_size, max_bytes, _STREAM_ADVICE)
    plain = encoding.lower().replace("-", "").replace("_", "")
    try:
        between = separator.encode(encoding)
        # Python also calls compression and the like encodings; these are refused here.
        b"".decode(encoding)
        if plain.startswith(_NO_ENCODINGS):
            raise LookupError(f"{encoding} is not a text encoding")
    except (LookupError, UnicodeError) as error:
        raise _not_in(path, encoding, error) from error
    wide = plain.startswith(("utf16", "utf32"))
    if wide:
        # Without the mark that each call of encode puts in front.
        between = between[-2 if plain.startswith("utf16") else -4 :]
    with parsing(path, "a text table"):
        raw = BoundedText(path, between, max_bytes, deadline, wide)
        buffered = io.BufferedReader(raw, _BUFFER)
        name = "utf-8-sig" if plain == "utf8" else encoding
        with io.TextIOWrapper(buffered, encoding=name, newline="") as text:
            try:
                yield text, raw
            except UnicodeError as error:
                raise _not_in(path, encoding, error) from error


def _not_in(path: Path, encoding: str, error: Exception) -> InputError:
    return InputError(
        f"{path}: cannot be read as text in {encoding} ({error}). Give the encoding it was written "
        "in, often encoding='latin-1' or 'cp1252'."
    )


SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}

# Longest cell: Python's own limit, far above any measurement or category.
_WIDEST_CELL = 1 << 17
# Cells turned into numbers at once.
_BATCH = 1 << 16
# A cell that stays text: an object, pointers to it, and what is made of it.
_PER_TEXT = 130
_ADVICE = "Give a larger max_bytes=, or save the table as .npy, .npz or Parquet."


@dataclass(frozen=True)
class _Format:
    """Separator, decimal mark and encoding of a table, and limits on reading it."""

    path: Path
    separator: str
    decimal: str
    encoding: str
    max_bytes: int
    deadline: Deadline

    @contextmanager
    def opened(self) -> Iterator[tuple[list[str], Iterator[list[str]], BoundedText]]:
        """Yield the names of the columns, the fields of every line, and the stream of bytes."""
        with open_text(self.path, self.separator, self.encoding, self.max_bytes, self.deadline) as (
            text,
            raw,
        ):
            lines = _rows(self, text)
            yield next(lines), lines, raw


def read_delimited(
    path: Path,
    *,
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    missing: list[str] | None = None,
    id_column: str | int | None = None,
    max_bytes: int = MAX_BYTES,
    deadline: Deadline | None = None,
    as_text: bool = False,
) -> pd.DataFrame:
    """Return the table: columns of numbers, and columns of text as objects.

    Columns in which every known cell is a number are numbers, except for the column of ids, which
    is text exactly as written, leading zeros included. With `as_text` every column is text.
    """
    if separator is None:
        separator = SEPARATORS[suffix_of(path).removesuffix(".gz")]
    for name, mark in (("separator", separator), ("decimal", decimal)):
        if not isinstance(mark, str) or len(mark) != 1 or mark in '"\r\n' or not mark.isascii():
            raise InputError(f"{path}: {name} must be one character, but got {mark!r}.")
    if separator == decimal:
        raise InputError(f"{path}: separator and decimal are the same character, {separator!r}.")
    form = _Format(path, separator, decimal, encoding, max_bytes, deadline or Deadline(path))
    markers = _Markers(missing or [])
    if as_text:
        header, cells, escaped = _all_texts(form)
        frame = pd.DataFrame(cells, columns=pd.Index(header))
        return unescape_frame(frame) if escaped else frame
    header, matrix, texts, escaped = _numbers(form, markers, id_column)
    frame = pd.DataFrame(matrix)
    if texts:
        frame = _texts(form, markers, sorted(texts), len(matrix), id_column)
        numbers = [j for j in range(len(header)) if j not in texts]
        if numbers:
            both = [pd.DataFrame(matrix[:, numbers], columns=numbers), frame]
            frame = pd.concat(both, axis=1).loc[:, list(range(len(header)))]
    frame.columns = pd.Index(header)
    return unescape_frame(frame) if escaped else frame


def id_position(id_column: str | int | None, header: list[str]) -> int:
    """Return the number of the column of ids, or -1 where there is no such column."""
    if isinstance(id_column, str):
        return header.index(id_column) if id_column in header else -1
    if isinstance(id_column, int) and not isinstance(id_column, bool):
        return id_column if 0 <= id_column < len(header) else -1
    return -1


class _Markers:
    """Cells that mean "missing", as text and as numbers."""

    def __init__(self, missing: list[str]) -> None:
        self.numbers = np.array([number for one in missing if (number := _number(one)) is not None])
        self.texts = {*missing, *(f"{number:g}" for number in self.numbers)}


def _number(text: str) -> float | None:
    # Python reads 1_000 and digits of other scripts as numbers; tables do not mean them.
    if "_" in text or not text.isascii():
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _numbers(
    form: _Format, markers: _Markers, id_column: str | int | None
) -> tuple[list[str], np.ndarray, set[int], bool]:
    """Return header, numbers (NaN elsewhere), which columns are text, and if cells are escaped."""
    parts: list[np.ndarray] = []
    batch: list[str] = []
    rows = 0
    path = form.path
    with form.opened() as (header, lines, raw):
        texts = {id_position(id_column, header)} - {-1}
        for fields in lines:
            rows += 1
            for column in texts:
                fields[column] = "nan"
            batch += fields
            if len(batch) >= _BATCH:
                parts.append(_batch(form, batch, len(header), markers, texts))
                batch = []
                needed = rows * (_PER_TEXT * len(texts) + 24 * len(header))
                check_size(path, needed, form.max_bytes, _ADVICE)
        escaped = raw.apostrophes
    parts.append(_batch(form, batch, len(header), markers, texts))
    check_size(path, _PER_TEXT * len(texts) * rows, form.max_bytes, _ADVICE)
    return header, np.concatenate(parts), texts, escaped


def _all_texts(form: _Format) -> tuple[list[str], np.ndarray, bool]:
    """Return header, every cell as written, and if cells are escaped."""
    parts: list[np.ndarray] = []
    batch: list[str] = []
    # A text that occurs again is held once.
    known: dict[str, str] = {}
    rows = 0
    path = form.path
    with form.opened() as (header, lines, raw):
        for fields in lines:
            rows += 1
            batch += fields
            if len(batch) >= _BATCH:
                parts.append(np.array(list(map(known.setdefault, batch, batch)), dtype=object))
                batch = []
                needed = (_PER_TEXT + 24) * rows * len(header)
                check_size(path, needed, form.max_bytes, _ADVICE)
        escaped = raw.apostrophes
    check_size(path, _PER_TEXT * rows * len(header), form.max_bytes, _ADVICE)
    parts.append(np.array(batch, dtype=object))
    return header, np.concatenate(parts).reshape(rows, len(header)), escaped


def _batch(
    form: _Format, cells: list[str], width: int, markers: _Markers, texts: set[int]
) -> np.ndarray:
    """Return some rows as numbers, and add columns with other cells than numbers to `texts`."""
    if form.decimal != ".":
        # A point cannot stand for anything then.
        cells = [
            "nan" if cell in markers.texts else cell.replace(".", "x").replace(form.decimal, ".")
            for cell in cells
        ]
    joined = "".join(cells)
    found: list[float] | None = None
    if "_" not in joined and joined.isascii():
        try:
            found = [np.nan if cell in markers.texts else float(cell) for cell in cells]
        except ValueError:
            found = None
    if found is None:
        found = []
        for at, cell in enumerate(cells):
            number = None if at % width in texts else _number(cell)
            if number is None and cell not in markers.texts:
                texts.add(at % width)
            found.append(np.nan if number is None else number)
    made = np.array(found, dtype=np.float64).reshape(-1, width)
    if markers.numbers.size:
        made[np.isin(made, markers.numbers)] = np.nan
    return made


def _texts(
    form: _Format,
    markers: _Markers,
    columns: list[int],
    rows: int,
    id_column: str | int | None,
) -> pd.DataFrame:
    """Return some columns as written, None where a cell is missing (ids never are)."""
    cells = np.empty((rows, len(columns)), dtype=object)
    # A text that occurs again is held once.
    known: dict[str, str | None] = dict.fromkeys(markers.texts)
    with form.opened() as (header, lines, _):
        ids = id_position(id_column, header)
        for row, fields in zip(cells, lines, strict=True):
            row[:] = [
                fields[at] if at == ids else known.setdefault(fields[at], fields[at])
                for at in columns
            ]
    return pd.DataFrame(cells, columns=columns)


def _rows(form: _Format, text: IO[str]) -> Iterator[list[str]]:
    """Yield the column names, then the fields of every line; all have the same length.

    A line with fewer would hide a file that was cut short.
    """
    path, separator = form.path, form.separator
    header: list[str] = []
    lines = 0
    reader = csv.reader(text, delimiter=separator, strict=True)
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
            yield _checked(path, header)
        if len(fields) != len(header):
            raise InputError(
                f"{path}: line {reader.line_num} has {len(fields)} fields and the header has "
                f"{len(header)}. The file was cut short, or a cell holds the separator "
                f"{separator!r} without quotes."
            )
        yield fields
    if not lines:
        raise InputError(
            f"{path}: expected a header and at least one row, but found "
            f"{'only a header' if header else 'nothing'}."
        )


def _checked(path: Path, header: list[str]) -> list[str]:
    names = [unescape_cell(name.strip()) for name in header]
    check_unique(path, names)
    check_names(names, "column name", str(path))
    unnamed = [j for j, name in enumerate(names) if not name and j > 0]
    if unnamed:
        raise InputError(
            f"{path}: every column but the first needs a name, but column {unnamed[0] + 1} has "
            "none. Add it to the header line."
        )
    return names


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


csv.field_size_limit(max(_WIDEST_CELL, csv.field_size_limit()))
