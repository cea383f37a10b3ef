"""The lower bound L = E[ln p] - E[ln q].

Departure from the paper: it writes the opposite sign, and its closed form drops terms. Here
every term is written for arbitrary posteriors, so the bound can be read between any two updates.
Rows enter with their sample weight, local entropies included.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln

from baldur.core.types import Array
from baldur.paper.state import (
    INTERCEPT_PRECISION,
    VAGUE,
    Data,
    GammaPosterior,
    GammaPrior,
    State,
    ViewState,
)
from baldur.paper.updates import jaakkola_term, quadrature_term, y_residual, z_residual

LOG_2PI = float(np.log(2.0 * np.pi))


def gamma_term(posterior: GammaPosterior, prior: GammaPrior) -> float:
    """E[ln p(g)] - E[ln q(g)], summed over the vector; zero for a point mass at one."""
    return float(gamma_terms(posterior, prior).sum())


def gamma_terms(posterior: GammaPosterior, prior: GammaPrior) -> Array:
    """Return E[ln p(g)] - E[ln q(g)] of every precision, which add up to its term of the bound.

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


def _gaussian(count: float, precision: GammaPosterior, residual: float) -> float:
    """E[ln N] of `count` scalars with a Gamma precision and expected squared residual."""
    log, mean = float(precision.mean_log[0]), float(precision.mean[0])
    return 0.5 * count * (log - LOG_2PI) - 0.5 * mean * residual


def _entropy(logdet: float, size: float) -> float:
    """Entropy of a Gaussian: (size/2) ln(2 pi e) + (1/2) ln |Sigma|."""
    return 0.5 * size * (LOG_2PI + 1.0) + 0.5 * logdet


def labels_term(state: State, data: Data) -> float:
    """Return the bound's term E[ln p(T|Y)], itself bounded or by quadrature; 0 in regression."""
    if not data.classification:
        return 0.0
    if data.quadrature:
        value = quadrature_term(data.T, state.Y, state.Y_var)
    else:
        value = jaakkola_term(data.T, state.Y, state.Y_var, state.xi)
    return float(data.weight @ value.sum(axis=1))


def outputs_term(state: State, data: Data) -> float:
    """Return the bound's term E[ln p(Y|Z, V, b, psi)] - E[ln q(Y)]; Y is data in regression."""
    value = _gaussian(data.n * state.b.size, state.psi, y_residual(state, data))
    if data.classification:
        logdet = float(data.weight @ np.log(state.Y_var).sum(axis=1))
        value += _entropy(logdet, data.n * state.b.size)
    return value


def latent_term(state: State, data: Data) -> float:
    """Return the term of the latent factors, E[ln p(Z|W, tau)] - E[ln q(Z)]."""
    value = _gaussian(data.n * state.n_factors, state.tau, z_residual(state, data))
    return value + _entropy(data.n * _logdet(state.Z_cov), data.n * state.n_factors)


def loadings_term(state: State) -> float:
    """Return the bound's term of the loadings, E[ln p(V|omega)] - E[ln q(V)].

    E[ln p(V|omega)] = sum_k (C/2)(<ln omega_k> - ln 2pi) - (1/2) <omega_k> sum_c <v_ck^2>.
    """
    C, omega, v2 = state.b.size, state.omega, np.diag(state.v_moment)
    value = float(0.5 * C * np.sum(omega.mean_log - LOG_2PI) - 0.5 * omega.mean @ v2)
    return value + _entropy(C * _logdet(state.V_cov), C * state.n_factors)


def intercept_term(state: State) -> float:
    """Return the term of the intercepts, E[ln p(b)] - E[ln q(b)]."""
    p0, C = INTERCEPT_PRECISION, state.b.size
    expected = 0.5 * C * (np.log(p0) - LOG_2PI) - 0.5 * p0 * (state.b @ state.b + C * state.b_var)
    return float(expected) + _entropy(C * float(np.log(state.b_var)), C)


def weights_term(view: ViewState) -> float:
    """Return the bound's term E[ln p(W|delta, gamma)] - E[ln q(W)] of one view.

    E[ln p(W|delta, gamma)] = -(KD/2) ln 2pi + (D/2) sum_k <ln delta_k> + (K/2) sum_d <ln gamma_d>
    - (1/2) sum_k <delta_k> sum_d <gamma_d><w_kd^2>, with the dropped among the D features.
    """
    dropped, delta, gamma = view.dropped, view.delta, view.gamma
    K, d = delta.rate.size, gamma.rate.size
    value = float(
        -0.5 * K * d * LOG_2PI
        + 0.5 * d * delta.mean_log.sum()
        + 0.5 * K * gamma.mean_log.sum()
        - 0.5 * delta.mean @ view.q.gamma_w2
    )
    # The same for the dropped features, by groups.
    logs = np.sum(delta.mean_log) - K * LOG_2PI
    value += 0.5 * float(dropped.size * logs + K * (dropped.count @ dropped.gamma.mean_log))
    value -= 0.5 * float(delta.mean @ dropped.w2)
    size = view.q.spectrum.S.size + view.q.spectrum.n_null + dropped.size
    return value + _entropy(float(np.sum(view.q.logdet + dropped.logdet)), K * size)


def precisions_term(state: State) -> float:
    """Return E[ln p] - E[ln q] of the precisions tau, psi and omega."""
    return sum(gamma_term(q, VAGUE) for q in (state.tau, state.psi, state.omega))


def ard_term(view: ViewState, data: Data) -> float:
    """E[ln p] - E[ln q] of delta and gamma of one view."""
    prior, dropped = data.gamma_prior, view.dropped
    selected = gamma_term(view.delta, VAGUE) + gamma_term(view.gamma, prior)
    return selected + float(dropped.count @ gamma_terms(dropped.gamma, prior))


def bound_terms(state: State, data: Data) -> dict[str, float]:
    """Return every term of the evidence lower bound by name; they add up to it."""
    terms = {
        "labels": labels_term(state, data),
        "outputs": outputs_term(state, data),
        "latent": latent_term(state, data),
        "loadings": loadings_term(state),
        "intercept": intercept_term(state),
        "precisions": precisions_term(state),
    }
    for m, view in enumerate(state.views):
        terms[f"weights_{m}"] = weights_term(view)
        terms[f"ard_{m}"] = ard_term(view, data)
    return terms


def bound(state: State, data: Data) -> float:
    """Return the bound L, the sum of all terms."""
    return float(sum(bound_terms(state, data).values()))


def _logdet(matrix: Array) -> float:
    return float(np.linalg.slogdet(matrix)[1])
