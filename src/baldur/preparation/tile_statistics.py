"""Statistics of the columns of one tile, taken while it is in cache."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from baldur.views.matrices.source import MISSING_INT8

SMALLEST_SPREAD, LARGEST_SPREAD = 1e-140, 1e140
"""Standard deviations that are worked with. Their squares, and the ratio of any two of them, are
numbers that float64 holds, with room for a weight in front."""

_ROUNDING = 8 * np.finfo(np.float64).eps
"""Values this close, relative to their size, are one value computed in different ways."""

# Standard deviations, in units of the mean, below which rounding of the mean would show.
_OFFSET = 1e-8

# Sums of this many squared int8 cells stay below 2^24, where float32 holds whole numbers exactly.
_EXACT_ROWS = 1000


@dataclass
class TileStatistics:
    """Counts, means, variances and ranges of the columns of a tile."""

    count: np.ndarray  # (k,); Cells that are not missing
    mean: np.ndarray  # mean, variance: (k,); Over those cells, by weight
    variance: np.ndarray
    low: np.ndarray  # low, high: (k,); Smallest and largest value
    high: np.ndarray
    mass: np.ndarray  # (k,); Weight of the cells that are not missing
    centred: np.ndarray | None = None  # (n, k)
    squares: np.ndarray | None = None

    def clip(
        self, raw: np.ndarray, at: np.ndarray, spread: np.ndarray, weight: np.ndarray | None
    ) -> None:
        """Replace mean and variance of some columns by those of their clipped cells.

        Only the few cells beyond are looked at: each changes the sums by what the clip takes off.

        Shapes: raw (n, k), weight (n,).
        """
        if self.centred is None or self.squares is None:
            part = _of_numbers(raw[:, at], weight)
            part.clip(raw[:, at], np.arange(len(at)), spread, weight)
            self.mean[at], self.variance[at] = part.mean, part.variance
            return
        limit = np.full(len(self.mean), np.inf)
        limit[at] = spread
        # On the flat array the search is ten times faster than by row and column.
        row, column = np.divmod(np.flatnonzero(self.squares > limit**2), len(self.mean))
        if not row.size:
            return
        beyond = self.centred[row, column]
        held = np.copysign(limit[column], beyond)
        share = np.ones(len(row)) if weight is None else weight[row]
        share = share / self.mass[column]
        k = len(self.mean)
        shift = np.bincount(column, share * (held - beyond), k)
        less = np.bincount(column, share * (beyond**2 - held**2), k)
        self.mean += shift
        self.variance += -less - shift**2


def tile_statistics(raw: np.ndarray, weight: np.ndarray | None = None) -> TileStatistics:
    """Compute the statistics of every column of a tile.

    Shapes: raw (n, k), weight (n,).
    """
    if raw.dtype == np.int8 and weight is None:
        return _of_int8(raw)
    return _of_numbers(raw, weight)


def as_floats(raw: np.ndarray) -> np.ndarray:
    """Return a float64 copy with NaN for missing cells."""
    cells = raw.astype(np.float64)
    if raw.dtype == np.int8 and raw.size and raw.min() <= MISSING_INT8:
        cells[raw == MISSING_INT8] = np.nan
    return cells


def _of_int8(raw: np.ndarray) -> TileStatistics:
    """Use exact sums of small integers, for which the textbook variance is safe."""
    n, k = raw.shape
    count, total, squares = np.full(k, n), np.zeros(k), np.zeros(k)
    low, high = np.full(k, 127, dtype=np.int8), np.full(k, -128, dtype=np.int8)
    for start in range(0, n, _EXACT_ROWS):
        part = raw[start : start + _EXACT_ROWS]
        cells = part.astype(np.float32)
        least = part.min(axis=0)
        if least.min() <= MISSING_INT8:
            gaps = part == MISSING_INT8
            np.copyto(cells, 0, where=gaps)
            count -= gaps.sum(axis=0)
            least = part.min(axis=0, initial=127, where=~gaps)
            most = part.max(axis=0, initial=-128, where=~gaps)
        else:
            most = part.max(axis=0)
        np.minimum(low, least, out=low)
        np.maximum(high, most, out=high)
        ones = np.ones(len(part), dtype=np.float32)
        total += ones @ cells
        squares += ones @ (cells * cells)
    safe = np.maximum(count, 1)
    mean = total / safe
    # n sum(x^2) - (sum x)^2 is a difference of whole numbers, so a constant column gives 0.
    variance = (squares * safe - total * total) / safe.astype(np.float64) ** 2
    empty = count == 0
    low[empty] = high[empty] = 0
    return TileStatistics(count, mean, variance, low, high, safe)


def _of_numbers(raw: np.ndarray, weight: np.ndarray | None) -> TileStatistics:
    """Two passes over a tile that is in cache: mean first, then centred squares."""
    cells = as_floats(raw)
    n, k = cells.shape
    count, gaps = np.full(k, n), None
    # Infinite cells are reported by the caller; they need no second message from NumPy.
    with np.errstate(invalid="ignore", over="ignore"):
        total = _sum(cells, weight)
        mass = np.full(k, float(n) if weight is None else weight.sum())
        if np.isfinite(total).all():
            low, high = raw.min(axis=0), raw.max(axis=0)
        else:
            low, high = np.fmin.reduce(cells, axis=0), np.fmax.reduce(cells, axis=0)
            gaps = np.isnan(cells)
            np.copyto(cells, 0, where=gaps)
            count = n - gaps.sum(axis=0)
            mass = count.astype(np.float64) if weight is None else weight @ ~gaps
            mass[mass == 0] = 1.0
            total = _sum(cells, weight)
        mean = total / mass
        cells -= mean
        if gaps is not None:
            np.copyto(cells, 0, where=gaps)
        squares = cells * cells
        variance = _sum(squares, weight) / mass
        # Behind a large offset the mean has lost digits: what is left of it is taken off as well.
        at = np.flatnonzero(variance < _OFFSET**2 * mean**2)
        if at.size:
            rest = _sum(cells[:, at], weight) / mass[at]
            mean[at] += rest
            cells[:, at] -= rest if gaps is None else np.where(gaps[:, at], 0.0, rest)
            squares[:, at] = cells[:, at] ** 2
            variance[at] = _sum(squares[:, at], weight) / mass[at]
    return TileStatistics(count, mean, variance, low, high, mass, cells, squares)


def same_but_rounding(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Tell where the smallest and largest value of a column are the same number, but for rounding.

    Shapes: low, high (k,); returns (k,).
    """
    # Halves: the difference of two numbers may be beyond the largest.
    size = np.maximum(np.abs(low), np.abs(high))
    return np.asarray(high / 2 - low / 2 <= _ROUNDING * (size / 2))


def _sum(cells: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    return np.asarray(cells.sum(axis=0) if weight is None else weight @ cells)


def find_discrete(raw: np.ndarray, tile: TileStatistics) -> tuple[np.ndarray, np.ndarray]:
    """Find columns of one or two values, and columns of genotype codes (0, 1, 2) only.

    The mean of (x - min)(max - x) is (mean - min)(max - mean) - variance. It is 0 for one or two
    values and positive otherwise, so nearly all columns are decided without reading a cell.

    Shapes: raw (n, k); returns few, codes (k,).
    """
    low, high = tile.low.astype(np.float64), tile.high.astype(np.float64)
    empty = tile.count == 0
    product = (tile.mean - low) * (high - tile.mean)
    # What rounding of the mean can do to the product.
    error = len(raw) * np.finfo(np.float64).eps * np.maximum(np.abs(low), np.abs(high))
    maybe_two = np.abs(product - tile.variance) <= (1e-6 * product + (high - low + error) * error)
    maybe_codes = (low >= 0) & (high <= 2) & (low % 1 == 0) & (high % 1 == 0)
    few, codes = empty.copy(), np.zeros(len(low), dtype=bool)
    at = np.flatnonzero((maybe_two | maybe_codes) & ~empty)
    if raw.dtype == np.int8:  # whole numbers: the range decides
        codes = maybe_codes & ~empty
        at = at[~codes[at]]
    if at.size:
        cells = as_floats(raw[:, at])
        gaps = np.isnan(cells)
        few[at] = ((cells == low[at]) | (cells == high[at]) | gaps).all(axis=0)
        codes[at] = ((cells == 0) | (cells == 1) | (cells == 2) | gaps).all(axis=0)
    return few, codes
