"""DataFrames as plain values, and back.

Columns of numbers, truth values, text, categories, points in time and pandas' nullable types come
back with the type they had. Other columns are stored cell by cell, as plain values.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from baldur.core.escape import has_control
from baldur.core.state import (
    ByName,
    Choice,
    Each,
    Flags,
    Form,
    Integer,
    Numbers,
    Plain,
    Sizes,
    Text,
    Texts,
    at,
    need,
    plain,
    read_fields,
)
from baldur.exceptions import InputError

if TYPE_CHECKING:
    import pandas as pd

_NULLABLE = {
    "boolean": "bool",
    **{f"Int{size}": f"int{size}" for size in (8, 16, 32, 64)},
    **{f"UInt{size}": f"uint{size}" for size in (8, 16, 32, 64)},
    "Float32": "float32",
    "Float64": "float64",
}
"""Nullable types of pandas, and the NumPy types of their values."""

_TIMES = re.compile(r"(datetime|timedelta)64\[(s|ms|us|ns)(?:, (.+))?\]")


@dataclass(frozen=True)
class _Name(Form):
    """The name of a column or an index, or a cell: printable where it is text."""

    cell: bool = False

    def _write(self, value: Any) -> Any:
        return plain(value, "a cell of a table" if self.cell else "the name of a column")

    def _read(self, value: Any, sizes: Sizes) -> Any:
        good = self.cell or value is None or type(value) in (bool, int, float, str)
        need(good, "expected a name")
        printable = type(value) is not str or not has_control(value)
        need(printable, "expected text without control characters")
        return value


@dataclass(frozen=True)
class _Column(Form):
    """A column: its type (of pandas, or "number", "text" or "mixed"), and its cells.

    `missing` marks the cells without a value, of nullable types. `levels` is the column of the
    categories, of which `values` are the numbers, -1 for missing.
    """

    def _write(self, value: pd.Series) -> Any:
        import pandas as pd

        dtype, missing, levels = value.dtype, None, None
        kind = str(dtype)
        if isinstance(dtype, pd.CategoricalDtype):
            kind = "ordered category" if dtype.ordered else "category"
            values = np.array(value.cat.codes)
            levels = self.write(value.cat.categories.to_series())
        elif dtype.kind in "mM":
            # Nanoseconds or coarser since 1970, in UTC; NaT is the smallest int64.
            if getattr(dtype, "tz", None) is not None:
                value = value.dt.tz_convert("UTC").dt.tz_localize(None)
            values = value.to_numpy().astype("int64")
        elif isinstance(dtype, pd.StringDtype):
            kind, missing = "string", value.isna().to_numpy(dtype=bool)
            values = np.array(value.astype(object).where(~missing, "").tolist(), dtype=object)
        elif kind in _NULLABLE:
            missing = value.isna().to_numpy(dtype=bool)
            values = value.array.to_numpy(_NULLABLE[kind], na_value=0)
        else:
            kind, values = self._plain_cells(value)
        return {
            "kind": "column", "type": kind, "values": values, "missing": missing, "levels": levels,
        }  # fmt: skip

    def _plain_cells(self, column: pd.Series) -> tuple[str, Any]:
        """Return the type and the cells of numbers, of text, or of cells of any kind."""
        if not isinstance(column.dtype, np.dtype):
            column = column.astype(object)
        values = column.to_numpy()
        if values.dtype.kind in "biuf":
            return "number", np.array(values)
        cells = values.tolist()
        if all(type(cell) is str for cell in cells):
            return "text", np.array(cells, dtype=object)
        return "mixed", _CELLS.write(cells)

    def _read(self, value: Any, sizes: Sizes) -> Any:
        import pandas as pd

        column = read_fields(value, _COLUMN, sizes)
        kind, values, missing = column["type"], column["values"], column["missing"]
        if kind == "mixed":
            made = np.empty(sizes.known["rows"], dtype=object)
            with at("values"):
                for i, cell in enumerate(_CELLS.read(values, sizes)):
                    made[i] = cell
            return made
        is_text = kind in ("text", "string")
        cells = (
            Texts("rows") if is_text else Numbers("rows", "number", finite=False, largest=np.inf)
        )
        with at("values"):
            values = cells.read(values, sizes)
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
                levels = pd.Index(_Column().read(column["levels"], Sizes()))
            need(levels.is_unique and not levels.hasnans, "expected no category twice", "levels")
            inside = ((values >= -1) & (values < len(levels))).all()
            need(inside, f"expected numbers from -1 to {len(levels) - 1}", "values")
            ordered = kind == "ordered category"
            return pd.Categorical.from_codes(values, categories=levels, ordered=ordered)
        times = _TIMES.fullmatch(kind)
        need(times, "a type that is not known", "type")
        return _times(values.astype("int64"), *times.groups() if times else ())


_CELLS = Each(_Name(cell=True), "rows")
_NUMBERS = Numbers("rows", "number", finite=False, largest=np.inf)
_COLUMN: dict[str, Form] = {
    "kind": Choice(("column",)),
    "type": Text(),
    "values": Plain(),
    "missing": Flags("rows", optional=True),
    "levels": Plain(),
}
_FRAME: dict[str, Form] = {
    "kind": Choice(("table",)),
    # Without a column or an index there is nothing that would show how many rows there are.
    "rows": Integer(0, 2**31, "rows"),
    "columns": Each(_Name(), "columns"),
    "data": Each(_Column(), "columns"),
    "index": _Column(optional=True),
    "index_name": _Name(),
    "attrs": ByName(Plain()),
}


def _times(counts: np.ndarray, kind: str, unit: str, zone: str | None) -> Any:
    """Return points in time or durations from units since 1970 in UTC."""
    import pandas as pd

    if kind == "timedelta":
        return counts.view(f"m8[{unit}]")
    times = pd.Series(counts.view(f"M8[{unit}]"))
    if zone is None:
        return times.array
    try:
        return times.dt.tz_localize("UTC").dt.tz_convert(zone).array
    except Exception as error:  # whatever the library for time zones says
        name = type(error).__name__
        need(False, f"a time zone that is not known ({name})", "type")


def dataframe_state(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the state of a DataFrame; `read_dataframe` reads it."""
    import pandas as pd

    index = frame.index
    if isinstance(index, pd.MultiIndex) or isinstance(frame.columns, pd.MultiIndex):
        raise InputError("A table cannot be saved with an index of several levels; reset it first.")
    counted = isinstance(index, pd.RangeIndex) and index.equals(pd.RangeIndex(len(frame)))
    values = {
        "kind": "table",
        "rows": len(frame),
        "columns": list(frame.columns),
        "data": [frame.iloc[:, i] for i in range(frame.shape[1])],
        "index": None if counted else index.to_series(),
        "index_name": index.name,
        "attrs": frame.attrs,
    }
    return {name: _FRAME[name].write(value) for name, value in values.items()}


def read_dataframe(state: Any) -> pd.DataFrame:
    """Return a DataFrame from the state that `dataframe_state` returned."""
    import pandas as pd

    fields = read_fields(state, _FRAME, Sizes())
    frame = pd.DataFrame(dict(enumerate(fields["data"])), index=pd.RangeIndex(fields["rows"]))
    frame.columns = pd.Index(fields["columns"], dtype=None if fields["columns"] else object)
    if fields["index"] is not None:
        frame.index = pd.Index(fields["index"])
    frame.index.name = fields["index_name"]
    frame.attrs.update(fields["attrs"])
    return frame


_TYPES = {"text": "OU", "whole numbers": "iu", "numbers": "f", "truth values": "b"}


@dataclass(frozen=True)
class Table(Form):
    """A DataFrame with columns of some types (None for any), or any DataFrame.

    The columns `more` follow, or all of them are missing. `fault` returns what else is wrong.
    """

    columns: Mapping[str, str | None] | None = None
    more: Mapping[str, str] = dataclasses.field(default_factory=dict)
    fault: Callable[[Any], str | None] = lambda table: None

    def _write(self, value: Any) -> Any:
        return dataframe_state(value)

    def _read(self, value: Any, sizes: Sizes) -> Any:
        frame = read_dataframe(value)
        if self.columns is not None:
            longer = len(frame.columns) > len(self.columns)
            self._check(frame, {**self.columns, **(self.more if longer else {})})
        message = self.fault(frame)
        need(message is None, message or "")
        return frame

    def _check(self, frame: Any, types: Mapping[str, str | None]) -> None:
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
