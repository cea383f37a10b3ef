"""The columns of one 2-D matrix, cut into the matrices of named views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from baldur.exceptions import InputError
from baldur.views.source import ColumnSource, LazyMatrix, as_source
from baldur.views.validate import some

__all__ = ["split_columns"]


def split_columns(X: Any, views: Mapping[str, Any] | None) -> dict[str, Any]:
    """Cut a 2-D matrix into named matrices, without copying arrays."""
    frame = X if isinstance(X, pd.DataFrame) else None
    if views is None:
        if frame is None or frame.columns.nlevels == 1:
            return {"X": X}
        if frame.columns.nlevels != 2:
            raise InputError(
                "A DataFrame needs one column level, or two (view, feature), but this one has "
                f"{frame.columns.nlevels}."
            )
        return {name: frame[name] for name in frame.columns.get_level_values(0).unique()}
    if not isinstance(views, Mapping):
        raise InputError(
            "views must be a dictionary from view name to columns (names, indices, slice or "
            f"mask), but got {type(views).__name__}."
        )
    if frame is None and not (
        isinstance(X, np.ndarray) or sparse.issparse(X) or isinstance(X, LazyMatrix)
    ):
        X = np.asarray(X)
    if frame is None and getattr(X, "ndim", 2) != 2:
        raise InputError(f"X must be 2-D to be cut into views, but its shape is {X.shape}.")
    width = int(X.shape[1])
    matrices: dict[str, Any] = {}
    base = None if frame is not None or isinstance(X, np.ndarray) else as_source(X, "X")
    for view, spec in views.items():
        columns = _locate(view, spec, width, None if frame is None else frame.columns)
        if frame is not None:
            matrices[view] = frame.iloc[:, columns]
        elif base is not None:
            index = np.arange(width)[columns] if isinstance(columns, slice) else columns
            matrices[view] = ColumnSource(base, index)
        elif isinstance(columns, slice):
            matrices[view] = X[:, columns]
        else:
            matrices[view] = ColumnSource(as_source(X, view), columns)
    return matrices


def _locate(view: str, spec: Any, width: int, columns: pd.Index | None) -> slice | np.ndarray:
    """Turn a column specification into a slice (when the columns are a run) or indices."""
    if (
        isinstance(spec, slice)
        and not isinstance(spec.start, str)
        and not isinstance(spec.stop, str)
    ):
        return slice(*spec.indices(width))
    if isinstance(spec, slice):
        spec = _name_slice(view, spec, columns)
    index = np.atleast_1d(np.asarray(spec))
    if index.dtype.kind == "b":
        if index.shape != (width,):
            raise InputError(
                f"View {view!r}: a boolean mask of columns must have {width} entries, but its "
                f"shape is {index.shape}."
            )
        found = np.flatnonzero(index)
    elif index.size == 0:
        found = np.zeros(0, dtype=np.intp)
    elif index.dtype.kind in "iu" and index.ndim == 1:
        if index.min() < -width or index.max() >= width:
            raise InputError(
                f"View {view!r}: column numbers must lie between {-width} and {width - 1}, but "
                f"they run from {index.min()} to {index.max()}."
            )
        found = np.where(index < 0, index + width, index).astype(np.intp)
    elif index.dtype.kind in "UO" and index.ndim == 1:
        found = _find_names(view, list(np.atleast_1d(np.asarray(spec, dtype=object))), columns)
    else:
        raise InputError(
            f"View {view!r}: columns must be names, indices, a slice or a boolean mask, but got "
            f"{type(spec).__name__} of dtype {index.dtype}."
        )
    if len(np.unique(found)) != len(found):
        raise InputError(f"View {view!r}: a column is listed more than once; list each once.")
    if found.size and np.array_equal(found, np.arange(found[0], found[0] + found.size)):
        return slice(int(found[0]), int(found[0]) + found.size)
    return found


def _find_names(view: str, wanted: list[Any], columns: pd.Index | None) -> np.ndarray:
    if columns is None:
        raise InputError(
            f"View {view!r}: columns are given by name ({some(wanted, 3)}), but X is not a "
            "DataFrame. Pass a DataFrame, or give column numbers."
        )
    unknown = [name for name in wanted if name not in columns]
    if unknown:
        raise InputError(
            f"View {view!r}: X has no column {some(unknown)}. Its columns are "
            f"{some(list(columns))}."
        )
    if columns.has_duplicates:
        raise InputError(
            f"View {view!r}: columns are chosen by name, but X repeats the column names "
            f"{some(columns[columns.duplicated()].unique().tolist())}. Rename them."
        )
    return columns.get_indexer(pd.Index(wanted))


def _name_slice(view: str, spec: slice, columns: pd.Index | None) -> np.ndarray:
    """Columns from one name to another, both included, as pandas does."""
    ends = [end for end in (spec.start, spec.stop) if end is not None]
    found = _find_names(view, ends, columns).tolist()
    start = found.pop(0) if spec.start is not None else 0
    stop = found.pop(0) + 1 if spec.stop is not None else 0 if columns is None else len(columns)
    return np.arange(start, stop)
