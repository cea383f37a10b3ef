"""Column statistics of a view: count, mean and variance in one pass over its columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from baldur.exceptions import InputError
from baldur.views.blocks import DEFAULT_BLOCK_BYTES, raw_tiles, tile_width
from baldur.views.source import MISSING_INT8
from baldur.views.validate import some
from baldur.views.view import View

__all__ = ["ColumnStatistics", "column_statistics"]

# Sums of this many squared int8 cells stay below 2^24, where float32 holds whole numbers exactly.
_EXACT_ROWS = 1000


@dataclass(frozen=True)
class ColumnStatistics:
    """What one pass over the training rows learns about each column.

    Attributes
    ----------
    count : int array of shape (n_features,)
        Cells that are not missing.
    mean, variance : float64 arrays of shape (n_features,)
        Over those cells; the variance divides by the count. 0 where the count is 0.
    """

    count: np.ndarray
    mean: np.ndarray
    variance: np.ndarray

    @property
    def constant(self) -> np.ndarray:
        """Columns whose spread is nothing but rounding."""
        eps = np.finfo(np.float64).eps
        bound = self.count * eps * self.variance + (self.count * self.mean * eps) ** 2
        return self.variance <= bound


def column_statistics(view: View, max_bytes: int = DEFAULT_BLOCK_BYTES) -> ColumnStatistics:
    """Learn count, mean and variance of every column; refuse infinities.

    Parameters
    ----------
    view : View
        Training rows of one view.
    max_bytes : int
        Largest block read at once.

    Returns
    -------
    ColumnStatistics
    """
    rows = view.rows
    present = view.present
    if not present.all():
        kept = np.flatnonzero(present)
        rows = kept if rows is None else rows[kept]
    n, d = int(present.sum()), view.shape[1]
    count, mean, variance = np.zeros(d, dtype=np.int64), np.zeros(d), np.zeros(d)
    learn = _of_int8 if view.dtype == np.int8 else _of_numbers
    width = tile_width(n, 8, view.dtype.itemsize, max_bytes)
    for cols, raw in raw_tiles(view.source, rows, width, max_bytes):
        count[cols], mean[cols], variance[cols] = learn(raw)
        if not np.isfinite(mean[cols]).all() or not np.isfinite(variance[cols]).all():
            _refuse_infinities(view, cols, raw)
    return ColumnStatistics(count, mean, variance)


def _of_int8(raw: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Use exact sums of small integers, for which the textbook variance is safe."""
    n, k = raw.shape
    count, total, squares = np.full(k, n), np.zeros(k), np.zeros(k)
    for start in range(0, n, _EXACT_ROWS):
        part = raw[start : start + _EXACT_ROWS]
        cells = part.astype(np.float32)
        if part.min() <= MISSING_INT8:
            gaps = part == MISSING_INT8
            np.copyto(cells, 0, where=gaps)
            count -= gaps.sum(axis=0)
        ones = np.ones(len(part), dtype=np.float32)
        total += ones @ cells
        squares += ones @ (cells * cells)
    safe = np.maximum(count, 1)
    mean = total / safe
    # n sum(x^2) - (sum x)^2 is a difference of whole numbers, so a constant column gives 0.
    variance = (squares * safe - total * total) / safe.astype(np.float64) ** 2
    return count, mean, variance


def _of_numbers(raw: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two passes over a tile that is in cache: mean first, then centred squares."""
    cells = raw.astype(np.float64)
    n = raw.shape[0]
    count = np.full(raw.shape[1], n)
    gaps = np.isnan(cells) if raw.dtype.kind == "f" else None
    if gaps is not None and not gaps.any():
        gaps = None
    if gaps is not None:
        np.copyto(cells, 0, where=gaps)
        count -= gaps.sum(axis=0)
    safe = np.maximum(count, 1)
    # Infinite cells are reported by the caller; they need no second message from NumPy.
    with np.errstate(invalid="ignore", over="ignore"):
        mean = cells.sum(axis=0) / safe
        cells -= mean
        if gaps is not None:
            np.copyto(cells, 0, where=gaps)
        cells *= cells
        variance = cells.sum(axis=0) / safe
    return count, mean, variance


def _refuse_infinities(view: View, cols: slice, raw: np.ndarray) -> None:
    infinite = np.isinf(raw) if raw.dtype.kind == "f" else np.zeros(raw.shape, dtype=bool)
    bad = np.flatnonzero(infinite.any(axis=0))
    if bad.size:
        raise InputError(
            f"View {view.name!r}: expected finite cells or NaN for missing ones, but found "
            f"infinities in {some(view.names_of(cols.start + bad).tolist())}. Replace them by NaN, "
            "or transform the columns that produced them (a logarithm of 0, a division by 0)."
        )
    raise InputError(
        f"View {view.name!r}: some columns hold numbers too large to be squared in float64. "
        "Rescale the view before fitting."
    )
