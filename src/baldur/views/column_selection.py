"""The columns of one 2-D matrix, cut into the matrices of named views."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from baldur.exceptions import InputError
from baldur.views.matrices.source import ColumnSource, LazyMatrix, as_source
from baldur.views.validate import rename_hint, some


def split_columns(
    X: Any, views: Mapping[str, Any] | None
) -> tuple[dict[str, Any], pd.DataFrame | None]:
    """Cut a 2-D matrix into named matrices, without copying arrays."""
    frame = X if isinstance(X, pd.DataFrame) else None
    if views is None:
        if frame is None or frame.columns.nlevels == 1:
            return {"X": X}, None
        if frame.columns.nlevels != 2:
            raise InputError(
                "A DataFrame needs one column level, or two (view, feature), but this one has "
                f"{frame.columns.nlevels}."
            )
        return {name: frame[name] for name in frame.columns.get_level_values(0).unique()}, None
    if not isinstance(views, Mapping):
        raise InputError(
            "views must be a dictionary from view name to columns (names, patterns, indices, a "
            f"slice or a mask), but got {type(views).__name__}."
        )
    if frame is None and not (
        isinstance(X, np.ndarray) or sparse.issparse(X) or isinstance(X, LazyMatrix)
    ):
        X = np.asarray(X)
    if frame is None and getattr(X, "ndim", 2) != 2:
        raise InputError(f"X must be 2-D to be cut into views, but its shape is {X.shape}.")
    width = int(X.shape[1])
    matrices: dict[str, Any] = {}
    used = np.zeros(width, dtype=bool)
    base = None if frame is not None or isinstance(X, np.ndarray) else as_source(X, "X")
    for view, spec in views.items():
        columns = _locate(view, spec, width, frame)
        used[columns] = True
        if frame is not None:
            matrices[view] = frame.iloc[:, columns]
        elif base is not None:
            index = np.arange(width)[columns] if isinstance(columns, slice) else columns
            matrices[view] = ColumnSource(base, index)
        elif isinstance(columns, slice):
            matrices[view] = X[:, columns]
        else:
            matrices[view] = ColumnSource(as_source(X, view), columns)
    rest = frame.loc[:, ~used] if frame is not None and not used.all() else None
    return matrices, rest


def locate_columns(views: Mapping[str, Any], width: int) -> dict[str, np.ndarray]:
    """Return the column numbers of every view in a matrix of `width` columns without names."""
    every = np.arange(width)
    return {view: every[_locate(view, spec, width, None)] for view, spec in views.items()}


def _locate(view: str, spec: Any, width: int, frame: pd.DataFrame | None) -> slice | np.ndarray:
    """Turn a column specification into a slice (when the columns are a run) or indices."""
    columns = None if frame is None else frame.columns
    if (
        isinstance(spec, slice)
        and not isinstance(spec.start, str)
        and not isinstance(spec.stop, str)
    ):
        return slice(*spec.indices(width))
    if isinstance(spec, slice):
        spec = _name_slice(view, spec, columns)
    elif callable(spec):
        spec = _called(view, spec, frame)
    elif isinstance(spec, re.Pattern):
        spec = _matching(view, [spec], columns)
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
            f"View {view!r}: columns must be names, patterns, indices, a slice or a boolean mask, "
            f"but got {type(spec).__name__} of dtype {index.dtype}."
        )
    if len(np.unique(found)) != len(found):
        raise InputError(f"View {view!r}: a column is listed more than once; list each once.")
    if found.size and np.array_equal(found, np.arange(found[0], found[0] + found.size)):
        return slice(int(found[0]), int(found[0]) + found.size)
    return found


def _nameless(view: str, what: str) -> InputError:
    return InputError(
        f"View {view!r}: columns are given by {what}, but X is not a DataFrame, so that its "
        "columns have no names. Pass a DataFrame, or give column numbers. Behind transformers in a "
        'pipeline, names are kept by pipeline.set_output(transform="pandas").'
    )


def _called(view: str, spec: Any, frame: pd.DataFrame | None) -> Any:
    """Return what a function of the DataFrame chooses."""
    if frame is None:
        raise _nameless(view, "a function of the DataFrame")
    chosen = spec(frame)
    if not len(chosen):
        raise InputError(
            f"View {view!r}: the function chooses none of the {frame.shape[1]} columns of X, "
            f"{some(list(frame.columns))}."
        )
    return chosen


def _matching(view: str, patterns: list[re.Pattern[str]], columns: pd.Index | None) -> np.ndarray:
    """Return the columns whose names fit a pattern, in the order of the columns."""
    if columns is None:
        raise _nameless(view, "a pattern of names")
    names = [str(name) for name in columns]
    found = [i for i, name in enumerate(names) if any(p.search(name) for p in patterns)]
    if not found:
        raise InputError(
            f"View {view!r}: no column of X fits {some([p.pattern for p in patterns])}. Its "
            f"columns are {some(list(columns))}."
        )
    return np.array(found)


def _find_names(view: str, wanted: list[Any], columns: pd.Index | None) -> np.ndarray:
    if columns is None:
        raise _nameless(view, f"name ({some(wanted, 3)})")
    starred = [w for w in wanted if isinstance(w, str) and "*" in w and w not in columns]
    plain = [w for w in wanted if w not in starred]
    unknown = [name for name in plain if name not in columns]
    if unknown:
        near = [c for c in columns if any(str(c).startswith(str(u)) for u in unknown[:1])]
        hint = f" For all columns that begin so, write {unknown[0] + '*'!r}." if near else ""
        raise InputError(
            f"View {view!r}: X has no column {some(unknown)}. Its columns are "
            f"{some(list(columns))}.{hint or rename_hint(unknown, columns)}"
        )
    if plain and columns.has_duplicates:
        raise InputError(
            f"View {view!r}: columns are chosen by name, but X repeats the column names "
            f"{some(columns[columns.duplicated()].unique().tolist())}. Rename them."
        )
    found = [columns.get_indexer(pd.Index(plain))] if plain else []
    # A star stands for any text; everything else in the name stands for itself.
    for one in starred:
        parts = [re.escape(part) for part in one.split("*")]
        found.append(_matching(view, [re.compile(rf"\A{'.*'.join(parts)}\Z", re.S)], columns))
    return np.concatenate(found).astype(np.intp)


def _name_slice(view: str, spec: slice, columns: pd.Index | None) -> np.ndarray:
    """Columns from one name to another, both included, as pandas does."""
    ends = [end for end in (spec.start, spec.stop) if end is not None]
    found = _find_names(view, ends, columns).tolist()
    start = found.pop(0) if spec.start is not None else 0
    stop = found.pop(0) + 1 if spec.stop is not None else 0 if columns is None else len(columns)
    return np.arange(start, stop)
