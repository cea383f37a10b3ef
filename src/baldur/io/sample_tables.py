"""Tables about samples: every cell as text first, then some columns as numbers."""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.limits import MAX_BYTES, Deadline, check_size, no_bare_memory_error
from baldur.exceptions import InputError
from baldur.io.delimited import SEPARATORS, read_delimited
from baldur.io.excel import read_excel
from baldur.io.files import find_file, suffix_of
from baldur.io.parquet import read_parquet
from baldur.io.table_views import MISSING_MARKERS
from baldur.views.encode import MAX_LEVELS, Encoded, encode_frame

_PER_CELL = 130
# Cleaned between two looks at the time.
_CELLS = 1 << 16
_SUFFIXES = (*SEPARATORS, *(f"{suffix}.gz" for suffix in SEPARATORS), ".parquet", ".xlsx")


@no_bare_memory_error
def read_text_table(
    file: str | os.PathLike[str],
    *,
    missing: Sequence[str] = (),
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    sheet: str | int = 0,
    max_bytes: int = MAX_BYTES,
) -> pd.DataFrame:
    r"""Read a table with every cell as text, without deciding column types.

    Ids keep their zeros and categories their writing. Blanks around a cell do not count. Numbers
    are written with a point, whole ones without; dates as year-month-day; truth values as "True"
    and "False".

    Parameters
    ----------
    file : str or path-like
        ``.csv``, ``.tsv``, ``.tab`` or ``.txt`` (tab-separated), all of these also compressed
        with ``.gz``, ``.parquet`` or ``.xlsx``.
    missing : sequence of str
        Cells that mean "missing" besides those of `MISSING_MARKERS`.
    separator : str, optional
        Between the fields of a text table; by default a comma for ``.csv`` and a tabulator for
        the others.
    decimal : str, default="."
        Decimal mark of a text table.
    encoding : str, default="utf-8"
        Encoding of a text table.
    sheet : str or int, default=0
        Sheet of a workbook.
    max_bytes : int, default=4 GB
        Memory that reading may take, 130 bytes for each cell.

    Returns
    -------
    DataFrame of str
        Missing cells are empty.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from baldur.io import read_text_table
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name) / "samples.csv"
    >>> _ = file.write_text("id;age;sex\n007;61,5;f\n008;NA;m\n")
    >>> read_text_table(file, separator=";", decimal=",").to_numpy().tolist()
    [['007', '61.5', 'f'], ['008', '', 'm']]
    >>> folder.cleanup()
    """
    path = find_file(file, "a table", _SUFFIXES)
    if not isinstance(decimal, str) or len(decimal) != 1:
        raise InputError(f"{path}: decimal must be one character, but got {decimal!r}.")
    deadline = Deadline(path)
    if suffix_of(path) == ".parquet":
        frame, _, lazy = read_parquet(path, 0, None, [], max_bytes, deadline)
        if lazy is not None:
            n_bytes = 2.0 * _PER_CELL * lazy.shape[0] * lazy.shape[1]
            check_size(path, n_bytes, max_bytes, "Check that it is a table about samples.")
            cells = lazy.read(None, np.arange(lazy.shape[1]))
            frame = frame.join(pd.DataFrame(cells, columns=pd.Index(lazy.columns)))
        text = frame.map(_written)
    elif suffix_of(path) == ".xlsx":
        text = read_excel(path, sheet, max_bytes, deadline).map(_written)
    else:
        text = read_delimited(
            path,
            separator=separator,
            decimal=decimal,
            encoding=encoding,
            max_bytes=max_bytes,
            deadline=deadline,
            as_text=True,
        )
    marks = str(decimal) if suffix_of(path) not in (".parquet", ".xlsx") else "."
    known = _Cleaned(marks, missing)
    cells = text.to_numpy(dtype=object).ravel()
    made = np.empty_like(cells)
    for start in range(0, len(cells), _CELLS):
        deadline.check()
        part = slice(start, start + _CELLS)
        made[part] = list(map(known.__getitem__, cells[part].tolist()))
    names = [str(name).strip() for name in text.columns]
    return pd.DataFrame(made.reshape(text.shape), columns=pd.Index(names))


def encode_text(frame: pd.DataFrame, *, categorical: Sequence[str], origin: str) -> Encoded:
    """Turn columns of text into numbers, as `read_table` does.

    Parameters
    ----------
    frame : DataFrame of str
        Cells, missing ones empty.
    categorical : sequence of str
        Columns that are categories; all others have to be numbers.
    origin : str
        File, for messages.

    Returns
    -------
    Encoded
        Matrix, names, and from which column and level each came.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.io import encode_text
    >>> cells = pd.DataFrame({"age": ["61", "", "70"], "site": ["Oslo", "Rome", "Oslo"]})
    >>> encoded = encode_text(cells, categorical=["site"], origin="samples.csv")
    >>> encoded.names.tolist()
    ['age', 'site=Oslo', 'site=Rome']
    >>> encoded.matrix
    array([[61.,  1.,  0.],
           [nan,  0.,  1.],
           [70.,  1.,  0.]])
    """
    made = {}
    for name in frame.columns:
        cells = frame[name].astype(object).where(frame[name] != "", None)
        if name not in categorical:
            numbers = pd.to_numeric(cells, errors="coerce").astype(float)
            wrong = numbers.isna() & cells.notna()
            if wrong.any():
                raise InputError(
                    f"{origin}: column {name!r} has {cells[wrong].iloc[0]!r} for a number."
                )
            cells = numbers
        made[name] = cells
    return encode_frame(
        pd.DataFrame(made), origin=origin, categorical=list(categorical), max_levels=MAX_LEVELS
    )


class _Cleaned(dict[str, str]):
    """Maps a cell as written to its cleaned form; each different cell is cleaned once."""

    def __init__(self, decimal: str, missing: Sequence[str]) -> None:
        super().__init__()
        self.missing = {*MISSING_MARKERS, *missing}
        mark = re.escape(decimal)
        self.number = re.compile(rf"([+-]?\d+){mark}(\d+(?:[eE][+-]?\d+)?)")

    def __missing__(self, cell: str) -> str:
        text = cell.strip()
        if text in self.missing:
            text = ""
        elif hit := self.number.fullmatch(text):
            text = f"{hit[1]}.{hit[2]}"
        self[cell] = text
        return text


def _written(value: Any) -> str:
    """Return one cell as text."""
    if value is None or (not isinstance(value, str) and pd.isna(value)):
        return ""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        # Missing cells turn whole numbers into floats.
        return str(int(value))
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return value.date().isoformat()
    return str(value)
