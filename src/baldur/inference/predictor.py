"""The fitted predictor: a Gaussian over the weights of the selected features.

The stacked ensemble is one Gaussian for each factor (for each output, where factors are outputs).
It is held either as the mean and covariance of weights (`WeightGaussian`), or, where there are more
features than samples, through the training rows (`KernelGaussian`). Several Gaussians are pooled by
their weights and then calibrated, see `baldur.inference.stacking`.

With C outputs the linear predictors eta_n (C values per sample) often vary in fewer than C
directions, as where four symptoms have two causes. The Gaussian is projected, not fitted again:

    f_n   = R (eta_n - centre)        K latent factors,  R (K, C) with orthonormal rows
    eta_n = centre + R^T f_n          so the loadings are V = R^T

R has the leading principal directions of the linear predictors over the training rows. If all C
directions have the smallest held-out loss, outputs share nothing, and the factors are the outputs
themselves (V = I).

Departure from the paper: its loadings V have an ARD prior and a posterior of their own, whose
precisions prune factors. Under a logistic link V and W shrink together (both scale the logits), so
the number of factors that survives depends on the start. The projection keeps the posterior of the
weights, and prunes factors by prediction.

Shapes: J Gaussians in a block, K factors, C outputs, M views, L features, N training rows, n rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from baldur.core.state import (
    Covariance,
    Each,
    Number,
    Numbers,
    Object,
    OrNone,
    Sizes,
    need,
    stored,
)
from baldur.core.types import Array, Index
from baldur.inference.design import gather, predict_rows
from baldur.inference.stacking import calibrated_moments, mixture, pooled_weights
from baldur.model.posterior import SamplePosterior, with_ones
from baldur.views.prepared_view import PreparedView

Views = Sequence[PreparedView]


COLUMNS = Each(Numbers("?", "int", low=0, below="D", unique=True), "M")
"""For each view, the columns that have a weight, none twice."""


Coefficients = tuple[list[Array], list[Array], Array]
"""For each view two arrays (K, D_m) that belong to its weights, and intercepts (K,)."""


def moments_by_view(
    index: Index, widths: Sequence[int], weights: Array, mean: Array, var: Array
) -> tuple[list[Array], list[Array]]:
    """Return pooled means and second moments of the weights of each view, each (K, D_m).

    Features that are not among the columns `index` have weight 0.
    Shapes: weights (J, K), mean and var (J, K, L) of those columns.
    """
    edges = np.cumsum([len(columns) for columns in index])[:-1]
    moments: list[list[Array]] = []
    for values in (mean, mean**2 + var):
        pooled = np.split(np.einsum("jk,jkl->kl", weights, values), edges, axis=1)
        views = [np.zeros((len(part), D)) for part, D in zip(pooled, widths, strict=True)]
        for view, columns, part in zip(views, index, pooled, strict=True):
            view[:, columns] += part
        moments.append(views)
    return moments[0], moments[1]


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
        """Return means X <w> and variances x^T Cov x of the linear predictors, each (J, K, n)."""
        X1 = with_ones(gather(views, self.index))
        var = np.einsum("jknl,nl->jkn", np.matmul(X1, self.cov), X1)
        return np.matmul(self.mean, X1.T), np.maximum(var, 1e-12)

    def __len__(self) -> int:
        return len(self.mean)

    def coefficients(self, weights: Array, widths: Sequence[int]) -> Coefficients:
        """Return pooled means and second moments of the weights, and mean intercepts."""
        var = np.einsum("jkll->jkl", self.cov)[..., 1:]
        intercept = (weights * self.mean[..., 0]).sum(axis=0)
        return *moments_by_view(self.index, widths, weights, self.mean[..., 1:], var), intercept

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
    index: Index | None = stored(OrNone(COLUMNS), default=None)
    cells: Array | None = stored(OrNone(Numbers("N l")), default=None)
    train: list[PreparedView] | None = stored(OrNone(Each(Object(PreparedView), "M")), default=None)

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
        """Return means and variances of the linear predictors of n new rows.

        They follow from the kernel X_new diag(s) X^T of new and training rows, with one variance s
        per chosen column, or per view where whole views are used.

        Shapes: returns (J, K, n) each, of J Gaussians, K outputs and n rows.
        """
        if self.cells is not None:
            assert self.index is not None
            new = gather(views, self.index)
            kernel = np.matmul(new * self.s[:, :, None, :], self.cells.T)  # (J, K, n, N)
            diagonal = np.matmul(self.s, (new**2).T)
        else:
            assert self.train is not None
            pairs = zip(self.train, views, strict=True)
            cross = np.stack([old.cross_gram(now) for old, now in pairs])  # (M, n, N)
            kernel = np.einsum("jkm,mnr->jknr", self.s, cross, optimize=True)
            diagonal = np.matmul(self.s, np.stack([squared_lengths(view) for view in views]))
        # Only alpha and half are used; moments of the training rows are not known.
        q = SamplePosterior(self.alpha, self.half, self.alpha, self.alpha, self.alpha)
        mean, var = predict_rows(q, kernel + self.intercept_var, diagonal + self.intercept_var)
        return mean, np.maximum(var, 1e-12)

    def __len__(self) -> int:
        return len(self.alpha)

    def coefficients(self, weights: Array, widths: Sequence[int]) -> Coefficients:
        """Return pooled means and second moments of the weights, and mean intercepts.

        Means are s x^T alpha and variances s - s^2 x^T C^-1 x; whole views are read in one pass.
        """
        intercept = (weights * self.intercept_var * self.alpha.sum(axis=-1)).sum(axis=0)
        if self.cells is not None:
            assert self.index is not None
            part = np.matmul(self.half, self.cells)
            S = np.einsum("jknl,jknl->jkl", part, part)
            mean = self.s * np.matmul(self.alpha, self.cells)
            var = np.maximum(self.s - self.s**2 * S, 0.0)
            return *moments_by_view(self.index, widths, weights, mean, var), intercept
        assert self.train is not None
        J, K, N = self.alpha.shape
        inverses = np.matmul(self.half.swapaxes(-1, -2), self.half)
        alphas = np.ascontiguousarray(self.alpha.reshape(J * K, N).T)
        means, seconds = ([np.zeros((K, D)) for D in widths] for _ in range(2))
        for m, view in enumerate(self.train):
            s = self.s[:, :, m]
            prior = (weights * s).sum(axis=0)
            if not prior.any():
                continue
            # The expected variance sum_j w_j (s_j - s_j^2 x^T C_j^-1 x) has a matrix per factor.
            matrices = np.einsum("jk,jknr->knr", weights * s**2, inverses)
            projected, quadratics = view.project_with_quadratics(alphas, list(matrices))
            mean = s[..., None] * projected.reshape(J, K, -1)
            means[m] += np.einsum("jk,jkd->kd", weights, mean)
            seconds[m] += np.einsum("jk,jkd->kd", weights, mean**2)
            seconds[m] += np.maximum(prior[:, None] - quadratics, 0.0)
        return means, seconds, intercept

    def entering(self, widths: Sequence[int]) -> Index:
        """Return the features of each view that may have a weight: all, where it has a variance."""
        if self.index is not None:
            return self.index
        live = np.atleast_1d(self.s.any(axis=(0, 1)))
        return [np.arange(D if use else 0) for D, use in zip(widths, live, strict=True)]

    def joint(self, widths: Sequence[int]) -> tuple[Array, Array]:
        """Return mean (J, K, 1 + L) and covariance of the weights, the intercept first."""
        used = self.entering(widths)
        cells, s = self.cells, self.s
        if cells is None:
            assert self.train is not None
            cells = gather(self.train, used)
            s = np.repeat(self.s, [len(columns) for columns in used], axis=2)
        X1 = with_ones(cells)
        prior = np.concatenate([np.full((*s.shape[:2], 1), self.intercept_var), s], axis=2)
        # diag(prior) - diag(prior) X1^T C^-1 X1 diag(prior)
        part = np.matmul(self.half, X1 * prior[:, :, None, :])
        cov = -np.matmul(part.swapaxes(-1, -2), part)
        np.einsum("jkll->jkl", cov)[...] += prior
        return prior * np.matmul(self.alpha, X1), cov


def squared_lengths(view: PreparedView) -> Array:
    """Return |x_n|^2 of every row, (n,), a few rows at a time."""
    out = np.empty(view.shape[0])
    for start in range(0, len(out), 256):
        rows = np.arange(start, min(start + 256, len(out)))
        out[rows] = np.diag(view.take_rows(rows).weighted_gram())
    return out


@dataclass(frozen=True)
class Calibration:
    """How stacking and left-out views change the pooled Gaussian."""

    kind: ClassVar[str] = "calibration"

    base: Array = stored(Numbers("C"))  # the base logit
    slope: float = stored(Number(above=0.0))  # calibration slope
    slope_var: float = stored(Number(low=0.0))  # posterior variance of the ln slope
    # What integrating over left-out views leaves of linear predictors
    shrink: Array = stored(Numbers("C", low=0.0))
    spread: Array = stored(Numbers("C", low=0.0))  # factor of their standard deviations

    def calibrate_weights(
        self, mean: list[Array], std: list[Array], b: Array
    ) -> tuple[list[Array], list[Array], Array]:
        """Return calibrated means and s.d. of the weights of each view, and intercepts."""
        mean = [self.slope * m for m in mean]
        spread = self.spread[:, None]
        std = [
            spread * np.sqrt(s**2 + self.slope_var * m**2) for m, s in zip(mean, std, strict=True)
        ]
        b = self.shrink * (self.base + self.slope * (b - self.base))
        return [self.shrink[:, None] * m for m in mean], std, b


@dataclass(frozen=True)
class SharedFactors:
    """K latent factors behind C outputs: f = R (eta - centre), eta = centre + R^T f."""

    kind: ClassVar[str] = "shared factors"

    R: Array = stored(Numbers("K C"))  # with orthonormal rows; the loadings are V = R^T
    centre: Array = stored(Numbers("C"))  # mean linear predictor over the training rows

    def check_state(self, sizes: Sizes) -> None:
        """Refuse directions that are not orthonormal."""
        apart = np.abs(self.R @ self.R.T - np.eye(len(self.R))).max(initial=0.0)
        need(apart < 1e-8, "expected orthonormal rows", "R")

    @property
    def P(self) -> Array:
        """R^T R (C, C), the projection of linear predictors onto what the factors explain."""
        return self.R.T @ self.R

    def latent(self, mean: Array, var: Array) -> tuple[Array, Array]:
        """Return moments of the factors (n, K) from those of the linear predictors (n, C)."""
        return (mean - self.centre) @ self.R.T, var @ (self.R**2).T

    def project(self, mean: Array, var: Array) -> tuple[Array, Array]:
        """Return moments (n, C) of outputs that have only these factors.

        The posteriors of outputs are independent, so variances of sums are sums of variances.
        """
        return self.centre + (mean - self.centre) @ self.P, var @ self.P**2

    def project_weights(self, mean: Array, var: Array) -> tuple[Array, Array]:
        """Return means and variances (C, ...) of the weights of these outputs."""
        return np.tensordot(self.P, mean, 1), np.tensordot(self.P**2, var, 1)

    def project_intercept(self, b: Array) -> Array:
        """Return the intercepts (C,) of these outputs."""
        return self.centre + self.P @ (b - self.centre)


@dataclass
class Predictor:
    """A Gaussian over the linear predictors of any row."""

    kind: ClassVar[str] = "predictor"

    # With one Gaussian per output
    blocks: list[WeightGaussian | KernelGaussian] = stored(
        Each(Object(WeightGaussian, KernelGaussian))
    )
    weights: Array = stored(
        Numbers("J C", low=0.0, simplex=True)
    )  # how much each of their Gaussians counts
    # Columns of each view; stored with the preparation
    widths: list[int] = field()  # type: ignore[misc]  # `stored` gives no default
    noise: Array = stored(Numbers("C", low=0.0))  # variance of the noise, 0 for logistic outputs
    # Mean square of each view's part of each factor on the training rows, and of each output
    signal: Array = stored(Numbers("M K", low=0.0))
    output_signal: Array = stored(Numbers("M C", low=0.0))
    # Variance of a view's part for a sample without the view
    missing_variance: Array = stored(Numbers("M C", low=0.0))
    # None where the Gaussian is used as it is
    calibration: Calibration | None = stored(OrNone(Object(Calibration)), default=None)
    # None where factor k is output k
    factors: SharedFactors | None = stored(OrNone(Object(SharedFactors)), default=None)

    @classmethod
    def from_values(cls, values: dict[str, Any], sizes: Sizes) -> Predictor:
        """Return the predictor of stored values."""
        return cls(**values, widths=list(sizes.widths.values()))

    def check_state(self, sizes: Sizes) -> None:
        """Refuse weights of other Gaussians, and outputs that are not the factors."""
        total = sum(map(len, self.blocks))
        need(total == len(self.weights), f"expected {total} rows", "weights")
        same = self.factors is not None or sizes.known["C"] == sizes.known["K"]
        need(same, "expected them where factors are not outputs", "factors")

    @property
    def V(self) -> Array:
        """Loadings (C, K); the identity where factors are outputs."""
        return np.eye(self.weights.shape[1]) if self.factors is None else self.factors.R.T

    @property
    def holds_training_rows(self) -> bool:
        """Whether predictions go through the training rows, which are then stored with a model."""
        return any(isinstance(block, KernelGaussian) for block in self.blocks)

    def latent(self, views: Views) -> tuple[Array, Array]:
        """Return mean and variance of the factors of every row, each (n, K)."""
        mean, var = self._per_output(views)
        return (mean, var) if self.factors is None else self.factors.latent(mean, var)

    def moments(self, views: Views) -> tuple[Array, Array]:
        """Return mean and variance of the linear predictors, without noise, each (n, C)."""
        mean, var = self._per_output(views)
        return (mean, var) if self.factors is None else self.factors.project(mean, var)

    def _per_output(self, views: Views) -> tuple[Array, Array]:
        """Return moments of the linear predictors before factors are shared, each (n, C)."""
        pairs = [block.moments(views) for block in self.blocks]
        means, variances = (np.concatenate(part) for part in zip(*pairs, strict=True))
        mean, var = mixture(means, variances, self.weights[..., None])  # (C, n)
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

    def coefficients(self) -> tuple[list[Array], list[Array], Array]:
        """Return means and s.d. of the weights of each view (C, D_m), and intercepts (C,)."""
        by_block = []
        start = 0  # of the Gaussians of a block among the weights
        for block in self.blocks:
            weights = self.weights[start : start + len(block)]
            by_block.append(block.coefficients(weights, self.widths))
            start += len(block)
        means, seconds, intercepts = zip(*by_block, strict=True)
        mean, second = (
            [sum(views) for views in zip(*each, strict=True)] for each in (means, seconds)
        )
        b = np.asarray(sum(intercepts))
        std = [np.sqrt(np.maximum(s - m**2, 0.0)) for m, s in zip(mean, second, strict=True)]
        if self.calibration is not None:
            mean, std, b = self.calibration.calibrate_weights(mean, std, b)
        if self.factors is not None:
            both = zip(mean, std, strict=True)
            pairs = [self.factors.project_weights(m, s**2) for m, s in both]
            mean, std = [m for m, _ in pairs], [np.sqrt(v) for _, v in pairs]
            b = self.factors.project_intercept(b)
        return mean, std, b

    @property
    def loadings(self) -> None:
        """None: the joint Gaussian is that of the outputs, which shared factors have projected."""

    @property
    def joint_missing_variance(self) -> Array:
        """Variance that a missing view adds to each output of the joint Gaussian, (M, C)."""
        if self.factors is None:
            return self.missing_variance
        return np.asarray(self.missing_variance @ self.factors.P**2)

    def joint_index(self) -> Index:
        """Return the features of each view that have a weight."""
        used = [np.zeros(D, dtype=bool) for D in self.widths]
        for block in self.blocks:
            for mask, columns in zip(used, block.entering(self.widths), strict=True):
                mask[columns] = True
        return [np.flatnonzero(mask) for mask in used]

    def joint(self) -> WeightGaussian:
        """Return the pooled, calibrated Gaussian over the weights of each output, one block."""
        index = self.joint_index()
        starts = np.concatenate([[0], np.cumsum([len(columns) for columns in index])])
        L, K = 1 + int(starts[-1]), self.weights.shape[1]
        means, covs = [], []
        for block in self.blocks:
            used = block.entering(self.widths)
            at = np.concatenate(  # the intercept and the places of the block's features
                [[0], *(1 + starts[m] + np.searchsorted(index[m], c) for m, c in enumerate(used))]
            ).astype(np.intp)
            J = len(block)
            mean, cov = np.zeros((J, K, L)), np.zeros((J, K, L, L))
            mean[..., at], cov[..., at[:, None], at] = block.joint(self.widths)
            means.append(mean)
            covs.append(cov)
        gathered = WeightGaussian(index, np.concatenate(means), np.concatenate(covs))
        pooled = pool(gathered, self.weights, self.calibration)
        if self.factors is None:
            return pooled
        mean, cov = self.factors.project_weights(pooled.mean[0], pooled.cov[0])
        mean[:, 0] = self.factors.project_intercept(pooled.mean[0, :, 0])
        return WeightGaussian(index, mean[None], cov[None])


def pool(
    gaussians: WeightGaussian, weights: Array, calibration: Calibration | None
) -> WeightGaussian:
    """Return J Gaussians, which count by weights (J, K), pooled into one and calibrated."""
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
    present = 1.0 - absent.T
    total = np.einsum("mcn,mn->mc", parts**2, present)
    return np.asarray(total / np.maximum(present.sum(axis=1), 1.0)[:, None])


def principal_directions(eta: Array, counted: Array) -> tuple[Array, Array]:
    """Return means and principal directions of linear predictors, (F, C) and (F, C, C).

    Directions are rows, by falling variance. The first of them define latent factors.

    Shapes: eta (F, C, n) of C outputs and n rows, counted (F, n), 0 for rows that pad.
    """
    total = np.maximum(counted.sum(axis=1), 1.0)[:, None]
    centre = np.einsum("fcn,fn->fc", eta, counted) / total
    away = (eta - centre[..., None]) * counted[:, None]
    _, vectors = np.linalg.eigh(np.matmul(away, away.swapaxes(1, 2)))
    rows = np.ascontiguousarray(vectors[..., ::-1].swapaxes(1, 2))
    # The sign of an eigenvector is arbitrary; the largest loading of each factor is positive.
    largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=2)[..., None], axis=2)
    return centre, rows * np.where(largest < 0, -1.0, 1.0)


def factor_moments(
    centre: Array,
    directions: Array,
    mean: Array,
    var: Array,
    counts: Sequence[int],
    *,
    regression: bool,
) -> tuple[Array, Array]:
    """Return held-out moments of the ensemble projected onto V numbers of factors, (V, F, C, p).

    Shapes: centre (F, C), directions (F, C, C), a direction in each row, mean, var (F, C, p).
    """
    away = mean - centre[..., None]
    means, variances = [], []
    for count in counts:
        R = directions[:, :count]
        P = np.matmul(R.swapaxes(1, 2), R)
        means.append(centre[..., None] + np.matmul(P, away))
        spread = var
        # In regression variances are mostly noise, which is not projected.
        if count < mean.shape[1] and not regression:
            spread = np.matmul(P**2, var)
        variances.append(np.maximum(spread, 1e-12))
    return np.stack(means), np.stack(variances)


def share_factors(predictor: Predictor, views: Views, n_factors: int) -> Predictor:
    """Return the predictor with `n_factors` latent factors behind its outputs.

    These are the first principal directions of its linear predictors on the training rows. Where
    there is no variation to share, or as many factors as outputs, it is returned as it is.
    """
    if n_factors >= predictor.weights.shape[1]:
        return predictor
    eta = predictor.moments(views)[0].T[None]  # (1, C, n)
    if not np.ptp(eta, axis=2).any():
        return predictor
    centre, directions = principal_directions(eta, np.ones((1, eta.shape[2])))
    factors = SharedFactors(directions[0, :n_factors], centre[0])
    coefs, _, _ = predictor.coefficients()
    index = predictor.joint_index()
    # Only columns with a weight are read, so a submodel of few features costs little.
    parts = np.stack(
        [
            coef[:, used] @ view.columns(used).T
            if len(used) < view.shape[1]
            else view.apply(coef.T).T
            for view, coef, used in zip(views, coefs, index, strict=True)
        ]
    )  # (M, C, n)
    absent: Any = np.stack([view.absent for view in views], axis=1).astype(float)
    latent = np.matmul(factors.R, parts)
    return replace(
        predictor,
        factors=factors,
        signal=mean_squares(latent, absent),
        output_signal=mean_squares(np.matmul(factors.R.T, latent), absent),
    )
