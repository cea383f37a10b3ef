"""Expectations of logistic functions under a Gaussian, exact to 2e-8 at any standard deviation.

Only E[sigmoid''], a second derivative of the mixture below, has errors of up to 8e-8.

The logistic function is written as a mixture of eight probit functions (Monahan and Stefanski,
1992),

    sigmoid(x) = sum_i p_i Phi(x / c_i),

whose error is below 3e-9 everywhere. Under eta ~ N(m, v) every expectation is then a closed form,
with r_i^2 = c_i^2 + v and z_i = m / r_i:

    E[sigmoid(eta)]   = sum_i p_i Phi(z_i)
    E[sigmoid'(eta)]  = sum_i p_i phi(z_i) / r_i
    E[sigmoid''(eta)] = -sum_i p_i z_i phi(z_i) / r_i^2
    E[softplus(eta)]  = sum_i p_i (m Phi(z_i) + r_i phi(z_i))

Each line is the derivative by m of the line that follows from it, so a bound and its gradient agree
to rounding. The constants were found by minimising the largest error of the mixture;
`tests/model/test_quadrature.py` compares them with numerical integration.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from baldur.types import Array

_WEIGHTS = np.array(
    [
        0.0015206280991473234,
        0.028774082537394347,
        0.13309915812052253,
        0.27519186203967827,
        0.31423277994745646,
        0.1931771893449166,
        0.050812613851935653,
        0.0031916860589487313,
    ]
)
_SCALES = np.array(
    [
        4.185709058046048,
        3.2261469561223994,
        2.5142230921159436,
        1.961472923093729,
        1.5325541887989895,
        1.2011990150918166,
        0.9424295633533045,
        0.7316804534500289,
    ]
)
_SQUARES = _SCALES[:, None] ** 2
_DENSITY = _WEIGHTS / np.sqrt(2.0 * np.pi)

CHUNK = 1024
"""Logits worked on at once, few enough for all eight terms to stay in the processor's cache."""


class LogisticMoments(NamedTuple):
    """E[sigmoid], E[sigmoid'] and E[softplus] of a Gaussian logit, each shaped as its mean."""

    rate: Array
    slope: Array
    softplus: Array


class LogisticRates(NamedTuple):
    """E[sigmoid], E[sigmoid'] and E[sigmoid''] of a Gaussian logit, each shaped as its mean."""

    rate: Array
    slope: Array
    curve: Array


def logistic_moments(mean: Array, var: Array) -> LogisticMoments:
    """Return E[sigmoid(eta)], E[sigmoid'(eta)] and E[ln(1 + exp eta)] for eta ~ N(mean, var)."""
    return LogisticMoments(*_expectations(mean, var, softplus=True))


def logistic_rates(mean: Array, var: Array) -> LogisticRates:
    """Return E[sigmoid(eta)] and its first two derivatives by the mean, for eta ~ N(mean, var)."""
    return LogisticRates(*_expectations(mean, var, softplus=False))


def probit_mixture() -> tuple[Array, Array]:
    """Return the weights p and scales c of the mixture, for programs that evaluate it elsewhere."""
    return _WEIGHTS.copy(), _SCALES.copy()


def _expectations(mean: Array, var: Array, *, softplus: bool) -> tuple[Array, Array, Array]:
    """Return E[sigmoid], E[sigmoid'] and either E[softplus] or E[sigmoid'']."""
    mean = np.asarray(mean, dtype=float)
    shape = mean.shape
    m = mean.ravel()
    v = np.broadcast_to(var, shape).ravel()
    rate, slope, last = np.empty_like(m), np.empty_like(m), np.empty_like(m)
    for start in range(0, len(m), CHUNK):
        part = slice(start, start + CHUNK)
        r2 = v[part] + _SQUARES  # (8, CHUNK)
        r = np.sqrt(r2)
        z = m[part] / r
        density = np.exp(-0.5 * z * z)
        rate[part] = _WEIGHTS @ ndtr(z)
        slope[part] = _DENSITY @ (density / r)
        if softplus:
            last[part] = m[part] * rate[part] + _DENSITY @ (density * r)
        else:
            last[part] = -(_DENSITY @ (density * z / r2))
    return rate.reshape(shape), slope.reshape(shape), last.reshape(shape)
