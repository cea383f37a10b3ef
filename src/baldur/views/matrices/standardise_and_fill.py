"""Standardised cells of a view, missing ones filled, made tile by tile or stored as one array.

Both kinds offer `tiles(width, weights, columns)`; the products know nothing else about storage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from baldur.exceptions import InputError
from baldur.state import Fields, State
from baldur.views.matrices.blocks import DEFAULT_BLOCK_BYTES, raw_tiles
from baldur.views.matrices.normal_scores import NormalScores
from baldur.views.matrices.source import MISSING_INT8, ArraySource, Source

FLOAT64_LIMIT_BYTES = 1 << 26
"""Views whose cells fit in this many bytes as float64 are worked on in float64."""


FARTHEST = 1e9
"""Where nothing else holds them, new cells are held within so many standard deviations: far beyond
the range of any training sample, and their squares and sums stay finite, in float32 as well."""


@dataclass(frozen=True)
class Standardised:
    """A source with its training statistics: cells are standardised as they are read."""

    name: str  # View, for messages
    source: Source
    rows: np.ndarray | None  # Rows of the source, in order
    mean: np.ndarray  # (n_features,)
    factor: np.ndarray
    absent: np.ndarray  # (n_samples,)
    dtype: np.dtype  # Working precision
    lower: np.ndarray | None = None  # (n_features,)
    upper: np.ndarray | None = None
    scores: NormalScores | None = None
    score_factor: np.ndarray | None = None  # (n_features,)
    design: np.ndarray | None = None  # (n_samples, q) and (q, n_features), or None
    confound_coef: np.ndarray | None = None
    max_bytes: int = DEFAULT_BLOCK_BYTES  # Largest block read at once

    def to_state(self) -> State:
        """Return the cells as they are stored, with the training statistics, as plain values."""
        optional = ("lower", "upper", "score_factor", "design", "confound_coef")
        return {
            "kind": "standardised cells",
            "name": self.name,
            # Read as products do, so that the layout in memory and with it every rounding stays.
            "cells": np.asarray(self.source.read(self.rows, slice(None))),
            "mean": np.asarray(self.mean),
            "factor": np.asarray(self.factor),
            "absent": self.absent,
            "dtype": str(self.dtype),
            "max_bytes": int(self.max_bytes),
            "scores": None if self.scores is None else self.scores.to_state(),
            **{
                name: None if (value := getattr(self, name)) is None else np.asarray(value)
                for name in optional
            },
        }

    @classmethod
    def from_state(cls, state: Any, *, rows: int, width: int) -> Standardised:
        """Build the cells from their state, for `rows` samples and `width` features."""
        with Fields(state, "standardised cells", n=rows, d=width) as read:
            cells = read.array("cells", ("n", "d"), "number", finite=False, largest=np.inf)
            infinite = cells.dtype.kind == "f" and np.isinf(cells).any()
            read.need(not infinite, "expected finite cells, or NaN for missing ones", "cells")

            def maybe(name: str, *shape: str, **conditions: Any) -> np.ndarray | None:
                return read.array(name, shape, **conditions) if read.has(name) else None

            made = cls(
                name=read.text("name"),
                source=ArraySource(cells),
                rows=None,
                mean=read.array("mean", ("d",), largest=np.inf),
                factor=read.array("factor", ("d",), largest=np.inf, low=0.0),
                absent=read.flags("absent", ("n",)),
                dtype=np.dtype(read.choice("dtype", ("float32", "float64"))),
                # A column without limits has infinite ones; NaN would be a limit to nothing.
                lower=maybe("lower", "d", finite=False, largest=np.inf),
                upper=maybe("upper", "d", finite=False, largest=np.inf),
                scores=(
                    read.part("scores", NormalScores.from_state, width=width)
                    if read.has("scores")
                    else None
                ),
                score_factor=maybe("score_factor", "d", largest=np.inf, low=0.0),
                design=maybe("design", "n", "q"),
                confound_coef=maybe("confound_coef", "q", "d"),
                max_bytes=read.integer("max_bytes", 1),
            )
            pairs = (
                ("lower", "upper"), ("scores", "score_factor"), ("design", "confound_coef"),
            )  # fmt: skip
            for one, other in pairs:
                both = (getattr(made, one) is None) == (getattr(made, other) is None)
                read.need(both, f"expected it together with {other}", one)
            if made.lower is not None and made.upper is not None:
                ordered = (made.lower <= made.upper).all()
                read.need(ordered, "expected lower limits that are not above upper", "lower")
            return made

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        return len(self.absent), self.source.shape[1]

    def tiles(
        self,
        width: int,
        weights: np.ndarray | None = None,
        columns: np.ndarray | None = None,
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield (columns, standardised cells, times weights); a tile is valid until the next."""
        mean, factor, coef = self.mean, self.factor, self.confound_coef
        limits = None
        if self.lower is not None and self.upper is not None:
            limits = np.stack([self.lower, self.upper]).astype(self.dtype)
        if columns is not None:
            mean, factor = mean[columns], factor[columns]
            coef = None if coef is None else coef[:, columns]
            limits = None if limits is None else limits[:, columns]
        plain = limits is None and self.scores is None and coef is None
        # int8 cells and their means are small numbers: float32 holds them to 1e-7.
        narrow = self.source.dtype == np.int8 and self.dtype == np.float32
        if narrow:
            mean, factor = mean.astype(np.float32), factor.astype(np.float32)
        # Where nothing else is done, the weights may join the factor: one pass less over the tile.
        if weights is not None and self.source.dtype == np.int8 and plain:
            factor = factor * weights.astype(factor.dtype)
            weights = None
        design = None if self.design is None else self.design.astype(self.dtype)
        lacking = np.flatnonzero(self.absent)
        buffer: np.ndarray | None = None
        for cols, raw in raw_tiles(self.source, self.rows, width, self.max_bytes, columns):
            if buffer is None:
                buffer = _like_layout(raw, self.dtype)
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
            if self.scores is not None:
                self._fill_scores(raw, cols if columns is None else columns[cols], tile)
            if design is not None and coef is not None:
                tile -= design @ coef[:, cols].astype(self.dtype)
            if missing is not None:
                np.copyto(tile, 0, where=missing)
            if lacking.size:
                tile[lacking] = 0
            if weights is not None:
                tile *= weights[cols].astype(self.dtype)
            yield cols, tile

    def _fill_scores(self, raw: np.ndarray, columns: slice | np.ndarray, tile: np.ndarray) -> None:
        if self.scores is None or self.score_factor is None:
            return
        self.scores.fill(raw, columns, self.score_factor[columns], tile)

    def _missing(self, raw: np.ndarray, tile: np.ndarray) -> np.ndarray | None:
        """Return which cells of a tile are missing, None for none of them."""
        if raw.dtype == np.int8:
            return raw == MISSING_INT8 if raw.size and raw.min() <= MISSING_INT8 else None
        if raw.dtype.kind != "f":
            return None
        if np.isfinite(tile).all():
            return None
        if np.isinf(raw[~self.absent]).any():
            raise InputError(
                f"View {self.name!r}: expected finite cells or NaN for missing ones, but "
                "it contains infinities. Replace them by NaN, or transform the columns "
                "that produced them (a logarithm of 0, a division by 0)."
            )
        return np.isnan(tile)


def _like_layout(raw: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if raw.flags.f_contiguous and not raw.flags.c_contiguous:
        return np.empty(raw.shape[::-1], dtype=dtype).T
    return np.empty(raw.shape, dtype=dtype)


@dataclass(frozen=True)
class StandardisedArray:
    """A standardised view held as one array."""

    array: np.ndarray
    rows: np.ndarray | None = None

    def to_state(self) -> State:
        """Return the cells of the rows as plain values."""
        # Read as products do, so that the layout in memory and with it every rounding stays.
        return {
            "kind": "kept cells",
            "cells": np.asarray(ArraySource(self.array).read(self.rows, slice(None))),
        }

    @classmethod
    def from_state(cls, state: Any, *, rows: int, width: int) -> StandardisedArray:
        """Build the cells from their state, for `rows` samples and `width` features."""
        with Fields(state, "kept cells") as read:
            made = cls(read.array("cells", (rows, width)))
            good = made.dtype in (np.float32, np.float64)
            read.need(good, "expected numbers of 32 or 64 bits", "cells")
            return made

    @property
    def dtype(self) -> np.dtype:
        """The precision that products are computed in."""
        return self.array.dtype

    def tiles(
        self,
        width: int,
        weights: np.ndarray | None = None,
        columns: np.ndarray | None = None,
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield (columns, standardised cells, times weights); tiles must not be written to."""
        source = ArraySource(self.array)
        for cols, cells in raw_tiles(source, self.rows, width, columns=columns):
            if weights is None:
                yield cols, cells
            else:
                yield cols, cells * weights[cols].astype(self.dtype)


def working_dtype(n_rows: int, n_columns: int, dtype: Any = "auto") -> np.dtype:
    """Choose the precision of a view's products: float64 while it fits in 64 MB."""
    if dtype == "auto":
        return np.dtype(np.float64 if n_rows * n_columns * 8 <= FLOAT64_LIMIT_BYTES else np.float32)
    return np.dtype(dtype)
