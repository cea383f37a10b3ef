"""q(w_k): the weights of all views, jointly Gaussian, from the sample side or the feature side.

One factor with prior w_d ~ N(0, s_d), an intercept beta ~ N(0, s_0) that is one more weight on a
column of ones (s_0 = 0 leaves it out), and Gaussian sites (h, j) for f = X w + beta. Both sides
give the same posterior; the sample side costs O(N^3), the feature side O(D^3).

    K     = X diag(s) X^T + s_0 11^T           (N x N)
    C^-1  = R^1/2 (I + R^1/2 K R^1/2)^-1 R^1/2,  R = diag(h)
    alpha = j - C^-1 K j                        (so <f> = K alpha)
    <w_d>   = s_d x_d^T alpha,    Var w_d = s_d - s_d^2 x_d^T C^-1 x_d

    KL(q || prior) = (alpha^T K alpha - tr(C^-1 K) + ln|I + R^1/2 K R^1/2|)/2

Departure from the paper: its dual keeps an N-dimensional q(A) and scores it with a D-dimensional
prior, which has no maximum for D > N. Here the prior variance outside the span of the data is
kept, so the sample side is the exact posterior and not another model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg import blas, lapack

Array = NDArray[np.float64]

INTERCEPT_VAR = 100.0
"""Prior variance of an intercept: ten logits, or ten standard deviations of an output."""
SMALL_PRECISION = 1e-3
"""Site precision below which the variance of a row is computed without dividing by it."""


class Own(NamedTuple):
    """Some of the columns: their places among all (L,), cells (N, L) and prior variances (L,)."""

    at: NDArray[np.intp]
    X: Array
    s: Array


Kernel = Callable[[], Array]


@dataclass(frozen=True)
class SampleSide:
    """q(w_k) known through N x N matrices.

    Attributes
    ----------
    alpha : (N,) array
    half : (N, N) lower triangle with half^T half = C^-1
    mean, var : (N,) arrays, moments of f on the training rows
    kl : float, KL(q || prior)
    """

    alpha: Array
    half: Array
    mean: Array
    var: Array
    kl: float

    @cached_property
    def Ci(self) -> Array:
        """C^-1, (N, N); made when first asked for."""
        low, _ = lapack.dlauum(self.half, lower=1)  # half^T half at a third of a full product
        low = np.tril(low)
        return low + np.tril(low, -1).T

    def quadratic(self, X: Array) -> Array:
        """Return x_d^T C^-1 x_d of the columns of X (N, L), as an array (L,)."""
        part = triangle_times(self.half, X)
        return np.einsum("nd,nd->d", part, part)

    def outside_quadratic(self, X: Array, h: Array) -> Array:
        """Return x_d^T C^-1 x_d of columns X (N, L) that are not in the posterior, (L,)."""
        return self.quadratic(X)

    def intercept(self, intercept_var: float) -> float:
        """Return the mean intercept."""
        return float(intercept_var * self.alpha.sum())

    def joint(self, X: Array, s: Array, intercept_var: float) -> tuple[Array, Array]:
        """Return mean (L + 1,) and covariance of the weights of columns X, the intercept first."""
        X1, prior = with_ones(X), np.concatenate([[intercept_var], s])
        part = self.half @ (X1 * prior)
        return prior * (X1.T @ self.alpha), np.diag(prior) - part.T @ part

    def functional(self, F: Array, e: Array, own: Own, kernel: Kernel) -> tuple[Array, Array]:
        """Return mean (k,) and covariance of F^T f with e w added from its second entry on.

        Parameters
        ----------
        F : (N, k) array
        e : (k - 1,) array
        own : the columns whose weights w are added
        kernel : makes K, the intercept included
        """
        K = kernel()
        extra = np.hstack([np.zeros((len(K), 1)), own.X * (own.s * e)])
        KF = K @ F
        Y, cross = KF + extra, F.T @ extra
        cov = F.T @ KF + cross + cross.T
        at = np.arange(1, len(cov))
        cov[at, at] += e**2 * own.s
        part = self.half @ Y
        return Y.T @ self.alpha, cov - part.T @ part

    def weights(self, X: Array, s: Array) -> tuple[Array, Array]:
        """Return means and variances of the weights of columns X (N, L), each (L,)."""
        return weight_moments(s, self.alpha @ X, self.quadratic(X))

    def spread_of(self, X: Array, s: Array, own: NDArray[np.intp]) -> float:
        """Return the variance of the part of f that some columns have, summed over rows."""
        return self.spread_under(weighted_gram(X[:, own], s[own]))

    def spread_under(self, K: Array) -> float:
        """Return tr(K - K C^-1 K) for the part K of the kernel."""
        return max(float(np.trace(K) - np.square(self.half @ K).sum()), 0.0)

    def predict_rows(
        self, new: Array, X: Array, s: Array, intercept_var: float
    ) -> tuple[Array, Array]:
        """Return mean and variance of f for new rows (n, L) of columns X (N, L)."""
        return self.predict((new * s) @ X.T + intercept_var, new**2 @ s + intercept_var)

    def predict(self, K: Array, own: Array) -> tuple[Array, Array]:
        """Return mean and variance of f for new rows.

        K (n, N) is their kernel with the training rows and own (n,) with themselves.
        """
        part = triangle_times(self.half, K.T)
        return K @ self.alpha, own - np.einsum("ij,ij->j", part, part)


@dataclass(frozen=True)
class FeatureSide:
    """q(w_k) known through its (D + 1) mean and covariance, the intercept first.

    What costs as much as the fit itself is made when first asked for.

    Attributes
    ----------
    X : (N, D) array, the columns
    gram : (D + 1, D + 1) array, X1^T R X1 with the column of ones first
    alpha : (N,) array, j - h <f>: the same vector as on the sample side
    w : (D + 1,) array
    half : array of shape (any, D + 1) with half^T half the covariance; made as a lower triangle
    mean : (N,) array, mean of f on the training rows
    kl : float, KL(q || prior)
    """

    X: Array
    gram: Array
    alpha: Array
    w: Array
    half: Array
    mean: Array
    kl: float

    @property
    def cov(self) -> Array:
        """Covariance of the weights, (D + 1, D + 1)."""
        return self.half.T @ self.half

    @property
    def weight_var(self) -> Array:
        """Variances of the weights, (D + 1,)."""
        return np.einsum("de,de->e", self.half, self.half)

    @cached_property
    def var(self) -> Array:
        """Variance of f on the training rows, (N,)."""
        part = triangle_times(self.half[1:, 1:], self.X.T)
        part += self.half[1:, :1]
        return np.einsum("dn,dn->n", part, part) + self.half[0, 0] ** 2

    @cached_property
    def S(self) -> Array:
        """x_d^T C^-1 x_d = G_dd - (G Sigma G)_dd, (D,); right even where s_d is 0."""
        part = triangle_times(self.half, self.gram)
        S = np.diag(self.gram) - np.einsum("de,de->e", part, part)
        return np.maximum(S[1:], 0.0)

    def quadratic(self, X: Array) -> Array:
        """Return x_d^T C^-1 x_d of its own columns X, (D,)."""
        return self.S

    def outside_quadratic(self, X: Array, h: Array) -> Array:
        """Return x_d^T C^-1 x_d of columns X (N, L) that are not in the posterior, (L,)."""
        weighted = h[:, None] * X
        part = self.half @ np.concatenate([weighted.sum(axis=0)[None], self.X.T @ weighted])
        return np.asarray(h @ X**2 - np.einsum("de,de->e", part, part))

    def intercept(self, intercept_var: float) -> float:
        """Return the mean intercept."""
        return float(self.w[0])

    def joint(self, X: Array, s: Array, intercept_var: float) -> tuple[Array, Array]:
        """Return mean (D + 1,) and covariance of all weights, known."""
        return self.w, self.cov

    def functional(self, F: Array, e: Array, own: Own, kernel: Kernel) -> tuple[Array, Array]:
        """Return mean (k,) and covariance of F^T f with e w added, see `SampleSide`."""
        linear = np.concatenate([F.sum(axis=0)[None], self.X.T @ F])
        linear[1 + own.at, 1 + np.arange(len(own.at))] += e
        part = self.half @ linear
        return linear.T @ self.w, part.T @ part

    def weights(self, X: Array, s: Array) -> tuple[Array, Array]:
        """Return means and variances of the weights, known: x^T alpha would lose digits."""
        return self.w[1:], self.weight_var[1:]

    def spread_of(self, X: Array, s: Array, own: NDArray[np.intp]) -> float:
        """Return the variance of the part of f that some columns have, summed over rows."""
        return float(np.square(self.half[:, 1 + own] @ X[:, own].T).sum())

    def predict_rows(
        self, new: Array, X: Array, s: Array, intercept_var: float
    ) -> tuple[Array, Array]:
        """Return mean and variance of f for new rows (n, D)."""
        X1 = with_ones(new)
        part = self.half @ X1.T
        return X1 @ self.w, np.einsum("dn,dn->n", part, part)


Side = SampleSide | FeatureSide


def on_samples(side: Side) -> SampleSide:
    """Return a posterior that is known to be on the sample side."""
    assert isinstance(side, SampleSide)
    return side


def with_ones(X: Array) -> Array:
    """Return X (n, D) with a column of ones before it."""
    return np.hstack([np.ones((len(X), 1)), X])


def triangle_times(L: Array, X: Array) -> Array:
    """Return L X for a lower triangle L, at half the work of a full product."""
    return np.asarray(blas.dtrmm(1.0, L, X.T, side=1, lower=1, trans_a=1)).T


def inverse_cholesky(A: Array) -> tuple[Array, float]:
    """Return the inverse of the lower Cholesky factor of A, and ln|A|; A is overwritten."""
    # LAPACK itself: these matrices are small and many, and a wrapper costs as much as the work. A
    # symmetric matrix in rows is the same in columns, so nothing is copied.
    L, failed = lapack.dpotrf(A.T, lower=1, clean=1, overwrite_a=1)
    if failed:
        raise linalg.LinAlgError("the matrix is not positive definite")
    log_det = 2.0 * float(np.log(L.diagonal()).sum())
    inverse, _ = lapack.dtrtri(L, lower=1, overwrite_c=1)
    return np.asarray(inverse), log_det


def sample_side(K: Array, h: Array, j: Array) -> SampleSide:
    """Return q(w_k) from the kernel K (intercept included) and the sites h, j, each (N,).

    With B = I + R^1/2 K R^1/2: Var f_n = (1 - (B^-1)_nn)/h_n and tr(C^-1 K) = N - tr B^-1. Rows
    of small h, where the first would lose digits, use Var f_n = K_nn - k_n^T C^-1 k_n.
    """
    root = np.sqrt(h)
    B = root[:, None] * K * root
    B.flat[:: len(B) + 1] += 1.0
    Li, log_det = inverse_cholesky(B)
    diagonal = np.einsum("ij,ij->j", Li, Li)
    half = Li
    half *= root
    alpha = j - half.T @ (half @ (K @ j))
    mean = K @ alpha
    with np.errstate(divide="ignore", invalid="ignore"):  # h may have underflowed to 0
        var = (1.0 - diagonal) / h
    small = np.flatnonzero(h < SMALL_PRECISION)
    if small.size:
        part = half @ K[:, small]
        var[small] = K.diagonal()[small] - np.einsum("ij,ij->j", part, part)
    kl = 0.5 * (alpha @ mean - (len(h) - diagonal.sum()) + log_det)
    return SampleSide(alpha, half, mean, np.maximum(var, 0.0), float(kl))


def feature_gram(X: Array, h: Array) -> Array:
    """Return X1^T diag(h) X1 with a column of ones before those of X, (D + 1, D + 1)."""
    gram = np.empty((X.shape[1] + 1, X.shape[1] + 1))
    weighted = X * np.sqrt(h)[:, None]
    gram[1:, 1:] = weighted.T @ weighted  # an array times its own transpose: half the work
    gram[0, 1:] = gram[1:, 0] = h @ X
    gram[0, 0] = h.sum()
    return gram


def feature_side(X: Array, s: Array, intercept_var: float, h: Array, j: Array) -> FeatureSide:
    """Return q(w_k) from the (N, D) columns, prior variances s (D,) and the sites h, j.

    A zero variance is a dropped weight; scaling by s^1/2 keeps the algebra finite there:
    Sigma = s^1/2 A^-1 s^1/2 with A = I + s^1/2 X^T R X s^1/2, and tr(C^-1 K) = D + 1 - tr A^-1.
    """
    gram = feature_gram(X, h)
    root = np.sqrt(np.concatenate([[intercept_var], s]))
    A = root[:, None] * gram * root
    A.flat[:: len(A) + 1] += 1.0
    half, log_det = inverse_cholesky(A)
    trace = len(root) - np.einsum("de,de->", half, half)
    half *= root
    w = half.T @ (half @ np.concatenate([[j.sum()], X.T @ j]))
    mean = w[0] + X @ w[1:]
    alpha = j - h * mean
    kl = 0.5 * (alpha @ mean - trace + log_det)
    return FeatureSide(X, gram, alpha, w, half, mean, float(kl))


def weighted_gram(X: Array, s: Array) -> Array:
    """Return X diag(s) X^T; an array times its own transpose is half the work for BLAS."""
    scaled = X * np.sqrt(s)
    return np.asarray(scaled @ scaled.T)


def weight_moments(s: Array, projected: Array, S: Array) -> tuple[Array, Array]:
    """Return <w_d> and Var w_d from x_d^T alpha and x_d^T C^-1 x_d, on either side."""
    return s * projected, np.maximum(s - s**2 * S, 0.0)
