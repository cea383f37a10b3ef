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

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import eigh

from baldur.core.types import Array, IntArray

COLUMN_BLOCK = 4096
"""Columns read at once when a pass over all features is needed."""
HELD_BYTES = 1 << 29
"""Selected columns of a view are held in memory up to this size, as float64."""


class ViewProducts(Protocol):
    """What a standardised N x D view must offer (`PreparedView` does)."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples N and of features D."""

    def weighted_gram(self, s: Array) -> Array:
        """Return X diag(s) X^T, (N, N)."""

    def columns(self, idx: Any) -> Array:
        """Return the columns `idx` as a dense (N, len(idx)) array."""


class DenseView:
    """A standardised N x D array in memory."""

    def __init__(self, X: Any) -> None:
        self.X = np.asarray(X, dtype=np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples N and of features D."""
        return self.X.shape[0], self.X.shape[1]

    def weighted_gram(self, s: Array) -> Array:
        """Return X diag(s) X^T over the columns where `s` is not zero."""
        used = np.flatnonzero(s)
        return _gram(self.X if used.size == s.size else self.X[:, used], s[used])

    def columns(self, idx: Any) -> Array:
        """Return the columns `idx` as an (N, len(idx)) array."""
        return self.X[:, idx]


class SelectedColumns:
    """A view that holds the columns last asked for by `hold`, and reads all others."""

    def __init__(self, view: ViewProducts) -> None:
        self.view = view
        self._place = np.full(view.shape[1], -1, dtype=np.int32)
        self._held = np.zeros((view.shape[0], 0))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples N and of features D."""
        return self.view.shape

    def hold(self, index: IntArray) -> None:
        """Read the columns `index` into memory, unless they are there or are too many."""
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
        """Return X diag(s) X^T, (N, N)."""
        used = np.flatnonzero(s)
        place = self._find(used)
        return self.view.weighted_gram(s) if place is None else _gram(self._held[:, place], s[used])

    def columns(self, idx: Any) -> Array:
        """Return the columns `idx` as a dense (N, len(idx)) array."""
        place = self._find(np.asarray(idx))
        return self.view.columns(idx) if place is None else self._held[:, place]


def _gram(X: Array, s: Array) -> Array:
    half = X * np.sqrt(s)
    return half @ half.T


def as_products(X: Any) -> ViewProducts:
    """Wrap an array; pass through an object that already offers the products."""
    if hasattr(X, "weighted_gram") and hasattr(X, "columns"):
        return X
    return DenseView(X)


def hold(view: ViewProducts, index: IntArray) -> None:
    """Store the columns `index` in memory if the view supports it."""
    if isinstance(view, SelectedColumns):
        view.hold(index)


def blocks(index: IntArray, size: int = COLUMN_BLOCK) -> list[IntArray]:
    """Cut an index array into consecutive blocks."""
    return [index[i : i + size] for i in range(0, index.size, size)]


def column_statistics(view: ViewProducts, weight: Array, A: Array) -> tuple[Array, Array]:
    """Return sum_n s_n x_nd^2, (D,), and X^T A, (D, k), from one pass over the columns."""
    norms, scores = np.empty(view.shape[1]), np.empty((view.shape[1], A.shape[1]))
    for block in blocks(np.arange(view.shape[1])):
        X = view.columns(block)
        scores[block] = X.T @ A
        norms[block] = weight @ X**2
    return norms, scores


def apply(view: ViewProducts, B: Array, index: IntArray) -> Array:
    """Return X[:, index] B, (N, k), reading one block of columns at a time."""
    out = np.zeros((view.shape[0], B.shape[1]))
    for i in range(0, index.size, COLUMN_BLOCK):
        out += view.columns(index[i : i + COLUMN_BLOCK]) @ B[i : i + COLUMN_BLOCK]
    return out


def quadratic(view: ViewProducts, scale: Array, index: IntArray) -> Array:
    """Return sum_d x_nd^2 scale_d over the features `index`, (N,)."""
    out = np.zeros(view.shape[0])
    for i in range(0, index.size, COLUMN_BLOCK):
        out += view.columns(index[i : i + COLUMN_BLOCK]) ** 2 @ scale[i : i + COLUMN_BLOCK]
    return out


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


DUAL_RANK_TOLERANCE = 1e-12
"""Directions of X~ Lambda^-1 X~^T below this share of the largest keep their prior variance."""
AUTO_RESIDUAL = 0.01
"""Share of the trace of the kernel that automatic relevance vectors may leave unexplained. In the
four cases of ``docs/understand/paper.md`` the AUC is then within 0.01 of that with all rows."""


def spectrum_dual(
    view: ViewProducts,
    index: IntArray,
    gamma: Array,
    weight: Array,
    relevance: IntArray,
    norms: Array,
) -> Spectrum:
    """Basis of the span of Lambda^-1 X~^T: E^T (X~ Lambda^-1 X~^T) E = I, (X B)^T (X B) = S.

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
    return Spectrum(
        index=index,
        scores=scores @ Q,
        S=S,
        n_null=index.size - S.size,
        outside=max(float(norms @ (1.0 / gamma) - S.sum()), 0.0),
        logdet=-float(np.log(gamma).sum()),
        basis=None,
        left=left,
        scale=1.0 / gamma,
        null_scale=1.0 / gamma,
    )


def choose_relevance_vectors(kernel: Array, most: int | None = None) -> IntArray:
    """Choose rows that span a kernel, by pivoted Cholesky decomposition.

    Each step takes the row that the rows before it explain least.

    Shapes: kernel (N, N); returns (r,).
    """
    left = np.diag(kernel).astype(float).copy()
    total = left.sum()
    stop = (AUTO_RESIDUAL if most is None else DUAL_RANK_TOLERANCE) * total
    limit = kernel.shape[0] if most is None else most
    factor = np.zeros((kernel.shape[0], limit))
    chosen: list[int] = []
    while len(chosen) < limit and left.sum() > stop:
        n, k = int(np.argmax(left)), len(chosen)
        column = (kernel[:, n] - factor[:, :k] @ factor[n, :k]) / np.sqrt(left[n])
        factor[:, k] = column
        left = np.maximum(left - column**2, 0.0)
        left[n] = 0.0
        chosen.append(n)
    return np.sort(np.array(chosen, dtype=np.intp))


RANK_TOLERANCE = 1e-13
"""Eigenvalues of the Gram matrix below this share of the largest count as zero."""


def spectrum_features(view: ViewProducts, index: IntArray, gamma: Array, weight: Array) -> Spectrum:
    """Basis from the d x d side: Lambda^(-1/2) X^T diag(s) X Lambda^(-1/2) = Q S Q^T.

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


def spectrum_samples(view: ViewProducts, index: IntArray, gamma: Array, weight: Array) -> Spectrum:
    """Basis from the N x N side: diag(s)^(1/2) X Lambda^-1 X^T diag(s)^(1/2) = U S U^T.

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
    return Spectrum(
        index=index,
        scores=gram @ left,
        S=S,
        n_null=index.size - S.size,
        outside=0.0,
        logdet=-float(np.log(gamma).sum()),
        basis=None,
        left=left,
        scale=1.0 / gamma,
        null_scale=1.0 / gamma,
    )


def spectrum_primal(view: ViewProducts, index: IntArray, gamma: Array, weight: Array) -> Spectrum:
    """Build the exact posterior's basis from whichever side is smaller."""
    if index.size > view.shape[0]:
        return spectrum_samples(view, index, gamma, weight)
    return spectrum_features(view, index, gamma, weight)
