"""The submodel path: the ensemble projected onto its first k features, for all k at once.

The weights beta on features S that predict most like weights w on all features are

    beta = Sigma_SS^-1 Sigma_S. w

for the covariance Sigma of the features among people (in the metric of the row weights H). The
rows at hand know Sigma only roughly: where features outnumber them, unrelated features look
correlated, and a projection in the sample's own covariance moves the noise of the ensemble into the
selected features. So correlations are shrunk by the share `a` of them that is sampling noise
(Ledoit and Wolf, 2004; Schaefer and Strimmer, 2005):

    Sigma = (1 - a) X^T H X + a diag(X^T H X)       (columns centred in the metric H)
    u_S   = Sigma_S. w = (1 - a) X_S^T H eta + a diag w_S

a is 0 with many rows or strong correlations (the usual projection of the linear predictors), 1 for
independent features (weights are kept as they are). u is linear in q(w), hence Gaussian, and so is
beta. With Sigma_SS = R^T R and z = R^-T u, the weights on the first k features are R_k^-1 z_k:
leading blocks of one z and one R^-1. The whole path costs as much as its last step, and a new row x
predicts with k features by the first k entries of x R^-1.

Shapes: F folds, C outputs, n training rows, L candidate columns, K features of the path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from baldur.inference.design import GramDesign
from baldur.inference.ensemble import (
    Designs,
    Ensemble,
    first_views,
    mixture,
    noise_variance,
    restricted,
)
from baldur.inference.fold_batch import EnsembleData
from baldur.inference.predictive import Task, pooled_weights
from baldur.inference.stacking import Stacking
from baldur.inference.weight_posterior import WeightPosterior
from baldur.model.posterior import FeaturePosterior, with_ones
from baldur.model.quadrature import logistic_rates
from baldur.types import Array, IntArray, Mask

COLLINEAR = 1e-3
"""Part of a column's variance that must be left after taking out the features before it: below that
it says what they say, and its weight could not be told from theirs."""
SEARCHED = 256
"""Columns that the search looks at, where there are more: so many with the largest gain on their
own, and so many with the largest weights in the ensemble. Twice the longest path."""
SEARCH_BYTES = 1 << 23
"""Working memory of one search over several folds: about a processor's cache."""
SIZES = (
    *range(1, 11), *range(12, 20, 2), *range(20, 36, 4), *range(40, 72, 8), *range(80, 144, 16)
)  # fmt: skip
"""Numbers of features at which the path is scored: each one while one more can matter, then by
about a fifth."""


@dataclass
class Basis:
    """Features in the order of the path, with the metric they are projected in.

    Attributes
    ----------
    order : (F, K) int array, columns, first to last; shorter paths repeat column 0
    length : (F,) int array, features of each path
    forms : (F, C, n, K + 1) array; u = forms^T eta + e w_S, the intercept first
    e : (F, C, K) array
    R_inverse : (F, C, K + 1, K + 1) upper triangles
    ends : list of F int arrays, rising numbers of features at which no group is cut
    """

    order: IntArray
    length: IntArray
    forms: Array
    e: Array
    R_inverse: Array
    ends: list[IntArray]

    def whole_groups(self, fold: int, size: int) -> int:
        """Return the next number of features from `size` on that cuts no group."""
        later = self.ends[fold][self.ends[fold] >= size]
        return int(later[0]) if len(later) else int(self.length[fold])


@dataclass
class SubmodelPath:
    """The ensemble on some views, projected onto its first features.

    Attributes
    ----------
    basis : Basis, its order counted among the candidates of each fold
    mean : (F, C, K + 1) array, <z>
    cov : (F, C, K + 1, K + 1) array
    noise : (F, C) array, variance of the noise
    """

    basis: Basis
    mean: Array
    cov: Array
    noise: Array

    def weights_of(self, fold: int, size: int) -> tuple[Array, Array]:
        """Return mean (C, k + 1) and covariance of the weights on the first features."""
        k = size + 1
        R = self.basis.R_inverse[fold, :, :k, :k]
        mean = np.matmul(R, self.mean[fold, :, :k, None])[..., 0]
        cov = np.matmul(np.matmul(R, self.cov[fold, :, :k, :k]), R.swapaxes(1, 2))
        return mean, cov


def correlation_noise(X: Array, H: Array, real: Array) -> Array:
    """Return the share of the squared correlations of columns that is sampling noise, (F,).

    a = sum_{i != j} Var r_ij / sum_{i != j} r_ij^2, both from sample space: with rows q of
    standardised cells weighted p, sum_ij r_ij^2 is the squared norm of their Gram matrix.

    Parameters
    ----------
    X : (F, n, L) array
    H : (F, n) array, row weights; 0 for padding
    real : (F, L) array, 0 for columns that are left out
    """
    out = np.zeros(len(X))
    for f in range(len(X)):
        p = H[f] / H[f].sum()
        centred = X[f] - p @ X[f]
        squares = centred * centred
        variance = p @ squares
        inverse = np.where((variance > 0) & (real[f] > 0), variance, np.inf) ** -1
        L = int((inverse > 0).sum())
        if L < 2:
            continue
        squares *= inverse  # z^2
        scaled = centred * np.sqrt(inverse)
        scaled *= np.sqrt(p)[:, None]
        gram = scaled @ scaled.T
        total = float(np.vdot(gram, gram))
        concentration = float(p @ p)
        power = squares.sum(axis=1)
        noise = float(p**2 @ power**2) - concentration * total
        noise -= float(p**2 @ np.einsum("nl,nl->n", squares, squares)) - concentration * L
        found = total - L
        out[f] = np.clip(noise / found, 0.0, 1.0) if found > 0 else 1.0
    return out


def search(
    X: Array,
    H: Array,
    eta: Array,
    w: Array,
    size: int,
    *,
    allowed: Array,
    count: Array,
    groups: IntArray | None = None,
) -> Basis:
    """Order features by how much of the ensemble they add: the best next one, again and again.

    An incomplete Cholesky factorisation of Sigma whose pivot is the feature that explains most of
    what is left of u. With one column of a group the others follow at once, unless they say what
    is in already.

    Parameters
    ----------
    X : (F, n, L) array
    H : (F, C, n) row weights
    eta, w : (F, C, n) mean linear predictors and (F, C, L) mean weights of the ensemble
    size : int
        Most features; a group that is begun is completed.
    allowed : (F, L) array, 1 for columns that may be chosen
    count : (F,) array, training rows of each fold
    groups : (F, L) int array, optional
        Columns with the same number come in together.
    """
    F, n, _ = X.shape
    C = H.shape[1]
    a = correlation_noise(X, H.mean(axis=1), allowed)
    total = H.sum(axis=-1)
    centre = np.matmul(H, X) / total[..., None]  # (F, C, L)
    left = np.matmul(H, X**2) - total[..., None] * centre**2
    left = np.maximum(left, 0.0) * allowed[:, None]
    share = (1.0 - a)[:, None, None]
    weighted = H * eta
    agree = share * (np.matmul(weighted, X) - weighted.sum(axis=-1)[..., None] * centre)
    agree += a[:, None, None] * left * w
    chosen, used = _most_promising(agree, left, w, groups, allowed)
    narrow = X.shape[2] > chosen.shape[1]
    cells = np.take_along_axis(X, chosen[:, None, :], axis=2) if narrow else X
    here = (lambda v: np.take_along_axis(v, chosen[:, None, :], axis=2)) if narrow else np.asarray
    own = None if groups is None else np.take_along_axis(groups, chosen, axis=1)
    per_fold = 8 * (n * cells.shape[2] + C * cells.shape[2] * min(size, n))
    step = max(1, SEARCH_BYTES // per_fold)
    orders: list[list[int]] = []
    ends: list[list[int]] = []
    triangles: list[Array] = []
    for start in range(0, F, step):
        at = slice(start, start + step)
        found = _pivots(
            cells[at],
            H[at],
            here(agree)[at],
            here(left)[at] * used[at][:, None],
            here(centre)[at],
            a[at],
            size,
            count[at],
            None if own is None else own[at],
        )
        orders += found[0]
        ends += found[1]
        triangles += found[2]
    return _basis(X, H, a, left, centre, chosen, orders, ends, triangles)


def _most_promising(
    agree: Array, left: Array, w: Array, groups: IntArray | None, allowed: Array
) -> tuple[IntArray, Array]:
    """Return the columns that are searched, (F, K), in rising order, and 1 where they are real."""
    F, _, L = left.shape
    if L <= 2 * SEARCHED:
        return np.tile(np.arange(L), (F, 1)), allowed
    gain = (agree**2 / np.maximum(left, np.finfo(float).tiny)).sum(axis=1) * allowed
    size = (w**2 * left).sum(axis=1) * allowed
    mask = np.zeros((F, L), dtype=bool)
    for score in (gain, size):
        best = np.argpartition(-score, SEARCHED, axis=1)[:, :SEARCHED]
        np.put_along_axis(mask, best, True, axis=1)
    mask &= allowed > 0
    if groups is not None:
        for f in range(F):
            mask[f] |= np.isin(groups[f], groups[f][mask[f]]) & (allowed[f] > 0)
    count = mask.sum(axis=1)
    chosen = np.argsort(~mask, axis=1, kind="stable")[:, : max(int(count.max()), 1)]
    return chosen, (np.arange(chosen.shape[1]) < count[:, None]).astype(float)


def _pivots(
    X: Array,
    H: Array,
    agree: Array,
    left: Array,
    centre: Array,
    a: Array,
    size: int,
    count: Array,
    groups: IntArray | None,
) -> tuple[list[list[int]], list[list[int]], list[Array]]:
    """Return for every fold the chosen columns, where groups end, and the rows of R, (C, K, L)."""
    F, _, L = X.shape
    C = H.shape[1]
    agree, left = agree.copy(), left.copy()
    numbers = np.tile(np.arange(L), (F, 1)) if groups is None else groups
    members = np.ones((F, L), dtype=int)
    if groups is not None:
        for f in range(F):
            members[f] = np.bincount(numbers[f], minlength=1)[numbers[f]]
    longest = np.clip(np.minimum(L, count.astype(int) - 2), 0, None)
    wanted = np.minimum(size, longest)
    most = int(np.minimum(wanted + members.max(axis=1) - 1, longest).max())
    diagonal = left.copy()
    tiny = np.finfo(float).tiny
    rows = np.zeros((F, C, most, L))
    orders: list[list[int]] = [[] for _ in range(F)]
    ends: list[list[int]] = [[] for _ in range(F)]
    waiting = np.zeros((F, L), dtype=bool)  # others of a group that is begun
    usable: Mask = np.asarray((diagonal > 0).all(axis=1))
    going = np.ones(F, dtype=bool)
    share = (1.0 - a)[:, None, None]
    each, outputs = np.arange(F), np.arange(C)[None, :]
    for k in range(most + 1):
        usable &= np.asarray((left > COLLINEAR * diagonal).all(axis=1))
        waiting &= usable
        has = np.asarray(waiting.any(axis=1))
        if k:
            for f in np.flatnonzero(going & ~has).tolist():
                ends[f].append(k)
        going &= has | (wanted > k)
        free = np.where(has[:, None], waiting, usable & (members <= (longest - k)[:, None]))
        open_agree = np.where(free[:, None], agree, 0.0)  # left of the others may be 0
        gain = np.where(free, (open_agree**2 / np.maximum(left, tiny)).sum(axis=1), -1.0)
        best = gain.argmax(axis=1)
        going &= has | (gain[each, best] > 0.0)
        if not going.any():
            break
        waiting |= (numbers == numbers[each, best][:, None]) & going[:, None]
        waiting[each, best] = False
        x = H * np.take_along_axis(X, best[:, None, None], axis=2)[:, None, :, 0]  # (F, C, n)
        column = share * (np.matmul(x, X) - x.sum(axis=-1)[..., None] * centre)
        column[each[:, None], outputs, best[:, None]] = diagonal[each, :, best]
        if k:
            before = rows[each, :, :k, best]  # (F, C, k)
            column -= np.matmul(before[:, :, None, :], rows[:, :, :k])[:, :, 0]
        pivot = left[each, :, best]
        norm = np.sqrt(np.where(going[:, None], pivot, 1.0))[..., None]
        row = column / norm
        along = agree[each, :, best][..., None] / norm
        rows[:, :, k] = np.where(going[:, None, None], row, 0.0)
        left = np.where(going[:, None, None], np.maximum(left - row**2, 0.0), left)
        agree = np.where(going[:, None, None], agree - row * along, agree)
        usable[each[going], best[going]] = False
        for f in np.flatnonzero(going).tolist():
            orders[f].append(int(best[f]))
    return orders, ends, [rows[f] for f in range(F)]


def _basis(
    X: Array,
    H: Array,
    a: Array,
    left: Array,
    centre: Array,
    chosen: IntArray,
    orders: list[list[int]],
    ends: list[list[int]],
    triangles: list[Array],
) -> Basis:
    """Put the chosen columns of all folds side by side; paths that ended early are padded."""
    F, n, _ = X.shape
    C = H.shape[1]
    length = np.array([len(order) for order in orders])
    K = int(length.max(initial=0))
    order = np.zeros((F, K), dtype=np.intp)
    forms = np.zeros((F, C, n, K + 1))
    e = np.zeros((F, C, K))
    R_inverse = np.zeros((F, C, K + 1, K + 1))
    for f in range(F):
        k = int(length[f])
        columns = chosen[f][orders[f]]
        order[f, :k] = columns
        e[f, :, :k] = a[f] * left[f][:, columns]
        for c in range(C):
            norm = np.sqrt(H[f, c].sum())
            R = np.zeros((k + 1, k + 1))
            R[0, 0] = norm
            R[0, 1:] = centre[f, c, columns] * norm
            R[1:, 1:] = np.triu(triangles[f][c, :k][:, orders[f]])
            R_inverse[f, c, : k + 1, : k + 1] = linalg.solve_triangular(R, np.eye(k + 1))
            forms[f, c, :, 0] = H[f, c] / norm
            centred = X[f][:, columns] - centre[f, c, columns]
            forms[f, c, :, 1 : k + 1] = (1.0 - a[f]) * H[f, c][:, None] * centred
    rising = [np.array(end, dtype=np.intp) for end in ends]
    return Basis(order, length, forms, e, R_inverse, rising)


def make_path(
    data: EnsembleData,
    ensemble: Ensemble,
    stacking: Stacking,
    n_views: int,
    size: int,
    task: Task,
) -> SubmodelPath:
    """Order the features of the first views of every fold and project the ensemble onto them."""
    batch = ensemble.batch
    designs = Designs.of(data, batch, held=False)
    views = first_views(ensemble.view_order(), n_views)
    X = designs.candidates.X1[:, :, 1:]
    owner = designs.candidates.owner
    F, C = ensemble.base_logit.shape
    padded = np.concatenate([views, np.zeros((F, 1), dtype=bool)], axis=1)
    allowed = np.take_along_axis(padded, owner, axis=1).astype(float)
    first, final = ensemble.first_weights(), ensemble.point_weights(stacking.shares)
    found = []
    J = len(ensemble.points)
    mean, var = np.zeros((J, *ensemble.mean.shape[1:])), np.zeros((J, *ensemble.mean.shape[1:]))
    w = np.zeros((F, C, X.shape[2]))
    noise = np.zeros((F, C))
    for j, at in ensemble.used(first + final):
        point = ensemble.points[j]
        folds = point.folds[at]
        q = restricted(designs.attach(point, at), views[folds])
        mean[j, folds], var[j, folds] = q.moments()
        s = q.s
        if isinstance(q.design, GramDesign):
            s = designs.candidates.take(folds).spread(s)
        cells = X if len(folds) == F else X[folds]
        w[folds] += first[j, folds][..., None] * s * np.matmul(q.solution.alpha, cells)
        noise[folds] += final[j, folds] * noise_variance(q.noise, (len(folds), C))
        found.append((j, folds, q, s))
    eta, spread = mixture(mean, var, first[..., None])
    likelihood = batch.likelihood(data)
    H = likelihood.weight.copy()
    if task != "regression":
        p = logistic_rates(eta, spread).rate
        H *= np.maximum(p * (1.0 - p), 1e-4)
    groups = None if data.groups is None else data.groups[batch.candidates]
    basis = search(X, H, eta, w, size, allowed=allowed, count=batch.count, groups=groups)
    projection = _Projection(basis, X, J)
    for j, folds, q, s in found:
        if final[j, folds].any():
            projection.add(j, folds, q, s, final[j, folds])
    mean, cov = projection.pooled(final, ensemble.base_logit, stacking)
    return SubmodelPath(basis, mean, cov, noise)


class _Projection:
    """u = forms^T eta + e w_S of all Gaussians of the ensemble, pooled, and then z = R^-T u.

    Under the sample solver, with K the kernel and E = X_S diag(s e) for the features of the path,

        <u>   = (K forms + E)^T alpha
        Cov u = forms^T K forms + forms^T E + E^T forms + diag(e^2 s) - |half (K forms + E)|^2

    The first four terms are linear in K and s, so they are computed once, for their pooled values.
    """

    def __init__(self, basis: Basis, X: Array, J: int) -> None:
        self.basis = basis
        F, C, n, K1 = basis.forms.shape
        self.cells = np.take_along_axis(X, basis.order[:, None, :], axis=2)
        self.means = np.zeros((J, F, C, K1))
        self.cov = np.zeros((F, C, K1, K1))
        self.kernel = np.zeros((F, C, n, n))
        self.s = np.zeros((F, C, K1 - 1))

    def add(self, j: int, folds: IntArray, q: WeightPosterior, s: Array, weight: Array) -> None:
        """Add one Gaussian with weights (P, C); s (P, C, L) are variances of the candidates."""
        basis, solution = self.basis, q.solution
        forms, e, order = basis.forms[folds], basis.e[folds], basis.order[folds]
        w = weight[..., None, None]
        if isinstance(solution, FeaturePosterior):
            linear = np.matmul(solution.X1[:, None].swapaxes(-1, -2), forms)
            p, c = np.ogrid[: e.shape[0], : e.shape[1]]
            for k in range(e.shape[2]):
                linear[p, c, 1 + order[:, k, None], 1 + k] += e[:, :, k]
            self.means[j, folds] = np.matmul(solution.w[..., None, :], linear)[..., 0, :]
            part = np.matmul(solution.half, linear)
            self.cov[folds] += w * np.matmul(part.swapaxes(-1, -2), part)
            return
        assert q.kernel is not None
        s = np.take_along_axis(s, order[:, None, :], axis=2)
        Y = np.matmul(q.kernel, forms)
        Y[..., 1:] += self.cells[folds][:, None] * (s * e)[:, :, None, :]
        self.means[j, folds] = np.matmul(solution.alpha[..., None, :], Y)[..., 0, :]
        part = np.matmul(solution.half, Y)
        self.cov[folds] -= w * np.matmul(part.swapaxes(-1, -2), part)
        self.kernel[folds] += w * q.kernel
        self.s[folds] += weight[..., None] * s

    def pooled(self, weights: Array, base_logit: Array, stacking: Stacking) -> tuple[Array, Array]:
        """Return mean (F, C, K + 1) and covariance of z under the stacked ensemble."""
        basis, cov = self.basis, self.cov
        forms, e = basis.forms, basis.e
        cov += np.matmul(forms.swapaxes(-1, -2), np.matmul(self.kernel, forms))
        extra = self.cells[:, None] * (self.s * e)[:, :, None, :]
        cross = np.matmul(forms.swapaxes(-1, -2), extra)
        cov[..., :, 1:] += cross
        cov[..., 1:, :] += cross.swapaxes(-1, -2)
        np.einsum("...ii->...i", cov)[..., 1:] += e**2 * self.s
        base = np.zeros(cov.shape[:-1])
        base[..., 0] = forms[..., 0].sum(axis=-1) * base_logit
        slope, slope_var = stacking.slope[:, None], stacking.slope_var[:, None]
        mean, cov = pooled_weights(self.means, cov[None], weights, base, slope, slope_var)
        # z = R^-T u, where the intercept's row of u is already orthogonal to the rest.
        lower = basis.R_inverse.swapaxes(2, 3).copy()
        lower[:, :, 0, :] = lower[:, :, :, 0] = 0.0
        lower[:, :, 0, 0] = 1.0
        mean = np.matmul(lower, mean[..., None])[..., 0]
        return mean, np.matmul(np.matmul(lower, cov), lower.swapaxes(2, 3))


def path_moments(
    data: EnsembleData, ensemble: Ensemble, path: SubmodelPath, sizes: Sequence[int]
) -> tuple[Array, Array]:
    """Return held-out moments with the first k features, for every k of `sizes`, (S, F, C, p).

    A group that k would cut is taken whole. The variance with k features is that with k - 1 plus
    a_k (2 sum_{i<k} Z_ki a_i + Z_kk a_k). Noise is included.
    """
    batch, basis = ensemble.batch, path.basis
    cells = batch.candidate_cells(data, batch.held, batch.held_counted)
    rows = with_ones(np.take_along_axis(cells, basis.order[:, None, :], axis=2))
    A = np.matmul(rows[:, None], basis.R_inverse)  # (F, C, p, K + 1)
    means = np.cumsum(A * path.mean[:, :, None, :], axis=-1)
    low = 2.0 * np.tril(path.cov, -1)
    np.einsum("...ii->...i", low)[...] += np.einsum("...ii->...i", path.cov)
    spread = np.cumsum(A * np.matmul(A, low.swapaxes(2, 3)), axis=-1)
    F = len(batch)
    at = np.array([[basis.whole_groups(f, size) for f in range(F)] for size in sizes])
    mean = np.stack([means[np.arange(F), :, :, k] for k in at])
    var = np.maximum(np.stack([spread[np.arange(F), :, :, k] for k in at]), 1e-12)
    absent = batch.held_absent(data)
    if absent is not None:
        for f in np.flatnonzero(absent.any(axis=(1, 2))):
            for i, k in enumerate(at[:, f]):
                _, lacking = submodel_signal(data, ensemble, path, int(f), int(k))
                var[i, f] += np.einsum("pm,mc->cp", absent[f], lacking)
    return mean, var + path.noise[..., None]


def submodel_signal(
    data: EnsembleData, ensemble: Ensemble, path: SubmodelPath, fold: int, size: int
) -> tuple[Array, Array]:
    """Return the mean square of each view's part with the first features, (M, C).

    And its variance for a row that lacks the view, which has the uncertainty of the weights.
    """
    batch = ensemble.batch
    chosen = batch.candidates[fold][path.basis.order[fold, :size]]
    real = batch.counted[fold] > 0
    rows = batch.rows[fold][real]
    w, cov = path.weights_of(fold, size)
    absent = np.zeros((len(rows), data.n_views)) if data.absent is None else data.absent[rows]
    X = data.columns[np.ix_(rows, chosen)]
    return view_signals(X, data.owner[chosen], w[:, 1:], cov[:, 1:, 1:], absent)


def view_signals(
    X: Array, owner: IntArray, w: Array, cov: Array, absent: Array
) -> tuple[Array, Array]:
    """Return mean squares of each view's part of each output over rows that have it, (M, C).

    Of its mean, and of all of it, from weights w (C, L) and their covariances (C, L, L).
    """
    signal = np.zeros((absent.shape[1], len(w)))
    both = np.zeros_like(signal)
    for m in range(absent.shape[1]):
        here, rows = np.flatnonzero(owner == m), absent[:, m] == 0
        if here.size and rows.any():
            part = X[rows][:, here]
            signal[m] = ((part @ w[:, here].T) ** 2).mean(axis=0)
            spread = [np.einsum("nd,nd->", part @ each, part) for each in cov[:, here][:, :, here]]
            both[m] = signal[m] + np.array(spread) / len(part)
    return signal, both
