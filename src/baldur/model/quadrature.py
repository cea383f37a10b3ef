"""Expectations of logistic functions under a Gaussian, exact to 1e-6 at any standard deviation.

Up to a standard deviation of `NARROW` a Gauss-Hermite rule sees sigmoid and softplus as smooth.
Beyond it the Gaussian is the smooth one, so the integral is taken over the logistic side: with
g' = sigmoid', localised around 0,

    E[sigmoid(eta)]  = int sigmoid'(u) Phi((m - u)/s) du
    E[sigmoid'(eta)] = int sigmoid'(u) N(u; m, s^2) du
    E[softplus(eta)] = E[max(eta, 0)] + int ln(1 + exp(-|u|)) N(u; m, s^2) du
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

Array = NDArray[np.float64]

NARROW = 1.75
"""Standard deviation up to which 32 Gauss-Hermite nodes err by less than 2e-7; from there on the
other rule does."""
SMALL = 0.75
"""Up to here half the nodes give the same to 2e-10."""
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_FEW, _FEW_WEIGHTS = np.polynomial.hermite_e.hermegauss(16)
_FEW_WEIGHTS = _FEW_WEIGHTS / _FEW_WEIGHTS.sum()
# Panels that meet at 0, where ln(1 + exp(-|u|)) has a kink; sigmoid' is below 3e-10 beyond 22.
_PANELS = [(0.0, 6.0, 12), (6.0, 22.0, 8)]
_RULES = [(a, b, np.polynomial.legendre.leggauss(n)) for a, b, n in _PANELS]
_HALF = np.concatenate([0.5 * (b - a) * x + 0.5 * (a + b) for a, b, (x, _) in _RULES])
_HALF_W = np.concatenate([0.5 * (b - a) * w for a, b, (_, w) in _RULES])
_LINE, _LINE_W = np.concatenate([-_HALF, _HALF]), np.concatenate([_HALF_W, _HALF_W])
_BUMP = expit(_LINE) * expit(-_LINE)
_CURVE = _BUMP * (expit(-_LINE) - expit(_LINE))
_KINK = np.log1p(np.exp(-np.abs(_LINE)))
_ROOT_2PI = float(np.sqrt(2.0 * np.pi))


CHUNK = 4096
"""Logits worked on at once, few enough for the nodes of all of them to stay in cache."""


class LogisticMoments(NamedTuple):
    """E[sigmoid], E[sigmoid'] and E[softplus] of a Gaussian logit, each shaped as its mean."""

    rate: Array
    slope: Array
    softplus: Array


class Rates(NamedTuple):
    """E[sigmoid], E[sigmoid'] and E[sigmoid''] of a Gaussian logit, each shaped as its mean."""

    rate: Array
    slope: Array
    curve: Array


def logistic_moments(mean: Array, var: Array) -> LogisticMoments:
    """Return E[sigmoid(eta)], E[sigmoid'(eta)] and E[ln(1 + exp eta)] for eta ~ N(mean, var)."""
    return LogisticMoments(*_expectations(mean, var, bound=True))


def logistic_rates(mean: Array, var: Array) -> Rates:
    """Return E[sigmoid(eta)] and its first two derivatives by the mean, for eta ~ N(mean, var)."""
    return Rates(*_expectations(mean, var, bound=False))


def _expectations(mean: Array, var: Array, *, bound: bool) -> list[Array]:
    """Return three expectations; the last is that of softplus or of sigmoid''."""
    shape = np.shape(mean)
    m, s = np.ravel(mean), np.sqrt(np.ravel(var))
    out = [np.empty_like(m) for _ in range(3)]
    if s.size and s.max() <= SMALL:  # as most often: nothing to tell apart
        return [part.reshape(shape) for part in _by_few(m, s, bound)]
    narrow, small = s <= NARROW, s <= SMALL
    for mask, rule in (
        (small, _by_few),
        (narrow & ~small, _by_hermite),
        (~narrow, _by_logistic),
    ):
        if mask.all():
            out = rule(m, s, bound)
            break
        if mask.any():
            for whole, part in zip(out, rule(m[mask], s[mask], bound), strict=True):
                whole[mask] = part
    return [part.reshape(shape) for part in out]


def _by_few(m: Array, s: Array, bound: bool) -> list[Array]:
    return _by_hermite(m, s, bound, _FEW, _FEW_WEIGHTS)


def _by_hermite(
    m: Array, s: Array, bound: bool, nodes: Array = _NODES, weights: Array = _WEIGHTS
) -> list[Array]:
    rate, slope, last = (np.empty_like(m) for _ in range(3))
    for start in range(0, len(m), CHUNK):
        part = slice(start, start + CHUNK)
        eta = m[part, None] + s[part, None] * nodes
        small = np.exp(-np.abs(eta))
        near = 1.0 / (1.0 + small)  # sigmoid(|eta|)
        far = small * near
        bump = near * far
        rate[part] = np.where(eta >= 0.0, near, far) @ weights
        slope[part] = bump @ weights
        if bound:
            last[part] = (np.maximum(eta, 0.0) + np.log1p(small)) @ weights
        else:
            last[part] = (bump * np.copysign(far - near, -eta)) @ weights
    return [rate, slope, last]


def _by_logistic(m: Array, s: Array, bound: bool) -> list[Array]:
    z = (m[:, None] - _LINE) / s[:, None]
    density = np.exp(-0.5 * z * z) / (_ROOT_2PI * s[:, None])
    rate = np.clip(ndtr(z) @ (_LINE_W * _BUMP), 0.0, 1.0)  # weights sum to one to 1e-9
    slope = density @ (_LINE_W * _BUMP)
    if not bound:
        return [rate, slope, density @ (_LINE_W * _CURVE)]
    positive = m * ndtr(m / s) + s * np.exp(-0.5 * (m / s) ** 2) / _ROOT_2PI
    return [rate, slope, positive + density @ (_LINE_W * _KINK)]


def rate_rules() -> list[tuple[float, Array, Array]]:
    """Return the rules of E[sigmoid], for those who compute it elsewhere.

    Each is (largest standard deviation, nodes, weights). All but the last are sums of
    w sigmoid(m + s x); the last is the sum of w Phi((m - x)/s), held within 0 and 1.
    """
    return [
        (SMALL, _FEW, _FEW_WEIGHTS),
        (NARROW, _NODES, _WEIGHTS),
        (float("inf"), _LINE, _LINE_W * _BUMP),
    ]
