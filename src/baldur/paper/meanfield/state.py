"""State of a mean-field run: the fixed data, and posteriors that every update replaces."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from baldur.paper.ard import GammaPosterior
from baldur.paper.meanfield.dropped import Dropped, NormGroups
from baldur.paper.meanfield.products import ViewProducts
from baldur.paper.meanfield.weights import Weights
from baldur.paper.priors import Priors
from baldur.types import Array, IntArray, Mask

SCREENED_SHAPE = 1e-3
"""Largest prior shape a at which features outside the screen are dropped from the outset. With a
heavier prior all features share the signal, and none may be left out."""


@dataclass(frozen=True)
class Data:
    """Everything that does not change during a run."""

    views: list[ViewProducts]  # Standardised, N x D_m
    T: Array  # (N, C); 0/1 labels, or the real outputs in regression
    weight: Array  # (N,); Sample weights s_n; all sums over rows are weighted by them
    classification: bool
    quadrature: bool  # Integrate ln sigmoid over q(y) instead of bounding it (classification only)
    priors: Priors
    spaces: list[str]  # "primal", "dual" or "paper" per view
    relevance: list[IntArray]  # Rows used as relevance vectors, per view (not used by primal views)
    norms: list[Array]  # (D_m,); t_d = sum_n s_n x_nd^2
    groups: list[NormGroups]  # The features of each view grouped by t_d
    scores: list[Array]  # (D_m, C); X^T diag(s) (T - mean T), by which features are screened
    order: list[int]

    @property
    def n(self) -> float:
        """Total weight of the rows; the paper's N."""
        return float(self.weight.sum())


@dataclass(frozen=True)
class ViewState:
    """The posteriors of one view."""

    q: Weights  # q(W) of the selected features (or q(A) over them)
    delta: GammaPosterior  # q(delta_k), length K
    gamma: GammaPosterior  # q(gamma_d) of the selected features
    selected: Mask  # (D,)
    gamma_w2: Array  # (K,)
    stale: bool  # True once gamma or `selected` has changed since the spectrum of `q` was built
    dropped: Dropped  # q(w_kd) and q(gamma_d) of all other features; the bound counts them

    @property
    def trace(self) -> Array:
        """tr(X^T diag(s) X Sigma_k) over all features, (K,)."""
        return self.q.trace + self.dropped.trace


@dataclass(frozen=True)
class State:
    """All posteriors. Updates return a new state and never write into arrays."""

    Z: Array  # (N, K) and (K, K) arrays
    Z_cov: Array
    V: Array  # (C, K) and (K, K) arrays
    V_cov: Array
    b: Array  # b, b_var: (C,); and float
    b_var: float
    Y: Array  # Y, Y_var: (N, C); In regression Y is the data and Y_var is zero
    Y_var: Array
    xi: Array  # (N, C); Where the logistic bound touches
    tau: GammaPosterior  # tau, psi, omega: Lengths 1, 1 and K
    psi: GammaPosterior
    omega: GammaPosterior
    views: tuple[ViewState, ...]

    @property
    def n_factors(self) -> int:
        """Number of factors of the current state."""
        return self.Z.shape[1]

    @property
    def explained(self) -> Array:
        """sum_m X^(m) <W^(m)>^T, (N, K)."""
        return np.sum([v.q.H for v in self.views], axis=0)

    @property
    def v_moment(self) -> Array:
        """<V^T V> = V^T V + C Sigma_V: the paper's moment lacks the factor C."""
        return self.V.T @ self.V + self.V.shape[0] * self.V_cov

    def z_moment(self, weight: Array) -> Array:
        """<Z^T diag(s) Z> = Z^T diag(s) Z + N Sigma_Z: the paper's moment lacks the factor N."""
        return self.Z.T @ (weight[:, None] * self.Z) + weight.sum() * self.Z_cov

    def with_view(self, m: int, view: ViewState) -> State:
        """Return the same state with view ``m`` replaced."""
        views = list(self.views)
        views[m] = view
        return replace(self, views=tuple(views))
