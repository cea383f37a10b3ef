"""The ensemble on fewer views: its posteriors, and its predictions of held-out rows.

Prior variances and site precisions stay as they were learned with all views; means move to their
optimum. The feature solver then needs one factorisation for all numbers of views: with columns in
the order of the views, the Cholesky factor of the first columns is a leading block of the whole
one, and so is its inverse. Variances of rows are sums of squares over its rows, which are summed
view by view.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from baldur.inference.design import ColumnDesign
from baldur.inference.ensemble_members import Designs, Ensemble, held_moments, mixture
from baldur.inference.fold_batch import EnsembleData
from baldur.inference.predictive import calibrated_moments
from baldur.inference.stacking import Stacking
from baldur.inference.weight_posterior import WeightPosterior
from baldur.model.posterior import FeaturePosterior, leading_squares
from baldur.types import Array, IntArray, Mask


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
    for _ in range(1 if q.absent is None else 2):
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
    data: EnsembleData, ensemble: Ensemble, stacking: Stacking, counts: Sequence[int]
) -> tuple[Array, Array]:
    """Return held-out moments of the stacked ensemble on its first views, each (V, F, C, p)."""
    weights = ensemble.point_weights(stacking.shares)
    order, held_absent = ensemble.view_order(), ensemble.batch.held_absent(data)
    fewer = [count for count in counts if count < data.n_views]
    means = np.repeat(ensemble.held_mean[None], len(counts), axis=0)  # (V, J, F, C, p)
    variances = np.repeat(ensemble.held_var[None], len(counts), axis=0)
    if fewer:
        designs = Designs.of(data, ensemble.batch)
        for j, at in ensemble.used(weights):
            folds = ensemble.points[j].folds[at]
            lacking = None if held_absent is None else held_absent[folds]
            q = designs.attach(ensemble.points[j], at)
            for v, found in enumerate(moments_by_views(q, order[folds], fewer, lacking)):
                means[v, j, folds], variances[v, j, folds] = found
    slope, slope_var = stacking.slope[:, None, None], stacking.slope_var[:, None, None]
    base = ensemble.base_logit[..., None]
    stacked = [
        calibrated_moments(*mixture(mean, var, weights[..., None]), base, slope, slope_var)
        for mean, var in zip(means, variances, strict=True)
    ]
    mean, var = (np.stack(part) for part in zip(*stacked, strict=True))
    return mean, var


def moments_by_views(
    q: WeightPosterior, order: IntArray, counts: Sequence[int], held_absent: Array | None
) -> Iterator[tuple[Array, Array]]:
    """Return moments (F, C, p) of held-out rows on the first views, for each number of views."""
    if q.design.uses_features and q.noise is None and q.absent is None and held_absent is None:
        yield from _nested_moments(q, order, counts)
        return
    for count in counts:
        yield held_moments(restricted(q, first_views(order, count)), held_absent)


def _nested_moments(
    q: WeightPosterior, order: IntArray, counts: Sequence[int]
) -> Iterator[tuple[Array, Array]]:
    """Return the same from one factorisation, for logistic outputs and the feature solver."""
    design: ColumnDesign = q.design
    F, M = order.shape
    rank = np.full((F, M + 1), M)
    np.put_along_axis(rank, order, np.tile(np.arange(M), (F, 1)), axis=1)
    enters = np.take_along_axis(rank, design.owner, axis=1)  # (F, L), M for columns that pad
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
        if (end < most).any():
            half = half * (np.arange(most) < end[:, None])[:, None, :, None]
        part = design.first(most)
        first = whole.with_variances(whole.s[:, :, : most - 1], part)
        first.solution = solution.leading(part.X1, half, whole.sites, var[v])
        first.optimise_means()
        mean = np.matmul(first.solution.w, design.held[:, :, :most].swapaxes(1, 2))
        yield mean, np.maximum(held_var[v], 1e-12)
