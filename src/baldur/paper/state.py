"""Posteriors and fixed data of a mean-field run; every update replaces posteriors by new ones.

In the paper's symbols, for one view with D features and K factors,

    w_kd ~ N(0, 1/(delta_k gamma_d)),   v_:k ~ N(0, I_C/omega_k),

and every precision has a Gamma posterior with one shape for the whole vector and its own rates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma

from baldur.core.types import Array, IntArray, Mask
from baldur.paper.weights import SelectedColumns, Weights

INTERCEPT_PRECISION = 1e-4
"""Precision of the prior of the intercepts; those of delta, omega, tau and psi are `VAGUE`."""
NORM_DIGITS = 11
"""Norms that agree in this many digits are one group. The bound changes by less than 1e-10 nats
per feature and factor."""
ROOT_STEPS = 100
"""Newton steps with bisection as a safeguard; about six are taken."""


@dataclass(frozen=True)
class GammaPosterior:
    """Independent Gamma distributions with one common shape and a vector of rates.

    ``shape == inf`` is the point mass at one, whatever the rates (only their length counts).
    """

    shape: float
    rate: Array

    @property
    def mean(self) -> Array:
        """Return the mean <g> = shape / rate."""
        if np.isinf(self.shape):
            return np.ones_like(self.rate)
        return self.shape / self.rate

    @property
    def mean_log(self) -> Array:
        """Return the mean logarithm <ln g> = digamma(shape) - ln(rate)."""
        if np.isinf(self.shape):
            return np.zeros_like(self.rate)
        return digamma(self.shape) - np.log(self.rate)


class GammaPrior(NamedTuple):
    """Shape a0 and rate b0 of a Gamma prior of precisions."""

    shape: float
    rate: float

    def posterior(self, count: float, squares: Array) -> GammaPosterior:
        """Return q of precisions, each of `count` Gaussian variables with a sum <x^2> of squares.

        Shape a0 + count/2, rate b0 + squares/2.
        """
        return GammaPosterior(self.shape + 0.5 * count, self.rate + 0.5 * squares)

    def posterior_of_mean(self, count: float, mean: Array) -> GammaPosterior:
        """Return q of the same shape, with these means."""
        shape = self.shape + 0.5 * count
        return GammaPosterior(shape, np.ones_like(mean) if np.isinf(shape) else shape / mean)


VAGUE = GammaPrior(1e-6, 1e-6)


@dataclass(frozen=True)
class Data:
    """Everything that does not change during a run."""

    views: list[SelectedColumns]  # Standardised, N x D_m
    T: Array  # (N, C); 0/1 labels, or the real outputs in regression
    weight: Array  # (N,); Sample weights s_n; all sums over rows are weighted by them
    classification: bool
    quadrature: bool  # Integrate ln sigmoid over q(y) instead of bounding it (classification only)
    gamma_prior: GammaPrior  # Gamma(a, a), from ARD (a = 1e-6) to none (a = inf)
    spaces: list[str]  # "primal" or "dual" per view
    # Rows used as relevance vectors per dual view; "auto" or a number until they are chosen
    relevance: list[Any]
    norms: list[Array]  # (D_m,); t_d = sum_n s_n x_nd^2
    groups: list[tuple[Array, IntArray]]  # Features grouped by t_d, see `group_norms`
    scores: list[Array]  # (D_m, C); X^T diag(s) (T - mean T), by which features are screened
    order: list[int]  # Views in the order in which they are updated

    @property
    def n(self) -> float:
        """Total weight of the rows; the paper's N."""
        return float(self.weight.sum())

    @property
    def output_scale(self) -> float:
        """Variance of the outputs that precisions are measured against: 1 on the logit scale."""
        if self.classification:
            return 1.0
        centred = self.T - (self.weight @ self.T) / self.n
        return max(float(np.mean(self.weight @ centred**2)) / self.n, np.finfo(float).tiny)

    def count_dropped(self, m: int, selected: Mask) -> Array:
        """Return the number of dropped features of view `m` in each group of norms, (G,)."""
        norms, member = self.groups[m]
        return np.bincount(member[~selected], minlength=norms.size).astype(float)


def group_norms(norms: Array) -> tuple[Array, IntArray]:
    """Group features by squared norm (D,) up to rounding: norm of each group, group of each.

    Dropped features of one norm have the same posterior, so one computation serves a group.
    """
    size = np.where(norms > 0, norms, 1.0)
    digits = 10.0 ** (NORM_DIGITS - np.ceil(np.log10(size)))
    values, group_of = np.unique(np.round(norms * digits) / digits, return_inverse=True)
    return values, group_of.astype(np.int32)


@dataclass(frozen=True)
class Dropped:
    """q(w) and q(gamma) of the dropped features of one view."""

    norms: Array  # norms, count: (G,); t_d of each group, and how many dropped features it has
    count: Array
    gamma: GammaPosterior  # q(gamma) of each group
    trace: Array  # (K,)
    w2: Array
    logdet: Array

    @property
    def size(self) -> int:
        """Number of dropped features of the view."""
        return int(self.count.sum())

    def at(self, delta: Array, tau: float) -> Dropped:
        """Return the same q(gamma) with q(w_kd) at its optimum for `delta` (K,) and `tau`."""
        gamma = self.gamma.mean
        # Variances of w_kd, (K, G) of K factors and G groups; the means are 0.
        var = 1.0 / (tau * self.norms + np.outer(delta, gamma))
        return replace(
            self,
            trace=var @ (self.count * self.norms),
            w2=var @ (self.count * gamma),
            logdet=np.log(var) @ self.count,
        )


def make_dropped(data: Data, m: int, count: Array, delta: Array, tau: float) -> Dropped:
    """Return q(gamma_d) and q(w_kd) of the dropped features of view `m` at their joint optimum.

    Shapes: count of dropped features (G,) in each of G groups of one norm, delta (K,).
    """
    prior, (norms, _) = data.gamma_prior, data.groups[m]
    mean = dropped_gamma(prior, delta, tau * norms)
    gamma = prior.posterior_of_mean(delta.size, mean)
    none = np.zeros(delta.size)
    return Dropped(norms, count, gamma, none, none, none).at(delta, tau)


def decreasing_root(A: Array, B: Array, load: Array, slope: Array, count: Array) -> Array:
    """Solve A_i - B_i x_i + (1/2) sum_j count_j load_ij/(load_ij + slope_ij x_i) = 0 for x > 0.

    Newton steps in u = ln x, replaced by bisection where they leave the bracket of the root.

    Shapes: A, B (p,), load, slope (p, q), count (q,); returns (p,).
    """
    low, high = np.log(A / B), np.log((A + 0.5 * count.sum()) / B)
    u = high
    for _ in range(ROOT_STEPS):
        x = np.exp(u)
        moving = slope * x[:, None]
        share = count * load / (load + moving)
        value = A - B * x + 0.5 * share.sum(axis=1)
        low, high = np.where(value > 0, u, low), np.where(value > 0, high, u)
        falls = B * x + 0.5 * np.sum(share * moving / (load + moving), axis=1)
        new = u + value / falls
        new = np.where((new >= low) & (new <= high), new, 0.5 * (low + high))
        converged = np.abs(new - u).max(initial=0.0) < 1e-14
        u = new
        if converged:
            break
    return np.exp(u)


def dropped_gamma(prior: GammaPrior, delta: Array, load: Array) -> Array:
    """Return the <gamma_d> of dropped features that maximises the bound jointly with q(w_d), (d,).

    The root of a - b g + (1/2) sum_k load_d/(load_d + delta_k g) = 0, with `load` (d,) that is
    tau t_d and `delta` (K,); ones when a = inf.
    """
    if np.isinf(prior.shape) or not load.size:
        return np.ones(load.size)
    safe = np.maximum(load, np.finfo(float).tiny)[:, None]
    A, B = np.full(load.size, prior.shape), np.full(load.size, prior.rate)
    return decreasing_root(A, B, safe, delta[None, :], np.ones(delta.size))


def dropped_delta(n_selected: int, gamma_w2: Array, dropped: Dropped, tau: float) -> Array:
    """Return the <delta_k> that maximises the bound jointly with q(w_kd) of the dropped, (K,).

    The root of (a0 + d/2) - (b0 + gamma_w2_k/2) x + (1/2) sum_dropped load_d/(load_d + x gamma_d),
    with d selected features and load_d = tau t_d.
    """
    safe = np.maximum(tau * dropped.norms, np.finfo(float).tiny)[None, :]
    A = np.full(gamma_w2.size, VAGUE.shape + 0.5 * n_selected)
    B = VAGUE.rate + 0.5 * gamma_w2
    return decreasing_root(A, B, safe, dropped.gamma.mean[None, :], dropped.count)


@dataclass(frozen=True)
class ViewState:
    """The posteriors of one view."""

    q: Weights  # q(W) of the selected features (or q(A) over them)
    delta: GammaPosterior  # q(delta_k), length K
    gamma: GammaPosterior  # q(gamma_d) of the selected features
    selected: Mask  # (D,)
    stale: bool  # True once gamma or `selected` has changed since the spectrum of `q` was built
    dropped: Dropped  # q(w_kd) and q(gamma_d) of all other features; the bound counts them


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
    def mean_tau(self) -> float:
        """Mean <tau> of the noise precision of Z."""
        return float(self.tau.mean[0])

    @property
    def mean_psi(self) -> float:
        """Mean <psi> of the noise precision of Y."""
        return float(self.psi.mean[0])

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
        return replace(self, views=(*self.views[:m], view, *self.views[m + 1 :]))
