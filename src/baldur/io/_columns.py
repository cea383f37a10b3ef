"""Columns of a table to numbers: booleans, categories one-hot, dates and free text refused."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from baldur.exceptions import InputError
from baldur.views.validate import some

__all__ = ["Encoded", "encode_frame", "mark_missing"]

_DATE = r"^\s*(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})(?:[T ].*)?\s*$"
_TRUE = {"true", "True", "TRUE"}
_FALSE = {"false", "False", "FALSE"}


@dataclass(frozen=True)
class Encoded:
    """Cells as numbers, names, and from which column and level each came (None: no category)."""

    matrix: np.ndarray
    names: np.ndarray
    info: pd.DataFrame | None


def mark_missing(frame: pd.DataFrame, missing: Sequence[str]) -> pd.DataFrame:
    """Replace markers by missing cells, in text and in numbers alike."""
    numbers = [float(m) for m in missing if _is_number(m)]
    made = frame.copy(deep=False)
    for name, dtype in frame.dtypes.items():
        if types.is_bool_dtype(dtype) or types.is_datetime64_any_dtype(dtype):
            continue
        column = frame[name]
        if types.is_numeric_dtype(dtype):
            if not numbers:
                continue
            hits = column.isin(numbers)
        else:
            hits = column.astype(object).isin([*missing, *numbers])
        if hits.any():
            made[name] = column.where(~hits)
    return made


def _is_number(text: str) -> bool:
    try:
        return np.isfinite(float(text))
    except ValueError:
        return False


def encode_frame(
    frame: pd.DataFrame, *, origin: str, categorical: Sequence[str], max_levels: int
) -> Encoded:
    """Turn a table into one matrix of numbers, columns in their order.

    Parameters
    ----------
    frame : DataFrame
        Named columns, without the sample ids.
    origin : str
        File, for messages.
    categorical : sequence of str
        Columns that are categories although their cells are numbers.
    max_levels : int
        A column of text with more levels is refused.
    """
    plain = np.array([_is_plain(dtype) for dtype in frame.dtypes], dtype=bool)
    plain &= ~frame.columns.isin(list(categorical))
    if plain.all():
        return Encoded(_numbers(frame), np.asarray(frame.columns, dtype=str), None)
    # Only columns of text, dates and categories are looked at one by one.
    columns = [str(name) for name in frame.columns]
    pieces: dict[int, tuple[np.ndarray, list[str] | None]] = {}
    for at in np.flatnonzero(~plain).tolist():
        name = columns[at]
        pieces[at] = _encode(frame[name], name, origin, name in categorical, max_levels)
    widths = np.ones(frame.shape[1], dtype=int)
    for at, (cells, _) in pieces.items():
        widths[at] = cells.shape[1]
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]])
    matrix = np.empty((len(frame), int(widths.sum())))
    matrix[:, starts[plain]] = _numbers(frame.loc[:, plain])
    column = np.repeat(np.asarray(columns, dtype=object), widths)
    level = np.full(len(column), None, dtype=object)
    names = column.copy()
    for at, (cells, levels) in pieces.items():
        span = slice(starts[at], starts[at] + widths[at])
        matrix[:, span] = cells
        if levels is not None:
            level[span] = levels
            names[span] = [f"{columns[at]}={one}" for one in levels]
    text = np.asarray(names, dtype=str)
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


def _encode(
    column: pd.Series, name: str, origin: str, forced: bool, max_levels: int
) -> tuple[np.ndarray, list[str] | None]:
    """Return the cells of one column, and its levels if it is a category."""
    if not forced:
        _refuse_dates(column, name, origin)
    if types.is_complex_dtype(column.dtype):
        raise InputError(
            f"{origin}: column {name!r} holds complex numbers; split it into real and imaginary "
            "columns."
        )
    values = column.astype(object)
    known = values.notna().to_numpy()
    if not forced and not isinstance(column.dtype, pd.CategoricalDtype):
        cells = _booleans(values, known)
        if cells is None:
            cells = _numbers_in_text(values, known, name, origin)
        if cells is not None:
            return cells[:, None], None
    text = np.array([_level(v) if k else "" for v, k in zip(values, known, strict=True)], object)
    levels = sorted(set(text[known]))
    if len(levels) > max_levels:
        raise InputError(
            f"{origin}: column {name!r} is text with {len(levels)} different values "
            f"({some(levels, 3)}), above max_levels={max_levels}. Leave it out with "
            f"exclude=[{name!r}] if it is an identifier or free text; otherwise raise max_levels."
        )
    if not levels:
        return np.full((len(column), 1), np.nan), None
    codes = pd.Categorical(text, categories=levels).codes
    cells = (codes[:, None] == np.arange(len(levels))).astype(np.float64)
    cells[~known] = np.nan
    return cells, levels


def _level(value: Any) -> str:
    # 1.0 and 1 are one level: missing cells turn whole numbers into floats.
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    return str(value).strip()


def _refuse_dates(column: pd.Series, name: str, origin: str) -> None:
    dtype = column.dtype
    dated = (
        types.is_datetime64_any_dtype(dtype)
        or types.is_timedelta64_dtype(dtype)
        or isinstance(dtype, pd.PeriodDtype)
    )
    if not dated:
        cells = column.astype(object).dropna()
        kinds = (dt.date, dt.time, dt.timedelta)
        stamps = sum(isinstance(cell, kinds) for cell in cells)
        if not stamps and len(cells):
            stamps = int(cells.astype(str).str.match(_DATE).sum())
        dated = stamps > 0.5 * len(cells)
    if dated:
        raise InputError(
            f"{origin}: column {name!r} holds dates, which have no unit a model could use. Turn "
            "it into a number first (age in years, days since baseline), or leave it out with "
            f"exclude=[{name!r}]."
        )


def _booleans(values: pd.Series, known: np.ndarray) -> np.ndarray | None:
    seen = values[known]
    # 1 == True, so numbers have to be told apart by type.
    boolean = seen.map(lambda value: isinstance(value, (bool, np.bool_, str))).astype(bool)
    truth = seen.isin({*_TRUE, True}) & boolean
    untruth = seen.isin({*_FALSE, False}) & boolean
    if not known.any() or not (truth | untruth).all():
        return None
    cells = np.full(len(values), np.nan)
    cells[known] = truth.to_numpy(dtype=np.float64)
    return cells


def _numbers_in_text(
    values: pd.Series, known: np.ndarray, name: str, origin: str
) -> np.ndarray | None:
    """Return numbers kept as text; refuse a column that mixes both."""
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = known & np.isnan(numbers)
    if not wrong.any():
        return numbers
    n_wrong, n_known = int(wrong.sum()), int(known.sum())
    if n_wrong < 0.5 * n_known:
        odd = sorted({str(v) for v in values[wrong]})
        raise InputError(
            f"{origin}: column {name!r} holds numbers except for {n_wrong} of {n_known} cells "
            f"({some(odd)}). Add these to missing=[...] if they stand for missing values, correct "
            f"them, or give categorical=[{name!r}] if the numbers are codes."
        )
    return None
