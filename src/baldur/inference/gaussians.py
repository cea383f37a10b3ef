"""Gaussians over weights: by mean and covariance, or through the training rows; both can be saved.

Shapes: J Gaussians in a block, K factors, M views, L features, N training rows, n rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from baldur.core.state import Covariance, Each, Number, Numbers, Object, Sizes, need, stored
from baldur.core.types import Array, Index
from baldur.inference.design import predict_rows
from baldur.model.posterior import SamplePosterior, with_ones
from baldur.views.prepared_view import PreparedView

Views = Sequence[PreparedView]

COLUMNS = Each(Numbers("?", "int", low=0, below="D", unique=True), "M")
"""For each view, the columns that have a weight, none twice."""


class CoefficientSums:
    """Means and second moments of the weights of each view, (K, D_m), and mean intercepts (K,)."""

    def __init__(self, K: int, widths: Sequence[int]) -> None:
        self.mean = [np.zeros((K, D)) for D in widths]
        self.second = [np.zeros((K, D)) for D in widths]
        self.intercept = np.zeros(K)

    def add_columns(self, index: Index, weights: Array, mean: Array, var: Array) -> None:
        """Add means and variances (J, K, L) of weights on the columns `index`."""
        edges = np.concatenate([[0], np.cumsum([len(columns) for columns in index])])
        first = np.einsum("jk,jkl->kl", weights, mean)
        second = np.einsum("jk,jkl->kl", weights, mean**2 + var)
        for m, columns in enumerate(index):
            self.mean[m][:, columns] += first[:, edges[m] : edges[m + 1]]
            self.second[m][:, columns] += second[:, edges[m] : edges[m + 1]]


@dataclass
class WeightGaussian:
    """Gaussians known by mean and covariance of their weights."""

    kind: ClassVar[str] = "weight gaussian"

    index: Index = stored(COLUMNS)
    mean: Array = stored(Numbers("J C l"))  # l = 1 + L; the intercept first
    cov: Array = stored(Covariance("J C l l"))

    def check_state(self, sizes: Sizes) -> None:
        """Refuse other numbers of weights than of features."""
        features = sum(map(len, self.index))
        need(self.mean.shape[2] == 1 + features, f"expected {1 + features} weights", "mean")

    def moments(self, views: Views) -> tuple[Array, Array]:
        """Return X <w> and x^T Cov x, each (J, K, n)."""
        X1 = with_ones(gather(views, self.index))
        var = np.einsum("jknl,nl->jkn", np.matmul(X1, self.cov), X1)
        return np.matmul(self.mean, X1.T), np.maximum(var, 1e-12)

    def add_coefficients(self, sums: CoefficientSums, weights: Array) -> None:
        """Add the means and variances of the weights to `sums`."""
        var = np.einsum("jkll->jkl", self.cov)[..., 1:]
        sums.intercept += (weights * self.mean[..., 0]).sum(axis=0)
        sums.add_columns(self.index, weights, self.mean[..., 1:], var)

    def entering(self, widths: Sequence[int]) -> Index:
        """Return the features of each view."""
        return self.index

    def joint(self, widths: Sequence[int]) -> tuple[Array, Array]:
        """Return the stored mean and covariance of the weights."""
        return self.mean, self.cov


@dataclass
class KernelGaussian:
    """Gaussians known through the training rows, as the sample solver leaves them."""

    kind: ClassVar[str] = "kernel gaussian"

    alpha: Array = stored(Numbers("J C N"))
    half: Array = stored(Numbers("J C N N"))  # half^T half = C^-1
    s: Array = stored(Numbers("J C L", low=0.0))  # for columns, or (J, C, M) for whole views
    intercept_var: float = stored(Number(low=0.0))
    # Columns with their training rows, or training rows of whole views
    index: Index | None = stored(replace(COLUMNS, optional=True), default=None)
    cells: Array | None = stored(Numbers("N l", optional=True), default=None)
    train: list[PreparedView] | None = stored(
        Each(Object((PreparedView,)), "M", optional=True), default=None
    )

    def __post_init__(self) -> None:
        # As it comes back from a file, so that products of a loaded predictor round alike.
        self.half = np.ascontiguousarray(self.half)

    def check_state(self, sizes: Sizes) -> None:
        """Refuse training rows of other columns, or of columns and whole views at once."""
        columns = self.index is not None
        need(columns == (self.cells is not None), "expected it where there are cells", "index")
        need(columns == (self.train is None), "expected rows of columns or of views", "train")
        features = sizes.known["M"] if self.index is None else sum(map(len, self.index))
        need(self.s.shape[2] == features, f"expected {features} variances", "s")
        fits = self.cells is None or self.cells.shape[1] == features
        need(fits, f"expected {features} columns", "cells")

    def moments(self, views: Views) -> tuple[Array, Array]:
        """Return mean and variance from the kernel with the training rows, each (J, K, n)."""
        if self.cells is not None:
            assert self.index is not None
            new = gather(views, self.index)
            K = np.matmul(new * self.s[:, :, None, :], self.cells.T)
            own = np.matmul(self.s, (new**2).T)
        else:
            assert self.train is not None
            pairs = zip(self.train, views, strict=True)
            cross = np.stack([old.cross_gram(now) for old, now in pairs])  # (M, n, N)
            K = np.einsum("jkm,mnr->jknr", self.s, cross, optimize=True)
            own = np.matmul(self.s, np.stack([squared_lengths(view) for view in views]))
        q = SamplePosterior(self.alpha, self.half, self.alpha, self.alpha, self.alpha)
        mean, var = predict_rows(q, K + self.intercept_var, own + self.intercept_var)
        return mean, np.maximum(var, 1e-12)

    def add_coefficients(self, sums: CoefficientSums, weights: Array) -> None:
        """Add means s x^T alpha and variances s - s^2 x^T C^-1 x; one pass over the views."""
        sums.intercept += (weights * self.intercept_var * self.alpha.sum(axis=-1)).sum(axis=0)
        if self.cells is not None:
            assert self.index is not None
            part = np.matmul(self.half, self.cells)
            S = np.einsum("jknl,jknl->jkl", part, part)
            mean = self.s * np.matmul(self.alpha, self.cells)
            sums.add_columns(self.index, weights, mean, np.maximum(self.s - self.s**2 * S, 0.0))
            return
        assert self.train is not None
        J, K, N = self.alpha.shape
        inverses = np.matmul(self.half.swapaxes(-1, -2), self.half)
        alphas = np.ascontiguousarray(self.alpha.reshape(J * K, N).T)
        for m, view in enumerate(self.train):
            s = self.s[:, :, m]
            prior = (weights * s).sum(axis=0)
            if not prior.any():
                continue
            # The expected variance sum_j w_j (s_j - s_j^2 x^T C_j^-1 x) has a matrix per factor.
            matrices = np.einsum("jk,jknr->knr", weights * s**2, inverses)
            projected, quadratics = view.project_with_quadratics(alphas, list(matrices))
            mean = s[..., None] * projected.reshape(J, K, -1)
            sums.mean[m] += np.einsum("jk,jkd->kd", weights, mean)
            sums.second[m] += np.einsum("jk,jkd->kd", weights, mean**2)
            sums.second[m] += np.maximum(prior[:, None] - quadratics, 0.0)

    def entering(self, widths: Sequence[int]) -> Index:
        """Return the columns, or all features of views with a variance."""
        if self.index is not None:
            return self.index
        live = np.atleast_1d(self.s.any(axis=(0, 1)))
        return [np.arange(D if use else 0) for D, use in zip(widths, live, strict=True)]

    def joint(self, widths: Sequence[int]) -> tuple[Array, Array]:
        """Return mean and covariance of the weights, from the training rows."""
        own = self.entering(widths)
        cells, s = self.cells, self.s
        if cells is None:
            assert self.train is not None
            cells = gather(self.train, own)
            s = np.repeat(self.s, [len(columns) for columns in own], axis=2)
        X1 = with_ones(cells)
        prior = np.concatenate([np.full((*s.shape[:2], 1), self.intercept_var), s], axis=2)
        part = np.matmul(self.half, X1 * prior[:, :, None, :])
        cov = -np.matmul(part.swapaxes(-1, -2), part)
        np.einsum("jkll->jkl", cov)[...] += prior
        return prior * np.matmul(self.alpha, X1), cov


def block_size(block: WeightGaussian | KernelGaussian) -> int:
    """Return the number of Gaussians in a block."""
    return len(block.mean) if isinstance(block, WeightGaussian) else len(block.alpha)


def gather(views: Views, index: Index) -> Array:
    """Return chosen columns of every view side by side, (n, L) float64."""
    return np.concatenate(
        [view.columns(columns) for view, columns in zip(views, index, strict=True)], axis=1
    )


def squared_lengths(view: PreparedView) -> Array:
    """Return |x_n|^2 of every row, (n,), a few rows at a time."""
    out = np.empty(view.shape[0])
    for start in range(0, len(out), 256):
        rows = np.arange(start, min(start + 256, len(out)))
        out[rows] = np.diag(view.take_rows(rows).weighted_gram())
    return out
