"""Row and column keys of a MultiView, turned into slices and index arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from baldur.exceptions import InputError


def as_rows(key: Any, n: int) -> np.ndarray:
    """Turn any accepted row key into an array of row numbers, or say what is wrong with it."""
    if isinstance(key, tuple):
        # scikit-learn indexes rows as X[rows, ...].
        extra = key[1:]
        if len(key) == 0 or any(not (e is Ellipsis or e == slice(None)) for e in extra):
            raise InputError(
                "A MultiView is indexed by rows only (mv[rows]). Use mv.select([...]) to choose "
                "views and mv.view(name).read(columns) to read columns."
            )
        key = key[0]
    if isinstance(key, str):
        raise InputError(f"mv[{key!r}]: rows are chosen with mv[rows]; use mv.view({key!r}).")
    if key is Ellipsis:
        key = slice(None)
    if isinstance(key, slice):
        return np.arange(n)[key]
    rows = np.asarray(key)
    if rows.ndim == 0 and rows.dtype.kind in "iu":
        rows = rows[None]
    if rows.size == 0 and rows.ndim == 1 and rows.dtype.kind != "b":
        return np.zeros(0, dtype=np.intp)
    if rows.ndim != 1 or rows.dtype.kind not in "iub":
        raise InputError(
            "Rows must be a slice, an array of integers or a boolean mask, but got an array of "
            f"dtype {rows.dtype} and shape {rows.shape}."
        )
    if rows.dtype.kind == "b":
        if len(rows) != n:
            raise InputError(
                f"A boolean mask of rows must have one entry per sample ({n}), but it has "
                f"{len(rows)}."
            )
        return np.flatnonzero(rows)
    if rows.min() < -n or rows.max() >= n:
        raise InputError(
            f"Row numbers must lie between {-n} and {n - 1} for {n} samples, but they run from "
            f"{rows.min()} to {rows.max()}."
        )
    return np.where(rows < 0, rows + n, rows).astype(np.intp)


def as_columns(cols: Any, width: int, view: str) -> slice | np.ndarray:
    """Turn any accepted column key into a slice or column numbers, or say what is wrong with it."""
    if cols is None:
        return slice(0, width)
    if isinstance(cols, slice):
        return cols
    index = np.atleast_1d(np.asarray(cols))
    if index.dtype.kind == "b" and index.shape == (width,):
        return np.flatnonzero(index)
    if index.size == 0:
        return np.zeros(0, dtype=np.intp)
    if index.dtype.kind not in "iu" or index.ndim != 1:
        raise InputError(
            f"View {view!r}: columns must be a slice, an array of integers or a boolean mask of "
            f"length {width}, but got dtype {index.dtype} and shape {index.shape}."
        )
    if index.min() < -width or index.max() >= width:
        raise InputError(
            f"View {view!r}: column numbers must lie between {-width} and {width - 1}, but they "
            f"run from {index.min()} to {index.max()}."
        )
    return np.where(index < 0, index + width, index).astype(np.intp)
