"""q(Y) and xi: the logistic outputs, by the quadratic bound or by quadrature.

Shapes: T, Y, Y_var, xi and ``center`` are (N, C); ``center`` is <z_n V^T + b>.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

Array = NDArray[np.float64]

_NODES, _RAW_WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
_WEIGHTS = _RAW_WEIGHTS / _RAW_WEIGHTS.sum()
# A step this small, in standard deviations, changes the objective by less than its rounding.
_STILL = 1e-8


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
    """Where the bound on ln sigmoid is tightest: xi = sqrt(<y>^2 + Var y)."""
    return np.sqrt(Y**2 + Y_var)


def jaakkola_term(T: Array, Y: Array, Y_var: Array, xi: Array) -> Array:
    """E[ln h(y, xi)] = ln sigmoid(xi) + <y> t - (<y> + xi)/2 - lambda(xi)(<y^2> - xi^2)."""
    return log_expit(xi) + Y * T - 0.5 * (Y + xi) - jaakkola_lambda(xi) * (Y**2 + Y_var - xi**2)


def quadrature_term(T: Array, Y: Array, Y_var: Array) -> Array:
    """E[ln p(t | y)] = <y>(t - 1) + E[ln sigmoid(y)], 32-point Gauss-Hermite."""
    nodes = Y[..., None] + np.sqrt(Y_var)[..., None] * _NODES
    return Y * (T - 1.0) + log_expit(nodes) @ _WEIGHTS


def update_y_quadrature(
    T: Array, center: Array, Y: Array, Y_var: Array, psi: float, n_steps: int = 3
) -> tuple[Array, Array]:
    """q(Y) under the exact likelihood, by safeguarded Newton steps on each (mean, variance).

    Maximises E[ln p(t|y)] - (<psi>/2)((<y> - center)^2 + Var y) + (1/2) ln Var y. Steps:
    Var -> 1/(<psi> + E[sigmoid (1 - sigmoid)]),
    <y> -> <y> + Var (E[t - sigmoid] - <psi>(<y> - center)); each entry keeps its old value
    when halving the step eight times does not raise its own objective.
    """
    shape = Y.shape
    t, centre, mean, var = (np.ravel(a) for a in (T, center, Y, Y_var))

    def objective(at: NDArray[np.intp], mean: Array, var: Array) -> Array:
        prior = -0.5 * psi * ((mean - centre[at]) ** 2 + var) + 0.5 * np.log(var)
        return quadrature_term(t[at], mean, var) + prior

    best = objective(np.arange(len(mean)), mean, var)
    for _ in range(n_steps):
        p = expit(mean[:, None] + np.sqrt(var)[:, None] * _NODES)
        target_var = 1.0 / (psi + (p * (1.0 - p)) @ _WEIGHTS)
        shift = target_var * (t - p @ _WEIGHTS - psi * (mean - centre))
        # Entries that have arrived are left alone, and only those on their way are tried.
        moves = (np.abs(shift) > _STILL * np.sqrt(var)) | (np.abs(target_var - var) > _STILL * var)
        at = np.flatnonzero(moves)
        new_mean, new_var = mean.copy(), var.copy()
        step = 1.0
        for _ in range(8):
            if not at.size:
                break
            trial = mean[at] + step * shift[at]
            trial_var = var[at] ** (1.0 - step) * target_var[at] ** step
            value = objective(at, trial, trial_var)
            better = value > best[at]
            found = at[better]
            new_mean[found], new_var[found] = trial[better], trial_var[better]
            best[found] = value[better]
            at = at[~better]
            step *= 0.5
        mean, var = new_mean, new_var
    return mean.reshape(shape), var.reshape(shape)
