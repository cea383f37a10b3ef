"""The posterior that predicts: a mixture of Gaussians over the weights of the kept features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from baldur.inference.features import Known
from baldur.inference.new_rows import Index, NewRows, Views
from baldur.inference.predictive import Moments, pooled
from baldur.inference.weight_sums import WeightSums
from baldur.model.loadings import Loadings
from baldur.model.posterior import Side, with_ones

Array = NDArray[np.float64]


class Component(Protocol):
    """One Gaussian over the weights of K factors."""

    noise: Array
    signal: Array
    lacking: Array

    def latent(self, new: NewRows) -> tuple[Array, Array]:
        """Return mean and variance of the factors, each (n, K)."""

    def intercept(self) -> Array:
        """Return the mean intercept of every factor, (K,)."""

    def add_weights(self, sums: WeightSums, w: Array) -> None:
        """Add the weights of every feature to sums, counted w (K,) times."""

    def entering(self, widths: Sequence[int]) -> Index:
        """Return the features of each view that have a weight."""

    def joint(self, widths: Sequence[int]) -> tuple[Array, Array]:
        """Return mean (K, L + 1) and covariance of these weights, the intercept first."""


@dataclass
class Explicit:
    """Known by mean and covariance of its weights.

    Attributes
    ----------
    index : kept features of each view
    mean : (K, L + 1), the intercept first
    cov : (K, L + 1, L + 1)
    noise : (C,) variance of the noise
    signal : (M, K) mean square of each view's part of each factor
    lacking : (M, K) variance of a view's part for a row that lacks it
    """

    index: Index
    mean: Array
    cov: Array
    noise: Array
    signal: Array
    lacking: Array

    def latent(self, new: NewRows) -> tuple[Array, Array]:
        """X <w> and x^T Cov x, with the variance of what is absent."""
        X1 = with_ones(new.columns(self.index))
        var = np.stack([np.einsum("nd,nd->n", X1 @ cov, X1) for cov in self.cov], axis=1)
        var = np.maximum(var, 0.0) + new.absent @ self.lacking
        return X1 @ self.mean.T, np.maximum(var, 1e-12)

    def intercept(self) -> Array:
        """The first weight."""
        return self.mean[:, 0]

    def add_weights(self, sums: WeightSums, w: Array) -> None:
        """The others."""
        var = np.einsum("kdd->kd", self.cov)[:, 1:]
        sums.add_columns(self.index, w, self.mean[:, 1:], var)

    def entering(self, widths: Sequence[int]) -> Index:
        """The kept ones."""
        return self.index

    def joint(self, widths: Sequence[int]) -> tuple[Array, Array]:
        """As known."""
        return self.mean, self.cov


@dataclass
class Implicit:
    """Known through the training rows.

    Attributes
    ----------
    features : Columns or Grams, on the training rows
    s : prior variances
    sides : list of K posteriors
    index : features of each view that are columns; not used by Grams
    train : training views, for Grams
    noise, signal, lacking : as in `Explicit`; the signal is that of the mean of the mixture
    """

    features: Known
    s: Array
    sides: list[Side]
    index: Index
    train: Views
    noise: Array
    signal: Array
    lacking: Array

    def latent(self, new: NewRows) -> tuple[Array, Array]:
        """As the features know new rows."""
        rows = self.features.of_new(new, self.index, self.train)
        mean, var = self.features.predict(self.sides, self.s, rows)
        return mean, var + new.absent @ self.lacking

    def intercept(self) -> Array:
        """As the posteriors know it."""
        return np.array([side.intercept(self.features.intercept_var) for side in self.sides])

    def add_weights(self, sums: WeightSums, w: Array) -> None:
        """As the features know them."""
        self.features.add_weights(sums, w, self.sides, self.s, self.index, self.train)

    def entering(self, widths: Sequence[int]) -> Index:
        """As the features know it."""
        return self.features.entering(self.s, self.index, widths)

    def joint(self, widths: Sequence[int]) -> tuple[Array, Array]:
        """From the training rows of the features that enter."""
        X, s = self.features.training_columns(self.s, self.entering(widths), self.train)
        s0 = self.features.intercept_var
        pairs = [side.joint(X, row, s0) for side, row in zip(self.sides, s, strict=True)]
        mean, cov = (np.stack(part) for part in zip(*pairs, strict=True))
        return mean, cov


@dataclass
class Pool:
    """One Gaussian in place of several, see `baldur.inference.stack`.

    Attributes
    ----------
    level : (K,) linear predictors of the base rate
    slope : float, of the stack
    shrink : (K,) what averaging over views that are left out leaves of linear predictors
    spread : (K,) factor of their standard deviations
    slope_var : float, posterior variance of the ln slope
    """

    level: Array
    slope: float
    shrink: Array
    spread: Array
    slope_var: float = 0.0


@dataclass
class Mixture:
    """Weighted Gaussians.

    Attributes
    ----------
    components : list of J Component
    weights : (J, K) array, columns sum to one
    widths : features of each view
    loadings : Loadings, or None where factor k is output k
    pool : Pool, or None where probabilities are averaged over the Gaussians
    """

    components: Sequence[Component]
    weights: Array
    widths: list[int]
    loadings: Loadings | None = None
    pool: Pool | None = None

    @property
    def factor_weights(self) -> Array:
        """How much each pair of moments counts for each factor, (J, K)."""
        return self.weights if self.pool is None else np.ones_like(self.weights[:1])

    @property
    def output_weights(self) -> Array:
        """How much each pair of moments counts for each output, (J, C)."""
        if self.loadings is None:
            return self.factor_weights
        return np.repeat(self.weights[:, :1], len(self.loadings.b), axis=1)

    def latent(self, views: Views) -> Moments:
        """Return mean and variance of the factors, each (n, K): one pair, or one a component."""
        new = NewRows(views)
        moments = [component.latent(new) for component in self.components]
        if self.pool is None:
            return moments
        pool = self.pool
        mean, var = pooled(moments, self.weights, pool.level, pool.slope, pool.slope_var)
        return [(pool.shrink * mean, pool.spread**2 * var)]

    def moments(self, views: Views) -> Moments:
        """Return <eta> and Var eta, each (n, C), without noise, under every component."""
        pairs = self.latent(views)
        return pairs if self.loadings is None else [self.loadings.combine(*pair) for pair in pairs]

    @property
    def noise(self) -> Array:
        """Variance of the noise of every output, averaged, (C,)."""
        noises = np.array([component.noise for component in self.components])
        if self.loadings is not None:
            return np.asarray((self.output_weights * noises).sum(axis=0))
        return np.asarray((self.weights * noises).sum(axis=0))

    def signal(self) -> Array:
        """Return the mean square of each view's part of each factor at the mean weights, (M, K)."""
        slope = 1.0 if self.pool is None else self.pool.slope * self.pool.shrink
        return slope**2 * np.asarray(
            sum(
                w * component.signal
                for w, component in zip(self.weights, self.components, strict=True)
            )
        )

    def coefficients(self) -> tuple[list[Array], list[Array], Array]:
        """Return means and s.d. of the weights of each view (C, D_m), and intercepts (C,)."""
        K = self.weights.shape[1]
        sums, b = WeightSums(K, self.widths), np.zeros(K)
        for w, component in zip(self.weights, self.components, strict=True):
            b += w * component.intercept()
            component.add_weights(sums, w)
        mean, second = sums.moments()
        if self.loadings is not None:
            pairs = [self.loadings.weights(m, s) for m, s in zip(mean, second, strict=True)]
            mean, second = [m for m, _ in pairs], [s for _, s in pairs]
            b = self.loadings.b + self.loadings.V @ b
        std = [np.sqrt(np.maximum(s - m**2, 0.0)) for m, s in zip(mean, second, strict=True)]
        if self.pool is not None:
            pool = self.pool
            sloped = [pool.slope * m for m in mean]
            std = [
                pool.spread[:, None] * np.sqrt(s**2 + pool.slope_var * m**2)
                for m, s in zip(sloped, std, strict=True)
            ]
            mean = [pool.shrink[:, None] * m for m in sloped]
            b = pool.shrink * (pool.level + pool.slope * (b - pool.level))
        return mean, std, b
