"""The bound L(q) = E[ln p] - E[ln q] of the structured family: one function per term.

A dropped feature is a column of zeros: its weight and precision keep their joint prior, which
costs nothing, so it adds exactly 0 and bounds before and after a drop can be compared.

Departure from the paper: it writes the bound with the opposite sign and drops terms.
"""

from __future__ import annotations

import numpy as np

from baldur.model.ard import GammaPosterior, gamma_term, loading_prior_term, shape_gap
from baldur.model.posterior import INTERCEPT_VAR
from baldur.model.structured.state import Data, State, output_moments


def likelihood_term(data: Data, state: State) -> float:
    """E[ln p(T | eta)], or its lower bound."""
    value, _ = data.likelihood.evaluate(*output_moments(state), state.noise)
    return float(value.sum())


def weights_term(data: Data, state: State) -> float:
    """E[ln p(W | delta, gamma)] - E[ln q(W)].

    = sum_k -KL(q(w_k) || N(0, 1/(<delta><gamma>)))
      + (1/2) sum_kd (<ln delta_k> - ln<delta_k> + <ln gamma_d> - ln<gamma_d>)
    """
    total = -sum(factor.kl for factor in state.factors)
    for m in range(len(state.kept)):
        D = state.n_in(m)
        if D:
            # <ln g> - ln<g> of a Gamma depends on its shape alone.
            gap = state.n_factors * shape_gap(state.gamma[m].shape)
            total += 0.5 * D * (state.n_factors * shape_gap(state.delta[m].shape) + gap)
    return float(total)


def precisions_term(data: Data, state: State) -> float:
    """Gamma terms of delta and gamma, over what is kept."""
    total = 0.0
    for m, kept in enumerate(state.kept):
        if state.n_in(m):
            gamma = state.gamma[m]
            total += gamma_term(state.delta[m], data.delta_prior(m))
            total += gamma_term(GammaPosterior(gamma.shape, gamma.rate[kept]), data.priors.gamma)
            if state.rest and state.rest[m].count:
                total += state.rest[m].gamma_term(data.priors.gamma, gamma.shape)
    return total


def idle_term(data: Data, state: State) -> float:
    """Return what the features that are in cost while they do nothing, gamma at 1.

    A constant of every bound over the same features, large for wide views. Changes of the bound
    are judged against what is left without it.
    """
    shape, prior = state.gamma[0].shape, data.priors.gamma
    if np.isinf(shape):
        return 0.0
    each = gamma_term(GammaPosterior(shape, np.full(1, shape)), prior)
    each += 0.5 * state.n_factors * shape_gap(shape)
    return each * sum(state.n_in(m) for m in range(len(state.kept)))


def loadings_term(data: Data, state: State) -> float:
    """Terms of V and omega: prior, entropy where V has a covariance, and the Gamma term."""
    if not state.learn_loadings:
        return 0.0
    C, K = state.V.shape
    v2 = (state.V**2).sum(axis=0) + np.einsum("ckk->k", state.V_cov)
    total = loading_prior_term(state.omega, C, v2) + gamma_term(state.omega, data.priors.omega)
    if state.V_cov.any():
        log_det = np.linalg.slogdet(state.V_cov)[1].sum()
        total += 0.5 * (log_det + C * K * (1.0 + np.log(2.0 * np.pi)))
    return float(total)


def intercepts_term(data: Data, state: State) -> float:
    """-KL(q(b) || N(0, s_0)); an intercept inside a factor is counted with its weights."""
    if not state.learn_intercepts:
        return 0.0
    ratio = state.b_var / INTERCEPT_VAR
    return float(-0.5 * (ratio + state.b**2 / INTERCEPT_VAR - 1.0 - np.log(ratio)).sum())


TERMS = (likelihood_term, weights_term, precisions_term, loadings_term, intercepts_term)


def bound(data: Data, state: State) -> float:
    """Return L(q), the sum of `TERMS`."""
    return sum(term(data, state) for term in TERMS)
