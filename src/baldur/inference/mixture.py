"""The posterior that predicts: one or more Gaussians over the weights of the kept features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from baldur.inference.fixed_prior import Outputs
from baldur.inference.wide_outputs import WideOutputs
from baldur.views.products import PreparedView

Array = NDArray[np.float64]
Index = list[NDArray[np.intp]]
Moments = list[tuple[Array, Array]]


@dataclass
class Loadings:
    """q(V) and q(b) where factors are not the outputs themselves.

    Attributes
    ----------
    V, V_cov : (C, K) and (C, K, K)
    b, b_var : (C,)
    """

    V: Array
    V_cov: Array
    b: Array
    b_var: Array

    def combine(self, mean: Array, var: Array) -> tuple[Array, Array]:
        """Return <eta> and Var eta from the moments of the factors, each (n, K)."""
        spread = np.einsum("nk,ckl,nl->nc", mean, self.V_cov, mean)
        spread += var @ np.einsum("ckk->ck", self.V_cov).T
        return self.b + mean @ self.V.T, self.b_var + var @ (self.V**2).T + spread


@dataclass
class Member:
    """One Gaussian posterior of the mixture.

    Attributes
    ----------
    outputs : posterior over the kept columns, one Gaussian per factor
    signal : (M, K) variance of each view's part of each factor, for rows that lack the view
    loadings : Loadings, or None where factor k is output k
    bound : float, the bound of this posterior, where it was fitted by itself
    """

    outputs: Outputs | WideOutputs
    signal: Array
    loadings: Loadings | None = None
    bound: float = np.nan

    def latent(self, views: Sequence[PreparedView], X: Array | None, absent: Array) -> Moments:
        """Return mean and variance of the factors for new rows, as a list of one pair."""
        if isinstance(self.outputs, WideOutputs):
            mean, var = self.outputs.predict(views)
        else:
            mean, var = self.outputs.predict(np.zeros((0, 0)) if X is None else X)
        return [(mean, var + absent @ self.signal)]

    def eta(self, mean: Array, var: Array) -> tuple[Array, Array]:
        """Return moments of the linear predictor from those of the factors."""
        return (mean, var) if self.loadings is None else self.loadings.combine(mean, var)

    def weights(self) -> tuple[Array, Array, Array]:
        """Return mean and variance of the weights on the outputs (C, L), and intercepts (C,)."""
        w, var = self.outputs.weights()
        b = self.outputs.intercepts()
        if self.loadings is None:
            return w, var, b
        V, V_cov = self.loadings.V, np.einsum("ckk->ck", self.loadings.V_cov)
        spread = (V**2 + V_cov) @ var + np.einsum("kd,ckl,ld->cd", w, self.loadings.V_cov, w)
        return V @ w, spread, self.loadings.b + V @ b


@dataclass
class Mixture:
    """Equally weighted posteriors over the same kept features.

    Attributes
    ----------
    index : list of int arrays, the kept features of each view
    members : list of Member
    """

    index: Index
    members: list[Member]

    def _columns(self, views: Sequence[PreparedView]) -> Array | None:
        if any(isinstance(member.outputs, WideOutputs) for member in self.members):
            return None
        return gather(views, self.index)

    def latent(self, views: Sequence[PreparedView]) -> Moments:
        """Return mean and variance of the factors, each (n, K), under every member."""
        X, absent = self._columns(views), absent_matrix(views)
        return [pair for m in self.members for pair in m.latent(views, X, absent)]

    def moments(self, views: Sequence[PreparedView]) -> Moments:
        """Return <eta> and Var eta, each (n, C), under every member."""
        pairs = self.latent(views)
        return [m.eta(*pair) for m, pair in zip(self.members, pairs, strict=True)]

    def moments_of(self, X: Array, absent: Array) -> Moments:
        """Return the same from gathered columns and the (n, M) matrix of absent views."""
        return [m.eta(*m.latent([], X, absent)[0]) for m in self.members]

    def weights(self) -> tuple[Array, Array, Array]:
        """Return mean and standard deviation of the weights (C, L), and intercepts (C,)."""
        means, variances, intercepts = zip(*(m.weights() for m in self.members), strict=True)
        var = np.mean(variances, axis=0) + np.var(means, axis=0)
        return np.mean(means, axis=0), np.sqrt(var), np.mean(intercepts, axis=0)

    def signal(self) -> Array:
        """Return the (M, K) variance that each view gives each factor, averaged."""
        return np.mean([member.signal for member in self.members], axis=0)


def gather(views: Sequence[PreparedView], index: Index) -> Array:
    """Return chosen columns of every view side by side, (n, L) float64."""
    return np.concatenate(
        [view.columns(columns) for view, columns in zip(views, index, strict=True)], axis=1
    )


def absent_matrix(views: Sequence[PreparedView]) -> Array:
    """Return the (n, M) matrix that is 1 where a sample lacks a view."""
    return np.stack([view.absent for view in views], axis=1).astype(float)


def owners(index: Index) -> NDArray[np.intp]:
    """Return the view of each gathered column."""
    return np.repeat(np.arange(len(index)), [len(columns) for columns in index])


def view_signals(outputs: Outputs, owner: NDArray[np.intp], absent: Array) -> Array:
    """Return the mean square of each view's part of each factor over rows that have it, (M, K)."""
    w, _ = outputs.weights()
    signal = np.zeros((absent.shape[1], len(w)))
    for m in range(absent.shape[1]):
        here, rows = owner == m, absent[:, m] == 0
        if here.any() and rows.any():
            signal[m] = ((outputs.X[rows][:, here] @ w[:, here].T) ** 2).mean(axis=0)
    return signal
