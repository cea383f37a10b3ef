"""Parquet: a table in memory, or wide matrices of numbers read column by column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.limits import LAZY_BYTES, ReadLimits, check_ratio
from baldur.core.optional import import_extra
from baldur.exceptions import InputError
from baldur.io.files import check_unique_columns, id_position, parsing
from baldur.io.sandboxed_read import first_look, text_columns
from baldur.views.validate import some

_ADVICE = "Give a larger max_bytes=, or name fewer columns=[...]."
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
    columns: Sequence[str] | None,
    exclude: Sequence[str],
    limits: ReadLimits,
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
    check_unique_columns(path, names)
    # The index of pandas is not a feature, whichever column holds the ids.
    pandas_index = _pandas_index(schema, names)
    if id_column == 0 and pandas_index is not None:
        id_column = pandas_index
    position = id_position(path, id_column, names)
    ids = None if position is None else names[position]
    left_out = {*exclude, ids, pandas_index}
    wanted = None if columns is None else set(columns)
    features = [n for n in names if n not in left_out and (wanted is None or n in wanted)]
    nested = [n for n in features if not _is_plain(types, schema.field(n).type)]
    if nested:
        raise InputError(
            f"{path}: expected plain columns, but {some(nested)} hold lists, structures or "
            "other objects. Leave them out with exclude=[...]."
        )
    n_rows = int(footer.num_rows)
    n_bytes = n_rows * len(features) * 8
    lazy = None
    needed = {*features, ids}
    to_read = [n for n in names if n in needed]  # now, into memory
    floats = all(types.is_floating(schema.field(n).type) for n in features)
    if floats and features and n_bytes > LAZY_BYTES:
        check_ratio(path, "its footer", n_bytes, path.stat().st_size)
        single = all(schema.field(n).type.bit_width <= 32 for n in features)
        lazy = ParquetMatrix(path, features, n_rows, np.float32 if single else np.float64)
        to_read = [] if ids is None else [ids]
    widths = sum(_width(types, schema.field(n).type) for n in to_read)
    limits.check_size(n_rows * (_PER_ROW + widths), _ADVICE)
    limits.check_size(_PER_BYTE * _unpacked(footer, set(to_read)), _ADVICE)
    # Pages can crash the library, and unpack to more than the footer says.
    later = [] if lazy is None else features
    first_look(path, limits.max_bytes, "Parquet", {"now": to_read, "later": later})
    if not to_read:
        return pd.DataFrame(index=range(n_rows)), None, lazy
    texts = set(text_columns(schema)).intersection(to_read)
    return _read(path, footer, to_read, texts, limits), ids, lazy


def _is_plain(types: Any, kind: Any) -> bool:
    """Return whether cells of an Arrow type are single values; `types` is pyarrow.types."""
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
    path: Path, footer: Any, names: list[str], texts: set[str], limits: ReadLimits
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
        cells = {}
        others = []
        for at, name in enumerate(table.column_names):
            limits.check_time()
            if name in texts:
                cells[at] = _texts(table.column(at))
            else:
                others.append(at)
        frame = table.select(others).to_pandas(ignore_metadata=True).set_axis(others, axis=1)
        for at, dtype in zip(others, frame.dtypes, strict=True):
            levels = dtype.categories if isinstance(dtype, pd.CategoricalDtype) else ()
            if any(isinstance(level, bytes) for level in levels):
                frame[at] = pd.Categorical(_decoded(levels, frame[at].cat.codes.to_numpy()))
        if cells and others:
            frame = pd.concat([frame, pd.DataFrame(cells)], axis=1).sort_index(axis=1)
        elif cells:
            frame = pd.DataFrame(cells)
        return frame.set_axis(table.column_names, axis=1)


def _texts(column: Any) -> np.ndarray:
    """Return the text of each row of a column that is stored as dictionaries and codes."""
    pieces = [np.empty(0, dtype=object)]
    for chunk in column.unify_dictionaries().chunks:
        codes = chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        pieces.append(_decoded(chunk.dictionary.to_pylist(), codes))
    return np.concatenate(pieces)


def _decoded(values: Iterable[Any], codes: np.ndarray) -> np.ndarray:
    """Return the text that each code stands for; bytes are read as UTF-8, once for each value."""
    texts = [
        value.decode("utf-8", errors="replace") if isinstance(value, bytes) else value
        for value in values
    ]
    # The last is for missing cells, whose code is -1.
    return np.array([*texts, np.nan], dtype=object)[codes]


def _pandas_index(schema: Any, names: list[str]) -> str | None:
    """Return the column in which pandas keeps a named index, if there is one."""
    described = (schema.pandas_metadata or {}).get("index_columns", [])
    columns = [name for name in described if isinstance(name, str) and name in names]
    return columns[0] if len(columns) == 1 else None
