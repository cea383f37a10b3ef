"""The features of all views as a posterior needs them: as columns, or through Gram matrices.

`Columns` are here, `Grams` in a file of their own. Both answer the same questions under prior
variances s, one per output and column (`Columns`) or one per output and view (`Grams`). With equal
variances they give the same posterior.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from baldur.inference.grams import Grams, stacked
from baldur.inference.new_rows import Index, NewRows, Views, gather
from baldur.inference.weight_sums import WeightSums
from baldur.model.likelihood import Sites
from baldur.model.posterior import (
    INTERCEPT_VAR,
    Side,
    feature_side,
    sample_side,
    weighted_gram,
)
from baldur.views.products import PreparedView

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


class Known(Protocol):
    """Features of a posterior that predicts rows of prepared views; `index` are its columns."""

    intercept_var: float

    def of_new(self, new: NewRows, index: Index, train: Views) -> Any:
        """Return what `predict` needs to know of new rows."""

    def predict(self, sides: Any, s: Array, new: Any) -> tuple[Array, Array]:
        """Return <eta> and Var eta of new rows, each (n, C)."""

    def add_weights(
        self, sums: WeightSums, w: Array, sides: Any, s: Array, index: Index, train: Views
    ) -> None:
        """Add the weights of every feature to sums, counted w (K,) times."""

    def entering(self, s: Array, index: Index, widths: Sequence[int]) -> Index:
        """Return the features of each view that have a weight."""

    def training_columns(self, s: Array, own: Index, train: Views) -> tuple[Array, Array]:
        """Return cells (N, L) and prior variances (C, L) of the features that have a weight."""


class Features(Known, Protocol):
    """Features of all views on some rows."""

    n_views: int

    def within(self, rows: Rows) -> Features:
        """Return the same features on a subset of the rows."""

    def scales(self) -> Array:
        """Return sum_d mean_n x_nd^2 of every view, (M,)."""

    def spread(self, by_view: Array) -> Array:
        """Return prior variances s from one per output and view, (C, M)."""

    def predictor_variance(self, s: Array) -> Array:
        """Return the prior variance that s gives eta, averaged over rows, (C,)."""

    def posterior(self, s: Array, sites: Sites) -> list[Side]:
        """Return q(w_c) of every output."""

    def strengths(self, sides: Sequence[Side], s: Array) -> tuple[Array, Array]:
        """Return sum_d <w_d>^2/s_d and sum_d (1 - Var w_d/s_d) of every view, each (C, M)."""

    def parts(self, sides: Sequence[Side], s: Array) -> Array:
        """Return each view's part of <eta>, (M, N, C)."""

    def part_variance(self, sides: Sequence[Side], s: Array) -> Array:
        """Return the posterior variance of each view's part of eta, mean over rows, (M, C)."""

    def new_rows(self, rows: Rows, new: Rows) -> Any:
        """Return what `predict` of the features within `rows` needs to know of rows `new`."""

    def predict(self, sides: Sequence[Side], s: Array, new: Any) -> tuple[Array, Array]:
        """Return <eta> and Var eta of new rows, each (n, C), from a posterior on these rows."""

    def kernels(self, s: Array) -> list[Array]:
        """Return X diag(s_c) X^T + s_0 of every output."""

    def variances_of(self, s: Array, owner: NDArray[np.intp], at: NDArray[np.intp]) -> Array:
        """Return the prior variances of features `at`, (C, L), whose views are `owner` of all."""


class Columns:
    """Features as columns; the posterior is computed on the smaller side.

    Attributes
    ----------
    X : (N, L) array
    owner : (L,) view of each column
    n_views : int
    intercept_var : float, prior variance of the intercept; 0 where it lives elsewhere
    """

    def __init__(
        self,
        X: Array,
        owner: NDArray[np.intp],
        n_views: int,
        intercept_var: float = INTERCEPT_VAR,
    ) -> None:
        self.X = X
        self.owner = owner
        self.n_views = n_views
        self.intercept_var = intercept_var
        self._kernels: tuple[Array | None, list[Array]] = (None, [])

    def within(self, rows: Rows) -> Columns:
        """Rows of the columns."""
        return Columns(
            np.ascontiguousarray(self.X[rows]), self.owner, self.n_views, self.intercept_var
        )

    def only(self, keep: NDArray[np.bool_] | NDArray[np.intp]) -> Columns:
        """Return some of the columns."""
        return Columns(
            np.ascontiguousarray(self.X[:, keep]),
            self.owner[keep],
            self.n_views,
            self.intercept_var,
        )

    def by_view(self, values: Array) -> Array:
        """Return sums of values (C, L) over the columns of each view, (C, M)."""
        return np.stack(
            [np.bincount(self.owner, row, minlength=self.n_views).astype(float) for row in values]
        )

    def scales(self) -> Array:
        """Sum of the mean squares of the columns."""
        return self.by_view((self.X**2).mean(axis=0)[None])[0]

    def spread(self, by_view: Array) -> Array:
        """Every column has the variance of its view."""
        return by_view[:, self.owner]

    def predictor_variance(self, s: Array) -> Array:
        """Sum of s times the mean squares."""
        return np.asarray(s @ (self.X**2).mean(axis=0))

    def kernels(self, s: Array) -> list[Array]:
        """Return X diag(s_c) X^T + s_0 of every output; made once for all multiples of s."""
        known, made = self._kernels
        factor = None if known is None else _multiple(s, known)
        if factor is None:
            factor, made = np.ones(len(s)), [weighted_gram(self.X, row) for row in s]
            self._kernels = (s.copy(), made)
        return [f * K + self.intercept_var for f, K in zip(factor, made, strict=True)]

    def posterior(self, s: Array, sites: Sites) -> list[Side]:
        """On the feature side if there are fewer columns than rows, else on the sample side."""
        h, j = sites
        if self.X.shape[1] < len(self.X):
            return [
                feature_side(self.X, row, self.intercept_var, h[:, c], j[:, c])
                for c, row in enumerate(s)
            ]
        return [sample_side(K, h[:, c], j[:, c]) for c, K in enumerate(self.kernels(s))]

    def statistics(self, sides: Sequence[Side]) -> tuple[Array, Array]:
        """Return x_d^T alpha_c and x_d^T C_c^-1 x_d, each (C, L)."""
        alphas = np.array([side.alpha for side in sides])
        return alphas @ self.X, np.array([side.quadratic(self.X) for side in sides])

    def weights(self, sides: Sequence[Side], s: Array) -> tuple[Array, Array]:
        """Return means and variances of the weights, each (C, L)."""
        pairs = [side.weights(self.X, row) for side, row in zip(sides, s, strict=True)]
        mean, var = (np.stack(part) for part in zip(*pairs, strict=True))
        return mean, var

    def strengths(self, sides: Sequence[Side], s: Array) -> tuple[Array, Array]:
        """Sums over columns; on the feature side the weights are known, and x^T C^-1 x is dear."""
        w, var = self.weights(sides, s)
        safe = np.where(s > 0, s, 1.0)
        return self.by_view(w**2 / safe), self.by_view(np.where(s > 0, 1.0 - var / safe, 0.0))

    def parts(self, sides: Sequence[Side], s: Array) -> Array:
        """X_m <w_m>."""
        w, _ = self.weights(sides, s)
        own = [np.flatnonzero(self.owner == m) for m in range(self.n_views)]
        return np.stack([self.X[:, here] @ w[:, here].T for here in own])

    def part_variance(self, sides: Sequence[Side], s: Array) -> Array:
        """x^T Cov x over the columns of the view."""
        own = [np.flatnonzero(self.owner == m) for m in range(self.n_views)]
        out = [
            [side.spread_of(self.X, row, at) for side, row in zip(sides, s, strict=True)]
            for at in own
        ]
        return np.array(out) / max(len(self.X), 1)

    def new_rows(self, rows: Rows, new: Rows) -> Array:
        """Their cells, (n, L)."""
        return np.asarray(self.X[new])

    def variances_of(self, s: Array, owner: NDArray[np.intp], at: NDArray[np.intp]) -> Array:
        """Their own."""
        return s[:, at]

    def of_new(self, new: NewRows, index: Index, train: Views) -> Array:
        """Their cells, (n, L)."""
        return new.columns(index)

    def add_weights(
        self, sums: WeightSums, w: Array, sides: Any, s: Array, index: Index, train: Views
    ) -> None:
        """One by one."""
        sums.add_columns(index, w, *self.weights(sides, s))

    def entering(self, s: Array, index: Index, widths: Sequence[int]) -> Index:
        """The columns."""
        return index

    def training_columns(self, s: Array, own: Index, train: Views) -> tuple[Array, Array]:
        """As they are."""
        return self.X, s

    def predict(self, sides: Sequence[Side], s: Array, new: Array) -> tuple[Array, Array]:
        """From the weights, or from the kernel with the training rows."""
        return stacked(
            [
                side.predict_rows(new, self.X, row, self.intercept_var)
                for side, row in zip(sides, s, strict=True)
            ]
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out kernels, which can be made again."""
        return {**self.__dict__, "_kernels": (None, [])}


def _multiple(s: Array, known: Array) -> Array | None:
    """Return f with s = f known, one factor per output, or None if there is none."""
    if s.shape != known.shape or not s.size:
        return None
    each, top = np.arange(len(known)), known.argmax(axis=1)
    peak = known[each, top]
    factor = s[each, top] / np.where(peak > 0, peak, 1.0)
    same = np.abs(s - factor[:, None] * known) <= 1e-12 * s
    return factor if same.all() else None


def all_features(
    views: Sequence[PreparedView], intercept_var: float = INTERCEPT_VAR
) -> Columns | Grams:
    """Choose by size, and make the Grams or gather the columns: one pass over the views."""
    widths = [view.shape[1] for view in views]
    if sum(widths) < views[0].shape[0]:
        return columns_of(views, [np.arange(D) for D in widths], intercept_var)
    return Grams([view.weighted_gram() for view in views], intercept_var)


def columns_of(
    views: Sequence[PreparedView], index: Index, intercept_var: float = INTERCEPT_VAR
) -> Columns:
    """Return chosen columns of every view."""
    return Columns(gather(views, index), owners(index), len(views), intercept_var)


def owners(index: Index) -> NDArray[np.intp]:
    """Return the view of each gathered column."""
    return np.repeat(np.arange(len(index)), [len(columns) for columns in index])


def positions(union: Index, index: Index) -> NDArray[np.intp]:
    """Return where the features of `index` stand among the gathered columns of `union`."""
    edges = np.concatenate([[0], np.cumsum([len(u) for u in union])])
    parts = [edges[m] + np.searchsorted(union[m], index[m]) for m in range(len(union))]
    return np.concatenate(parts).astype(np.intp)
