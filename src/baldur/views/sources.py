"""Matrices read by column block, for chosen rows, without copying the whole.

Every backend answers one question, `read(rows, cols)`: the cells of these rows and columns as a
dense array in the dtype of storage. Rows stay deferred until that call, so cutting a container
into folds costs one index vector per fold.
"""

from __future__ import annotations

import itertools
import mmap
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
import pandas as pd
from scipy import sparse

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
    """Return the cells of `rows` (None: all) and `cols`, read from the file behind the map.

    A line of the file is a row of an array in C order, and a column of one in Fortran order.
    """
    path, (n, d) = str(array.filename), array.shape
    if array.flags.c_contiguous:
        lines = np.arange(n) if rows is None else rows
        return read_lines(path, array.offset, array.dtype, d, lines, cols)
    cells = slice(None) if rows is None else rows
    return read_lines(path, array.offset, array.dtype, n, np.arange(d)[cols], cells).T


def read_lines(
    path: str,
    offset: int,
    dtype: np.dtype,
    length: int,
    lines: np.ndarray,
    cells: slice | np.ndarray,
) -> np.ndarray:
    """Read some cells of some lines of a file, a line being `length` cells that follow each other.

    Shapes: lines (k,); returns (k, number of cells).
    """
    # Of each line the cells from first to before last are read; index says which of them are kept.
    index = None
    if isinstance(cells, slice) and cells.indices(length)[2] == 1:
        first, last, _ = cells.indices(length)
    else:
        index = np.arange(length)[cells]
        first, last = (int(index.min()), int(index.max()) + 1) if len(index) else (0, 0)
        index = index - first
    span = max(0, last - first)
    out = np.empty((len(lines), span if index is None else len(index)), dtype=dtype)
    if not out.size:
        return out
    # Lines that follow each other are read at once where most of their cells are wanted.
    together = max(1, READ_BYTES // (length * dtype.itemsize)) if 2 * span >= length else 1
    with FileIO(path, "r") as file:
        for start, stop in _runs(lines, together):
            number = int(lines[start])
            piece: Any = np.empty((stop - start - 1) * length + span, dtype=dtype)
            file.seek(offset + (number * length + first) * dtype.itemsize)
            n_bytes = file.readinto(memoryview(piece).cast("B"))
            if n_bytes != piece.nbytes:
                raise InputError(
                    f"{path}: expected {piece.nbytes} bytes at line {number}, but "
                    f"the file gave {n_bytes}. It changed since it was opened; open it again."
                )
            # One row per line; what lies between the cells of two lines is skipped.
            block = np.lib.stride_tricks.as_strided(
                piece, (stop - start, span), (length * dtype.itemsize, dtype.itemsize)
            )
            out[start:stop] = block if index is None else block[:, index]
    return out


def _runs(lines: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of runs of consecutive numbers in `lines`, each of `most` at most."""
    ends = np.flatnonzero(np.diff(lines) != 1) + 1
    for start, stop in itertools.pairwise([0, *ends.tolist(), len(lines)]):
        for at in range(start, stop, most):
            yield at, min(at + most, stop)


MISSING_INT8 = -127
"""Code of a missing cell in an int8 view, as PLINK readers write it."""

Rows = np.ndarray | None
Cols = slice | np.ndarray


DEFAULT_BLOCK_BYTES = 1 << 26
"""Bytes of one column block by default: 64 MB."""


def column_blocks(
    n_rows: int, n_columns: int, itemsize: int, max_bytes: int = DEFAULT_BLOCK_BYTES
) -> Iterator[slice]:
    """Cut columns into consecutive slices whose cells fit in `max_bytes`."""
    width = max(1, int(max_bytes // max(1, n_rows * itemsize)))
    for start in range(0, n_columns, width):
        yield slice(start, min(start + width, n_columns))


@runtime_checkable
class LazyMatrix(Protocol):
    """What a matrix must offer to be read lazily."""

    shape: tuple[int, int]
    dtype: Any

    def read(self, rows: Rows, cols: Cols) -> np.ndarray:
        """Return the cells of `rows` (None: all) and `cols` as a dense array."""


class Source:
    """A matrix of known shape and dtype, read piece by piece."""

    shape: tuple[int, int]
    dtype: np.dtype

    @property
    def in_memory(self) -> bool:
        """Whether the cells are in the process's own memory, not in a file."""
        return False

    def read(self, rows: Rows, cols: Cols) -> np.ndarray:
        """Return the cells of `rows` (None: all) and `cols`, dense, in the stored dtype."""
        raise TypeError(f"{type(self).__name__} does not say how to read its cells.")


class ArraySource(Source):
    """A NumPy array or memory map; contiguous pieces are views, not copies."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.shape = (array.shape[0], array.shape[1])
        self.dtype = array.dtype

    @property
    def in_memory(self) -> bool:
        """Whether the array is not mapped; checked on access, as joblib maps arrays for workers."""
        return not is_mapped(self.array)

    def read(self, rows: Rows, cols: Cols) -> np.ndarray:
        """Return the cells of `rows` (None: all) and `cols`, dense, in the stored dtype."""
        array = self.array
        if reads_by_file(array):
            return read_mapped(array, rows, cols)
        if rows is None:
            block = array[:, cols]
        elif (run := _as_run(rows)) is not None:
            block = array[run, cols]
        elif isinstance(cols, slice):
            # np.take writes C order; going through the transpose keeps a column-major layout.
            if array.flags.fnc:
                block = np.take(array.T[cols], rows, axis=1).T
            else:
                block = np.take(array[:, cols], rows, axis=0)
        else:
            block = array[np.ix_(rows, cols)]
        return np.asarray(block)


class SparseSource(Source):
    """A SciPy sparse matrix, made dense one column block at a time."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix if matrix.format in ("csc", "csr") else matrix.tocsc()
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        self.dtype = np.dtype(matrix.dtype)

    def read(self, rows: Rows, cols: Cols) -> np.ndarray:
        """Return the cells of `rows` (None: all) and `cols`, dense, in the stored dtype."""
        if rows is None:
            piece = self.matrix[:, cols]
        elif self.matrix.format == "csr":
            piece = self.matrix[rows][:, cols]
        else:
            piece = self.matrix[:, cols][rows]
        return np.asarray(piece.toarray())


class LazySource(Source):
    """Any object with `shape`, `dtype` and `read(rows, cols)`."""

    def __init__(self, matrix: LazyMatrix, view: str) -> None:
        self.matrix = matrix
        self.view = view
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        self.dtype = np.dtype(matrix.dtype)

    def read(self, rows: Rows, cols: Cols) -> np.ndarray:
        """Return the cells of `rows` (None: all) and `cols`, dense, in the stored dtype."""
        block = np.asarray(self.matrix.read(rows, cols))
        n = self.shape[0] if rows is None else len(rows)
        k = len(range(*cols.indices(self.shape[1]))) if isinstance(cols, slice) else len(cols)
        if block.shape != (n, k):
            raise InputError(
                f"View {self.view!r}: its read(rows, cols) was expected to return an array of "
                f"shape {(n, k)}, but returned {block.shape}. Make "
                f"{type(self.matrix).__name__}.read return one row per requested row and one "
                "column per requested column."
            )
        return block


class SubsetSource(Source):
    """Chosen rows and columns of another source (None: all), not copied until read.

    A row of -1 is a sample that the other source does not have. Its cells are filled with zeros.
    The container marks it as absent, so the filling is never used.
    """

    base: Source
    rows: np.ndarray | None
    columns: np.ndarray | None

    def __init__(
        self, base: Source, rows: np.ndarray | None = None, columns: np.ndarray | None = None
    ) -> None:
        if isinstance(base, SubsetSource):
            if base.rows is not None:
                rows = base.rows if rows is None else np.where(rows >= 0, base.rows[rows], -1)
            if base.columns is not None:
                columns = base.columns if columns is None else base.columns[columns]
            base = base.base
        self.base, self.rows, self.columns = base, rows, columns
        self.shape = (
            base.shape[0] if rows is None else len(rows),
            base.shape[1] if columns is None else len(columns),
        )
        self.dtype = base.dtype

    def simplified(self) -> Source:
        """Return the other source where all of its rows and columns are chosen, in order."""
        same = self.rows is None or np.array_equal(self.rows, np.arange(self.base.shape[0]))
        return self.base if same and self.columns is None else self

    @property
    def in_memory(self) -> bool:
        """Whether the cells of the other source are in memory."""
        return self.base.in_memory

    def read(self, rows: Rows, cols: Cols) -> np.ndarray:
        """Return the cells of `rows` (None: all) and `cols`, dense, in the stored dtype."""
        if self.columns is not None:
            cols = self.columns[cols]
        if self.rows is None:
            return self.base.read(rows, cols)
        wanted = self.rows if rows is None else self.rows[rows]
        exists = wanted >= 0  # others are samples that the base does not have
        if exists.all():
            return self.base.read(wanted, cols)
        cells = self.base.read(wanted[exists], cols)
        block = np.zeros((len(wanted), cells.shape[1]), dtype=cells.dtype)
        block[exists] = cells
        return block


def as_source(matrix: Any, view: str) -> Source:
    """Wrap one view's matrix, or raise an error that names the view."""
    if isinstance(matrix, Source):
        return matrix
    if isinstance(matrix, pd.DataFrame):
        matrix = _frame_to_array(matrix)
    if not (sparse.issparse(matrix) or isinstance(matrix, (np.ndarray, LazyMatrix))):
        matrix = _from_sequence(matrix, view)
    _check_shape_and_type(tuple(matrix.shape), np.dtype(matrix.dtype), view)
    if sparse.issparse(matrix):
        return SparseSource(matrix)
    if isinstance(matrix, np.ndarray):
        return ArraySource(_plain(matrix))
    return LazySource(matrix, view)


def _plain(array: np.ndarray) -> np.ndarray:
    """Drop subclasses other than memmap (np.matrix, masked arrays) that index differently."""
    if isinstance(array, np.ma.MaskedArray):
        floats = np.float32 if array.dtype in (np.float32, np.int8) else np.float64
        return np.ma.filled(array.astype(floats), np.nan)
    return array if isinstance(array, np.memmap) else np.asarray(array)


def _from_sequence(matrix: Any, view: str) -> np.ndarray:
    """Return nested lists and the like as an array, or raise an error that names the view."""
    try:
        return np.asarray(matrix)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"View {view!r}: expected a 2-D numeric matrix (array, memory map, sparse matrix, "
            f"DataFrame or an object with shape, dtype and read), but got "
            f"{type(matrix).__name__} that NumPy cannot turn into one ({error})."
        ) from error


def _frame_to_array(frame: pd.DataFrame) -> np.ndarray:
    """Return the cells of a DataFrame; columns of different kinds all become float64."""
    if any(pd.api.types.is_extension_array_dtype(dtype) for dtype in frame.dtypes):
        return frame.to_numpy(dtype=np.float64, na_value=np.nan)
    mixed = len({dtype.kind for dtype in frame.dtypes}) > 1
    return frame.to_numpy(dtype=np.float64) if mixed else frame.to_numpy()


def _check_shape_and_type(shape: tuple[int, ...], dtype: np.dtype, view: str) -> None:
    if len(shape) != 2:
        advice = "use column[:, None] for a single feature" if len(shape) == 1 else "reshape it"
        raise InputError(
            f"View {view!r}: expected a 2-D matrix (samples by features), but got an array of "
            f"shape {shape}; {advice}."
        )
    if dtype.kind == "c":
        raise InputError(
            f"View {view!r}: Complex data not supported; expected real numbers, but its dtype is "
            f"{dtype}. Split it into real and imaginary columns."
        )
    if dtype.kind not in "biuf":
        raise InputError(
            f"View {view!r}: expected numbers (bool, integer or float), but its dtype is "
            f"{dtype}. Convert it, for example with matrix.astype(float), and encode "
            "categories as numbers."
        )


def _as_run(rows: np.ndarray) -> slice | None:
    """Return rows that follow each other as a slice, which NumPy reads without copying."""
    if len(rows) == 0:
        return slice(0, 0)
    first, last = int(rows[0]), int(rows[-1])
    if last - first + 1 != len(rows) or (len(rows) > 1 and not (np.diff(rows) == 1).all()):
        return None
    return slice(first, last + 1)
