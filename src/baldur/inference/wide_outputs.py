"""Predictions of a sample-side posterior over more columns than fit in memory as float64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from baldur.model.structured.weights import SampleSide
from baldur.views.products import PreparedView

Array = NDArray[np.float64]

ROWS_AT_ONCE = 512
DENSE_BYTES = 1 << 28
"""Kept columns up to this size are held as one array for prediction."""


@dataclass
class WideOutputs:
    """q(w_k) of every factor on the sample side, with the training views it refers to.

    Like any kernel method it needs the training rows to predict with uncertainty: the relevance
    vectors of the paper's dual.

    Attributes
    ----------
    views : list of PreparedView, the training rows
    s : list of (K, D_m) prior variances, zero where dropped
    sides : list of K SampleSide
    intercept_var : float
    """

    views: Sequence[PreparedView]
    s: list[Array]
    sides: list[SampleSide]
    intercept_var: float

    def weights(self) -> tuple[Array, Array]:
        """Return means and variances of the weights of all views side by side, each (K, D)."""
        alphas = np.stack([side.alpha for side in self.sides], axis=1)
        means, variances = [], []
        for view, s in zip(self.views, self.s, strict=True):
            S = np.stack([view.quadratic_diag(side.Ci) for side in self.sides])
            means.append(s * view.project(alphas).T)
            variances.append(np.maximum(s - s**2 * S, 0.0))
        return np.concatenate(means, axis=1), np.concatenate(variances, axis=1)

    def intercepts(self) -> Array:
        """Return the mean intercept of every factor, (K,)."""
        return np.array([self.intercept_var * side.alpha.sum() for side in self.sides])

    def predict(self, views: Sequence[PreparedView]) -> tuple[Array, Array]:
        """Return mean and variance of the factors for the rows of `views`, each (n, K)."""
        n = views[0].shape[0]
        mean, var = np.empty((n, len(self.sides))), np.empty((n, len(self.sides)))
        for start in range(0, n, ROWS_AT_ONCE):
            rows = np.arange(start, min(start + ROWS_AT_ONCE, n))
            part = [view.take_rows(rows) for view in views]
            for k, side in enumerate(self.sides):
                K = np.full((len(rows), len(side.alpha)), self.intercept_var)
                own = np.full(len(rows), self.intercept_var)
                for train, new, s in zip(self.views, part, self.s, strict=True):
                    K += train.cross_gram(new, s[k])
                    own += np.diag(new.weighted_gram(s[k]))
                mean[rows, k] = K @ side.alpha
                var[rows, k] = own - np.einsum("nm,nm->n", K @ side.Ci, K)
        return mean, np.maximum(var, 1e-12)
