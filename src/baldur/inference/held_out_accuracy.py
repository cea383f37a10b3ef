"""AUC and R2 of submodels on held-out rows, with standard errors.

The standard error is that of a mean of influence values over the rows, which for the AUC is the
method of DeLong et al. (1988), with row weights.
"""

from __future__ import annotations

import numpy as np

from baldur.inference.predictive import Task, shrinkage
from baldur.types import Array, IntArray

INTERVAL = 1.959964
"""Standard errors on either side of a 95 % interval."""


def accuracies(
    mean: Array, var: Array, row: IntArray, T: Array, weight: Array, task: Task
) -> tuple[Array, Array]:
    """Return the AUC (in regression R2) of V submodels and its standard error, each (V,).

    Predictions of one row in several repeats are averaged before; outputs are averaged after.

    Shapes: mean, var (V, R, C), row (R,), T, weight (N, C).
    """
    V, _, C = mean.shape
    # The order of probabilities; a linear predictor that is less certain gives less extreme ones.
    values = mean if task == "regression" else shrinkage(var) * mean
    share = weight / weight.sum()
    times = np.bincount(row, minlength=len(T))
    measure = r2 if task == "regression" else auc
    found, errors = np.empty(V), np.empty(V)
    for v in range(V):
        total, influence = 0.0, np.zeros(len(T))
        for c in range(C):
            own = np.bincount(row, values[v, :, c], minlength=len(T)) / times
            value, parts = measure(own, T[:, c], share)
            total, influence = total + value / C, influence + parts / C
        found[v], errors[v] = total, np.sqrt((share**2 * influence**2).sum())
    return found, errors


def auc(score: Array, t: Array, share: Array) -> tuple[float, Array]:
    """Return the area under the ROC curve of scores (N,), and the influence of each row.

    Rows count by `share` (N,), which sums to 1; ties count half. Without rows of both classes
    the area is 0.5.
    """
    ones, zeros = share * t, share * (1.0 - t)
    n_ones, n_zeros = float(ones.sum()), float(zeros.sum())
    if min(n_ones, n_zeros) <= 0.0:
        return 0.5, np.zeros(len(t))
    _, at = np.unique(score, return_inverse=True)
    zeros_below = _share_below(zeros, at) / n_zeros
    ones_above = 1.0 - _share_below(ones, at) / n_ones
    area = float(ones @ zeros_below) / n_ones
    influence = t * (zeros_below - area) / n_ones + (1.0 - t) * (ones_above - area) / n_zeros
    return area, influence


def _share_below(share: Array, at: IntArray) -> Array:
    """Return the share of rows with a smaller score than each row, ties counted half."""
    total = np.bincount(at, share)
    return np.asarray((np.cumsum(total) - 0.5 * total)[at])


def r2(prediction: Array, y: Array, share: Array) -> tuple[float, Array]:
    """Return the share of variance explained by predictions (N,), and each row's influence.

    Where the outcomes do not vary, 0.
    """
    if not np.ptp(y):
        return 0.0, np.zeros(len(y))
    away = (y - share @ y) ** 2
    left = (y - prediction) ** 2
    variance = float(share @ away)
    value = 1.0 - float(share @ left) / variance
    return value, np.asarray(((1.0 - value) * away - left) / variance)


def accuracy_interval(value: float, error: float, task: Task) -> tuple[float, float]:
    """Return the 95 % interval of an AUC, which is made on the logit scale, or of an R2."""
    if task == "regression":
        return value - INTERVAL * error, min(value + INTERVAL * error, 1.0)
    if not 0.0 < value < 1.0:
        return value, value
    logit, spread = np.log(value / (1.0 - value)), INTERVAL * error / (value * (1.0 - value))
    low, high = 1.0 / (1.0 + np.exp(-np.clip([logit - spread, logit + spread], -500.0, 500.0)))
    return float(low), float(high)
