"""The posterior that predicts: a mixture of Gaussians over the weights of the kept features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from baldur.inference.features import Columns, Index, absent_matrix, gather
from baldur.inference.grams import Cross, Grams
from baldur.inference.predictive import Moments, pooled
from baldur.model.loadings import Loadings
from baldur.model.posterior import SampleSide, Side
from baldur.views.products import PreparedView

Array = NDArray[np.float64]
Views = Sequence[PreparedView]
Weights = tuple[list[Array], list[Array]]
"""Means and second moments of the weights of each view, (K, D_m)."""


class NewRows:
    """New rows in the forms that Gaussians ask for; each form is made once."""

    def __init__(self, views: Views) -> None:
        self.views = list(views)
        self._columns: dict[int, Array] = {}
        self._cross: dict[int, Cross] = {}

    @cached_property
    def absent(self) -> Array:
        """1 where a row lacks a view, (n, M)."""
        return absent_matrix(self.views)

    def columns(self, index: Index) -> Array:
        """Return chosen columns side by side, (n, L)."""
        if id(index) not in self._columns:
            self._columns[id(index)] = gather(self.views, index)
        return self._columns[id(index)]

    def cross(self, train: Views) -> Cross:
        """Return inner products with training rows and with themselves, by view."""
        if id(train) not in self._cross:
            self._cross[id(train)] = Cross(
                [old.cross_gram(new) for old, new in zip(train, self.views, strict=True)],
                [squares(new) for new in self.views],
            )
        return self._cross[id(train)]


def squares(view: PreparedView) -> Array:
    """Return |x_n|^2 of every row, (n,), a few rows at a time."""
    out = np.empty(view.shape[0])
    for start in range(0, len(out), 256):
        rows = np.arange(start, min(start + 256, len(out)))
        out[rows] = np.diag(view.take_rows(rows).weighted_gram())
    return out


class Component(Protocol):
    """One Gaussian over the weights of K factors."""

    noise: Array
    signal: Array

    def latent(self, new: NewRows) -> tuple[Array, Array]:
        """Return mean and variance of the factors, each (n, K)."""

    def intercept(self) -> Array:
        """Return the mean intercept of every factor, (K,)."""


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
        X = new.columns(self.index)
        X1 = np.hstack([np.ones((len(X), 1)), X])
        var = np.stack([np.einsum("nd,nd->n", X1 @ cov, X1) for cov in self.cov], axis=1)
        var = np.maximum(var, 0.0) + new.absent @ self.lacking
        return X1 @ self.mean.T, np.maximum(var, 1e-12)

    def intercept(self) -> Array:
        """The first weight."""
        return self.mean[:, 0]


@dataclass
class Implicit:
    """Known through the training rows.

    Attributes
    ----------
    features : Columns, Grams or Streamed, on the training rows
    s : prior variances
    sides : list of K posteriors
    index : features of each view that are columns; not used by Grams
    train : training views, for Grams
    noise, signal, lacking : as in `Explicit`
    """

    features: Any
    s: Array
    sides: list[Side]
    index: Index
    train: Views
    noise: Array
    signal: Array
    lacking: Array

    def latent(self, new: NewRows) -> tuple[Array, Array]:
        """As the features know new rows."""
        if isinstance(self.features, Grams):
            mean, var = self.features.predict(self.sides, self.s, new.cross(self.train))
        elif isinstance(self.features, Columns):
            mean, var = self.features.predict(self.sides, self.s, new.columns(self.index))
        else:
            mean, var = self.features.predict(self.sides, self.s, new.views)
        return mean, var + new.absent @ self.lacking

    def intercept(self) -> Array:
        """As the posteriors know it."""
        return np.array([side.intercept(self.features.intercept_var) for side in self.sides])


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

    components: Sequence[Explicit | Implicit]
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
        """Return the (M, K) variance that each view gives each factor, averaged."""
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
        mean = [np.zeros((K, D)) for D in self.widths]
        second = [np.zeros((K, D)) for D in self.widths]
        b = np.zeros(K)
        dense: list[tuple[Array, Implicit]] = []
        for w, component in zip(self.weights, self.components, strict=True):
            b += w * component.intercept()
            if isinstance(component, Explicit):
                var = np.einsum("kdd->kd", component.cov)[:, 1:]
                _scatter(mean, second, component.index, w, component.mean[:, 1:], var)
            elif isinstance(component.features, Grams):
                dense.append((w, component))
            else:
                found, var = component.features.weights(component.sides, component.s)
                _scatter(mean, second, component.index, w, found, var)
        if dense:
            _add_dense(mean, second, dense)
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


def _scatter(
    mean: list[Array], second: list[Array], index: Index, w: Array, found: Array, var: Array
) -> None:
    """Add weights on gathered columns to those of the views."""
    edges = np.concatenate([[0], np.cumsum([len(columns) for columns in index])])
    for m, columns in enumerate(index):
        part = slice(edges[m], edges[m + 1])
        mean[m][:, columns] += w[:, None] * found[:, part]
        second[m][:, columns] += w[:, None] * (found[:, part] ** 2 + var[:, part])


def _add_dense(
    mean: list[Array], second: list[Array], dense: Sequence[tuple[Array, Implicit]]
) -> None:
    """Add the weights of posteriors through Grams: one pass for all of them.

    The expected variance, sum_j w_j (s_j - s_j^2 x^T C_j^-1 x), needs one matrix per factor.
    """
    K = len(dense[0][0])
    alphas = np.concatenate(
        [np.stack([side.alpha for side in c.sides], axis=1) for _, c in dense], axis=1
    )
    for m, view in enumerate(dense[0][1].train):
        matrices, prior = [], np.zeros(K)
        for k in range(K):
            total = np.zeros((view.shape[0], view.shape[0]))
            for w, c in dense:
                side = c.sides[k]
                if isinstance(side, SampleSide):
                    total += w[k] * c.s[k, m] ** 2 * side.Ci
                prior[k] += w[k] * c.s[k, m]
            matrices.append(total)
        if not prior.any():
            continue
        projected, quadratics = view.project_with_quadratics(alphas, matrices)
        second[m] += np.maximum(prior[:, None] - quadratics, 0.0)
        for j, (w, c) in enumerate(dense):
            part = c.s[:, m, None] * projected[j * K : (j + 1) * K]
            mean[m] += w[:, None] * part
            second[m] += w[:, None] * part**2
