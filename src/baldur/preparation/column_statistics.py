"""Column statistics of a view, learned in one reading of its columns.

Mean and variance, smallest and largest value, which columns are discrete, and, for a clipped or
ranked view, what the clip or the ranks need: everything is taken from a tile while it is in cache.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from baldur.exceptions import InputError
from baldur.preparation.ranks import check_knot_memory, normal_scores, slope_at_median
from baldur.preparation.tile_statistics import (
    LARGEST_SPREAD,
    SMALLEST_SPREAD,
    as_floats,
    find_discrete,
    same_but_rounding,
    tile_statistics,
)
from baldur.views.matrices.blocks import DEFAULT_BLOCK_BYTES, raw_tiles, tile_width
from baldur.views.matrices.normal_scores import NormalScores
from baldur.views.validate import some
from baldur.views.view import View

SCALES = ("clipped", "standard", "rank")
"""How a column may be scaled."""

CLIP = 3.0
"""Standard deviations at which a column is clipped: 99.7 % of a normal column is unchanged."""


@dataclass(frozen=True)
class ColumnStatistics:
    """Statistics of each column, from one pass over the training rows."""

    count: np.ndarray  # (n_features,); Cells that are not missing
    mean: np.ndarray  # (n_features,)
    variance: np.ndarray
    minimum: np.ndarray  # (n_features,)
    maximum: np.ndarray
    discrete: np.ndarray  # (n_features,)
    lower: np.ndarray  # (n_features,)
    upper: np.ndarray
    scores: NormalScores | None = None  # Of the ranked columns

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

    Shapes: weight (n_samples,).
    """
    rows = view.rows
    present = view.present
    if not present.all():
        kept = np.flatnonzero(present)
        rows = kept if rows is None else rows[kept]
        weight = None if weight is None else weight[kept]
    n, d = int(present.sum()), view.shape[1]
    count, mean, variance = np.zeros(d, dtype=np.int64), np.zeros(d), np.zeros(d)
    low, high = np.zeros(d, dtype=view.dtype), np.zeros(d, dtype=view.dtype)
    discrete = np.ones(d, dtype=bool)
    limits: np.ndarray | None = None
    ranked: list[tuple[np.ndarray, np.ndarray]] = []
    # Centred cells and their squares are in cache together.
    width = tile_width(n, 16, view.dtype.itemsize, max_bytes)
    for cols, raw in raw_tiles(view.source, rows, width, max_bytes):
        if n == 0:
            break
        tile = tile_statistics(raw, weight)
        if not np.isfinite(tile.mean).all() or not (tile.variance <= LARGEST_SPREAD**2).all():
            _refuse_infinities(view, cols, raw)
        few, codes = find_discrete(raw, tile)
        discrete[cols] = few | codes
        at = np.flatnonzero(~discrete[cols])
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
        discrete,
        # Without limits they take no memory.
        lower=np.broadcast_to(-np.inf, d) if limits is None else limits[0],
        upper=np.broadcast_to(np.inf, d) if limits is None else limits[1],
        scores=_joined(discrete, ranked) if ranked else None,
    )


def _joined(discrete: np.ndarray, ranked: list[tuple[np.ndarray, np.ndarray]]) -> NormalScores:
    position = np.where(discrete, -1, np.cumsum(~discrete) - 1)
    return NormalScores(
        position,
        np.concatenate([knots for knots, _ in ranked], axis=1),
        np.concatenate([scores for _, scores in ranked], axis=1),
    )


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
        f"View {view.name!r}: some columns hold numbers too large to be squared in float64: the "
        f"standard deviation of a column may be {LARGEST_SPREAD:g} at most. Rescale the view "
        "before fitting."
    )
