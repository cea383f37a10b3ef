"""The posterior that predicts, from what was chosen: some features, or whole views."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from baldur.inference.gaussian import Gaussian, mean_squares
from baldur.inference.held_out import Path, Scores
from baldur.inference.mixture import Explicit, Implicit, Mixture, Pool
from baldur.inference.new_rows import Index
from baldur.inference.predictive import shrinkage
from baldur.inference.reference import Reference, noise_variance
from baldur.inference.stack import Stack
from baldur.views.products import PreparedView

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def projected(
    reference: Reference,
    path: Path,
    size: int,
    step: Scores,
    candidates: Index,
    widths: Sequence[int],
) -> tuple[Mixture, list[Mask], NDArray[np.intp]]:
    """Return the reference projected onto the first features of the path.

    Also the masks of the kept features, and their places among the candidates, in path order.
    `step` says how these features stand to the reference.
    """
    chosen = path.columns[path.basis.order[:size]]
    place = np.argsort(chosen, kind="stable")  # components list columns in rising order
    reorder = np.concatenate([[0], 1 + place])
    flat = np.zeros(sum(len(i) for i in candidates), dtype=bool)
    flat[chosen] = True
    parts = np.split(flat, np.cumsum([len(i) for i in candidates])[:-1])
    index = [columns[part] for columns, part in zip(candidates, parts, strict=True)]
    mean, cov = path.weights_of(size)
    signal, lacking = path.signal(size, reference.data)
    mean, cov = mean[:, reorder], cov[:, reorder][:, :, reorder]
    shrink, noise, stretch = np.ones(len(mean)), path.noise, step.stretch[0]
    if reference.level_noise is None:
        shrink = shrinkage(step.left[0])
    else:
        noise = noise + step.left[0]
    component = Explicit(
        index,
        shrink[:, None] * mean,
        (shrink**2 * stretch)[:, None, None] * cov,
        noise,
        shrink**2 * signal,
        shrink**2 * (signal + stretch * (lacking - signal)),
    )
    kept = [np.zeros(D, dtype=bool) for D in widths]
    for mask, columns in zip(kept, index, strict=True):
        mask[columns] = True
    return Mixture([component], np.ones((1, len(mean))), list(widths)), kept, chosen


def whole(
    reference: Reference,
    points: list[Gaussian],
    weights: Array,
    stack: Stack,
    step: Scores,
    views: Mask,
    candidates: Index,
    train: Sequence[PreparedView],
) -> tuple[Mixture, list[Mask]]:
    """Return the reference on all features of some views, and the masks of these.

    `step` says how these views stand to the reference.
    """
    logistic, left = reference.level_noise is None, step.left[0]
    widths = [view.shape[1] for view in train]
    C = reference.likelihood.n_outputs
    shared = list(train)
    smaller = reference.restricted(points, views)
    # Of the mean over all Gaussians, as the coefficients are.
    signal = mean_squares(reference.parts(smaller, weights), reference.data.absent[reference.rows])
    components = [
        Implicit(
            q.features,
            q.s,
            q.sides,
            candidates,
            shared,
            noise_variance(q.noise) * np.ones(C) + (0.0 if logistic else left),
            signal,
            q.lacking(),
        )
        for q in smaller
    ]
    kept = [np.full(D, use) for D, use in zip(widths, views, strict=True)]
    shrink = shrinkage(left) if logistic else np.ones(C)
    spread = shrink * np.sqrt(step.stretch[0])
    pool = Pool(reference.level, stack.slope, shrink, spread, stack.slope_var)
    return Mixture(components, weights, widths, pool=pool), kept
