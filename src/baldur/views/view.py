"""View: one named matrix of a container."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from baldur.exceptions import InputError
from baldur.views.sources import (
    DEFAULT_BLOCK_BYTES,
    MISSING_INT8,
    LazyMatrix,
    Source,
    SubsetSource,
    as_source,
    column_blocks,
)
from baldur.views.validate import rename_hint, repeated, some


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
    if key is Ellipsis or isinstance(key, slice):
        return np.arange(n)[key]
    return _pick(key, n, "mv[rows]", "sample")


def as_columns(cols: Any, width: int, view: str) -> slice | np.ndarray:
    """Turn any accepted column key into a slice or column numbers, or say what is wrong with it."""
    if cols is None:
        return slice(0, width)
    return cols if isinstance(cols, slice) else _pick(cols, width, f"View {view!r}", "column")


def _pick(key: Any, n: int, where: str, unit: str) -> np.ndarray:
    """Return the numbers that integers or a mask choose among n samples or columns."""
    index = np.atleast_1d(np.asarray(key))
    if index.size == 0 and index.dtype.kind != "b":
        return np.zeros(0, dtype=np.intp)
    if index.ndim != 1 or index.dtype.kind not in "iub":
        raise InputError(
            f"{where}: {unit}s must be a slice, an array of integers or a boolean mask, but got an "
            f"array of dtype {index.dtype} and shape {index.shape}."
        )
    if index.dtype.kind == "b":
        if len(index) != n:
            raise InputError(
                f"{where}: a boolean mask must have one entry per {unit} ({n}), but it has "
                f"{len(index)}."
            )
        return np.flatnonzero(index)
    if index.min() < -n or index.max() >= n:
        raise InputError(
            f"{where}: {unit} numbers must lie between {-n} and {n - 1} for {n} {unit}s, but they "
            f"run from {index.min()} to {index.max()}."
        )
    return np.where(index < 0, index + n, index).astype(np.intp)


@dataclass(frozen=True, eq=False)
class View:
    """One view of a `MultiView`, for its current samples.

    Attributes
    ----------
    name : str
    shape : tuple of int
        Samples and features.
    dtype : dtype
        As stored.

    Examples
    --------
    >>> import numpy as np
    >>> from baldur.views import MultiView
    >>> X = MultiView({"clinic": np.array([[61.0, 1.0], [np.nan, np.nan], [70.0, 0.0]])})
    >>> view = X[[0, 1]].view("clinic")
    >>> view.name, view.shape, view.feature_names.tolist()
    ('clinic', (2, 2), ['clinic_0', 'clinic_1'])
    >>> view.present
    array([ True, False])
    >>> view.read()
    array([[61.,  1.],
           [nan, nan]])
    """

    name: str
    source: Source
    """The matrix behind the view, with its current samples."""
    names: np.ndarray | None = None
    """Names of the features as given by the user, or None."""
    feature_info: pd.DataFrame | None = None
    """One row per feature (chromosome, voxel, ...), or None."""
    declared_present: np.ndarray | None = None
    """Presence as given by the user (bool per sample), before looking at any cell."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        return self.source.shape

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the cells as stored."""
        return self.source.dtype

    @property
    def feature_names(self) -> np.ndarray:
        """Names of the features, "<view>_<j>" unless given."""
        return self.names_of(np.arange(self.shape[1])) if self.names is None else self.names

    def names_of(self, index: np.ndarray) -> np.ndarray:
        """Return the names of some features without making all of them."""
        if self.names is not None:
            return self.names[index]
        return default_names(self.name, index, self.shape[1])

    @property
    def feature_groups(self) -> np.ndarray | None:
        """One number per feature, shared by the columns of one category; None without categories.

        What is selected or left out as a whole: the columns ``site=Oslo`` and ``site=Rome`` of one
        category, and every other feature by itself. Numbers rise from 0 in the order of the
        features.
        """
        info = self.feature_info
        if info is None or "column" not in info or "level" not in info:
            return None
        coded = info["level"].notna().to_numpy()
        if not coded.any():
            return None
        # A level has the name of its category as key, another feature its own number.
        number = np.arange(self.shape[1]).astype(str).astype(object)
        key = np.where(coded, "=" + info["column"].astype(str).to_numpy(dtype=object), number)
        return np.asarray(pd.factorize(key)[0], dtype=np.intp)

    @cached_property
    def present(self) -> np.ndarray:
        """False for samples with a missing view: declared, or every cell missing."""
        declared = self.declared_present
        present = np.ones(self.shape[0], dtype=bool) if declared is None else declared.copy()
        if self.dtype.kind == "f" or self.dtype == np.int8:
            # Only rows missing throughout the first block are followed into the next.
            suspects = np.flatnonzero(present)
            # A narrow first look settles nearly every row.
            first = min(16, self.shape[1])
            rest = column_blocks(self.shape[0], self.shape[1] - first, 8)
            blocks = (slice(cols.start + first, cols.stop + first) for cols in rest)
            for cols in (slice(0, first), *blocks):
                if suspects.size == 0:
                    break
                block = self.source.read(suspects, cols)
                suspects = suspects[_missing(block).all(axis=1)]
            present[suspects] = False
        return present

    def take_rows(self, rows: np.ndarray) -> View:
        """Return the view of some samples, not copied; -1 stands for one that does not have it."""
        present = self.declared_present
        exists = rows >= 0
        if present is not None:
            present = present[rows] & exists
        elif not exists.all():
            present = exists
        source = SubsetSource(self.source, rows).simplified()
        return replace(self, source=source, declared_present=present)

    def take_columns(self, index: np.ndarray) -> View:
        """Return the view of some features, given by their numbers; cells are not copied."""
        info = self.feature_info
        return replace(
            self,
            source=SubsetSource(self.source, columns=index),
            names=self.names_of(index),
            feature_info=None if info is None else info.iloc[index].reset_index(drop=True),
        )

    def raw(self, cols: Any = None) -> np.ndarray:
        """Return cells as stored, missing codes included.

        Parameters
        ----------
        cols : slice, int array or bool mask, optional
            Columns to read; all by default.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
        """
        return self.source.read(None, as_columns(cols, self.shape[1], self.name))

    def read(self, cols: Any = None) -> np.ndarray:
        """Return cells as floats, with NaN where a cell or the whole view is missing.

        Parameters
        ----------
        cols : slice, int array or bool mask, optional
            Columns to read; all by default.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            float32 for float16, float32 and int8 storage, float64 otherwise. A new array.
        """
        raw = self.raw(cols)
        block = np.array(raw, dtype=_read_dtype(self.dtype))
        if self.dtype == np.int8:
            block[raw == MISSING_INT8] = np.nan
        declared = self.declared_present
        if declared is not None:
            block[~declared] = np.nan
        return block

    def iter_blocks(
        self, max_bytes: int = DEFAULT_BLOCK_BYTES
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield (columns, cells as floats) over the whole width, block by block."""
        itemsize = np.dtype(_read_dtype(self.dtype)).itemsize
        for cols in column_blocks(*self.shape, itemsize, max_bytes):
            yield cols, self.read(cols)

    def __repr__(self) -> str:
        n, d = self.shape
        return f"View({self.name!r}, {n:,} samples, {d:,} features, {self.dtype})"


def _read_dtype(stored: np.dtype) -> type[np.floating]:
    return np.float32 if stored in (np.float32, np.float16, np.int8) else np.float64


def _missing(block: np.ndarray) -> np.ndarray:
    return block == MISSING_INT8 if block.dtype == np.int8 else np.isnan(block)


def default_names(view: str, index: np.ndarray, width: int) -> np.ndarray:
    """Return the names of some features of a view of `width` features that were not named."""
    digits = len(str(width))  # numpy would make room for 21 of them
    return np.char.add(f"{view}_", np.asarray(index).astype(f"U{digits}"))


def split_columns(
    X: Any, views: Mapping[str, Any] | None
) -> tuple[dict[str, Any], pd.DataFrame | None]:
    """Return named matrices cut from one, not copied, and the rest of a DataFrame, if any."""
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
    if frame is None and not (sparse.issparse(X) or isinstance(X, (np.ndarray, LazyMatrix))):
        X = np.asarray(X)
    if frame is None and getattr(X, "ndim", 2) != 2:
        raise InputError(f"X must be 2-D to be cut into views, but its shape is {X.shape}.")
    width = int(X.shape[1])
    matrices: dict[str, Any] = {}
    used = np.zeros(width, dtype=bool)
    source = None if frame is not None or isinstance(X, np.ndarray) else as_source(X, "X")
    for view, spec in views.items():
        columns = _locate(view, spec, width, frame)
        used[columns] = True
        if frame is not None:
            matrices[view] = frame.iloc[:, columns]
        elif isinstance(columns, slice) and isinstance(X, np.ndarray):
            matrices[view] = X[:, columns]
        else:
            index = np.arange(width)[columns]
            matrices[view] = SubsetSource(source or as_source(X, view), columns=index)
    rest = frame.loc[:, ~used] if frame is not None and not used.all() else None
    return matrices, rest


def locate_columns(views: Mapping[str, Any], width: int) -> dict[str, np.ndarray]:
    """Return the column numbers of every view in a matrix of `width` columns without names."""
    every = np.arange(width)
    return {view: every[_locate(view, spec, width, None)] for view, spec in views.items()}


def _locate(view: str, spec: Any, width: int, frame: pd.DataFrame | None) -> slice | np.ndarray:
    """Return the columns of a specification: a slice if they follow each other, else numbers.

    See `MultiView.from_columns` for what `spec` may be; names need a `frame`.
    """
    columns = None if frame is None else frame.columns
    if isinstance(spec, slice):
        if not isinstance(spec.start, str) and not isinstance(spec.stop, str):
            return slice(*spec.indices(width))
        spec = _name_slice(view, spec, columns)
    elif isinstance(spec, re.Pattern):
        spec = _matching(view, spec, columns)
    elif callable(spec):
        if frame is None:
            raise _nameless(view, "a function of the DataFrame")
        spec = spec(frame)
        if not len(spec):
            raise InputError(
                f"View {view!r}: the function chooses none of the {width} columns of X, "
                f"{some(list(frame.columns))}."
            )
    index = np.atleast_1d(np.asarray(spec))
    if index.dtype.kind in "UO" and index.ndim == 1 and index.size:
        numbers = _find_names(view, list(np.atleast_1d(np.asarray(spec, dtype=object))), columns)
    elif index.dtype.kind in "biu" or not index.size:
        numbers = _pick(index, width, f"View {view!r}", "column")
    else:
        raise InputError(
            f"View {view!r}: columns must be names, patterns, indices, a slice or a boolean mask, "
            f"but got {type(spec).__name__} of dtype {index.dtype}."
        )
    if len(np.unique(numbers)) != len(numbers):
        raise InputError(f"View {view!r}: a column is listed more than once; list each once.")
    if numbers.size and np.array_equal(numbers, np.arange(numbers[0], numbers[0] + numbers.size)):
        return slice(int(numbers[0]), int(numbers[0]) + numbers.size)
    return numbers


def _nameless(view: str, what: str) -> InputError:
    return InputError(
        f"View {view!r}: columns are given by {what}, but X is not a DataFrame, so that its "
        "columns have no names. Pass a DataFrame, or give column numbers. Behind transformers in a "
        'pipeline, names are kept by pipeline.set_output(transform="pandas").'
    )


def _matching(view: str, pattern: re.Pattern[str], columns: pd.Index | None) -> np.ndarray:
    """Return the columns whose names fit a pattern, in the order of the columns."""
    if columns is None:
        raise _nameless(view, "a pattern of names")
    numbers = np.flatnonzero([pattern.search(str(name)) is not None for name in columns])
    if not numbers.size:
        raise InputError(
            f"View {view!r}: no column of X fits {pattern.pattern!r}. Its columns are "
            f"{some(list(columns))}."
        )
    return numbers


def _find_names(view: str, wanted: list[Any], columns: pd.Index | None) -> np.ndarray:
    """Return the columns of these names; a star stands for any text."""
    if columns is None:
        raise _nameless(view, f"name ({some(wanted, 3)})")
    starred = [w for w in wanted if isinstance(w, str) and "*" in w and w not in columns]
    plain = [w for w in wanted if w not in starred]
    unknown = [name for name in plain if name not in columns]
    if unknown:
        near = [c for c in columns if str(c).startswith(str(unknown[0]))]
        hint = f" For all columns that begin so, write {unknown[0] + '*'!r}." if near else ""
        raise InputError(
            f"View {view!r}: X has no column {some(unknown)}. Its columns are "
            f"{some(list(columns))}.{hint or rename_hint(unknown, columns)}"
        )
    if plain and columns.has_duplicates:
        raise InputError(
            f"View {view!r}: columns are chosen by name, but X repeats the column names "
            f"{some(repeated(columns))}. Rename them."
        )
    numbers = [columns.get_indexer(pd.Index(plain))] if plain else []
    for name in starred:
        # Everything but the stars stands for itself.
        pattern = ".*".join(re.escape(part) for part in name.split("*"))
        numbers.append(_matching(view, re.compile(rf"\A{pattern}\Z", re.S), columns))
    return np.concatenate(numbers).astype(np.intp)


def _name_slice(view: str, spec: slice, columns: pd.Index | None) -> np.ndarray:
    """Return the columns from one name to another, both included, as in pandas."""
    ends = [end for end in (spec.start, spec.stop) if end is not None]
    numbers = _find_names(view, ends, columns).tolist()
    start = numbers.pop(0) if spec.start is not None else 0
    stop = numbers.pop(0) + 1 if spec.stop is not None else 0 if columns is None else len(columns)
    return np.arange(start, stop)
