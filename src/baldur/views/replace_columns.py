"""Containers with some of their columns or views replaced; rows stay deferred."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from baldur.views.container import MultiView
from baldur.views.matrices.source import ArraySource, ColumnSource, RowMapSource, Source
from baldur.views.view import Table


def select_columns(mv: MultiView, columns: Mapping[str, np.ndarray]) -> MultiView:
    """Return `mv` with only the numbered columns of some views, not copied."""
    made = {}
    for name, index in columns.items():
        view, old = mv.view(name), mv.table(name)
        if len(index) == view.shape[1] and np.array_equal(index, np.arange(len(index))):
            continue
        source, at = old.source, index
        if isinstance(source, ColumnSource):
            at = source.columns[index]
            source = source.base
        info = None if old.info is None else old.info.iloc[index].reset_index(drop=True)
        made[name] = replace(
            old, source=ColumnSource(source, at), names=view.names_of(index), info=info
        )
    return mv.replace_tables(made)


def set_view(
    mv: MultiView,
    name: str,
    cells: np.ndarray,
    names: np.ndarray | None = None,
    info: pd.DataFrame | None = None,
) -> MultiView:
    """Return `mv` with one more view, or with other columns for one it has.

    Shapes: cells (n_samples, n_features).
    """
    source: Source = ArraySource(cells)
    if mv.rows is not None:
        # The other views count rows as they are stored, and so must this one.
        row_map = np.full(mv.table(mv.view_names[0]).source.shape[0], -1)
        row_map[mv.rows] = np.arange(len(mv))
        source = RowMapSource(source, row_map)
    present = mv.table(name).present if name in mv.view_names else None
    return mv.replace_tables({name: Table(source, names, info, present)})
