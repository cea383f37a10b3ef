"""The fitted predictor: a Gaussian over the weights of the selected features.

The stacked ensemble is one Gaussian for each factor (for each output, where factors are outputs).
It is held either as the mean and covariance of weights (`WeightGaussian`), or, where there are more
features than samples, through the training rows (`KernelGaussian`). Several Gaussians are pooled by
their weights and then calibrated, see `baldur.inference.stacking`.

Shapes: J Gaussians in a block, K factors, C outputs, M views, L features, N training rows, n rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from baldur.inference.design import predict_rows
from baldur.inference.ensemble import mixture
from baldur.inference.predictive import calibrated_moments, pooled_weights
from baldur.model.loadings import Loadings
from baldur.model.posterior import SamplePosterior, with_ones
from baldur.state import Fields, State, by_kind
from baldur.types import Array, Index
from baldur.views.prepared_view import PreparedView

Views = Sequence[PreparedView]


class Gaussians(Protocol):
    """J Gaussians over the weights of K factors."""

    def moments(self, views: Views) -> tuple[Array, Array]:
        """Return mean and variance of the factors of every row, each (J, K, n)."""

    def add_coefficients(self, sums: CoefficientSums, weights: Array) -> None:
        """Add the moments of the weights of every feature, counted `weights` (J, K) times."""

    def entering(self, widths: Sequence[int]) -> Index:
        """Return the features of each view that have a weight."""

    def joint(self, widths: Sequence[int]) -> tuple[Array, Array]:
        """Return mean (J, K, 1 + L) and covariance of these weights, the intercept first."""


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
    """Gaussians known by mean and covariance of their weights.

    Attributes
    ----------
    index : features of each view
    mean : (J, K, 1 + L) array, the intercept first
    cov : (J, K, 1 + L, 1 + L) array
    """

    index: Index
    mean: Array
    cov: Array

    def to_state(self) -> State:
        """Return the Gaussians as plain values."""
        return {
            "kind": "weight gaussian",
            "index": list(self.index),
            "mean": self.mean,
            "cov": self.cov,
        }

    @classmethod
    def from_state(cls, state: Any, *, widths: Sequence[int], factors: int) -> WeightGaussian:
        """Build them again, for views of these widths and so many factors."""
        with Fields(state, "weight gaussian", K=factors) as read:
            index = _read_index(read, widths)
            read.sizes["l"] = 1 + sum(map(len, index))
            return cls(
                index=index,
                mean=read.array("mean", ("J", "K", "l")),
                cov=read.covariance("cov", ("J", "K", "l", "l")),
            )

    def moments(self, views: Views) -> tuple[Array, Array]:
        """Return X <w> and x^T Cov x, each (J, K, n)."""
        X1 = with_ones(gather(views, self.index))
        var = np.einsum("jknl,nl->jkn", np.matmul(X1, self.cov), X1)
        return np.matmul(self.mean, X1.T), np.maximum(var, 1e-12)

    def add_coefficients(self, sums: CoefficientSums, weights: Array) -> None:
        """Add the weights and their variances."""
        var = np.einsum("jkll->jkl", self.cov)[..., 1:]
        sums.intercept += (weights * self.mean[..., 0]).sum(axis=0)
        sums.add_columns(self.index, weights, self.mean[..., 1:], var)

    def entering(self, widths: Sequence[int]) -> Index:
        """Return the features of each view."""
        return self.index

    def joint(self, widths: Sequence[int]) -> tuple[Array, Array]:
        """Return mean and covariance as they are."""
        return self.mean, self.cov


@dataclass
class KernelGaussian:
    """Gaussians known through the training rows, as the sample solver leaves them.

    Attributes
    ----------
    alpha : (J, K, N) array
    half : (J, K, N, N) array, half^T half = C^-1
    s : prior variances, (J, K, L) for columns or (J, K, M) for whole views
    intercept_var : float
    index : features of each view that are columns, or None for whole views
    cells : (N, L) array, training rows of the columns, or None
    train : list of M PreparedView, training rows of whole views, or None
    """

    alpha: Array
    half: Array
    s: Array
    intercept_var: float
    index: Index | None = None
    cells: Array | None = None
    train: list[PreparedView] | None = None

    def __post_init__(self) -> None:
        # As it comes back from a file, so that products of a loaded predictor round alike.
        self.half = np.ascontiguousarray(self.half)

    def to_state(self) -> State:
        """Return the Gaussians and the training rows that they need as plain values."""
        return {
            "kind": "kernel gaussian",
            "alpha": self.alpha,
            "half": self.half,
            "s": self.s,
            "intercept_var": float(self.intercept_var),
            "index": None if self.index is None else list(self.index),
            "cells": self.cells,
            "train": None if self.train is None else [view.to_state() for view in self.train],
        }

    @classmethod
    def from_state(cls, state: Any, *, widths: Sequence[int], factors: int) -> KernelGaussian:
        """Build them again, for views of these widths and so many factors."""
        with Fields(state, "kernel gaussian", K=factors) as read:
            alpha = read.array("alpha", ("J", "K", "n"))
            rows = alpha.shape[2]
            index, cells, train = None, None, None
            if read.has("cells"):
                index = _read_index(read, widths)
                read.sizes["l"] = sum(map(len, index))
                cells = read.array("cells", ("n", "l"))
                read.need(not read.has("train"), "expected no rows beside the cells", "train")
            else:
                read.need(not read.has("index"), "expected no columns without cells", "index")
                read.sizes["l"] = len(widths)
                train = read.each(
                    "train",
                    lambda f, key, m: f.part(
                        key, PreparedView.from_state, rows=rows, width=widths[m]
                    ),
                    len(widths),
                )
            return cls(
                alpha=alpha,
                half=read.array("half", ("J", "K", "n", "n")),
                s=read.array("s", ("J", "K", "l"), low=0.0),
                intercept_var=read.number("intercept_var", low=0.0),
                index=index,
                cells=cells,
                train=train,
            )

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


@dataclass(frozen=True)
class Calibration:
    """What stacking and left-out views make of the pooled Gaussian.

    Attributes
    ----------
    base : (K,) array, the base logit
    slope : float, calibration slope
    slope_var : float, posterior variance of the ln slope
    shrink : (K,) array, what integrating over left-out views leaves of linear predictors
    spread : (K,) array, factor of their standard deviations
    """

    base: Array
    slope: float
    slope_var: float
    shrink: Array
    spread: Array

    def to_state(self) -> State:
        """Return the calibration as plain values."""
        return {
            "kind": "calibration",
            "base": self.base,
            "slope": float(self.slope),
            "slope_var": float(self.slope_var),
            "shrink": self.shrink,
            "spread": self.spread,
        }

    @classmethod
    def from_state(cls, state: Any, *, factors: int) -> Calibration:
        """Build it again, for so many factors."""
        with Fields(state, "calibration", K=factors) as read:
            return cls(
                base=read.array("base", ("K",)),
                slope=read.number("slope", above=0.0),
                slope_var=read.number("slope_var", low=0.0),
                shrink=read.array("shrink", ("K",), low=0.0),
                spread=read.array("spread", ("K",), low=0.0),
            )


@dataclass
class Predictor:
    """A Gaussian over the linear predictors of any row.

    Attributes
    ----------
    blocks : list of WeightGaussian and KernelGaussian
    weights : (J, K) array, how much each of their Gaussians counts, columns sum to one
    widths : features of each view
    noise : (C,) array, variance of the noise, 0 for logistic outputs
    signal : (M, K) array, mean square of each view's part of each factor on the training rows
    output_signal : (M, C) array, the same for each output
    missing_variance : (M, K) array, variance of a view's part for a row that lacks it
    calibration : Calibration, or None where the Gaussian is used as it is
    loadings : Loadings, or None where factor k is output k
    """

    blocks: list[WeightGaussian | KernelGaussian]
    weights: Array
    widths: list[int]
    noise: Array
    signal: Array
    output_signal: Array
    missing_variance: Array
    calibration: Calibration | None = None
    loadings: Loadings | None = None

    def to_state(self) -> State:
        """Return the predictor as plain values; `widths` follow from the preparation."""
        return {
            "kind": "predictor",
            "blocks": [block.to_state() for block in self.blocks],
            "weights": self.weights,
            "noise": self.noise,
            "signal": self.signal,
            "output_signal": self.output_signal,
            "missing_variance": self.missing_variance,
            "calibration": None if self.calibration is None else self.calibration.to_state(),
            "loadings": None if self.loadings is None else self.loadings.to_state(),
        }

    @classmethod
    def from_state(
        cls, state: Any, *, widths: Sequence[int], outputs: int, factors: int
    ) -> Predictor:
        """Build it again, for views of these widths and so many outputs and factors."""
        blocks: Callable[..., WeightGaussian | KernelGaussian] = by_kind(
            {
                "weight gaussian": WeightGaussian.from_state,
                "kernel gaussian": KernelGaussian.from_state,
            }
        )
        with Fields(state, "predictor", M=len(widths), C=outputs, K=factors) as read:
            made = cls(
                blocks=read.parts("blocks", blocks, widths=list(widths), factors=factors),
                weights=read.simplex("weights", ("J", "K")),
                widths=list(widths),
                noise=read.array("noise", ("C",), low=0.0),
                signal=read.array("signal", ("M", "K"), low=0.0),
                output_signal=read.array("output_signal", ("M", "C"), low=0.0),
                missing_variance=read.array("missing_variance", ("M", "K"), low=0.0),
                calibration=(
                    read.part("calibration", Calibration.from_state, factors=factors)
                    if read.has("calibration")
                    else None
                ),
                loadings=(
                    read.part("loadings", Loadings.from_state, outputs=outputs, factors=factors)
                    if read.has("loadings")
                    else None
                ),
            )
            total = sum(map(block_size, made.blocks))
            read.need(total == read.sizes["J"], f"expected {total} rows", "weights")
            same = made.loadings is not None or outputs == factors
            read.need(same, "expected them where factors are not outputs", "loadings")
            return made

    @property
    def V(self) -> Array:
        """Loadings (C, K); the identity where factors are outputs."""
        return np.eye(self.weights.shape[1]) if self.loadings is None else self.loadings.V

    @property
    def holds_training_rows(self) -> bool:
        """Whether predictions go through the training rows, which are then stored with a model."""
        return any(isinstance(block, KernelGaussian) for block in self.blocks)

    def latent(self, views: Views) -> tuple[Array, Array]:
        """Return mean and variance of the factors of every row, each (n, K)."""
        pairs = [block.moments(views) for block in self.blocks]
        means, variances = (np.concatenate(part) for part in zip(*pairs, strict=True))
        mean, var = mixture(means, variances, self.weights[..., None])  # (K, n)
        mean, var = mean.T, var.T
        calibration = self.calibration
        if calibration is not None:
            slope, slope_var = np.asarray(calibration.slope), np.asarray(calibration.slope_var)
            mean, var = calibrated_moments(mean, var, calibration.base, slope, slope_var)
            mean, var = calibration.shrink * mean, calibration.spread**2 * var
        absent = np.stack([view.absent for view in views], axis=1)
        if absent.any():
            var = var + absent @ self.missing_variance
        return mean, var

    def moments(self, views: Views) -> tuple[Array, Array]:
        """Return mean and variance of the linear predictors, without noise, each (n, C)."""
        mean, var = self.latent(views)
        return (mean, var) if self.loadings is None else self.loadings.combine(mean, var)

    def coefficients(self) -> tuple[list[Array], list[Array], Array]:
        """Return means and s.d. of the weights of each view (C, D_m), and intercepts (C,)."""
        K = self.weights.shape[1]
        sums, at = CoefficientSums(K, self.widths), 0
        for block in self.blocks:
            J = block_size(block)
            block.add_coefficients(sums, self.weights[at : at + J])
            at += J
        mean, second, b = sums.mean, sums.second, sums.intercept
        if self.loadings is not None:
            pairs = [self.loadings.weights(m, s) for m, s in zip(mean, second, strict=True)]
            mean, second = [m for m, _ in pairs], [s for _, s in pairs]
            b = self.loadings.b + self.loadings.V @ b
        std = [np.sqrt(np.maximum(s - m**2, 0.0)) for m, s in zip(mean, second, strict=True)]
        calibration = self.calibration
        if calibration is None:
            return mean, std, b
        slope, spread = calibration.slope, calibration.spread[:, None]
        mean = [slope * m for m in mean]
        std = [
            spread * np.sqrt((s**2) + calibration.slope_var * m**2)
            for m, s in zip(mean, std, strict=True)
        ]
        b = calibration.shrink * (calibration.base + slope * (b - calibration.base))
        return [calibration.shrink[:, None] * m for m in mean], std, b

    def count_joint(self) -> tuple[Index, int]:
        """Return the features that have a weight, and the numbers in the covariance of `joint`."""
        used = [np.zeros(D, dtype=bool) for D in self.widths]
        for block in self.blocks:
            for mask, columns in zip(used, block.entering(self.widths), strict=True):
                mask[columns] = True
        index = [np.flatnonzero(mask) for mask in used]
        L = 1 + sum(map(len, index))
        return index, len(self.weights) * self.weights.shape[1] * L * L

    def joint(self) -> WeightGaussian:
        """Return the pooled and calibrated Gaussian over the weights of K factors, one block."""
        index, _ = self.count_joint()
        starts = np.concatenate([[0], np.cumsum([len(columns) for columns in index])])
        L, K = 1 + int(starts[-1]), self.weights.shape[1]
        means, covs = [], []
        for block in self.blocks:
            own = block.entering(self.widths)
            at = np.concatenate(
                [[0], *(1 + starts[m] + np.searchsorted(index[m], c) for m, c in enumerate(own))]
            ).astype(np.intp)
            J = block_size(block)
            mean, cov = np.zeros((J, K, L)), np.zeros((J, K, L, L))
            mean[..., at], cov[..., at[:, None], at] = block.joint(self.widths)
            means.append(mean)
            covs.append(cov)
        gathered = WeightGaussian(index, np.concatenate(means), np.concatenate(covs))
        return pool(gathered, self.weights, self.calibration)


def _read_index(read: Fields, widths: Sequence[int]) -> Index:
    """Return the field "index": for each view, features that have a weight, none twice."""

    def one(f: Fields, key: str, m: int) -> Any:
        columns = f.index(key, (None,), widths[m])
        f.need(len(np.unique(columns)) == len(columns), "expected no feature twice", key)
        return columns

    return read.each("index", one, len(widths))


def block_size(block: WeightGaussian | KernelGaussian) -> int:
    """Return the number of Gaussians in a block."""
    return len(block.mean) if isinstance(block, WeightGaussian) else len(block.alpha)


def pool(
    gaussians: WeightGaussian, weights: Array, calibration: Calibration | None
) -> WeightGaussian:
    """Return several Gaussians pooled into one and calibrated."""
    K = weights.shape[1]
    base = np.zeros(gaussians.mean.shape[1:])
    slope, slope_var = np.ones(K), np.zeros(K)
    shrink = spread = np.ones(K)
    if calibration is not None:
        base[:, 0] = calibration.base
        slope, slope_var = np.full(K, calibration.slope), np.full(K, calibration.slope_var)
        shrink, spread = calibration.shrink, calibration.spread
    mean, cov = pooled_weights(gaussians.mean, gaussians.cov, weights, base, slope, slope_var)
    return WeightGaussian(
        gaussians.index, (shrink[:, None] * mean)[None], (spread[:, None, None] ** 2 * cov)[None]
    )


def mean_squares(parts: Array, absent: Array | None) -> Array:
    """Return the mean square of each view's part (M, C, n) over the rows that have it, (M, C).

    `absent` (n, M) is 1 where a row has no measurements of a view.
    """
    if absent is None:
        return np.asarray((parts**2).mean(axis=-1))
    has = 1.0 - absent.T
    total = np.einsum("mcn,mn->mc", parts**2, has)
    return np.asarray(total / np.maximum(has.sum(axis=1), 1.0)[:, None])


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
