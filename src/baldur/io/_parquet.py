"""Parquet: a table in memory, or wide matrices of numbers read column by column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.io._delimited import id_position
from baldur.io._files import LAZY_BYTES, check_size, import_extra, parsing
from baldur.views.validate import some

__all__ = ["ParquetMatrix", "read_parquet"]

_ADVICE = "Give a larger max_bytes=, or name fewer columns=[...]."


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
) -> tuple[pd.DataFrame, str | None, ParquetMatrix | None]:
    """Return the table, the name of its column of ids, and a lazy matrix.

    When the columns are all floats and large, the table returned holds only the others (the ids),
    and the floats are left to the lazy matrix.
    """
    parquet = import_extra("pyarrow.parquet", "tables", "Reading Parquet")
    types = import_extra("pyarrow.types", "tables", "Reading Parquet")
    with parsing(path, "Parquet"), parquet.ParquetFile(path) as file:
        schema = file.schema_arrow
        names = list(schema.names)
        if len(set(names)) != len(names):
            twice = sorted({n for n in names if names.count(n) > 1})
            raise InputError(f"{path}: column names must be unique, but {some(twice)} repeat.")
        nested = [f.name for f in schema if types.is_nested(f.type) and f.name not in exclude]
        if nested:
            raise InputError(
                f"{path}: expected plain columns, but {some(nested)} hold lists or structures. "
                "Leave them out with exclude=[...]."
            )
        index = _pandas_index(schema, names)
        ids = _id_name(path, id_column, index, names)
        # The index of pandas is no feature, whichever column holds the ids.
        kept = [n for n in names if n not in (*exclude, ids, index)]
        kept = [n for n in kept if columns is None or n in columns]
        n_rows = int(file.metadata.num_rows)
        floats = [n for n in kept if types.is_floating(schema.field(n).type)]
        n_bytes = n_rows * len(kept) * 8
        if floats == kept and kept and n_bytes > LAZY_BYTES:
            single = all(schema.field(n).type.bit_width <= 32 for n in kept)
            dtype = np.float32 if single else np.float64
            lazy = ParquetMatrix(path, kept, n_rows, dtype)
            if ids is None:
                return pd.DataFrame(index=range(n_rows)), None, lazy
            table = file.read(columns=[ids], use_threads=False)
            return table.to_pandas(ignore_metadata=True), ids, lazy
        check_size(path, n_bytes, max_bytes, _ADVICE)
        wanted = [n for n in names if n == ids or n in set(kept)]
        table = file.read(columns=wanted, use_threads=False)
        return table.to_pandas(ignore_metadata=True), ids, None


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
