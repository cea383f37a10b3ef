"""Tables with a feature per row and a sample per column, turned round."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.io.formats.files import check_ids
from baldur.safety.budget import Deadline, check_size
from baldur.views.validate import some

# A cell that is not a number: an object, pointers to it, and what is made of it.
_PER_CELL = 130
_ADVICE = "Give a larger max_bytes=, or save the table with one row per sample as .npy or Parquet."


def transposed(
    path: Path,
    frame: pd.DataFrame,
    features: Sequence[str],
    *,
    decimal: str,
    max_bytes: int,
    deadline: Deadline,
) -> pd.DataFrame:
    """Return a table with one row per sample, made of one with one column per sample.

    A feature whose known cells are all numbers becomes a column of numbers, whatever the other
    features are.
    """
    where = f"{path}, first cells of the rows, which are the feature names with transpose"
    names = pd.Index(
        check_ids(list(features), len(frame), where, max_bytes, deadline), dtype=object
    )
    if all(map(pd.api.types.is_numeric_dtype, frame.dtypes)):
        return pd.DataFrame(frame.to_numpy(dtype=float).T, columns=names)
    check_size(path, float(_PER_CELL) * frame.size, max_bytes, _ADVICE)
    _refuse_descriptions(path, frame, decimal)
    columns = {}
    for name, row in zip(names, frame.to_numpy(dtype=object), strict=True):
        deadline.check()
        columns[name] = _column(row, decimal)
    return pd.DataFrame(columns)


def _refuse_descriptions(path: Path, frame: pd.DataFrame, decimal: str) -> None:
    """Refuse columns of text beside columns of numbers: they describe features."""
    cells = frame.to_numpy(dtype=object)
    numbers = np.frompyfunc(lambda cell: np.isfinite(_value(cell, decimal)), 1, 1)(cells).astype(
        bool
    )
    of_numbers = numbers.mean(axis=1) > 0.5
    odd = ~numbers & ~pd.isna(cells) & of_numbers[:, None]
    texts = frame.columns[odd.mean(axis=0) > 0.5].astype(str).tolist()
    if texts:
        listed = ", ".join(f'"{name}"' for name in texts[:5])
        raise InputError(
            f"{path}: with transpose every column but the first is a sample, but {some(texts)} "
            f"{'holds' if len(texts) == 1 else 'hold'} text where the others hold numbers, such as "
            f"descriptions of the features. Leave such columns out with exclude = [{listed}]."
        )


def _value(cell: Any, decimal: str) -> float:
    """Return a cell as a number; NaN where it is missing or not a number."""
    if isinstance(cell, str):
        if "_" in cell or (decimal != "." and "." in cell):
            return np.nan
        cell = cell.replace(decimal, ".")
    try:
        return np.nan if cell is None or pd.isna(cell) else float(cell)
    except (TypeError, ValueError):
        return np.nan


def _column(cells: np.ndarray, decimal: str) -> pd.Series:
    """Return the cells of one feature: as numbers, or as they are written."""
    known = ~pd.isna(cells)
    if not any(isinstance(cell, bool) for cell in cells[known]):
        numbers = np.array([_value(cell, decimal) for cell in cells])
        if np.isfinite(numbers[known]).all():
            return pd.Series(numbers)
    # Numbers among the levels of a category: "2" and not "2.0".
    return pd.Series([f"{c:.15g}" if isinstance(c, float) and k else c
                      for c, k in zip(cells, known, strict=True)], dtype=object)  # fmt: skip
