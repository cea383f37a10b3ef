"""From moments of the linear predictor to predictions, and their densities of known outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from baldur.model.quadrature import logistic_moments

Array = NDArray[np.float64]
Moments = Sequence[tuple[Array, Array]]
"""<eta> and Var eta, each (..., n, C), under every Gaussian of a mixture; for regression the
variance has the noise in it."""
Task = Literal["binary", "multiclass", "multilabel", "regression"]

FLOOR = 1e-12


def probabilities(moments: Moments, weights: Array, task: Task) -> Array:
    """Return P(t = 1) of every output, (..., n, C), from a mixture with weights (J, C).

    Multi-class probabilities are normalised over the classes.
    """
    p = sum(
        w * logistic_moments(mean, var).rate
        for w, (mean, var) in zip(weights, moments, strict=True)
    )
    if task == "multiclass":
        p = np.maximum(p, FLOOR)
        p = p / p.sum(axis=-1, keepdims=True)
    return np.asarray(p)


def mixture_moments(moments: Moments, weights: Array) -> tuple[Array, Array]:
    """Return mean and variance of a mixture of Gaussians with weights (J, C)."""
    means = np.array([mean for mean, _ in moments])
    variances = np.array([var for _, var in moments])
    w = weights.reshape(len(weights), *[1] * (means.ndim - 2), -1)
    mean = (w * means).sum(axis=0)
    return mean, (w * (variances + (means - mean) ** 2)).sum(axis=0)


def predictive_density(moments: Moments, weights: Array, T: Array, task: Task) -> Array:
    """Return the predictive density of each known outcome, (..., n, U).

    U is 1 where the outputs are one outcome (binary and multi-class), else the number of outputs.
    """
    if task == "regression":
        total = np.zeros_like(moments[0][0])
        for w, (mean, var) in zip(weights, moments, strict=True):
            total += w * np.exp(-0.5 * (T - mean) ** 2 / var) / np.sqrt(2.0 * np.pi * var)
        return np.maximum(total, 1e-300)
    p = np.clip(probabilities(moments, weights, task), FLOOR, 1.0 - FLOOR)
    if task == "multiclass":
        return np.asarray((T * p).sum(axis=-1, keepdims=True))
    return np.where(T > 0.5, p, 1.0 - p)
