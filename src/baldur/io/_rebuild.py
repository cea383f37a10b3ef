"""A container with some of its views replaced; rows stay deferred."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from baldur.exceptions import InputError
from baldur.views.container import MultiView
from baldur.views.source import ColumnSource, Source
from baldur.views.view import Table, View

__all__ = [
    "check_multiview",
    "chosen_views",
    "replace_tables",
    "row_numbers",
    "select_columns",
    "with_source",
]


def check_multiview(X: Any, who: str) -> MultiView:
    """Return `X` if it is a MultiView, or say how to make one."""
    if not isinstance(X, MultiView):
        raise InputError(
            f"{who} expects a MultiView, as the readers of baldur.io return, but got "
            f"{type(X).__name__}. Wrap matrices with MultiView.from_dict."
        )
    return X


def chosen_views(mv: MultiView, views: Any, who: str) -> list[str]:
    """Return the views a step works on: those named, or all."""
    if views is None:
        return mv.view_names
    wanted = [views] if isinstance(views, str) else list(views)
    unknown = [name for name in wanted if name not in mv.view_names]
    if unknown:
        raise InputError(
            f"{who}: there is no view {unknown[0]!r}; the views are {mv.view_names}. Correct "
            "views=."
        )
    return wanted


def _tables(mv: MultiView) -> dict[str, Table]:
    return dict(mv._tables)


def replace_tables(mv: MultiView, tables: Mapping[str, Table]) -> MultiView:
    """Return `mv` with new tables for some views; each keeps all rows of the old one."""
    return MultiView._with({**_tables(mv), **tables}, mv._rows, mv.sample_ids)


def select_columns(mv: MultiView, kept: Mapping[str, np.ndarray]) -> MultiView:
    """Return `mv` with only the numbered columns of some views, not copied."""
    made = {}
    for name, index in kept.items():
        view, old = mv.view(name), _tables(mv)[name]
        if len(index) == view.shape[1] and np.array_equal(index, np.arange(len(index))):
            continue
        source, columns = old.source, index
        if isinstance(source, ColumnSource):
            columns = source.columns[index]
            source = source.base
        info = None if old.info is None else old.info.iloc[index].reset_index(drop=True)
        made[name] = replace(
            old, source=ColumnSource(source, columns), names=view.names_of(index), info=info
        )
    return replace_tables(mv, made)


def with_source(mv: MultiView, name: str, source: Source, names: Iterable[str], info: Any) -> Table:
    """Return the table of a view with other columns; presence stays as declared."""
    return replace(_tables(mv)[name], source=source, names=np.asarray(list(names)), info=info)


def row_numbers(view: View) -> np.ndarray:
    """Return the rows of the view's source, in order."""
    return np.arange(view.source.shape[0]) if view.rows is None else view.rows
