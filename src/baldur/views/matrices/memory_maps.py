"""Cells of a large memory-mapped file, read with plain file reads.

A map keeps every page it has touched in the resident set, and the kernel maps many pages around
each touched one, so the memory of a process would grow with the width of the file. Reading the
wanted cells into an array holds only those.
"""

from __future__ import annotations

import itertools
import mmap
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from baldur.exceptions import InputError

# Smaller files are read through the map the user gave.
FILE_READ_BYTES = 1 << 26
READ_BYTES = 1 << 22
"""Most bytes of one read: enough that calls cost little, and small beside the blocks of views."""


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
    if not out.size:
        return out
    # Lines that follow each other are read at once where most of their cells are wanted.
    together = max(1, READ_BYTES // (length * array.itemsize)) if 2 * span >= length else 1
    with FileIO(str(array.filename), "r") as file:
        for start, stop in _runs(lines, together):
            number = int(lines[start])
            cells_read: Any = np.empty((stop - start - 1) * length + span, dtype=array.dtype)
            file.seek(array.offset + (number * length + first) * array.itemsize)
            got = file.readinto(memoryview(cells_read).cast("B"))
            if got != cells_read.nbytes:
                raise InputError(
                    f"{array.filename}: expected {cells_read.nbytes} bytes at line {number}, but "
                    f"the file gave {got}. It changed since it was opened; open it again."
                )
            found = np.lib.stride_tricks.as_strided(
                cells_read, (stop - start, span), (length * array.itemsize, array.itemsize)
            )
            out[start:stop] = found if index is None else found[:, index]
    return out


def _runs(lines: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Yield places (start, stop) of lines that follow each other, at most so many at a time."""
    ends = np.flatnonzero(np.diff(lines) != 1) + 1
    for start, stop in itertools.pairwise([0, *ends.tolist(), len(lines)]):
        for at in range(start, stop, most):
            yield at, min(at + most, stop)
