"""Weights of all features under several posteriors, added up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from baldur.inference.new_rows import Index, Views
from baldur.model.posterior import Side, on_samples

Array = NDArray[np.float64]


class ThroughGrams(NamedTuple):
    """A posterior through Grams that counts w (K,) times.

    Its K sides, its variances s (K, M), and the training views.
    """

    w: Array
    sides: Sequence[Side]
    s: Array
    train: Views


class WeightSums:
    """Means and second moments of the weights of each view (K, D_m), summed over components.

    Posteriors through Grams wait until the end: one pass over the training views serves them all.
    """

    def __init__(self, K: int, widths: Sequence[int]) -> None:
        self.mean = [np.zeros((K, D)) for D in widths]
        self.second = [np.zeros((K, D)) for D in widths]
        self.waiting: list[ThroughGrams] = []

    def add_columns(self, index: Index, w: Array, found: Array, var: Array) -> None:
        """Add means and variances of weights on gathered columns, each (K, L)."""
        edges = np.concatenate([[0], np.cumsum([len(columns) for columns in index])])
        for m, columns in enumerate(index):
            part = slice(edges[m], edges[m + 1])
            self.mean[m][:, columns] += w[:, None] * found[:, part]
            self.second[m][:, columns] += w[:, None] * (found[:, part] ** 2 + var[:, part])

    def add_grams(self, posterior: ThroughGrams) -> None:
        """Add a posterior through Grams."""
        self.waiting.append(posterior)

    def moments(self) -> tuple[list[Array], list[Array]]:
        """Return the sums.

        The expected variance, sum_j w_j (s_j - s_j^2 x^T C_j^-1 x), needs one matrix per factor.
        """
        waiting, self.waiting = self.waiting, []
        if not waiting:
            return self.mean, self.second
        K = len(waiting[0].w)
        alphas = np.concatenate(
            [np.stack([side.alpha for side in q.sides], axis=1) for q in waiting], axis=1
        )
        for m, view in enumerate(waiting[0].train):
            matrices, prior = [], np.zeros(K)
            for k in range(K):
                total = np.zeros((view.shape[0], view.shape[0]))
                for q in waiting:
                    total += q.w[k] * q.s[k, m] ** 2 * on_samples(q.sides[k]).Ci
                    prior[k] += q.w[k] * q.s[k, m]
                matrices.append(total)
            if not prior.any():
                continue
            projected, quadratics = view.project_with_quadratics(alphas, matrices)
            self.second[m] += np.maximum(prior[:, None] - quadratics, 0.0)
            for j, q in enumerate(waiting):
                part = q.s[:, m, None] * projected[j * K : (j + 1) * K]
                self.mean[m] += q.w[:, None] * part
                self.second[m] += q.w[:, None] * part**2
        return self.mean, self.second
