"""The lower bound L = E[ln p] - E[ln q], one function per term and their sum.

Departure from the paper: it writes the opposite sign, and its closed form drops terms. Here
every term is written for arbitrary posteriors, so the bound can be read between any two updates.
Rows enter with their sample weight, local entropies included.
"""

from __future__ import annotations

import numpy as np

from baldur.core.types import Array
from baldur.model.spike_slab import GammaPrior
from baldur.paper.latent import jaakkola_term, quadrature_term, y_residual, z_residual
from baldur.paper.priors import (
    LOG_2PI,
    GammaPosterior,
    gamma_term,
    gamma_terms,
    loading_prior_term,
    weight_prior_term,
)
from baldur.paper.state import Data, State, ViewState


def _gaussian(count: float, precision: GammaPosterior, residual: float) -> float:
    """E[ln N] of `count` scalars with a Gamma precision and expected squared residual."""
    log, mean = float(precision.mean_log[0]), float(precision.mean[0])
    return 0.5 * count * (log - LOG_2PI) - 0.5 * mean * residual


def _entropy(logdet: float, size: float) -> float:
    """Entropy of a Gaussian: (size/2) ln(2 pi e) + (1/2) ln |Sigma|."""
    return 0.5 * size * (LOG_2PI + 1.0) + 0.5 * logdet


def labels_term(state: State, data: Data) -> float:
    """E[ln p(T|Y)] (its quadratic bound or its quadrature); zero in regression."""
    if not data.classification:
        return 0.0
    if data.quadrature:
        value = quadrature_term(data.T, state.Y, state.Y_var)
    else:
        value = jaakkola_term(data.T, state.Y, state.Y_var, state.xi)
    return float(data.weight @ value.sum(axis=1))


def expected_y_residual(state: State, data: Data) -> float:
    """E sum_n |y_n - z_n V^T - b|^2 of the current posteriors."""
    return y_residual(
        state.Y,
        state.Y_var,
        state.Z,
        state.z_moment(data.weight),
        state.V,
        state.v_moment,
        state.b,
        state.b_var,
        data.weight,
    )


def expected_z_residual(state: State, data: Data) -> float:
    """E sum_n |z_n - sum_m x_n W^T|^2 of the current posteriors."""
    trace = np.sum([v.trace for v in state.views], axis=0)
    return z_residual(state.Z, state.Z_cov, state.explained, trace, data.weight)


def outputs_term(state: State, data: Data) -> float:
    """E[ln p(Y|Z, V, b, psi)] - E[ln q(Y)]; in regression Y is data and has no entropy."""
    value = _gaussian(data.n * state.b.size, state.psi, expected_y_residual(state, data))
    if data.classification:
        logdet = float(data.weight @ np.log(state.Y_var).sum(axis=1))
        value += _entropy(logdet, data.n * state.b.size)
    return value


def latent_term(state: State, data: Data) -> float:
    """Return the term of the latent factors, E[ln p(Z|W, tau)] - E[ln q(Z)]."""
    value = _gaussian(data.n * state.n_factors, state.tau, expected_z_residual(state, data))
    return value + _entropy(data.n * _logdet(state.Z_cov), data.n * state.n_factors)


def loadings_term(state: State) -> float:
    """Return the term of the loadings, E[ln p(V|omega)] - E[ln q(V)]."""
    C = state.b.size
    value = loading_prior_term(state.omega, C, np.diag(state.v_moment))
    return value + _entropy(C * _logdet(state.V_cov), C * state.n_factors)


def intercept_term(state: State, data: Data) -> float:
    """Return the term of the intercepts, E[ln p(b)] - E[ln q(b)]."""
    p0, C = data.priors.intercept_precision, state.b.size
    expected = 0.5 * C * (np.log(p0) - LOG_2PI) - 0.5 * p0 * (state.b @ state.b + C * state.b_var)
    return float(expected) + _entropy(C * float(np.log(state.b_var)), C)


def weights_term(view: ViewState) -> float:
    """E[ln p(W|delta, gamma)] - E[ln q(W)] of one view, dropped features included."""
    dropped, delta = view.dropped, view.delta
    K = delta.rate.size
    value = weight_prior_term(delta, view.gamma, view.gamma_w2)
    logs = np.sum(delta.mean_log) - K * LOG_2PI
    value += 0.5 * float(dropped.size * logs + K * (dropped.count @ dropped.gamma.mean_log))
    value -= 0.5 * float(delta.mean @ dropped.w2)
    size = view.q.spectrum.S.size + view.q.spectrum.n_null + dropped.size
    return value + _entropy(float(np.sum(view.q.logdet + dropped.logdet)), K * size)


def precisions_term(state: State, data: Data) -> float:
    """Return E[ln p] - E[ln q] of the precisions tau, psi and omega."""
    p = data.priors
    return (
        gamma_term(state.tau, p.tau)
        + gamma_term(state.psi, p.psi)
        + gamma_term(state.omega, p.omega)
    )


def ard_term(view: ViewState, data: Data) -> float:
    """E[ln p] - E[ln q] of delta and gamma of one view."""
    prior, dropped = data.priors.gamma, view.dropped
    selected = gamma_term(view.delta, data.priors.delta) + gamma_term(view.gamma, prior)
    return selected + float(dropped.count @ gamma_terms(dropped.gamma, prior))


def bound_terms(state: State, data: Data) -> dict[str, float]:
    """Return every term of the bound by name."""
    terms = {
        "labels": labels_term(state, data),
        "outputs": outputs_term(state, data),
        "latent": latent_term(state, data),
        "loadings": loadings_term(state),
        "intercept": intercept_term(state, data),
        "precisions": precisions_term(state, data),
    }
    for m, view in enumerate(state.views):
        terms[f"weights_{m}"] = weights_term(view)
        terms[f"ard_{m}"] = ard_term(view, data)
    return terms


def bound(state: State, data: Data) -> float:
    """Return the bound L, the sum of all terms."""
    return float(sum(bound_terms(state, data).values()))


def factor_constant(data: Data, n_factors: int, n_full: int) -> float:
    """Return the constant that makes bounds of `n_factors` and of `n_full` factors comparable.

    A dropped factor is counted as one whose weights and loadings follow their priors and whose
    precisions sit at one. It carries no data term, but vague Gamma priors charge about 14 nats
    for every delta and omega, and every gamma has a smaller shape with fewer factors; without
    this constant a drop would be paid for with those nats, D of them. Per view,

        D (kappa_gamma(n_full) - kappa_gamma(n_factors)) + (n_full - n_factors) kappa_delta,

    plus (n_full - n_factors) kappa_omega, where kappa = E[ln p] - E[ln q] of one precision at
    mean one together with its Gaussian's (size/2)(<ln g> - ln <g>).
    """
    p, gone = data.priors, n_full - n_factors
    value = gone * _kappa(p.omega, data.T.shape[1])
    for view in data.views:
        D = view.shape[1]
        value += gone * _kappa(p.delta, D)
        value += D * (_kappa(p.gamma, n_full) - _kappa(p.gamma, n_factors))
    return value


def _kappa(prior: GammaPrior, size: int) -> float:
    if np.isinf(prior.shape):
        return 0.0
    shape = prior.shape + 0.5 * size
    q = GammaPosterior(shape, np.array([shape]))
    return gamma_term(q, prior) + 0.5 * size * float(q.mean_log[0])


def _logdet(matrix: Array) -> float:
    return float(np.linalg.slogdet(matrix)[1])
