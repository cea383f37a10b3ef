"""DataFrames as plain values, and back.

Columns of numbers, truth values, text, categories, points in time and pandas' nullable types come
back with the type they had. Other columns are stored cell by cell, as plain values.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from baldur.core.escape import has_control
from baldur.core.state import (
    Boolean,
    ByName,
    Choice,
    Each,
    Flags,
    Form,
    Numbers,
    Object,
    Plain,
    Size,
    Sizes,
    Text,
    Texts,
    need,
    plain,
    read_state,
    stored,
    write_state,
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

_NUMBERS = Numbers("rows", "number", finite=False, largest=np.inf)
_UNITS = Choice(("s", "ms", "us", "ns"))


@dataclass(frozen=True)
class _Name(Form):
    """The name of a column or an index."""

    def _read(self, value: Any, sizes: Sizes) -> Any:
        good = value is None or type(value) in (bool, int, float, str)
        need(good and not (type(value) is str and has_control(value)), "expected a name")
        return value


@dataclass(frozen=True)
class _Cell(Form):
    """A plain value; text without control characters."""

    def _write(self, value: Any) -> Any:
        return plain(value, "a cell of a table")

    def _read(self, value: Any, sizes: Sizes) -> Any:
        printable = type(value) is not str or not has_control(value)
        need(printable, "expected text without control characters")
        return value


@dataclass(frozen=True)
class _Values(Form):
    """An array of numbers or of text."""

    def _read(self, value: Any, sizes: Sizes) -> Any:
        text = isinstance(value, np.ndarray) and value.dtype.kind in "UO"
        return (Texts("rows") if text else _NUMBERS).read(value, sizes)


@dataclass(frozen=True)
class _Levels(Form):
    """A column of its own length."""

    def _write(self, value: Any) -> Any:
        return write_state(value)

    def _read(self, value: Any, sizes: Sizes) -> Any:
        return read_state(value, *_COLUMNS)


@dataclass
class _NumberColumn:
    kind: ClassVar[str] = "numbers"
    values: np.ndarray = stored(_NUMBERS)

    def cells(self) -> Any:
        return self.values


@dataclass
class _TextColumn:
    kind: ClassVar[str] = "texts"
    values: np.ndarray = stored(Texts("rows"))

    def cells(self) -> Any:
        return self.values.astype(object)


@dataclass
class _CellColumn:
    kind: ClassVar[str] = "cells"
    values: list[Any] = stored(Each(_Cell(), "rows"))

    def cells(self) -> Any:
        made = np.empty(len(self.values), dtype=object)
        for i, cell in enumerate(self.values):
            made[i] = cell
        return made


@dataclass
class _CategoryColumn:
    kind: ClassVar[str] = "categories"
    codes: np.ndarray = stored(Numbers("rows", "int", low=-1))  # -1 for missing
    categories: Any = stored(_Levels())
    ordered: bool = stored(Boolean())

    def check_state(self, sizes: Sizes) -> None:
        import pandas as pd

        levels = pd.Index(self.categories.cells())
        sound = levels.is_unique and not levels.hasnans
        need(sound, "expected no category twice", "categories")
        last = len(levels) - 1
        need((self.codes <= last).all(), f"expected numbers at most {last}", "codes")

    def cells(self) -> Any:
        import pandas as pd

        levels = pd.Index(self.categories.cells())
        return pd.Categorical.from_codes(self.codes, categories=levels, ordered=self.ordered)


@dataclass
class _TimeColumn:
    kind: ClassVar[str] = "times"
    values: np.ndarray = stored(Numbers("rows", "int"))  # Units since 1970 in UTC
    unit: str = stored(_UNITS)
    zone: str | None = stored(Text(optional=True))

    def check_state(self, sizes: Sizes) -> None:
        try:
            self.cells()
        except Exception as error:  # whatever the library for time zones says
            name = type(error).__name__
            need(False, f"a time zone that is not known ({name})", "zone")

    def cells(self) -> Any:
        import pandas as pd

        times = pd.Series(self.values.astype("int64").view(f"M8[{self.unit}]"))
        if self.zone is not None:
            times = times.dt.tz_localize("UTC").dt.tz_convert(self.zone)
        return times.array


@dataclass
class _DurationColumn:
    kind: ClassVar[str] = "durations"
    values: np.ndarray = stored(Numbers("rows", "int"))
    unit: str = stored(_UNITS)

    def cells(self) -> Any:
        return self.values.astype("int64").view(f"m8[{self.unit}]")


@dataclass
class _NullableColumn:
    kind: ClassVar[str] = "nullable"
    type: str = stored(Choice(("string", *_NULLABLE)))
    values: np.ndarray = stored(_Values())
    missing: np.ndarray = stored(Flags("rows"))

    def check_state(self, sizes: Sizes) -> None:
        wanted = _NULLABLE.get(self.type)
        fits = self.values.dtype.kind in "UO" if wanted is None else self.values.dtype == wanted
        need(fits, f"expected {wanted or 'text'}", "values")

    def cells(self) -> Any:
        import pandas as pd

        values: Any = list(self.values) if self.type == "string" else self.values
        made: Any = pd.array(values, dtype=self.type)
        made[self.missing] = pd.NA
        return made


_COLUMNS = (
    _NumberColumn,
    _TextColumn,
    _CellColumn,
    _CategoryColumn,
    _TimeColumn,
    _DurationColumn,
    _NullableColumn,
)


def _column(column: pd.Series) -> Any:
    """Return a column in the form that it is stored in."""
    import pandas as pd

    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        levels = _column(column.cat.categories.to_series())
        return _CategoryColumn(np.array(column.cat.codes), levels, bool(dtype.ordered))
    if dtype.kind in "mM":
        zone = getattr(dtype, "tz", None)
        # Nanoseconds or coarser since 1970, in UTC; NaT is the smallest int64.
        local = column if zone is None else column.dt.tz_convert("UTC").dt.tz_localize(None)
        values = local.to_numpy()
        counts, unit = values.astype("int64"), np.datetime_data(values.dtype)[0]
        if dtype.kind == "m":
            return _DurationColumn(counts, unit)
        return _TimeColumn(counts, unit, zone and str(zone))
    if isinstance(dtype, pd.api.extensions.ExtensionDtype):
        missing = column.isna().to_numpy(dtype=bool)
        if isinstance(dtype, pd.StringDtype):
            texts = np.array(column.astype(object).where(~missing, "").tolist(), dtype=object)
            return _NullableColumn("string", texts, missing)
        if str(dtype) in _NULLABLE:
            values = column.array.to_numpy(_NULLABLE[str(dtype)], na_value=0)
            return _NullableColumn(str(dtype), values, missing)
        column = column.astype(object)
    values = column.to_numpy()
    if values.dtype.kind in "biuf":
        return _NumberColumn(np.array(values))
    cells = values.tolist()
    if all(type(cell) is str for cell in cells):
        return _TextColumn(np.array(cells, dtype=object))
    return _CellColumn(cells)


@dataclass
class _Frame:
    kind: ClassVar[str] = "table"
    # Without a column or an index there is nothing that would show how many rows there are.
    rows: int = stored(Size(0, 2**31, name="rows"))
    columns: list[Any] = stored(Each(_Name(), "columns"))
    data: list[Any] = stored(Each(Object(_COLUMNS), "columns"))
    index: Any = stored(Object(_COLUMNS, optional=True))
    index_name: Any = stored(_Name())
    attrs: Any = stored(ByName(Plain()))


def dataframe_state(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the state of a DataFrame; `read_dataframe` reads it."""
    import pandas as pd

    index = frame.index
    if isinstance(index, pd.MultiIndex) or isinstance(frame.columns, pd.MultiIndex):
        raise InputError("A table cannot be saved with an index of several levels; reset it first.")
    counted = isinstance(index, pd.RangeIndex) and index.equals(pd.RangeIndex(len(frame)))
    columns = [_column(frame.iloc[:, i]) for i in range(frame.shape[1])]
    kept = None if counted else _column(index.to_series())
    return write_state(
        _Frame(len(frame), list(frame.columns), columns, kept, index.name, frame.attrs)
    )


def read_dataframe(state: Any) -> pd.DataFrame:
    """Return a DataFrame from the state that `dataframe_state` returned."""
    import pandas as pd

    held: _Frame = read_state(state, _Frame)
    cells = {i: column.cells() for i, column in enumerate(held.data)}
    frame = pd.DataFrame(cells, index=pd.RangeIndex(held.rows))
    frame.columns = pd.Index(held.columns, dtype=None if held.columns else object)
    if held.index is not None:
        frame.index = pd.Index(held.index.cells())
    frame.index.name = held.index_name
    frame.attrs.update(held.attrs)
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
