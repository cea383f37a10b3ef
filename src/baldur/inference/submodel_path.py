"""The submodel path: the ensemble projected onto its first k features, for all k at once.

The weights beta on features S that predict most like weights w on all features are

    beta = Sigma_SS^-1 u_S,   u_S = Sigma_S. w

for the covariance Sigma of the features, shrunk as in `baldur.inference.path_search`, which also
orders the features. u is linear in q(w), hence Gaussian, and so is beta. With Sigma_SS = R^T R and
z = R^-T u, the weights on the first k features are R_k^-1 z_k: leading blocks of one z and one
R^-1. The whole path costs as much as its last step, and a new row x predicts with k features by the
first k entries of x R^-1.

The path gives the projection onto any of its features, not only onto the first ones: u = R^T z and
Sigma = R^T R are known for all of them, and the features S have R_S^T R_S = Sigma_SS and
z_S = R_S^-T u_S. So a number of features for each view needs no second fit.

Shapes: F folds, C outputs, n training rows, L candidate columns, K features of the path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy import linalg

from baldur.core.types import Array, Index, IntArray, Mask
from baldur.inference.design import GramDesign, values_of_owner
from baldur.inference.ensemble import (
    Ensemble,
    first_views,
    noise_variance,
    over_candidates,
    restricted,
)
from baldur.inference.inner_folds import FoldBatch
from baldur.inference.path_search import Basis, search, whole_groups
from baldur.inference.stacking import Stacking, mixture, pooled_weights
from baldur.inference.weight_posterior import WeightPosterior
from baldur.model.likelihood import logistic_rates, take_folds
from baldur.model.posterior import FeaturePosterior, with_ones

SIZES = (
    *range(1, 11), *range(12, 20, 2), *range(20, 36, 4), *range(40, 72, 8), *range(80, 144, 16)
)  # fmt: skip
"""Numbers of features at which the path is scored: each one while one more can matter, then by
about a fifth."""


@dataclass(frozen=True)
class SubmodelPath:
    """The ensemble on some views, projected onto its first features, in the folds of a batch."""

    batch: FoldBatch
    order: IntArray  # (F, K); candidates, first to last; shorter paths repeat candidate 0
    ends: list[IntArray]  # rising numbers of features at which no group is cut, of each fold
    R_inverse: Array  # (F, C, K + 1, K + 1)
    mean: Array  # (F, C, K + 1); <z>
    cov: Array  # (F, C, K + 1, K + 1)
    noise: Array  # (F, C); variance of the noise

    @property
    def length(self) -> IntArray:
        """Number of features of each fold, (F,)."""
        return np.array([ends[-1] if len(ends) else 0 for ends in self.ends], dtype=np.intp)

    def columns(self, fold: int) -> tuple[IntArray, IntArray, IntArray, Mask]:
        """Return a path's columns, their views and features, and which are always in, each (K,).

        Levels of one category are one feature.
        """
        data = self.batch.data
        columns = self.batch.candidates[fold][self.order[fold, : self.length[fold]]]
        return columns, data.owner[columns], data.groups[columns], data.always[columns]

    def features_per_view(self, fold: int) -> IntArray:
        """Return how many features of each view are on the path, but for those always in, (M,)."""
        _, owner, features, always = self.columns(fold)
        first = np.unique(features[~always], return_index=True)[1]
        return np.bincount(owner[~always][first], minlength=self.batch.data.n_views)

    def payments(self, fold: int) -> tuple[Array, Array] | None:
        """Return what is paid with each column for its view and its feature; None without costs."""
        costs = self.batch.data.costs
        return None if costs is None else costs.payments(*self.columns(fold)[:3])

    def cost(self, fold: int) -> Array | None:
        """Return the cost so far after each column of a fold, (K,); None without costs."""
        paid = self.payments(fold)
        return None if paid is None else np.asarray(np.cumsum(sum(paid)))

    def weights(self, fold: int, size: int) -> tuple[Array, Array]:
        """Return mean (C, k + 1) and covariance of the weights on the first k = `size` features."""
        k = size + 1
        R = self.R_inverse[fold, :, :k, :k]
        mean = np.matmul(R, self.mean[fold, :, :k, None])[..., 0]
        cov = np.matmul(np.matmul(R, self.cov[fold, :, :k, :k]), R.swapaxes(1, 2))
        return mean, cov

    def signal(self, fold: int, size: int) -> tuple[Array, Array]:
        """Return the mean square of each view's part of eta with the first features, (M, C).

        And the variance of that part for a row without the view: the same mean square, with the
        uncertainty of the weights.
        """
        data = self.batch.data
        chosen = self.columns(fold)[0][:size]
        rows = self.batch.rows[fold][self.batch.counted[fold] > 0]
        w, cov = self.weights(fold, size)
        absent = np.zeros((len(rows), data.n_views)) if data.absent is None else data.absent[rows]
        X = data.columns[np.ix_(rows, chosen)]
        return view_signals(X, data.owner[chosen], w[:, 1:], cov[:, 1:, 1:], absent)

    def moments(self, at: IntArray) -> tuple[Array, Array]:
        """Return held-out mean and variance of eta for S sizes of the path, each (S, F, C, p).

        `at` (S, F) are the numbers of features. With a = x R^-1 and Z = Cov z the variance with k
        features is that with k - 1 plus a_k (2 sum_{i<k} Z_ki a_i + Z_kk a_k). Noise is included.
        """
        batch = self.batch
        cells = batch.candidate_cells(batch.held, batch.held_counted)
        rows = with_ones(np.take_along_axis(cells, self.order[:, None, :], axis=2))
        A = np.matmul(rows[:, None], self.R_inverse)  # (F, C, p, K + 1)
        means = np.cumsum(A * self.mean[:, :, None, :], axis=-1)
        low = 2.0 * np.tril(self.cov, -1)  # 2 Z_ki below the diagonal, Z_kk on it
        np.einsum("...ii->...i", low)[...] += np.einsum("...ii->...i", self.cov)
        spread = np.cumsum(A * np.matmul(A, low.swapaxes(2, 3)), axis=-1)
        folds = np.arange(len(batch))
        mean = np.stack([means[folds, :, :, k] for k in at])
        var = np.maximum(np.stack([spread[folds, :, :, k] for k in at]), 1e-12)
        absent = batch.held_absent()
        if absent is not None:
            for f in np.flatnonzero(absent.any(axis=(1, 2))):
                for i, k in enumerate(at[:, f]):
                    _, lacking = self.signal(int(f), int(k))
                    var[i, f] += np.einsum("pm,mc->cp", absent[f], lacking)
        return mean, var + self.noise[..., None]

    def moments_of_sizes(self, sizes: Sequence[int]) -> tuple[Array, Array]:
        """Return held-out moments with the first k features, for every k of `sizes`.

        A group that k would cut is taken whole. Shapes: (S, F, C, p).
        """
        return self.moments(np.array([[whole_groups(e, k) for e in self.ends] for k in sizes]))

    def first(self, limit: int) -> SubmodelPath:
        """Return the path cut after so many columns; a category with more levels is kept whole."""
        cut = [
            ends[ends <= limit] if len(ends) and ends[0] <= limit else ends[:1]
            for ends in self.ends
        ]
        k = max((int(ends[-1]) for ends in cut if len(ends)), default=0)
        return replace(
            self,
            order=self.order[:, :k].copy(),
            ends=cut,
            R_inverse=self.R_inverse[:, :, : k + 1, : k + 1].copy(),
            mean=self.mean[..., : k + 1].copy(),
            cov=self.cov[..., : k + 1, : k + 1].copy(),
        )

    def first_of_views(self, most: IntArray) -> SubmodelPath:
        """Return the path with the first `most` (M,) features of each view, and those always in."""
        places = [self._first_places(f, most) for f in range(len(self.ends))]
        F, C = self.noise.shape
        K = max(map(len, places))
        order = np.zeros((F, K), dtype=np.intp)
        R_inverse = np.zeros((F, C, K + 1, K + 1))
        mean, cov = np.zeros((F, C, K + 1)), np.zeros((F, C, K + 1, K + 1))
        for f, at in enumerate(places):
            k, size = len(at), int(self.length[f])
            order[f, :k] = self.order[f, at]
            for c in range(C):
                old = self.R_inverse[f, c, : size + 1, : size + 1]
                R = linalg.solve_triangular(old[1:, 1:], np.eye(size))  # of all features
                centre = -old[0, 1:] @ R  # their means
                # R_S: the triangle of the columns S of R.
                triangle = np.linalg.qr(R[:, at], mode="r")
                inverse = linalg.solve_triangular(triangle, np.eye(k))
                R_inverse[f, c, 0, 0] = old[0, 0]
                R_inverse[f, c, 0, 1 : k + 1] = -centre[at] @ inverse
                R_inverse[f, c, 1 : k + 1, 1 : k + 1] = inverse
                new = np.zeros((k + 1, size + 1))  # z_S = R_S^-T R_.S^T z
                new[0, 0] = 1.0
                new[1:, 1:] = inverse.T @ R[:, at].T
                mean[f, c, : k + 1] = new @ self.mean[f, c, : size + 1]
                cov[f, c, : k + 1, : k + 1] = new @ self.cov[f, c, : size + 1, : size + 1] @ new.T
        ends = [np.array([len(at)], dtype=np.intp) for at in places]
        return SubmodelPath(self.batch, order, ends, R_inverse, mean, cov, self.noise)

    def _first_places(self, fold: int, most: IntArray) -> IntArray:
        """Return the places on a fold's path of the first `most` (M,) features of each view."""
        room = most.copy()  # for further features of each view
        taken: set[int] = set()  # features of which a column is in
        places = []
        _, *columns = self.columns(fold)
        for place, (view, feature, always) in enumerate(zip(*columns, strict=True)):
            if not always and feature not in taken:
                if room[view] < 1:
                    continue
                room[view] -= 1
                taken.add(int(feature))
            places.append(place)
        return np.array(places, dtype=np.intp)


def make_path(
    ensemble: Ensemble,
    stacking: Stacking,
    n_views: int,
    size: int,
    most: IntArray | None = None,
) -> SubmodelPath:
    """Return the path: features of the first views in order, and the ensemble projected onto them.

    `most` is the largest number of features of each view, (M,), or None.
    """
    batch, data = ensemble.batch, ensemble.batch.data
    designs = candidates, _ = batch.designs(held=False)
    views = first_views(ensemble.view_order(), n_views)
    X, owner = candidates.X1[:, :, 1:], candidates.owner
    F, C = ensemble.base_logit.shape
    allowed = values_of_owner(views.astype(float), owner)
    # The order of features has weights of its own, so that folds do not change it.
    first, final = ensemble.first_weights(), ensemble.point_weights(stacking.shares)
    gaussians = []  # number, folds, q(w), variances of all candidates, own candidates
    mean, var = ensemble.mean, ensemble.var
    if not views.all():
        mean, var = mean.copy(), var.copy()
    w = np.zeros((F, C, X.shape[2]))  # pooled weights
    noise = np.zeros((F, C))
    for j, folds, q in ensemble.posteriors(first + final, *designs):
        q = restricted(q, views[folds])
        if not views[folds].all():
            mean[j, folds], var[j, folds] = q.moments()
        s, columns = q.s, None
        if isinstance(q.design, GramDesign):
            s = take_folds(candidates, folds).spread(s)
        elif (chosen := ensemble.points[j].columns) is not None:
            columns = chosen[np.isin(ensemble.points[j].folds, folds)]
            s = over_candidates(s, columns, X.shape[2])
        cells = X if len(folds) == F else X[folds]
        w[folds] += first[j, folds][..., None] * s * np.matmul(q.solution.alpha, cells)
        noise[folds] += final[j, folds] * noise_variance(q.noise, (len(folds), C))
        gaussians.append((j, folds, q, s, columns))
    eta, spread = mixture(mean, var, first[..., None])
    likelihood = batch.likelihood()
    H = likelihood.weight.copy()  # row weights, times the curvature of the likelihood
    if data.problem.logistic:
        p, _, _ = logistic_rates(eta, spread)
        H *= np.maximum(p * (1.0 - p), 1e-4)
    basis = search(
        X,
        H,
        eta,
        w,
        size,
        allowed=allowed,
        count=batch.count,
        groups=batch.groups(),
        always=batch.always(),
        owner=owner,
        most=most,
        costs=batch.costs(),
    )
    mean, cov = _project(basis, X, gaussians, final, ensemble.base_logit, stacking)
    return SubmodelPath(batch, basis.order, basis.ends, basis.R_inverse, mean, cov, noise)


def _linear_forms(X1: Array, at: IntArray, forms: Array, e: Array) -> Array:
    """Return the matrix X1^T forms + e of the linear map from weights to u, (F, C, 1 + L, K + 1).

    u = forms^T eta + e w_S for the features S of the path, whose places among the L columns are
    `at` (F, K), -1 for those that are not there. Shapes: forms (F, C, n, K + 1), e (F, C, K).
    """
    linear = np.matmul(X1[:, None].swapaxes(-1, -2), forms)
    f, k = np.nonzero(at >= 0)
    linear[f, :, 1 + at[f, k], 1 + k] += e[f, :, k]
    return np.asarray(linear)


def _project(
    basis: Basis,
    X: Array,
    gaussians: Sequence[tuple[int, IntArray, WeightPosterior, Array, IntArray | None]],
    weights: Array,
    base_logit: Array,
    stacking: Stacking,
) -> tuple[Array, Array]:
    """Return mean (F, C, K + 1) and covariance of z under the stacked ensemble.

    From u = forms^T eta + e w_S of all Gaussians, pooled, z = R^-T u. Under the sample solver, with
    K the kernel and E = X_S diag(s e) for the features of the path,

        <u>   = (K forms + E)^T alpha
        Cov u = forms^T K forms + forms^T E + E^T forms + diag(e^2 s) - |half (K forms + E)|^2

    The first four terms are linear in K and s, so they are computed once, for their pooled values.
    Each Gaussian comes with its number, its folds (P,), variances (P, C, L) of all candidates, and
    the candidates (P, K) that it is about, or None for all.

    Shapes: X (F, n, L), weights (J, F, C), base_logit (F, C).
    """
    forms, e, order = basis.forms, basis.e, basis.order
    F, C, _, K1 = forms.shape
    cells = np.take_along_axis(X, order[:, None, :], axis=2)
    means, cov = np.zeros((len(weights), F, C, K1)), np.zeros((F, C, K1, K1))
    every: Array | None = None  # what u is in the weights of all candidates
    kernel, pooled_s = None, np.zeros((F, C, K1 - 1))  # where the sample solver was used
    for j, folds, q, s, columns in gaussians:
        weight, solution = weights[j, folds], q.solution
        if not weight.any():
            continue
        if isinstance(solution, FeaturePosterior):
            if columns is not None:
                places = np.full((len(folds), X.shape[2]), -1)
                np.put_along_axis(places, columns, np.arange(columns.shape[1])[None], axis=1)
                at = np.take_along_axis(places, order[folds], axis=1)
                linear = _linear_forms(q.design.X1, at, forms[folds], e[folds])
            else:
                if every is None:
                    every = _linear_forms(with_ones(X), order, forms, e)
                linear = every[folds]
            means[j, folds] = np.matmul(solution.w[..., None, :], linear)[..., 0, :]
            part = np.matmul(solution.half, linear)
            cov[folds] += weight[..., None, None] * np.matmul(part.swapaxes(-1, -2), part)
            continue
        assert q.kernel is not None
        s = np.take_along_axis(s, order[folds][:, None, :], axis=2)
        Y = np.matmul(q.kernel, forms[folds])
        Y[..., 1:] += cells[folds][:, None] * (s * e[folds])[:, :, None, :]
        means[j, folds] = np.matmul(solution.alpha[..., None, :], Y)[..., 0, :]
        part = np.matmul(solution.half, Y)
        cov[folds] -= weight[..., None, None] * np.matmul(part.swapaxes(-1, -2), part)
        kernel = np.zeros((F, C, *q.kernel.shape[2:])) if kernel is None else kernel
        kernel[folds] += weight[..., None, None] * q.kernel
        pooled_s[folds] += weight[..., None] * s
    if kernel is not None:
        cov += np.matmul(forms.swapaxes(-1, -2), np.matmul(kernel, forms))
        extra = cells[:, None] * (pooled_s * e)[:, :, None, :]
        cross = np.matmul(forms.swapaxes(-1, -2), extra)
        cov[..., :, 1:] += cross
        cov[..., 1:, :] += cross.swapaxes(-1, -2)
        np.einsum("...ii->...i", cov)[..., 1:] += e**2 * pooled_s
    base = np.zeros(cov.shape[:-1])
    base[..., 0] = forms[..., 0].sum(axis=-1) * base_logit
    slope, slope_var = stacking.slope[:, None], stacking.slope_var[:, None]
    mean, cov = pooled_weights(means, cov[None], weights, base, slope, slope_var)
    # z = R^-T u, where the intercept's row of u is already orthogonal to the rest.
    lower = basis.R_inverse.swapaxes(2, 3).copy()
    lower[:, :, 0, :] = lower[:, :, :, 0] = 0.0
    lower[:, :, 0, 0] = 1.0
    mean = np.matmul(lower, mean[..., None])[..., 0]
    return mean, np.matmul(np.matmul(lower, cov), lower.swapaxes(2, 3))


def view_signals(
    X: Array, owner: IntArray, w: Array, cov: Array, absent: Array
) -> tuple[Array, Array]:
    """Return mean squares of each view's part of each output over rows that have it, (M, C).

    First of its posterior mean, then with its posterior variance. Shapes: X (n, L), owner (L,), w
    (C, L) means of the weights, cov (C, L, L), absent (n, M).
    """
    signal = np.zeros((absent.shape[1], len(w)))
    with_variance = np.zeros_like(signal)
    for m in range(absent.shape[1]):
        here, rows = np.flatnonzero(owner == m), absent[:, m] == 0
        if here.size and rows.any():
            part = X[rows][:, here]
            signal[m] = ((part @ w[:, here].T) ** 2).mean(axis=0)
            spread = [np.einsum("nd,nd->", part @ each, part) for each in cov[:, here][:, :, here]]
            with_variance[m] = signal[m] + np.array(spread) / len(part)
    return signal, with_variance


Entering = list[tuple[int, int | None]] | None
"""Pairs of a view and its column, or of a view and None for all its columns, that enter with a
submodel; None for all features that are not in yet."""


def entering_views(order: IntArray, counts: Sequence[int]) -> list[Entering]:
    """Return the views that enter at each number of views, from their order."""
    edges = [0, *counts]
    return [[(int(m), None) for m in order[a:b]] for a, b in pairwise(edges)]


def entering_columns(order: IntArray, sizes: Sequence[int], candidates: Index) -> list[Entering]:
    """Return the columns that enter at each size, from their order among the candidates."""
    owner = np.repeat(np.arange(len(candidates)), [len(columns) for columns in candidates])
    place = np.concatenate(candidates)
    edges = [0, *sizes]
    return [[(int(owner[c]), int(place[c])) for c in order[a:b]] for a, b in pairwise(edges)]


STORED = 64
"""Columns of a path that are stored for submodels per view: a few megabytes for forty folds."""
