"""Matrices in HDF5 files, dense or sparse, read lazily; links that leave the file are refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from baldur.exceptions import InputError
from baldur.io._files import import_extra, parsing

__all__ = ["DenseMatrix", "SparseMatrix", "check_inside", "open_file", "probe"]

_BLOCK = 1 << 26
_DEPTH = 8
_MEMBERS = 200_000
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


def probe(path: Path) -> None:
    """Let another process read the file first, since a damaged one can crash the HDF5 library."""
    open_file(path).close()
    seconds = 30 + path.stat().st_size / 2e7
    script = Path(__file__).with_name("_h5_probe.py")
    try:
        done = subprocess.run(
            [sys.executable, "-P", str(script), str(path)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(
            f"{path}: the HDF5 library did not finish reading it in {seconds:.0f} seconds. The "
            "file is damaged; write or copy it again."
        ) from error
    if done.returncode < 0:
        raise InputError(
            f"{path}: the HDF5 library crashed on it (signal {-done.returncode}). The file is "
            "damaged; write or copy it again."
        )


def check_inside(path: Path, node: Any, max_bytes: int, depth: int = 0) -> None:
    """Refuse links, external storage and absurd sizes anywhere below a group or data set.

    AnnData writes none of these; a file that has them could make us read other files.
    """
    h5py = import_extra("h5py", "mudata", "Reading MuData and AnnData files")
    if isinstance(node, h5py.Dataset):
        if node.external or node.is_virtual:
            raise InputError(
                f"{path}: {node.name} keeps its cells in another file, which is not opened. Write "
                "the object again with write_h5mu or write_h5ad."
            )
        if node.size is not None and node.size * node.dtype.itemsize > max_bytes:
            raise InputError(
                f"{path}: {node.name} claims {node.size * node.dtype.itemsize / 2**30:.3g} GB, "
                f"above the limit max_bytes of {max_bytes / 2**30:.3g} GB."
            )
        return
    if depth > _DEPTH or len(node) > _MEMBERS:
        raise InputError(f"{path}: {node.name} is nested deeper or wider than AnnData writes.")
    for key in node:
        link = node.get(key, getlink=True)
        if not isinstance(link, h5py.HardLink):
            raise InputError(
                f"{path}: {node.name}/{key} is a link to somewhere else, which is not followed. "
                "Write the object again with write_h5mu or write_h5ad."
            )
        check_inside(path, node[key], max_bytes, depth + 1)


class _H5Matrix:
    """A matrix inside an HDF5 file; opened for each read, so it pickles as a path."""

    def __init__(self, path: Path, node: str, shape: tuple[int, int], dtype: Any) -> None:
        self.path = path
        self.node = node
        self.shape = shape
        self.dtype = np.dtype(dtype)


class DenseMatrix(_H5Matrix):
    """A dense data set."""

    def read(self, rows: np.ndarray | None, cols: slice | np.ndarray) -> np.ndarray:
        """Return the cells of `rows` (None: all) and `cols`, reading 64 MB at a time."""
        wanted = np.arange(self.shape[1])[cols]
        places = np.arange(self.shape[0]) if rows is None else np.asarray(rows)
        out = np.empty((len(places), len(wanted)), dtype=self.dtype)
        if not out.size:
            return out
        first, last = int(wanted.min()), int(wanted.max()) + 1
        step = max(1, _BLOCK // ((last - first) * self.dtype.itemsize))
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
            self.indptr = np.asarray(group["indptr"][:]).astype(np.int64)
            stored = int(group["data"].shape[0])
            fits = len(self.indptr) == lines + 1 and group["indices"].shape == (stored,)
        if not fits or self.indptr[0] != 0 or self.indptr[-1] != stored:
            raise InputError(f"{path}: {node} is not a sparse matrix of shape {shape}.")
        if (np.diff(self.indptr) < 0).any():
            raise InputError(f"{path}: {node} is damaged; its row pointers do not rise.")

    @property
    def stored(self) -> int:
        """Number of cells stored."""
        return int(self.indptr[-1])

    def whole(self) -> Any:
        """Return the matrix in memory, as SciPy knows it."""
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
        room = max(1, _BLOCK // (8 + self.dtype.itemsize))
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
