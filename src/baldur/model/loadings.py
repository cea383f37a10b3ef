"""Outputs seen through factors, eta = b + V f, as a likelihood of the factors.

With q(V) and q(b) among what a likelihood learns, factors are to the posterior of the weights
what outputs are: it sees sites of factor k,

    r_nk      = sum_c h_nc <v_ck^2>
    r_nk y_nk = sum_c [ j_nc <v_ck> - h_nc (<b_c><v_ck> + sum_{k' != k} <v_ck v_ck'><f_nk'>) ]

with (h, j) the sites of the outputs. The intercepts live here, because K factors cannot span C.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from baldur.model.ard import LOG_2PI, GammaPosterior, gamma_term, loading_prior_term, update_omega
from baldur.model.likelihood import (
    MIN_PRECISION,
    GaussianLikelihood,
    LogisticLikelihood,
    Noise,
    Sites,
)
from baldur.model.posterior import INTERCEPT_VAR
from baldur.model.priors import GammaPrior
from baldur.state import Fields, State
from baldur.types import Array, IntArray

Outputs = LogisticLikelihood | GaussianLikelihood

OMEGA_PRIOR = GammaPrior(0.5, 0.5)
HALVINGS = 6


@dataclass(frozen=True)
class Loadings:
    """q(V) and q(b).

    Attributes
    ----------
    V, V_cov : (C, K) and (C, K, K); a zero covariance is a point estimate
    b, b_var : (C,)
    """

    V: Array
    V_cov: Array
    b: Array
    b_var: Array

    def to_state(self) -> State:
        """Return the loadings as plain values."""
        return {
            "kind": "loadings",
            "V": self.V,
            "V_cov": self.V_cov,
            "b": self.b,
            "b_var": self.b_var,
        }

    @classmethod
    def from_state(cls, state: Any, *, outputs: int, factors: int) -> Loadings:
        """Build them again, for so many outputs and factors."""
        with Fields(state, "loadings", C=outputs, K=factors) as read:
            return cls(
                V=read.array("V", ("C", "K")),
                V_cov=read.covariance("V_cov", ("C", "K", "K")),
                b=read.array("b", ("C",)),
                b_var=read.array("b_var", ("C",), low=0.0),
            )

    def combine(self, mean: Array, var: Array) -> tuple[Array, Array]:
        """Return <eta> and Var eta from the moments of the factors, each (n, K)."""
        spread = np.einsum("nk,ckl,nl->nc", mean, self.V_cov, mean)
        spread += var @ np.einsum("ckk->ck", self.V_cov).T
        return self.b + mean @ self.V.T, self.b_var + var @ (self.V**2).T + spread

    def weights(self, w: Array, second: Array) -> tuple[Array, Array]:
        """Return moments of the weights on the outputs (C, D) from those on the factors (K, D)."""
        V2 = self.V**2 + np.einsum("ckk->ck", self.V_cov)
        spread = V2 @ (second - w**2) + np.einsum("kd,ckl,ld->cd", w, self.V_cov, w)
        mean = self.V @ w
        return mean, mean**2 + spread

    @property
    def second(self) -> Array:
        """<v_c v_c^T>, (C, K, K)."""
        return np.asarray(self.V_cov + self.V[:, :, None] * self.V[:, None, :])

    @property
    def squares(self) -> Array:
        """sum_c <v_ck^2>, (K,)."""
        return np.einsum("ckk->k", self.second)


@dataclass(frozen=True)
class Learned:
    """What a likelihood of factors learns.

    Attributes
    ----------
    loadings : Loadings
    omega : GammaPosterior, precisions of the columns of V
    noise : q(psi) of Gaussian outputs, or None
    """

    loadings: Loadings
    omega: GammaPosterior
    noise: Noise

    def take(self, at: IntArray) -> Learned:
        """Return itself: there is one fit."""
        return self

    def put(self, at: IntArray, part: Learned) -> Learned:
        """Return `part`: there is one fit."""
        return part

    def without_factor(self, k: int) -> Learned:
        """Return what is known of the other factors."""
        at = self.loadings
        V_cov = np.delete(np.delete(at.V_cov, k, axis=1), k, axis=2)
        omega = GammaPosterior(self.omega.shape, np.delete(self.omega.rate, k))
        return Learned(replace(at, V=np.delete(at.V, k, axis=1), V_cov=V_cov), omega, self.noise)


class FactorLikelihood:
    """The likelihood of K factors behind C outputs; all factors have one value together.

    Loadings of labels are point estimates; those of Gaussian outputs have a Gaussian posterior.
    It is used for one fit at a time: arrays of factors are (1, K, n), those of outputs (1, C, n).

    Attributes
    ----------
    outputs : LogisticLikelihood or GaussianLikelihood
    V : (C, K) loadings to start from
    """

    def __init__(self, outputs: Outputs, V: Array) -> None:
        self.outputs = outputs
        self.V = V
        self.weight = outputs.weight
        self.conjugate = isinstance(outputs, GaussianLikelihood)

    @property
    def n_outputs(self) -> int:
        """Number of factors K."""
        return self.V.shape[1]

    @property
    def n_precisions(self) -> int:
        """Number of factors K: each has site precisions of its own."""
        return self.V.shape[1]

    def noise_at(self, mean: Array, var: Array) -> Learned:
        """Return where learning begins: the loadings given, and intercepts at the base rate."""
        C, K = self.V.shape
        level = self.outputs.base_logit()
        # A Gaussian q(V) is one from the start: the bound of a point has no entropy, so the first
        # Gaussian step could look like a loss for ever.
        spread = 1e-2 if self.conjugate else 0.0
        cov = np.tile(spread * np.eye(K), (C, 1, 1))
        loadings = Loadings(self.V, cov, level[0], np.full(C, 1e-2))
        rows = np.broadcast_to(level[..., None], self.outputs.T.shape)
        noise = self.outputs.noise_at(rows, np.zeros(rows.shape))
        return Learned(loadings, update_omega(OMEGA_PRIOR, C, loadings.squares), noise)

    def evaluate(self, mean: Array, var: Array, noise: Learned) -> tuple[Array, Sites]:
        """Return E[ln p(T | f)] with the terms of V, b and omega, (1, 1), and the sites."""
        at, (value, (h, j)) = noise.loadings, self.behind(mean, var, noise)
        f = mean[0].T
        r = np.einsum("nc,ckk->nk", h, at.second)
        others = np.einsum("nc,ckl,nl->nk", h, at.second, f) - r * f
        linear = (j - h * at.b) @ at.V - others
        sites = Sites(np.maximum(r, MIN_PRECISION).T[None], linear.T[None])
        return np.array([[value]]), sites

    def behind(self, mean: Array, var: Array, noise: Learned) -> tuple[float, Sites]:
        """Return the value, and the sites of the outputs, each (n, C)."""
        value, (h, j) = self.outputs.evaluate(*self._eta(mean, var, noise), noise.noise)
        return float(value.sum()) + prior_terms(noise), Sites(h[0].T, j[0].T)

    def _eta(self, mean: Array, var: Array, noise: Learned) -> tuple[Array, Array]:
        eta, spread = noise.loadings.combine(mean[0].T, var[0].T)
        return eta.T[None], np.maximum(spread, 1e-12).T[None]

    def learn(self, mean: Array, var: Array, noise: Learned) -> Learned:
        """Return q(psi), q(b), q(V) and q(omega), updated in turn; none lowers the value."""
        psi = self.outputs.learn(*self._eta(mean, var, noise), noise.noise)
        noise = replace(noise, noise=psi)
        value, sites = self.behind(mean, var, noise)
        for proposed in (self.intercepts, self.factors):
            move = proposed(mean[0].T, var[0].T, noise, sites)
            for halving in range(HALVINGS):
                trial = replace(noise, loadings=move(0.5**halving))
                after, there = self.behind(mean, var, trial)
                if after >= value:
                    noise, value, sites = trial, after, there
                    break
        at = noise.loadings
        return replace(noise, omega=update_omega(OMEGA_PRIOR, len(at.b), at.squares))

    def intercepts(
        self, mean: Array, var: Array, noise: Learned, sites: Sites
    ) -> Callable[[float], Loadings]:
        """Return a step of q(b_c): precision 1/s_0 + sum_n h, linear term sum_n (j - h <v.f>)."""
        at, (h, j) = noise.loadings, sites
        b_var = 1.0 / (1.0 / INTERCEPT_VAR + h.sum(axis=0))
        b = b_var * (j - h * (mean @ at.V.T)).sum(axis=0)
        return lambda length: replace(
            at, b=at.b + length * (b - at.b), b_var=at.b_var + length * (b_var - at.b_var)
        )

    def factors(
        self, mean: Array, var: Array, noise: Learned, sites: Sites
    ) -> Callable[[float], Loadings]:
        """Return a step of q(v_c), with <f f^T> carrying its covariance, the intercept taken off.

        Sigma_c^-1 = diag(<omega>) + sum_n h_nc <f_n f_n^T>
        <v_c>      = Sigma_c sum_n (j_nc - h_nc <b_c>) <f_n>
        """
        at, (h, j) = noise.loadings, sites
        A = (h.T[:, None, :] * mean.T) @ mean
        A += (h.T @ var + noise.omega.mean)[:, :, None] * np.eye(len(noise.omega.rate))
        cov: Array = np.linalg.inv(A).astype(np.float64)
        V = np.einsum("ckl,cl->ck", cov, (j - h * at.b).T @ mean)
        if not self.conjugate:
            cov = np.zeros_like(cov)
        return lambda length: replace(at, V=at.V + length * (V - at.V), V_cov=cov)

    def evidence(self, mean: Array, var: Array, sites: Sites, noise: Learned) -> Array:
        """Return the bound."""
        return self.evaluate(mean, var, noise)[0]

    def base_logit(self) -> Array:
        """Return zeros: factors of a model without features, (1, K)."""
        return np.zeros((1, self.n_outputs))

    def without_factor(self, k: int) -> FactorLikelihood:
        """Return the likelihood of the other factors."""
        return FactorLikelihood(self.outputs, np.delete(self.V, k, axis=1))

    def take(self, at: IntArray) -> FactorLikelihood:
        """Return itself: there is one fit."""
        return self


def prior_terms(noise: Learned) -> float:
    """E[ln p] - E[ln q] of V, omega and b; of a V that is a point, without its entropy."""
    at = noise.loadings
    C, K = at.V.shape
    total = loading_prior_term(noise.omega, C, at.squares) + gamma_term(noise.omega, OMEGA_PRIOR)
    if at.V_cov.any():
        total += 0.5 * (np.linalg.slogdet(at.V_cov)[1].sum() + C * K * (1.0 + LOG_2PI))
    ratio = at.b_var / INTERCEPT_VAR
    return float(total - 0.5 * (ratio + at.b**2 / INTERCEPT_VAR - 1.0 - np.log(ratio)).sum())


def starting_loadings(eta: Array, n_factors: int) -> Array:
    """Return V (C, K) spanning the leading directions of the linear predictors (N, C)."""
    eta = eta - eta.mean(axis=0)
    _, values, rows = np.linalg.svd(eta, full_matrices=False)
    K = min(n_factors, len(values))
    V = rows[:K].T * np.sqrt(values[:K] / max(values[0], 1e-12))
    # The sign of a singular vector is arbitrary; fix it so that runs and machines agree.
    largest = np.abs(V).argmax(axis=0)
    return V * np.where(V[largest, np.arange(K)] < 0, -1.0, 1.0)
