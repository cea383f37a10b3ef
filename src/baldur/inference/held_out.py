"""What the reference and smaller models lose on rows they have not seen, over repeated folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from baldur.inference.features import Rows
from baldur.inference.predictive import Task, averaged_over, mixture_moments, predictive_density
from baldur.inference.projection import (
    Basis,
    Coordinates,
    constant,
    mean_weights,
    pool,
    predict_path,
    project,
    search,
)
from baldur.inference.reference import Candidates, Reference, noise_variance
from baldur.inference.stack import HeldOut, Stack, around, attenuation, fit_stack
from baldur.model.quadrature import logistic_rates

Array = NDArray[np.float64]
Fold = tuple[Rows, Rows]

SIZES = (
    *range(1, 11), *range(12, 20, 2), *range(20, 36, 4), *range(40, 72, 8), *range(80, 144, 16)
)  # fmt: skip
"""Numbers of features at which the path is scored: each one while one more can matter, then by
about a fifth."""


def member_moments(reference: Reference, held: Rows) -> tuple[Array, Array]:
    """Return mean and variance of the linear predictor under each member, each (n, K, C)."""
    points = [q for member in reference.members.values() for q in member.points]
    moments = reference.moments(points, held)
    found, at = [], 0
    for member in reference.members.values():
        found.append(mixture_moments(moments[at : at + len(member.points)], member.weights))
        at += len(member.points)
    means, variances = zip(*found, strict=True)
    return np.stack(means, axis=1), np.stack(variances, axis=1)


def fit_stacks(
    references: Sequence[Reference], folds: Sequence[Fold], T: Array, weight: Array, task: Task
) -> tuple[Stack, list[Stack]]:
    """Return the stack, and for each fold the one learned without the rows it holds out.

    Without any prediction of these rows, also those of other repeats.
    """
    rows = np.concatenate([held for _, held in folds])
    repeats = np.bincount(rows, minlength=len(weight))
    moments = [member_moments(ref, held) for ref, (_, held) in zip(references, folds, strict=True)]
    levels = [
        np.tile(ref.level, (len(held), 1)) for ref, (_, held) in zip(references, folds, strict=True)
    ]
    mean, var = (np.concatenate(part) for part in zip(*moments, strict=True))
    every = HeldOut(mean, var, np.concatenate(levels), T[rows], weight[rows] / repeats[rows])
    trust = attenuation(var, logistic=task != "regression")
    stack, x = fit_stack(every, task, trust)
    start = around(every, task, trust, x)
    without = []
    for _, held in folds:
        others = ~np.isin(rows, held)
        part = fit_stack(every.only(others), task, trust, start)[0] if others.any() else stack
        without.append(part)
    return stack, without


def view_moments(
    reference: Reference, stack: Stack, counts: Sequence[int], held: Rows
) -> tuple[Array, Array]:
    """Return the reference's moments on its first views, each (V, n, C), noise included."""
    points, weights = reference.mixture(stack)
    order = view_order(reference)
    found = []
    for count in counts:
        some = reference.restricted(points, first_views(order, count))
        found.append(reference.pooled(reference.moments(some, held), weights, stack))
    means, variances = zip(*found, strict=True)
    return np.stack(means), np.stack(variances)


@dataclass
class Scores:
    """How smaller models stand to the reference, and what they lose.

    Attributes
    ----------
    stretch : (V, C) factor of the variance of their linear predictors
    left : (V, C) variance of the reference's linear predictor that each leaves out
    losses : (V, N) mean loss of each row over the folds that held it out
    """

    stretch: Array
    left: Array
    losses: Array

    def __getitem__(self, places: slice) -> Scores:
        """Return some of the models."""
        return Scores(self.stretch[places], self.left[places], self.losses[places])

    def and_then(self, others: Scores) -> Scores:
        """Return these models and others after them."""
        pairs = zip(astuple(self), astuple(others), strict=True)
        return Scores(*(np.concatenate(pair) for pair in pairs))


def score(
    found: Sequence[tuple[Array, Array]],
    whole: Sequence[tuple[Array, Array]],
    slope: float,
    folds: Sequence[Fold],
    T: Array,
    weight: Array,
    task: Task,
) -> Scores:
    """Score smaller models by their moments (V, n, C) on the held-out rows of every fold.

    The slope of the stack has stretched their means, and stretches their standard deviations
    alike: what is known of a weight is known in proportion. But a smaller model is no more
    uncertain than the reference, `whole`, of which the slope was learned with all its variance.
    What is left of that, and the distance of the means, is what a model leaves out: it is averaged
    over, see `averaged_over`. All this is known from the held-out rows, all folds together.
    """
    V, C = len(found[0][0]), T.shape[1]
    own, theirs, apart, count = np.zeros((V, C)), np.zeros(C), np.zeros((V, C)), 0.0
    for (mean, var), (mean_all, var_all), (_, held) in zip(found, whole, folds, strict=True):
        own += np.einsum("vnc,n->vc", var, weight[held])
        theirs += weight[held] @ var_all
        apart += np.einsum("vnc,n->vc", (mean - mean_all) ** 2, weight[held])
        count += weight[held].sum()
    stretch = np.ones((V, C))
    if task != "regression":  # where variances are mostly noise
        stretch = np.minimum(slope**2, np.maximum(theirs / np.maximum(own, 1e-300), 1.0))
    left = np.maximum((apart + theirs - stretch * own) / count, 0.0)
    moments = [
        averaged_over(mean, stretch[:, None] * var, left[:, None], task) for mean, var in found
    ]
    return Scores(stretch, left, mean_losses(moments, folds, T, task))


def base_losses(
    references: Sequence[Reference], folds: Sequence[Fold], T: Array, task: Task
) -> Array:
    """Return the mean loss of every row at the base rate, (N,)."""
    moments = [
        ref.base_moments(len(held)) for ref, (_, held) in zip(references, folds, strict=True)
    ]
    return mean_losses(moments, folds, T, task)


def mean_losses(
    moments: Sequence[tuple[Array, Array]], folds: Sequence[Fold], T: Array, task: Task
) -> Array:
    """Return the mean loss of each row over the folds that held it out, (..., N)."""
    losses = [loss_of(own, T[held], task) for own, (_, held) in zip(moments, folds, strict=True)]
    total, times = np.zeros((*losses[0].shape[:-1], len(T))), np.zeros(len(T))
    for loss, (_, held) in zip(losses, folds, strict=True):
        total[..., held] += loss
        times[held] += 1
    return np.asarray(total / times)


def loss_of(moments: tuple[Array, Array], T: Array, task: Task) -> Array:
    """Return -ln p of the outcomes T (n, C) under moments (..., n, C), (..., n)."""
    one = np.ones((1, T.shape[-1]))
    return np.asarray(-np.log(predictive_density([moments], one, T, task)).sum(axis=-1))


def view_order(reference: Reference) -> NDArray[np.intp]:
    """Return views by falling variance of their part of the linear predictor, (M,)."""
    parts = reference.parts(*reference.mixture(reference.at_first()))
    return np.argsort(-parts.var(axis=1).sum(axis=-1), kind="stable")


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
    z : Coordinates
    noise : (C,) variance of the noise
    """

    rows: Rows
    basis: Basis
    columns: NDArray[np.intp]
    z: Coordinates
    noise: Array

    def weights_of(self, size: int) -> tuple[Array, Array]:
        """Return mean (C, k + 1) and covariance of the weights on the first features."""
        z, k = self.z, size + 1
        triangles = [R[:k, :k] for R in self.basis.R_inverse]
        mean = [R @ z.mean[c, :k] for c, R in enumerate(triangles)]
        cov = [R @ z.cov[c, :k, :k] @ R.T for c, R in enumerate(triangles)]
        return np.stack(mean), np.stack(cov)

    def signal(self, size: int, data: Candidates) -> tuple[Array, Array]:
        """Return the mean square of each view's part with the first features, (M, C).

        And its variance for a row that lacks the view, which has the uncertainty of the weights.
        """
        chosen = self.columns[self.basis.order[:size]]
        w, cov = self.weights_of(size)
        X, owner = data.cells(self.rows, chosen), data.owner[chosen]
        return view_signals(X, owner, w[:, 1:], cov[:, 1:, 1:], data.absent[self.rows])


def make_path(reference: Reference, stack: Stack, n_views: int, size: int, task: Task) -> Path:
    """Order the features of the first views and project the reference onto them."""
    mask = first_views(view_order(reference), n_views)
    whole = reference.data.columns
    columns = np.flatnonzero(mask[whole.owner])
    X = whole.X[np.ix_(reference.rows, columns)]
    H, groups = reference.likelihood.weight.copy(), reference.data.groups
    points, (first, weights) = reference.mixtures(reference.at_first(), stack)
    points = reference.restricted(points, mask)
    eta, var = mixture_moments([q.moments() for q in points], first)
    if task != "regression":
        p = logistic_rates(eta, var).rate
        H *= np.maximum(p * (1.0 - p), 1e-4)
    each = np.stack([mean_weights(q, whole, columns, X) for q in points])
    w = np.asarray((first[:, :, None] * each).sum(axis=0))
    basis = search(X, H, eta, w, size, None if groups is None else groups[columns])
    found = [project(q, basis, whole, columns, X) for q in points]
    level = constant(reference.level, basis)
    z = pool(found, weights, level, stack.slope, stack.slope_var)
    noises = [noise_variance(q.noise) * np.ones(len(reference.level)) for q in points]
    return Path(reference.rows, basis, columns, z, (weights * noises).sum(axis=0))


def path_moments(
    path: Path, data: Candidates, held: Rows, sizes: Sequence[int]
) -> tuple[Array, Array]:
    """Return moments with the first k features, for every k of `sizes`, each (K, n, C).

    A group that k would cut is taken whole. `held` are rows of `data`; noise is included.
    """
    X, absent = data.cells(held, path.columns), data.absent[held]
    at = [path.basis.whole_groups(size) for size in sizes]
    mean, var = predict_path(path.basis.rows(X), path.z, at)
    if absent.any():
        var = var + np.stack([absent @ path.signal(size, data)[1] for size in at])
    return mean, var + path.noise


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
