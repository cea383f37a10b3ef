"""q(Z), q(tau), q(V), q(b) and q(psi): everything between the views and the outputs.

All functions take and return arrays. Shapes: Z, H (N, K); V (C, K); Y (N, C); b (C,);
`weight` (N,) are sample weights and n is their sum. Every covariance is shared: Z_cov by all
rows, V_cov by all outputs.
"""

from __future__ import annotations

import numpy as np

from baldur.core.types import Array, IntArray
from baldur.model.spike_slab import GammaPrior
from baldur.paper.priors import GammaPosterior


def update_z(
    H: Array, Y: Array, b: Array, V: Array, VtV: Array, tau: float, psi: float
) -> tuple[Array, Array]:
    """q(Z): Sigma_Z^-1 = <tau> I + <psi><V^T V>, <Z> = (<tau> H + <psi>(Y - b) V) Sigma_Z.

    Departure from the paper: b is ours, and <V^T V> = V^T V + C Sigma_V.
    """
    cov = np.linalg.inv(tau * np.eye(V.shape[1]) + psi * VtV)
    cov = 0.5 * (cov + cov.T)
    return (tau * H + psi * (Y - b) @ V) @ cov, cov


def update_v(
    Z: Array, ZtZ: Array, Y: Array, b: Array, omega: Array, psi: float, weight: Array
) -> tuple[Array, Array]:
    """q(V): Sigma_V^-1 = Lambda_<omega> + <psi><Z^T Z>, <V> = <psi>(Y - b)^T <Z> Sigma_V.

    Departure from the paper: b is ours, and <Z^T Z> = Z^T Z + N Sigma_Z.
    """
    cov = np.linalg.inv(np.diag(omega) + psi * ZtZ)
    cov = 0.5 * (cov + cov.T)
    return psi * (Y - b).T @ (weight[:, None] * Z) @ cov, cov


def update_b(
    Y: Array, Z: Array, V: Array, psi: float, precision: float, weight: Array
) -> tuple[Array, float]:
    """q(b): variance 1/(p0 + N <psi>), mean <psi> sum_n (y_n - z_n V^T) times the variance.

    Not in the paper, which has no intercept; p0 is the precision of its broad prior.
    """
    var = 1.0 / (precision + psi * weight.sum())
    return var * psi * (weight @ (Y - Z @ V.T)), float(var)


def z_residual(Z: Array, Z_cov: Array, H: Array, trace: Array, weight: Array) -> float:
    """Return the expected squared residual of Z, a number.

    ``E sum_n |z_n - sum_m x_n W^T|^2 = |Z - H|^2 + N tr Sigma_Z + sum_mk tr(X^T X Sigma_wk)``

    Departure from the paper: the last term, the second moments where m = m', is missing there.
    `trace` is summed over views, (K,).
    """
    fit = weight @ np.sum((Z - H) ** 2, axis=1)
    return float(fit + weight.sum() * np.trace(Z_cov) + trace.sum())


def y_residual(
    Y: Array,
    Y_var: Array,
    Z: Array,
    ZtZ: Array,
    V: Array,
    VtV: Array,
    b: Array,
    b_var: float,
    weight: Array,
) -> float:
    """Return the expected squared residual of Y, with the spread of Y, Z, V and b.

    ``E sum_n |y_n - z_n V^T - b|^2 = |Y - Z V^T - b|^2 + sum Var y + N C Var b
    + tr(<V^T V><Z^T Z>) - tr(V^T V Z^T Z)``
    """
    fit = weight @ np.sum((Y - Z @ V.T - b) ** 2 + Y_var, axis=1)
    spread = np.sum(VtV * ZtZ) - np.sum((V.T @ V) * (Z.T @ (weight[:, None] * Z)))
    return float(fit + weight.sum() * b.size * b_var + spread)


def update_precision(prior: GammaPrior, count: float, residual: float) -> GammaPosterior:
    """q(tau) or q(psi): shape a0 + count/2, rate b0 + residual/2.

    `count` is N K for tau, with the current K, and N C for psi.
    """
    rate = np.array([prior.rate + 0.5 * residual])
    return GammaPosterior(prior.shape + 0.5 * count, rate)


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


def update_y(T: Array, center: Array, xi: Array, psi: float) -> tuple[Array, Array]:
    """q(Y): 1/Var = <psi> + 2 lambda(xi), <y> = (t - 1/2 + <psi> <z V^T + b>) Var.

    Departure from the paper: it prints Lambda_xi, the diagonal of xi; it is that of lambda(xi).
    """
    var = 1.0 / (psi + 2.0 * jaakkola_lambda(xi))
    return (T - 0.5 + psi * center) * var, var


def update_xi(Y: Array, Y_var: Array) -> Array:
    """Return where the bound on ln sigmoid is tightest, xi = sqrt(<y>^2 + Var y)."""
    return np.sqrt(Y**2 + Y_var)


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
    """q(Y) under the exact likelihood, by one safeguarded Newton step on each (mean, variance).

    Raises E[ln p(t|y)] - (<psi>/2)((<y> - center)^2 + Var y) + (1/2) ln Var y. The step is
    Var -> 1/(<psi> + E[sigmoid (1 - sigmoid)]),
    <y> -> <y> + Var (E[t - sigmoid] - <psi>(<y> - center)); each entry keeps its old value
    when halving the step eight times does not raise its own objective. One step is enough,
    because each of the many cycles takes one.
    """
    shape = Y.shape
    t, centre, mean, var = (np.ravel(a) for a in (T, center, Y, Y_var))

    def objective(at: IntArray, mean: Array, var: Array) -> Array:
        prior = -0.5 * psi * ((mean - centre[at]) ** 2 + var) + 0.5 * np.log(var)
        return quadrature_term(t[at], mean, var) + prior

    p = sigmoid(mean[:, None] + np.sqrt(var)[:, None] * _NODES)
    expected = p @ _WEIGHTS
    target_var = 1.0 / (psi + expected - p**2 @ _WEIGHTS)
    shift = target_var * (t - expected - psi * (mean - centre))
    # Entries that have arrived are left alone, and only those on their way are tried.
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
        found = at[better]
        new_mean[found], new_var[found] = trial[better], trial_var[better]
        at, best = at[~better], best[~better]
        step *= 0.5
    return new_mean.reshape(shape), new_var.reshape(shape)
