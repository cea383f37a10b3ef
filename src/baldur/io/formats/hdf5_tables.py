"""Tables of AnnData files (``obs`` and ``var``), read from their own group and nothing else.

A table names its columns in attributes. A hostile file may put paths there that lead to cells
stored in other files of the machine. A name therefore has to be that of a direct member of the
table: an ordinary (hard) link to a data set of the same file. Cells are counted before they are
read.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.io.formats.files import check_unique
from baldur.io.formats.hdf5 import check_inside, member
from baldur.optional import import_extra
from baldur.safety.budget import check_size
from baldur.safety.escape import check_names

# Texts read at once: a hundred thousand long ones stay below the budget of the first look.
_TEXTS = 1 << 14
# A text: the object, a pointer and a copy.
_PER_TEXT = 120
_ADVICE = "Give a larger max_bytes=, or write the file again without columns you do not need."


def read_index(path: Path, table: Any, max_bytes: int) -> np.ndarray:
    """Return the names of the rows of a table, without its columns."""
    # All of it: a table with members that lead elsewhere was not written by AnnData.
    check_inside(path, table)
    key = table.attrs.get("_index", "_index")
    node = member(path, table, _text(key))
    if not _is_dataset(node):
        raise InputError(f"{path}: {table.name} has no list of names as its index.")
    return np.array([str(one) for one in _cells(path, node, max_bytes)], dtype=object)


def read_frame(path: Path, table: Any, max_bytes: int) -> pd.DataFrame:
    """Return a table with all its columns, indexed by the names of its rows."""
    if _is_dataset(table) or "column-order" not in table.attrs:
        raise InputError(f"{path}: {table.name} is not a table as AnnData writes it.")
    given = np.asarray(table.attrs["column-order"])
    order = [_text(one) for one in given.ravel()]
    check_unique(f"{path}, {table.name}", order)
    check_names(order, "column name", f"{path}, {table.name}")
    index = read_index(path, table, max_bytes)
    columns = {}
    left = max_bytes - len(index) * _PER_TEXT
    for name in order:
        node = member(path, table, name)
        cells, taken = _read_column(path, table, node, left)
        left -= taken
        if len(cells) != len(index):
            raise InputError(
                f"{path}: {table.name}/{name} has {len(cells)} cells for {len(index)} rows."
            )
        columns[name] = cells
    return pd.DataFrame(columns, index=pd.Index(index, dtype=object))


def _read_column(path: Path, table: Any, node: Any, max_bytes: int) -> tuple[Any, int]:
    """Return a column in its pandas type, and the memory it takes."""
    if _is_dataset(node):
        cells = _cells(path, node, max_bytes)
        levels = node.attrs.get("categories")
        if levels is None:
            return cells, _taken(node)
        # Files of 2019 keep levels beside the columns and refer to them by address.
        # An address stays within the file; the name of a path could lead to another one.
        h5py = import_extra("h5py", "mudata", "Reading MuData and AnnData files")
        if not isinstance(levels, h5py.Reference):
            raise InputError(f"{path}: {node.name} does not say where its levels are.")
        found = node.file[levels]
        beside = member(path, member(path, table, "__categories"), found.name.rsplit("/", 1)[-1])
        if beside != found:
            raise InputError(f"{path}: {node.name} has its levels outside of its table.")
        parts = {"codes": cells, "categories": _cells(path, beside, max_bytes)}
        return _categorical(beside, parts), _taken(node)
    kind = str(node.attrs.get("encoding-type", ""))
    read = _GROUPS.get(kind)
    if read is None:
        raise InputError(
            f"{path}: {node.name} is a column of kind {kind[:40]!a}, which is not read. Leave it "
            "out when writing the file."
        )
    parts = {key: member(path, node, key) for key in read[0]}
    taken = sum(map(_taken, parts.values()))
    check_size(path, taken, max_bytes, _ADVICE)
    return read[1](node, {key: _cells(path, one, max_bytes) for key, one in parts.items()}), taken


def _categorical(node: Any, parts: dict[str, np.ndarray]) -> Any:
    ordered = bool(node.attrs.get("ordered", False))
    levels = pd.Index(parts["categories"])
    return pd.Categorical.from_codes(parts["codes"].astype(np.intp), levels, ordered=ordered)


def _nullable(node: Any, parts: dict[str, np.ndarray]) -> Any:
    values, mask = parts["values"], parts["mask"].astype(bool)
    if values.dtype.kind == "b":
        return pd.arrays.BooleanArray(values, mask)
    if values.dtype.kind in "iu":
        return pd.arrays.IntegerArray(values, mask)
    made = values.astype(object)
    made[mask] = None
    return made


_GROUPS: dict[str, tuple[tuple[str, ...], Callable[[Any, dict[str, np.ndarray]], Any]]] = {
    "categorical": (("codes", "categories"), _categorical),
    **dict.fromkeys(
        ("nullable-integer", "nullable-boolean", "nullable-string-array"),
        (("values", "mask"), _nullable),
    ),
}


def _cells(path: Path, node: Any, max_bytes: int) -> np.ndarray:
    """Return the cells of a data set with one axis: numbers, or text as objects."""
    if not _is_dataset(node) or node.ndim != 1:
        raise InputError(f"{path}: {node.name} is not a list of cells.")
    check_size(path, _taken(node), max_bytes, _ADVICE)
    if node.dtype.kind in "biuf":
        return np.asarray(node[:])
    h5py = import_extra("h5py", "mudata", "Reading MuData and AnnData files")
    fixed = node.dtype.kind in "S"
    if not fixed and h5py.check_string_dtype(node.dtype) is None:
        raise InputError(f"{path}: {node.name} holds {node.dtype}, neither numbers nor text.")
    found: list[str] = []
    size = 0
    for start in range(0, node.shape[0], _TEXTS):
        piece = [_text(one) for one in node[start : start + _TEXTS]]
        # How long texts are is known only when they are read.
        size += sum(map(len, piece))
        check_size(path, size + _taken(node), max_bytes, _ADVICE)
        found += piece
    return np.array(found, dtype=object) if found else np.empty(0, dtype=object)


def _taken(node: Any) -> int:
    cells = int(node.size or 0) if _is_dataset(node) else 0
    return cells * (_PER_TEXT if cells and node.dtype.kind in "OS" else 16) + (
        4 * cells * node.dtype.itemsize if cells and node.dtype.kind == "S" else 0
    )


def _text(value: Any) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


def _is_dataset(node: Any) -> bool:
    h5py = import_extra("h5py", "mudata", "Reading MuData and AnnData files")
    return isinstance(node, h5py.Dataset)
