"""Intervals of predicted probabilities.

The linear predictor of a person is Gaussian under the posterior, and P(t = 1) rises with it, so the
quantiles of the probability are those of the Gaussian, sent through the sigmoid. Probabilities of
several classes are shares, sigmoid(eta_c)/sum_k sigmoid(eta_k); each share depends on every linear
predictor, and its quantiles are read off evenly spread draws of all of them.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, ndtri

from baldur.inference.predictive import FLOOR, Task
from baldur.model.quadrature import logistic_rates
from baldur.types import Array

DRAWS = 4000
"""Draws of the linear predictors of several classes. Evenly spread, they put the ends of a 95 %
interval within some thousandths of where more draws would."""

CHUNK = 1 << 23
"""Numbers that the draws of some rows may take at a time."""


def tails(level: float) -> tuple[float, float]:
    """Return the probabilities below the two ends of an equal-tailed interval."""
    return (1.0 - level) / 2.0, (1.0 + level) / 2.0


def probability_interval(
    mean: Array, var: Array, task: Task, level: float, noise: Array | None = None
) -> tuple[Array, Array]:
    """Return the ends of an equal-tailed interval for P(t = 1) of every output, (n, C) each.

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
    return logistic_rates(eta, np.broadcast_to(noise, eta.shape)).rate


def _share_interval(
    mean: Array, std: Array, level: float, noise: Array | None
) -> tuple[Array, Array]:
    n, C = mean.shape
    z = _draws(C)
    ends = np.empty((2, n, C))
    step = max(1, CHUNK // (C * DRAWS))
    for start in range(0, n, step):
        rows = slice(start, start + step)
        eta = mean[rows] + std[rows] * z[:, None, :]  # (draws, rows, C)
        rate = np.maximum(_rate(eta, noise), FLOOR)
        ends[:, rows] = np.quantile(rate / rate.sum(axis=-1, keepdims=True), tails(level), axis=0)
    return ends[0], ends[1]


def _draws(C: int) -> Array:
    """Return standard scores (DRAWS, C), spread evenly and paired at random, for all people."""
    rng = np.random.default_rng(0)
    even = ndtri((np.arange(DRAWS) + 0.5) / DRAWS)
    return np.stack([rng.permutation(even) for _ in range(C)], axis=1)
