"""What regressors share: outcomes to standardised outputs going in, and back coming out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import RegressorMixin

from baldur.estimators.base import BaldurBase, Training, check_answer, check_level
from baldur.exceptions import InputError
from baldur.inference.intervals import tails
from baldur.preparation.moments import LARGEST_SPREAD, SMALLEST_SPREAD, same_but_rounding
from baldur.views.opening import open_views
from baldur.views.validate import check_groups, match_labels, without_mask
from baldur.views.weights import positive_weights

Array = NDArray[np.float64]


class RegressionBase(RegressorMixin, BaldurBase):
    """One or several continuous targets; subclasses fit the posterior and set `noise_std_`."""

    noise_std_: Array

    def _open_training(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> Training:
        """Return the samples that count and their outputs, each with mean 0 and s.d. 1."""
        mv = open_views(self, X, reset=True)
        y = match_labels(y, mv.sample_ids, X)
        weight = positive_weights(sample_weight, len(mv))
        groups = check_groups(groups, len(mv))
        Y = self._check_targets(y, len(mv))
        used = np.flatnonzero(weight)
        if len(used) < len(mv):
            mv, weight, Y = mv[used], weight[used], Y[used]
            groups = None if groups is None else groups[used]
        self._center, spread = _centre_and_spread(Y, weight)
        self._spread = np.where(spread > 0, spread, 1.0)
        T = np.where(spread > 0, (Y - self._center) / self._spread, 0.0)
        return Training(mv, T, weight, "regression", T, groups)

    def _check_targets(self, y: Any, n: int) -> Array:
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
        self._one_output = Y.ndim == 1
        Y = Y[:, None] if Y.ndim == 1 else Y
        if Y.ndim != 2 or len(Y) != n:
            raise InputError(
                f"y: expected {n} outcomes, one row per sample, but got shape {np.shape(y)}."
            )
        if not Y.shape[1]:
            raise InputError("y: expected at least one column of outcomes, but got none.")
        if not np.isfinite(Y).all():
            raise InputError("y: outcomes must be finite, but Input contains NaN or infinity.")
        return Y

    @property
    def output_units(self) -> tuple[Array, Array]:
        """Mean and standard deviation of each outcome, by which outputs are standardised."""
        return np.asarray(self._center), np.asarray(self._spread)

    def _output_scale(self) -> Array:
        return np.asarray(self._spread)[:, None]

    def _output_intercept(self, intercept: Array) -> Array:
        return intercept + self._center

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the predictive mean of each sample.

        Parameters
        ----------
        X : MultiView, or array or DataFrame of shape (n_samples, n_features)
            Samples with the views of ``fit``; whole views may be missing.
        return_std : bool, default=False
            Also return the standard deviation of a new observation, noise included.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        std : ndarray of the same shape
            Only with ``return_std=True``.
        """
        views = self._open_new(X)
        mean, var = self.predictor.moments(views)
        mean = mean * self._spread + self._center
        std = np.hypot(np.sqrt(var) * self._spread, self.noise_std_)
        check_answer(mean, "predictions")
        check_answer(std, "standard deviations")
        if self._one_output:
            mean, std = mean[:, 0], std[:, 0]
        return (mean, std) if return_std else mean

    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[Array, Array]:
        """Return an interval for a new observation of each sample, noise included.

        Parameters
        ----------
        X : MultiView, or array or DataFrame of shape (n_samples, n_features)
            Samples with the views of ``fit``; whole views may be missing.
        level : float, default=0.95
            Probability inside, as much above as below.

        Returns
        -------
        lower, upper : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        check_level(level)
        mean, var = self.predictor.moments(self._open_new(X))
        std = np.hypot(np.sqrt(var) * self._spread, self.noise_std_)
        centre = mean * self._spread + self._center
        low, high = (centre + ndtri(p) * std for p in tails(level))
        return (low[:, 0], high[:, 0]) if self._one_output else (low, high)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _centre_and_spread(Y: Array, weight: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation of each outcome; 0 for one that differs by rounding alone.

    Parameters
    ----------
    Y : ndarray of shape (n_samples, n_outputs)
    weight : ndarray of shape (n_samples,)
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
