"""The ensemble: every member fitted on the training rows of every fold of a batch.

A batch of folds is fitted at once. What is stored of each member is small: prior variances, sites
and moments of rows. Posteriors are computed again from these where a later step needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from baldur.core.types import Array, IntArray, Mask
from baldur.inference.dense_members import (
    Member,
    fit_per_view,
    fit_pooled,
    fit_screened,
    marginal_associations,
    share_beyond_chance,
)
from baldur.inference.design import ColumnDesign, Design
from baldur.inference.inner_folds import FoldBatch
from baldur.inference.spike_slab_member import fit_spike_slab
from baldur.inference.stacking import Stacking, calibrated_moments, mixture
from baldur.inference.weight_posterior import WeightPosterior
from baldur.model.likelihood import Likelihood, residual, take_folds
from baldur.model.posterior import FeaturePosterior, leading_squares
from baldur.model.predictions import shrinkage

SCREENED = MappingProxyType({"screened_10": 10, "screened_30": 30, "screened_100": 100})
"""Members with the strongest marginal associations, and how many: half decades, from what a sample
of some tens can tell apart to what one of some hundreds can."""
MEMBERS = ("spike_slab", "spike_slab_wide", "per_view", "pooled", *SCREENED)
"""Priors of the ensemble. With a single view "per_view" is "pooled", and only one is fitted; a
screened member is left out where there are no more features than it has, unless it is alone."""

NEGLIGIBLE = 0.01
"""Gaussians that count for less than this in every output are left out of the ensemble: together
they count for little, and each costs as much as the others."""


@dataclass
class Ensemble:
    """Members fitted on the training rows of F folds.

    Moments are those of all J points, (J, F, ...), and zero in folds where a point does not count.
    """

    batch: FoldBatch
    members: dict[str, Member]
    mean: Array  # mean, var: (J, F, C, n); moments of eta on the training rows, without noise
    var: Array
    parts: Array  # (J, F, M, C, n); each view's part of the mean
    held_mean: Array  # held_mean, held_var: (J, F, C, p); on the held-out rows, noise included
    held_var: Array
    base_logit: Array  # (F, C); the linear predictor of a model without features
    base_variance: Array  # (F, C); its noise

    def __post_init__(self) -> None:
        members = self.members.values()
        self.names = list(self.members)
        self.points = [point for member in members for point in member.points]
        self.member_of = np.repeat(np.arange(len(members)), [len(m.points) for m in members])
        self.weights = np.concatenate([m.weights for m in members])  # (J, F, C)

    def member_moments(self) -> tuple[Array, Array]:
        """Return held-out mean and variance, (F, p, K, C): folds, rows, members, outputs."""
        moments = []
        for k in range(len(self.names)):
            at = self.member_of == k
            moments.append(
                mixture(self.held_mean[at], self.held_var[at], self.weights[at][..., None])
            )
        mean, var = (np.stack(part) for part in zip(*moments, strict=True))  # (K, F, C, p)
        return mean.transpose(1, 3, 0, 2), var.transpose(1, 3, 0, 2)

    def confidence(self) -> Array:
        """Return how confident each of K members is in its own linear predictor, (F, K).

        The share of it that is left when its posterior variance is integrated out of the
        probability; 1 for continuous outcomes.
        """
        if self.base_variance.any():
            return np.ones((len(self.batch), len(self.names)))
        confidence = []
        counted = self.batch.counted / self.batch.count[:, None]  # (F, n); sums to one
        for k in range(len(self.names)):
            at = self.member_of == k
            _, var = mixture(self.mean[at], self.var[at], self.weights[at][..., None])
            confidence.append(np.einsum("fcn,fn->f", shrinkage(var), counted) / var.shape[1])
        return np.stack(confidence, axis=1)

    def point_weights(self, shares: Array) -> Array:
        """Return weights (J, F, C) of the members' J Gaussians under shares (F, K) of the members.

        Those of negligible weight in every output of a fold get 0.
        """
        weights = shares.T[self.member_of][:, :, None] * self.weights
        largest = weights.max(axis=2)  # (J, F)
        weights[largest < np.minimum(NEGLIGIBLE, largest.max(axis=0))] = 0.0
        return np.asarray(weights / weights.sum(axis=0))

    def first_weights(self) -> Array:
        """Return weights (J, F, C) before stacking weights are learned: by confidence.

        Screened members are one kind of prior at several sizes, and count together as one, so that
        they do not outvote the others where nothing has been learned yet. Stacking weights, which
        are learned, have no such rule.

        Orders of views and features are taken from them. They then depend on the data alone, and
        not on how rows were assigned to folds.
        """
        confidence = self.confidence()
        screened = np.array([name in SCREENED for name in self.names])
        confidence[:, screened] /= max(1, int(screened.sum()))
        return self.point_weights(confidence / confidence.sum(axis=1, keepdims=True))

    def view_order(self) -> IntArray:
        """Return the views of each fold by falling variance of their part of eta, (F, M)."""
        # Each view's part of the pooled linear predictor, (F, M, C, n).
        parts = np.einsum("jfc,jfmcn->fmcn", self.first_weights(), self.parts)
        count = self.batch.count[:, None, None]
        mean = parts.sum(axis=-1) / count
        var = (parts**2).sum(axis=-1) / count - mean**2
        return np.argsort(-var.sum(axis=-1), axis=1, kind="stable")

    def posteriors(
        self, weights: Array, candidates: ColumnDesign, dense: Design, *, every: bool = False
    ) -> Iterator[tuple[int, IntArray, WeightPosterior]]:
        """Yield each point's number, its folds with a weight (J, F, C) above 0, and q(w) in them.

        q(w) has its sites and prior variances and is not solved. The designs are those of the
        batch. A point that chose some candidates has these as its columns, or with `every` all of
        them, the others with variance 0.
        """
        for j, point in enumerate(self.points):
            at = np.flatnonzero(weights[j, point.folds].any(axis=1))
            if not len(at):
                continue
            q, folds = take_folds(point.q, at), point.folds[at]
            q.design = take_folds(candidates if point.selects else dense, folds)
            if point.columns is not None and every:
                q.s = over_candidates(q.s, point.columns[at], candidates.owner.shape[1])
            elif point.columns is not None:
                q.design = q.design.reordered(point.columns[at])
            yield j, folds, q


def over_candidates(s: Array, columns: IntArray, count: int) -> Array:
    """Return variances (F, C, count) of all candidates from those of some (F, C, K), else 0."""
    whole = np.zeros((*s.shape[:2], count))
    np.put_along_axis(whole, np.broadcast_to(columns[:, None], s.shape), s, axis=2)
    return whole


def noise_variance(noise: Any, shape: tuple[int, int]) -> Array:
    """Return the variance of the noise of each fold and output, 0 for logistic outputs."""
    return np.zeros(shape) if noise is None else 1.0 / noise.mean


def held_moments(q: WeightPosterior) -> tuple[Array, Array]:
    """Return mean and variance of eta of the held-out rows, noise included, each (F, C, p)."""
    mean, var = q.design.predict_held(q.solution, q.s)
    var = np.maximum(var, 1e-12)
    if q.design.held_absent is not None:  # (F, p, M); 1 where a row lacks a view
        lacking = q.missing_view_variance()
        var = var + np.einsum("fpm,fmc->fcp", q.design.held_absent, lacking)
    return mean, var + noise_variance(q.noise, mean.shape[:2])[..., None]


def fit_ensemble(
    batch: FoldBatch, *, members: Sequence[str] = MEMBERS, max_iter: int = 200
) -> Ensemble:
    """Return the ensemble of these members, fitted on the training rows of each fold."""
    problem, (candidates, dense) = batch.data.problem, batch.designs()
    widths = np.array(problem.widths)
    likelihood = batch.likelihood()
    several = problem.logistic and likelihood.n_outputs > 1
    shared = replace(likelihood, shared=several)

    def fit(fit_member: Callable[..., Member], start: Member | None) -> tuple[Member, Member]:
        """Fit several labels first with site precisions that they share; return both fits."""
        first = fit_member(shared, start=start, max_iter=max_iter)
        last = fit_member(likelihood, start=first, max_iter=max_iter) if several else first
        return first, last

    fitted: dict[str, Member] = {}
    slab: Member | None = None  # where the second of them starts
    for name in ("spike_slab", "spike_slab_wide"):
        if name in members or "spike_slab_wide" in members:
            wide = name == "spike_slab_wide"
            slab, fitted[name] = fit(partial(fit_spike_slab, candidates, widths, wide=wide), slab)
    if "spike_slab" not in members:
        fitted.pop("spike_slab", None)
    if "per_view" in members and len(widths) > 1:
        fitted["per_view"] = fit(partial(fit_per_view, dense), None)[1]
    if "pooled" in members:
        fitted["pooled"] = fit_pooled(dense, shared)
    elif "per_view" in members and len(widths) == 1:
        fitted["per_view"] = fit_pooled(dense, shared)
    total = int(widths.sum())
    sizes = _screened_sizes(members, total, alone=not fitted)
    if sizes:
        residuals = residual(likelihood.T, likelihood.weight, logistic=problem.logistic)
        order, squares = marginal_associations(candidates, residuals)
    smaller: Member | None = None
    for name, size in sizes.items():
        smaller = fitted[name] = fit_screened(
            candidates,
            shared,
            order[:, :size],
            share_beyond_chance(squares, size, total * likelihood.n_outputs),
            smaller=smaller,
            max_iter=max_iter,
        )
    return _summarise(batch, likelihood, fitted)


def _screened_sizes(members: Sequence[str], n_features: int, *, alone: bool) -> dict[str, int]:
    """Return the screened members to fit, and their numbers of features.

    Those with at least as many features as there are would repeat the dense members and are left
    out; where they are `alone`, the smallest one is kept.
    """
    sizes = {name: size for name, size in SCREENED.items() if name in members}
    fewer = {name: size for name, size in sizes.items() if size < n_features}
    return fewer or (dict(list(sizes.items())[:1]) if alone else {})


def _summarise(batch: FoldBatch, likelihood: Likelihood, fitted: dict[str, Member]) -> Ensemble:
    """Return the ensemble with moments of every point, whose posterior's memory is released."""
    F, C, n = likelihood.weight.shape
    p, M = batch.held.shape[1], batch.data.n_views
    shapes = {
        "mean": (F, C, n), "var": (F, C, n), "parts": (F, M, C, n),
        "held_mean": (F, C, p), "held_var": (F, C, p),
    }  # fmt: skip
    points = [point for member in fitted.values() for point in member.points]
    moments = {name: np.zeros((len(points), *shape)) for name, shape in shapes.items()}
    moments["held_var"] += 1.0  # where a point does not count, a variance without effect
    for j, point in enumerate(points):
        q, folds = point.q.with_separate_precisions(), point.folds
        moments["mean"][j, folds], moments["var"][j, folds] = q.moments()
        moments["parts"][j, folds] = q.design.parts(q.solution, q.s)
        if p:
            held_mean, held_var = held_moments(q)
            moments["held_mean"][j, folds], moments["held_var"][j, folds] = held_mean, held_var
        point.q = q.stored()
    base = likelihood.base_logit()
    flat = np.broadcast_to(base[..., None], (F, C, n))  # predictions of the base rate
    noise = likelihood.noise_at(flat, np.zeros((F, C, n)))
    return Ensemble(
        batch,
        fitted,
        **moments,
        base_logit=base,
        base_variance=noise_variance(noise, (F, C)),
    )


def first_views(order: IntArray, count: int) -> Mask:
    """Return the mask of the first views of every fold, (F, M)."""
    mask = np.zeros(order.shape, dtype=bool)
    np.put_along_axis(mask, order[:, :count], True, axis=1)
    return mask


def restricted(q: WeightPosterior, views: Mask) -> WeightPosterior:
    """Return q(w) without some views (F, M): variances as learned, means at their optimum.

    Site precisions stay as they are, so that one factorisation is enough. Those of Gaussian outputs
    are learned once more. With all views, moments of the training rows are those of the ensemble
    and are not computed again.
    """
    if views.all():
        q.refresh(rows=False)
        return q
    C = q.s.shape[1]
    mask = np.repeat(views[:, None].astype(float), C, axis=1)
    smaller = q.with_variances(q.s * q.design.spread(mask))
    # Sites and the variances of missing views depend on each other.
    for _ in range(1 if q.design.absent is None else 2):
        smaller.refresh()
        smaller.refresh_extra()
        if smaller.noise is None:
            smaller.optimise_means()
        else:
            smaller.damped_update(0)
    if smaller.noise is not None:
        smaller.refresh()
    return smaller


def view_moments(
    ensemble: Ensemble, stacking: Stacking, counts: Sequence[int]
) -> tuple[Array, Array]:
    """Return held-out moments of the stacked ensemble on its first views, each (V, F, C, p)."""
    weights = ensemble.point_weights(stacking.shares)
    order = ensemble.view_order()
    fewer = [count for count in counts if count < len(order[0])]
    means = np.repeat(ensemble.held_mean[None], len(counts), axis=0)  # (V, J, F, C, p)
    variances = np.repeat(ensemble.held_var[None], len(counts), axis=0)
    if fewer:
        for j, folds, q in ensemble.posteriors(weights, *ensemble.batch.designs()):
            for v, moments in enumerate(moments_by_views(q, order[folds], fewer)):
                means[v, j, folds], variances[v, j, folds] = moments
    slope, slope_var = stacking.slope[:, None, None], stacking.slope_var[:, None, None]
    base = ensemble.base_logit[..., None]
    stacked = [
        calibrated_moments(*mixture(mean, var, weights[..., None]), base, slope, slope_var)
        for mean, var in zip(means, variances, strict=True)
    ]
    mean, var = (np.stack(part) for part in zip(*stacked, strict=True))
    return mean, var


def moments_by_views(
    q: WeightPosterior, order: IntArray, counts: Sequence[int]
) -> Iterator[tuple[Array, Array]]:
    """Yield moments (F, C, p) of held-out rows on the first views, for each number of views."""
    complete = q.design.absent is None and q.design.held_absent is None
    if q.design.uses_features and q.noise is None and complete:
        yield from _nested_moments(q, order, counts)
        return
    for count in counts:
        yield held_moments(restricted(q, first_views(order, count)))


def _nested_moments(
    q: WeightPosterior, order: IntArray, counts: Sequence[int]
) -> Iterator[tuple[Array, Array]]:
    """Yield the moments of `moments_by_views` from one factorisation.

    With columns in the order of their views, the first rows of the factor are those of the model on
    the first views.
    """
    design: ColumnDesign = q.design
    F, M = order.shape
    place = np.full((F, M + 1), M)  # of each view in the order
    np.put_along_axis(place, order, np.tile(np.arange(M), (F, 1)), axis=1)
    enters = np.take_along_axis(place, design.owner, axis=1)  # (F, L), M for columns that pad
    columns = np.argsort(enters, axis=1, kind="stable")
    # Columns of the first views and the intercept, for each number of views and fold.
    ends = 1 + (enters[None] < np.array(counts)[:, None, None]).sum(axis=2)
    design = design.reordered(columns)
    whole = q.with_variances(np.take_along_axis(q.s, columns[:, None], axis=2), design)
    whole.refresh(rows=False)
    solution: FeaturePosterior = whole.solution
    assert design.held is not None
    var = leading_squares(solution.half, design.X1.swapaxes(1, 2), ends)
    held_var = leading_squares(solution.half, design.held.swapaxes(1, 2), ends)
    for v, end in enumerate(ends):
        most = int(end.max())
        half = solution.half[:, :, :most, :most]
        if (end < most).any():  # folds with fewer columns
            half = half * (np.arange(most) < end[:, None])[:, None, :, None]
        part = design.first(most)
        first = whole.with_variances(whole.s[:, :, : most - 1], part)
        first.solution = solution.leading(part.X1, half, whole.sites, var[v])
        first.optimise_means()
        mean = np.matmul(first.solution.w, design.held[:, :, :most].swapaxes(1, 2))
        yield mean, np.maximum(held_var[v], 1e-12)
