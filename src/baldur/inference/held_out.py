"""What the reference and smaller models lose on rows they have not seen, over repeated folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from baldur.inference.features import Rows
from baldur.inference.predictive import Task, predictive_density, probabilities
from baldur.inference.projection import (
    Basis,
    Coordinates,
    constant,
    mean_weights,
    predict_path,
    project,
    search,
)
from baldur.inference.reference import Candidates, Reference, noise_variance
from baldur.inference.stack import prior_exponents, stacking_weights

Array = NDArray[np.float64]
Fold = tuple[Rows, Rows]

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 24, 28, 32, 40, 48, 64, 96, 128)
"""Numbers of features at which the path is scored: each one while one more can matter, then by
about a quarter."""


def member_densities(reference: Reference, held: Rows, T: Array, task: Task) -> Array:
    """Return the predictive density of held-out outcomes under each member, (n, U, K)."""
    points = [q for member in reference.members.values() for q in member.points]
    moments = reference.moments(points, held)
    out, at = [], 0
    for member in reference.members.values():
        part = moments[at : at + len(member.points)]
        out.append(predictive_density(part, member.weights, T[held], task))
        at += len(member.points)
    base = np.ones((1, T.shape[1]))
    out.append(predictive_density(moments[-1:], base, T[held], task))
    return np.stack(out, axis=-1)


def cross_weights(
    densities: Sequence[Array], folds: Sequence[Fold], weight: Array
) -> tuple[Array, list[Array]]:
    """Return stack weights (K,), and for each fold those learned without the rows it holds out.

    Without any prediction of these rows, also those of other repeats.
    """
    pairs = list(zip(folds, densities, strict=True))
    held = np.concatenate([np.repeat(rows, d.shape[1]) for (_, rows), d in pairs])
    flat = np.concatenate([d.reshape(-1, d.shape[-1]) for d in densities])
    repeats = np.bincount(np.concatenate([rows for _, rows in folds]), minlength=len(weight))
    share = weight[held] / repeats[held]
    each = prior_exponents(flat.shape[1])
    stack = stacking_weights(flat, share, each)
    without = []
    for _, rows in folds:
        others = ~np.isin(held, rows)
        without.append(
            stacking_weights(flat[others], share[others], each) if others.any() else stack
        )
    return stack, without


def averaged(losses: Sequence[Array], folds: Sequence[Fold], n_rows: int) -> Array:
    """Return the mean loss of each row over the folds that held it out, (K, N)."""
    total = np.zeros((losses[0].shape[0], n_rows))
    count = np.zeros(n_rows)
    for loss, (_, held) in zip(losses, folds, strict=True):
        total[:, held] += loss
        count[held] += 1
    return total / count


def view_losses(
    reference: Reference, stack: Array, counts: Sequence[int], held: Rows, T: Array, task: Task
) -> Array:
    """Return losses of the base rate, then of the reference on its first views, (1 + V, n)."""
    points, weights = reference.mixture(stack)
    order = view_order(reference.parts(points, weights))
    base = reference.base_moments(len(held))
    ones = np.ones((1, T.shape[1]))
    losses = [-np.log(predictive_density([base], ones, T[held], task)).sum(axis=-1)]
    for count in counts:
        mask = first_views(order, count)
        moments = reference.moments(reference.restricted(points, mask), held)
        losses.append(-np.log(predictive_density(moments, weights, T[held], task)).sum(axis=-1))
    return np.stack(losses)


def view_order(parts: Array) -> NDArray[np.intp]:
    """Return views by falling variance of their part of the linear predictor, (M,)."""
    spread = parts.var(axis=1).sum(axis=-1)
    return np.argsort(-spread, kind="stable")


def first_views(order: NDArray[np.intp], count: int) -> NDArray[np.bool_]:
    """Return the mask of the first views."""
    mask = np.zeros(len(order), dtype=bool)
    mask[order[:count]] = True
    return mask


@dataclass
class Path:
    """The reference on some views, projected onto its first features.

    Attributes
    ----------
    rows : training rows
    basis : Basis, `order` counted among `columns`
    columns : (L,) candidate columns that the views have
    coordinates : list of J Coordinates, the base rate last
    weights : (J, C)
    noise : (J, C) variance of the noise
    """

    rows: Rows
    basis: Basis
    columns: NDArray[np.intp]
    coordinates: list[Coordinates]
    weights: Array
    noise: Array

    def weights_of(self, z: Coordinates, size: int) -> tuple[Array, Array]:
        """Return mean (C, k + 1) and covariance of the weights on the first features."""
        triangles = [R[: size + 1, : size + 1] for R in self.basis.R_inverse]
        slope = z.slope[:, size]
        mean = [R @ z.mean[c, : size + 1] for c, R in enumerate(triangles)]
        cov = [R @ z.cov[c, : size + 1, : size + 1] @ R.T for c, R in enumerate(triangles)]
        return slope[:, None] * np.stack(mean), slope[:, None, None] ** 2 * np.stack(cov)

    def signal(self, z: Coordinates, size: int, data: Candidates) -> tuple[Array, Array]:
        """Return the mean square of each view's part with the first features, (M, C).

        And its variance for a row that lacks the view, which has the uncertainty of the weights.
        """
        chosen = self.columns[self.basis.order[:size]]
        w, cov = self.weights_of(z, size)
        X, owner = data.cells(self.rows, chosen), data.owner[chosen]
        return view_signals(X, owner, w[:, 1:], cov[:, 1:, 1:], data.absent[self.rows])


def make_path(reference: Reference, stack: Array, n_views: int, size: int, task: Task) -> Path:
    """Order the features of the first views and project every Gaussian onto them."""
    points, weights = reference.mixture(stack)
    mask = first_views(view_order(reference.parts(points, weights)), n_views)
    points = reference.restricted(points, mask)
    whole = reference.data.columns
    columns = np.flatnonzero(mask[whole.owner])
    X = whole.X[np.ix_(reference.rows, columns)]
    likelihood = reference.likelihood
    H = likelihood.weight.copy()
    if task != "regression":
        moments = [q.moments() for q in points] + [reference.base_moments(len(X))]
        p = probabilities(moments, weights, "binary" if task == "multiclass" else task)
        H *= np.maximum(p * (1.0 - p), 1e-4)
    eta = reference.mean_predictor(points, weights)
    each = [mean_weights(q, whole, columns, X) for q in points]
    shares = weights[:-1, :, None]
    w = np.asarray((shares * each).sum(axis=0))
    groups = reference.data.groups
    basis = search(X, H, eta, w, size, None if groups is None else groups[columns])
    z = [project(q, basis, whole, columns, X) for q in points]
    z.append(constant(reference.level, basis, reference.level_noise is None))
    C = H.shape[1]
    noises = [q.noise for q in points] + [reference.level_noise]
    noise = np.stack([noise_variance(each) * np.ones(C) for each in noises])
    return Path(reference.rows, basis, columns, z, weights, noise)


def path_losses(
    path: Path, data: Candidates, held: Rows, sizes: Sequence[int], T: Array, task: Task
) -> Array:
    """Return losses with the first k features, for every k of `sizes`, (K, n).

    A group that k would cut is taken whole. `held` are rows of `data` and T (n, C) their outcomes.
    """
    X, absent = data.cells(held, path.columns), data.absent[held]
    rows = path.basis.rows(X)
    at = [path.basis.whole_groups(size) for size in sizes]
    moments = []
    for z, noise in zip(path.coordinates, path.noise, strict=True):
        mean, var = predict_path(rows, z, at)
        if absent.any():
            var = var + np.stack([absent @ path.signal(z, size, data)[1] for size in at])
        moments.append((mean, var + noise))
    return -np.log(predictive_density(moments, path.weights, T, task)).sum(axis=-1)


def view_signals(
    X: Array, owner: NDArray[np.intp], w: Array, cov: Array, absent: Array
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
