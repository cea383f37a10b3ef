"""DataFrames as plain values, and back.

Columns of numbers, truth values, text, categories, points in time and pandas' nullable types come
back with the type they had. Other columns are stored cell by cell, as plain values.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from baldur.core.escape import has_control
from baldur.core.state import (
    ByName,
    Each,
    Flags,
    Form,
    Integer,
    Numbers,
    Object,
    Plain,
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
class _Values(Form):
    """An array of numbers or of text, or a list of cells."""

    def _form(self, value: Any) -> Form:
        if isinstance(value, list):
            return Each(_Name(cell=True), "rows")
        if isinstance(value, np.ndarray) and value.dtype.kind in "UO":
            return Texts("rows")
        return Numbers("rows", "number", finite=False, largest=np.inf)

    def _write(self, value: Any) -> Any:
        return self._form(value).write(value)

    def _read(self, value: Any, sizes: Sizes) -> Any:
        return self._form(value).read(value, sizes)


@dataclass(frozen=True)
class _Levels(Form):
    """A column of its own length."""

    def _write(self, value: Any) -> Any:
        return write_state(value)

    def _read(self, value: Any, sizes: Sizes) -> Any:
        return read_state(value, _Column)


@dataclass
class _Column:
    """The cells of a column, of a type of pandas or of "number", "text" or "mixed"."""

    kind: ClassVar[str] = "column"

    type: str = stored(Text())
    values: Any = stored(_Values())
    # Cells without a value, of nullable types
    missing: np.ndarray | None = stored(Flags("rows", optional=True), default=None)
    # Of categories, of which `values` are the numbers, -1 for missing
    levels: _Column | None = stored(_Levels(optional=True), default=None)

    def check_state(self, sizes: Sizes) -> None:
        """Refuse values that are not of the type."""
        self.cells()

    def cells(self) -> Any:
        """Return the values as pandas has them."""
        import pandas as pd

        values, times = self.values, _TIMES.fullmatch(self.type)
        if self.type == "mixed":
            need(isinstance(values, list), "expected a list", "values")
            made = np.empty(len(values), dtype=object)
            for i, cell in enumerate(values):
                made[i] = cell
            return made
        need(isinstance(values, np.ndarray), "expected an array", "values")
        if self.type in ("text", "string"):
            need(values.dtype.kind in "UO", "expected text", "values")
            return self._nullable(list(values)) if self.type == "string" else values.astype(object)
        need(values.dtype.kind not in "UO", "expected numbers", "values")
        if self.type == "number":
            return values
        if self.type in _NULLABLE:
            wanted = _NULLABLE[self.type]
            need(values.dtype == wanted, f"expected {wanted}", "values")
            return self._nullable(values)
        need(values.dtype.kind in "iu", "expected whole numbers", "values")
        if self.type in ("category", "ordered category"):
            need(self.levels is not None, "expected a column", "levels")
            levels = pd.Index(self.levels.cells() if self.levels else [])
            sound = levels.is_unique and not levels.hasnans
            need(sound, "expected no category twice", "levels")
            inside = ((values >= -1) & (values < len(levels))).all()
            need(inside, f"expected numbers from -1 to {len(levels) - 1}", "values")
            ordered = self.type == "ordered category"
            return pd.Categorical.from_codes(values, categories=levels, ordered=ordered)
        need(times, "a type that is not known", "type")
        return _times(values.astype("int64"), *times.groups() if times else ())

    def _nullable(self, values: Any) -> Any:
        import pandas as pd

        need(self.missing is not None, "expected truth values", "missing")
        made: Any = pd.array(values, dtype=self.type)
        made[self.missing] = pd.NA
        return made


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


def _column(column: pd.Series) -> _Column:
    """Return a column in the form that it is stored in."""
    import pandas as pd

    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        name = "ordered category" if dtype.ordered else "category"
        levels = _column(column.cat.categories.to_series())
        return _Column(name, np.array(column.cat.codes), levels=levels)
    if dtype.kind in "mM":
        zone = getattr(dtype, "tz", None)
        # Nanoseconds or coarser since 1970, in UTC; NaT is the smallest int64.
        local = column if zone is None else column.dt.tz_convert("UTC").dt.tz_localize(None)
        return _Column(str(dtype), local.to_numpy().astype("int64"))
    if isinstance(dtype, pd.api.extensions.ExtensionDtype):
        missing = column.isna().to_numpy(dtype=bool)
        if isinstance(dtype, pd.StringDtype):
            texts = column.astype(object).where(~missing, "").tolist()
            return _Column("string", np.array(texts, dtype=object), missing)
        if str(dtype) in _NULLABLE:
            values = column.array.to_numpy(_NULLABLE[str(dtype)], na_value=0)
            return _Column(str(dtype), values, missing)
        column = column.astype(object)
    values = column.to_numpy()
    if values.dtype.kind in "biuf":
        return _Column("number", np.array(values))
    cells = values.tolist()
    if all(type(cell) is str for cell in cells):
        return _Column("text", np.array(cells, dtype=object))
    return _Column("mixed", cells)


@dataclass
class _Frame:
    kind: ClassVar[str] = "table"
    # Without a column or an index there is nothing that would show how many rows there are.
    rows: int = stored(Integer(0, 2**31, name="rows"))
    columns: list[Any] = stored(Each(_Name(), "columns"))
    data: list[Any] = stored(Each(Object((_Column,)), "columns"))
    index: Any = stored(Object((_Column,), optional=True))
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
