"""Intervals of predictions: quantiles of a mixture of Gaussians, and of probabilities under it.

The linear predictor of a person is a mixture of Gaussians under the posterior, and P(t = 1) rises
with it, so the quantiles of the probability are those of the mixture, sent through the sigmoid.
Probabilities of several classes are shares, sigmoid(eta_c)/sum_k sigmoid(eta_k); each share depends
on every linear predictor, and its quantiles are read off evenly spread draws of all of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri

from baldur.inference.predictive import FLOOR, Moments, Task
from baldur.model.quadrature import logistic_rates

Array = NDArray[np.float64]

REACH = 9.0
"""Standard deviations around every mean that are searched; beyond lie 1e-19 of a Gaussian."""

HALVINGS = 60
"""Of the searched range: as many as floating-point numbers can tell apart."""

DRAWS = 4000
"""Of the linear predictors of several classes. Evenly spread, they put the ends of a 95 % interval
within some thousandths of where more draws would."""

CHUNK = 1 << 23
"""Numbers that the draws of some rows may take at a time."""


def tails(level: float) -> tuple[float, float]:
    """Return the probabilities below the two ends of an equal-tailed interval."""
    return (1.0 - level) / 2.0, (1.0 + level) / 2.0


def mixture_quantile(moments: Moments, weights: Array, probability: float) -> Array:
    """Return the quantile of every mixture, (n, C), by halving a range that holds it.

    Parameters
    ----------
    moments : list of J pairs of mean and variance, each (n, C)
    weights : (J, C), columns sum to one
    probability : float
        Of lying below.
    """
    mean = np.stack([m for m, _ in moments])
    std = np.sqrt(np.stack([v for _, v in moments]))
    w = weights[:, None, :]
    counts = np.broadcast_to(w > 0, mean.shape)
    low = np.where(counts, mean - REACH * std, np.inf).min(axis=0)
    high = np.where(counts, mean + REACH * std, -np.inf).max(axis=0)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        below = (w * ndtr((middle - mean) / std)).sum(axis=0) < probability
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(0.5 * (low + high))


def probability_interval(
    moments: Moments, weights: Array, task: Task, level: float, noise: Array | None = None
) -> tuple[Array, Array]:
    """Return the ends of an equal-tailed interval for P(t = 1) of every output, (n, C) each.

    Parameters
    ----------
    moments : list of J pairs of mean and variance of eta, each (n, C), noise included
    weights : (J, C)
    task : Task
    level : float
        Probability inside.
    noise : (C,) array, optional
        Variance of eta that is a row's own: a part of every probability, and no uncertainty of it.
    """
    if noise is not None:
        moments = [(mean, np.maximum(var - noise, 1e-12)) for mean, var in moments]
    if task == "multiclass":
        return _share_interval(moments, weights, level, noise)
    low, high = (_rate(mixture_quantile(moments, weights, p), noise) for p in tails(level))
    return low, high


def _rate(eta: Array, noise: Array | None) -> Array:
    """Return P(t = 1) given the linear predictor, which it rises with."""
    if noise is None:
        return np.asarray(expit(eta))
    return logistic_rates(eta, np.broadcast_to(noise, eta.shape)).rate


def _share_interval(
    moments: Moments, weights: Array, level: float, noise: Array | None
) -> tuple[Array, Array]:
    mean = np.stack([m for m, _ in moments])
    std = np.sqrt(np.stack([v for _, v in moments]))
    _, n, C = mean.shape
    which, z = _draws(weights)
    ends = np.empty((2, n, C))
    step = max(1, CHUNK // (C * DRAWS))
    for start in range(0, n, step):
        rows = slice(start, start + step)
        eta = np.stack(
            [mean[which[c], rows, c] + std[which[c], rows, c] * z[c][:, None] for c in range(C)],
            axis=-1,
        )
        rate = np.maximum(_rate(eta, noise), FLOOR)
        ends[:, rows] = np.quantile(rate / rate.sum(axis=-1, keepdims=True), tails(level), axis=0)
    return ends[0], ends[1]


def _draws(weights: Array) -> tuple[NDArray[np.intp], Array]:
    """Return the component and the standard score of every draw, each (C, DRAWS).

    Both are spread evenly over their distributions and paired at random, the same for all people.
    """
    rng = np.random.default_rng(0)
    even = (np.arange(DRAWS) + 0.5) / DRAWS
    which, z = [], []
    for w in weights.T:
        which.append(np.searchsorted(np.cumsum(w)[:-1], rng.permutation(even)))
        z.append(ndtri(rng.permutation(even)))
    return np.stack(which), np.stack(z)
