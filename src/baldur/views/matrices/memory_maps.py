"""Cells of a large memory-mapped file, read with plain file reads.

A map keeps every page it has touched in the resident set, and the kernel maps many pages around
each touched one, so the memory of a process would grow with the width of the file. Reading the
wanted cells into an array holds only those.
"""

from __future__ import annotations

import mmap
from io import FileIO
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from baldur.exceptions import InputError

__all__ = ["is_mapped", "read_mapped", "reads_by_file"]

# Smaller files are read through the map the user gave.
FILE_READ_BYTES = 1 << 26


def is_mapped(array: np.ndarray) -> bool:
    """Whether the cells of an array lie in a mapped file."""
    base: object = array
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap):
            return True
        base = base.base
    return False


def reads_by_file(array: np.ndarray) -> TypeGuard[np.memmap]:
    """Return whether `read_mapped` supports this array and is faster than the map.

    A slice of a map does not know where in the file it begins, and is read as usual.
    """
    return (
        isinstance(array, np.memmap)
        and array.nbytes >= FILE_READ_BYTES
        and isinstance(array.base, mmap.mmap)
        # Changes in a writable map may not be in the file yet.
        and array.mode == "r"
        and array.filename is not None
        and (array.flags.c_contiguous or array.flags.f_contiguous)
        and Path(array.filename).is_file()
    )


def read_mapped(array: np.memmap, rows: np.ndarray | None, cols: slice | np.ndarray) -> np.ndarray:
    """Return the cells of `rows` (None: all) and `cols`, read from the file behind the map."""
    if array.flags.c_contiguous:
        return _read_lines(array, array.shape[1], np.arange(array.shape[0]), rows, cols)
    wanted = np.arange(array.shape[1])[cols]
    inner = slice(None) if rows is None else rows
    return _read_lines(array, array.shape[0], np.arange(array.shape[1]), wanted, inner).T


def _read_lines(
    array: np.memmap,
    length: int,
    every: np.ndarray,
    lines: np.ndarray | None,
    cells: slice | np.ndarray,
) -> np.ndarray:
    """Read some cells of some lines, a line being `length` cells that follow each other."""
    lines = every if lines is None else lines
    index = None
    if isinstance(cells, slice) and cells.indices(length)[2] == 1:
        first, last, _ = cells.indices(length)
    else:
        index = np.arange(length)[cells]
        first, last = (int(index.min()), int(index.max()) + 1) if len(index) else (0, 0)
        index = index - first
    span = max(0, last - first)
    out = np.empty((len(lines), span if index is None else len(index)), dtype=array.dtype)
    line = np.empty(span, dtype=array.dtype)
    with FileIO(str(array.filename), "r") as file:
        for i, number in enumerate(lines):
            target: Any = out[i] if index is None else line
            file.seek(array.offset + (int(number) * length + first) * array.itemsize)
            got = file.readinto(memoryview(target).cast("B")) if target.size else 0
            if got != target.nbytes:
                raise InputError(
                    f"{array.filename}: expected {target.nbytes} bytes at line {number}, but the "
                    f"file gave {got}. It changed since it was opened; open it again."
                )
            if index is not None:
                out[i] = line[index]
    return out
