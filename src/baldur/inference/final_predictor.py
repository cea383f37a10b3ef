"""Building the predictor: the ensemble projected onto selected features, or on whole views."""

from __future__ import annotations

import numpy as np

from baldur.core.types import Index, Mask
from baldur.inference.ensemble_members import (
    Designs,
    noise_variance,
)
from baldur.inference.fit_context import FitContext
from baldur.inference.gaussians import KernelGaussian, WeightGaussian
from baldur.inference.path_search import restricted
from baldur.inference.predictive import shrinkage
from baldur.inference.predictor import Calibration, Predictor, mean_squares, pool
from baldur.inference.screening import with_their_groups
from baldur.inference.selection import Scores
from baldur.inference.submodel_path import SubmodelPath, submodel_signal
from baldur.inference.weight_posterior import WeightPosterior
from baldur.model.posterior import INTERCEPT_VAR, FeaturePosterior


def submodel_predictor(
    fit: FitContext, path: SubmodelPath, size: int, step: Scores
) -> tuple[Predictor, Index]:
    """Return the ensemble projected onto the first columns of the path, and its columns.

    `step` says how these columns compare with the ensemble.
    """
    chosen = path.basis.order[0, :size]
    place = np.argsort(chosen, kind="stable")  # blocks list columns in rising order
    reorder = np.concatenate([[0], 1 + place])
    flat = np.zeros(sum(map(len, fit.index)), dtype=bool)
    flat[chosen] = True
    parts = np.split(flat, np.cumsum([len(i) for i in fit.index])[:-1])
    index = [columns[part] for columns, part in zip(fit.index, parts, strict=True)]
    mean, cov = path.weights_of(0, size)
    signal, lacking = submodel_signal(fit.everyone, path, 0, size)
    mean, cov = mean[:, reorder], cov[:, reorder][:, :, reorder]
    shrink, noise, stretch = np.ones(len(mean)), path.noise[0], step.stretch[0]
    if fit.problem.task == "regression":
        noise = noise + step.left_out[0]
    else:
        shrink = shrinkage(step.left_out[0])
    block = WeightGaussian(
        index,
        (shrink[:, None] * mean)[None],
        ((shrink**2 * stretch)[:, None, None] * cov)[None],
    )
    if fit.problem.groups is not None:  # a level that the others say has weight 0
        index = with_their_groups(index, fit.problem.groups)
    predictor = Predictor(
        [block],
        np.ones((1, len(mean))),
        fit.problem.widths,
        noise,
        shrink**2 * signal,
        shrink**2 * signal,
        shrink**2 * (signal + stretch * (lacking - signal)),
    )
    return predictor, index


def whole_view_predictor(fit: FitContext, views: Mask, step: Scores) -> Predictor:
    """Return the stacked ensemble on all features of some views.

    `step` says how these views compare with the ensemble.
    """
    left_out, C = step.left_out[0], len(fit.data.T)
    regression = fit.problem.task == "regression"
    weights = fit.full.point_weights(fit.stacking.shares)[:, 0]  # (J, C)
    designs = Designs.of(fit.full.batch)
    nobody = np.zeros(1, dtype=np.intp)
    found = []
    noise, parts, lacking = np.zeros(C), 0.0, 0.0
    for j, _ in fit.full.used(weights[:, None]):
        q = restricted(designs.attach(fit.full.points[j], nobody, every=True), views)
        w = weights[j]
        noise = noise + w * noise_variance(q.noise, (1, C))[0]
        parts = parts + w[:, None] * q.design.parts(q.solution, q.s)[0]
        lacking = lacking + w * q.missing_view_variance()[0]
        found.append((j, q))
    shrink = np.ones(C) if regression else shrinkage(left_out)
    spread = shrink * np.sqrt(step.stretch[0])
    slope = float(fit.stacking.slope[0])
    calibration = Calibration(
        fit.full.base_logit[0], slope, float(fit.stacking.slope_var[0]), shrink, spread
    )
    signal = (slope * shrink) ** 2 * mean_squares(np.asarray(parts), fit.data.absent)
    blocks, order = _blocks(fit, found, designs)
    weights = weights[order]
    final: Calibration | None = calibration
    if len(blocks) == 1 and isinstance(blocks[0], WeightGaussian):
        blocks = [pool(blocks[0], weights, calibration)]
        weights, final = np.ones((1, C)), None
    return Predictor(
        blocks,
        weights,
        fit.problem.widths,
        noise + (left_out if regression else 0.0),
        signal,
        signal,
        spread**2 * np.asarray(lacking),
        final,
    )


def _blocks(
    fit: FitContext, found: list[tuple[int, WeightPosterior]], designs: Designs
) -> tuple[list[WeightGaussian | KernelGaussian], list[int]]:
    """Return the Gaussians as blocks of one kind each, and their order among the points."""
    kinds: dict[str, list[tuple[int, WeightPosterior]]] = {}
    for j, q in found:
        by_view = fit.data.grams is not None and not fit.full.points[j].selects
        kind = "views" if by_view else "columns"
        if isinstance(q.solution, FeaturePosterior):
            kind = "weights"
        kinds.setdefault(kind, []).append((j, q))
    blocks: list[WeightGaussian | KernelGaussian] = []
    order: list[int] = []
    for kind, pairs in kinds.items():
        order += [j for j, _ in pairs]
        solutions = [q.solution for _, q in pairs]
        if kind == "weights":
            half = np.stack([q.half[0] for q in solutions])
            cov = np.matmul(half.swapaxes(-1, -2), half)
            mean = np.stack([q.w[0] for q in solutions])
            blocks.append(WeightGaussian(fit.index, mean, cov))
            continue
        alpha, half = (
            np.stack([getattr(q, name)[0] for q in solutions]) for name in ("alpha", "half")
        )
        s = np.stack([q.s[0] for _, q in pairs])
        if kind == "columns":
            cells = np.ascontiguousarray(designs.candidates.X1[0, :, 1:])
            blocks.append(KernelGaussian(alpha, half, s, INTERCEPT_VAR, fit.index, cells, None))
        else:
            train = list(fit.problem.views)
            blocks.append(KernelGaussian(alpha, half, s, INTERCEPT_VAR, None, None, train))
    return blocks, order
