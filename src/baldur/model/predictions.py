"""Predictions from the mean and variance of linear predictors: probabilities, intervals, scores.

Rows come before outputs: means and variances are (n, C).
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, ndtri

from baldur.core.types import Array
from baldur.model.likelihood import Task, logistic_rates

FLOOR = 1e-12
"""Least probability of a label; its logarithm stays finite."""


def probabilities(mean: Array, var: Array, task: Task) -> Array:
    """Return P(t = 1) of every output, (..., n, C), for linear predictors N(mean, var).

    Multi-class probabilities are normalised over the classes.
    """
    p, _, _ = logistic_rates(mean, var)
    if task == "multiclass":
        p = np.maximum(p, FLOOR)
        p = p / p.sum(axis=-1, keepdims=True)
    return np.asarray(p)


def integrate_left_out(mean: Array, var: Array, left: Array, task: Task) -> tuple[Array, Array]:
    """Return moments that take account of the variance `left` of eta that a submodel leaves out.

    E[sigmoid(eta + r)] is close to sigmoid(eta/(1 + pi v/8)^1/2) for r ~ N(0, v). So a model of few
    features has weights of its own, smaller than those beside the features it leaves out, and is
    not more confident than the ensemble. In regression the variance is added as noise.
    """
    if task == "regression":
        return mean, var + left
    shrink = shrinkage(left)
    return shrink * mean, shrink**2 * var


def shrinkage(var: Array) -> Array:
    """Return (1 + pi v/8)^-1/2, by which averaging over a variance v of the logit shrinks it."""
    return np.asarray(1.0 / np.sqrt(1.0 + np.pi / 8.0 * var))


def score_and_slopes(mean: Array, var: Array, T: Array, task: Task) -> tuple[Array, Array, Array]:
    """Return the log density of each row's outcomes and its derivatives by mean and variance.

    Shapes: mean, var (..., n, C), T (n, C); returns score (..., n), by_mean, by_var (..., n, C).
    """
    if task == "regression":
        away = T - mean
        value = -0.5 * (away**2 / var + np.log(2.0 * np.pi * var))
        return value.sum(axis=-1), away / var, 0.5 * (away**2 / var - 1.0) / var
    rate, slope, curve = logistic_rates(mean, var)
    p = np.clip(rate, FLOOR, 1.0 - FLOOR)
    if task == "multiclass":
        total = p.sum(axis=-1, keepdims=True)
        value = np.log((T * p).sum(axis=-1) / total[..., 0])
        by_rate = T / p - 1.0 / total
    else:
        value = np.where(T > 0.5, np.log(p), np.log1p(-p)).sum(axis=-1)
        by_rate = np.where(T > 0.5, 1.0 / p, -1.0 / (1.0 - p))
    # By the variance the slope is half the second derivative by the mean.
    return np.asarray(value), by_rate * slope, 0.5 * by_rate * curve


DRAWS = 4000
"""Draws of the linear predictors of several classes. Evenly spread, they put the ends of a 95 %
interval within some thousandths of where more draws would."""


DRAWN = 1 << 23
"""Numbers that the draws of some rows may take at a time."""


def tails(level: float) -> tuple[float, float]:
    """Return the probabilities below the two ends of an equal-tailed interval."""
    return (1.0 - level) / 2.0, (1.0 + level) / 2.0


def probability_interval(
    mean: Array, var: Array, task: Task, level: float, noise: Array | None = None
) -> tuple[Array, Array]:
    """Return the ends of an equal-tailed interval for P(t = 1) of every output, (n, C) each.

    `noise` is the part of `var` that is specific to each row. Probabilities are averages over it,
    and uncertain by the rest.

    Shapes: mean, var (n, C), noise (C,).
    """
    if noise is not None:
        var = np.maximum(var - noise, 1e-12)
    if task == "multiclass":
        return _share_interval(mean, np.sqrt(var), level, noise)
    low, high = (_rate(mean + ndtri(p) * np.sqrt(var), noise) for p in tails(level))
    return low, high


def _rate(eta: Array, noise: Array | None) -> Array:
    """Return P(t = 1) given the linear predictor, a monotonically increasing function."""
    if noise is None:
        return np.asarray(expit(eta))
    return logistic_rates(eta, np.broadcast_to(noise, eta.shape))[0]


def _share_interval(
    mean: Array, std: Array, level: float, noise: Array | None
) -> tuple[Array, Array]:
    """Return the ends of intervals for the probabilities of C classes, each (n, C), from draws."""
    n, C = mean.shape
    z = _draws(C)
    ends = np.empty((2, n, C))
    step = max(1, DRAWN // (C * DRAWS))
    for start in range(0, n, step):
        rows = slice(start, start + step)
        eta = mean[rows] + std[rows] * z[:, None, :]  # (draws, rows, C)
        rate = np.maximum(_rate(eta, noise), FLOOR)
        ends[:, rows] = np.quantile(rate / rate.sum(axis=-1, keepdims=True), tails(level), axis=0)
    return ends[0], ends[1]


def _draws(C: int) -> Array:
    """Return normal scores (DRAWS, C): even quantiles, paired at random, the same for all rows."""
    rng = np.random.default_rng(0)
    even = ndtri((np.arange(DRAWS) + 0.5) / DRAWS)
    return np.stack([rng.permutation(even) for _ in range(C)], axis=1)
