"""All features of all views, whatever their number, as a posterior with all of them in needs them.

Through the Gram matrix of each view, one pass for any number of columns, of which a subset of the
rows is a slice; or as columns, where all views together have fewer features than samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from baldur.model.likelihood import Sites
from baldur.model.structured.state import INTERCEPT_VAR, Side
from baldur.model.structured.weights import FeatureSide, SampleSide, feature_side, sample_side
from baldur.views.products import PreparedView

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


class AllFeatures(Protocol):
    """All features of all views on some rows; both kinds give the same posterior."""

    n_views: int

    def within(self, rows: Rows) -> AllFeatures:
        """Return the same features on a subset of the rows."""

    def scales(self) -> Array:
        """Return tr(X_m X_m^T)/N of every view, (M,)."""

    def posterior(self, slab: Array, sites: Sites) -> list[Side]:
        """Return q(w_c) of every output under prior variances slab (C, M)."""

    def strengths(self, sides: Sequence[Side], slab: Array) -> tuple[Array, Array]:
        """Return sum_d <w_d>^2 and sum_d (1 - Var w_d/slab), each (C, M)."""

    def parts(self, sides: Sequence[Side], slab: Array) -> Array:
        """Return each view's part of <eta>, (M, N, C)."""

    def predict(
        self, sides: Sequence[Side], slab: Array, rows: Rows, held: Rows
    ) -> tuple[Array, Array]:
        """Return <eta> and Var eta of the rows `held`, each (n, C), from a fit on `rows`."""


class Grams:
    """All features through the Gram matrix X_m X_m^T of each view.

    Attributes
    ----------
    grams : list of M (N, N) arrays
    """

    def __init__(self, grams: Sequence[Array]) -> None:
        self.grams = list(grams)
        self.n_views = len(self.grams)

    def within(self, rows: Rows) -> Grams:
        """Slice: a Gram of fewer rows is part of the Gram of all."""
        return Grams([gram[np.ix_(rows, rows)] for gram in self.grams])

    def scales(self) -> Array:
        """Return tr(X_m X_m^T)/N."""
        return np.array([np.trace(gram) / len(gram) for gram in self.grams])

    def kernel(self, slab: Array, rows: Rows | None = None, columns: Rows | None = None) -> Array:
        """Return sum_m slab_m X_m X_m^T + s_0 from the variances (M,) of one output."""
        place = ... if rows is None or columns is None else np.ix_(rows, columns)
        total = INTERCEPT_VAR + slab[0] * self.grams[0][place]
        for variance, gram in zip(slab[1:], self.grams[1:], strict=True):
            if variance > 0:
                total += variance * gram[place]
        return np.asarray(total)

    def posterior(self, slab: Array, sites: Sites) -> list[Side]:
        """On the sample side."""
        return [
            sample_side(self.kernel(row), sites.h[:, c], sites.j[:, c])
            for c, row in enumerate(slab)
        ]

    def strengths(self, sides: Sequence[Side], slab: Array) -> tuple[Array, Array]:
        """slab^2 alpha^T G alpha and slab tr(C^-1 G)."""
        power, used = np.zeros_like(slab), np.zeros_like(slab)
        for c, side in enumerate(sides):
            if not isinstance(side, SampleSide):
                continue
            for m, gram in enumerate(self.grams):
                power[c, m] = slab[c, m] ** 2 * (side.alpha @ gram @ side.alpha)
                used[c, m] = slab[c, m] * np.vdot(side.Ci, gram)
        return power, used

    def parts(self, sides: Sequence[Side], slab: Array) -> Array:
        """slab G alpha."""
        alphas = np.stack([side.alpha for side in sides], axis=1)
        return np.stack([(gram @ alphas) * slab[:, m] for m, gram in enumerate(self.grams)])

    def predict(
        self, sides: Sequence[Side], slab: Array, rows: Rows, held: Rows
    ) -> tuple[Array, Array]:
        """K alpha and the prior variance less k^T C^-1 k."""
        mean, var = np.empty((len(held), len(sides))), np.empty((len(held), len(sides)))
        for c, side in enumerate(sides):
            if isinstance(side, SampleSide):
                K = self.kernel(slab[c], held, rows)
                own = sum(v * np.diag(G)[held] for v, G in zip(slab[c], self.grams, strict=True))
                part = side.half @ K.T
                mean[:, c] = K @ side.alpha
                var[:, c] = INTERCEPT_VAR + own - np.einsum("mn,mn->n", part, part)
        return mean, np.maximum(var, 1e-12)


class Columns:
    """All features as columns, for fewer features than samples.

    Attributes
    ----------
    X : (N, D) array
    owner : (D,) view of each column
    """

    def __init__(self, X: Array, owner: NDArray[np.intp], n_views: int) -> None:
        self.X = X
        self.owner = owner
        self.n_views = n_views

    def within(self, rows: Rows) -> Columns:
        """Rows of the columns."""
        return Columns(self.X[rows], self.owner, self.n_views)

    def _by_view(self, values: Array) -> Array:
        return np.bincount(self.owner, values, minlength=self.n_views).astype(float)

    def scales(self) -> Array:
        """Return the sum of the mean squares of the columns of each view."""
        return self._by_view((self.X**2).mean(axis=0))

    def posterior(self, slab: Array, sites: Sites) -> list[Side]:
        """On the feature side."""
        return [
            feature_side(self.X, row[self.owner], INTERCEPT_VAR, sites.h[:, c], sites.j[:, c])
            for c, row in enumerate(slab)
        ]

    def strengths(self, sides: Sequence[Side], slab: Array) -> tuple[Array, Array]:
        """Sums of <w>^2 and of slab x^T C^-1 x."""
        fitted = [side for side in sides if isinstance(side, FeatureSide)]
        power = np.stack([self._by_view(side.w[1:] ** 2) for side in fitted])
        return power, slab * np.stack([self._by_view(side.S) for side in fitted])

    def parts(self, sides: Sequence[Side], slab: Array) -> Array:
        """X_m <w_m>."""
        w = np.stack([side.w[1:] for side in sides if isinstance(side, FeatureSide)], axis=1)
        own = [self.owner == m for m in range(self.n_views)]
        return np.stack([self.X[:, here] @ w[here] for here in own])

    def predict(
        self, sides: Sequence[Side], slab: Array, rows: Rows, held: Rows
    ) -> tuple[Array, Array]:
        """X <w> and the spread of w."""
        X1 = np.hstack([np.ones((len(held), 1)), self.X[held]])
        fitted = [side for side in sides if isinstance(side, FeatureSide)]
        mean = np.stack([X1 @ side.w for side in fitted], axis=1)
        var = np.stack([side.spread(X1) for side in fitted], axis=1)
        return mean, np.maximum(var, 1e-12)


def all_features(views: Sequence[PreparedView]) -> AllFeatures:
    """Choose by size, and make the Grams or gather the columns: one pass over the views."""
    widths = [view.shape[1] for view in views]
    if sum(widths) < views[0].shape[0]:
        X = np.concatenate([view.dense() for view in views], axis=1)
        return Columns(X, np.repeat(np.arange(len(views)), widths), len(views))
    return Grams([view.weighted_gram() for view in views])
