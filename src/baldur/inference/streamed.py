"""Features of views too wide to hold, each with its own variance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baldur.inference.new_rows import Index, NewRows, Views, gather
from baldur.inference.weight_sums import WeightSums
from baldur.model.posterior import INTERCEPT_VAR, SampleSide, weight_moments
from baldur.views.products import PreparedView

Array = NDArray[np.float64]

ROWS_AT_ONCE = 512


class Streamed:
    """Features of views too wide to hold, each with its own variance; read block by block.

    Like any kernel method it needs the training rows to predict with uncertainty: the relevance
    vectors of the paper's dual.

    Attributes
    ----------
    views : list of PreparedView, the training rows
    intercept_var : float
    """

    def __init__(self, views: Sequence[PreparedView], intercept_var: float = INTERCEPT_VAR) -> None:
        self.views = list(views)
        self.n_views = len(self.views)
        self.intercept_var = intercept_var

    def _parts(self, values: Array) -> list[Array]:
        """Split (C, D) values by view."""
        edges = np.cumsum([view.shape[1] for view in self.views])[:-1]
        return np.split(values, edges, axis=1)

    def of_new(self, new: NewRows, index: Index, train: Views) -> Views:
        """The views themselves."""
        return new.views

    def add_weights(
        self, sums: WeightSums, w: Array, sides: Any, s: Array, index: Index, train: Views
    ) -> None:
        """One by one."""
        sums.add_columns(index, w, *self.weights(sides, s))

    def entering(self, s: Array, index: Index, widths: Sequence[int]) -> Index:
        """Those with a variance."""
        live = s.any(axis=0)
        return [np.flatnonzero(part) for part in np.split(live, np.cumsum(widths)[:-1])]

    def training_columns(self, s: Array, own: Index, train: Views) -> tuple[Array, Array]:
        """Gathered from the views."""
        return gather(self.views, own), s[:, s.any(axis=0)]

    def weights(self, sides: Sequence[SampleSide], s: Array) -> tuple[Array, Array]:
        """Return means and variances of the weights, each (C, D): one pass."""
        alphas = np.stack([side.alpha for side in sides], axis=1)
        matrices = [side.Ci for side in sides]
        means, variances = [], []
        for view, part in zip(self.views, self._parts(s), strict=True):
            projected, S = view.project_with_quadratics(alphas, matrices)
            mean, var = weight_moments(part, projected, S)
            means.append(mean)
            variances.append(var)
        return np.concatenate(means, axis=1), np.concatenate(variances, axis=1)

    def predict(
        self, sides: Sequence[SampleSide], s: Array, new: Sequence[PreparedView]
    ) -> tuple[Array, Array]:
        """From the kernel with the training rows, some new rows at a time."""
        n, parts = new[0].shape[0], self._parts(s)
        mean, var = np.empty((n, len(sides))), np.empty((n, len(sides)))
        for start in range(0, n, ROWS_AT_ONCE):
            rows = np.arange(start, min(start + ROWS_AT_ONCE, n))
            some = [view.take_rows(rows) for view in new]
            for c, side in enumerate(sides):
                K = np.full((len(rows), len(side.alpha)), self.intercept_var)
                own = np.full(len(rows), self.intercept_var)
                for train, view, part in zip(self.views, some, parts, strict=True):
                    K += train.cross_gram(view, part[c])
                    own += np.diag(view.weighted_gram(part[c]))
                mean[rows, c], var[rows, c] = side.predict(K, own)
        return mean, np.maximum(var, 1e-12)
