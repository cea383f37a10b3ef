"""read_table: CSV, TSV, Parquet, Excel, .npy and .npz to one view."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.limits import MAX_BYTES, Deadline, check_size, no_bare_memory_error
from baldur.exceptions import InputError
from baldur.io.delimited import SEPARATORS, id_position, read_delimited
from baldur.io.excel import read_excel
from baldur.io.files import check_ids, find_file, suffix_of
from baldur.io.numpy_files import read_npy, read_npz
from baldur.io.parquet import read_parquet
from baldur.views.container import MultiView, select_columns
from baldur.views.encode import MAX_LEVELS, encode_frame, feature_names, mark_missing
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


MISSING_MARKERS = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A", ".")
"""Cells that always mean "missing"."""

_TEXT = (*SEPARATORS, *(f"{suffix}.gz" for suffix in SEPARATORS))
_SUFFIXES = (*_TEXT, ".parquet", ".xlsx", ".npz", ".npy")


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
    path = find_file(file, "a table", _SUFFIXES)
    deadline = Deadline(path)
    view = path.name[: -len(suffix_of(path))] if name is None else name
    options = {"columns": columns, "exclude": exclude, "categorical": categorical}
    wanted = {key: _names(value, key) for key, value in options.items()}
    markers = [*MISSING_MARKERS, *(_names(missing, "missing") or [])]
    if transpose and (sample_ids is not None or suffix_of(path) in (".npy", ".npz")):
        raise InputError(
            f"{path}: transpose is for tables whose header holds the sample ids, not for "
            f"{'sample_ids' if sample_ids is not None else 'arrays'}. Save the table with one row "
            "per sample."
        )
    if suffix_of(path) in (".npy", ".npz"):
        return _from_arrays(path, view, sample_ids, array, wanted, max_bytes)
    ids_in: str | int | None = None if sample_ids is not None else id_column
    text = {"separator": separator, "decimal": decimal, "encoding": encoding, "missing": markers}
    chosen = {} if transpose else wanted
    frame, ids_in, lazy = _read_frame(path, ids_in, chosen, text, sheet, max_bytes, deadline)
    ids, frame = _split_ids(path, frame, ids_in, max_bytes, deadline)
    if sample_ids is not None:
        ids = read_ids(sample_ids, len(frame), str(path), max_bytes)
    if lazy is not None and not transpose:
        names = feature_names(lazy.columns, path, max_bytes)
        return MultiView({view: lazy}, sample_ids=ids, feature_names={view: names})
    if suffix_of(path) in (".parquet", ".xlsx"):
        frame, decimal = mark_missing(frame, markers), "."
    if transpose:
        frame = _with_lazy(path, frame, lazy, max_bytes)
        ids, frame = _turned(path, frame, ids, wanted, decimal, max_bytes, deadline)
    frame = _choose(path, frame, wanted)
    made = encode_frame(
        frame,
        origin=str(path),
        categorical=wanted["categorical"] or [],
        max_levels=max_levels,
        deadline=deadline,
        max_bytes=max_bytes,
        needed=_names(needed, "needed"),
    )
    return MultiView(
        {view: made.matrix},
        sample_ids=ids,
        feature_names={view: made.names},
        feature_info=None if made.info is None else {view: made.info},
    )


def _read_frame(
    path: Path,
    ids_in: str | int | None,
    wanted: Mapping[str, list[str] | None],
    text: Mapping[str, Any],
    sheet: str | int,
    max_bytes: int,
    deadline: Deadline,
) -> tuple[pd.DataFrame, str | int | None, Any]:
    """Return the table, its column of ids, and a matrix that stays on disk."""
    limits: dict[str, Any] = {"max_bytes": max_bytes, "deadline": deadline}
    if suffix_of(path) == ".parquet":
        columns, exclude = wanted.get("columns"), wanted.get("exclude") or []
        return read_parquet(path, ids_in, columns, exclude, **limits)
    if suffix_of(path) == ".xlsx":
        return read_excel(path, sheet, **limits), ids_in, None
    return read_delimited(path, id_column=ids_in, **text, **limits), ids_in, None


def _with_lazy(path: Path, frame: pd.DataFrame, lazy: Any, max_bytes: int) -> pd.DataFrame:
    """Return the table with the columns that were left on disk."""
    if lazy is None:
        return frame
    n_bytes = 2.0 * lazy.dtype.itemsize * lazy.shape[0] * lazy.shape[1]
    check_size(path, n_bytes, max_bytes, "Save it with one row per sample.")
    cells = pd.DataFrame(lazy.read(None, slice(None)), columns=pd.Index(lazy.columns))
    return pd.concat([frame.reset_index(drop=True), cells], axis=1)


def _turned(
    path: Path,
    frame: pd.DataFrame,
    features: np.ndarray | None,
    wanted: dict[str, list[str] | None],
    decimal: str,
    max_bytes: int,
    deadline: Deadline,
) -> tuple[np.ndarray, pd.DataFrame]:
    """Return the sample ids of a table with a row per feature, and the table turned round."""
    if features is None:
        raise InputError(f"{path}: with transpose, id_column must be the column of feature names.")
    # Columns that are not samples; the other names are those of features.
    exclude = wanted["exclude"] or []
    wanted["exclude"] = [name for name in exclude if name not in frame.columns]
    frame = frame.drop(columns=[name for name in exclude if name in frame.columns])
    ids = check_ids([str(c) for c in frame.columns], frame.shape[1], f"{path}, header", max_bytes)
    turned = transposed(
        path, frame, features.tolist(), decimal=decimal, max_bytes=max_bytes, deadline=deadline
    )
    return ids, turned


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
        return check_ids(list(sample_ids), n, f"{origin}: sample_ids", max_bytes)
    path = find_file(sample_ids, "a text table of sample ids", _TEXT)
    frame = read_delimited(path, max_bytes=max_bytes, as_text=True)
    where = f"{path}, column {frame.columns[0]!r}"
    return check_ids(frame.iloc[:, 0].tolist(), n, where, max_bytes)


def _names(value: Any, option: str) -> list[str] | None:
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, (Sequence, np.ndarray, pd.Index)):
        raise InputError(f"{option} must be a list of names, but got {value!r}.")
    return [str(one) for one in value]


def _split_ids(
    path: Path, frame: pd.DataFrame, id_column: Any, max_bytes: int, deadline: Deadline
) -> tuple[np.ndarray | None, pd.DataFrame]:
    """Take the ids out of the table."""
    if id_column is None:
        return None, frame
    names = [str(one) for one in frame.columns]
    at = id_position(id_column, names)
    if at < 0:
        raise InputError(
            f"{path}: id_column must be a column name, a number from 0 to {len(names) - 1} or "
            f"None, but got {id_column!r}; the columns are {some(names)}."
        )
    given = [_id(value) for value in frame.iloc[:, at]]
    where = f"{path}, column {names[at]!r} taken as sample ids"
    ids = check_ids(given, len(frame), where, max_bytes, deadline)
    return ids, frame.drop(columns=frame.columns[at])


def _id(value: Any) -> Any:
    """Write whole numbers without a decimal point, which missing cells would add."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return value if value is None or pd.isna(value) else str(value)


def _choose(path: Path, frame: pd.DataFrame, wanted: dict[str, list[str] | None]) -> pd.DataFrame:
    names = set(frame.columns)
    for option, listed in wanted.items():
        unknown = [one for one in listed or [] if one not in names]
        # Parquet leaves excluded columns unread.
        if unknown and not (option == "exclude" and path.suffix.lower() == ".parquet"):
            raise InputError(
                f"{path}: {option} names {some(unknown)}, which the table does not have (apart "
                f"from the ids); its columns are {some(list(frame.columns))}."
            )
    if wanted["columns"] is not None:
        frame = frame[list(wanted["columns"])]
    frame = frame.drop(columns=[c for c in wanted["exclude"] or [] if c in frame.columns])
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
    max_bytes: int,
) -> MultiView:
    if suffix_of(path) == ".npy":
        X, features, samples = read_npy(path, max_bytes), None, None
    else:
        X, features, samples = read_npz(path, array, max_bytes)
    if wanted["categorical"]:
        raise InputError(
            f"{path}: categorical= is for tables with named columns of categories; save such a "
            "table as CSV, Excel or Parquet."
        )
    ids = read_ids(sample_ids, len(X), str(path), max_bytes)
    if ids is None and samples is not None:
        ids = check_ids(samples.tolist(), len(X), f"{path}, array of sample ids", max_bytes)
    names = None if features is None else {view: features}
    made = MultiView({view: X}, sample_ids=ids, feature_names=names)
    if wanted["columns"] is None and not wanted["exclude"]:
        return made
    if features is None:
        raise InputError(
            f"{path}: columns= and exclude= need feature names, but the file has none. Save them "
            "as the array 'features'."
        )
    frame = pd.DataFrame(np.arange(X.shape[1])[None], columns=pd.Index(features))
    return select_columns(made, {view: _choose(path, frame, wanted).to_numpy()[0]})
