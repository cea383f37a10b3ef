"""q(W) of one view in sample space, from one eigendecomposition per gamma update.

With B a D x r basis of weight space such that B^T Lambda_gamma B = I and
B^T X^T diag(s) X B = diag(S), every factor's weights are w_k = B c_k plus, when the basis does
not span R^D, an independent part outside it that keeps its prior variance. All factors then share
B and S:

    precision of c_k   = tau S + delta_k
    <c_k>              = tau (X B)^T diag(s) R_k/(tau S + delta_k),    R = Z - sum_{m' != m} H_m'

The spectra at the end of this file build the basis, for primal and for dual variables. `s` are the
sample weights: a row with weight 2 counts exactly as two equal rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from baldur.core.types import Array, IntArray
from baldur.views.prepared_view import PreparedView

COLUMN_BLOCK = 4096
"""Columns read at once when a pass over all features is needed."""
HELD_BYTES = 1 << 29
"""Selected columns of a view are held in memory up to this size, as float64."""


class SelectedColumns:
    """A view that holds the columns last asked for by `hold`, and reads all others."""

    def __init__(self, view: PreparedView) -> None:
        self.view = view
        self.shape = view.shape
        self._place = np.full(view.shape[1], -1, dtype=np.int32)
        self._held = np.zeros((view.shape[0], 0))

    def hold(self, index: IntArray) -> None:
        """Hold the columns `index` in memory for later products, unless they are too many."""
        if (self._place[index] >= 0).all() or 8 * self.shape[0] * index.size > HELD_BYTES:
            return
        held = self.view.columns(index)
        self._place[:] = -1
        self._place[index] = np.arange(index.size)
        self._held = held

    def _find(self, index: IntArray) -> IntArray | None:
        """Return where the columns `index` are held, or None where one of them is not."""
        place: IntArray = self._place[index].astype(np.intp)
        return place if (place >= 0).all() else None

    def weighted_gram(self, s: Array) -> Array:
        """Return X diag(s) X^T, (N, N), for s >= 0, from the held columns where these suffice."""
        used = np.flatnonzero(s)
        place = self._find(used)
        if place is None:
            return self.view.weighted_gram(s)
        scaled = self._held[:, place] * np.sqrt(s[used])
        return scaled @ scaled.T

    def columns(self, idx: IntArray) -> Array:
        """Return the columns `idx` as a dense (N, len(idx)) array."""
        place = self._find(idx)
        return self.view.columns(idx) if place is None else self._held[:, place]


def blocks(size: int) -> Iterator[slice]:
    """Cut the positions from 0 to `size` into consecutive blocks."""
    for start in range(0, size, COLUMN_BLOCK):
        yield slice(start, min(start + COLUMN_BLOCK, size))


def column_statistics(view: SelectedColumns, weight: Array, A: Array) -> tuple[Array, Array]:
    """Return sum_n s_n x_nd^2, (D,), and X^T A, (D, k), from one pass over the columns."""
    D = view.shape[1]
    norms, scores = np.empty(D), np.empty((D, A.shape[1]))
    for block in blocks(D):
        X = view.columns(np.arange(D)[block])
        scores[block] = X.T @ A
        norms[block] = weight @ X**2
    return norms, scores


def apply(view: PreparedView, B: Array, index: IntArray) -> Array:
    """Return X[:, index] B, (N, k), reading one block of columns at a time."""
    out = np.zeros((view.shape[0], B.shape[1]))
    for block in blocks(index.size):
        out += view.columns(index[block]) @ B[block]
    return out


def quadratic(view: PreparedView, scale: Array, index: IntArray) -> Array:
    """Return sum_d x_nd^2 scale_d over the features `index`, (N,)."""
    out = np.zeros(view.shape[0])
    for block in blocks(index.size):
        out += view.columns(index[block]) ** 2 @ scale[block]
    return out


@dataclass(frozen=True)
class Spectrum:
    """A basis of weight space shared by all factors of a view."""

    index: IntArray  # (d,); The selected features, in order
    scores: Array  # (N, r); X B
    S: Array  # (r,); Eigenvalues of (X B)^T diag(s) (X B)
    n_null: int  # Dimensions of weight space outside the basis, where the prior stays as it is
    outside: float  # Trace of the prior-scaled Gram matrix that the basis leaves out
    logdet: float  # ln |Lambda^-1|
    basis: Array | None  # (d, r)
    left: Array  # (N, r); Used only when ``basis`` is None
    scale: Array  # (d,)
    null_scale: Array  # (d,)

    def full_basis(self, view: SelectedColumns) -> Array:
        """Return the basis B as one (d, r) array."""
        if self.basis is not None:
            return self.basis
        parts = [self.rows(view, block) for block in blocks(self.index.size)]
        return np.vstack(parts) if parts else np.zeros((0, self.S.size))

    def rows(self, view: SelectedColumns, where: slice) -> Array:
        """Rows ``where`` (positions in ``index``) of B."""
        if self.basis is not None:
            return np.ascontiguousarray(self.basis[where])
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
    gamma_w2: Array  # (K,); sum_d <gamma_d><w_kd^2>
    logdet: Array  # (K,); ``ln |Sigma_k|``


def update_weights(
    spectrum: Spectrum, delta: Array, tau: float, residual: Array, weight: Array
) -> Weights:
    """Return q(W) of one view, in the basis of its spectrum, given all other posteriors.

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


def weight_moments(view: SelectedColumns, q: Weights) -> tuple[Array, Array]:
    """Return <w_kd> and Var w_kd of the selected features, both (K, d), by a pass over them.

    <w_k> = B <c_k>, Var w_kd = sum_j B_dj^2/(tau S_j + delta_k)
    + (1/gamma_d - sum_j B_dj^2)/delta_k, the second part only where the basis leaves room.
    """
    spec = q.spectrum
    mean = np.empty((q.coef.shape[1], spec.index.size))
    var = np.empty_like(mean)
    for where in blocks(spec.index.size):
        B = spec.rows(view, where)
        mean[:, where] = (B @ q.coef).T
        B2 = B**2
        var[:, where] = (B2 @ q.coef_var).T
        if spec.n_null:
            # Rounding may leave a tiny negative remainder where the basis already fills R^D.
            rest = np.maximum(spec.null_scale[where] - B2.sum(axis=1), 0.0)
            var[:, where] += q.null_var[:, None] * rest
    return mean, var


DUAL_RANK_TOLERANCE = 1e-12
"""Directions of X~ Lambda^-1 X~^T below this share of the largest keep their prior variance."""
AUTO_RESIDUAL = 0.01
"""Share of the trace of the kernel that automatic relevance vectors may leave unexplained. In the
four cases of ``docs/understand/paper.md`` the AUC is then within 0.01 of that with all rows."""


def spectrum_dual(
    view: SelectedColumns,
    index: IntArray,
    gamma: Array,
    weight: Array,
    relevance: IntArray,
    norms: Array,
) -> Spectrum:
    """Return a basis B of the span of Lambda^-1 X~^T, where X~ are the rows `relevance` of X.

    B = Lambda^-1 X~^T E with E^T (X~ Lambda^-1 X~^T) E = I and (X B)^T diag(s) (X B) = S.

    Departure from the paper: it has W^T = X~^T A, without the prior variances Lambda^-1. Weights
    of that form cannot be sparse, for a row of X~ is not.

    Shapes: index (d,), gamma (d,), weight (N,), relevance (r,), norms (d,).
    """
    inverse = np.zeros(view.shape[1])
    inverse[index] = 1.0 / gamma
    cross = view.weighted_gram(inverse)[:, relevance]  # X Lambda^-1 X~^T
    size, P = eigh(cross[relevance])
    positive = size > DUAL_RANK_TOLERANCE * max(size.max(initial=0.0), np.finfo(float).tiny)
    T = P[:, positive] / np.sqrt(size[positive])
    scores = cross @ T
    S, Q = eigh(scores.T @ (weight[:, None] * scores))
    left = np.zeros((view.shape[0], S.size))
    left[relevance] = T @ Q
    S = np.maximum(S, 0.0)
    outside = max(float(norms @ (1.0 / gamma) - S.sum()), 0.0)
    return _sample_spectrum(index, gamma, scores @ Q, S, left, outside)


def _sample_spectrum(
    index: IntArray, gamma: Array, scores: Array, S: Array, left: Array, outside: float = 0.0
) -> Spectrum:
    """Return the spectrum of the basis B = Lambda^-1 X^T `left`; the prior holds outside of it."""
    return Spectrum(
        index=index,
        scores=scores,
        S=S,
        n_null=index.size - S.size,
        outside=outside,
        logdet=-float(np.log(gamma).sum()),
        basis=None,
        left=left,
        scale=1.0 / gamma,
        null_scale=1.0 / gamma,
    )


def choose_relevance_vectors(kernel: Array, most: int | None = None) -> IntArray:
    """Return the relevance vectors: rows that span a kernel, by pivoted Cholesky decomposition.

    Each step takes the row that the rows before it explain least, up to `most` rows.

    Shapes: kernel (N, N) of N rows; returns (r,).
    """
    unexplained = (
        np.diag(kernel).astype(float).copy()
    )  # what the chosen rows do not explain of each
    total = unexplained.sum()
    stop = (AUTO_RESIDUAL if most is None else DUAL_RANK_TOLERANCE) * total
    limit = kernel.shape[0] if most is None else most
    factor = np.zeros((kernel.shape[0], limit))
    chosen: list[int] = []
    while len(chosen) < limit and unexplained.sum() > stop:
        n, k = int(np.argmax(unexplained)), len(chosen)
        column = (kernel[:, n] - factor[:, :k] @ factor[n, :k]) / np.sqrt(unexplained[n])
        factor[:, k] = column
        unexplained = np.maximum(unexplained - column**2, 0.0)
        unexplained[n] = 0.0
        chosen.append(n)
    return np.sort(np.array(chosen, dtype=np.intp))


RANK_TOLERANCE = 1e-13
"""Eigenvalues of the Gram matrix below this share of the largest count as zero."""


def spectrum_features(
    view: SelectedColumns, index: IntArray, gamma: Array, weight: Array
) -> Spectrum:
    """Return the basis from the d x d side: Lambda^(-1/2) X^T diag(s) X Lambda^(-1/2) = Q S Q^T.

    Shapes: index (d,), gamma (d,), weight (N,).
    """
    root = 1.0 / np.sqrt(gamma)
    X = view.columns(index) * root
    S, Q = eigh(X.T @ (weight[:, None] * X))
    return Spectrum(
        index=index,
        scores=X @ Q,
        S=np.maximum(S, 0.0),
        n_null=0,
        outside=0.0,
        logdet=-float(np.log(gamma).sum()),
        basis=root[:, None] * Q,
        left=np.zeros((view.shape[0], 0)),
        scale=np.ones(index.size),
        null_scale=np.zeros(index.size),
    )


def spectrum_samples(
    view: SelectedColumns, index: IntArray, gamma: Array, weight: Array
) -> Spectrum:
    """Return the basis from the N x N side: diag(s)^(1/2) X Lambda^-1 X^T diag(s)^(1/2) = U S U^T.

    Same parameters as `spectrum_features`; never forms a d x d matrix.
    """
    inverse = np.zeros(view.shape[1])
    inverse[index] = 1.0 / gamma
    gram = view.weighted_gram(inverse)
    root = np.sqrt(weight)
    S, U = eigh(root[:, None] * gram * root)
    positive = RANK_TOLERANCE * max(S[-1], np.finfo(float).tiny) < S
    S, U = S[positive], U[:, positive]
    left = root[:, None] * U / np.sqrt(S)
    return _sample_spectrum(index, gamma, gram @ left, S, left)


def spectrum_primal(
    view: SelectedColumns, index: IntArray, gamma: Array, weight: Array
) -> Spectrum:
    """Return the basis of the exact posterior, from the smaller of the d x d and N x N sides."""
    if index.size > view.shape[0]:
        return spectrum_samples(view, index, gamma, weight)
    return spectrum_features(view, index, gamma, weight)
