"""Labels from a linear predictor: logistic for two classes, softmax for more, or continuous."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, softmax

from baldur.exceptions import InputError

# Enough Monte Carlo draws for class shares to the third digit; the seed is fixed because the
# intercept is a property of the truth, not of the draw of rows.
_DRAWS = 20_000


def class_probabilities(score: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn scores (n, 1) or (n, C) into class probabilities (n, 2) or (n, C)."""
    if score.shape[1] == 1:
        p = expit(score[:, 0])
        return np.column_stack([1.0 - p, p])
    return np.asarray(softmax(score, axis=1))


def draw_labels(
    score: NDArray[np.float64], noise: float, n_classes: int | None, rng: np.random.Generator
) -> NDArray[Any]:
    """Draw one label per row of `score` (n, 1) or (n, C), after adding noise of that s.d."""
    for_noise, for_labels = rng.spawn(2)
    if noise > 0:
        score = score + noise * for_noise.standard_normal(score.shape)
    if n_classes is None:
        return score[:, 0].copy()
    cumulative = np.cumsum(class_probabilities(score), axis=1)[:, :-1]
    u = for_labels.random(len(score))
    return (u[:, None] >= cumulative).sum(axis=1).astype(np.int64)


def calibrate_intercept(
    covariance: NDArray[np.float64],
    noise: float,
    n_classes: int | None,
    weights: Sequence[float] | None,
) -> NDArray[np.float64]:
    """Find the intercept at which classes have the expected shares `weights`.

    Shapes: covariance (C, C); returns (C,).
    """
    outputs = len(covariance)
    if weights is None:
        return np.zeros(outputs)
    if n_classes is None:
        raise InputError("weights (class shares) have no meaning with n_classes=None; leave it out")
    shares = np.asarray(weights, dtype=float)
    if shares.shape != (n_classes,) or not np.all(shares > 0) or not np.isclose(shares.sum(), 1):
        raise InputError(
            f"weights must be {n_classes} positive shares that sum to 1, got {list(weights)}"
        )
    if outputs == 1:
        nodes, mass = np.polynomial.hermite_e.hermegauss(64)
        mass = mass / mass.sum()
        sd = float(np.sqrt(covariance[0, 0] + noise**2))

        def excess(b: float) -> float:
            return float(mass @ expit(b + sd * nodes)) - shares[1]

        reach = 40.0 + 10.0 * sd
        return np.array([brentq(excess, -reach, reach)])

    rng = np.random.default_rng(0)
    root = np.linalg.cholesky(covariance + (noise**2 + 1e-12) * np.eye(outputs))
    draws = rng.standard_normal((_DRAWS, outputs)) @ root.T
    b = np.log(shares)
    for _ in range(500):
        step = np.log(shares) - np.log(softmax(draws + b, axis=1).mean(axis=0))
        b += step
        if np.abs(step).max() < 1e-6:
            break
    return b - b.mean()
