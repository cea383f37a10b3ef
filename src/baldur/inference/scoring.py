"""From moments of the linear predictor to predictions, and what they lose on known outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from baldur.model.likelihood import class_probability

Array = NDArray[np.float64]
Task = Literal["binary", "multiclass", "multilabel", "regression"]

FLOOR = 1e-12


def probabilities(moments: Sequence[tuple[Array, Array]], task: Task) -> Array:
    """Return P(t = 1) of every output, (n, C), averaged over posteriors.

    Multi-class probabilities are normalised over the classes.
    """
    p = np.mean([class_probability(mean, var) for mean, var in moments], axis=0)
    if task == "multiclass":
        p = np.maximum(p, FLOOR)
        p = p / p.sum(axis=1, keepdims=True)
    return p


def mixture_moments(moments: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return mean and variance of an equal mixture of Gaussians."""
    means = np.array([mean for mean, _ in moments])
    variances = np.array([var for _, var in moments])
    return means.mean(axis=0), variances.mean(axis=0) + means.var(axis=0)


def pointwise_loss(
    moments: Sequence[tuple[Array, Array]], T: Array, task: Task, noise: Array | None = None
) -> Array:
    """Return minus the log predictive density of each row, (n,)."""
    if task == "regression":
        mean, var = mixture_moments(moments)
        var = var + (0.0 if noise is None else noise)
        return 0.5 * (np.log(2.0 * np.pi * var) + (T - mean) ** 2 / var).sum(axis=1)
    p = np.clip(probabilities(moments, task), FLOOR, 1.0 - FLOOR)
    if task == "multiclass":
        return -(T * np.log(p)).sum(axis=1)
    return -(T * np.log(p) + (1.0 - T) * np.log1p(-p)).sum(axis=1)
