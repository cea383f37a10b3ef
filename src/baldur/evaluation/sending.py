"""How a matrix travels to other processes: whole, or by the file it lies in.

Large matrices are mapped from a file in every process, so that all work on the same tiles.
"""

from __future__ import annotations

import mmap
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from baldur.atomic_io import writing
from baldur.views.source import ArraySource, RowMapSource, Source, as_source

__all__ = ["carried", "file_of", "landed", "opened", "to_send"]

MAP_BYTES = 1 << 26
"""Arrays from this size on are mapped from a file instead of sent."""


@dataclass(frozen=True)
class Mapped:
    """A matrix in a file, found by where it lies."""

    file: str
    dtype: np.dtype
    shape: tuple[int, int]
    offset: int
    order: Literal["C", "F"]

    def open(self) -> np.ndarray:
        """Return it as a map of the file."""
        return np.memmap(
            self.file, dtype=self.dtype, mode="r", offset=self.offset, shape=self.shape,
            order=self.order,
        )  # fmt: skip


@dataclass(frozen=True)
class _Carried:
    """A matrix of a file that the receiver cannot see; it is given a file there."""

    array: np.ndarray


@dataclass(frozen=True)
class RowMapped:
    """A matrix whose rows are found through a map."""

    base: Any
    row_map: np.ndarray


def to_send(source: Source, file: Path) -> Any:
    """What stands for a matrix in the payload: itself, or where to find it."""
    if isinstance(source, RowMapSource):
        return RowMapped(to_send(source.base, file), source.row_map)
    if not isinstance(source, ArraySource):
        return source
    array = source.array
    if source.in_memory and array.nbytes < MAP_BYTES:
        return array
    whole = isinstance(array, np.memmap) and array.mode == "r" and array.filename is not None
    # A slice of a map does not know where in the file it begins.
    if not (whole and isinstance(array.base, mmap.mmap) and array.flags.forc):
        array = _map_anew(array, file)
    order: Literal["C", "F"] = "C" if array.flags.c_contiguous else "F"
    return Mapped(str(array.filename), array.dtype, array.shape, array.offset, order)


def _map_anew(array: np.ndarray, file: Path) -> np.memmap:
    with writing(file):
        np.save(file, array)
    return np.load(file, mmap_mode="r")


def carried(part: Any, files: Collection[str]) -> Any:
    """Replace a matrix in one of the files by its content."""
    if isinstance(part, RowMapped):
        return RowMapped(carried(part.base, files), part.row_map)
    if isinstance(part, Mapped) and part.file in files:
        return _Carried(np.array(part.open(), order=part.order))
    return part


def landed(part: Any, file: Path) -> Any:
    """Undo `_carried` where it has arrived: large matrices are mapped from a file everywhere."""
    if isinstance(part, RowMapped):
        return RowMapped(landed(part.base, file), part.row_map)
    return _map_anew(part.array, file) if isinstance(part, _Carried) else part


def opened(part: Any) -> Any:
    """Return what a view is made of, in the process that uses it."""
    if isinstance(part, Mapped):
        return part.open()
    if isinstance(part, RowMapped):
        return RowMapSource(as_source(opened(part.base), "view"), part.row_map)
    return part


def file_of(part: Any) -> str | None:
    """Return the file a matrix lies in, or None where it travels whole."""
    if isinstance(part, RowMapped):
        return file_of(part.base)
    return part.file if isinstance(part, Mapped) else None
