"""Tables (CSV, TSV, Parquet, Excel, .npy and .npz) as one view, or with every cell as text."""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.limits import MAX_BYTES, ReadLimits, no_bare_memory_error
from baldur.exceptions import InputError
from baldur.io.delimited import SEPARATORS, read_delimited
from baldur.io.excel import read_excel
from baldur.io.files import check_ids, file_ending, find_file, id_position, parsing
from baldur.io.numpy_files import read_npy, read_npz
from baldur.io.parquet import read_parquet
from baldur.views.container import MultiView, select_columns
from baldur.views.table_encoding import (
    MAX_LEVELS,
    encode_frame,
    feature_names,
    level_text,
    mark_missing,
)
from baldur.views.validate import some

MISSING_MARKERS = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A", ".")
"""Cells that always mean "missing"."""

_TEXT = (*SEPARATORS, *(f"{suffix}.gz" for suffix in SEPARATORS))
_TYPED = (".parquet", ".xlsx")
_ARRAYS = (".npz", ".npy")
# A cell that is not a number: an object, pointers to it, and what is made of it.
_PER_CELL = 130
# Cells of text cleaned between two looks at the time.
_CELLS = 1 << 16
_ADVICE = "Give a larger max_bytes=, or save the table with one row per sample as .npy or Parquet."


@no_bare_memory_error
def read_table(
    file: str | os.PathLike[str],
    *,
    name: str | None = None,
    id_column: str | int | None = 0,
    sample_ids: Sequence[Any] | str | os.PathLike[str] | None = None,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    categorical: Sequence[str] = (),
    missing: Sequence[str] = (),
    max_levels: int = MAX_LEVELS,
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    sheet: str | int = 0,
    array: str | None = None,
    transpose: bool = False,
    needed: Sequence[str] | None = None,
    max_bytes: int = MAX_BYTES,
) -> MultiView:
    r"""Read one table as a view.

    Numbers are taken as they are, in the units of the file. Booleans become 0 and 1. Text becomes
    one column of 0 and 1 per level, named ``column=level``; a missing category is missing in all
    of them. Columns of dates and of free text are refused with advice. Every level in the file
    has its column; put `CategoryEncoder` before the estimator to keep only the levels that occur
    in the training rows.

    Parameters
    ----------
    file : str or path-like
        ``.csv``, ``.tsv``, ``.tab`` or ``.txt`` (tab-separated), all of these also compressed
        with ``.gz``, ``.parquet``, ``.xlsx``, ``.npz`` or ``.npy``.
    name : str, optional
        Name of the view; the file's name without its ending by default.
    id_column : str, int or None, default=0
        Column of the sample ids, by name or number; the first by default, or the index pandas
        wrote into a Parquet file. Ids are kept as text, leading zeros included. None: no column
        holds ids. Not used for ``.npz`` and ``.npy``.
    sample_ids : sequence or path, optional
        Ids of the rows, for files without a column of ids: as a sequence, or as a table whose
        first column lists them in row order. `id_column` is then not used. An ``.npz`` may hold
        them as ``samples``.
    columns : sequence of str, optional
        Read only these columns.
    exclude : sequence of str
        Leave these columns out.
    categorical : sequence of str
        Columns that are categories although written as numbers (site 1, 2, 3).
    missing : sequence of str
        Cells that mean "missing" besides those of `MISSING_MARKERS`. Numbers such as ``"-9"`` may
        be among them.
    max_levels : int, default=50
        A text column with more levels is refused, because it is probably not a category.
    separator : str, optional
        Between the fields of a text table; by default a comma for ``.csv`` and a tabulator for
        the others.
    decimal : str, default="."
        Decimal mark of a text table.
    encoding : str, default="utf-8"
        Encoding of a text table.
    sheet : str or int, default=0
        Sheet of a workbook.
    array : str, optional
        Which array of an ``.npz`` is the matrix; by default ``X``, or the only 2-D one. Feature
        names are taken from ``features``.
    transpose : bool, default=False
        The table has a row per feature and a column per sample, as expression tables often have.
        Its header then holds the sample ids and `id_column` the feature names. `columns`,
        `exclude` and `categorical` name features; `exclude` also columns that are not samples,
        such as descriptions of the features. Not for ``.npz`` and ``.npy``, nor with `sample_ids`.
    needed : sequence of str, optional
        Columns that have to become numbers, all by default. Others that cannot, such as dates and
        free text, become columns of missing cells instead of an error.
    max_bytes : int, default=4 GB
        Memory that reading may take. A text table takes about 40 bytes for each number and 130
        for each cell of text; larger ones are read as ``.npy`` or Parquet.

    Returns
    -------
    MultiView
        One view. `feature_info` has the columns ``column`` and ``level`` (None for numbers) where
        the table has categories. Matrices above 64 MB stay on disk if the file is a ``.npy``, an
        ``.npz`` without compression, or a Parquet file of floats.

    Raises
    ------
    InputError
        Where the file is missing, damaged, of another kind, too large, or not read within 20
        seconds and one more for every 5 MB; nothing stored in a file is ever executed.
    MissingExtraError
        For Parquet and Excel without the extra ``tables``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from baldur.io import read_table
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name) / "clinic.csv"
    >>> _ = file.write_text("id,age,site\n007,61,Oslo\n008,NA,Rome\n009,70,Oslo\n")
    >>> X = read_table(file)
    >>> X
    MultiView: 3 samples, 3 features in 1 view
      clinic  3  float64
    >>> X.sample_ids, X.feature_names["clinic"]
    (array(['007', '008', '009'], dtype='<U3'),
     array(['age', 'site=Oslo', 'site=Rome'], dtype='<U9'))
    >>> folder.cleanup()
    """
    path = find_file(file, "a table", (*_TEXT, *_TYPED, *_ARRAYS))
    limits = ReadLimits(path, max_bytes)
    suffix = file_ending(path)
    view = path.name[: -len(suffix)] if name is None else name
    options = {"columns": columns, "exclude": exclude, "categorical": categorical}
    wanted = {key: _names(value, key) for key, value in options.items()}
    markers = [*MISSING_MARKERS, *(_names(missing, "missing") or [])]
    if transpose and (sample_ids is not None or suffix in _ARRAYS):
        raise InputError(
            f"{path}: transpose is for tables whose header holds the sample ids, not for "
            f"{'sample_ids' if sample_ids is not None else 'arrays'}. Save the table with one row "
            "per sample."
        )
    if suffix in _ARRAYS:
        return _from_arrays(path, view, sample_ids, array, wanted, limits)
    frame, ids_in, lazy = _read_frame(
        path,
        limits,
        id_column=None if sample_ids is not None else id_column,
        sheet=sheet,
        columns=None if transpose else wanted["columns"],
        exclude=() if transpose else wanted["exclude"] or (),
        separator=separator,
        decimal=decimal,
        encoding=encoding,
        missing=markers,
    )
    ids, frame = _split_ids(path, frame, ids_in, limits)
    if sample_ids is not None:
        ids = read_ids(sample_ids, len(frame), str(path), max_bytes)
    if lazy is not None and not transpose:
        names = feature_names(lazy.columns, path, max_bytes)
        return MultiView({view: lazy}, sample_ids=ids, feature_names={view: names})
    if suffix in _TYPED:
        frame, decimal = mark_missing(frame, markers), "."
    if transpose:
        frame = _with_lazy(frame, lazy, 16, limits)
        ids, frame = _transpose(path, frame, ids, wanted, decimal, limits)
    encoded = encode_frame(
        _choose(path, frame, wanted),
        view,
        origin=str(path),
        categorical=wanted["categorical"] or [],
        max_levels=max_levels,
        limits=limits,
        needed=_names(needed, "needed"),
    )
    return MultiView.from_views([encoded], ids)


def _read_frame(
    path: Path,
    limits: ReadLimits,
    *,
    id_column: str | int | None,
    sheet: str | int,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    **text: Any,
) -> tuple[pd.DataFrame, str | int | None, Any]:
    """Return a table in any format, its column of ids, and a matrix of columns left on disk."""
    if file_ending(path) == ".parquet":
        with parsing(path, "Parquet"):
            return read_parquet(path, id_column, columns, exclude, limits)
    if file_ending(path) == ".xlsx":
        return read_excel(path, sheet, limits), id_column, None
    return read_delimited(path, limits, id_column=id_column, **text), id_column, None


def _with_lazy(frame: pd.DataFrame, lazy: Any, per_cell: int, limits: ReadLimits) -> pd.DataFrame:
    """Return the table with the columns left on disk, whose cells take `per_cell` bytes each."""
    if lazy is None:
        return frame
    limits.check_size(float(per_cell) * lazy.shape[0] * lazy.shape[1], _ADVICE)
    cells = pd.DataFrame(lazy.read(None, slice(None)), columns=pd.Index(lazy.columns))
    return pd.concat([frame, cells], axis=1)


def read_ids(
    sample_ids: Sequence[Any] | str | os.PathLike[str] | None,
    n: int,
    origin: str,
    max_bytes: int = MAX_BYTES,
) -> np.ndarray | None:
    """Return ids given as a sequence, or as a table that lists them in its first column."""
    if sample_ids is None:
        return None
    if not isinstance(sample_ids, (str, os.PathLike)):
        return check_ids(list(sample_ids), n, f"{origin}: sample_ids")
    path = find_file(sample_ids, "a text table of sample ids", _TEXT)
    limits = ReadLimits(path, max_bytes)
    frame = read_delimited(path, limits, as_text=True)
    where = f"{path}, column {frame.columns[0]!r}"
    return check_ids(frame.iloc[:, 0].tolist(), n, where, limits)


def _names(value: Any, option: str) -> list[str] | None:
    """Return the names that an option lists as text, None where it is not given."""
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, (Sequence, np.ndarray, pd.Index)):
        raise InputError(f"{option} must be a list of names, but got {value!r}.")
    return [str(name) for name in value]


def _split_ids(
    path: Path, frame: pd.DataFrame, id_column: str | int | None, limits: ReadLimits
) -> tuple[np.ndarray | None, pd.DataFrame]:
    """Return the ids (None where no column holds them), and the table without their column."""
    names = [str(name) for name in frame.columns]
    at = id_position(path, id_column, names)
    if at is None:
        return None, frame
    ids = [value if pd.isna(value) else level_text(value) for value in frame.iloc[:, at]]
    where = f"{path}, column {names[at]!r} taken as sample ids"
    return check_ids(ids, len(frame), where, limits), frame.drop(columns=frame.columns[at])


def _choose(path: Path, frame: pd.DataFrame, wanted: dict[str, list[str] | None]) -> pd.DataFrame:
    """Return the columns chosen by the options columns and exclude; refuse unknown names."""
    names = set(frame.columns)
    for option, listed in wanted.items():
        unknown = [name for name in listed or [] if name not in names]
        # Parquet leaves excluded columns unread.
        if unknown and not (option == "exclude" and file_ending(path) == ".parquet"):
            raise InputError(
                f"{path}: {option} names {some(unknown)}, which the table does not have (apart "
                f"from the ids); its columns are {some(list(frame.columns))}."
            )
    if wanted["columns"] is not None:
        frame = frame[list(wanted["columns"])]
    frame = frame.drop(columns=wanted["exclude"] or [], errors="ignore")
    if frame.shape[1] == 0:
        raise InputError(
            f"{path}: no column is left besides the sample ids. If the first column is data, give "
            "id_column=None; otherwise check columns= and exclude=."
        )
    return frame


def _from_arrays(
    path: Path,
    view: str,
    sample_ids: Any,
    array: str | None,
    wanted: dict[str, list[str] | None],
    limits: ReadLimits,
) -> MultiView:
    """Return the matrix of an .npy or .npz file as a view."""
    if file_ending(path) == ".npy":
        X, features, samples = read_npy(path, limits), None, None
    else:
        X, features, samples = read_npz(path, array, limits)
    if wanted["categorical"]:
        raise InputError(
            f"{path}: categorical= is for tables with named columns of categories; save such a "
            "table as CSV, Excel or Parquet."
        )
    ids = read_ids(sample_ids, len(X), str(path), limits.max_bytes)
    if ids is None and samples is not None:
        ids = check_ids(samples.tolist(), len(X), f"{path}, array of sample ids", limits)
    names = None if features is None else {view: features}
    data = MultiView({view: X}, sample_ids=ids, feature_names=names)
    if wanted["columns"] is None and not wanted["exclude"]:
        return data
    if features is None:
        raise InputError(
            f"{path}: columns= and exclude= need feature names, but the file has none. Save them "
            "as the array 'features'."
        )
    # A table of one row, the number of each column, says which columns are chosen.
    numbers = pd.DataFrame(np.arange(X.shape[1])[None], columns=pd.Index(features))
    return select_columns(data, {view: _choose(path, numbers, wanted).to_numpy()[0]})


# -- tables with one column per sample -------------------------------------------------------------


def _transpose(
    path: Path,
    frame: pd.DataFrame,
    features: np.ndarray | None,
    wanted: dict[str, list[str] | None],
    decimal: str,
    limits: ReadLimits,
) -> tuple[np.ndarray, pd.DataFrame]:
    """Return the sample ids, which are the header, and the table with one row per sample.

    A feature whose known cells are all numbers becomes a column of numbers, whatever the other
    features are. `features` are the cells of the column of names.
    """
    if features is None:
        raise InputError(f"{path}: with transpose, id_column must be the column of feature names.")
    # Columns that are not samples; the other names are those of features.
    exclude = wanted["exclude"] or []
    wanted["exclude"] = [name for name in exclude if name not in frame.columns]
    frame = frame.drop(columns=exclude, errors="ignore")
    ids = check_ids(frame.columns.astype(str).tolist(), frame.shape[1], f"{path}, header", limits)
    where = f"{path}, first cells of the rows, which are the feature names with transpose"
    names = pd.Index(check_ids(features.tolist(), len(frame), where, limits), dtype=object)
    if all(map(pd.api.types.is_numeric_dtype, frame.dtypes)):
        return ids, pd.DataFrame(frame.to_numpy(dtype=float).T, columns=names)
    limits.check_size(float(_PER_CELL) * frame.size, _ADVICE)
    cells = frame.to_numpy(dtype=object)
    numbers = np.frompyfunc(lambda cell: _number(cell, decimal), 1, 1)(cells).astype(float)
    # Shapes: cells, numbers, known, finite (features, samples).
    known = ~pd.isna(cells)
    finite = np.isfinite(numbers)
    # Columns of text where most other cells of the row are numbers: they describe features.
    text_among_numbers = ~finite & known & (finite.mean(axis=1) > 0.5)[:, None]
    texts = frame.columns[text_among_numbers.mean(axis=0) > 0.5].astype(str).tolist()
    if texts:
        listed = ", ".join(f'"{name}"' for name in texts[:5])
        raise InputError(
            f"{path}: with transpose every column but the first is a sample, but {some(texts)} "
            f"{'holds' if len(texts) == 1 else 'hold'} text where the others hold numbers, such as "
            f"descriptions of the features. Leave such columns out with exclude = [{listed}]."
        )
    columns: dict[Any, np.ndarray] = {}
    for row, name in enumerate(names):
        limits.check_time()
        columns[name] = numbers[row]
        if not finite[row, known[row]].all():
            # Numbers among the levels of a category: "2" and not "2.0".
            written = [
                f"{cell:.15g}" if isinstance(cell, float) and not pd.isna(cell) else cell
                for cell in cells[row]
            ]
            columns[name] = np.array(written, dtype=object)
    return ids, pd.DataFrame(columns)


def _number(cell: Any, decimal: str) -> float:
    """Return a cell as a number; NaN where it is missing, a truth value or not a number."""
    if isinstance(cell, str):
        if "_" in cell or (decimal != "." and "." in cell):
            return np.nan
        cell = cell.replace(decimal, ".")
    try:
        return np.nan if isinstance(cell, bool) or pd.isna(cell) else float(cell)
    except (TypeError, ValueError):
        return np.nan


# -- tables about samples, with every cell as text -------------------------------------------------


@no_bare_memory_error
def read_text_table(
    file: str | os.PathLike[str],
    *,
    missing: Sequence[str] = (),
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    sheet: str | int = 0,
    max_bytes: int = MAX_BYTES,
) -> pd.DataFrame:
    """Read a table with every cell as text, missing cells empty, without deciding column types.

    Ids keep their zeros and categories their writing. Blanks around a cell do not count. Numbers
    are written with a point, whole ones without; dates as year-month-day; truth values as "True"
    and "False". The options are those of `read_table`; reading takes 130 bytes for each cell.
    """
    path = find_file(file, "a table", (*_TEXT, *_TYPED))
    if not isinstance(decimal, str) or len(decimal) != 1:
        raise InputError(f"{path}: decimal must be one character, but got {decimal!r}.")
    limits = ReadLimits(path, max_bytes)
    ids_in = 0 if file_ending(path) == ".parquet" else None
    frame, _, lazy = _read_frame(
        path,
        limits,
        id_column=ids_in,
        sheet=sheet,
        separator=separator,
        decimal=decimal,
        encoding=encoding,
        as_text=True,
    )
    if file_ending(path) in _TYPED:
        frame = _with_lazy(frame, lazy, 2 * _PER_CELL, limits).map(_written)
        decimal = "."
    markers = {*MISSING_MARKERS, *missing}
    number = re.compile(rf"([+-]?\d+){re.escape(decimal)}(\d+(?:[eE][+-]?\d+)?)")
    # Each different text is cleaned once; codes say which of them a cell holds.
    codes, texts = pd.factorize(frame.to_numpy(dtype=object).ravel())
    for start in range(0, len(texts), _CELLS):
        limits.check_time()
        for k, cell in enumerate(texts[start : start + _CELLS], start):
            text = cell.strip()
            hit = number.fullmatch(text)
            texts[k] = "" if text in markers else f"{hit[1]}.{hit[2]}" if hit else text
    names = [str(name).strip() for name in frame.columns]
    return pd.DataFrame(texts[codes].reshape(frame.shape), columns=pd.Index(names))


def _written(value: Any) -> str:
    """Return a typed cell as text; a missing one is empty."""
    if value is None or (not isinstance(value, str) and pd.isna(value)):
        return ""
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return value.date().isoformat()
    return value if isinstance(value, str) else level_text(value)
