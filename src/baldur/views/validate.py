"""Checks of the arguments of MultiView: one clear error per kind of mistake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from baldur.exceptions import InputError

MOST_COMPARED = 5_000
"""Names that a name is compared with, one after the other: that takes a quarter of a second."""
MOST_HINTS = 3
"""Names that are looked up, so that the hint stays short."""


def some(items: Sequence[Any], limit: int = 5) -> str:
    """List the first few items for a message."""
    shown = ", ".join(repr(_plain_scalar(item)) for item in items[:limit])
    return f"{shown}, ... ({len(items)} in all)" if len(items) > limit else shown


def counted(n: int, one: str, many: str | None = None) -> str:
    """Return "1 sample" or "3 samples" for a message; `many` is `one` with an s by default."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def rename_hint(given: Iterable[Any], expected: Iterable[Any]) -> str:
    """Return " Did you mean 'Grade' by 'grade'?" for names that are nearly the expected ones."""
    names = {str(name).casefold(): str(name) for name in list(expected)[:MOST_COMPARED]}
    hints = []
    for name in list(given)[:MOST_HINTS]:
        near = get_close_matches(str(name).casefold(), list(names), 1)
        hints += [f"{names[near[0]]!r} by {str(name)!r}"] if near else []
    return f" Did you mean {', '.join(hints)}?" if hints else ""


def _plain_scalar(item: Any) -> Any:
    return item.item() if isinstance(item, np.generic) else item


def check_view_names(views: Any) -> list[tuple[str, Any]]:
    """Return (name, matrix) pairs from a dictionary or a sequence of pairs."""
    if isinstance(views, Mapping):
        pairs = list(views.items())
    else:
        try:
            pairs = [(name, matrix) for name, matrix in views]
        except (TypeError, ValueError):
            raise InputError(
                "MultiView expects a dictionary from view name to matrix, but got "
                f"{type(views).__name__}. Write MultiView({{'name': matrix, ...}}), or "
                "MultiView.from_columns(X, views) to cut one matrix into views."
            ) from None
    if not pairs:
        raise InputError("MultiView expects at least one view, but got none.")
    wrong = [name for name, _ in pairs if not isinstance(name, str) or not name.strip()]
    if wrong:
        raise InputError(
            f"View names must be non-empty text, but got {some(wrong)}. Rename these views."
        )
    twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
    if twice:
        raise InputError(
            f"View names must be unique, but {some(twice)} occurs more than once. Rename or "
            "merge these views."
        )
    return pairs


def check_width(view: str, shape: tuple[int, int]) -> None:
    """Refuse a view without columns."""
    if shape[1] == 0:
        raise InputError(
            f"View {view!r}: found 0 feature(s) (shape={shape}) while a minimum of 1 is required. "
            "Leave the view out, or check the selection that emptied it."
        )


def is_date(dtype: Any) -> bool:
    """Return whether a column of this type holds dates, periods or differences of dates."""
    return (
        types.is_datetime64_any_dtype(dtype)
        or types.is_timedelta64_dtype(dtype)
        or isinstance(dtype, pd.PeriodDtype)
    )


def check_columns(frame: pd.DataFrame, who: str) -> None:
    """Refuse columns that cannot become numbers, all of them in one error."""
    kinds: dict[str, list[Any]] = {"dates": [], "complex numbers": []}
    for column, dtype in zip(frame.columns, frame.dtypes, strict=True):
        if types.is_complex_dtype(dtype):
            kinds["complex numbers"].append(column)
        elif is_date(dtype):
            kinds["dates"].append(column)
    wrong = {kind: columns for kind, columns in kinds.items() if columns}
    if wrong:
        advice = {
            "dates": "Turn dates into numbers such as an age.",
            "complex numbers": "Split complex numbers into two columns.",
        }
        listed = "; ".join(f"{kind} in {some(columns)}" for kind, columns in wrong.items())
        count = sum(map(len, wrong.values()))
        raise InputError(
            f"{who}: expected columns of numbers, truth values or text, but {count} of "
            f"{frame.shape[1]} are not: {listed}. "
            + " ".join(advice[kind] for kind in wrong)
            + " Or leave these columns out."
        )


def check_row_counts(counts: Mapping[str, int]) -> int:
    """Return the number of rows all views share."""
    if len(set(counts.values())) > 1:
        usual = Counter(counts.values()).most_common(1)[0][0]
        listed = ", ".join(f"{name!r} has {n}" for name, n in counts.items())
        odd = [name for name, n in counts.items() if n != usual]
        raise InputError(
            f"All views must have the same samples in the same order, but their row counts "
            f"differ: {listed}. Look at {some(odd)} first; align samples by identifier, and give "
            "a sample with a missing view a row of NaN or mark it in present={...}."
        )
    n = next(iter(counts.values()))
    if n == 0:
        raise InputError(f"Views must have at least one sample, but {some(list(counts))} have 0.")
    return n


def check_samples(samples: Any, sample_ids: np.ndarray) -> pd.DataFrame | None:
    """Return the table about the samples with rows numbered 0, 1, 2, ..., or raise an error."""
    if samples is None:
        return None
    if not isinstance(samples, pd.DataFrame):
        raise InputError(
            f"samples: expected a DataFrame with one row per sample, but got "
            f"{type(samples).__name__}. Name the columns, for example "
            "samples=pd.DataFrame({'age': age})."
        )
    n = len(sample_ids)
    if len(samples) != n:
        raise InputError(
            f"samples: expected one row per sample ({n}), but the table has {len(samples)}."
        )
    names = [str(name) for name in samples.columns]
    if len(set(names)) != len(names):
        twice = [name for name, count in Counter(names).items() if count > 1]
        raise InputError(f"samples: the columns {some(twice)} occur more than once. Rename them.")
    ids, numbered = [str(one) for one in sample_ids], [str(i) for i in range(n)]
    index = [str(one) for one in samples.index]
    if numbered not in (ids, index) and index != ids and sorted(index) == sorted(ids):
        raise InputError(
            "samples: its index has the sample ids in another order than the views. Reorder "
            "it with samples.loc[sample_ids]."
        )
    made = samples.reset_index(drop=True)
    made.columns = pd.Index(names)
    return made


def check_sample_ids(given: Any, n: int, frames: Mapping[str, pd.DataFrame]) -> np.ndarray:
    """Return sample ids as given, from the DataFrames' index, or as 0..n-1."""
    origin = "sample_ids"
    if given is None:
        named = {
            name: frame.index
            for name, frame in frames.items()
            if not (isinstance(frame.index, pd.RangeIndex) and frame.index.equals(pd.RangeIndex(n)))
        }
        if not named:
            return np.arange(n)
        origin, given = next(iter(named.items()))
        for name, index in named.items():
            if not index.equals(given):
                at = int(np.flatnonzero(np.asarray(index != given))[0])
                raise InputError(
                    f"Views {origin!r} and {name!r} must list the same samples in the same order, "
                    f"but at row {at} one has {given[at]!r} and the other {index[at]!r}. Reorder "
                    f"with frame.loc[ids], or pass sample_ids= to say that rows already match."
                )
        origin = f"index of view {origin!r}"
    ids = np.asarray(given)
    if ids.shape != (n,):
        raise InputError(
            f"{origin}: expected {n} identifiers, one per sample, but got an array of shape "
            f"{ids.shape}."
        )
    if ids.dtype.kind not in "iu":
        if pd.isna(pd.Series(given, copy=False)).any():
            raise InputError(f"{origin}: every sample needs an identifier, but some are missing.")
        ids = ids.astype(str)
    index = pd.Index(ids)
    if index.has_duplicates:
        twice = index[index.duplicated()].unique().tolist()
        raise InputError(
            f"{origin}: sample identifiers must be unique, but {some(twice)} "
            f"{'occurs' if len(twice) == 1 else 'occur'} more than once. Drop or rename the "
            "repeated samples."
        )
    return ids


def check_feature_names(view: str, given: Any, n_columns: int) -> np.ndarray | None:
    """Return feature names as an array of text, or None for the default names."""
    if given is None:
        return None
    names = np.asarray(given)
    if names.dtype.kind != "U":
        names = np.asarray([str(name) for name in given])
    if names.shape != (n_columns,):
        raise InputError(
            f"View {view!r}: expected {n_columns} feature names, one per column, but got "
            f"{names.size}."
        )
    return names


def check_feature_info(view: str, given: Any, n_columns: int) -> pd.DataFrame | None:
    """Return the table about the features after checking its length."""
    if given is None:
        return None
    if not isinstance(given, pd.DataFrame) or len(given) != n_columns:
        got = f"{len(given)} rows" if isinstance(given, pd.DataFrame) else type(given).__name__
        raise InputError(
            f"View {view!r}: feature_info must be a DataFrame with {n_columns} rows, one per "
            f"feature, but got {got}."
        )
    return given


def check_present(view: str, given: Any, n: int) -> np.ndarray | None:
    """Return declared presence as a mask."""
    if given is None:
        return None
    mask = np.asarray(given)
    if mask.shape != (n,) or mask.dtype.kind != "b":
        raise InputError(
            f"View {view!r}: present must be {n} booleans, one per sample, but got dtype "
            f"{mask.dtype} and shape {mask.shape}."
        )
    return mask
