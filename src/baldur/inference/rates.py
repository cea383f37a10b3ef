"""The best precision of each feature on its own, and what it gains, for all features at once.

For one feature with leave-one-out statistics Q' and S' (see `baldur.inference.prune`), prior
variances s_k = r/(delta_k shape) and q(gamma_d) = Gamma(shape, r), the bound depends on r by

    f(r) = sum_k [ Q'_k^2 s_k/(1 + s_k S'_k) - ln(1 + s_k S'_k) ]/2 - a ln r - a shape/r

The update of the model climbs f slowly; here it is climbed by Newton steps in ln r.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CHUNK = 16384
"""Features worked on at once, few enough to stay in cache."""
NEWTON_STEPS = 30
LONGEST = 1.0
"""Longest step in ln r: the nearest maximum is wanted, not the highest."""


@dataclass(frozen=True)
class Best:
    """Best rates of some features.

    Attributes
    ----------
    rate : (L,) array
    rise : (L,) array, f at the best rate less f at the present one
    gain : (L,) array, what each feature adds to the data part of the bound at its present rate
    """

    rate: Array
    rise: Array
    gain: Array


def best_rates(
    projected: Array, S: Array, rate: Array, delta: Array, shape: float, a: float
) -> Best:
    """Climb from the present rates to the nearest maximum of f.

    Parameters
    ----------
    projected, S : (K, L) arrays, x_d^T alpha_k and x_d^T C_k^-1 x_d with the features in
    rate : (L,) array, present rates
    delta : (K,) array, <delta_k>
    shape, a : float, shape of q(gamma) and of its prior
    """
    out = Best(np.empty_like(rate), np.empty_like(rate), np.empty_like(rate))
    for start in range(0, len(rate), CHUNK):
        part = slice(start, start + CHUNK)
        found = _climb(projected[:, part], S[:, part], rate[part], delta[:, None], shape, a)
        out.rate[part], out.rise[part], out.gain[part] = found
    return out


def _climb(
    projected: Array, S: Array, rate: Array, delta: Array, shape: float, a: float
) -> tuple[Array, Array, Array]:
    s = rate / (delta * shape)
    left = np.maximum(1.0 - s * S, 1e-12)
    q2, S = (projected / left) ** 2, S / left

    def data_part(t: Array) -> Array:
        s = np.exp(t) / (delta * shape)
        return np.asarray(0.5 * (q2 * s / (1.0 + s * S) - np.log1p(s * S)).sum(axis=0))

    def prior_part(t: Array) -> Array:
        return -a * t - a * shape * np.exp(-t)

    t0 = np.log(rate)
    t = t0
    for _ in range(NEWTON_STEPS):
        s = np.exp(t) / (delta * shape)
        u = 1.0 / (1.0 + s * S)
        first = q2 * s * u * u
        second = s * S * u
        back = a * shape * np.exp(-t)
        slope = 0.5 * (first - second).sum(axis=0) - a + back
        curve = 0.5 * (first * (2.0 * u - 1.0) - second * u).sum(axis=0) - back
        step = np.where(curve < 0.0, -slope / np.minimum(curve, -1e-300), np.sign(slope) * LONGEST)
        step = np.clip(step, -LONGEST, LONGEST)
        t = t + step
        if np.abs(step).max(initial=0.0) < 1e-12:
            break
    gain = data_part(t0)
    rise = data_part(t) + prior_part(t) - gain - prior_part(t0)
    return np.where(rise > 0.0, np.exp(t), rate), np.maximum(rise, 0.0), gain
