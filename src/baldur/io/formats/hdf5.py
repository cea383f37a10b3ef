"""Matrices in HDF5 files, dense or sparse, read lazily; links that leave the file are refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from baldur.exceptions import InputError
from baldur.io.formats.files import parsing
from baldur.optional import import_extra
from baldur.safety.budget import BLOCK_BYTES, check_ratio
from baldur.safety.limited_process import first_look

_MEMBERS = 200_000
# Largest chunk, which is unpacked as a whole for any of its cells; HDF5 recommends 1 MB.
_CHUNK_BYTES = 1 << 27
_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def open_file(path: Path) -> Any:
    """Open an HDF5 file for reading."""
    h5py = import_extra("h5py", "mudata", "Reading MuData and AnnData files")
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


def probe(path: Path, max_bytes: int) -> None:
    """Let another process read the file first, since a damaged one can crash the HDF5 library.

    It also counts texts, whose length is not in any header.
    """
    open_file(path).close()
    first_look(Path(__file__).with_name("hdf5_first_look.py"), path, max_bytes, "an HDF5 file")


def has_member(group: Any, key: str) -> bool:
    """Return whether a group has a direct member of that name, without following links."""
    h5py = import_extra("h5py", "mudata", "Reading MuData and AnnData files")
    if not isinstance(group, h5py.Group) or not key or "/" in key or key == ".":
        return False
    return group.get(key, getlink=True) is not None


def member(path: Path, group: Any, key: str) -> Any:
    """Return a direct member of a group, which has to be in this very file."""
    h5py = import_extra("h5py", "mudata", "Reading MuData and AnnData files")
    if not has_member(group, key):
        raise InputError(
            f"{path}: expected a MuData or AnnData file, but {group.name} has no {key[:80]!a}."
        )
    if not isinstance(group.get(key, getlink=True), h5py.HardLink):
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
    h5py = import_extra("h5py", "mudata", "Reading MuData and AnnData files")
    # Hard links can make circles; each object is looked at once.
    seen = set() if seen is None else seen
    info = h5py.h5o.get_info(node.id)
    if (info.fileno, info.addr) in seen:
        return
    seen.add((info.fileno, info.addr))
    if len(seen) > _MEMBERS:
        raise InputError(f"{path}: {node.name} has more members than AnnData writes.")
    if isinstance(node, h5py.Dataset):
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


class _H5Matrix:
    """A matrix inside an HDF5 file; opened for each read, so it pickles as a path."""

    def __init__(self, path: Path, node: str, shape: tuple[int, int], dtype: Any) -> None:
        self.path = path
        self.node = node
        self.shape = shape
        self.dtype = np.dtype(dtype)


class DenseMatrix(_H5Matrix):
    """A dense data set of an HDF5 file, read lazily."""

    def read(self, rows: np.ndarray | None, cols: slice | np.ndarray) -> np.ndarray:
        """Return the cells of `rows` (None: all) and `cols`, reading 64 MB at a time."""
        wanted = np.arange(self.shape[1])[cols]
        places = np.arange(self.shape[0]) if rows is None else np.asarray(rows)
        out = np.empty((len(places), len(wanted)), dtype=self.dtype)
        if not out.size:
            return out
        first, last = int(wanted.min()), int(wanted.max()) + 1
        step = max(1, BLOCK_BYTES // ((last - first) * self.dtype.itemsize))
        with parsing(self.path, "an HDF5 file"), open_file(self.path) as file:
            cells = file[self.node]
            for start in range(0, self.shape[0], step):
                hit = (places >= start) & (places < start + step)
                if hit.any():
                    block = cells[start : start + step, first:last]
                    out[hit] = block[places[hit] - start][:, wanted - first]
        return out


class SparseMatrix(_H5Matrix):
    """A sparse matrix (CSR or CSC) stored as data, indices and indptr."""

    def __init__(
        self, path: Path, node: str, shape: tuple[int, int], dtype: Any, by_row: bool
    ) -> None:
        super().__init__(path, node, shape, dtype)
        self.by_row = by_row
        lines, self._cells = shape if by_row else shape[::-1]
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

    @property
    def stored(self) -> int:
        """Return the number of stored (non-zero) cells."""
        return int(self.indptr[-1])

    def whole(self) -> Any:
        """Return the whole matrix as a SciPy sparse matrix."""
        pieces = list(self._pieces(0, len(self.indptr) - 1))
        piece = sparse.vstack([made for _, made in pieces], format="csr") if pieces else None
        if piece is None:
            return sparse.csr_matrix(self.shape, dtype=self.dtype)
        return piece if self.by_row else piece.T

    def read(self, rows: np.ndarray | None, cols: slice | np.ndarray) -> np.ndarray:
        """Return the cells of `rows` (None: all) and `cols`."""
        wanted = np.arange(self.shape[1])[cols]
        places = np.arange(self.shape[0]) if rows is None else np.asarray(rows)
        out = np.zeros((len(places), len(wanted)), dtype=self.dtype)
        if not out.size:
            return out
        along, across = (places, wanted) if self.by_row else (wanted, places)
        target = out if self.by_row else out.T
        for start, piece in self._pieces(int(along.min()), int(along.max()) + 1):
            hit = (along >= start) & (along < start + piece.shape[0])
            if hit.any():
                target[hit] = piece[along[hit] - start][:, across].toarray()
        return out

    def _pieces(self, first: int, last: int) -> Iterator[tuple[int, Any]]:
        """Yield (first line, lines as CSR), a bounded number of stored cells at a time."""
        room = max(1, BLOCK_BYTES // (8 + self.dtype.itemsize))
        with parsing(self.path, "an HDF5 file"), open_file(self.path) as file:
            group = file[self.node]
            while first < last:
                begin = int(self.indptr[first])
                stop = int(np.searchsorted(self.indptr, begin + room, side="right")) - 1
                stop = min(last, max(stop, first + 1))
                end = int(self.indptr[stop])
                indices = np.asarray(group["indices"][begin:end]).astype(np.int64)
                # SciPy would follow a wrong index outside its memory.
                if len(indices) and (indices.min() < 0 or indices.max() >= self._cells):
                    raise InputError(f"{self.path}: {self.node} is damaged; indices are too large.")
                data = np.asarray(group["data"][begin:end]).astype(self.dtype)
                pointer = self.indptr[first : stop + 1] - begin
                shape = (stop - first, self._cells)
                yield first, sparse.csr_matrix((data, indices, pointer), shape=shape)
                first = stop
