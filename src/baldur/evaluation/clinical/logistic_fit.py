"""Logistic regression on one predictor: calibration intercept and slope, and Platt scaling.

Every line of weights (a resample) is fitted at once, so that no loop runs over resamples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

# Log odds of a probability of 0 or 1 are infinite. At this distance from them they are 18, where a
# single wrong certainty still ruins a slope, as it should.
PROBABILITY_EDGE = 1e-8

_STEPS = 50
# Newton's errors are squared in each step: after one of this size they are at rounding.
_TOLERANCE = 1e-7
# More log odds than any data can support: past this there is no finite answer.
_FAR = 1e6
# Newton's steps shorter than this (in log odds per standard deviation) do not overshoot.
_LONG_STEP = 1.0


def log_odds(proba: np.ndarray) -> np.ndarray:
    """Return log odds, with finite values for probabilities 0 and 1."""
    return logit(np.clip(proba, PROBABILITY_EDGE, 1 - PROBABILITY_EDGE))


def fit_line(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fit log odds of y = a + b x by maximum likelihood, once per line of weights.

    Shapes: x (n,), y (n,), weights (k, n); returns a, b (k,).
    """
    centre, spread = x.mean(), x.std()
    k = len(weights)
    a, b = np.full(k, np.nan), np.full(k, np.nan)
    if spread == 0 or not np.isfinite(spread):
        return a, b
    z = (x - centre) / spread
    low_up, high_up = _ends(z, (weights > 0) & (y > 0))
    low_down, high_down = _ends(z, (weights > 0) & (y < 1))
    differ = np.maximum(high_up, high_down) > np.minimum(low_up, low_down)
    defined = (weights @ y > 0) & (weights @ (1 - y) > 0) & differ
    # Without a finite slope every case lies at or above every control, or all lie below.
    rising, falling = low_up >= high_down, high_up <= low_down
    b[defined & falling], b[defined & rising] = -np.inf, np.inf
    mixed = defined & ~rising & ~falling
    if mixed.any():
        found = _newton(np.column_stack([np.ones_like(z), z]), np.zeros_like(z), y, weights[mixed])
        b[mixed] = found[:, 1] / spread
        a[mixed] = found[:, 0] - found[:, 1] * centre / spread
    return a, b


def fit_intercept(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Fit log odds of y = a + x by maximum likelihood, once per line of weights.

    Shapes: x, y (n,), weights (k, n); returns (k,).
    """
    found = np.full(len(weights), np.nan)
    both = (weights @ y > 0) & (weights @ (1 - y) > 0)
    if both.any():
        found[both] = _newton(np.ones((len(x), 1)), x, y, weights[both])[:, 0]
    return found


def _newton(
    design: np.ndarray, offset: np.ndarray, y: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Run Newton's method on all resamples, from the solution at their mean weights."""
    start = np.zeros((1, design.shape[1]))
    if len(weights) > 1:
        start = _newton(design, offset, y, weights.mean(axis=0, keepdims=True))
    q = design.shape[1]
    found = np.repeat(start, len(weights), axis=0)
    # Products of columns, so that all Hessians come out of one matrix product.
    pairs = np.einsum("ni,nj->nij", design, design).reshape(len(y), q * q)

    def log_likelihood(coefficients: np.ndarray, w: np.ndarray) -> np.ndarray:
        eta = coefficients @ design.T + offset
        return np.einsum("kn,kn->k", w, y * eta - np.logaddexp(0.0, eta))

    going = np.arange(len(weights))
    for _ in range(_STEPS):
        w = weights if len(going) == len(weights) else weights[going]
        p = _expit(found[going] @ design.T + offset)
        gradient = (w * (y - p)) @ design
        np.subtract(p, p * p, out=p)
        np.multiply(p, w, out=p)
        hessian = (p @ pairs).reshape(-1, q, q)
        # Saturated probabilities can leave no curvature; a trace of ridge keeps the step finite.
        ridge = 1e-12 * np.trace(hessian, axis1=1, axis2=2) + 1e-300
        hessian += ridge[:, None, None] * np.eye(q)
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        far = np.abs(step).max(axis=1) > _LONG_STEP
        if far.any():
            step[far] = _shortened(found[going][far], step[far], w[far], log_likelihood)
        found[going] += step
        size = np.abs(found[going]).max(axis=1)
        going = going[(np.abs(step).max(axis=1) > _TOLERANCE * (1 + size)) & (size < _FAR)]
        if not len(going):
            break
    return found


def _shortened(
    at: np.ndarray,
    step: np.ndarray,
    weights: np.ndarray,
    log_likelihood: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> np.ndarray:
    """Halve steps that lower the likelihood until they do not."""
    before = log_likelihood(at, weights)
    for _ in range(30):
        worse = ~(log_likelihood(at + step, weights) >= before)
        if not worse.any():
            break
        step = np.where(worse[:, None], step / 2, step)
    return step


def _expit(x: np.ndarray) -> np.ndarray:
    """Overwrite log odds by probabilities; several times faster than scipy's on large arrays."""
    with np.errstate(over="ignore"):
        np.exp(np.negative(x, out=x), out=x)
    np.add(x, 1.0, out=x)
    return np.reciprocal(x, out=x)


def _ends(z: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest value of the people who count, for every resample."""
    low = np.where(counts, z, np.inf).min(axis=1)
    return low, np.where(counts, z, -np.inf).max(axis=1)


# -- Platt scaling -----------------------------------------------------------------------------


def needs_platt(estimator: Any, n_classes: int) -> bool:
    """Return whether an estimator has decision scores of two classes but no probabilities."""
    has_margin = hasattr(estimator, "decision_function")
    return n_classes == 2 and has_margin and not hasattr(estimator, "predict_proba")


@dataclass(frozen=True)
class Platt:
    """A rising logistic curve from decision scores to probabilities of the positive class.

    A score of a support vector machine ranks samples but is not a probability. The training rows
    are split into inner folds, and a model fitted on the others gives the scores of each. A
    logistic curve is fitted to these scores. It is then applied to the scores of the test rows,
    which come from the model fitted on all training rows.
    """

    intercept: float
    slope: float

    @classmethod
    def learn(cls, margin: np.ndarray, positive: np.ndarray) -> Platt:
        """Fit the curve to held-out decision scores.

        The targets are moved from 0 and 1 as if each class had one more person, so that scores
        which separate the classes have a curve too. A falling curve means that the scores rank
        these rows by chance; it is replaced by the share of positive rows.

        Shapes: margin (n,), positive (n,).

        References
        ----------
        J. Platt, "Probabilistic outputs for support vector machines and comparisons to regularized
        likelihood methods", Advances in Large Margin Classifiers (1999).
        """
        up, down = int(positive.sum()), int((~positive).sum())
        target = np.where(positive, (up + 1) / (up + 2), 1 / (down + 2))
        intercept, slope = (
            float(v[0]) for v in fit_line(margin, target, np.ones((1, len(margin))))
        )
        if not (np.isfinite(intercept) and slope > 0):
            return cls(float(np.log((up + 1) / (down + 1))), 0.0)
        return cls(intercept, slope)

    def proba(self, margin: np.ndarray) -> np.ndarray:
        """Return probabilities of both classes, of shape (n, 2)."""
        p = expit(self.intercept + self.slope * margin)
        return np.column_stack([1 - p, p])
