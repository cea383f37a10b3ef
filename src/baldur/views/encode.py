"""Columns of a table to numbers: booleans, categories one-hot, dates and free text refused."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from baldur.core.escape import check_names
from baldur.core.limits import MAX_BYTES, Deadline, check_size, text_array
from baldur.exceptions import InputError
from baldur.views.validate import some

MAX_LEVELS = 50
"""A column of text with more levels is an identifier or free text."""

_DATE = re.compile(
    r"\s*(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})(?:[T ]|\s*$)"
)
_COMMA = re.compile(r"[+-]?\d{1,3}(?:[. ]?\d{3})*,\d+(?:[eE][+-]?\d+)?")
# A date is at the beginning; a long text is not searched.
_DATE_LENGTH = 40
# Looked at together for markers: 8 MB.
_CELLS = 1 << 20
_TRUE = {"true", "True", "TRUE", True}
_FALSE = {"false", "False", "FALSE", False}


@dataclass(frozen=True)
class Encoded:
    """Cells as numbers, names, and from which column and level each came (None: no category)."""

    matrix: np.ndarray
    names: np.ndarray
    info: pd.DataFrame | None


def mark_missing(frame: pd.DataFrame, missing: Sequence[str]) -> pd.DataFrame:
    """Replace markers by missing cells, in text and in numbers alike."""
    numbers = [float(m) for m in missing if _is_number(m)]
    changed: dict[int, pd.Series] = {}
    objects = []
    for at, dtype in enumerate(frame.dtypes):
        if types.is_bool_dtype(dtype) or types.is_datetime64_any_dtype(dtype):
            continue
        if not types.is_numeric_dtype(dtype):
            objects.append(at)
        elif numbers:
            hits = frame.iloc[:, at].isin(numbers)
            if hits.any():
                changed[at] = frame.iloc[:, at].where(~hits)
    # Many columns at a time: one by one, a wide table takes ten times longer.
    step = max(1, _CELLS // max(1, len(frame)))
    for start in range(0, len(objects), step):
        block = objects[start : start + step]
        cells = frame.iloc[:, block].to_numpy(dtype=object)
        hit = pd.Series(cells.ravel()).isin([*missing, *numbers]).to_numpy().reshape(cells.shape)
        for j in np.flatnonzero(hit.any(axis=0)).tolist():
            changed[block[j]] = frame.iloc[:, block[j]].where(~hit[:, j])
    if not changed:
        return frame
    # Put together once: replacing one column of a wide table after the other takes ever longer.
    columns = [changed[at] if at in changed else frame.iloc[:, at] for at in range(frame.shape[1])]
    return pd.concat(columns, axis=1)


def _is_number(text: str) -> bool:
    try:
        return np.isfinite(float(text))
    except ValueError:
        return False


def decimal_commas(levels: Sequence[str]) -> bool:
    """Return whether most of the different values of a column are numbers with a decimal comma."""
    hits = sum(_COMMA.fullmatch(level.strip()) is not None for level in levels)
    return hits >= 3 and hits >= 0.8 * len(levels)


def feature_names(names: Any, origin: object, max_bytes: int = MAX_BYTES) -> np.ndarray:
    """Return names of features as an array of text, without control characters."""
    listed = [str(name) for name in names]
    check_names(listed, "feature name", str(origin))
    return text_array(listed, str(origin), max_bytes)


def is_numeric(frame: pd.DataFrame) -> bool:
    """Whether every column of a frame is numbers or truth values."""
    return all(_is_plain(dtype) for dtype in frame.dtypes)


def encode_view(frame: pd.DataFrame, view: str) -> Encoded:
    """Turn a DataFrame with text, categories or truth values into the matrix of a view.

    The rules are those of `encode_frame`, for a frame in memory: a cell of blanks is missing, and a
    column of type "category" may have any number of levels.
    """
    columns = []
    for at, dtype in enumerate(frame.dtypes):
        column = frame.iloc[:, at]
        if not _is_plain(dtype) and not isinstance(dtype, pd.CategoricalDtype):
            objects = column.astype(object)
            blank = objects.map(lambda v: isinstance(v, str) and not v.strip())
            column = objects.where(~blank.astype(bool), None) if blank.any() else column
        columns.append(column)
    whole = pd.concat(columns, axis=1) if columns else frame
    return encode_frame(
        whole, origin=f"View {view!r}", categorical=[], max_levels=MAX_LEVELS, from_file=False
    )


def encode_frame(
    frame: pd.DataFrame,
    *,
    origin: str,
    categorical: Sequence[str],
    max_levels: int,
    deadline: Deadline | None = None,
    max_bytes: int = MAX_BYTES,
    from_file: bool = True,
    needed: Sequence[str] | None = None,
) -> Encoded:
    """Turn a table into one matrix of numbers, columns in their order."""
    plain = np.array([_is_plain(dtype) for dtype in frame.dtypes], dtype=bool)
    plain &= ~frame.columns.isin(list(categorical))
    if plain.all():
        return Encoded(_numbers(frame), feature_names(frame.columns, origin), None)
    # Only columns of text, dates and categories are looked at one by one.
    columns = [str(name) for name in frame.columns]
    forced = set(categorical)
    pieces: dict[int, _Column] = {}
    widths = np.ones(frame.shape[1], dtype=int)
    total = frame.shape[1]
    for at in np.flatnonzero(~plain).tolist():
        if deadline is not None:
            deadline.check()
        name = columns[at]
        try:
            pieces[at] = _encode(
                frame.iloc[:, at], name, origin, name in forced, max_levels, from_file
            )
        except InputError:
            if needed is None or name in needed:
                raise
            pieces[at] = _Column(np.full(len(frame), np.nan))
        widths[at] = len(pieces[at].levels or [""])
        total += int(widths[at]) - 1
        # Each level is a column of the matrix, of which a model copies parts; nothing of it is
        # allocated before this.
        advice = f"Column {name!r} has {widths[at]:,} levels; leave out columns with many levels."
        check_size(origin, 2.0 * total * len(frame) * 8, max_bytes, advice)
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]])
    matrix = np.empty((len(frame), int(widths.sum())))
    matrix[:, starts[plain]] = _numbers(frame.loc[:, plain])
    column = np.repeat(np.asarray(columns, dtype=object), widths)
    level = np.full(len(column), None, dtype=object)
    names = column.copy()
    for at, piece in pieces.items():
        span = slice(starts[at], starts[at] + widths[at])
        piece.write(matrix[:, span])
        if piece.levels is not None:
            level[span] = piece.levels
            names[span] = [f"{columns[at]}={one}" for one in piece.levels]
    text = feature_names(names, origin, max_bytes)
    if len(set(names)) != len(names):
        twice = pd.Index(text)[pd.Index(text).duplicated()].unique().tolist()
        raise InputError(
            f"{origin}: encoding categories gives the name {some(twice)} to two columns. Rename "
            "one of the columns."
        )
    return Encoded(matrix, text, pd.DataFrame({"column": column, "level": level}))


def _is_plain(dtype: Any) -> bool:
    if isinstance(dtype, pd.CategoricalDtype) or types.is_complex_dtype(dtype):
        return False
    return bool(types.is_numeric_dtype(dtype) or types.is_bool_dtype(dtype))


def _numbers(frame: pd.DataFrame) -> np.ndarray:
    if frame.shape[1] == 0:
        return np.empty((len(frame), 0))
    if all(dtype == np.float32 for dtype in frame.dtypes):
        return frame.to_numpy()
    return frame.to_numpy(dtype=np.float64, na_value=np.nan)


@dataclass(frozen=True)
class _Cells:
    """The known cells of a column: `values` that occur, and for each row which of them (or -1).

    Texts are listed once each, so that every question is asked of a few values and not of millions
    of cells. Other objects stand for themselves: 1, 1.0 and True would otherwise be taken for one.
    """

    values: np.ndarray
    codes: np.ndarray

    @classmethod
    def of(cls, column: pd.Series) -> _Cells:
        objects = column.astype(object)
        if types.infer_dtype(objects, skipna=True) == "string":
            codes, values = pd.factorize(objects)
            return cls(np.asarray(values, dtype=object), codes)
        known = objects.notna().to_numpy()
        codes = np.where(known, np.cumsum(known) - 1, -1)
        return cls(objects.to_numpy(dtype=object)[known], codes)

    def count(self, hits: np.ndarray) -> int:
        """Return how many cells have one of the values marked in `hits`."""
        times = np.bincount(self.codes[self.codes >= 0], minlength=len(self.values))
        return int(times[hits].sum())

    def spread(self, numbers: np.ndarray) -> np.ndarray:
        """Return a number for every row from one for every value; NaN where a cell is missing."""
        return np.append(numbers, np.nan)[self.codes]


@dataclass(frozen=True)
class _Column:
    """A column as one number per row: its value, or which of its `levels` it has; NaN: missing."""

    numbers: np.ndarray
    levels: list[str] | None = None

    def write(self, out: np.ndarray) -> None:
        """Write the column, or one column of 0 and 1 for each level, into part of a matrix."""
        if self.levels is None:
            out[:, 0] = self.numbers
            return
        known = np.flatnonzero(~np.isnan(self.numbers))
        out[...] = np.nan
        out[known] = 0.0
        out[known, self.numbers[known].astype(np.intp)] = 1.0


def _encode(
    column: pd.Series, name: str, origin: str, forced: bool, max_levels: int, from_file: bool
) -> _Column:
    """Return one column as numbers, with its levels if it is a category."""
    if types.is_complex_dtype(column.dtype):
        raise InputError(
            f"{origin}: column {name!r} holds complex numbers; split it into real and imaginary "
            "columns."
        )
    cells = _Cells.of(column)
    if not forced:
        _refuse_dates(column, cells, name, origin, from_file)
    if not forced and not isinstance(column.dtype, pd.CategoricalDtype):
        numbers = _booleans(cells)
        if numbers is None:
            numbers = _numbers_in_text(cells, name, origin, from_file)
        if numbers is not None:
            return _Column(cells.spread(numbers))
    texts = np.array([level_text(value) for value in cells.values], dtype=object)
    # A cell of blanks is missing.
    levels = sorted(set(texts) - {""})
    declared = not from_file and isinstance(column.dtype, pd.CategoricalDtype)
    if len(levels) > max_levels and not declared:
        if decimal_commas([level for level in levels if not _is_number(level)]):
            what = _comma_advice(name, from_file)
        elif from_file:
            what = (
                f"above max_levels={max_levels}. Leave it out with exclude=[{name!r}] if it is an "
                "identifier or free text; otherwise raise max_levels."
            )
        else:
            what = (
                f"more than {max_levels}. Drop it if it is an identifier or free text; otherwise "
                f"make it a category, frame[{name!r}].astype('category')."
            )
        raise InputError(
            f"{origin}: column {name!r} is text with {len(levels)} different values "
            f"({some(levels, 3)}), {what}"
        )
    if not levels:
        return _Column(np.full(len(column), np.nan))
    place = {"": np.nan} | {level: float(at) for at, level in enumerate(levels)}
    return _Column(cells.spread(np.array([place[t] for t in texts], dtype=np.float64)), levels)


def level_text(value: Any) -> str:
    """Return the text of one category level; 1.0 and 1 are the same level."""
    # 1.0 and 1 are one level: missing cells turn whole numbers into floats.
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    return str(value).strip()


def _refuse_dates(
    column: pd.Series, cells: _Cells, name: str, origin: str, from_file: bool
) -> None:
    dtype = column.dtype
    dated = (
        types.is_datetime64_any_dtype(dtype)
        or types.is_timedelta64_dtype(dtype)
        or isinstance(dtype, pd.PeriodDtype)
    )
    if not dated:
        kinds = (dt.date, dt.time, dt.timedelta)
        stamps = np.array([isinstance(value, kinds) for value in cells.values], dtype=bool)
        if not stamps.any():
            stamps = np.array(
                [_DATE.match(str(value)[:_DATE_LENGTH]) is not None for value in cells.values],
                dtype=bool,
            )
        dated = cells.count(stamps) > 0.5 * (cells.codes >= 0).sum()
    if dated:
        raise InputError(
            f"{origin}: column {name!r} holds dates, which have no unit a model could use. Turn "
            "it into a number first (age in years, days since baseline), or "
            + (f"leave it out with exclude=[{name!r}]." if from_file else "drop it.")
        )


def _booleans(cells: _Cells) -> np.ndarray | None:
    # 1 == True, so numbers have to be told apart by type.
    true = [isinstance(v, (bool, np.bool_, str)) and v in _TRUE for v in cells.values]
    false = [isinstance(v, (bool, np.bool_, str)) and v in _FALSE for v in cells.values]
    if not true or not np.logical_or(true, false).all():
        return None
    return np.array(true, dtype=np.float64)


def _numbers_in_text(cells: _Cells, name: str, origin: str, from_file: bool) -> np.ndarray | None:
    """Return numbers kept as text; refuse a column that mixes both."""
    made = pd.to_numeric(pd.Series(cells.values, dtype=object), errors="coerce")
    numbers: np.ndarray = made.to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = np.isnan(numbers)
    if not wrong.any():
        return numbers
    n_wrong, n_known = cells.count(wrong), int((cells.codes >= 0).sum())
    if n_wrong < 0.5 * n_known:
        odd = sorted({str(value) for value in cells.values[wrong]})
        what = f"column {name!r} holds numbers except for {n_wrong} of {n_known} cells"
        if decimal_commas(odd):
            advice = f", {_comma_advice(name, from_file)}"
        elif from_file:
            advice = (
                ". Add these to missing=[...] if they stand for missing values, correct them, or "
                f"give categorical=[{name!r}] if the numbers are codes."
            )
        else:
            advice = (
                ". Replace them by NaN if they stand for missing values, correct them, or make "
                f"it a category, frame[{name!r}].astype('category'), if the numbers are codes."
            )
        raise InputError(f"{origin}: {what} ({some(odd)}){advice}")
    return None


def _comma_advice(name: str, from_file: bool) -> str:
    """Return what to do about a column of numbers with a decimal comma."""
    how = (
        'Give decimal="," for a text table; make the cells numbers in a workbook.'
        if from_file
        else f"Use frame[{name!r}].str.replace(',', '.').astype(float)."
    )
    return f"which are numbers with a decimal comma. {how}"
