"""q(W) of one view in sample space, from one eigendecomposition per gamma update.

With B a D x r basis of weight space such that B^T Lambda_gamma B = I and
B^T X^T diag(s) X B = diag(S), every factor's weights are w_k = B c_k plus, when the basis does
not span R^D, an independent part outside it that keeps its prior variance. All factors then share
B and S:

    precision of c_k   = tau S + delta_k
    <c_k>              = tau (X B)^T diag(s) R_k/(tau S + delta_k),    R = Z - sum_{m' != m} H_m'

`primal.py`, `dual.py` and `literal_dual.py` build the basis; nothing here depends on which of them
did. `s` are the sample weights: a row with weight 2 counts exactly as two equal rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from baldur.paper.meanfield.products import ViewProducts, blocks
from baldur.types import Array, IntArray


@dataclass(frozen=True)
class Spectrum:
    """A basis of weight space shared by all factors of a view."""

    index: IntArray  # (d,); eger array; The selected features, in order
    scores: Array  # (N, r); X B
    S: Array  # (r,); Eigenvalues of (X B)^T diag(s) (X B)
    n_null: int
    outside: float
    logdet: float
    basis: Array | None  # (d, r)
    left: Array  # (N, r); Used only when ``basis`` is None
    scale: Array  # (d,)
    null_scale: Array  # (d,)

    def full_basis(self, view: ViewProducts) -> Array:
        """Return the basis B as one (d, r) array."""
        if self.basis is not None:
            return self.basis
        parts = [self.rows(view, where) for where in blocks(np.arange(self.index.size))]
        return np.vstack(parts) if parts else np.zeros((0, self.S.size))

    def rows(self, view: ViewProducts, where: IntArray) -> Array:
        """Rows ``where`` (positions in ``index``) of B."""
        if self.basis is not None:
            return self.basis[where]
        return self.scale[where, None] * (view.columns(self.index[where]).T @ self.left)


@dataclass(frozen=True)
class Weights:
    """q(W) of one view: what later updates and the bound need, all without touching features."""

    spectrum: Spectrum
    coef: Array  # (r, K); <c_k>
    coef_var: Array  # (r, K); Variances 1/(tau S + delta_k) of c_k
    null_var: Array  # (K,)
    H: Array  # (N, K); X <W>^T
    trace: Array  # (K,); tr(X^T diag(s) X Sigma_k)
    gamma_w2: Array  # (K,); sum_d <gamma_d><w_kd^2> under the gamma the spectrum was built with
    logdet: Array  # (K,); ``ln |Sigma_k|``


def update_weights(
    spectrum: Spectrum, delta: Array, tau: float, residual: Array, weight: Array
) -> Weights:
    """Return q(W) or q(A) given all other posteriors.

    Sigma_k^-1 = <tau> X^T X + <delta_k> Lambda_<gamma>,
    <w_k> = <tau> Sigma_k X^T (<z_k> - sum_{m' != m} H_m'k); for the literal dual, X -> X X~^T
    and Lambda -> X~ Lambda X~^T. Departure from the paper: its table prints <alpha_k> where
    <delta_k> belongs.

    Shapes: delta (K,), residual (N, K), weight (N,).
    """
    S = spectrum.S[:, None]
    coef_var = 1.0 / (tau * S + delta)
    coef = tau * coef_var * (spectrum.scores.T @ (weight[:, None] * residual))
    n_null = spectrum.n_null
    return Weights(
        spectrum=spectrum,
        coef=coef,
        coef_var=coef_var,
        null_var=1.0 / delta,
        H=spectrum.scores @ coef,
        trace=np.sum(S * coef_var, axis=0) + spectrum.outside / delta,
        gamma_w2=np.sum(coef**2 + coef_var, axis=0) + n_null / delta,
        logdet=spectrum.logdet + np.sum(np.log(coef_var), axis=0) - n_null * np.log(delta),
    )


def weight_moments(view: ViewProducts, q: Weights) -> tuple[Array, Array]:
    """<w_kd> and Var w_kd of the selected features, both (K, d); the only pass over features.

    <w_k> = B <c_k>, Var w_kd = sum_j B_dj^2/(tau S_j + delta_k)
    + (1/gamma_d - sum_j B_dj^2)/delta_k, the second part only where the basis leaves room.
    """
    spec = q.spectrum
    mean = np.empty((q.coef.shape[1], spec.index.size))
    var = np.empty_like(mean)
    for where in blocks(np.arange(spec.index.size)):
        B = spec.rows(view, where)
        mean[:, where] = (B @ q.coef).T
        B2 = B**2
        var[:, where] = (B2 @ q.coef_var).T
        if spec.n_null:
            # Rounding may leave a tiny negative remainder where the basis already fills R^D.
            rest = np.maximum(spec.null_scale[where] - B2.sum(axis=1), 0.0)
            var[:, where] += q.null_var[:, None] * rest
    return mean, var
