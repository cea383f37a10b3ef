"""DataFrames as plain values, and back.

Columns of numbers, truth values, text, categories, points in time and pandas' nullable types come
back with the type they had. Other columns are stored cell by cell, as plain values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.escape import has_control
from baldur.core.state import (
    STATES,
    ByName,
    Choice,
    Each,
    Flags,
    Form,
    Integer,
    Numbers,
    OrNone,
    Plain,
    Sizes,
    StateError,
    Text,
    Texts,
    at,
    form,
    need,
    plain,
    read_fields,
)
from baldur.exceptions import InputError

_NULLABLE = {
    "boolean": "bool",
    **{f"Int{size}": f"int{size}" for size in (8, 16, 32, 64)},
    **{f"UInt{size}": f"uint{size}" for size in (8, 16, 32, 64)},
    "Float32": "float32",
    "Float64": "float64",
}
"""Nullable types of pandas, and the NumPy types of their values."""

_TIMES = re.compile(r"(datetime|timedelta)64\[(s|ms|us|ns)(, .+)?\]")


def _name(value: Any, sizes: Sizes) -> Any:
    """Read the name of a column or an index, printable where it is text."""
    good = value is None or type(value) in (bool, int, float, str)
    need(good, "expected a name")
    return _cell(value, sizes)


def _cell(value: Any, sizes: Sizes) -> Any:
    printable = type(value) is not str or not has_control(value)
    need(printable, "expected text without control characters")
    return value


def _column_state(column: pd.Series) -> dict[str, Any]:
    """Return a column: its type (of pandas, or "number", "text" or "mixed"), and its cells.

    `missing` marks the cells without a value, of nullable types. `levels` is the column of the
    categories, of which `values` are the numbers, -1 for missing.
    """
    dtype, missing, levels = column.dtype, None, None
    kind, values = str(dtype), None
    if isinstance(dtype, pd.CategoricalDtype):
        kind = "ordered category" if dtype.ordered else "category"
        values = np.array(column.cat.codes)
        levels = _column_state(column.cat.categories.to_series())
    elif dtype.kind in "mM":
        # Nanoseconds or coarser since 1970, in UTC; NaT is the smallest int64.
        values = np.array(pd.Index(column).asi8)
    elif isinstance(dtype, pd.StringDtype):
        kind, missing = "string", column.isna().to_numpy(dtype=bool)
        values = np.array(column.astype(object).where(~missing, "").tolist(), dtype=object)
    elif kind in _NULLABLE:
        missing = column.isna().to_numpy(dtype=bool)
        values = column.array.to_numpy(_NULLABLE[kind], na_value=0)
    elif isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        kind, values = "number", np.array(column)
    else:
        cells = column.astype(object).tolist()
        if all(type(cell) is str for cell in cells):
            kind, values = "text", np.array(cells, dtype=object)
        else:
            kind, values = "mixed", plain(cells, "a cell of a table")
    return {"kind": "column", "type": kind, "values": values, "missing": missing, "levels": levels}


def _read_column(state: Any, sizes: Sizes) -> Any:
    """Return the cells of a column that `_column_state` stored, as an array that pandas takes."""
    column = read_fields(state, _COLUMN, sizes)
    kind, values, missing = column["type"], column["values"], column["missing"]
    is_text = kind in ("text", "string")
    with at("values"):
        if kind == "mixed":
            # Not an array at once, as a cell may be a list.
            return pd.Series(Each(_cell, "rows")(values, sizes), dtype=object).to_numpy()
        values = (Texts("rows") if is_text else _NUMBERS)(values, sizes)
    if kind in ("text", "number"):
        return values.astype(object) if is_text else values
    if kind == "string" or kind in _NULLABLE:
        wanted = _NULLABLE.get(kind, values.dtype)
        need(values.dtype == wanted, f"expected {wanted}", "values")
        need(missing is not None, "expected truth values", "missing")
        nullable: Any = pd.array(list(values) if is_text else values, dtype=kind)
        nullable[missing] = pd.NA
        return nullable
    need(values.dtype.kind in "iu", "expected whole numbers", "values")
    if kind in ("category", "ordered category"):
        with at("levels"):
            levels = pd.Index(_read_column(column["levels"], Sizes()))
        need(levels.is_unique and not levels.hasnans, "expected no category twice", "levels")
        inside = ((values >= -1) & (values < len(levels))).all()
        need(inside, f"expected numbers from -1 to {len(levels) - 1}", "values")
        ordered = kind == "ordered category"
        return pd.Categorical.from_codes(values, categories=levels, ordered=ordered)
    need(_TIMES.fullmatch(kind), "a type that is not known", "type")
    counts: Any = pd.Series(values.astype("int64"))
    try:
        return counts.astype(kind).array
    except Exception as error:  # whatever the library for time zones says
        name = type(error).__name__
        need(False, f"a time zone that is not known ({name})", "type")


_NUMBERS = Numbers("rows", "number", finite=False, largest=np.inf)
_COLUMN: dict[str, Form] = {
    "kind": Choice(("column",)),
    "type": Text(),
    "values": Plain(),
    "missing": OrNone(Flags("rows")),
    "levels": Plain(),
}
_FRAME: dict[str, Form] = {
    "kind": Choice(("table",)),
    # Without a column or an index there is nothing that would show how many rows there are.
    "rows": Integer(0, 2**31, "rows"),
    "columns": Each(_name, "columns"),
    "data": Each(_read_column, "columns"),
    "index": OrNone(_read_column),
    "index_name": _name,
    "attrs": ByName(Plain()),
}


def dataframe_state(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the state of a DataFrame; `read_dataframe` reads it."""
    index = frame.index
    if isinstance(index, pd.MultiIndex) or isinstance(frame.columns, pd.MultiIndex):
        raise InputError("A table cannot be saved with an index of several levels; reset it first.")
    is_default = isinstance(index, pd.RangeIndex) and index.equals(pd.RangeIndex(len(frame)))
    return {
        "kind": "table",
        "rows": len(frame),
        "columns": plain(list(frame.columns), "the name of a column"),
        "data": [_column_state(frame.iloc[:, i]) for i in range(frame.shape[1])],
        "index": None if is_default else _column_state(index.to_series()),
        "index_name": plain(index.name, "the name of a column"),
        "attrs": plain({str(name): value for name, value in frame.attrs.items()}),
    }


STATES[pd.DataFrame] = dataframe_state


def read_dataframe(state: Any) -> pd.DataFrame:
    """Return a DataFrame from the state that `dataframe_state` returned."""
    fields = read_fields(state, _FRAME, Sizes())
    frame = pd.DataFrame(dict(enumerate(fields["data"])), index=pd.RangeIndex(fields["rows"]))
    frame.columns = pd.Index(fields["columns"], dtype=None if fields["columns"] else object)
    if fields["index"] is not None:
        frame.index = pd.Index(fields["index"])
    frame.index.name = fields["index_name"]
    frame.attrs.update(fields["attrs"])
    return frame


_TYPES = {"text": "OU", "whole numbers": "iu", "numbers": "f", "truth values": "b"}


@form
def Table(
    value: Any,
    sizes: Sizes,
    columns: Mapping[str, str | None] | None = None,
    optional: Mapping[str, str] | None = None,
    fault: Callable[[Any, Sizes], str | None] | None = None,
) -> Any:
    """Read a DataFrame with columns of some types (None for any), or any DataFrame.

    The columns `optional` follow, or all of them are missing. ``fault(frame, sizes)`` returns what
    else is wrong with the table, or None.
    """
    frame = read_dataframe(value)
    if columns is not None:
        has_more = len(frame.columns) > len(columns)
        _check_columns(frame, {**columns, **((optional or {}) if has_more else {})})
    message = fault(frame, sizes) if fault is not None else None
    if message is not None:
        raise StateError((), message)
    return frame


def _check_columns(frame: Any, types: Mapping[str, str | None]) -> None:
    """Refuse a table with other columns, or with other types of cells, than stated."""
    same = list(frame.columns) == list(types)
    need(same, f"expected the columns {list(types)}", "columns")
    for name, wanted in types.items():
        # An empty table has no types.
        if wanted is None or not len(frame):
            continue
        cells = frame[name]
        fits = cells.dtype.kind in _TYPES[wanted]
        if wanted == "text":
            fits = fits and all(type(cell) is str for cell in cells)
        need(fits, f"expected {wanted} in the column {name}")
