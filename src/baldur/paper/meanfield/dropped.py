"""Dropped features: an independent, zero-mean q(w_kd), kept at its optimum.

A dropped feature is not deleted from the model. Its weights get q(w_kd) = N(0, v_kd) with

    v_kd = 1/(tau t_d + delta_k gamma_d),    t_d = sum_n s_n x_nd^2,

a member of the same family (q(w_k) without correlations to d), so the bound before and after a
drop bounds the same evidence and no constant has to be added. With v_kd eliminated, the best
gamma_d, and the best delta_k given the kept features, are roots of one decreasing function:
plain alternation towards them would creep, because gamma_d of a useless feature only grows by
tau t_d/delta_k per step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from baldur.model.priors import GammaPrior

Array = NDArray[np.float64]


def decreasing_root(A: Array, B: Array, load: Array, slope: Array) -> Array:
    """Solve A_i - B_i x_i + (1/2) sum_j load_ij/(load_ij + slope_ij x_i) = 0 for x > 0.

    Parameters
    ----------
    A, B : (p,) arrays
        Positive.
    load, slope : (p, q) arrays
        Non-negative loads and positive slopes; broadcastable.

    Returns
    -------
    (p,) array
        Bisection on ln x to rounding; the bracket is [A/B, (A + q/2)/B].
    """
    low = np.log(A / B)
    high = np.log((A + 0.5 * np.broadcast(load, slope).shape[1]) / B)
    for _ in range(56):
        middle = 0.5 * (low + high)
        x = np.exp(middle)
        value = A - B * x + 0.5 * np.sum(load / (load + slope * x[:, None]), axis=1)
        low = np.where(value > 0, middle, low)
        high = np.where(value > 0, high, middle)
    return np.exp(0.5 * (low + high))


def dropped_gamma(prior: GammaPrior, delta: Array, load: Array) -> Array:
    """Best <gamma_d> of dropped features, (d,); ``load`` is tau t_d, (d,), ``delta`` (K,).

    Root of a - b g + (1/2) sum_k load_d/(load_d + delta_k g) = 0; ones when a = inf.
    """
    if np.isinf(prior.shape) or not load.size:
        return np.ones(load.size)
    safe = np.maximum(load, np.finfo(float).tiny)[:, None]
    A, B = np.full(load.size, prior.shape), np.full(load.size, prior.rate)
    return decreasing_root(A, B, safe, delta[None, :])


def dropped_delta(
    prior: GammaPrior, n_kept: int, gamma_w2: Array, gamma: Array, load: Array
) -> Array:
    """Best <delta_k> jointly with the dropped v_kd, (K,).

    Root of (a0 + D_kept/2) - (b0 + gamma_w2_k/2) x + (1/2) sum_dropped load_d/(load_d + x gamma_d).
    """
    safe = np.maximum(load, np.finfo(float).tiny)[None, :]
    A = np.full(gamma_w2.size, prior.shape + 0.5 * n_kept)
    return decreasing_root(A, prior.rate + 0.5 * gamma_w2, safe, gamma[None, :])


def dropped_sums(
    delta: Array, gamma: Array, norms: Array, tau: float
) -> tuple[Array, Array, Array]:
    """Sum over dropped d t_d v_kd, gamma_d v_kd and ln v_kd at the best v, each (K,)."""
    var = 1.0 / (tau * norms + np.outer(delta, gamma))
    return var @ norms, var @ gamma, np.log(var).sum(axis=1)
