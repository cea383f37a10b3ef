"""Weights of samples: how much each counts, and which weights are refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from baldur.exceptions import InputError, InputWarning

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
