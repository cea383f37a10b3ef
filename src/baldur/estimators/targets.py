"""Targets: labels or outcomes to outputs of the model, and its moments back to predictions."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from baldur.core.types import Array
from baldur.exceptions import InputError
from baldur.inference.predictive import Task, probabilities, probability_interval, tails
from baldur.preparation.column_statistics import LARGEST_SPREAD, SMALLEST_SPREAD, same_but_rounding
from baldur.views.validate import some, validate_labels, without_mask

# -- classification ------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassificationTargets:
    """Binary, multi-class or multi-label targets as 0/1 outputs."""

    task: Task
    classes: NDArray[Any]  # (n_classes,); Labels, or output numbers for multi-label targets
    row_noise: Array | None = None  # (C,)

    @classmethod
    def encode(cls, labels: NDArray[Any]) -> tuple[ClassificationTargets, Array, NDArray[Any]]:
        """Return the targets, their outputs T (N, C) of 0 and 1, and the samples of each class."""
        if labels.ndim == 2:
            flat = np.flatnonzero((labels == labels[0]).all(axis=0))
            if flat.size:
                raise InputError(
                    f"y: every label needs both values, but column {flat[0]} is constant. Leave it "
                    "out."
                )
            count = np.asarray(labels).astype(bool).sum(axis=0)
            return cls("multilabel", np.arange(labels.shape[1])), labels.astype(float), count
        classes, codes, count = np.unique(labels, return_inverse=True, return_counts=True)
        if len(classes) < 2:
            raise InputError(
                "y: expected at least two classes among the samples with positive weight, but "
                "got one class."
            )
        if len(classes) == 2:
            return cls("binary", classes), codes[:, None].astype(float), count
        return cls("multiclass", classes), np.eye(len(classes))[codes], count

    @property
    def units(self) -> tuple[Array, Array]:
        """Centre 0 and spread 1 of the outputs, because log odds are not standardised."""
        return np.zeros(1), np.ones(1)

    def output_probabilities(self, mean: Array, var: Array) -> Array:
        """Return P(output = 1) from the moments of the linear predictor, all (n, C)."""
        return check_answer(probabilities(mean, var, self.task), "probabilities", (0.0, 1.0))

    def class_probabilities(self, p: Array) -> Array:
        """Return the probability of each class from those of the outputs."""
        return np.column_stack([1.0 - p[:, 0], p[:, 0]]) if self.task == "binary" else p

    def interval(self, mean: Array, var: Array, level: float) -> tuple[Array, Array]:
        """Return limits of the probability of each class."""
        low, high = probability_interval(mean, var, self.task, level, self.row_noise)
        if self.task == "binary":
            return np.hstack([1.0 - high, low]), np.hstack([1.0 - low, high])
        return low, high

    def decide(self, p: Array) -> NDArray[Any]:
        """Return the most probable label of each sample from the probabilities of the outputs."""
        if self.task == "multilabel":
            return (p > 0.5).astype(int)
        codes = (p[:, 0] > 0.5).astype(int) if self.task == "binary" else p.argmax(axis=1)
        return np.asarray(self.classes[codes])


def read_labels(y: Any, n: int) -> NDArray[Any]:
    """Return class labels (n,), or a 0/1 matrix of labels (n, n_labels); refuse anything else."""
    y = without_mask(y)
    try:
        given = None if y is None else np.asarray(y)
    except ValueError as error:
        raise InputError(
            f"y: expected one label, or one row of labels, per sample, but got rows of unequal "
            f"length ({error})."
        ) from error
    if given is not None and given.ndim == 2 and given.shape[1] != 1:
        labels = given
        if len(labels) != n:
            raise InputError(f"y: expected {n} rows of labels, but got {len(labels)}.")
        if not labels.shape[1]:
            raise InputError("y: expected at least one column of labels, but got none.")
        if type_of_target(labels) != "multilabel-indicator":
            raise InputError(
                "y: a 2-D target must be a 0/1 matrix, one column per label, but got "
                f"{type_of_target(labels)}. Give one column of class labels instead."
            )
        return labels
    if given is not None and given.ndim == 2:
        given = column_or_1d(given, warn=True)
    labels = validate_labels(given, n)
    check_classification_targets(labels)
    return labels


def class_weights(given: Any, classes: NDArray[Any], labels: NDArray[Any]) -> Array | None:
    """Return the weight of each sample's class, None without class weights."""
    if given is None:
        return None
    if labels.ndim == 2:
        raise InputError(
            "class_weight: a multi-label target has no classes of samples that could be "
            "weighted. Leave class_weight=None, and give sample_weight to fit if some samples "
            "are to count more."
        )
    try:
        found = compute_class_weight(given, classes=classes, y=labels)
        by_class = np.asarray(found, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(
            'class_weight must be None, "balanced" or a dictionary from class to number, for '
            f"the classes {some(classes.tolist())}, but got {given!r} "
            f"({error})."
        ) from error
    wrong = ~(np.isfinite(by_class) & (by_class > 0))
    if wrong.any():
        raise InputError(
            "class_weight must be positive and finite, but "
            f"{some(classes[wrong].tolist())} has {by_class[wrong][0]}. Leave the "
            "samples of a class out of fit if it is not to count."
        )
    return by_class[np.searchsorted(classes, labels)]


def log_odds(p: Array) -> Array:
    """Return ln(p/(1 - p)), finite for probabilities that were rounded to 0 or 1."""
    p = np.clip(p, 1e-15, 1.0 - 1e-15)
    return np.asarray(np.log(p) - np.log1p(-p))


# -- regression ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class RegressionTargets:
    """Continuous outcomes as outputs with mean 0 and standard deviation 1."""

    center: Array  # (C,)
    spread: Array
    one_output: bool  # Whether outcomes were given as one column without a second axis

    @classmethod
    def encode(cls, Y: Array, weight: Array) -> tuple[RegressionTargets, Array]:
        """Return the targets and their outputs T (N, C)."""
        one_output = Y.ndim == 1
        Y = Y[:, None] if one_output else Y
        center, found = _centre_and_spread(Y, weight)
        spread = np.where(found > 0, found, 1.0)
        T = np.where(found > 0, (Y - center) / spread, 0.0)
        return cls(center, spread, one_output), T

    @property
    def units(self) -> tuple[Array, Array]:
        """Centre and spread by which outputs are standardised, each (C,)."""
        return np.asarray(self.center), np.asarray(self.spread)

    def predictive(self, mean: Array, var: Array, noise_std: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of new observations in their own units, (n, C)."""
        std = np.hypot(np.sqrt(var) * self.spread, noise_std)
        return mean * self.spread + self.center, std

    def interval(
        self, mean: Array, var: Array, noise_std: Array, level: float
    ) -> tuple[Array, Array]:
        """Return limits of new observations in their own units."""
        center, std = self.predictive(mean, var, noise_std)
        low, high = (center + ndtri(p) * std for p in tails(level))
        return self.shaped(low), self.shaped(high)

    def shaped(self, values: Array) -> Array:
        """Return values (n, C) in the shape of the outcomes passed to fit."""
        return values[:, 0] if self.one_output else values


def read_outcomes(y: Any, n: int) -> Array:
    """Return finite outcomes, (n,) or (n, n_outputs); refuse anything else."""
    if y is None:
        raise InputError("BaldurRegressor requires y to be passed, but the target y is None.")
    y = without_mask(y)
    try:
        if np.asarray(y).dtype.kind in "cmM":  # complex numbers, durations and dates
            raise TypeError
        Y = np.asarray(y, dtype=float)
    except (TypeError, ValueError):
        raise InputError(
            "y: expected numbers, but got values that cannot be read as such. Use "
            "BaldurClassifier for class labels."
        ) from None
    if Y.ndim not in (1, 2) or len(Y) != n:
        raise InputError(
            f"y: expected {n} outcomes, one row per sample, but got shape {np.shape(y)}."
        )
    if Y.ndim == 2 and not Y.shape[1]:
        raise InputError("y: expected at least one column of outcomes, but got none.")
    if not np.isfinite(Y).all():
        raise InputError(
            "y: outcomes must be finite, but Input contains NaN or infinity. Leave these samples "
            "out, or correct their outcomes."
        )
    return Y


def _centre_and_spread(Y: Array, weight: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation of each outcome; 0 where values differ only by rounding.

    Shapes: Y (n_samples, n_outputs), weight (n_samples,).
    """
    low, high = Y.min(axis=0), Y.max(axis=0)
    flat = same_but_rounding(low, high)
    middle = low / 2 + high / 2  # taken off first, so that a large offset costs no digits
    with np.errstate(over="ignore", invalid="ignore"):
        centre = middle + np.average(Y - middle, axis=0, weights=weight)
        spread = np.sqrt(np.average((Y - centre) ** 2, axis=0, weights=weight))
    usable = (spread >= SMALLEST_SPREAD) & (spread <= LARGEST_SPREAD)
    odd = np.flatnonzero(~usable & ~flat)
    if odd.size:
        raise InputError(
            f"y: the standard deviation of an outcome must be between {SMALLEST_SPREAD:g} and "
            f"{LARGEST_SPREAD:g}, but column {odd[0]} lies between {low[odd[0]]:.3g} and "
            f"{high[odd[0]]:.3g}. Give it in another unit."
        )
    return np.where(flat, middle, centre), np.where(flat, 0.0, spread)


# -- both ----------------------------------------------------------------------------------------


def check_level(level: Any) -> None:
    """Refuse a level of an interval that is not a probability."""
    if not (isinstance(level, Real) and 0.0 < float(level) < 1.0):
        raise InputError(f"level must be a probability between 0 and 1, but got {level!r}.")


def check_answer(values: Array, what: str, limits: tuple[float, float] | None = None) -> Array:
    """Return the predictions; refuse values that are not finite or outside their range."""
    low, high = limits or (-np.inf, np.inf)
    # Far above rounding and far below any difference that matters.
    if not np.isfinite(values).all() or (values < low - 1e-6).any() or (values > high + 1e-6).any():
        raise InputError(
            f"The {what} are not finite, or outside of their range. Look for absurd numbers in "
            "these samples; a model from somebody else may be damaged or forged."
        )
    return values if limits is None else np.clip(values, low, high)
