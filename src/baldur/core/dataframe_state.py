"""DataFrames as plain values, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from baldur.core.escape import has_control
from baldur.core.state import Fields, State, StateError, by_kind, made_by, plain
from baldur.exceptions import InputError


def dataframe_state(frame: Any) -> State:
    """Return the state of a DataFrame; `read_dataframe` reads it.

    Columns of numbers, truth values, text, categories, points in time and pandas' nullable types
    come back with the type they had. Other columns are stored cell by cell, as plain values.
    """
    import pandas as pd

    index = frame.index
    if isinstance(index, pd.MultiIndex) or isinstance(frame.columns, pd.MultiIndex):
        raise InputError("A table cannot be saved with an index of several levels; reset it first.")
    counted = isinstance(index, pd.RangeIndex) and index.equals(pd.RangeIndex(len(frame)))
    return {
        "kind": "table",
        "rows": len(frame),
        "columns": [plain(name, "the name of a column") for name in frame.columns],
        "data": [_column_state(frame.iloc[:, i]) for i in range(frame.shape[1])],
        "index": None if counted else _column_state(index.to_series()),
        "index_name": plain(index.name, "the name of an index"),
        "attrs": plain(dict(frame.attrs), "attrs of a table"),
    }


def _column_state(column: Any) -> State:
    import pandas as pd

    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        codes, levels = column.cat.codes.to_numpy(), column.cat.categories.to_series()
        held = {"codes": np.array(codes), "categories": _column_state(levels)}
        return {"kind": "categories", **held, "ordered": bool(dtype.ordered)}
    if dtype.kind == "M":
        # Nanoseconds or coarser since 1970, in UTC; NaT is the smallest int64.
        zone = getattr(dtype, "tz", None)
        values = column if zone is None else column.dt.tz_convert("UTC").dt.tz_localize(None)
        found = values.to_numpy()
        unit = np.datetime_data(found.dtype)[0]
        counts = found.astype("int64")
        return {"kind": "times", "values": counts, "unit": unit, "zone": zone and str(zone)}
    if dtype.kind == "m":
        found = column.to_numpy()
        unit = np.datetime_data(found.dtype)[0]
        return {"kind": "durations", "values": found.astype("int64"), "unit": unit}
    if isinstance(dtype, pd.api.extensions.ExtensionDtype):
        missing = column.isna().to_numpy(dtype=bool)
        if isinstance(dtype, pd.StringDtype):
            texts = np.array(
                ["" if gone else v for v, gone in zip(column, missing, strict=True)], object
            )
            return {"kind": "nullable", "values": texts, "missing": missing, "type": "string"}
        if str(dtype) in _NULLABLE:
            values = column.array.to_numpy(_NULLABLE[str(dtype)], na_value=0)
            return {"kind": "nullable", "values": values, "missing": missing, "type": str(dtype)}
        column = column.astype(object)
    values = column.to_numpy()
    if values.dtype.kind in "biuf":
        return {"kind": "numbers", "values": np.array(values)}
    cells = values.tolist()
    if all(type(cell) is str for cell in cells):
        return {"kind": "texts", "values": np.array(cells, dtype=object)}
    return {"kind": "cells", "values": [plain(cell, "a cell of a table") for cell in cells]}


_NULLABLE = {
    "boolean": "bool",
    **{f"Int{size}": f"int{size}" for size in (8, 16, 32, 64)},
    **{f"UInt{size}": f"uint{size}" for size in (8, 16, 32, 64)},
    "Float32": "float32",
    "Float64": "float64",
}
"""Nullable types of pandas, and the NumPy types of their values."""
_UNITS = ("s", "ms", "us", "ns")


def read_dataframe(state: Any, columns: Sequence[str] | None = None) -> Any:
    """Return a DataFrame from the state that `dataframe_state` returned; for `Fields.part`."""
    import pandas as pd

    with Fields(state, "table") as read:
        # Without a column or an index there is nothing that would show how many rows there are.
        rows, names = read.integer("rows", high=2**31), read.plain("columns")
        if type(names) is not list or not all(_is_name(name) for name in names):
            raise read.fault("expected a list of names", "columns")
        if columns is not None and names != list(columns):
            raise read.fault(f"expected the columns {list(columns)}", "columns")
        data = read.parts("data", _COLUMNS, len(names), rows=rows)
        index = read.part_of_kind("index", _COLUMNS, rows=rows) if read.has("index") else None
        label, attrs = read.plain("index_name"), read.plain("attrs")
        read.need(_is_name(label), "expected a name", "index_name")
        read.need(type(attrs) is dict, "expected a dictionary", "attrs")
    frame = pd.DataFrame(dict(enumerate(data)), index=pd.RangeIndex(rows))
    frame.columns = pd.Index(names, dtype=None if names else object)
    if index is not None:
        frame.index = pd.Index(index)
    frame.index.name = label
    frame.attrs.update(attrs)
    return frame


def _is_name(value: Any) -> bool:
    return (
        value is None
        or type(value) in (bool, int, float)
        or (type(value) is str and not has_control(value))
    )


def _numbers(state: Any, rows: int) -> np.ndarray:
    with Fields(state, "numbers") as read:
        return read.array("values", (rows,), "number", finite=False, largest=np.inf)


def _texts(state: Any, rows: int) -> np.ndarray:
    with Fields(state, "texts") as read:
        return read.texts("values", (rows,)).astype(object)


def _cells(state: Any, rows: int) -> np.ndarray:
    with Fields(state, "cells") as read:
        cells = read.plain("values")
        read.need(type(cells) is list and len(cells) == rows, f"expected {rows} cells", "values")
    made = np.empty(rows, dtype=object)
    for i, cell in enumerate(cells):
        if type(cell) is str and has_control(cell):
            raise StateError(("values",), "expected text without control characters")
        made[i] = cell
    return made


def _categories(state: Any, rows: int) -> Any:
    import pandas as pd

    with Fields(state, "categories") as read:
        levels = read.plain("categories")
        held = levels.get("values") if type(levels) is dict else None
        width = len(held) if isinstance(held, (list, np.ndarray)) and np.ndim(held) else 0
        categories = pd.Index(made_by(("categories",), by_kind(_COLUMNS), levels, {"rows": width}))
        codes = read.index("codes", (rows,), width, lowest=-1)
        ordered = read.boolean("ordered")
        sound = categories.is_unique and not categories.hasnans
        read.need(sound, "expected no category twice", "categories")
    return pd.Categorical.from_codes(codes, categories=categories, ordered=ordered)


def _times(state: Any, rows: int) -> Any:
    import pandas as pd

    with Fields(state, "times") as read:
        values = read.array("values", (rows,), "int").astype("int64")
        found = pd.Series(values.view(f"M8[{read.choice('unit', _UNITS)}]"))
        if read.has("zone"):
            try:
                found = found.dt.tz_localize("UTC").dt.tz_convert(read.text("zone"))
            except Exception as error:  # whatever the library for time zones says
                raise read.fault(
                    f"a time zone that is not known ({type(error).__name__})"
                ) from None
    return found.array


def _durations(state: Any, rows: int) -> Any:
    with Fields(state, "durations") as read:
        values = read.array("values", (rows,), "int").astype("int64")
        return values.view(f"m8[{read.choice('unit', _UNITS)}]")


def _nullable(state: Any, rows: int) -> Any:
    import pandas as pd

    with Fields(state, "nullable") as read:
        kind = read.choice("type", ("string", *_NULLABLE))
        missing = read.flags("missing", (rows,))
        if kind == "string":
            values = read.texts("values", (rows,)).astype(object)
        else:
            values = read.array("values", (rows,), "number", finite=False, largest=np.inf)
            read.need(values.dtype == _NULLABLE[kind], f"expected {_NULLABLE[kind]}", "values")
    cells: Any = list(values) if kind == "string" else values
    made: Any = pd.array(cells, dtype=kind)
    made[missing] = pd.NA
    return made


_COLUMNS: dict[str, Callable[..., Any]] = {
    "numbers": _numbers,
    "texts": _texts,
    "cells": _cells,
    "categories": _categories,
    "times": _times,
    "durations": _durations,
    "nullable": _nullable,
}
