"""How columns are cut: blocks read from a source, tiles worked on in cache."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from baldur.views.matrices.source import Source

DEFAULT_BLOCK_BYTES = 1 << 26
"""Bytes of one column block by default: 64 MB."""

TILE_BYTES = 1 << 21
"""Bytes of one tile in the working precision. Large enough for BLAS to be at full speed, small
enough that a tile converted from storage is still in cache when BLAS reads it."""


def column_blocks(
    n_rows: int, n_columns: int, itemsize: int, max_bytes: int = DEFAULT_BLOCK_BYTES
) -> Iterator[slice]:
    """Cut columns into consecutive slices whose cells fit in `max_bytes`."""
    width = max(1, int(max_bytes // max(1, n_rows * itemsize)))
    for start in range(0, n_columns, width):
        yield slice(start, min(start + width, n_columns))


def tile_width(
    n_rows: int, itemsize: int, stored: int = 1, max_bytes: int = DEFAULT_BLOCK_BYTES
) -> int:
    """Return how many columns make a tile."""
    n_rows = max(1, n_rows)
    width = max(256, TILE_BYTES // (n_rows * itemsize))
    return max(1, min(width, max_bytes // (n_rows * stored)))


def raw_tiles(
    source: Source,
    rows: np.ndarray | None,
    width: int,
    max_bytes: int = DEFAULT_BLOCK_BYTES,
    columns: np.ndarray | None = None,
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield (columns, cells as stored) in tiles of `width` columns.

    A source outside memory is read in blocks of up to `max_bytes`, each a whole number of tiles,
    so that files are read in large pieces while the work is done on small ones.
    """
    n = source.shape[0] if rows is None else len(rows)
    total = source.shape[1] if columns is None else len(columns)
    per_block = width
    if not source.in_memory:
        per_block *= max(1, int(max_bytes // max(1, n * source.dtype.itemsize * width)))
    for start in range(0, total, per_block):
        stop = min(start + per_block, total)
        wanted = slice(start, stop) if columns is None else columns[start:stop]
        block = source.read(rows, wanted)
        for first in range(start, stop, width):
            last = min(first + width, stop)
            yield slice(first, last), block[:, first - start : last - start]
