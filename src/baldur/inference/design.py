"""The features of all views as the posteriors of several folds need them.

A `ColumnDesign` holds the features as columns, a `GramDesign` holds the Gram matrix of each view.
Both answer the same questions for all folds of a batch at once, under prior variances s, one per
fold, output and column (`ColumnDesign`) or one per fold, output and view (`GramDesign`). With equal
variances they give the same posterior. Rows that pad a fold to the length of the longest are zero.

Shapes: F folds, C outputs, n training rows, p held-out rows, L columns, M views.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from baldur.core.types import Array, Index, IntArray, Mask
from baldur.model.likelihood import Sites
from baldur.model.posterior import (
    INTERCEPT_VAR,
    FeaturePosterior,
    SamplePosterior,
    feature_posterior,
    matvec,
    sample_posterior,
    triangle_squares,
    triangle_times,
    weighted_gram,
)
from baldur.views.prepared_view import PreparedView

Posterior = SamplePosterior | FeaturePosterior


@dataclass(frozen=True)
class ColumnDesign:
    """Features as columns; the posterior is computed by the cheaper solver."""

    X1: Array  # (F, n, 1 + L); a column of ones first
    owner: IntArray  # (F, L); view of each column; `n_views` for columns that pad
    count: Array  # (F,); training rows of each fold, without padding
    n_views: int
    intercept_var: float = INTERCEPT_VAR  # prior variance of the intercept; 0 leaves it out
    held: Array | None = None  # (F, p, 1 + L); the held-out rows, or None
    absent: Array | None = None  # (F, n, M); 1 where a row has no measurements of a view, or None
    held_absent: Array | None = None  # (F, p, M); the same for held-out rows

    @property
    def uses_features(self) -> bool:
        """Whether there are fewer columns than rows, so that the feature solver is cheaper."""
        return self.X1.shape[2] - 1 < self.X1.shape[1]

    @cached_property
    def membership(self) -> Array:
        """1 where a column belongs to a view, (F, L, M)."""
        return (self.owner[..., None] == np.arange(self.n_views)).astype(float)

    def columns(self, chosen: IntArray, used: Array) -> ColumnDesign:
        """Return training rows of columns (F, K) of each fold, zero where `used` (F, K) is 0."""
        X = np.take_along_axis(self.X1[:, :, 1:], chosen[:, None, :], axis=2)
        X1 = np.concatenate([self.X1[:, :, :1], X * used[:, None, :]], axis=2)
        owner = np.where(used > 0, np.take_along_axis(self.owner, chosen, axis=1), self.n_views)
        return replace(self, X1=X1, owner=owner, held=None)

    def reordered(self, columns: IntArray) -> ColumnDesign:
        """Return the design with its columns in another order (F, L), different in each fold."""
        at = np.concatenate([np.zeros((len(columns), 1), dtype=np.intp), 1 + columns], axis=1)
        held = None if self.held is None else np.take_along_axis(self.held, at[:, None], axis=2)
        return replace(
            self,
            X1=np.take_along_axis(self.X1, at[:, None], axis=2),
            owner=np.take_along_axis(self.owner, columns, axis=1),
            held=held,
        )

    def first(self, count: int) -> ColumnDesign:
        """Return the design with its first columns, the intercept counted."""
        held = None if self.held is None else self.held[:, :, :count]
        owner = self.owner[:, : count - 1]
        return replace(self, X1=self.X1[:, :, :count], owner=owner, held=held)

    def scales(self) -> Array:
        """Return sum_d mean_n x_nd^2 of every view, (F, M): Var eta under weights of variance 1."""
        squares = np.einsum("fnl,fnl->fl", self.X1[:, :, 1:], self.X1[:, :, 1:])
        return np.asarray(np.einsum("fl,flm->fm", squares, self.membership) / self.count[:, None])

    def spread(self, by_view: Array) -> Array:
        """Return prior variances (F, C, L) from one per output and view, (F, C, M)."""
        return values_of_owner(by_view, self.owner)

    @cached_property
    def grams(self) -> Array:
        """Inner products of the training rows over the columns of each view, X_m X_m^T.

        Shapes: returns (F, M, n, n) of F folds, M views and n training rows.
        """
        X = self.X1[:, :, 1:]  # without the column of ones
        F, n, _ = X.shape
        out = np.zeros((F, self.n_views, n, n))
        for f in range(F):
            for m in range(self.n_views):
                cells = X[f][:, self.owner[f] == m]
                out[f, m] = cells @ cells.T
        return out

    def by_view(self, values: Array) -> Array:
        """Return sums of values (F, C, L) over the columns of each view, (F, C, M)."""
        return np.asarray(np.matmul(values, self.membership))

    def predictor_variance(self, s: Array) -> Array:
        """Return the prior variance that s gives eta, averaged over rows, (F, C)."""
        squares = np.einsum("fnl,fnl->fl", self.X1[:, :, 1:], self.X1[:, :, 1:])
        return np.asarray(np.einsum("fcl,fl->fc", s, squares / self.count[:, None]))

    def kernel(self, s: Array) -> Array | None:
        """Return X diag(s) X^T + s_0, the prior Cov eta, (F, C, n, n); None if `uses_features`."""
        if self.uses_features:
            return None
        at = _with_variance(s)  # columns of variance 0 add nothing
        X = self.X1[:, :, 1:]
        if at is not None:
            X, s = _take(X, at), _take(s, at)
        K = weighted_gram(X, s)
        K += self.intercept_var
        return K

    def posterior(
        self, s: Array, sites: Sites, kernel: Array | None, *, rows: bool = True
    ) -> Posterior:
        """Return q(w) of every fold and output; `kernel` is that of `s`.

        Without `rows` the feature solver leaves variances of the training rows out.
        """
        if kernel is not None:
            return sample_posterior(kernel, *sites)
        first = np.full((*s.shape[:2], 1), self.intercept_var)
        return feature_posterior(self.X1, np.concatenate([first, s], axis=2), *sites, rows=rows)

    def statistics(self, q: Posterior, h: Array) -> tuple[Array, Array]:
        """Return x_d^T alpha and x_d^T C^-1 x_d of the columns, each (F, C, L)."""
        X = self.X1[:, :, 1:]
        projected = np.matmul(q.alpha, X)
        if isinstance(q, FeaturePosterior) and q.X1 is self.X1:  # products are known
            return projected, q.column_quadratics(h)[..., 1:]
        return projected, q.quadratics(X, h)

    def weights(self, q: Posterior, s: Array, h: Array) -> tuple[Array, Array]:
        """Return means and variances of the weights, each (F, C, L): folds, outputs, columns."""
        if isinstance(q, FeaturePosterior):  # known: x^T alpha would lose digits
            return q.w[..., 1:], q.weight_var[..., 1:]
        projected, S = self.statistics(q, h)
        return s * projected, np.maximum(s - s**2 * S, 0.0)

    def strengths(self, q: Posterior, s: Array, h: Array) -> tuple[Array, Array]:
        """Return sum_d <w_d>^2/s_d and sum_d (1 - Var w_d/s_d) of every view, each (F, C, M).

        They are equal where the view's prior variance is at its fixed point.
        """
        w, var = self.weights(q, s, h)
        safe = np.where(s > 0, s, 1.0)
        determined = np.where(s > 0, 1.0 - var / safe, 0.0)
        return self.by_view(w**2 / safe), self.by_view(determined)

    def parts(self, q: Posterior, s: Array) -> Array:
        """Return each view's part X_m <w_m> of <eta>, (F, M, C, n): fold, view, output, row."""
        X = self.X1[:, :, 1:]
        w = q.w[..., 1:] if isinstance(q, FeaturePosterior) else s * np.matmul(q.alpha, X)
        # The weights of each view, 0 for columns of others, (F, M, C, L).
        split = w[:, None] * self.membership.swapaxes(1, 2)[:, :, None, :]
        return np.asarray(np.matmul(split, X.swapaxes(1, 2)[:, None]))

    def part_variance(self, q: Posterior, s: Array) -> Array:
        """Return the posterior variance of each view's part of eta, summed over rows, (F, M, C)."""
        F, C = s.shape[:2]
        out = np.zeros((F, self.n_views, C))  # C is 1 where outputs share variances
        for f in range(F):
            for m in range(self.n_views):
                columns = np.flatnonzero(self.owner[f] == m)
                X = self.X1[f][:, 1 + columns]
                # The trace of X Cov(w) X^T, or of the same through the kernel of the view.
                gram = X.T @ X if isinstance(q, FeaturePosterior) else None
                for c in range(C):
                    if gram is not None:
                        half = q.half[f, c][:, 1 + columns]
                        out[f, m, c] = max(float(np.vdot(half.T @ half, gram)), 0.0)
                    else:
                        scaled = X * np.sqrt(s[f, c, columns])
                        out[f, m, c] = _left_variance(scaled @ scaled.T, q.half[f, c])
        return out

    def predict_held(self, q: Posterior, s: Array) -> tuple[Array, Array]:
        """Return <eta> and Var eta of the held-out rows, each (F, C, p)."""
        assert self.held is not None
        return self.predict(q, s, self.held)

    def predict(self, q: Posterior, s: Array, new1: Array) -> tuple[Array, Array]:
        """Return <eta> and Var eta of new rows (F, p, 1 + L), a one first, each (F, C, p)."""
        if isinstance(q, FeaturePosterior):
            mean = np.matmul(q.w, new1.swapaxes(1, 2))
            return mean, triangle_squares(q.half, new1.swapaxes(1, 2))
        new, X = new1[:, :, 1:], self.X1[:, :, 1:]
        at = _with_variance(s)
        if at is not None:
            new, X, s = (_take(part, at) for part in (new, X, s))
        K = np.matmul(new[:, None] * s[:, :, None, :], X[:, None].swapaxes(2, 3))
        K += self.intercept_var
        diagonal = np.matmul(s, (new**2).swapaxes(1, 2)) + self.intercept_var
        return predict_rows(q, K, diagonal)


@dataclass(frozen=True)
class GramDesign:
    """Features through the Gram matrix X_m X_m^T of each view; one variance per view."""

    grams: Array  # (F, M, n, n)
    count: Array  # (F,); training rows of each fold, without padding
    intercept_var: float = INTERCEPT_VAR
    cross: Array | None = None  # (F, M, p, n)
    lengths: Array | None = None  # (F, M, p); squared lengths of held-out rows, or None
    absent: Array | None = None  # absent, held_absent: as in a `ColumnDesign`
    held_absent: Array | None = None

    uses_features = False

    @property
    def n_views(self) -> int:
        """Return the number of views M of the design."""
        return self.grams.shape[1]

    def scales(self) -> Array:
        """Return tr(X_m X_m^T)/n of every view, (F, M): Var eta under weights of variance 1."""
        return np.asarray(np.einsum("fmnn->fm", self.grams) / self.count[:, None])

    def spread(self, by_view: Array) -> Array:
        """Return `by_view` unchanged, because features of a view share one variance."""
        return by_view

    def predictor_variance(self, s: Array) -> Array:
        """Return the prior variance that s gives eta, averaged over rows, (F, C)."""
        return np.asarray(np.einsum("fcm,fm->fc", s, self.scales()))

    def kernel(self, s: Array) -> Array:
        """Return the prior covariance of eta, sum_m s_m X_m X_m^T + s_0, (F, C, n, n)."""
        F, M, n, _ = self.grams.shape
        K = np.matmul(s, self.grams.reshape(F, M, n * n)).reshape(F, s.shape[1], n, n)
        K += self.intercept_var
        return K

    def posterior(
        self, s: Array, sites: Sites, kernel: Array | None, *, rows: bool = True
    ) -> SamplePosterior:
        """Return q(w) of every fold and output; `kernel` is that of `s`."""
        return sample_posterior(self.kernel(s) if kernel is None else kernel, *sites)

    def strengths(self, q: Posterior, s: Array, h: Array) -> tuple[Array, Array]:
        """Return sums of <w_d>^2/s and 1 - Var w_d/s over each view, through G, each (F, C, M)."""
        assert isinstance(q, SamplePosterior)
        F, M, n, _ = self.grams.shape
        along = np.matmul(q.alpha[:, None], self.grams)  # (F, M, C, n)
        power = np.einsum("fmcn,fcn->fcm", along, q.alpha)
        flat = self.grams.reshape(F, M, n * n)
        determined = np.matmul(q.inverse.reshape(F, -1, n * n), flat.swapaxes(1, 2))
        return s * power, s * determined

    def parts(self, q: Posterior, s: Array) -> Array:
        """Return each view's part s G alpha of <eta>, (F, M, C, n): fold, view, output, row."""
        return np.matmul(q.alpha[:, None], self.grams) * s.swapaxes(1, 2)[..., None]

    def part_variance(self, q: Posterior, s: Array) -> Array:
        """Return the posterior variance of each view's part of eta, summed over rows, (F, M, C)."""
        F, C, M = s.shape
        out = np.zeros((F, M, C))
        for f, c, m in np.ndindex(F, C, M):
            out[f, m, c] = _left_variance(s[f, c, m] * self.grams[f, m], q.half[f, c])
        return out

    def predict_held(self, q: Posterior, s: Array) -> tuple[Array, Array]:
        """Return <eta> and Var eta of the held-out rows, each (F, C, p)."""
        assert isinstance(q, SamplePosterior)
        assert self.cross is not None
        assert self.lengths is not None
        F, M, p, n = self.cross.shape
        K = np.matmul(s, self.cross.reshape(F, M, p * n)).reshape(F, -1, p, n)
        K += self.intercept_var
        return predict_rows(q, K, np.matmul(s, self.lengths) + self.intercept_var)


Design = ColumnDesign | GramDesign


def _with_variance(s: Array) -> IntArray | None:
    """Return the columns (F, K) of which some output has a variance above 0, and others that pad.

    None where they are more than half of all columns, so that leaving the others out saves little.
    """
    some = np.asarray((s > 0).any(axis=1))
    if 2 * int(some.sum(axis=1).max()) > s.shape[2]:
        return None
    return marked_columns(some)[0]


def marked_columns(mask: Mask, least: int = 0) -> tuple[IntArray, Array]:
    """Return the marked columns (F, L) of each fold, (F, K >= least), and 1 where not padding."""
    count = mask.sum(axis=1)
    K = max(int(count.max(initial=0)), least)
    columns = np.argsort(~mask, axis=1, kind="stable")[:, :K]
    return columns, (np.arange(K) < count[:, None]).astype(float)


def values_of_owner(by_view: Array, owner: IntArray, padding: float = 0.0) -> Array:
    """Return the value of the view of each column, (F, ..., L), from those of views, (F, ..., M).

    Columns whose `owner` (F, L) is M pad, and get the value `padding`.
    """
    last = np.full((*by_view.shape[:-1], 1), padding)
    at = owner.reshape(len(owner), *[1] * (by_view.ndim - 2), owner.shape[1])
    return np.take_along_axis(np.concatenate([by_view, last], axis=-1), at, axis=-1)


def _take(values: Array, at: IntArray) -> Array:
    """Return some columns (F, K) of the last axis of (F, ..., L)."""
    return np.take_along_axis(values, at[:, None], axis=2)


def predict_rows(q: SamplePosterior, K: Array, diagonal: Array) -> tuple[Array, Array]:
    """Return mean and variance of f for p new rows, each (F, C, p).

    Shapes: K (F, C, p, n), kernel with the n training rows; diagonal (F, C, p), with themselves.
    """
    mean = matvec(K, q.alpha)
    var = np.empty_like(diagonal)
    for at in np.ndindex(diagonal.shape[:2]):
        part = triangle_times(q.half[at], np.ascontiguousarray(K[at].T))
        var[at] = diagonal[at] - np.einsum("ij,ij->j", part, part)
    return mean, var


def _left_variance(K: Array, half: Array) -> float:
    """Return tr(K - K C^-1 K), the posterior variance of the part of f that has the kernel K."""
    return max(float(np.trace(K) - np.square(half @ K).sum()), 0.0)


def gather(views: Sequence[PreparedView], index: Index) -> Array:
    """Return chosen columns of every view side by side, (n, L) float64."""
    return np.concatenate(
        [view.columns(columns) for view, columns in zip(views, index, strict=True)], axis=1
    )
