"""Checks of the arguments of MultiView and of labels: one clear error per kind of mistake."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from baldur.exceptions import InputError, InputWarning

MOST_COMPARED = 5_000
"""Names that a name is compared with, one after the other: that takes a quarter of a second."""
MOST_HINTS = 3
"""Names that are looked up, so that the hint stays short."""


def some(items: Sequence[Any], limit: int = 5) -> str:
    """List the first few items for a message."""
    plain = (item.item() if isinstance(item, np.generic) else item for item in items[:limit])
    shown = ", ".join(map(repr, plain))
    return f"{shown}, ... ({len(items)} in all)" if len(items) > limit else shown


def counted(n: Any, singular: str, plural: str | None = None) -> str:
    """Return "1 sample" or "3 samples" for a message; the plural has an s by default."""
    return f"{int(n):,} {singular if int(n) == 1 else plural or singular + 's'}"


def rename_hint(given: Iterable[Any] | None, expected: Iterable[Any] | None) -> str:
    """Return " Did you mean 'Grade' by 'grade'?" for new names that are nearly those expected."""
    if given is None or expected is None:
        return ""
    new, known = pd.Index(list(given)), pd.Index(list(expected))
    lacking = known.difference(new, sort=False)
    names = {str(name).casefold(): str(name) for name in lacking[:MOST_COMPARED]}
    hints = []
    for name in new.difference(known, sort=False)[:MOST_HINTS]:
        near = get_close_matches(str(name).casefold(), list(names), 1)
        hints += [f"{names[near[0]]!r} by {str(name)!r}"] if near else []
    return f" Did you mean {', '.join(hints)}?" if hints else ""


def repeated(values: Iterable[Any]) -> list[Any]:
    """Return the values that occur more than once, each once."""
    index = pd.Index(values)
    return index[index.duplicated()].unique().tolist()


def check_unique(origin: str, what: str, values: Iterable[Any], advice: str) -> None:
    """Refuse values that occur more than once."""
    twice = repeated(values)
    if twice:
        raise InputError(
            f"{origin}: {what} must be unique, but {some(twice)} "
            f"{'occurs' if len(twice) == 1 else 'occur'} more than once. {advice}"
        )


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
    if twice := repeated(name for name, _ in pairs):
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
    count, listed, advice = 0, [], []
    for kind, is_kind, remedy in (
        ("dates", is_date, "Turn dates into numbers such as an age."),
        ("complex numbers", types.is_complex_dtype, "Split complex numbers into two columns."),
    ):
        wrong = frame.columns[[bool(is_kind(dtype)) for dtype in frame.dtypes]].tolist()
        if wrong:
            count += len(wrong)
            listed.append(f"{kind} in {some(wrong)}")
            advice.append(remedy)
    if count:
        raise InputError(
            f"{who}: expected columns of numbers, truth values or text, but {count} of "
            f"{frame.shape[1]} are not: {'; '.join(listed)}. {' '.join(advice)} Or leave these "
            "columns out."
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
    if twice := repeated(names):
        raise InputError(f"samples: the columns {some(twice)} occur more than once. Rename them.")
    ids = [str(name) for name in sample_ids]
    index = [str(name) for name in samples.index]
    # Names that only count the rows say nothing about their order.
    numbered = [str(i) for i in range(n)]
    if numbered not in (ids, index) and index != ids and sorted(index) == sorted(ids):
        raise InputError(
            "samples: its index has the sample ids in another order than the views. Reorder "
            "it with samples.loc[sample_ids]."
        )
    return samples.reset_index(drop=True).set_axis(names, axis=1)


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
    check_unique(origin, "sample identifiers", ids, "Drop or rename the repeated samples.")
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


# -- labels, groups and weights: one entry per sample -------------------------------------------


def without_mask(y: Any) -> Any:
    """Return targets as a plain array; refuse masked arrays with masked values."""
    if not np.ma.isMaskedArray(y):
        return y
    if np.ma.getmaskarray(y).any():
        raise InputError(
            "y: every sample needs a value, but some are masked. Leave these samples out."
        )
    return np.asarray(y)


def check_groups(given: Any, n: int) -> np.ndarray | None:
    """Return the number of each sample's group, counted from 0 in the sorted order of groups."""
    if given is None:
        return None
    groups = np.asarray(given)
    if groups.shape != (n,):
        raise InputError(
            f"groups must have {n} entries, one per sample, but its shape is {groups.shape}."
        )
    codes, _ = pd.factorize(groups, sort=True)
    if (codes < 0).any():
        raise InputError(
            f"groups: every sample needs a group, but {(codes < 0).sum()} of {n} have none. Give "
            "samples without a group a group of their own."
        )
    return np.asarray(codes)


def _refuse_bytes(y: Any) -> None:
    """Refuse labels that are bytes, for which scikit-learn has an error of another type."""
    cells = y if isinstance(y, (list, tuple)) else getattr(y, "values", y)
    kind = getattr(getattr(cells, "dtype", None), "kind", "")
    listed = kind == "O" or isinstance(cells, (list, tuple))
    if kind == "S" or (listed and any(isinstance(label, bytes) for label in cells)):
        raise InputError(
            "y: labels must be text or numbers, but they are bytes. Decode them, for example with "
            "np.char.decode(y)."
        )


def match_labels(y: Any, sample_ids: np.ndarray, X: Any) -> Any:
    """Return labels in the order of the samples, where both have names.

    A Series whose index holds the same names in another order is reordered; one with other names
    is refused, as its values would silently go to the wrong samples. Labels without names (arrays,
    a Series that only counts its rows) and data without names are taken row by row.

    Shapes: sample_ids (n_samples,).
    """
    _refuse_bytes(y)
    named = isinstance(X, pd.DataFrame) or hasattr(X, "sample_ids")
    if not isinstance(y, (pd.Series, pd.DataFrame)) or not named or len(y) != len(sample_ids):
        return y
    ids = pd.Index(sample_ids)
    only_counts = y.index.equals(pd.RangeIndex(len(y)))
    index = y.index if ids.dtype.kind in "iu" else y.index.astype(str)
    if index.equals(ids):
        return y
    same_names = not index.has_duplicates and ids.isin(index).all()
    if same_names and not only_counts:
        return y.iloc[index.get_indexer(ids)]
    ids_only_count = ids.dtype.kind in "iu" and ids.equals(pd.RangeIndex(len(ids)))
    if (only_counts and not same_names) or ids_only_count:
        return y
    at = int(np.flatnonzero(np.asarray(index != ids))[0])
    raise InputError(
        f"y: its index and the samples of X must have the same names, but at row {at} y has "
        f"{index[at]!r} and X has {ids[at]!r}. Give y.loc[...] in the order of X, or y.to_numpy() "
        "if the rows match already."
    )


def validate_labels(y: Any, n_samples: int) -> np.ndarray:
    """Check class labels, one per sample, and return them as a one-dimensional array."""
    if y is None:
        raise InputError(
            f"y: expected {n_samples} class labels, one per sample, but none came: fitting "
            "requires y to be passed, but the target y is None."
        )
    try:
        labels = np.asarray(y)
    except ValueError as error:
        raise InputError(
            f"y: expected one label per sample, but got rows of unequal length ({error})."
        ) from error
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InputError(f"y: expected a 1-D array of class labels, but got shape {labels.shape}.")
    if len(labels) != n_samples:
        raise InputError(
            f"y: expected {n_samples} labels, one per sample, but got {len(labels)}. Select "
            "the same rows in the data and in the labels."
        )
    lacking = np.flatnonzero(pd.isna(pd.Series(labels)).to_numpy())
    if lacking.size:
        raise InputError(
            f"y: every sample needs a label, but {lacking.size} of {n_samples} are missing "
            f"(first at row {lacking[0]}). Leave these samples out."
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InputError("y: labels must be finite, but some are infinite.")
    if labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
        raise InputError(
            f"y: Unknown label type: continuous. Expected classes, but got numbers with "
            f"fractions ({some(labels[labels != np.floor(labels)].tolist(), 3)}). Use a regressor, "
            "or turn the numbers into classes."
        )
    try:
        classes, counts = np.unique(labels, return_counts=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        raise InputError(
            f"y: labels must be of one kind, but got {' and '.join(kinds)}. Turn all of them "
            "into text or all into numbers."
        ) from None
    if len(classes) == 1:
        raise InputError(
            f"y: expected at least two classes, but got one class only "
            f"({some(classes.tolist())}, {counts[0]} samples). Check "
            "the column of labels or how the rows were split."
        )
    if counts.min() < 2:
        rare = classes[counts < 2]
        raise InputError(
            f"y: expected at least 2 samples in each class, but "
            f"{some(rare.tolist())} {'has' if len(rare) == 1 else 'have'} {counts.min()} (of "
            f"{len(classes)} classes, {n_samples} samples). Merge rare classes or leave "
            "them out; numbers with many different values belong to a regressor."
        )
    return labels


MOST_UNEVEN = 1e8
"""The largest weight may be this many times the smallest that counts. Beyond it only
a few samples count, and the others are lost in rounding."""

USUAL_MEAN = 1e3
"""A mean weight above this, or below its inverse, cannot be a number of repeated samples."""


def positive_weights(sample_weight: Any, n: int, name: str = "sample_weight") -> np.ndarray:
    """Return checked sample weights, ones by default.

    A weight of 2 is the sample twice, a weight of 0 leaves it out. Weights whose mean cannot be
    a number of repeats (see `USUAL_MEAN`) are relative: they are divided by their mean, and a
    warning says so.

    Shapes: sample_weight (n,); returns (n,).
    """
    if sample_weight is None:
        return np.ones(n)
    try:
        given = np.asarray(sample_weight)
        if given.dtype.kind == "c":
            raise TypeError
        weight = given.astype(float)
    except (TypeError, ValueError):
        raise InputError(
            f"{name} must be numbers, one per sample, but got values that cannot be read as such."
        ) from None
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise InputError(
            f"{name} must have {n} entries, one per sample, but its shape is {weight.shape}."
        )
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise InputError(f"{name} must be finite and not negative.")
    largest = weight.max(initial=0.0)
    if largest == 0:
        raise InputError(f"{name} is zero for every sample; some must count.")
    share = weight / largest  # whose sums cannot overflow
    smallest = share[weight > 0].min()
    if smallest * MOST_UNEVEN < 1.0:
        raise InputError(
            f"{name}: the largest may be {MOST_UNEVEN:,.0f} times the smallest that counts, but "
            f"they are {largest:.3g} and {weight[weight > 0].min():.3g}. Give 0 to samples that "
            "are to be left out, and cap the weights of the others."
        )
    mean_share = share[weight > 0].mean()
    mean = mean_share * largest
    if 1.0 / USUAL_MEAN <= mean <= USUAL_MEAN:
        return weight
    warnings.warn(
        f"{name} has mean {mean:.3g}, which cannot be a number of repeated samples. "
        "The weights are divided by it and count as relative weights; give weights with mean 1 to "
        "avoid this warning.",
        InputWarning,
        stacklevel=4,  # the caller of Preparation.fit
    )
    return share / mean_share
