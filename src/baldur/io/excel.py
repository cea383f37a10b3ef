"""Excel workbooks (.xlsx): one sheet, with limits a hostile file cannot pass.

A workbook is a zip archive of XML. Before a parser sees it, every part is unpacked as a stream and
its tags are counted, because their number gives the memory and time that the parser will take.
Ordinary workbooks declare no XML entities, so a workbook that does is refused.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd

from baldur.core.limits import ReadLimits
from baldur.core.optional import import_extra
from baldur.exceptions import InputError
from baldur.io.files import check_header, parsing

_CHUNK = 1 << 20
_MAX_MEMBERS = 2000
# What openpyxl takes for each opening tag, measured on one core, with the ways it is written;
# any other tag is made into an object of its own.
_SECONDS = {
    (b"<c ", b"<c>", b"<c/", b":c ", b":c>", b":c/"): 8e-6,
    (b"<v>", b":v>"): 3e-6,
    (b"<row ", b"<row>", b"<row/", b":row ", b":row>", b":row/"): 6e-6,
}
_OTHER_SECONDS = 20e-6
_BYTES_PER_TAG = 200
_BYTES_PER_XML_BYTE = 4
# Of the format itself.
_MAX_ROWS = 1 << 20
_ADVICE = "Save the sheet as CSV or Parquet."
_ENCODING = re.compile(rb"""<\?xml[^>]{0,200}encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")


def read_excel(path: Path, sheet: str | int, limits: ReadLimits) -> pd.DataFrame:
    """Return the cells of one sheet; its first row names the columns."""
    openpyxl = import_extra("openpyxl", "tables", "Reading Excel files")
    _check_archive(path, limits)
    with parsing(path, "an Excel workbook"):
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        try:
            cells = _cells(path, _sheet(path, book, sheet), limits)
        finally:
            book.close()
    if len(cells) < 2:
        raise InputError(f"{path}: expected a header and at least one row in the sheet.")
    header = ["" if cell is None else str(cell).strip() for cell in cells[0]]
    while header and not header[-1]:
        header.pop()
    width = len(header)
    for number, row in enumerate(cells[1:], start=2):
        if any(cell is not None for cell in row[width:]):
            raise InputError(
                f"{path}: row {number} has a cell to the right of the last named column "
                f"({width}). Name that column in the first row, or clear the cell."
            )
    check_header(path, header)
    # Short rows are filled up: a pointer in the list, one in the table and a number.
    limits.check_size(24.0 * width * len(cells), _ADVICE)
    rows = [[*row[:width], *[None] * (width - len(row))] for row in cells[1:]]
    return pd.DataFrame(rows, columns=pd.Index(header), dtype=object).infer_objects()


def _check_archive(path: Path, limits: ReadLimits) -> None:
    """Refuse an archive that takes too much memory or time to parse, or declares entities."""
    seconds = 0.0
    with parsing(path, "an Excel workbook"), zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        if len(entries) > _MAX_MEMBERS:
            raise InputError(
                f"{path}: the archive has {len(entries):,} parts, more than a "
                f"workbook has. {_ADVICE}"
            )
        size = sum(entry.file_size for entry in entries)
        limits.check_size(_BYTES_PER_XML_BYTE * size, _ADVICE)
        for entry in entries:
            if entry.filename.lower().endswith((".xml", ".rels", ".vml")):
                tags, time = _count_tags(archive, path, entry, limits)
                seconds += time
                needed = _BYTES_PER_TAG * tags + _BYTES_PER_XML_BYTE * entry.file_size
                limits.check_size(needed, _ADVICE)
    if seconds > limits.seconds:
        raise InputError(
            f"{path}: its sheets have so many cells that reading them takes {seconds:.0f} seconds "
            f"or more, above the limit of {limits.seconds:.0f} for a file of its size. {_ADVICE}"
        )


def _count_tags(
    archive: zipfile.ZipFile, path: Path, entry: zipfile.ZipInfo, limits: ReadLimits
) -> tuple[int, float]:
    """Return the number of tags in one part of the archive, and the time to parse them."""
    tags = 0
    seconds = 0.0
    # The end of the piece before: a word may lie across two pieces.
    tail = b""
    with archive.open(entry) as stream:
        while piece := stream.read(_CHUNK):
            limits.check_time()
            if not tail:
                encoding = _ENCODING.match(piece.lstrip(b"\xef\xbb\xbf"))
                if encoding and encoding[1].lower() not in (b"utf-8", b"us-ascii"):
                    raise _suspicious(
                        path, entry, f"is written in {encoding[1].decode()}, not in UTF-8"
                    )
            # In UTF-16 every second byte would hide the words searched for.
            if b"\0" in piece or piece[:2] in (b"\xff\xfe", b"\xfe\xff"):
                raise _suspicious(path, entry, "is not written in UTF-8")
            text = tail + piece
            if b"<!DOCTYPE" in text or b"<!ENTITY" in text or b"<!doctype" in text:
                raise _suspicious(path, entry, "declares entities, which workbooks do not need")
            opening = piece.count(b"<") - piece.count(b"</")
            tags += opening
            other = opening
            for forms, seconds_per_tag in _SECONDS.items():
                count = sum(map(piece.count, forms))
                seconds += count * seconds_per_tag
                other -= count
            seconds += max(0, other) * _OTHER_SECONDS
            tail = text[-16:]
    return tags, seconds


def _suspicious(path: Path, entry: zipfile.ZipInfo, what: str) -> InputError:
    return InputError(
        f"{path}: {entry.filename!a} {what}, which is a sign of a malicious file. The file is "
        f"not read. {_ADVICE}"
    )


def _sheet(path: Path, book: Any, sheet: str | int) -> Any:
    """Return the sheet of a workbook that has this name or number."""
    names = book.sheetnames
    if isinstance(sheet, bool) or not isinstance(sheet, (str, int)):
        raise InputError(f"{path}: sheet must be a name or a number, but got {sheet!r}.")
    if isinstance(sheet, int) and 0 <= sheet < len(names):
        return book[names[sheet]]
    if sheet not in names:
        raise InputError(
            f"{path}: there is no sheet {sheet!r}; it has {len(names)}, which are {names}."
        )
    return book[sheet]


def _cells(path: Path, sheet: Any, limits: ReadLimits) -> list[tuple[Any, ...]]:
    """Return the cells of each row, up to the last row that is not empty."""
    # The size a sheet claims to have is not to be trusted.
    sheet.reset_dimensions()
    rows: list[tuple[Any, ...]] = []
    total = 0
    n_filled = 0  # rows up to the last that is not empty
    for row in sheet.iter_rows(values_only=True):
        limits.check_time()
        # The last cell of a row may be far to the right: each one before it takes a pointer, too,
        # and a row by itself takes about as much as eight cells.
        total += len(row) + 8
        limits.check_size(16.0 * total, _ADVICE)
        if len(rows) >= _MAX_ROWS:
            raise InputError(f"{path}: the sheet has more than {_MAX_ROWS:,} rows. {_ADVICE}")
        rows.append(row)
        if any(cell is not None for cell in row):
            n_filled = len(rows)
    return rows[:n_filled]
