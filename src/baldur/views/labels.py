"""Checks of labels and groups: one entry per sample, in the order of the samples."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from baldur.exceptions import InputError, InputWarning
from baldur.views.validate import some


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
    """Return the number of each sample's group, groups in their order."""
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
    if kind == "S" or (listed and any(isinstance(one, bytes) for one in cells)):
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
    counted = y.index.equals(pd.RangeIndex(len(y)))
    index = y.index if ids.dtype.kind in "iu" else y.index.astype(str)
    if index.equals(ids):
        return y
    same = not index.has_duplicates and ids.isin(index).all()
    if same and not counted:
        return y.iloc[index.get_indexer(ids)]
    in_order = ids.dtype.kind in "iu" and ids.equals(pd.RangeIndex(len(ids)))
    if (counted and not same) or in_order:
        return y
    at = int(np.flatnonzero(np.asarray(index != ids))[0])
    raise InputError(
        f"y: its index and the samples of X must have the same names, but at row {at} y has "
        f"{index[at]!r} and X has {ids[at]!r}. Give y.loc[...] in the order of X, or y.to_numpy() "
        "if the rows match already."
    )


def validate_labels(
    y: Any, n_samples: int, *, min_per_class: int = 2, name: str = "y"
) -> np.ndarray:
    """Check class labels and return them as a one-dimensional array.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        One label per sample.
    n_samples : int
        Number of samples the labels belong to.
    min_per_class : int, default=2
        Fewest samples a class may have.
    name : str, default="y"
        What to call the labels in messages.

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> from baldur.views import validate_labels
    >>> validate_labels(["control", "patient", "control", "patient"], 4)
    array(['control', 'patient', 'control', 'patient'], dtype='<U7')
    >>> validate_labels(["control", "patient"], 3)
    Traceback (most recent call last):
    ...
    baldur.exceptions.InputError: y: expected 3 labels, one per sample, but got 2...
    """
    if y is None:
        raise InputError(
            f"{name}: expected {n_samples} class labels, one per sample, but none came: fitting "
            "requires y to be passed, but the target y is None."
        )
    try:
        labels = np.asarray(y)
    except ValueError as error:
        raise InputError(
            f"{name}: expected one label per sample, but got rows of unequal length ({error})."
        ) from error
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InputError(
            f"{name}: expected a 1-D array of class labels, but got shape {labels.shape}."
        )
    if len(labels) != n_samples:
        raise InputError(
            f"{name}: expected {n_samples} labels, one per sample, but got {len(labels)}. Select "
            "the same rows in the data and in the labels."
        )
    lacking = np.flatnonzero(pd.isna(pd.Series(labels)).to_numpy())
    if lacking.size:
        raise InputError(
            f"{name}: every sample needs a label, but {lacking.size} of {n_samples} are missing "
            f"(first at row {lacking[0]}). Leave these samples out."
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InputError(f"{name}: labels must be finite, but some are infinite.")
    if labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
        raise InputError(
            f"{name}: Unknown label type: continuous. Expected classes, but got numbers with "
            f"fractions ({some(labels[labels != np.floor(labels)].tolist(), 3)}). Use a regressor, "
            "or turn the numbers into classes."
        )
    try:
        classes, counts = np.unique(labels, return_counts=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        raise InputError(
            f"{name}: labels must be of one kind, but got {' and '.join(kinds)}. Turn all of them "
            "into text or all into numbers."
        ) from None
    if len(classes) == 1:
        raise InputError(
            f"{name}: expected at least two classes, but got one class only "
            f"({some(classes.tolist())}, {counts[0]} samples). Check "
            "the column of labels or how the rows were split."
        )
    if counts.min() < min_per_class:
        rare = classes[counts < min_per_class]
        raise InputError(
            f"{name}: expected at least {min_per_class} samples in each class, but "
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
    typical = share[weight > 0].mean()
    if 1.0 / USUAL_MEAN <= typical * largest <= USUAL_MEAN:
        return weight
    warnings.warn(
        f"{name} has mean {typical * largest:.3g}, which cannot be a number of repeated samples. "
        "The weights are divided by it and count as relative weights; give weights with mean 1 to "
        "avoid this warning.",
        InputWarning,
        stacklevel=4,
    )
    return share / typical
