"""One function per update of the state; each raises the bound or leaves it where it was.

Updates of the whole model take (state, data); updates of one view take (state, data, m). Shapes:
Z, H (N, K); V (C, K); Y (N, C); b (C,). Sample weights count as N rows in all, and every
covariance is shared: Z_cov by all rows, V_cov by all outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np

from baldur.core.types import Array, IntArray, Mask
from baldur.paper.state import (
    INTERCEPT_PRECISION,
    VAGUE,
    Data,
    State,
    dropped_delta,
    make_dropped,
)
from baldur.paper.weights import (
    Spectrum,
    spectrum_dual,
    spectrum_primal,
    update_weights,
    weight_moments,
)


def build_spectrum(data: Data, m: int, gamma: Array, selected: Mask) -> Spectrum:
    """Return the basis in which q(w_k) of every factor of view `m` has a diagonal covariance."""
    index = np.flatnonzero(selected)
    view, relevance = data.views[m], data.relevance[m]
    view.hold(index)
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
    residual = state.Z - (state.explained - view.q.H)  # what the other views leave
    q = update_weights(spectrum, view.delta.mean, state.mean_tau, residual, data.weight)
    return state.with_view(m, replace(view, q=q, stale=False))


def step_delta(state: State, data: Data, m: int) -> State:
    """Update q(delta^(m)), jointly with q(w) of the dropped features.

    Shape a0 + D/2, rate_k = b0 + (1/2) sum_d <gamma_d><w_kd^2>; with dropped features, the mean
    is the root that `state.dropped_delta` finds.
    """
    view = state.views[m]
    dropped, tau, D = view.dropped, state.mean_tau, view.selected.size
    if not dropped.size:
        return state.with_view(m, replace(view, delta=VAGUE.posterior(D, view.q.gamma_w2)))
    mean = dropped_delta(D - dropped.size, view.q.gamma_w2, dropped, tau)
    delta = VAGUE.posterior_of_mean(D, mean)
    return state.with_view(m, replace(view, delta=delta, dropped=dropped.at(mean, tau)))


def step_gamma(state: State, data: Data, m: int) -> State:
    """Update q(gamma^(m)) of the selected features; the only step whose cost grows with them.

    Shape a0 + K/2, rate_d = b0 + (1/2) sum_k <delta_k><w_kd^2>.
    """
    view, prior = state.views[m], data.gamma_prior
    if np.isinf(prior.shape):
        return state
    mean, var = weight_moments(data.views[m], view.q)
    w2 = mean**2 + var
    gamma = prior.posterior(state.n_factors, view.delta.mean @ w2)
    q = replace(view.q, gamma_w2=w2 @ gamma.mean)
    return state.with_view(m, replace(view, q=q, gamma=gamma, stale=True))


def step_dropped(state: State, data: Data, m: int) -> State:
    """Update q(gamma_d) and q(w_kd) of the dropped features together, see `state.make_dropped`."""
    view = state.views[m]
    if not view.dropped.size:
        return state
    dropped = make_dropped(data, m, view.dropped.count, view.delta.mean, state.mean_tau)
    return state.with_view(m, replace(view, dropped=dropped))


def step_z(state: State, data: Data) -> State:
    """Update q(Z): Sigma_Z^-1 = <tau> I + <psi><V^T V>, <Z> = (<tau> H + <psi>(Y - b) V) Sigma_Z.

    Departure from the paper: b is ours, and <V^T V> = V^T V + C Sigma_V.
    """
    V, tau, psi = state.V, state.mean_tau, state.mean_psi
    cov = np.linalg.inv(tau * np.eye(V.shape[1]) + psi * state.v_moment)
    cov = 0.5 * (cov + cov.T)
    Z = (tau * state.explained + psi * (state.Y - state.b) @ V) @ cov
    return replace(state, Z=Z, Z_cov=cov)


def z_residual(state: State, data: Data) -> float:
    """Return the expected squared residual of Z, a number.

    ``E sum_n |z_n - sum_m x_n W^T|^2 = |Z - H|^2 + N tr Sigma_Z + sum_mk tr(X^T X Sigma_wk)``

    Departure from the paper: the last term, the second moments where m = m', is missing there.
    """
    trace = np.sum([view.q.trace + view.dropped.trace for view in state.views], axis=0)
    fit = data.weight @ np.sum((state.Z - state.explained) ** 2, axis=1)
    return float(fit + data.n * np.trace(state.Z_cov) + trace.sum())


def step_tau(state: State, data: Data) -> State:
    """q(tau): shape a0 + N K/2 with the current K, rate b0 + residual/2, see `z_residual`."""
    residual = np.array([z_residual(state, data)])
    return replace(state, tau=VAGUE.posterior(data.n * state.n_factors, residual))


def step_v(state: State, data: Data) -> State:
    """Update q(V): Sigma_V^-1 = Lambda_<omega> + <psi><Z^T Z>, <V> = <psi>(Y - b)^T <Z> Sigma_V.

    Departure from the paper: b is ours, and <Z^T Z> = Z^T Z + N Sigma_Z.
    """
    psi = state.mean_psi
    cov = np.linalg.inv(np.diag(state.omega.mean) + psi * state.z_moment(data.weight))
    cov = 0.5 * (cov + cov.T)
    V = psi * (state.Y - state.b).T @ (data.weight[:, None] * state.Z) @ cov
    return replace(state, V=V, V_cov=cov)


def step_omega(state: State, data: Data) -> State:
    """q(omega): shape a0 + C/2, rate_k = b0 + (1/2) sum_c <v_ck^2>."""
    return replace(state, omega=VAGUE.posterior(state.b.size, np.diag(state.v_moment)))


def step_b(state: State, data: Data) -> State:
    """Update q(b): variance 1/(p0 + N <psi>), mean <psi> sum_n (y_n - z_n V^T) times the variance.

    Not in the paper, which has no intercept; p0 is the precision of its broad prior.
    """
    psi = state.mean_psi
    var = 1.0 / (INTERCEPT_PRECISION + psi * data.n)
    b = var * psi * (data.weight @ (state.Y - state.Z @ state.V.T))
    return replace(state, b=b, b_var=float(var))


def y_residual(state: State, data: Data) -> float:
    """Return the expected squared residual of Y, with the spread of Y, Z, V and b.

    ``E sum_n |y_n - z_n V^T - b|^2 = |Y - Z V^T - b|^2 + sum Var y + N C Var b
    + tr(<V^T V><Z^T Z>) - tr(V^T V Z^T Z)``
    """
    Y, Z, V, b, weight = state.Y, state.Z, state.V, state.b, data.weight
    fit = weight @ np.sum((Y - Z @ V.T - b) ** 2 + state.Y_var, axis=1)
    spread = np.sum(state.v_moment * state.z_moment(weight))
    spread = spread - np.sum((V.T @ V) * (Z.T @ (weight[:, None] * Z)))
    return float(fit + data.n * b.size * state.b_var + spread)


def step_psi(state: State, data: Data) -> State:
    """q(psi): shape a0 + N C/2, rate b0 + residual/2, see `y_residual`."""
    residual = np.array([y_residual(state, data)])
    return replace(state, psi=VAGUE.posterior(data.n * state.b.size, residual))


def step_y(state: State, data: Data) -> State:
    """Update q(Y): 1/Var = <psi> + 2 lambda(xi), <y> = (t - 1/2 + <psi> <z V^T + b>) Var.

    In regression the state is returned unchanged. Departure from the paper: it prints Lambda_xi,
    the diagonal of xi; it is that of lambda(xi).
    """
    if not data.classification:
        return state
    center, psi = state.Z @ state.V.T + state.b, state.mean_psi
    if data.quadrature:
        Y, var = update_y_quadrature(data.T, center, state.Y, state.Y_var, psi)
    else:
        var = 1.0 / (psi + 2.0 * jaakkola_lambda(state.xi))
        Y = (data.T - 0.5 + psi * center) * var
    return replace(state, Y=Y, Y_var=var)


def step_xi(state: State, data: Data) -> State:
    """xi = sqrt(<y>^2 + Var y), where the bound on ln sigmoid is tightest; not in regression."""
    if not data.classification:
        return state
    return replace(state, xi=np.sqrt(state.Y**2 + state.Y_var))


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


def inner_cycle(state: State, data: Data, held: Collection[str] = ()) -> State:
    """Update everything except gamma once; the cost does not depend on the number of features.

    Updates of the model named in `held` are left out.
    """
    for m in data.order:
        state = step_delta(step_w(state, data, m), data, m)
    for name, update in MODEL_UPDATES.items():
        if name not in held:
            state = update(state, data)
    return state


def gamma_pass(state: State, data: Data) -> State:
    """Update gamma of every view, of selected and dropped features."""
    for m in data.order:
        state = step_dropped(step_gamma(state, data, m), data, m)
    return state


_NODES, _RAW_WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
_WEIGHTS = _RAW_WEIGHTS / _RAW_WEIGHTS.sum()
# A step this small, in standard deviations, gains less than 1e-12 nats.
_STILL = 1e-6


def sigmoid(x: Array) -> Array:
    """Return 1/(1 + e^-x) without overflow; several times faster than `scipy.special.expit`."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def log_sigmoid(x: Array) -> Array:
    """Return ln(1/(1 + e^-x)); eight times faster than `scipy.special.log_expit`."""
    return np.minimum(x, 0.0) - np.log1p(np.exp(-np.abs(x)))


def jaakkola_lambda(xi: Array) -> Array:
    """lambda(xi) = tanh(xi/2)/(4 xi), with its limit 1/8 at zero."""
    safe = np.maximum(np.abs(xi), 1e-6)
    return np.tanh(0.5 * safe) / (4.0 * safe)


def jaakkola_term(T: Array, Y: Array, Y_var: Array, xi: Array) -> Array:
    """E[ln h(y, xi)] = ln sigmoid(xi) + <y> t - (<y> + xi)/2 - lambda(xi)(<y^2> - xi^2)."""
    return log_sigmoid(xi) + Y * T - 0.5 * (Y + xi) - jaakkola_lambda(xi) * (Y**2 + Y_var - xi**2)


def quadrature_term(T: Array, Y: Array, Y_var: Array) -> Array:
    """E[ln p(t | y)] = <y>(t - 1) + E[ln sigmoid(y)], 32-point Gauss-Hermite."""
    nodes = Y[..., None] + np.sqrt(Y_var)[..., None] * _NODES
    return Y * (T - 1.0) + log_sigmoid(nodes) @ _WEIGHTS


def update_y_quadrature(
    T: Array, center: Array, Y: Array, Y_var: Array, psi: float
) -> tuple[Array, Array]:
    """Update q(Y) under the exact likelihood, by one safeguarded Newton step on each entry.

    It raises E[ln p(t|y)] - (<psi>/2)((<y> - center)^2 + Var y) + (1/2) ln Var y. The step is
    Var -> 1/(<psi> + E[sigmoid (1 - sigmoid)]),
    <y> -> <y> + Var (E[t - sigmoid] - <psi>(<y> - center)); each entry keeps its old value
    when halving the step eight times does not raise its own objective. One step is enough,
    because each of the many cycles takes one.
    """
    shape = Y.shape
    t, centre, mean, var = (np.ravel(a) for a in (T, center, Y, Y_var))

    def objective(at: IntArray, mean: Array, var: Array) -> Array:
        """Return the part of the bound that depends on these entries, each by itself."""
        prior = -0.5 * psi * ((mean - centre[at]) ** 2 + var) + 0.5 * np.log(var)
        return quadrature_term(t[at], mean, var) + prior

    p = sigmoid(mean[:, None] + np.sqrt(var)[:, None] * _NODES)
    expected = p @ _WEIGHTS
    target_var = 1.0 / (psi + expected - p**2 @ _WEIGHTS)
    shift = target_var * (t - expected - psi * (mean - centre))
    # Only entries that have not converged are tried; `at` are those without a better value so far.
    moves = (np.abs(shift) > _STILL * np.sqrt(var)) | (np.abs(target_var - var) > _STILL * var)
    at = np.flatnonzero(moves)
    new_mean, new_var = mean.copy(), var.copy()
    best = objective(at, mean[at], var[at])
    step = 1.0
    for _ in range(8):
        if not at.size:
            break
        trial = mean[at] + step * shift[at]
        trial_var = var[at] ** (1.0 - step) * target_var[at] ** step
        better = objective(at, trial, trial_var) > best
        risen = at[better]
        new_mean[risen], new_var[risen] = trial[better], trial_var[better]
        at, best = at[~better], best[~better]
        step *= 0.5
    return new_mean.reshape(shape), new_var.reshape(shape)
