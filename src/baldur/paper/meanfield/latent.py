"""q(Z), q(tau), q(V), q(b) and q(psi): everything between the views and the outputs.

All functions take and return arrays. Shapes: Z, H (N, K); V (C, K); Y (N, C); b (C,);
`weight` (N,) are sample weights and n is their sum. Every covariance is shared: Z_cov by all
rows, V_cov by all outputs.
"""

from __future__ import annotations

import numpy as np

from baldur.model.gamma_prior import GammaPrior
from baldur.paper.ard import GammaPosterior
from baldur.types import Array


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
