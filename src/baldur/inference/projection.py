"""The path of smaller models: the reference projected onto its first k features, for all k at once.

The weights beta on features S that predict most like weights w on all features are

    beta = Sigma_SS^-1 Sigma_S. w

for the covariance Sigma of the features among people (in the metric of the row weights H). The
rows at
hand know Sigma only roughly: where features outnumber them, features that have nothing to do with
each other look correlated, and a projection in the sample's own covariance moves the noise of the
reference into the features that are kept. So correlations are shrunk by the share `a` of them that
is sampling noise (Ledoit and Wolf; Schaefer and Strimmer):

    Sigma = (1 - a) X^T H X + a diag(X^T H X)       (columns centred in the metric H)
    u_S   = Sigma_S. w = (1 - a) X_S^T H eta + a diag w_S

a is 0 with many rows or strong correlations (the usual projection of the linear predictors), 1 for
independent features (weights are kept as they are). u is linear in q(w), hence Gaussian, and so is
beta. With Sigma_SS = R^T R and z = R^-T u, the weights on the first k features are R_k^-1 z_k:
leading blocks of one z and one R^-1. The whole path costs as much as its last step, and a new row x
predicts with k features by the first k entries of x R^-1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from baldur.inference.features import Columns
from baldur.inference.gaussian import Gaussian
from baldur.inference.predictive import pooled_weights
from baldur.model.posterior import Own, with_ones

Array = NDArray[np.float64]

COLLINEAR = 1e-3
"""Part of a column's variance that must be left after taking out the features before it: below that
it says what they say, and its weight could not be told from theirs."""


@dataclass
class Basis:
    """Features in the order of the path, with the metric they are projected in.

    Attributes
    ----------
    order : (K,) columns, first to last
    F : list of C (N, K + 1) arrays; u = F^T eta + e w_S, the intercept first
    e : (C, K) array
    R_inverse : list of C (K + 1, K + 1) upper triangles
    shrinkage : float, a
    ends : rising numbers of features at which no group is cut
    """

    order: NDArray[np.intp]
    F: list[Array]
    e: Array
    R_inverse: list[Array]
    shrinkage: float
    ends: NDArray[np.intp]

    def whole_groups(self, size: int) -> int:
        """Return the next number of features from `size` on that cuts no group."""
        later = self.ends[self.ends >= size]
        return int(later[0]) if len(later) else len(self.order)

    def rows(self, X: Array) -> list[Array]:
        """Return x R^-1 of rows X (n, L) of all columns, for every output, (n, K + 1)."""
        X1 = with_ones(X[:, self.order])
        return [X1 @ R for R in self.R_inverse]


@dataclass
class Coordinates:
    """The projected reference.

    Attributes
    ----------
    mean : (C, K + 1), <z>
    cov : (C, K + 1, K + 1)
    """

    mean: Array
    cov: Array


def correlation_noise(X: Array, H: Array) -> float:
    """Return the share of the squared correlations of columns that is sampling noise, in [0, 1].

    a = sum_{i != j} Var r_ij / sum_{i != j} r_ij^2, both from sample space: with rows q of
    standardised cells weighted p, sum_ij r_ij^2 is the squared norm of their Gram matrix.
    """
    p = H / H.sum()
    centred = X - p @ X
    scale = np.sqrt(p @ centred**2)
    Z = centred[:, scale > 0] / scale[scale > 0]
    L = Z.shape[1]
    if L < 2:
        return 0.0
    root = np.sqrt(p)
    scaled = Z * root[:, None]
    gram = scaled @ scaled.T
    squares = float((gram**2).sum())
    concentration = float((p**2).sum())
    power = (Z**2).sum(axis=1)
    noise = float(p**2 @ power**2) - concentration * squares
    noise -= float((p**2 @ Z**4).sum()) - concentration * L
    found = squares - L
    return float(np.clip(noise / found, 0.0, 1.0)) if found > 0 else 1.0


def search(
    X: Array,
    H: Array,
    eta: Array,
    w: Array,
    size: int,
    groups: NDArray[np.intp] | None = None,
) -> Basis:
    """Order features by how much of the reference they add: the best next one, again and again.

    An incomplete Cholesky factorisation of Sigma whose pivot is the feature that explains most of
    what is left of u. With one column of a group the others follow at once, unless they say what
    is in already.

    Parameters
    ----------
    X : (N, L) array
    H : (N, C) row weights
    eta, w : (N, C) mean linear predictors and (C, L) mean weights of the reference
    size : int
        Most features; a group that is begun is completed.
    groups : (L,) int array, optional
        Columns with the same number come in together.
    """
    N, L = X.shape
    numbers = np.arange(L) if groups is None else groups
    members = np.bincount(numbers, minlength=1)[numbers]
    C = H.shape[1]
    a = correlation_noise(X, H.mean(axis=1))
    longest = max(min(L, N - 2), 0)
    size = min(size, longest)
    weighted, left, agree = [], np.empty((C, L)), np.empty((C, L))
    for c in range(C):
        total = H[:, c].sum()
        centred = X - H[:, c] @ X / total
        left[c] = H[:, c] @ centred**2
        agree[c] = (1.0 - a) * ((H[:, c] * eta[:, c]) @ centred) + a * left[c] * w[c]
        weighted.append((1.0 - a) * H[:, c, None] * centred)
    diagonal = left.copy()
    tiny = np.finfo(float).tiny
    most = min(size + int(members.max(initial=1)) - 1, longest)
    rows = np.zeros((C, most, L))  # rows of R, for all columns
    order: list[int] = []
    ends: list[int] = []
    waiting = np.zeros(L, dtype=bool)  # others of a group that is begun
    usable: NDArray[np.bool_] = np.asarray((diagonal > 0).all(axis=0))
    while True:
        usable &= (left > COLLINEAR * diagonal).all(axis=0)
        waiting &= usable
        if order and not waiting.any():
            ends.append(len(order))
        if len(order) >= size and not waiting.any():
            break
        free = waiting if waiting.any() else usable & (members <= longest - len(order))
        gain = np.where(free, (agree**2 / np.maximum(left, tiny)).sum(axis=0), -1.0)
        best = int(gain.argmax()) if L else 0
        if not L or (gain[best] <= 0.0 and not waiting.any()):
            break
        waiting |= numbers == numbers[best]
        waiting[best] = False
        k = len(order)
        for c in range(C):
            column = X[:, best] @ weighted[c]  # (1 - a) x^T H X, centred on one side is enough
            column[best] = diagonal[c, best]
            row = column - rows[c, :k, best] @ rows[c, :k]
            norm = np.sqrt(left[c, best])
            rows[c, k] = row / norm
            along = agree[c, best] / norm
            left[c] = np.maximum(left[c] - rows[c, k] ** 2, 0.0)
            agree[c] -= rows[c, k] * along
        order.append(best)
        usable[best] = False
    chosen = np.array(order, dtype=np.intp)
    K = len(chosen)
    F, inverses = [], []
    for c in range(C):
        norm = np.sqrt(H[:, c].sum())
        R = np.zeros((K + 1, K + 1))
        R[0, 0] = norm
        R[0, 1:] = H[:, c] @ X[:, chosen] / norm
        R[1:, 1:] = np.triu(rows[c, :K][:, chosen])
        inverses.append(linalg.solve_triangular(R, np.eye(K + 1)))
        F.append(np.hstack([(H[:, c] / norm)[:, None], weighted[c][:, chosen]]))
    e = a * diagonal[:, chosen]
    return Basis(chosen, F, e, inverses, a, np.array(ends, dtype=np.intp))


def mean_weights(q: Gaussian, columns: Columns, at: NDArray[np.intp], X: Array) -> Array:
    """Return <w> of some of the candidate columns, whose training rows are X, (C, L)."""
    alphas = np.stack([side.alpha for side in q.sides])
    return q.features.variances_of(q.s, columns.owner, at) * (alphas @ X)


def project(
    q: Gaussian,
    basis: Basis,
    columns: Columns,
    at: NDArray[np.intp],
    X: Array,
) -> Coordinates:
    """Return z under one Gaussian posterior.

    Parameters
    ----------
    q : Gaussian
    basis : Basis, its order counted among `at`
    columns : Columns, the candidates
    at : (L,) candidates that the path may use
    X : (N, L) training rows of these
    """
    S = at[basis.order]
    s = q.features.variances_of(q.s, columns.owner, S)
    XS = X[:, basis.order]
    kernels = cache(lambda: q.features.kernels(q.s))  # the feature side never asks for them

    def kernel(c: int) -> Array:
        return kernels()[c]

    means, covs = [], []
    for c, side in enumerate(q.sides):
        own = Own(S, XS, s[c])
        mean, cov = side.functional(basis.F[c], basis.e[c], own, partial(kernel, c))
        # z = R^-T u, where the intercept's row of u is already orthogonal to the rest.
        lower = basis.R_inverse[c][1:, 1:].T
        mean = np.concatenate([mean[:1], lower @ mean[1:]])
        full = np.block([[np.ones((1, 1)), np.zeros((1, len(S)))], [np.zeros((len(S), 1)), lower]])
        means.append(mean)
        covs.append(full @ cov @ full.T)
    return Coordinates(np.stack(means), np.stack(covs))


def pool(
    found: Sequence[Coordinates],
    weights: Array,
    level: Array,
    slope: float,
    slope_var: float = 0.0,
) -> Coordinates:
    """Return z under the stack of several Gaussians, see `baldur.inference.stack`.

    Weights are (J, C), and `level` is the mean of z at the base rate.
    """
    means, covs = np.stack([z.mean for z in found]), np.stack([z.cov for z in found])
    return Coordinates(*pooled_weights(means, covs, weights, level, slope, slope_var))


def constant(level: Array, basis: Basis) -> Array:
    """Return z of a model without features, whose linear predictors are `level`, (C, K + 1)."""
    z = np.zeros((len(level), len(basis.order) + 1))
    z[:, 0] = [F[:, 0].sum() * level[c] for c, F in enumerate(basis.F)]
    return z


def predict_path(
    rows: Sequence[Array], z: Coordinates, sizes: Sequence[int]
) -> tuple[Array, Array]:
    """Return <eta> and Var eta with the first k features, for every k of `sizes`, (K', n, C).

    The variance with k features is that with k - 1 plus a_k (2 sum_{i<k} Z_ki a_i + Z_kk a_k).
    """
    at = np.asarray(sizes)
    means, variances = [], []
    for c, A in enumerate(rows):
        means.append(np.cumsum(A * z.mean[c], axis=1)[:, at])
        low = 2.0 * np.tril(z.cov[c], -1) + np.diag(np.diag(z.cov[c]))
        spread = np.maximum(np.cumsum(A * (A @ low.T), axis=1), 0.0)
        variances.append(spread[:, at])
    mean, var = np.stack(means, axis=-1), np.stack(variances, axis=-1)
    return mean.transpose(1, 0, 2), np.maximum(var.transpose(1, 0, 2), 1e-12)
