"""q(delta), q(gamma) and q(omega): their updates, and their terms of the bound.

Everything here is a pure function of arrays. In the paper's symbols, for one view with D
features and K factors,

    w_kd ~ N(0, 1/(delta_k gamma_d)),   v_:k ~ N(0, I_C/omega_k),

and every precision has a Gamma posterior with one shape for the whole vector and its own rates.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import digamma, gammaln

from baldur.core.types import Array
from baldur.model.spike_slab import VAGUE, GammaPrior

LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class GammaPosterior:
    """Independent Gamma distributions with one common shape and a vector of rates.

    ``shape == inf`` is the point mass at one, whatever the rates (only their length counts).
    """

    shape: float
    rate: Array

    @property
    def mean(self) -> Array:
        """Return the mean <g> = shape / rate."""
        if np.isinf(self.shape):
            return np.ones_like(self.rate)
        return self.shape / self.rate

    @property
    def mean_log(self) -> Array:
        """Return the mean logarithm <ln g> = digamma(shape) - ln(rate)."""
        if np.isinf(self.shape):
            return np.zeros_like(self.rate)
        return digamma(self.shape) - np.log(self.rate)


def gamma_term(posterior: GammaPosterior, prior: GammaPrior) -> float:
    """E[ln p(g)] - E[ln q(g)], summed over the vector; zero for a point mass at one."""
    return float(gamma_terms(posterior, prior).sum())


def gamma_terms(posterior: GammaPosterior, prior: GammaPrior) -> Array:
    """Return E[ln p(g)] - E[ln q(g)] of every precision.

    Departure from the paper: its appendix evaluates E[ln p] at the prior's own parameters;
    the expectation is under q, so the posterior mean and mean log enter.
    """
    if np.isinf(posterior.shape):
        return np.zeros_like(posterior.rate)
    a0, b0 = prior
    shape, rate = posterior.shape, posterior.rate
    expected_log_prior = (
        a0 * np.log(b0) - gammaln(a0) + (a0 - 1.0) * posterior.mean_log - b0 * posterior.mean
    )
    entropy = shape - np.log(rate) + gammaln(shape) + (1.0 - shape) * digamma(shape)
    return np.asarray(expected_log_prior + entropy)


def update_delta(prior: GammaPrior, n_features: int, gamma_w2: Array) -> GammaPosterior:
    """q(delta): shape a0 + D/2, rate_k = b0 + (1/2) sum_d <gamma_d><w_kd^2>.

    Shapes: gamma_w2 (K,).
    """
    return GammaPosterior(prior.shape + 0.5 * n_features, prior.rate + 0.5 * gamma_w2)


def update_gamma(prior: GammaPrior, n_factors: int, delta_w2: Array) -> GammaPosterior:
    """q(gamma): shape a0 + K/2, rate_d = b0 + (1/2) sum_k <delta_k><w_kd^2>.

    Shapes: delta_w2 (D,).
    """
    if np.isinf(prior.shape):
        return GammaPosterior(np.inf, np.ones_like(delta_w2))
    return GammaPosterior(prior.shape + 0.5 * n_factors, prior.rate + 0.5 * delta_w2)


def update_omega(prior: GammaPrior, n_outputs: int, v2: Array) -> GammaPosterior:
    """q(omega): shape a0 + C/2, rate_k = b0 + (1/2) sum_c <v_ck^2>; ``v2`` is (K,)."""
    return GammaPosterior(prior.shape + 0.5 * n_outputs, prior.rate + 0.5 * v2)


def weight_prior_term(delta: GammaPosterior, gamma: GammaPosterior, gamma_w2: Array) -> float:
    """Return E[ln p(W | delta, gamma)] of one view.

    -(KD/2) ln 2pi + (D/2) sum_k <ln delta_k> + (K/2) sum_d <ln gamma_d>
    - (1/2) sum_k <delta_k> sum_d <gamma_d><w_kd^2>.
    """
    K, D = delta.rate.size, gamma.rate.size
    return float(
        -0.5 * K * D * LOG_2PI
        + 0.5 * D * delta.mean_log.sum()
        + 0.5 * K * gamma.mean_log.sum()
        - 0.5 * delta.mean @ gamma_w2
    )


def loading_prior_term(omega: GammaPosterior, n_outputs: int, v2: Array) -> float:
    """E[ln p(V | omega)] = sum_k (C/2)(<ln omega_k> - ln 2pi) - (1/2) <omega_k> sum_c <v_ck^2>."""
    return float(0.5 * n_outputs * np.sum(omega.mean_log - LOG_2PI) - 0.5 * omega.mean @ v2)


@dataclass(frozen=True)
class Priors:
    """Hyperparameters of the generative model."""

    gamma: GammaPrior = VAGUE
    delta: GammaPrior = VAGUE
    omega: GammaPrior = VAGUE
    tau: GammaPrior = VAGUE
    psi: GammaPrior = VAGUE
    intercept_precision: float = field(default=1e-4)


def sparsity_prior(shape: float) -> GammaPrior:
    """Prior Gamma(a, a) of the feature precisions: from ARD (a = 1e-6) to none (a = inf)."""
    if not shape > 0:
        raise ValueError(f"the sparsity shape must be positive (inf allowed), got {shape!r}")
    return GammaPrior(float(shape), float(shape))
