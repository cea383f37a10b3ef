"""Standardised cells of a view, missing ones filled, made tile by tile or stored as one array.

Both kinds offer `tiles(width, weights, columns)`; the products know nothing else about storage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from baldur.core.state import (
    Choice,
    Flags,
    Integer,
    Numbers,
    Object,
    OrNone,
    Sizes,
    Text,
    need,
    stored,
)
from baldur.exceptions import InputError
from baldur.views.sources import (
    DEFAULT_BLOCK_BYTES,
    MISSING_INT8,
    ArraySource,
    Source,
    SubsetSource,
)

TILE_BYTES = 1 << 21
"""Bytes of one tile in the working precision. Large enough for BLAS to be at full speed, small
enough that a tile converted from storage is still in cache when BLAS reads it."""


def tile_width(
    n_rows: int, itemsize: int, stored: int = 1, max_bytes: int = DEFAULT_BLOCK_BYTES
) -> int:
    """Return how many columns make a tile: at least 256, unless these take more than `max_bytes`.

    `itemsize` and `stored` are the bytes of a cell in the working precision and in the source.
    """
    n_rows = max(1, n_rows)
    width = max(256, TILE_BYTES // (n_rows * itemsize))
    return max(1, min(width, max_bytes // (n_rows * stored)))


def raw_tiles(
    source: Source,
    width: int,
    max_bytes: int = DEFAULT_BLOCK_BYTES,
    columns: np.ndarray | None = None,
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield (columns, cells as stored) in tiles of `width` columns.

    A source outside memory is read in blocks of up to `max_bytes`, each a whole number of tiles,
    so that files are read in large pieces while the work is done on small ones.
    """
    n = source.shape[0]
    total = source.shape[1] if columns is None else len(columns)
    per_block = width
    if not source.in_memory:
        per_block *= max(1, int(max_bytes // max(1, n * source.dtype.itemsize * width)))
    for start in range(0, total, per_block):
        stop = min(start + per_block, total)
        wanted = slice(start, stop) if columns is None else columns[start:stop]
        block = source.read(None, wanted)
        for first in range(start, stop, width):
            last = min(first + width, stop)
            yield slice(first, last), block[:, first - start : last - start]


@dataclass(frozen=True)
class NormalScores:
    """Knots and scores of the ranked columns of one view."""

    kind: ClassVar[str] = "normal scores"

    position: np.ndarray = stored(Numbers("D", "int", low=-1))  # column of `knots`, -1 for none
    knots: np.ndarray = stored(Numbers("k r", largest=np.inf))
    scores: np.ndarray = stored(Numbers("k r"))

    def check_state(self, sizes: Sizes) -> None:
        """Refuse stored knots that do not rise, and columns without knots."""
        need(len(self.knots), "expected at least one knot", "knots")
        rising = (self.knots[1:] >= self.knots[:-1]).all()
        need(rising, "expected knots in rising order", "knots")
        last = self.knots.shape[1] - 1
        need((self.position <= last).all(), f"expected numbers at most {last}", "position")

    def fill(
        self,
        raw: np.ndarray,
        columns: slice | np.ndarray,
        factor: np.ndarray,
        out: np.ndarray,
    ) -> None:
        """Write the scores of the ranked columns among `columns`, times a factor, into `out`.

        A score is interpolated between the knots on either side of the cell; beyond the knots it
        is that of the last one.

        Shapes: raw (n_samples, k), factor (k,), out (n_samples, k).
        """
        position = self.position[columns]
        ranked = np.flatnonzero(position >= 0)
        if not ranked.size:
            return
        cells = raw[:, ranked]
        knots, scores = self.knots[:, position[ranked]], self.scores[:, position[ranked]]
        last = len(knots) - 1
        above = np.empty(cells.shape, dtype=np.intp)  # first knot above each cell
        for j in range(ranked.size):
            above[:, j] = np.searchsorted(knots[:, j], cells[:, j], side="right")
        left, right = np.maximum(above - 1, 0), np.minimum(above, last)
        x0, x1 = (np.take_along_axis(knots, i, axis=0) for i in (left, right))
        s0, s1 = (np.take_along_axis(scores, i, axis=0) for i in (left, right))
        gap = x1 - x0
        share = np.divide(cells - x0, gap, out=np.zeros(cells.shape), where=gap > 0)
        out[:, ranked] = (s0 + share * (s1 - s0)) * factor[ranked]


FLOAT64_LIMIT_BYTES = 1 << 26
"""Views whose cells fit in this many bytes as float64 are worked on in float64."""


FARTHEST = 1e9
"""Where nothing else holds them, new cells are held within so many standard deviations: far beyond
the range of any training sample, and their squares and sums stay finite, in float32 as well."""


_LIMITS = OrNone(Numbers("D", finite=False, largest=np.inf))


@dataclass(frozen=True)
class Standardised:
    """A source with its training statistics: cells are standardised as they are read."""

    kind: ClassVar[str] = "standardised cells"

    name: str = stored(Text())  # View, for messages
    source: Source = stored(Numbers("N D", "number", finite=False, largest=np.inf))
    mean: np.ndarray = stored(Numbers("D", largest=np.inf))
    factor: np.ndarray = stored(Numbers("D", largest=np.inf, low=0.0))
    absent: np.ndarray = stored(Flags("N"))
    dtype: np.dtype = stored(Choice(("float32", "float64")))  # Working precision
    # A column without limits has infinite ones.
    lower: np.ndarray | None = stored(_LIMITS, default=None)
    upper: np.ndarray | None = stored(_LIMITS, default=None)
    scores: NormalScores | None = stored(OrNone(Object(NormalScores)), default=None)
    score_factor: np.ndarray | None = stored(
        OrNone(Numbers("D", largest=np.inf, low=0.0)), default=None
    )
    design: np.ndarray | None = stored(OrNone(Numbers("N q")), default=None)
    confound_coef: np.ndarray | None = stored(OrNone(Numbers("q D")), default=None)
    max_bytes: int = stored(Integer(1), default=DEFAULT_BLOCK_BYTES)  # Largest block read at once

    def state_values(self) -> dict[str, Any]:
        """Return what is stored: the cells as they are in the source."""
        return {
            # Read as products do, so that the layout in memory and with it every rounding stays.
            "source": np.asarray(self.source.read(None, slice(None))),
            "dtype": str(self.dtype),
        }

    @classmethod
    def from_values(cls, values: dict[str, Any], sizes: Sizes) -> Standardised:
        """Return the object that `state_values` was taken from, of values read from a file."""
        source, dtype = ArraySource(values["source"]), np.dtype(values["dtype"])
        return cls(**{**values, "source": source, "dtype": dtype})

    def check_state(self, sizes: Sizes) -> None:
        """Refuse stored cells that are infinite, and fields that lack what they are used with."""
        cells = self.source.read(None, slice(None))
        finite = cells.dtype.kind != "f" or not np.isinf(cells).any()
        need(finite, "expected finite cells, or NaN for missing ones", "source")
        for name, other in (
            ("lower", "upper"),
            ("scores", "score_factor"),
            ("design", "confound_coef"),
        ):
            both = (getattr(self, name) is None) == (getattr(self, other) is None)
            need(both, f"expected it together with {other}", name)
        if self.lower is not None and self.upper is not None:
            ordered = (self.lower <= self.upper).all()
            need(ordered, "expected lower limits that are not above upper", "lower")

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        return len(self.absent), self.source.shape[1]

    def width(self, n_rows: int) -> int:
        """Return how many columns make a tile."""
        itemsize = self.dtype.itemsize
        return tile_width(n_rows, itemsize, self.source.dtype.itemsize, self.max_bytes)

    def exact(self) -> Standardised:
        """Return the cells in float64."""
        return replace(self, dtype=np.dtype(np.float64))

    def take_rows(self, rows: np.ndarray) -> Standardised:
        """Return the cells of chosen samples, not copied."""
        source, design = SubsetSource(self.source, rows), self.design
        design = None if design is None else design[rows]
        return replace(self, source=source, absent=self.absent[rows], design=design)

    def tiles(
        self,
        width: int,
        weights: np.ndarray | None = None,
        columns: np.ndarray | None = None,
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield (columns, standardised cells, times weights); a tile is valid until the next.

        Cells become (x - mean) * factor, held within limits or replaced by normal scores, less
        what covariates explain; missing ones are 0. `columns` are those to read (None: all).
        """
        mean, factor, coef = self.mean, self.factor, self.confound_coef
        limits = None
        if self.lower is not None and self.upper is not None:
            limits = np.stack([self.lower, self.upper]).astype(self.dtype)
        if columns is not None:
            mean, factor = mean[columns], factor[columns]
            coef = None if coef is None else coef[:, columns]
            limits = None if limits is None else limits[:, columns]
        only_scaled = limits is None and self.scores is None and coef is None
        # int8 cells and their means are small numbers: float32 holds them to 1e-7.
        narrow = self.source.dtype == np.int8 and self.dtype == np.float32
        if narrow:
            mean, factor = mean.astype(np.float32), factor.astype(np.float32)
        # Where nothing else is done, the weights may join the factor: one pass less over the tile.
        if weights is not None and self.source.dtype == np.int8 and only_scaled:
            factor = factor * weights.astype(factor.dtype)
            weights = None
        design = None if self.design is None else self.design.astype(self.dtype)
        absent = np.flatnonzero(self.absent)
        buffer: np.ndarray | None = None
        for cols, raw in raw_tiles(self.source, width, self.max_bytes, columns):
            if buffer is None:
                buffer = np.empty(raw.shape, self.dtype, order="F" if raw.flags.fnc else "C")
            tile = buffer[:, : raw.shape[1]]
            if narrow:
                np.copyto(tile, raw)
                tile -= mean[cols]
            else:
                # A cell beyond the working precision becomes infinite, and is held below.
                with np.errstate(over="ignore", invalid="ignore"):
                    np.subtract(raw, mean[cols], out=tile, dtype=np.float64, casting="unsafe")
            with np.errstate(over="ignore", invalid="ignore"):
                tile *= factor[cols]
            # Looked for before the clip, which would hide infinities.
            missing = self._missing(raw, tile)
            if limits is not None:
                np.maximum(tile, limits[0, cols], out=tile)
                np.minimum(tile, limits[1, cols], out=tile)
            elif raw.dtype != np.int8:
                np.clip(tile, -FARTHEST, FARTHEST, out=tile)
            if self.scores is not None and self.score_factor is not None:
                at = cols if columns is None else columns[cols]
                self.scores.fill(raw, at, self.score_factor[at], tile)
            if design is not None and coef is not None:
                tile -= design @ coef[:, cols].astype(self.dtype)
            if missing is not None:
                np.copyto(tile, 0, where=missing)
            if absent.size:
                tile[absent] = 0
            if weights is not None:
                tile *= weights[cols].astype(self.dtype)
            yield cols, tile

    def _missing(self, raw: np.ndarray, tile: np.ndarray) -> np.ndarray | None:
        """Return which cells of a tile are missing (None: none); refuse infinite ones in `raw`."""
        if raw.dtype == np.int8:
            return raw == MISSING_INT8 if raw.size and raw.min() <= MISSING_INT8 else None
        if raw.dtype.kind != "f" or np.isfinite(tile).all():
            return None
        if np.isinf(raw[~self.absent]).any():
            raise InputError(
                f"View {self.name!r}: expected finite cells or NaN for missing ones, but "
                "it contains infinities. Replace them by NaN, or transform the columns "
                "that produced them (a logarithm of 0, a division by 0)."
            )
        return np.isnan(tile)


@dataclass(frozen=True)
class StandardisedArray:
    """A standardised view held as one array."""

    kind: ClassVar[str] = "kept cells"

    array: np.ndarray = stored(Numbers("N D"))
    rows: np.ndarray | None = None

    @property
    def source(self) -> Source:
        """The chosen rows of the array."""
        source = ArraySource(self.array)
        return source if self.rows is None else SubsetSource(source, self.rows)

    def state_values(self) -> dict[str, Any]:
        """Return what is stored: the cells of the rows."""
        # Read as products do, so that the layout in memory and with it every rounding stays.
        return {"array": self.source.read(None, slice(None))}

    def check_state(self, sizes: Sizes) -> None:
        """Refuse stored numbers of another precision than products have."""
        good = self.array.dtype in (np.float32, np.float64)
        need(good, "expected numbers of 32 or 64 bits", "array")

    @property
    def dtype(self) -> np.dtype:
        """The precision that products are computed in."""
        return self.array.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        return self.source.shape

    def width(self, n_rows: int) -> int:
        """Return how many columns make a tile."""
        return tile_width(n_rows, self.dtype.itemsize)

    def exact(self) -> StandardisedArray:
        """Return the cells as they are, since they are stored in the working precision."""
        return self

    def take_rows(self, rows: np.ndarray) -> StandardisedArray:
        """Return the cells of chosen samples, not copied."""
        return replace(self, rows=rows if self.rows is None else self.rows[rows])

    def tiles(
        self,
        width: int,
        weights: np.ndarray | None = None,
        columns: np.ndarray | None = None,
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield (columns, standardised cells, times weights); tiles must not be written to."""
        for cols, cells in raw_tiles(self.source, width, columns=columns):
            if weights is None:
                yield cols, cells
            else:
                yield cols, cells * weights[cols].astype(self.dtype)


def working_dtype(n_rows: int, n_columns: int, dtype: Any = "auto") -> np.dtype:
    """Choose the precision of a view's products: float64 while it fits in 64 MB."""
    if dtype == "auto":
        return np.dtype(np.float64 if n_rows * n_columns * 8 <= FLOAT64_LIMIT_BYTES else np.float32)
    return np.dtype(dtype)
