"""The spike-and-slab prior: each feature is included or not, and the data say how many are.

    w_cd = 0 with probability 1 - pi_m (for all outputs c at once), and otherwise
    w_cd ~ N(+mu, (1 - f) sigma_cm^2) or N(-mu, (1 - f) sigma_cm^2), each with probability 1/2,
           mu^2 = f sigma_cm^2

so that sigma_cm^2 is the variance of the weights of included features. In the terms of the model,
1/delta is sigma^2 and gamma_d is finite (slab) or infinite (spike). It is the end of the family of
priors in which features are selected rather than shrunk, and through pi_m, learned per view, it
reaches from an empty view to a dense one.

f = 0 is the usual normal slab, under which an included feature most probably has a weight near
0, so features of small weight are hardly distinguished from excluded ones. With f > 0 the slab is
*non-local* (Johnson and Rossell, 2010): being in means having an effect.

q(w_c) stays jointly Gaussian, with prior variances s_cd that summarise the spike and slab. From the
leave-one-out (cavity) mean m and variance V of a weight, under prior variance s,

    1/V = S/(1 - s S),   m/V = x^T alpha/(1 - s S),      S = x^T C^-1 x
    ln odds of inclusion = ln(pi/(1 - pi)) + sum_c ln [ p(m | in) / N(m; 0, V) ]
    p(m | in) = ( N(m; mu, V + (1 - f) sigma^2) + N(m; -mu, V + (1 - f) sigma^2) )/2
    rho = posterior inclusion probability

and s is one of two. The first gives the weight its posterior mean, m s/(V + s) = rho <w | in>.
Alone it shrinks too much where many features share the signal: a feature with a small inclusion
probability has next to no variance left, and so never gains probability. The second is the
geometric mean of the first and of the expected prior variance rho sigma^2, which alone shrinks
too little. Each of the two is a member of the ensemble.

Arrays are (F, C, L): folds by outputs by candidate features.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from baldur.core.types import Array

MIN_RHO = 1e-10
"""Floor of an inclusion probability, so that its logarithm and its variance stay finite."""
NONLOCAL = 0.844
"""f with which two normal lobes have the mean absolute value and the variance of the product-moment
prior, w^2 N(w; 0, t): (E|w|)^2/E[w^2] = 8/(3 pi)."""
MAX_KEPT, MAX_RATIO = 0.999, 20.0
"""Limits of s/(V + s), and of s over the variance of the weights of included features."""


class Cavity(NamedTuple):
    """Leave-one-out mean and variance of each weight, each (F, C, L)."""

    mean: Array
    var: Array


class SlabMoments(NamedTuple):
    """What the data say of each weight if its feature is included, each (F, C, L).

    log_ratio is ln p(m | in)/p(m | out); mean and second are <w | in> and <w^2 | in>.
    """

    log_ratio: Array
    mean: Array
    second: Array


def cavity(s: Array, projected: Array, S: Array) -> Cavity:
    """Return the leave-one-out moments from x^T alpha and x^T C^-1 x, each (F, C, L)."""
    left = np.maximum(1.0 - s * S, 1e-10)
    S = np.maximum(S, 1e-8)  # a constant column says nothing: cavity variance 1e8
    return Cavity(projected / S, left / S)


def slab_moments(cav: Cavity, slab: Array, lobes: float = 0.0) -> SlabMoments:
    """Return evidence and moments of each weight if included, under slab variances (F, C, L).

    `lobes` is f: 0 for a normal slab around zero, `NONLOCAL` for two lobes away from it.
    """
    mu, spread = np.sqrt(lobes * slab), (1.0 - lobes) * slab
    m, V = np.abs(cav.mean), cav.var
    wide = V + spread
    # By symmetry, with |m| the lobe on the same side comes first.
    near, far = -0.5 * (m - mu) ** 2 / wide, -0.5 * (m + mu) ** 2 / wide
    ratio = np.exp(far - near)
    log_ratio = near + np.log1p(ratio) - np.log(2.0)
    log_ratio += 0.5 * (m**2 / V + np.log(V / wide))
    same = 1.0 / (1.0 + ratio)
    shrunk, shift = m * spread / wide, mu * V / wide
    mean = shrunk + (2.0 * same - 1.0) * shift
    second = same * (shrunk + shift) ** 2 + (1.0 - same) * (shrunk - shift) ** 2
    return SlabMoments(log_ratio, np.copysign(mean, cav.mean), second + V * spread / wide)


def inclusion_probability(found: SlabMoments, prior_log_odds: Array) -> Array:
    """Return rho (F, L) from prior log odds (F, L), bounded below for numerical stability."""
    return np.maximum(expit(prior_log_odds + found.log_ratio.sum(axis=-2)), MIN_RHO)


def mean_matched_variance(rho: Array, found: SlabMoments, cav: Cavity, slab: Array) -> Array:
    """Return the prior variances s (F, C, L) that give each weight the mean rho <w | in>."""
    if slab.shape[-2] < cav.mean.shape[-2]:  # outputs share one variance: the best for all means
        squares = (cav.mean**2).sum(axis=-2, keepdims=True)
        ratio = (cav.mean * found.mean).sum(axis=-2, keepdims=True) / np.maximum(squares, 1e-24)
    else:
        ratio = found.mean / np.where(np.abs(cav.mean) < 1e-12, 1e-12, cav.mean)
    kept = np.clip(rho[..., None, :] * ratio, 0.0, MAX_KEPT)
    return np.minimum(cav.var * kept / (1.0 - kept), MAX_RATIO * slab)


def wider_variance(rho: Array, found: SlabMoments, cav: Cavity, slab: Array) -> Array:
    """Return the geometric mean of `mean_matched_variance` and rho sigma^2, (F, C, L)."""
    matched = mean_matched_variance(rho, found, cav, slab)
    return np.sqrt(matched * rho[..., None, :] * slab)


class GammaPrior(NamedTuple):
    """Shape and rate of a Gamma prior."""

    shape: float
    rate: float


VAGUE = GammaPrior(1e-6, 1e-6)
