"""The in-or-out prior: each feature is in the model or not, and the data say how many are.

    w_cd ~ N(0, sigma_cm^2) with probability pi_m,   w_cd = 0 otherwise (for all outputs c at once)

In the terms of the model, 1/delta is sigma^2 and gamma_d is 1 (in) or infinite (out). It is the
end of the family of priors in which features are selected rather than shrunk, and through pi_m,
learned per view, it reaches from an empty view to a dense one. It needs no start: the fixed
point below is reached from anywhere.

q(w_c) stays jointly Gaussian, with prior variances s_cd that summarise the in-or-out prior. From
the leave-one-out (cavity) mean m and variance V of a weight, under prior variance s,

    1/V = S/(1 - s S),   m/V = x^T alpha/(1 - s S),      S = x^T C^-1 x
    ln odds of in = ln(pi/(1 - pi)) + sum_c [ m^2/V - m^2/(V + sigma^2) - ln(1 + sigma^2/V) ]/2
    rho = P(in)
    s   = rho sigma^2 (V / (V + (1 - rho) sigma^2))^kappa

kappa = 1 makes the posterior mean of each weight that of the in-or-out prior (rho m sigma^2/
(V + sigma^2)); kappa = 0 gives it the expected prior variance. The first shrinks too much where
many features share the signal, the second too little where few do; `baldur.inference.sparsity`
averages the two posteriors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[np.float64]

MIN_RHO = 1e-10


class Cavity(NamedTuple):
    """Leave-one-out mean and variance of each weight, each (C, L)."""

    mean: Array
    var: Array


def cavity(s: Array, projected: Array, S: Array) -> Cavity:
    """Return the leave-one-out moments from x^T alpha and x^T C^-1 x, each (C, L)."""
    left = np.maximum(1.0 - s * S, 1e-10)
    S = np.maximum(S, 1e-8)  # a constant column says nothing: cavity variance 1e8
    return Cavity(projected / S, left / S)


def inclusion_odds(cav: Cavity, slab: Array, prior_odds: Array) -> Array:
    """Return ln odds of in, (L,), from slab variances (C, L) and prior ln odds (L,)."""
    m2 = cav.mean**2
    ratio = m2 / cav.var - m2 / (cav.var + slab) - np.log1p(slab / cav.var)
    return prior_odds + 0.5 * ratio.sum(axis=0)


def inclusion_probability(odds: Array) -> Array:
    """Return rho, kept above the smallest that the algebra can carry."""
    return np.maximum(expit(odds), MIN_RHO)


def effective_variance(rho: Array, cav: Cavity, slab: Array, kappa: float) -> Array:
    """Return the prior variances s (C, L) that stand for the in-or-out prior."""
    return rho * slab * (cav.var / (cav.var + (1.0 - rho) * slab)) ** kappa


def slab_second_moment(cav: Cavity, slab: Array) -> Array:
    """Return <w^2> of each weight given that its feature is in, (C, L)."""
    shrink = slab / (cav.var + slab)
    return (shrink * cav.mean) ** 2 + shrink * cav.var
