"""The spike-and-slab prior: each feature is in the model or not, and the data say how many are.

    w_cd = 0 with probability 1 - pi_m (for all outputs c at once), and otherwise
    w_cd ~ N(+mu, (1 - f) sigma_cm^2) or N(-mu, (1 - f) sigma_cm^2), each with probability 1/2,
           mu^2 = f sigma_cm^2

so that sigma_cm^2 is the variance of the weights that are in. In the terms of the model, 1/delta
is sigma^2 and gamma_d is finite (in) or infinite (out). It is the end of the family of priors in
which features are selected rather than shrunk, and through pi_m, learned per view, it reaches from
an empty view to a dense one. It needs no start: the fixed point below is reached from anywhere.

f = 0 is the usual normal slab, under which a feature that is in most probably has a weight near
0, so features of small weight are hardly told from those that are out. With f > 0 the prior of a
weight that is in is *non-local* (Johnson and Rossell): being in means having an effect.

q(w_c) stays jointly Gaussian, with prior variances s_cd that summarise the spike-and-slab prior.
From the leave-one-out (cavity) mean m and variance V of a weight, under prior variance s,

    1/V = S/(1 - s S),   m/V = x^T alpha/(1 - s S),      S = x^T C^-1 x
    ln odds of in = ln(pi/(1 - pi)) + sum_c ln [ p(m | in) / N(m; 0, V) ]
    p(m | in) = ( N(m; mu, V + (1 - f) sigma^2) + N(m; -mu, V + (1 - f) sigma^2) )/2
    rho = P(in)

and s is one of two. The first gives the weight its posterior mean, m s/(V + s) = rho <w | in>.
Alone it shrinks too much where many features share the signal: a feature that is in with little
probability has next to no variance left, and so never more probability. The second is the
geometric mean of the first and of the expected prior variance rho sigma^2, which alone shrinks
too little: every feature that might be in is followed as if it were. Both are members of the
stack in `baldur.inference.auto`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[np.float64]

MIN_RHO = 1e-10
NONLOCAL = 0.844
"""f with which two normal lobes have the mean absolute value and the variance of the product-moment
prior, w^2 N(w; 0, t): (E|w|)^2/E[w^2] = 8/(3 pi)."""
MAX_KEPT, MAX_RATIO = 0.999, 20.0
"""Limits of s/(V + s), and of s over the variance of the weights that are in."""


class Cavity(NamedTuple):
    """Leave-one-out mean and variance of each weight, each (C, L)."""

    mean: Array
    var: Array


class WeightIn(NamedTuple):
    """What the data say of each weight if its feature is in, each (C, L).

    log_ratio is ln p(m | in)/p(m | out); mean and second are <w | in> and <w^2 | in>.
    """

    log_ratio: Array
    mean: Array
    second: Array


def cavity(s: Array, projected: Array, S: Array) -> Cavity:
    """Return the leave-one-out moments from x^T alpha and x^T C^-1 x, each (C, L)."""
    left = np.maximum(1.0 - s * S, 1e-10)
    S = np.maximum(S, 1e-8)  # a constant column says nothing: cavity variance 1e8
    return Cavity(projected / S, left / S)


def weight_in(cav: Cavity, slab: Array, lobes: float = 0.0) -> WeightIn:
    """Return evidence and moments of each weight if in, under slab variances (C, L).

    `lobes` is f: 0 for a normal slab around zero, `NONLOCAL` for two lobes away from it.
    """
    mu, spread = np.sqrt(lobes * slab), (1.0 - lobes) * slab
    m, V = cav
    wide = V + spread
    # Mirror images: with |m| the lobe on the same side comes first.
    near, far = -0.5 * (np.abs(m) - mu) ** 2 / wide, -0.5 * (np.abs(m) + mu) ** 2 / wide
    log_ratio = near + np.log1p(np.exp(far - near)) - np.log(2.0)
    log_ratio += 0.5 * (m**2 / V + np.log(V / wide))
    same = expit(near - far)
    mean_near = (np.abs(m) * spread + mu * V) / wide
    mean_far = (np.abs(m) * spread - mu * V) / wide
    mean = same * mean_near + (1.0 - same) * mean_far
    second = same * mean_near**2 + (1.0 - same) * mean_far**2 + V * spread / wide
    return WeightIn(log_ratio, np.sign(m) * mean, second)


def inclusion_probability(found: WeightIn, prior_odds: Array) -> Array:
    """Return rho (L,) from prior ln odds (L,), above the smallest that the algebra can carry."""
    return np.maximum(expit(prior_odds + found.log_ratio.sum(axis=0)), MIN_RHO)


def variance_by_mean(rho: Array, found: WeightIn, cav: Cavity, slab: Array) -> Array:
    """Return the prior variances s (C, L) that give each weight the mean rho <w | in>."""
    m = np.where(np.abs(cav.mean) < 1e-12, 1e-12, cav.mean)
    kept = np.clip(rho * found.mean / m, 0.0, MAX_KEPT)
    return np.minimum(cav.var * kept / (1.0 - kept), MAX_RATIO * slab)


def variance_between(rho: Array, found: WeightIn, cav: Cavity, slab: Array) -> Array:
    """Return the geometric mean of `variance_by_mean` and of the expected rho sigma^2, (C, L)."""
    return np.sqrt(variance_by_mean(rho, found, cav, slab) * rho * slab)
