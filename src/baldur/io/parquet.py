"""Parquet: a table in memory, or wide matrices of numbers read column by column."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.limited_process import first_look
from baldur.core.limits import LAZY_BYTES, Deadline, check_ratio, check_size
from baldur.core.optional import import_extra
from baldur.exceptions import InputError
from baldur.io.delimited import id_position
from baldur.io.files import check_unique, parsing
from baldur.io.parquet_first_look import text_columns
from baldur.views.validate import some

_ADVICE = "Give a larger max_bytes=, or name fewer columns=[...]."
_LOOK = Path(__file__).with_name("parquet_first_look.py")
# The sample id of each row: text, its copies, and its place in an index (measured: 340 bytes).
_PER_ROW = 400
# Columns unpacked, and what is made of them.
_PER_BYTE = 2


class ParquetMatrix:
    """Columns of numbers of a Parquet file, read when asked for; pickles as a path."""

    def __init__(self, path: Path, columns: list[str], n_rows: int, dtype: Any) -> None:
        self.path = path
        self.columns = np.asarray(columns, dtype=object)
        self.shape = (n_rows, len(columns))
        self.dtype = np.dtype(dtype)

    def read(self, rows: np.ndarray | None, cols: slice | np.ndarray) -> np.ndarray:
        """Return the cells of `rows` (None: all) and `cols`."""
        parquet = import_extra("pyarrow.parquet", "tables", "Reading Parquet")
        wanted = list(self.columns[cols])
        out = np.empty((self.shape[0], len(wanted)), dtype=self.dtype, order="F")
        if wanted:
            with parsing(self.path, "Parquet"), parquet.ParquetFile(self.path) as file:
                table = file.read(columns=wanted, use_threads=False)
                # By name: the file may answer in its own order.
                for j, name in enumerate(wanted):
                    out[:, j] = table.column(name).to_numpy()
        return out if rows is None else out[rows]


def read_parquet(
    path: Path,
    id_column: str | int | None,
    columns: list[str] | None,
    exclude: list[str],
    max_bytes: int,
    deadline: Deadline,
) -> tuple[pd.DataFrame, str | None, ParquetMatrix | None]:
    """Return the table, the name of its column of ids, and a lazy matrix.

    When the columns are all floats and large, the table returned holds only the others (the ids),
    and the floats are left to the lazy matrix.
    """
    parquet = import_extra("pyarrow.parquet", "tables", "Reading Parquet")
    types = import_extra("pyarrow.types", "tables", "Reading Parquet")
    with parsing(path, "Parquet"), parquet.ParquetFile(path) as file:
        schema, footer = file.schema_arrow, file.metadata
        names = list(schema.names)
        check_unique(path, names)
        index = _pandas_index(schema, names)
        ids = _id_name(path, id_column, index, names)
        # The index of pandas is not a feature, whichever column holds the ids.
        left_out = {*exclude, ids, index}
        asked = None if columns is None else set(columns)
        kept = [n for n in names if n not in left_out and (asked is None or n in asked)]
        nested = [n for n in kept if not _is_plain(types, schema.field(n).type)]
        if nested:
            raise InputError(
                f"{path}: expected plain columns, but {some(nested)} hold lists, structures or "
                "other objects. Leave them out with exclude=[...]."
            )
        n_rows = int(footer.num_rows)
        floats = [n for n in kept if types.is_floating(schema.field(n).type)]
        n_bytes = n_rows * len(kept) * 8
        lazy = None
        wanted = {*kept, ids}
        read = [n for n in names if n in wanted]
        if floats == kept and kept and n_bytes > LAZY_BYTES:
            check_ratio(path, "its footer", n_bytes, path.stat().st_size)
            single = all(schema.field(n).type.bit_width <= 32 for n in kept)
            lazy = ParquetMatrix(path, kept, n_rows, np.float32 if single else np.float64)
            read = [] if ids is None else [ids]
        widths = sum(_width(types, schema.field(n).type) for n in read)
        check_size(path, n_rows * (_PER_ROW + widths), max_bytes, _ADVICE)
        check_size(path, _PER_BYTE * _unpacked(footer, set(read)), max_bytes, _ADVICE)
    # Pages can crash the library, and unpack to more than the footer says.
    later = [] if lazy is None else kept
    first_look(_LOOK, path, max_bytes, "Parquet", json.dumps({"now": read, "later": later}))
    if not read:
        return pd.DataFrame(index=range(n_rows)), None, lazy
    texts = set(text_columns(schema)).intersection(read)
    return _read(path, footer, read, texts, deadline), ids, lazy


def _is_plain(types: Any, kind: Any) -> bool:
    if types.is_dictionary(kind):
        return _is_plain(types, kind.value_type)
    tests = (
        types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_temporal,
        types.is_string, types.is_large_string, types.is_binary, types.is_large_binary,
        types.is_fixed_size_binary, types.is_null,
    )  # fmt: skip
    return any(test(kind) for test in tests)


def _width(types: Any, kind: Any) -> int:
    """Return the bytes of a cell: while it is read, in the pandas table, and in the matrix."""
    if types.is_decimal(kind) or types.is_date(kind) or types.is_time(kind):
        return 120  # an object each
    return 24 + (int(kind.byte_width) if types.is_fixed_size_binary(kind) else 8)


def _unpacked(footer: Any, wanted: set[str]) -> int:
    """Return how many bytes the columns take once unpacked, by the footer."""
    total = 0
    for group in range(footer.num_row_groups):
        row_group = footer.row_group(group)
        for j in range(footer.num_columns):
            column = row_group.column(j)
            if column.path_in_schema in wanted:
                # As many cells are read as the column claims, whatever the number of rows is.
                total += max(int(column.total_uncompressed_size), 8 * int(column.num_values))
    return total


def _read(
    path: Path, footer: Any, names: list[str], texts: set[str], deadline: Deadline
) -> pd.DataFrame:
    """Return some columns; repeated values of the columns `texts` are stored once."""
    parquet = import_extra("pyarrow.parquet", "tables", "Reading Parquet")
    with parsing(path, "Parquet"):
        # The footer of a wide table takes more than its cells, and is not parsed again.
        options = {"metadata": footer, "read_dictionary": sorted(texts)}
        with parquet.ParquetFile(path, **options) as file:
            table = file.read(columns=names, use_threads=False)
        # Straight from the file: as a category of pandas each column would take 10 KB.
        # By position, since finding a name takes longer the wider a table is.
        found, others = {}, []
        for at, name in enumerate(table.column_names):
            deadline.check()
            if name in texts:
                found[name] = _texts(table.column(at))
            else:
                others.append(at)
        frame = table.select(others).to_pandas(ignore_metadata=True)
        for at, dtype in enumerate(frame.dtypes):
            if isinstance(dtype, pd.CategoricalDtype) and _has_bytes(dtype.categories):
                column = frame.iloc[:, at].cat
                cells = _take(column.categories, column.codes.to_numpy())
                frame.isetitem(at, pd.Categorical(cells))
        if found:
            frame = pd.concat([frame, pd.DataFrame(found)], axis=1)
        place = {name: at for at, name in enumerate(frame.columns)}
        return frame.iloc[:, [place[name] for name in table.column_names]]


def _has_bytes(values: Iterable[Any]) -> bool:
    return any(isinstance(one, bytes) for one in values)


def _texts(column: Any) -> np.ndarray:
    """Return the text of each row of a column of dictionaries, one for each group of rows."""
    pieces = [np.empty(0, dtype=object)]
    for chunk in column.unify_dictionaries().chunks:
        codes = chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        pieces.append(_take(chunk.dictionary.to_pylist(), codes))
    return np.concatenate(pieces)


def _take(values: Iterable[Any], codes: np.ndarray) -> np.ndarray:
    """Return a text for every code; bytes are read as UTF-8, once each."""
    kinds = [
        one.decode("utf-8", errors="replace") if isinstance(one, bytes) else one for one in values
    ]
    # The last is for missing cells, whose code is -1.
    return np.array([*kinds, np.nan], dtype=object)[codes]


def _id_name(
    path: Path, id_column: str | int | None, index: str | None, names: list[str]
) -> str | None:
    """Return the column of ids: the one asked for, or what pandas wrote as its index."""
    if id_column is None or (id_column == 0 and index is not None):
        return index if id_column == 0 else None
    at = id_position(id_column, names)
    if at < 0:
        raise InputError(
            f"{path}: there is no column {id_column!r} for id_column; the columns are "
            f"{some(names)}."
        )
    return names[at]


def _pandas_index(schema: Any, names: list[str]) -> str | None:
    """Return the column in which pandas keeps a named index, if there is one."""
    described = (schema.pandas_metadata or {}).get("index_columns", [])
    columns = [one for one in described if isinstance(one, str) and one in names]
    return columns[0] if len(columns) == 1 else None
