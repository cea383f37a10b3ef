"""Tables as CSV that a spreadsheet can open without running anything, and back."""

from __future__ import annotations

import csv
from typing import Any

import pandas as pd

from baldur.core.escape import escape_cell, unescape_cell


def csv_text(frame: pd.DataFrame) -> str:
    """Return a table as CSV in which no cell and no heading is a formula."""
    made = _changed(frame, escape_cell)
    text = made.to_csv(index=False, lineterminator="\n")
    if "\r" in text:
        # pandas leaves a lone carriage return without quotes, and readers take it for a new row.
        text = made.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    return text


def unescape_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table read from a file of `csv_text` as it was before."""
    return _changed(frame, unescape_cell)


def _changed(frame: pd.DataFrame, change: Any) -> pd.DataFrame:
    headings = [change(name) for name in frame.columns]
    texts = [
        j
        for j, dtype in enumerate(frame.dtypes)
        if not (pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype))
    ]
    made = {}
    for j in texts:
        column = frame.iloc[:, j]
        if any(change(cell) is not cell for cell in column.unique()):
            made[j] = column.map(change)
    if made:
        columns = [made.get(j, frame.iloc[:, j]) for j in range(frame.shape[1])]
        frame = pd.concat(columns, axis=1)
    return frame.set_axis(headings, axis=1)
