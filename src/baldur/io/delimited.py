"""Text tables (CSV, TSV): read as a stream of lines, numbers at once and texts in a second pass.

pandas is not used for parsing: it needs a fraction of a millisecond for every column, which is
minutes for a wide table, and many times the size of a file in memory.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from baldur.core.escape import unescape_cell, unescape_frame
from baldur.core.limits import ReadLimits
from baldur.exceptions import InputError
from baldur.io.files import check_header, file_ending, id_position, parsing

SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}

_BUFFER = 1 << 20
# A cell of a line takes a pointer, and as a number eight bytes twice; long texts may be held twice.
_PER_BYTE = 2
_PER_CELL = 24
# A cell that stays text: an object, pointers to it, and what is made of it.
_PER_TEXT = 130
# Longest cell: Python's own limit, far above any measurement or category.
csv.field_size_limit(max(1 << 17, csv.field_size_limit()))
# Cells turned into numbers or texts at once.
_BATCH = 1 << 16
_ADVICE = "Give a larger max_bytes=, or save the table as .npy, .npz or Parquet."
# Encodings of Python that take the square of the length, or are not meant for files.
_NO_ENCODINGS = ("idna", "punycode", "unicode", "raw", "undefined", "utf7")


def read_delimited(
    path: Path,
    limits: ReadLimits,
    *,
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    missing: Sequence[str] = (),
    id_column: str | int | None = None,
    as_text: bool = False,
) -> pd.DataFrame:
    """Return the table: columns of numbers, and columns of text as objects.

    Columns in which every known cell is a number are numbers, except for the column of ids, which
    is text exactly as written, leading zeros included. With `as_text` every column is text.
    """
    if separator is None:
        separator = SEPARATORS[file_ending(path).removesuffix(".gz")]
    for name, mark in (("separator", separator), ("decimal", decimal)):
        if not isinstance(mark, str) or len(mark) != 1 or mark in '"\r\n' or not mark.isascii():
            raise InputError(f"{path}: {name} must be one character, but got {mark!r}.")
    if separator == decimal:
        raise InputError(f"{path}: separator and decimal are the same character, {separator!r}.")
    table = _TextTable(path, limits, separator, decimal, encoding, missing, id_column)
    with parsing(path, "a text table"):
        if as_text:
            frame = table.texts(None)
        else:
            matrix, texts = table.numbers()
            frame = pd.DataFrame(matrix)
            if texts:
                text_columns = sorted(texts)
                numbers = frame.drop(columns=text_columns)
                # Columns are numbered so far: sorting brings them back in their order.
                both = pd.concat([numbers, table.texts(text_columns)], axis=1)
                frame = both.sort_index(axis=1)
        frame.columns = pd.Index(table.header)
        return unescape_frame(frame) if table.apostrophes else frame


@dataclass
class _TextTable:
    """A text table and how it is written.

    Known once it was read: `header`, `ids` (position of the column of ids) and `apostrophes`
    (whether the file holds any, so that cells may be escaped).
    """

    path: Path
    limits: ReadLimits
    separator: str
    decimal: str
    encoding: str
    missing: Sequence[str]
    id_column: str | int | None
    header: list[str] = field(default_factory=list)
    ids: int | None = None
    apostrophes: bool = False

    def __post_init__(self) -> None:
        numbers = [number for cell in self.missing if (number := _number(cell)) is not None]
        self.missing_numbers = np.array(numbers)
        self.missing_texts = {*self.missing, *(f"{number:g}" for number in numbers)}

    def batches(self) -> Iterator[list[list[str]]]:
        """Yield the fields of some lines below the header at a time."""
        # Before a byte is read: the size of a plain file is known.
        self.limits.check_size(self.path.stat().st_size, _ADVICE)
        plain_name = self.encoding.lower().replace("-", "").replace("_", "")
        try:
            separator = self.separator.encode(self.encoding)
            # Python also calls compression and the like encodings; these are refused here.
            b"".decode(self.encoding)
            if plain_name.startswith(_NO_ENCODINGS):
                raise LookupError(f"{self.encoding} is not a text encoding")
        except (LookupError, UnicodeError) as error:
            raise self._wrong_encoding(error) from error
        width = {"utf16": 2, "utf32": 4}.get(plain_name[:5])
        if width is not None:
            # Without the mark that each call of encode puts in front.
            separator = separator[-width:]
        raw = BoundedText(self.path, self.limits, separator, allow_zeros=width is not None)
        encoding = "utf-8-sig" if plain_name == "utf8" else self.encoding
        buffered = io.BufferedReader(raw, _BUFFER)
        with io.TextIOWrapper(buffered, encoding=encoding, newline="") as text:
            try:
                lines = self._lines(text)
                self.header = next(lines)
                self.ids = id_position(self.path, self.id_column, self.header)
                while batch := list(islice(lines, max(1, _BATCH // len(self.header)))):
                    yield batch
            except UnicodeError as error:
                raise self._wrong_encoding(error) from error
        self.apostrophes = raw.apostrophes

    def _wrong_encoding(self, error: Exception) -> InputError:
        return InputError(
            f"{self.path}: cannot be read as text in {self.encoding} ({error}). Give the encoding "
            "it was written in, often encoding='latin-1' or 'cp1252'."
        )

    def _lines(self, text: IO[str]) -> Iterator[list[str]]:
        """Yield the column names, then the fields of every line; all have the same length.

        A line with fewer would hide a file that was cut short.
        """
        header: list[str] = []
        lines = 0
        reader = csv.reader(text, delimiter=self.separator, strict=True)
        for fields in reader:
            if not fields:
                continue
            if not header:
                header = fields
                self._check_separator(header)
                continue
            lines += 1
            if lines == 1:
                # R leaves the header cell of the row names out.
                if len(header) == len(fields) - 1:
                    header = ["", *header]
                names = [unescape_cell(name.strip()) for name in header]
                check_header(self.path, names)
                yield names
            if len(fields) != len(header):
                raise InputError(
                    f"{self.path}: line {reader.line_num} has {len(fields)} fields and the header "
                    f"has {len(header)}. The file was cut short, or a cell holds the separator "
                    f"{self.separator!r} without quotes."
                )
            yield fields
        if not lines:
            raise InputError(
                f"{self.path}: expected a header and at least one row, but found "
                f"{'only a header' if header else 'nothing'}."
            )

    def _check_separator(self, header: list[str]) -> None:
        """Refuse a header of one column that looks as if another separator divides it."""
        for other in ";\t,|" if len(header) == 1 else "":
            if other != self.separator and other in header[0]:
                raise InputError(
                    f"{self.path}: expected columns separated by {self.separator!r}, but the "
                    f"header looks separated by {other!r}. Give separator={other!r}"
                    + (" and perhaps decimal=','." if other == ";" else ".")
                )

    def numbers(self) -> tuple[np.ndarray, set[int]]:
        """Return the cells as numbers (NaN elsewhere), and which columns are text."""
        parts: list[np.ndarray] = []
        texts: set[int] = set()
        n_rows = 0
        for batch in self.batches():
            n_rows += len(batch)
            texts |= set() if self.ids is None else {self.ids}
            parts.append(self._as_numbers(batch, texts))
            needed = n_rows * (_PER_TEXT * len(texts) + _PER_CELL * len(self.header))
            self.limits.check_size(needed, _ADVICE)
        return np.concatenate(parts), texts

    def _as_numbers(self, rows: list[list[str]], texts: set[int]) -> np.ndarray:
        """Return some rows as numbers, NaN in columns `texts`; add columns with text to these."""
        width = len(rows[0])
        for row in rows if texts else ():
            for column in texts:
                row[column] = "nan"
        cells = [cell for row in rows for cell in row]
        if self.decimal != ".":
            # A point cannot stand for anything then; "x" makes the cell no number.
            cells = [
                "nan"
                if cell in self.missing_texts
                else cell.replace(".", "x").replace(self.decimal, ".")
                for cell in cells
            ]
        joined = "".join(cells)
        # All cells at once where each is a number or missing; otherwise one by one.
        try:
            if "_" in joined or not joined.isascii():
                raise ValueError  # `_number` says why
            numbers = [np.nan if cell in self.missing_texts else float(cell) for cell in cells]
        except ValueError:
            numbers = []
            for at, cell in enumerate(cells):
                number = None if at % width in texts else _number(cell)
                if number is None and cell not in self.missing_texts:
                    texts.add(at % width)
                numbers.append(np.nan if number is None else number)
        matrix = np.array(numbers, dtype=np.float64).reshape(-1, width)
        if self.missing_numbers.size:
            matrix[np.isin(matrix, self.missing_numbers)] = np.nan
        return matrix

    def texts(self, columns: list[int] | None) -> pd.DataFrame:
        """Return some columns as written, None where a cell is missing (ids never are).

        All columns, where none are named, and then with the markers of missing cells as written.
        """
        # A text that occurs again is held once.
        stored: dict[str, str | None] = {}
        if columns is not None:
            stored.update(dict.fromkeys(self.missing_texts))
        parts: list[np.ndarray] = []
        n_rows = 0
        for batch in self.batches():
            wanted = range(len(self.header)) if columns is None else columns
            n_rows += len(batch)
            cells = [
                row[at] if at == self.ids else stored.setdefault(row[at], row[at])
                for row in batch
                for at in wanted
            ]
            parts.append(np.array(cells, dtype=object).reshape(-1, len(wanted)))
            self.limits.check_size(_PER_TEXT * n_rows * len(wanted), _ADVICE)
        return pd.DataFrame(np.concatenate(parts), columns=columns)


def _number(text: str) -> float | None:
    """Return a cell as a number, None where it is none."""
    # Python reads 1_000 and digits of other scripts as numbers; tables do not mean them.
    if "_" in text or not text.isascii():
        return None
    try:
        return float(text)
    except ValueError:
        return None


class BoundedText(io.RawIOBase):
    """The bytes of a file, counted as they are read; refused when a table of them is too large."""

    def __init__(self, path: Path, limits: ReadLimits, separator: bytes, allow_zeros: bool) -> None:
        self.path = path
        self.limits = limits
        self.separator = separator
        self.allow_zeros = allow_zeros
        self.apostrophes = False
        self._size = self._cells = 0
        packed = file_ending(path).endswith(".gz")
        self._stream: Any = (gzip.open if packed else open)(path, "rb")

    def readable(self) -> bool:
        """Return True, because the stream can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes into a buffer, and count them."""
        self.limits.check_time()
        piece = self._stream.read(len(buffer))
        self._size += len(piece)
        self._cells += piece.count(self.separator) + piece.count(b"\n")
        needed = _PER_BYTE * self._size + _PER_CELL * self._cells
        self.limits.check_size(needed, _ADVICE)
        if not self.allow_zeros and b"\0" in piece:
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
