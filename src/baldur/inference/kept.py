"""The posterior that predicts, from what was chosen: nothing, some features, or whole views."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from baldur.inference.features import Index
from baldur.inference.gaussian import Gaussian
from baldur.inference.held_out import Path
from baldur.inference.mixture import Explicit, Implicit, Mixture
from baldur.inference.reference import Reference, noise_variance
from baldur.views.products import PreparedView

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def nothing(reference: Reference, widths: Sequence[int]) -> tuple[Mixture, list[Mask]]:
    """Return the base rate."""
    C = reference.likelihood.n_outputs
    kept = [np.zeros(D, dtype=bool) for D in widths]
    return Mixture([base_rate(reference, len(widths))], np.ones((1, C)), list(widths)), kept


def base_rate(reference: Reference, n_views: int) -> Explicit:
    """Return the component without features."""
    C = reference.likelihood.n_outputs
    return Explicit(
        [np.zeros(0, dtype=np.intp) for _ in range(n_views)],
        reference.level[:, None],
        np.zeros((C, 1, 1)),
        noise_variance(reference.level_noise) * np.ones(C),
        np.zeros((n_views, C)),
        np.zeros((n_views, C)),
    )


def projected(
    reference: Reference, path: Path, size: int, candidates: Index, widths: Sequence[int]
) -> tuple[Mixture, list[Mask], NDArray[np.intp]]:
    """Return the reference projected onto the first features of the path.

    Also the masks of the kept features, and their places among the candidates, in path order.
    """
    chosen = path.columns[path.basis.order[:size]]
    place = np.argsort(chosen, kind="stable")  # components list columns in rising order
    reorder = np.concatenate([[0], 1 + place])
    flat = np.zeros(sum(len(i) for i in candidates), dtype=bool)
    flat[chosen] = True
    parts = np.split(flat, np.cumsum([len(i) for i in candidates])[:-1])
    index = [columns[part] for columns, part in zip(candidates, parts, strict=True)]
    components: list[Explicit | Implicit] = []
    for z, noise in zip(path.coordinates, path.noise, strict=True):
        mean, cov = path.weights_of(z, size)
        signal, lacking = path.signal(z, size, reference.data)
        mean, cov = mean[:, reorder], cov[:, reorder][:, :, reorder]
        noise = noise + z.noise[:, size]
        components.append(Explicit(index, mean, cov, noise, signal, lacking))
    kept = [np.zeros(D, dtype=bool) for D in widths]
    for mask, columns in zip(kept, index, strict=True):
        mask[columns] = True
    return Mixture(components, path.weights, list(widths)), kept, chosen


def whole(
    reference: Reference,
    points: list[Gaussian],
    weights: Array,
    views: Mask,
    candidates: Index,
    train: Sequence[PreparedView],
) -> tuple[Mixture, list[Mask]]:
    """Return the reference on all features of some views, and the masks of these."""
    widths = [view.shape[1] for view in train]
    C = reference.likelihood.n_outputs
    shared = list(train)
    components: list[Explicit | Implicit] = [
        Implicit(
            q.features,
            q.s,
            q.sides,
            candidates,
            shared,
            noise_variance(q.noise) * np.ones(C),
            q.signal(),
            q.lacking(),
        )
        for q in reference.restricted(points, views)
    ]
    components.append(base_rate(reference, len(widths)))
    kept = [np.full(D, use) for D, use in zip(widths, views, strict=True)]
    return Mixture(components, weights, widths), kept
