"""View: one named matrix for the current rows of a container."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from baldur.views.indexing import as_columns
from baldur.views.matrices.blocks import DEFAULT_BLOCK_BYTES, column_blocks
from baldur.views.matrices.source import MISSING_INT8, Source


@dataclass(frozen=True)
class Table:
    """One view over all rows of the container it was built in."""

    source: Source
    names: np.ndarray | None = None
    info: pd.DataFrame | None = None
    present: np.ndarray | None = None


class View:
    """One view of a `MultiView`, for its current rows.

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

    def __init__(self, name: str, table: Table, rows: np.ndarray | None) -> None:
        self.name = name
        self._table = table
        self._rows = rows
        n = table.source.shape[0] if rows is None else len(rows)
        self.shape = (n, table.source.shape[1])
        self.dtype = table.source.dtype
        self._present: np.ndarray | None = None

    @property
    def source(self) -> Source:
        """The matrix behind the view, with all the rows it was built with."""
        return self._table.source

    @property
    def rows(self) -> np.ndarray | None:
        """Row numbers of `source` that form this view; None means all."""
        return self._rows

    @property
    def feature_names(self) -> np.ndarray:
        """Names of the features, "<view>_<j>" unless given."""
        if self._table.names is not None:
            return self._table.names
        return self.names_of(np.arange(self.shape[1]))

    def names_of(self, index: np.ndarray) -> np.ndarray:
        """Return the names of some features without making all of them."""
        if self._table.names is not None:
            return self._table.names[index]
        return default_names(self.name, index, self.shape[1])

    @property
    def names_given(self) -> bool:
        """Whether the user named the features."""
        return self._table.names is not None

    @property
    def feature_info(self) -> pd.DataFrame | None:
        """One row per feature (chromosome, voxel, ...), or None."""
        return self._table.info

    @property
    def feature_groups(self) -> np.ndarray | None:
        """One number per feature, shared by the columns of one category; None without categories.

        What is selected or left out as a whole: the columns ``site=Oslo`` and ``site=Rome`` of one
        category, and every other feature by itself. Numbers rise from 0 in the order of the
        features.
        """
        info = self._table.info
        if info is None or "column" not in info or "level" not in info:
            return None
        coded = info["level"].notna().to_numpy()
        if not coded.any():
            return None
        own = np.arange(self.shape[1]).astype(str).astype(object)
        key = np.where(coded, "=" + info["column"].astype(str).to_numpy(dtype=object), own)
        return np.asarray(pd.factorize(key)[0], dtype=np.intp)

    @property
    def declared_present(self) -> np.ndarray | None:
        """Presence as given by the user (bool per sample), before looking at any cell."""
        if self._table.present is None or self._rows is None:
            return self._table.present
        return self._table.present[self._rows]

    @property
    def present(self) -> np.ndarray:
        """False for samples with a missing view: declared, or every cell missing."""
        if self._present is None:
            declared = self.declared_present
            present = np.ones(self.shape[0], dtype=bool) if declared is None else declared.copy()
            if self.dtype.kind == "f" or self.dtype == np.int8:
                # Only rows missing throughout the first block are followed into the next.
                suspects = np.flatnonzero(present)
                for cols in self._search_blocks():
                    if suspects.size == 0:
                        break
                    rows = suspects if self._rows is None else self._rows[suspects]
                    block = self.source.read(rows, cols)
                    suspects = suspects[_missing(block).all(axis=1)]
                present[suspects] = False
            self._present = present
        return self._present

    def _search_blocks(self) -> Iterator[slice]:
        # A narrow first look settles nearly every row.
        first = min(16, self.shape[1])
        yield slice(0, first)
        for cols in column_blocks(self.shape[0], self.shape[1] - first, 8):
            yield slice(cols.start + first, cols.stop + first)

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
        return self.source.read(self._rows, as_columns(cols, self.shape[1], self.name))

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
