"""Gaussian posteriors of the weights, many at a time, by two solvers that give the same answer.

One problem has weights with prior w_d ~ N(0, s_d), an intercept with prior N(0, s_0) that is one
more weight on a column of ones (s_0 = 0 leaves it out), and Gaussian sites (h, j) for the linear
predictor f = X w + intercept. All arrays have leading axes for the problems of a batch, written
(..., ) below: usually (F, C), inner folds by outputs. Rows that pad a fold have h = j = 0.

Outputs may share their site precisions and prior variances. Both then have an axis of outputs of
length 1, and so have all matrices and variances of the posterior: one factorisation serves all
outputs, which differ in j and in their means alone.

The *sample solver* costs O(n^3) and sees the features through the kernel:

    K     = X diag(s) X^T + s_0 11^T           (n x n)
    C^-1  = R^1/2 (I + R^1/2 K R^1/2)^-1 R^1/2,  R = diag(h)
    alpha = j - C^-1 K j                        (so <f> = K alpha)
    <w_d>   = s_d x_d^T alpha,    Var w_d = s_d - s_d^2 x_d^T C^-1 x_d

The *feature solver* costs O(D^3) and works on the weights themselves. Both have

    KL(q || prior) = (alpha^T K alpha - tr(C^-1 K) + ln|I + R^1/2 K R^1/2|)/2

Departure from the paper: its dual keeps an N-dimensional q(A) and scores it with a D-dimensional
prior, which has no maximum for D > N. Here the prior variance outside the span of the data is
kept, so the sample solver gives the exact posterior and not that of another model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg import blas, lapack

from baldur.core.types import Array, IntArray, Mask

INTERCEPT_VAR = 100.0
"""Prior variance of an intercept: ten logits, or ten standard deviations of an output."""
SMALL_PRECISION = 1e-3
"""Site precision below which the variance of a row is computed without dividing by it."""

SINGLE_FROM, MOST_SINGLE = 1 << 25, 1e6
"""Multiplications from which a product is computed in single precision, whose errors of 1e-6 are
far below what posteriors are known to; with fewer, the conversion takes as long as it saves. And
the trace of s^1/2 X^T R X s^1/2 above which it is not, as rounding could then reach the part of A
that the prior alone determines."""


@dataclass(frozen=True)
class SamplePosterior:
    """q(w) known through n x n matrices."""

    alpha: Array  # (..., n)
    half: Array  # (..., n, n); of lower triangles with half^T half = C^-1
    mean: Array  # mean, var: (..., n); moments of f on the training rows
    var: Array
    kl: Array  # KL(q || prior)

    @cached_property
    def inverse(self) -> Array:
        """C^-1, (..., n, n); computed when first asked for."""
        return np.matmul(self.half.swapaxes(-1, -2), self.half)

    def quadratics(self, X1: Array, h: Array) -> Array:
        """Return x_d^T C^-1 x_d of columns X1 (F, n, L), any columns, as an array (F, C, L)."""
        return triangle_squares(self.half, X1)

    def smooth(self, r: Array, K: Array | None) -> Array:
        """Return Cov(f) r = (K - K C^-1 K) r for r (F, C, n): how the means change with j."""
        assert K is not None
        along = matvec(K, r)
        inner = matvec(self.half.swapaxes(-1, -2), matvec(self.half, along))
        return along - matvec(K, inner)

    def with_linear(self, h: Array, j: Array, mean: Array) -> SamplePosterior:
        """Return the posterior at other linear terms j, given the means of f that they have."""
        alpha = j - h * mean
        kl = self.kl + 0.5 * ((alpha * mean).sum(axis=-1) - (self.alpha * self.mean).sum(axis=-1))
        return replace(self, alpha=alpha, mean=mean, kl=kl)


@dataclass(frozen=True)
class FeaturePosterior:
    """q(w) known through its mean and covariance, the intercept first."""

    X1: Array  # (F, n, 1 + L); the columns with one of ones before them
    gram: Array | None  # (F, C, 1 + L, 1 + L)
    alpha: Array  # (F, C, n); j - h <f>: the same vector as that of the sample solver
    w: Array  # (F, C, 1 + L)
    half: Array  # (F, C, 1 + L, 1 + L); with half^T half the covariance
    mean: Array  # (F, C, n) moments of f on the training rows; `var` is None where it was not
    var: Any
    kl: Array  # (F, C); KL(q || prior)

    @cached_property
    def weight_var(self) -> Array:
        """Variances of the weights, (F, C, 1 + L)."""
        return np.einsum("...de,...de->...e", self.half, self.half)

    def column_quadratics(self, h: Array) -> Array:
        """Return x_d^T C^-1 x_d = G_dd - (G Sigma G)_dd of its own columns, (F, C, 1 + L)."""
        if self.gram is None:
            return self.quadratics(self.X1, h)
        S = np.einsum("...dd->...d", self.gram) - triangle_squares(self.half, self.gram)
        return np.maximum(S, 0.0)

    def quadratics(self, X1: Array, h: Array) -> Array:
        """Return x_d^T C^-1 x_d of columns X1 (F, n, L), any columns, as an array (F, C, L)."""
        dtype = product_dtype(self.half.shape[-1], X1.shape[1])
        weighted = h[..., None].astype(dtype) * X1[:, None].astype(dtype)
        cross = np.matmul(self.X1[:, None].swapaxes(-1, -2).astype(dtype), weighted)
        diagonal = np.matmul(h, X1**2)
        return np.maximum(diagonal - triangle_squares(self.half, cross), 0.0)

    def weights_at(self, j: Array) -> Array:
        """Return Sigma X^T j, the mean weights at linear terms j, (F, C, 1 + L)."""
        projected = np.matmul(j, self.X1)
        return matvec(self.half.swapaxes(-1, -2), matvec(self.half, projected))

    def smooth(self, r: Array, K: Array | None) -> Array:
        """Return Cov(f) r = X Sigma X^T r for r (F, C, n): how the means change with j."""
        return np.asarray(np.matmul(self.weights_at(r), self.X1.swapaxes(-1, -2)))

    def with_linear(self, h: Array, j: Array, mean: Array) -> FeaturePosterior:
        """Return the posterior at other linear terms j, given the means of f that they have."""
        alpha = j - h * mean
        kl = self.kl + 0.5 * ((alpha * mean).sum(axis=-1) - (self.alpha * self.mean).sum(axis=-1))
        return replace(self, alpha=alpha, mean=mean, kl=kl, w=self.weights_at(j))

    def leading(self, X1: Array, half: Array, sites: Any, var: Array) -> FeaturePosterior:
        """Return the posterior on the first columns X1, without another factorisation.

        `half` is its factor of the covariance, `var` the variances of f. The divergence from the
        prior is not known, and set to zero.
        """
        none = np.zeros_like(self.alpha)
        empty = FeaturePosterior(X1, None, none, none, half, none, var, np.zeros_like(self.kl))
        mean = np.matmul(empty.weights_at(sites.j), X1.swapaxes(-1, -2))
        return empty.with_linear(sites.h, sites.j, mean)


def matvec(A: Array, x: Array) -> Array:
    """Return A x for every matrix (..., n, m) and vector (..., m).

    Outputs that share a matrix, (F, 1, n, m), are one product.
    """
    if A.ndim > 2 and A.shape[-3] == 1 and x.shape[-2] > 1:
        return np.asarray(np.matmul(x, A[..., 0, :, :].swapaxes(-1, -2)))
    return np.asarray(np.matmul(A, x[..., None])[..., 0])


def triangle_times(L: Array, X: Array) -> Array:
    """Return L X for one lower triangle L, at half the work of a full product."""
    multiply = blas.dtrmm if X.dtype == np.float64 else blas.strmm
    # X^T L^T, transposed: so rows in memory are the columns that BLAS expects.
    return np.asarray(multiply(1.0, L, X.T, side=1, lower=1, trans_a=1)).T


def triangle_squares(half: Array, X: Array) -> Array:
    """Return |half x|^2 of every column x of X, (F, C, L).

    Shapes: half (F, C, n, n), a lower triangle for each of F folds and C outputs; X (F, n, L), the
    same for all outputs, or (F, C, n, L).
    """
    F, C = half.shape[:2]
    out = np.empty((F, C, X.shape[-1]))
    dtype = product_dtype(half.shape[-1], X.shape[-1])
    for f in range(F):
        shared = np.ascontiguousarray(X[f], dtype=dtype) if X.ndim == 3 else None
        for c in range(C):
            cells = np.ascontiguousarray(X[f, c], dtype=dtype) if shared is None else shared
            part = triangle_times(half[f, c].astype(dtype, copy=False), cells)
            np.einsum("nl,nl->l", part, part, out=out[f, c])
    return out


def leading_squares(half: Array, X: Array, ends: IntArray) -> Array:
    """Return |half x|^2 of every column x of X over the first rows of half, (V, F, C, L).

    Those rows are the factor of a model with the first features alone, so this gives the variances
    of V nested models. Shapes: half (F, C, n, n), lower triangles; X (F, n, L); ends (V, F),
    numbers of rows, ascending over V.
    """
    F, C = half.shape[:2]
    out = np.zeros((len(ends), F, C, X.shape[-1]))
    dtype = product_dtype(half.shape[-1], X.shape[-1])
    for f in range(F):
        most = int(ends[-1, f])
        cells = np.ascontiguousarray(X[f, :most], dtype=dtype)
        for c in range(C):
            part = triangle_times(half[f, c, :most, :most].astype(dtype, copy=False), cells)
            for v, (start, end) in enumerate(zip([0, *ends[:-1, f]], ends[:, f], strict=True)):
                np.einsum("nl,nl->l", part[start:end], part[start:end], out=out[v, f, c])
    return np.asarray(np.cumsum(out, axis=0))


def product_dtype(side: int, columns: int) -> type[np.floating[Any]]:
    """Return the type in which a (side x side) matrix is multiplied with so many columns."""
    return np.float32 if side * side * columns >= SINGLE_FROM else np.float64


def inverse_cholesky(A: Array) -> tuple[Array, Array]:
    """Return the inverses of the lower Cholesky factors of A (..., n, n), and ln|A| (...).

    A is overwritten. LAPACK is called for each matrix: these are small and many, and the batched
    functions of numpy have no triangular inverse and take five times as long.
    """
    n = A.shape[-1]
    flat = A.reshape(-1, n, n)
    for matrix in flat:
        # A symmetric matrix in rows is the same in columns, so LAPACK works in place.
        _, failed = lapack.dpotrf(matrix.T, lower=1, clean=1, overwrite_a=1)
        if failed:
            raise linalg.LinAlgError("the matrix is not positive definite")
    log_det = 2.0 * np.log(np.einsum("bii->bi", flat)).sum(axis=1)
    for matrix in flat:  # the inverse of each factor takes its place
        lapack.dtrtri(matrix.T, lower=1, overwrite_c=1)
    return flat.reshape(A.shape).swapaxes(-1, -2), log_det.reshape(A.shape[:-2])


def _add_one_to_diagonal(A: Array) -> None:
    n = A.shape[-1]
    A.reshape(-1, n * n)[:, :: n + 1] += 1.0


def sample_posterior(K: Array, h: Array, j: Array) -> SamplePosterior:
    """Return q(w) from kernels K (..., n, n), intercept included, and sites h, j, each (..., n).

    With B = I + R^1/2 K R^1/2: Var f_n = (1 - (B^-1)_nn)/h_n and tr(C^-1 K) = n - tr B^-1. Rows
    of small h, where the first would lose digits, use Var f_n = K_nn - k_n^T C^-1 k_n.
    """
    root = np.sqrt(h)
    B = root[..., :, None] * K
    B *= root[..., None, :]
    _add_one_to_diagonal(B)
    half, log_det = inverse_cholesky(B)
    memory = half.swapaxes(-1, -2)  # rows of the triangle are columns in memory
    diagonal = np.einsum("...ji,...ji->...j", memory, memory)  # of B^-1
    memory *= root[..., :, None]  # in place: from here on half^T half is C^-1
    alpha = j - matvec(memory, matvec(half, matvec(K, j)))
    mean = matvec(K, alpha)
    with np.errstate(divide="ignore", invalid="ignore"):  # h may be 0
        var = (1.0 - diagonal) / h
    _mend_small(var, K, half, h, j)
    kl = 0.5 * ((alpha * mean).sum(axis=-1) - (h.shape[-1] - diagonal.sum(axis=-1)) + log_det)
    return SamplePosterior(alpha, half, mean, np.maximum(var, 0.0), kl)


def _mend_small(var: Array, K: Array, half: Array, h: Array, j: Array) -> None:
    """Recompute in place the variances of rows of small site precision; those of padding are 1."""
    small = h < SMALL_PRECISION
    no_term = j == 0.0
    padding = (h == 0.0) & (no_term if h.shape == j.shape else no_term.all(axis=1, keepdims=True))
    var[padding] = 1.0
    small &= ~padding
    K = np.broadcast_to(K, half.shape)
    for at in zip(*np.nonzero(small.any(axis=-1)), strict=True):
        rows = np.flatnonzero(small[at])
        part = half[at] @ K[at][:, rows]
        var[at][rows] = K[at].diagonal()[rows] - np.einsum("ij,ij->j", part, part)


def feature_posterior(
    X1: Array, s1: Array, h: Array, j: Array, *, rows: bool = True
) -> FeaturePosterior:
    """Return q(w) from columns X1 (F, n, 1 + L), prior variances s1 (F, C, 1 + L) and the sites.

    F folds, C outputs, n training rows, and L columns after one of ones. Variances of the training
    rows cost a third of it, and are left out unless `rows`.

    A zero variance is a weight that is left out; scaling by s^1/2 keeps the algebra finite there:
    Sigma = s^1/2 A^-1 s^1/2 with A = I + s^1/2 X^T R X s^1/2, and tr(C^-1 K) = L + 1 - tr A^-1.
    """
    used = np.asarray(s1.any(axis=(0, 1)))
    if not used.all():
        part = feature_posterior(X1[:, :, used], s1[..., used], h, j, rows=rows)
        return _spread(part, X1, used)
    dtype = product_dtype(X1.shape[2], X1.shape[1])
    root = np.sqrt(s1)
    weighted = X1[:, None].astype(dtype) * np.sqrt(h)[..., None].astype(dtype)
    if dtype is np.float32:
        strength = (s1 * np.einsum("fcnl,fcnl->fcl", weighted, weighted)).sum(axis=-1)
        if strength.max() > MOST_SINGLE:
            weighted = X1[:, None] * np.sqrt(h)[..., None]
    gram = np.matmul(weighted.swapaxes(-1, -2), weighted).astype(float, copy=False)
    A = root[..., :, None] * gram
    A *= root[..., None, :]
    _add_one_to_diagonal(A)
    half, log_det = inverse_cholesky(A)
    memory = half.swapaxes(-1, -2)
    trace = root.shape[-1] - np.einsum("...de,...de->...", memory, memory)  # tr(C^-1 K)
    memory *= root[..., :, None]  # in place: from here on half^T half is Sigma
    w = matvec(memory, matvec(half, np.matmul(j, X1)))
    mean = np.matmul(w, X1.swapaxes(-1, -2))
    alpha = j - h * mean
    kl = 0.5 * ((alpha * mean).sum(axis=-1) - trace + log_det)
    var = triangle_squares(half, X1.swapaxes(-1, -2)) if rows else None
    return FeaturePosterior(X1, gram, alpha, w, half, mean, var, kl)


def _spread(q: FeaturePosterior, X1: Array, used: Mask) -> FeaturePosterior:
    """Return the posterior on all columns X1 from that on those with a variance, `used`."""
    F, C = q.w.shape[:2]
    at, size = np.flatnonzero(used), len(used)
    w = np.zeros((F, C, size))
    w[..., at] = q.w
    half = np.zeros((F, q.half.shape[1], size, size))  # one for all outputs where they share it
    half[..., at[:, None], at] = q.half
    return replace(q, X1=X1, gram=None, w=w, half=half)


def weighted_gram(X: Array, s: Array) -> Array:
    """Return X diag(s) X^T for X (F, n, L) and s (F, C, L), as an array (F, C, n, n)."""
    scaled = X[:, None] * np.sqrt(s)[:, :, None, :]
    return np.asarray(np.matmul(scaled, scaled.swapaxes(-1, -2)))


def with_ones(X: Array) -> Array:
    """Return X (..., n, D) with a column of ones before it."""
    return np.concatenate([np.ones((*X.shape[:-1], 1)), X], axis=-1)
