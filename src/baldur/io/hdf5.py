"""Matrices in HDF5 files, dense or sparse, read lazily; links that leave the file are refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from baldur.core.escape import check_names
from baldur.core.limits import BLOCK_BYTES, check_ratio, check_size
from baldur.core.optional import import_extra
from baldur.exceptions import InputError
from baldur.io.files import check_unique_columns, parsing

_MEMBERS = 200_000
# Largest chunk, which is unpacked as a whole for any of its cells; HDF5 recommends 1 MB.
_CHUNK_BYTES = 1 << 27
_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def _h5py() -> Any:
    return import_extra("h5py", "mudata", "Reading MuData and AnnData files")


def is_dataset(node: Any) -> bool:
    """Return whether a member of a file is a data set, not a group."""
    return isinstance(node, _h5py().Dataset)


def open_file(path: Path) -> Any:
    """Open an HDF5 file for reading."""
    h5py = _h5py()  # first, as without it no file can be read, whatever it holds
    with path.open("rb") as stream:
        head = stream.read(2056)
    # MuData puts 512 bytes of its own in front.
    if all(head[at : at + 8] != _SIGNATURE for at in (0, 512, 1024, 2048)):
        raise InputError(
            f"{path}: expected an HDF5 file, but it does not begin like one. The file is damaged "
            "or of another kind."
        )
    with parsing(path, "an HDF5 file"):
        return h5py.File(path, "r", locking=False)


def has_member(group: Any, key: str) -> bool:
    """Return whether a group has a direct member of that name, without following links."""
    if not isinstance(group, _h5py().Group) or not key or "/" in key or key == ".":
        return False
    return group.get(key, getlink=True) is not None


def member(path: Path, group: Any, key: str) -> Any:
    """Return a direct member of a group, which has to be in this very file."""
    if not has_member(group, key):
        raise InputError(
            f"{path}: expected a MuData or AnnData file, but {group.name} has no {key[:80]!a}."
        )
    if not isinstance(group.get(key, getlink=True), _h5py().HardLink):
        raise InputError(
            f"{path}: {group.name}/{key} is a link to somewhere else, which is not followed. Write "
            "the object again with write_h5mu or write_h5ad."
        )
    return group[key]


def check_inside(path: Path, node: Any, seen: set[tuple[int, int]] | None = None) -> None:
    """Refuse links, external storage and cells never written, anywhere below a group or data set.

    AnnData writes none of these; a file that has them could make us read other files, or fill the
    memory.
    """
    # Hard links can make circles; each object is looked at once.
    seen = set() if seen is None else seen
    info = _h5py().h5o.get_info(node.id)
    if (info.fileno, info.addr) in seen:
        return
    seen.add((info.fileno, info.addr))
    if len(seen) > _MEMBERS:
        raise InputError(f"{path}: {node.name} has more members than AnnData writes.")
    if is_dataset(node):
        if node.external or node.is_virtual:
            raise InputError(
                f"{path}: {node.name} keeps its cells in another file, which is not opened. Write "
                "the object again with write_h5mu or write_h5ad."
            )
        claimed = float(node.size or 0) * node.dtype.itemsize
        check_ratio(path, node.name, claimed, node.id.get_storage_size())
        chunk = math.prod(node.chunks or ()) * node.dtype.itemsize
        if chunk > _CHUNK_BYTES:
            raise InputError(
                f"{path}: {node.name} is stored in chunks of {chunk / 2**20:,.0f} MB, and "
                f"{_CHUNK_BYTES >> 20} MB are the most that is read. Write it in smaller chunks."
            )
        return
    for key in node:
        check_inside(path, member(path, node, key), seen)


class DenseMatrix:
    """A dense data set of an HDF5 file, opened for each read, so that it pickles as a path.

    Files are read along lines: the rows of the matrix, or its columns where the file stores these
    one after another (`by_row` is false).
    """

    by_row = True

    def __init__(self, path: Path, node: str, shape: tuple[int, int], dtype: Any) -> None:
        self.path, self.node = path, node
        self.shape, self.dtype = shape, np.dtype(dtype)
        # Of the matrix in memory.
        self.n_bytes = shape[0] * shape[1] * self.dtype.itemsize

    def whole(self) -> Any:
        """Return the matrix in memory."""
        return self.read(None, slice(None))

    def read(self, rows: np.ndarray | None, cols: slice | np.ndarray) -> np.ndarray:
        """Return the cells of `rows` (None: all) and `cols`."""
        columns = np.arange(self.shape[1])[cols]
        rows = np.arange(self.shape[0]) if rows is None else np.asarray(rows)
        out = np.zeros((len(rows), len(columns)), dtype=self.dtype)
        if not out.size:
            return out
        # Wanted lines, and the wanted positions within a line.
        lines, cells = (rows, columns) if self.by_row else (columns, rows)
        target = out if self.by_row else out.T
        for start, piece in self._pieces(int(lines.min()), int(lines.max()) + 1, cells):
            in_piece = (lines >= start) & (lines < start + piece.shape[0])
            if in_piece.any():
                part = piece[lines[in_piece] - start]
                target[in_piece] = part.toarray() if sparse.issparse(part) else part
        return out

    def _pieces(self, first: int, last: int, cells: np.ndarray) -> Iterator[tuple[int, Any]]:
        """Yield the lines from `first` to before `last`, 64 MB at a time, as (start, piece).

        Shapes: cells, positions within a line; piece (n_lines, n_cells), `start` its first line.
        """
        low, high = int(cells.min()), int(cells.max()) + 1
        step = max(1, BLOCK_BYTES // ((high - low) * self.dtype.itemsize))
        with parsing(self.path, "an HDF5 file"), open_file(self.path) as file:
            for start in range(first, last, step):
                block = file[self.node][start : min(start + step, last), low:high]
                yield start, block[:, cells - low]


class SparseMatrix(DenseMatrix):
    """A sparse matrix (CSR or CSC) stored as data, indices and indptr."""

    def __init__(
        self, path: Path, node: str, shape: tuple[int, int], dtype: Any, by_row: bool
    ) -> None:
        super().__init__(path, node, shape, dtype)
        self.by_row = by_row
        lines = shape[0] if by_row else shape[1]
        with parsing(path, "an HDF5 file"), open_file(path) as file:
            group = file[node]
            stored = int(group["data"].shape[0])
            fits = group["indptr"].shape == (lines + 1,) and group["indices"].shape == (stored,)
            # Read only when it is as long as the rows, whose names are known to fit.
            self.indptr = np.asarray(group["indptr"][:] if fits else [0]).astype(np.int64)
        if not fits or self.indptr[0] != 0 or self.indptr[-1] != stored:
            raise InputError(f"{path}: {node} is not a sparse matrix of shape {shape}.")
        if (np.diff(self.indptr) < 0).any():
            raise InputError(
                f"{path}: {node} is damaged; its row pointers are not in increasing order."
            )
        # In pieces, and put together.
        self.n_bytes = 2 * stored * (8 + self.dtype.itemsize)

    def whole(self) -> Any:
        """Return the matrix in memory as a SciPy sparse matrix."""
        pieces = [piece for _, piece in self._pieces(0, len(self.indptr) - 1, slice(None))]
        if not pieces:
            return sparse.csr_matrix(self.shape, dtype=self.dtype)
        whole = sparse.vstack(pieces, format="csr")
        return whole if self.by_row else whole.T

    def _pieces(
        self, first: int, last: int, cells: slice | np.ndarray
    ) -> Iterator[tuple[int, Any]]:
        """Yield lines from `first` to before `last` as (start, piece in CSR format), by 64 MB."""
        max_entries = max(1, BLOCK_BYTES // (8 + self.dtype.itemsize))
        width = self.shape[1] if self.by_row else self.shape[0]
        with parsing(self.path, "an HDF5 file"), open_file(self.path) as file:
            group = file[self.node]
            while first < last:
                # Lines `first` to `stop` store the entries `begin` to `end`.
                begin = int(self.indptr[first])
                stop = int(np.searchsorted(self.indptr, begin + max_entries, side="right")) - 1
                stop = min(last, max(stop, first + 1))
                end = int(self.indptr[stop])
                indices = np.asarray(group["indices"][begin:end]).astype(np.int64)
                # SciPy would follow a wrong index outside its memory.
                if len(indices) and (indices.min() < 0 or indices.max() >= width):
                    raise InputError(f"{self.path}: {self.node} is damaged; indices are too large.")
                data = np.asarray(group["data"][begin:end]).astype(self.dtype)
                pointer = self.indptr[first : stop + 1] - begin
                lines = sparse.csr_matrix((data, indices, pointer), shape=(stop - first, width))
                yield first, lines[:, cells]
                first = stop


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
    if not is_dataset(node):
        raise InputError(f"{path}: {table.name} has no list of names as its index.")
    return np.array([str(name) for name in _cells(path, node, max_bytes)], dtype=object)


def read_frame(path: Path, table: Any, max_bytes: int) -> pd.DataFrame:
    """Return a table with all its columns, indexed by the names of its rows."""
    if is_dataset(table) or "column-order" not in table.attrs:
        raise InputError(f"{path}: {table.name} is not a table as AnnData writes it.")
    order = [_text(name) for name in np.asarray(table.attrs["column-order"]).ravel()]
    check_unique_columns(f"{path}, {table.name}", order)
    check_names(order, "column name", f"{path}, {table.name}")
    index = read_index(path, table, max_bytes)
    columns = {}
    bytes_left = max_bytes - len(index) * _PER_TEXT
    for name in order:
        node = member(path, table, name)
        cells, memory = _read_column(path, table, node, bytes_left)
        bytes_left -= memory
        if len(cells) != len(index):
            raise InputError(
                f"{path}: {table.name}/{name} has {len(cells)} cells for {len(index)} rows."
            )
        columns[name] = cells
    return pd.DataFrame(columns, index=pd.Index(index, dtype=object))


def _read_column(path: Path, table: Any, node: Any, max_bytes: int) -> tuple[Any, int]:
    """Return a column in its pandas type, and the memory it takes."""
    if is_dataset(node):
        cells = _cells(path, node, max_bytes)
        levels = node.attrs.get("categories")
        if levels is None:
            return cells, _memory(node)
        # Files of 2019 keep levels beside the columns and refer to them by address.
        # An address stays within the file; the name of a path could lead to another one.
        if not isinstance(levels, _h5py().Reference):
            raise InputError(f"{path}: {node.name} does not say where its levels are.")
        target = node.file[levels]
        beside = member(path, member(path, table, "__categories"), target.name.rsplit("/", 1)[-1])
        if beside != target:
            raise InputError(f"{path}: {node.name} has its levels outside of its table.")
        return _categorical(beside, cells, _cells(path, beside, max_bytes)), _memory(node)
    kind = str(node.attrs.get("encoding-type", ""))
    keys = _COLUMNS.get(kind)
    if keys is None:
        raise InputError(
            f"{path}: {node.name} is a column of kind {kind[:40]!a}, which is not read. Leave it "
            "out when writing the file."
        )
    parts = [member(path, node, key) for key in keys]
    memory = sum(map(_memory, parts))
    check_size(path, memory, max_bytes, _ADVICE)
    first, second = (_cells(path, part, max_bytes) for part in parts)
    if kind == "categorical":
        return _categorical(node, first, second), memory
    return _nullable(first, second.astype(bool)), memory


_COLUMNS = {
    "categorical": ("codes", "categories"),
    "nullable-integer": ("values", "mask"),
    "nullable-boolean": ("values", "mask"),
    "nullable-string-array": ("values", "mask"),
}
"""Kinds of columns that are groups, with their members."""


def _categorical(node: Any, codes: np.ndarray, levels: np.ndarray) -> pd.Categorical:
    ordered = bool(node.attrs.get("ordered", False))
    return pd.Categorical.from_codes(codes.astype(np.intp), pd.Index(levels), ordered=ordered)


def _nullable(values: np.ndarray, mask: np.ndarray) -> Any:
    """Return a column in its pandas type, with missing cells where `mask` is true."""
    if values.dtype.kind == "b":
        return pd.arrays.BooleanArray(values, mask)
    if values.dtype.kind in "iu":
        return pd.arrays.IntegerArray(values, mask)
    texts = values.astype(object)
    texts[mask] = None
    return texts


def _cells(path: Path, node: Any, max_bytes: int) -> np.ndarray:
    """Return the cells of a data set with one axis: numbers, or text as objects."""
    if not is_dataset(node) or node.ndim != 1:
        raise InputError(f"{path}: {node.name} is not a list of cells.")
    check_size(path, _memory(node), max_bytes, _ADVICE)
    if node.dtype.kind in "biuf":
        return np.asarray(node[:])
    if node.dtype.kind != "S" and _h5py().check_string_dtype(node.dtype) is None:
        raise InputError(f"{path}: {node.name} holds {node.dtype}, neither numbers nor text.")
    texts: list[str] = []
    size = 0
    for start in range(0, node.shape[0], _TEXTS):
        piece = [_text(cell) for cell in node[start : start + _TEXTS]]
        # How long texts are is known only when they are read.
        size += sum(map(len, piece))
        check_size(path, size + _memory(node), max_bytes, _ADVICE)
        texts += piece
    return np.array(texts, dtype=object)


def _memory(node: Any) -> int:
    """Return the bytes that the cells of a data set take, apart from texts of any length."""
    if not is_dataset(node) or not node.size:
        return 0
    kind, width = node.dtype.kind, node.dtype.itemsize
    # Texts of fixed width ("S") become Python's, with up to four bytes for each character.
    per_cell = (_PER_TEXT if kind in "OS" else 16) + (4 * width if kind == "S" else 0)
    return int(node.size) * per_cell


def _text(value: Any) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)
