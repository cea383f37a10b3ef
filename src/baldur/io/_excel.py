"""Excel workbooks (.xlsx): one sheet, with limits a hostile file cannot pass."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pandas as pd

from baldur.exceptions import InputError
from baldur.io._files import check_size, import_extra, parsing

__all__ = ["read_excel"]

_MAX_CELLS = 20_000_000
_MAX_XML = 1 << 29
_ADVICE = "Save the sheet as CSV or Parquet."


def read_excel(path: Path, sheet: str | int) -> pd.DataFrame:
    """Return the cells of one sheet; its first row names the columns."""
    openpyxl = import_extra("openpyxl", "tables", "Reading Excel files")
    _check_archive(path)
    with parsing(path, "an Excel workbook"):
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        try:
            cells = _cells(path, _sheet(path, book, sheet))
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
    unnamed = [j for j, name in enumerate(header) if not name and j > 0]
    if unnamed or not header or len(set(header)) != width:
        raise InputError(
            f"{path}: the first row must name every column (the first may be empty), each once, "
            f"but it reads {header[:8]}."
        )
    if width * len(cells) > _MAX_CELLS:
        raise _too_many(path)
    rows = [[*row[:width], *[None] * (width - len(row))] for row in cells[1:]]
    return pd.DataFrame(rows, columns=pd.Index(header), dtype=object).infer_objects()


def _check_archive(path: Path) -> None:
    """Look at the archive before a parser does: its unpacked size, and entity declarations."""
    with parsing(path, "an Excel workbook"), zipfile.ZipFile(path) as archive:
        check_size(path, sum(e.file_size for e in archive.infolist()), _MAX_XML, _ADVICE)
        for entry in archive.infolist():
            if entry.filename.endswith((".xml", ".rels")):
                with archive.open(entry) as stream:
                    if b"<!DOCTYPE" in stream.read(4096).upper():
                        raise InputError(
                            f"{path}: {entry.filename} declares entities, which workbooks do not "
                            "need and attacks do. The file is not read."
                        )


def _sheet(path: Path, book: Any, sheet: str | int) -> Any:
    names = book.sheetnames
    if isinstance(sheet, bool) or not isinstance(sheet, (str, int)):
        raise InputError(f"{path}: sheet must be a name or a number, but got {sheet!r}.")
    if isinstance(sheet, int):
        if not 0 <= sheet < len(names):
            raise InputError(f"{path}: there is no sheet {sheet}; it has {len(names)}: {names}.")
        sheet = names[sheet]
    if sheet not in names:
        raise InputError(f"{path}: there is no sheet {sheet!r}; the sheets are {names}.")
    return book[sheet]


def _cells(path: Path, sheet: Any) -> list[tuple[Any, ...]]:
    """Read rows as long as they are; a far-away cell must not fill the space before it."""
    # The size a sheet claims to have is not to be trusted.
    sheet.reset_dimensions()
    rows: list[tuple[Any, ...]] = []
    total = 0
    last = 0
    for row in sheet.iter_rows(values_only=True):
        total += len(row) + 1
        if total > _MAX_CELLS:
            raise _too_many(path)
        rows.append(row)
        if any(cell is not None for cell in row):
            last = len(rows)
    return rows[:last]


def _too_many(path: Path) -> InputError:
    return InputError(f"{path}: the sheet has more than {_MAX_CELLS:,} cells. {_ADVICE}")
