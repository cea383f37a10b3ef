"""Column statistics of a view, learned in one reading of its columns.

Mean and variance, smallest and largest value, which columns are discrete, and, for a clipped or
ranked view, what the clip or the ranks need: everything is taken from a tile while it is in cache.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from baldur.exceptions import InputError
from baldur.views.sources import DEFAULT_BLOCK_BYTES, MISSING_INT8, SubsetSource
from baldur.views.standardised_blocks import NormalScores, raw_tiles, tile_width
from baldur.views.validate import some
from baldur.views.view import View

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
    """Statistics of the k columns of a tile over the cells that are not missing.

    `mean` and `variance` are by weight, `mass` is the weight of these cells. The last two are cells
    of the tile less the mean, and their squares.

    Shapes: (k,); centred and squares (n, k).
    """

    count: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    low: np.ndarray
    high: np.ndarray
    mass: np.ndarray
    centred: np.ndarray | None = None
    squares: np.ndarray | None = None

    def clip(
        self, raw: np.ndarray, at: np.ndarray, spread: np.ndarray, weight: np.ndarray | None
    ) -> None:
        """Replace mean and variance of some columns by those of their clipped cells.

        `at` are the columns, and `spread` the distance from the mean at which each is clipped. Only
        the few cells beyond are looked at: each changes the sums by what the clip takes off.

        Shapes: raw (n, k), at and spread (number of columns,), weight (n,).
        """
        if self.centred is None or self.squares is None:  # of int8 cells
            part = _statistics_of_numbers(raw[:, at], weight)
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
        clipped = np.copysign(limit[column], beyond)
        share = np.ones(len(row)) if weight is None else weight[row]
        share = share / self.mass[column]
        k = len(self.mean)
        shift = np.bincount(column, share * (clipped - beyond), k)
        less = np.bincount(column, share * (beyond**2 - clipped**2), k)
        self.mean += shift
        # About the new mean: the mean square about the old one, less the square of the shift.
        self.variance += -less - shift**2


def as_floats(raw: np.ndarray) -> np.ndarray:
    """Return a float64 copy with NaN for missing cells."""
    cells = raw.astype(np.float64)
    if raw.dtype == np.int8 and raw.size and raw.min() <= MISSING_INT8:
        cells[raw == MISSING_INT8] = np.nan
    return cells


def _statistics_of_int8(raw: np.ndarray) -> TileStatistics:
    """Return the statistics of int8 columns from exact sums of the cells and their squares.

    With exact sums the textbook formula of the variance is safe. Shapes: raw (n, k).
    """
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
    divisor = np.maximum(count, 1)
    mean = total / divisor
    # n sum(x^2) - (sum x)^2 is a difference of whole numbers, so a constant column gives 0.
    variance = (squares * divisor - total * total) / divisor.astype(np.float64) ** 2
    empty = count == 0
    low[empty] = high[empty] = 0
    return TileStatistics(count, mean, variance, low, high, divisor)


def _statistics_of_numbers(raw: np.ndarray, weight: np.ndarray | None) -> TileStatistics:
    """Return the statistics of columns in two passes: mean first, then centred squares.

    Shapes: raw (n, k), weight (n,).
    """
    cells = as_floats(raw)
    n, k = cells.shape
    count = np.full(k, n)
    gaps = None  # missing cells, if there are any
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
    """Return which columns have at most two values, and which only genotype codes (0, 1, 2).

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
    few = empty.copy()
    codes = np.zeros(len(low), dtype=bool)
    at = np.flatnonzero((maybe_two | maybe_codes) & ~empty)  # to be decided by their cells
    if raw.dtype == np.int8:  # whole numbers: the range decides
        codes = maybe_codes & ~empty
        at = at[~codes[at]]
    if at.size:
        cells = as_floats(raw[:, at])
        gaps = np.isnan(cells)
        few[at] = ((cells == low[at]) | (cells == high[at]) | gaps).all(axis=0)
        codes[at] = ((cells == 0) | (cells == 1) | (cells == 2) | gaps).all(axis=0)
    return few, codes


MOST_KNOTS = 256
"""Training values that are stored per column. Up to this many samples every rank is
exact; beyond, values are chosen at even steps of the score, about .03 apart, and a cell is
interpolated between two of them."""

# Knots and scores of one view may take this much; they are a copy of its training rows.
_LIMIT_BYTES = 1 << 30

# A score this small is 0.
_RANK_ROUNDING = 1e-9


def check_knot_memory(name: str, n_rows: int, n_columns: int) -> None:
    """Refuse to rank a view whose knots would not fit in memory."""
    need = min(n_rows, MOST_KNOTS) * n_columns * 16
    if need > _LIMIT_BYTES:
        raise InputError(
            f"View {name!r}: scale='rank' keeps up to {MOST_KNOTS} training values of every "
            f"column, which needs {need / 2**30:.1f} GB for {n_columns:,} columns (limit "
            f"{_LIMIT_BYTES / 2**30:.0f} GB). Use scale='clipped', which is as robust and keeps "
            "two numbers per column."
        )


def normal_scores(
    cells: np.ndarray, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return knots and scores of some columns.

    With F the share of training weight below a value plus half of the weight at it, its score is
    the standard normal quantile of F, standardised over the training cells. Knots are the training
    values in rising order, or `MOST_KNOTS` of them where there are more.

    Shapes: cells (n_samples, k), weight (n_samples,); returns knots, scores (n_knots, k).
    """
    n, k = cells.shape
    order = np.argsort(cells, axis=0, kind="stable")
    values = np.take_along_axis(cells, order, axis=0)
    observed = ~np.isnan(values)
    mass = observed.astype(np.float64) if weight is None else weight[order] * observed
    upto_cell = np.cumsum(mass, axis=0)
    total = upto_cell[-1]
    # Equal values share one rank: from the mass before the first to that up to the last of them.
    is_first = np.ones((n, k), dtype=bool)
    is_first[1:] = values[1:] != values[:-1]
    row = np.arange(n)[:, None]
    first = np.maximum.accumulate(np.where(is_first, row, 0), axis=0)
    is_last = np.ones((n, k), dtype=bool)
    is_last[:-1] = is_first[1:]
    last = np.minimum.accumulate(np.where(is_last, row, n - 1)[::-1], axis=0)[::-1]
    below = np.take_along_axis(upto_cell - mass, first, axis=0)
    upto = np.take_along_axis(upto_cell, last, axis=0)
    scores = np.where(observed, ndtri(np.where(observed, (below + upto) / (2 * total), 0.5)), 0.0)
    mean = (mass * scores).sum(axis=0) / total
    scores -= mean
    scores /= np.sqrt((mass * scores**2).sum(axis=0) / total)
    count = observed.sum(axis=0)
    if n <= MOST_KNOTS:
        at = row
    else:
        # At even steps of the score, from that of the smallest to that of the largest value.
        even = np.linspace(-1.0, 1.0, MOST_KNOTS)[:, None] * ndtri(1 - 0.5 / count)
        at = np.rint(count * ndtr(even) - 0.5).astype(np.intp)
    # Missing cells sort last; a column with fewer values repeats its largest.
    at = np.minimum(at, count - 1)
    return np.take_along_axis(values, at, axis=0), np.take_along_axis(scores, at, axis=0)


def slope_at_median(knots: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where each column's score is 0, and how fast the score rises there.

    Shapes: knots, scores (n_knots, k); returns centre, slope (k,).
    """
    below, above = scores < -_RANK_ROUNDING, scores > _RANK_ROUNDING
    low = np.maximum(len(knots) - 1 - np.argmax(below[::-1], axis=0), 0)
    high = np.argmax(above, axis=0)
    columns = np.arange(knots.shape[1])
    x0, x1, s0, s1 = (a[i, columns] for a in (knots, scores) for i in (low, high))
    with np.errstate(over="ignore"):  # in a column whose spread is too small to be used
        slope = (s1 - s0) / (x1 - x0)
    nearest = np.argmin(np.abs(scores), axis=0)
    at_zero = np.abs(scores[nearest, columns]) <= _RANK_ROUNDING
    return np.where(at_zero, knots[nearest, columns], x0 - s0 / slope), slope


SCALES: tuple[str, ...] = ("clipped", "standard", "rank")
"""How a column may be scaled."""

CLIP = 3.0
"""Standard deviations at which a column is clipped: 99.7 % of a normal column is unchanged."""


@dataclass(frozen=True)
class ColumnStatistics:
    """Statistics of each column of a view, from one pass over the training rows.

    `count` is the number of cells that are not missing, and `scores` are those of ranked columns.

    Shapes: (n_features,).
    """

    count: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    minimum: np.ndarray
    maximum: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    scores: NormalScores | None = None

    @property
    def constant(self) -> np.ndarray:
        """Mask of the columns that are constant up to rounding, or too small to be squared."""
        low, high = self.minimum.astype(np.float64), self.maximum.astype(np.float64)
        return (self.count == 0) | same_but_rounding(low, high) | self.vanishing

    @property
    def vanishing(self) -> np.ndarray:
        """Columns of several values whose spread is too small to be squared in float64."""
        low, high = self.minimum.astype(np.float64), self.maximum.astype(np.float64)
        tiny = self.variance < SMALLEST_SPREAD**2
        return tiny & (self.count > 0) & ~same_but_rounding(low, high)


def column_statistics(
    view: View,
    max_bytes: int = DEFAULT_BLOCK_BYTES,
    *,
    scale: str = "standard",
    weight: np.ndarray | None = None,
) -> ColumnStatistics:
    """Learn the statistics of every column; refuse infinities.

    `scale` is one of `SCALES`. Of a clipped column mean and variance are those after the clip; of a
    ranked one the mean is where the score is 0, and the standard deviation 1 over its slope there.

    Shapes: weight (n_samples,).
    """
    source, present = view.source, view.present
    if not present.all():
        kept = np.flatnonzero(present)
        source = SubsetSource(source, kept)
        weight = None if weight is None else weight[kept]
    n, d = int(present.sum()), view.shape[1]
    count, mean, variance = np.zeros(d, dtype=np.int64), np.zeros(d), np.zeros(d)
    low, high = np.zeros(d, dtype=view.dtype), np.zeros(d, dtype=view.dtype)
    discrete = np.ones(d, dtype=bool)
    limits: np.ndarray | None = None
    ranked: list[tuple[np.ndarray, np.ndarray]] = []
    # Centred cells and their squares are in cache together.
    width = tile_width(n, 16, view.dtype.itemsize, max_bytes)
    for cols, raw in raw_tiles(source, width, max_bytes):
        if n == 0:
            break
        exact = raw.dtype == np.int8 and weight is None
        tile = _statistics_of_int8(raw) if exact else _statistics_of_numbers(raw, weight)
        if not np.isfinite(tile.mean).all() or not (tile.variance <= LARGEST_SPREAD**2).all():
            _refuse_infinities(view, cols, raw)
        few, codes = find_discrete(raw, tile)
        discrete[cols] = few | codes
        at = np.flatnonzero(~discrete[cols])  # columns of the tile to clip or rank
        # Genotypes as they are stored have no limits, and cost nothing.
        if scale != "standard" and not (raw.dtype == np.int8 and codes.all()):
            if limits is None:
                limits = np.stack([np.full(d, -np.inf), np.full(d, np.inf)])
            # New values of discrete columns count as the nearest known one.
            limits[0, cols] = np.where(codes, 0.0, tile.low)
            limits[1, cols] = np.where(codes, 2.0, tile.high)
        if at.size and scale == "clipped" and limits is not None:
            spread = CLIP * np.sqrt(tile.variance[at])
            limits[0, cols.start + at] = tile.mean[at] - spread
            limits[1, cols.start + at] = tile.mean[at] + spread
            tile.clip(raw, at, spread, weight)
        elif at.size and scale == "rank":
            check_knot_memory(view.name, n, int((~discrete[: cols.stop]).sum()))
            knots, scores = normal_scores(as_floats(raw[:, at]), weight)
            tile.mean[at], slope = slope_at_median(knots, scores)
            tile.variance[at] = (1.0 / slope) ** 2
            ranked.append((knots, scores))
        count[cols], mean[cols], variance[cols] = tile.count, tile.mean, tile.variance
        with np.errstate(invalid="ignore"):  # an empty column of a weighted int8 view
            low[cols], high[cols] = tile.low, tile.high
    return ColumnStatistics(
        count,
        mean,
        variance,
        low,
        high,
        # Without limits they take no memory.
        lower=np.broadcast_to(-np.inf, d) if limits is None else limits[0],
        upper=np.broadcast_to(np.inf, d) if limits is None else limits[1],
        scores=_joined(discrete, ranked) if ranked else None,
    )


def _joined(discrete: np.ndarray, ranked: list[tuple[np.ndarray, np.ndarray]]) -> NormalScores:
    """Return the knots and scores of all tiles as one; discrete columns have none."""
    position = np.where(discrete, -1, np.cumsum(~discrete) - 1)
    return NormalScores(
        position,
        np.concatenate([knots for knots, _ in ranked], axis=1),
        np.concatenate([scores for _, scores in ranked], axis=1),
    )


def _refuse_infinities(view: View, cols: slice, raw: np.ndarray) -> None:
    """Raise an error about infinite cells of a tile, or without any about too large ones."""
    infinite = np.isinf(raw) if raw.dtype.kind == "f" else np.zeros(raw.shape, dtype=bool)
    bad = np.flatnonzero(infinite.any(axis=0))
    if bad.size:
        raise InputError(
            f"View {view.name!r}: expected finite cells or NaN for missing ones, but found "
            f"infinities in {some(view.names_of(cols.start + bad).tolist())}. Replace them by NaN, "
            "or transform the columns that produced them (a logarithm of 0, a division by 0)."
        )
    raise InputError(
        f"View {view.name!r}: some columns hold numbers too large to be squared in float64: the "
        f"standard deviation of a column may be {LARGEST_SPREAD:g} at most. Rescale the view "
        "before fitting."
    )
