"""Columns of a table to numbers: booleans, categories one-hot, dates and free text refused."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from baldur.core.escape import check_names
from baldur.core.limits import MAX_BYTES, ReadLimits, check_size, text_array
from baldur.exceptions import InputError
from baldur.views.sources import ArraySource
from baldur.views.validate import is_date, repeated, some
from baldur.views.view import View

MAX_LEVELS = 50
"""A column of text with more levels is an identifier or free text."""

_DATE = re.compile(
    r"\s*(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})(?:[T ]|\s*$)"
)
_COMMA = re.compile(r"[+-]?\d{1,3}(?:[. ]?\d{3})*,\d+(?:[eE][+-]?\d+)?")
# A date is at the beginning; a long text is not searched.
_DATE_LENGTH = 40
_TRUTH = {"true": 1.0, "True": 1.0, "TRUE": 1.0, True: 1.0,
          "false": 0.0, "False": 0.0, "FALSE": 0.0, False: 0.0}  # fmt: skip


def mark_missing(frame: pd.DataFrame, missing: Sequence[str]) -> pd.DataFrame:
    """Replace markers by missing cells, in text and in numbers alike."""
    numbers = [float(marker) for marker in missing if _is_number(marker)]
    numeric = np.array([types.is_numeric_dtype(dtype) for dtype in frame.dtypes], dtype=bool)
    skipped = [types.is_bool_dtype(d) or types.is_datetime64_any_dtype(d) for d in frame.dtypes]
    columns = frame.columns
    for chosen, markers in ((numeric, numbers), (~numeric, [*missing, *numbers])):
        # All columns at once: one by one, a wide table takes ten times longer.
        part = frame[columns[chosen & ~np.array(skipped, dtype=bool)]]
        is_marker = part.isin(markers)
        if is_marker.to_numpy().any():
            others = frame.drop(columns=part.columns)
            frame = pd.concat([others, part.mask(is_marker)], axis=1)[columns]
    return frame


def _is_number(text: str) -> bool:
    try:
        return np.isfinite(float(text))
    except ValueError:
        return False


def decimal_commas(levels: Sequence[str]) -> bool:
    """Return whether most of the different values of a column are numbers with a decimal comma."""
    hits = sum(_COMMA.fullmatch(level.strip()) is not None for level in levels)
    return hits >= 3 and hits >= 0.8 * len(levels)


def feature_names(
    names: Any, origin: object, max_bytes: int = MAX_BYTES, what: str = "feature name"
) -> np.ndarray:
    """Return names of features as an array of text, without control characters."""
    listed = [str(name) for name in names]
    check_names(listed, what, str(origin))
    return text_array(listed, str(origin), max_bytes)


def is_numeric(frame: pd.DataFrame) -> bool:
    """Whether every column of a frame is numbers or truth values."""
    return all(_is_plain(dtype) for dtype in frame.dtypes)


def encode_view(frame: pd.DataFrame, name: str) -> View:
    """Turn a DataFrame with text, categories or truth values into a view.

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
    return encode_frame(whole, name, origin=f"View {name!r}", from_file=False)


def encode_frame(
    frame: pd.DataFrame,
    view: str,
    *,
    origin: str,
    categorical: Sequence[str] = (),
    max_levels: int = MAX_LEVELS,
    limits: ReadLimits | None = None,
    from_file: bool = True,
    needed: Sequence[str] | None = None,
) -> View:
    """Turn a table into a view of numbers, columns in their order.

    Its `feature_info` says from which column and level each feature came, if there are categories.
    Columns outside of `needed` (None: all are needed) become missing cells where they cannot be
    encoded. `from_file`: messages advise on options of readers.
    """
    max_bytes = MAX_BYTES if limits is None else limits.max_bytes
    forced = frame.columns.isin(list(categorical))
    plain = np.array([_is_plain(dtype) for dtype in frame.dtypes], dtype=bool) & ~forced
    if plain.all():
        return View(view, ArraySource(_numbers(frame)), feature_names(frame.columns, origin))
    # Only columns of text, dates and categories are looked at one by one.
    columns = [str(name) for name in frame.columns]
    # What `_encode` returns, by the position of the column.
    encoded: dict[int, tuple[np.ndarray, list[str] | None]] = {}
    widths = np.ones(frame.shape[1], dtype=int)  # features of each column
    for at in np.flatnonzero(~plain).tolist():
        if limits is not None:
            limits.check_time()
        name = columns[at]
        try:
            encoded[at] = _encode(
                frame.iloc[:, at], name, origin, bool(forced[at]), max_levels, from_file
            )
        except InputError:
            if needed is None or name in needed:
                raise
            encoded[at] = np.full(len(frame), np.nan), None
        widths[at] = len(encoded[at][1] or [""])
        # Each level is a column of the matrix, of which a model copies parts; nothing of it is
        # allocated before this.
        advice = f"Column {name!r} has {widths[at]:,} levels; leave out columns with many levels."
        check_size(origin, 2.0 * int(widths.sum()) * len(frame) * 8, max_bytes, advice)
    starts = np.cumsum(widths) - widths
    matrix = np.empty((len(frame), int(widths.sum())))
    matrix[:, starts[plain]] = _numbers(frame.loc[:, plain])
    # Of each feature: the column it came from, its level and its name.
    column = np.repeat(np.asarray(columns, dtype=object), widths)
    level = np.full(len(column), None, dtype=object)
    names = column.copy()
    for at, (numbers, levels) in encoded.items():
        part = slice(starts[at], starts[at] + widths[at])
        if levels is None:
            matrix[:, starts[at]] = numbers
            continue
        observed = ~np.isnan(numbers)[:, None]
        matrix[:, part] = np.where(observed, numbers[:, None] == np.arange(len(levels)), np.nan)
        level[part] = levels
        names[part] = [f"{columns[at]}={level_name}" for level_name in levels]
    text = feature_names(names, origin, max_bytes)
    if twice := repeated(text):
        raise InputError(
            f"{origin}: encoding categories gives the name {some(twice)} to two columns. Rename "
            "one of the columns."
        )
    info = pd.DataFrame({"column": column, "level": level})
    return View(view, ArraySource(matrix), text, info)


def encode_text(frame: pd.DataFrame, view: str, *, categorical: Sequence[str], origin: str) -> View:
    """Turn columns of text, missing cells empty, into a view of numbers, as `read_table` does.

    Columns that are not `categorical` have to be numbers. `origin` is the file, for messages.
    """
    columns = {}
    for name in frame.columns:
        cells = frame[name].astype(object).where(frame[name] != "", None)
        if name not in categorical:
            numbers = pd.to_numeric(cells, errors="coerce").astype(float)
            wrong = numbers.isna() & cells.notna()
            if wrong.any():
                raise InputError(
                    f"{origin}: column {name!r} has {cells[wrong].iloc[0]!r} for a number."
                )
            cells = numbers
        columns[name] = cells
    return encode_frame(pd.DataFrame(columns), view, origin=origin, categorical=categorical)


def _is_plain(dtype: Any) -> bool:
    """Return whether a column of this type is real numbers or truth values already."""
    if isinstance(dtype, pd.CategoricalDtype) or types.is_complex_dtype(dtype):
        return False
    return bool(types.is_numeric_dtype(dtype) or types.is_bool_dtype(dtype))


def _numbers(frame: pd.DataFrame) -> np.ndarray:
    """Return columns of numbers as one matrix, in float32 if all of them are, else in float64."""
    if frame.shape[1] == 0:
        return np.empty((len(frame), 0))
    if all(dtype == np.float32 for dtype in frame.dtypes):
        return frame.to_numpy()
    return frame.to_numpy(dtype=np.float64, na_value=np.nan)


def _distinct(column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return the known values of a column, and for each row which of them it has (-1: missing).

    Texts are listed once each, so that every question is asked of a few values and not of millions
    of cells. Other objects stand for themselves: 1, 1.0 and True would otherwise be taken for one.
    """
    objects = column.astype(object)
    if types.infer_dtype(objects, skipna=True) == "string":
        codes, values = pd.factorize(objects)
        return np.asarray(values, dtype=object), codes
    known = objects.notna().to_numpy()
    return objects.to_numpy(dtype=object)[known], np.where(known, np.cumsum(known) - 1, -1)


def _encode(
    column: pd.Series, name: str, origin: str, forced: bool, max_levels: int, from_file: bool
) -> tuple[np.ndarray, list[str] | None]:
    """Return a column as a number per row (NaN: missing), and its levels if it is a category.

    The numbers of a category are positions among its levels. A `forced` column is a category
    whatever it holds.
    """
    if types.is_complex_dtype(column.dtype):
        raise InputError(
            f"{origin}: column {name!r} holds complex numbers; split it into real and imaginary "
            "columns."
        )
    category = isinstance(column.dtype, pd.CategoricalDtype)
    values, codes = _distinct(column)
    counts = np.bincount(codes[codes >= 0], minlength=len(values))  # rows with each value
    numbers = None
    if not forced and _holds_dates(column.dtype, values, counts):
        raise InputError(
            f"{origin}: column {name!r} holds dates, which have no unit a model could use. Turn "
            "it into a number first (age in years, days since baseline), or "
            f"{_advice('dates', name, from_file)}"
        )
    if not forced and not category:
        numbers = _booleans(values)
        if numbers is None:
            numbers = _numbers_in_text(values, counts, name, origin, from_file)
    levels = None
    if numbers is None:
        texts = [level_text(value) for value in values]
        # A cell of blanks is missing.
        levels = sorted(set(texts) - {""})
        if len(levels) > max_levels and (from_file or not category):
            commas = decimal_commas([level for level in levels if not _is_number(level)])
            advice = _advice("commas" if commas else "levels", name, from_file, max_levels)
            raise InputError(
                f"{origin}: column {name!r} is text with {len(levels)} different values "
                f"({some(levels, 3)}){advice}"
            )
        position = {"": np.nan} | {level: float(at) for at, level in enumerate(levels)}
        numbers = np.array([position[text] for text in texts], dtype=np.float64)
    # The last is for missing cells, whose code is -1.
    return np.append(numbers, np.nan)[codes], levels or None


def level_text(value: Any) -> str:
    """Return the text of one category level; 1.0 and 1 are the same level."""
    # Missing cells turn whole numbers into floats.
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    return str(value).strip()


def _holds_dates(dtype: Any, values: np.ndarray, counts: np.ndarray) -> bool:
    """Return whether most cells are dates, as objects or text; counts are cells of each value."""
    if is_date(dtype):
        return True
    dates = np.array([isinstance(v, (dt.date, dt.time, dt.timedelta)) for v in values], dtype=bool)
    if not dates.any():
        dates = np.array([bool(_DATE.match(str(v)[:_DATE_LENGTH])) for v in values], dtype=bool)
    return bool(counts[dates].sum() > 0.5 * counts.sum())


def _booleans(values: np.ndarray) -> np.ndarray | None:
    """Return truth values (true, "false", ...) as 1 and 0; None if any value is not one."""
    # 1 == True, so numbers have to be told apart by type.
    numbers = [_TRUTH.get(v) if isinstance(v, (bool, np.bool_, str)) else None for v in values]
    return None if not numbers or None in numbers else np.array(numbers, dtype=np.float64)


def _numbers_in_text(
    values: np.ndarray, counts: np.ndarray, name: str, origin: str, from_file: bool
) -> np.ndarray | None:
    """Return values of text as numbers; None if half of the cells or more are not numbers.

    A column in which fewer are not is refused. `counts` are the numbers of cells of each value.
    """
    series = pd.to_numeric(pd.Series(values, dtype=object), errors="coerce")
    numbers: np.ndarray = series.to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = np.isnan(numbers)
    n_wrong, n_known = int(counts[wrong].sum()), int(counts.sum())
    if not n_wrong:
        return numbers
    if n_wrong >= 0.5 * n_known:
        return None
    odd = sorted({str(value) for value in values[wrong]})
    advice = _advice("commas" if decimal_commas(odd) else "mixed", name, from_file)
    raise InputError(
        f"{origin}: column {name!r} holds numbers except for {n_wrong} of {n_known} cells "
        f"({some(odd)}){advice}"
    )


_ADVICE = {
    "dates": ("drop it.", "leave it out with exclude=[{name!r}]."),
    "commas": (
        ", which are numbers with a decimal comma. Use "
        "frame[{name!r}].str.replace(',', '.').astype(float).",
        ', which are numbers with a decimal comma. Give decimal="," for a text table; make the '
        "cells numbers in a workbook.",
    ),
    "levels": (
        ", more than {most}. Drop it if it is an identifier or free text; otherwise make it a "
        "category, frame[{name!r}].astype('category').",
        ", above max_levels={most}. Leave it out with exclude=[{name!r}] if it is an identifier or "
        "free text; otherwise raise max_levels.",
    ),
    "mixed": (
        ". Replace them by NaN if they stand for missing values, correct them, or make it a "
        "category, frame[{name!r}].astype('category'), if the numbers are codes.",
        ". Add these to missing=[...] if they stand for missing values, correct them, or give "
        "categorical=[{name!r}] if the numbers are codes.",
    ),
}
"""What to do about a column of a DataFrame, and about one of a file, by what is wrong with it."""


def _advice(problem: str, name: str, from_file: bool, most: int = MAX_LEVELS) -> str:
    # Of each pair the second is for files: False is 0, True is 1.
    return _ADVICE[problem][from_file].format(name=name, most=most)
