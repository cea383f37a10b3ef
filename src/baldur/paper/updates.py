"""One function per update of the state; each raises the bound or leaves it where it was.

Updates of the whole model take (state, data); updates of one view take (state, data, m).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from baldur.core.types import Array, Mask
from baldur.paper import latent, priors
from baldur.paper.bound import expected_y_residual, expected_z_residual
from baldur.paper.latent import update_xi, update_y, update_y_quadrature
from baldur.paper.priors import GammaPosterior
from baldur.paper.state import Data, State, dropped_delta, make_dropped
from baldur.paper.weights import (
    Spectrum,
    hold,
    spectrum_dual,
    spectrum_primal,
    update_weights,
    weight_moments,
)


def _mean(q: GammaPosterior) -> float:
    return float(q.mean[0])


def build_spectrum(data: Data, m: int, gamma: Array, selected: Mask) -> Spectrum:
    """Make the one eigendecomposition of view `m` for <gamma> (d,) of the selected features."""
    index = np.flatnonzero(selected)
    view, relevance = data.views[m], data.relevance[m]
    hold(view, index)
    # As many relevance vectors as rows or features span all weights: the posterior is exact.
    if data.spaces[m] == "dual" and relevance.size < min(index.size, view.shape[0]):
        norms = data.norms[m][index]
        return spectrum_dual(view, index, gamma, data.weight, relevance, norms)
    return spectrum_primal(view, index, gamma, data.weight)


def step_w(state: State, data: Data, m: int) -> State:
    """Update q(W^(m)) or q(A^(m)), see `weights.update_weights`."""
    view = state.views[m]
    spectrum = view.q.spectrum
    if view.stale:
        spectrum = build_spectrum(data, m, view.gamma.mean, view.selected)
    residual = state.Z - (state.explained - view.q.H)
    q = update_weights(spectrum, view.delta.mean, _mean(state.tau), residual, data.weight)
    return state.with_view(m, replace(view, q=q, gamma_w2=q.gamma_w2, stale=False))


def step_delta(state: State, data: Data, m: int) -> State:
    """Update q(delta^(m)), jointly with q(w) of the dropped features.

    Shape a0 + D/2, rate_k = b0 + (1/2) sum_d <gamma_d><w_kd^2>, see `priors.update_delta` and
    `dropped.dropped_delta`.
    """
    view, prior = state.views[m], data.priors.delta
    dropped, tau = view.dropped, _mean(state.tau)
    if not dropped.size:
        delta = priors.update_delta(prior, view.selected.size, view.gamma_w2)
        return state.with_view(m, replace(view, delta=delta))
    n_selected = view.selected.size - dropped.size
    mean = dropped_delta(prior, n_selected, view.gamma_w2, dropped, tau)
    shape = prior.shape + 0.5 * view.selected.size
    delta = GammaPosterior(shape, shape / mean)
    return state.with_view(m, replace(view, delta=delta, dropped=dropped.at(mean, tau)))


def step_gamma(state: State, data: Data, m: int) -> State:
    """q(gamma^(m)) of the selected features; the only step whose cost grows with them.

    Shape a0 + K/2, rate_d = b0 + (1/2) sum_k <delta_k><w_kd^2>, see `priors.update_gamma`.
    """
    view, prior = state.views[m], data.priors.gamma
    if np.isinf(prior.shape):
        return state
    mean, var = weight_moments(data.views[m], view.q)
    w2 = mean**2 + var
    gamma = priors.update_gamma(prior, state.n_factors, view.delta.mean @ w2)
    return state.with_view(m, replace(view, gamma=gamma, gamma_w2=w2 @ gamma.mean, stale=True))


def step_dropped(state: State, data: Data, m: int) -> State:
    """q(gamma_d) and q(w_kd) of the dropped features together, see `dropped`."""
    view = state.views[m]
    if not view.dropped.size:
        return state
    made = make_dropped(
        data.priors.gamma, data.groups[m], view.dropped.count, view.delta.mean, _mean(state.tau)
    )
    return state.with_view(m, replace(view, dropped=made))


def step_z(state: State, data: Data) -> State:
    """Update q(Z) of the latent factors, see `latent.update_z`."""
    tau, psi = _mean(state.tau), _mean(state.psi)
    Z, cov = latent.update_z(state.explained, state.Y, state.b, state.V, state.v_moment, tau, psi)
    return replace(state, Z=Z, Z_cov=cov)


def step_tau(state: State, data: Data) -> State:
    """Update q(tau), see `latent.update_precision`; N K counts the current factors."""
    residual = expected_z_residual(state, data)
    tau = latent.update_precision(data.priors.tau, data.n * state.n_factors, residual)
    return replace(state, tau=tau)


def step_v(state: State, data: Data) -> State:
    """Update q(V) of the loadings, see `latent.update_v`."""
    V, cov = latent.update_v(
        state.Z,
        state.z_moment(data.weight),
        state.Y,
        state.b,
        state.omega.mean,
        _mean(state.psi),
        data.weight,
    )
    return replace(state, V=V, V_cov=cov)


def step_omega(state: State, data: Data) -> State:
    """Update q(omega) of the loading precisions, see `priors.update_omega`."""
    omega = priors.update_omega(data.priors.omega, state.b.size, np.diag(state.v_moment))
    return replace(state, omega=omega)


def step_b(state: State, data: Data) -> State:
    """Update q(b) of the intercepts, see `latent.update_b`."""
    precision = data.priors.intercept_precision
    b, var = latent.update_b(state.Y, state.Z, state.V, _mean(state.psi), precision, data.weight)
    return replace(state, b=b, b_var=var)


def step_psi(state: State, data: Data) -> State:
    """Update q(psi) of the noise precision, see `latent.update_precision`."""
    residual = expected_y_residual(state, data)
    psi = latent.update_precision(data.priors.psi, data.n * state.b.size, residual)
    return replace(state, psi=psi)


def step_y(state: State, data: Data) -> State:
    """Update q(Y), see `labels`; in regression the state is returned unchanged."""
    if not data.classification:
        return state
    center, psi = state.Z @ state.V.T + state.b, _mean(state.psi)
    if data.quadrature:
        Y, var = update_y_quadrature(data.T, center, state.Y, state.Y_var, psi)
    else:
        Y, var = update_y(data.T, center, state.xi, psi)
    return replace(state, Y=Y, Y_var=var)


def step_xi(state: State, data: Data) -> State:
    """Update xi, see `latent.update_xi`; in regression the state is returned unchanged."""
    if not data.classification:
        return state
    return replace(state, xi=update_xi(state.Y, state.Y_var))


VIEW_UPDATES: dict[str, Callable[[State, Data, int], State]] = {
    "W": step_w,
    "delta": step_delta,
    "gamma": step_gamma,
    "dropped": step_dropped,
}
MODEL_UPDATES: dict[str, Callable[[State, Data], State]] = {
    "Z": step_z,
    "tau": step_tau,
    "V": step_v,
    "omega": step_omega,
    "b": step_b,
    "psi": step_psi,
    "Y": step_y,
    "xi": step_xi,
}


def inner_cycle(state: State, data: Data) -> State:
    """Update everything except gamma once; the cost does not depend on the number of features."""
    for m in data.order:
        state = step_delta(step_w(state, data, m), data, m)
    for update in MODEL_UPDATES.values():
        state = update(state, data)
    return state


def gamma_pass(state: State, data: Data) -> State:
    """Update gamma of every view, of selected and dropped features."""
    for m in data.order:
        state = step_dropped(step_gamma(state, data, m), data, m)
    return state
