"""Results of a mean-field run, and predictions from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from baldur.core.state import (
    Boolean,
    ByName,
    Covariance,
    Each,
    Flags,
    Number,
    Numbers,
    Object,
    Plain,
    Sizes,
    Text,
    need,
    stored,
)
from baldur.core.types import Array, IntArray, Mask
from baldur.exceptions import InputError
from baldur.paper.starts import output_scale
from baldur.paper.state import Data, State
from baldur.paper.weights import apply, as_products, quadratic, weight_moments

LIVE = 1e-3
"""A factor is live if the linear predictor of some output moves with it by more than this: a
standard deviation over the training rows, in logits, or in standard deviations of the outputs."""


@dataclass(frozen=True)
class WeightSpread:
    """Covariance of the selected weights of one view, as basis B and variances in it.

    x^T Sigma_k x = sum_j (x B)_j^2 coef_var_jk
    + (sum_d x_d^2 null_scale_d - |x B|^2) null_var_k, the second part only on the sample side.
    Holds (selected features) x (rank) numbers.
    """

    kind: ClassVar[str] = "weight spread"

    index: IntArray = stored(Numbers("l", "int", low=0, below="D"))
    basis: Array = stored(Numbers("l r"))
    coef_var: Array = stored(Numbers("r K", low=0.0))
    null_scale: Array = stored(Numbers("?", low=0.0))
    null_var: Array = stored(Numbers("K", low=0.0))

    def covariance(self, k: int) -> Array:
        """Return Sigma_wk of the selected features."""
        cov = (self.basis * self.coef_var[:, k]) @ self.basis.T
        if self.null_var[k]:
            cov += self.null_var[k] * (np.diag(self.null_scale) - self.basis @ self.basis.T)
        return np.asarray(cov)

    def check_state(self, sizes: Sizes) -> None:
        """Refuse features out of order, and variances that lack their scales."""
        full = len(self.null_scale) == len(self.index) or not self.null_var.any()
        need(full, "expected one scale per feature", "null_scale")
        rising = (np.diff(self.index) > 0).all()
        need(rising, "expected features in order, none twice", "index")


@dataclass(frozen=True)
class MeanFieldResult:
    """Posterior of a mean-field run.

    Only the K live factors are part of it, and there is none where the fit ends at the base rate.
    Weights have full length; those of dropped features are zero.
    """

    kind: ClassVar[str] = "mean-field result"

    # Mean and marginal standard deviation of the weights
    W: list[Array] = stored(Each(Numbers("K D"), "M"))
    W_std: list[Array] = stored(Each(Numbers("K D", low=0.0), "M"))
    V: Array = stored(Numbers("C K"))  # V, V_cov: <V> and Sigma_V
    V_cov: Array = stored(Covariance("K K"))
    b: Array = stored(Numbers("C"))  # b, b_var: mean and variance of the intercepts
    b_var: float = stored(Number(low=0.0))
    gamma: list[Array] = stored(Each(Numbers("D", low=0.0), "M"))  # <gamma_d>
    delta: list[Array] = stored(Each(Numbers("K", low=0.0), "M"))  # <delta_k>
    omega: Array = stored(Numbers("K", low=0.0))  # <omega_k>
    tau: float = stored(Number(above=0.0))  # tau, psi: <tau> and <psi>
    psi: float = stored(Number(above=0.0))
    features: list[Mask] = stored(Each(Flags("D"), "M"))  # features, views: what is selected
    views: Mask = stored(Flags("M"))
    # Relevance vectors of each view, empty for primal and dropped views
    relevance: list[IntArray] = stored(Each(Numbers("?", "int", low=0), "M"))
    elbo: float = stored(Number(finite=False))
    history: list[dict[str, Any]] = stored(Each(ByName(Plain())))
    converged: bool = stored(Boolean())
    spaces: list[str] = stored(Each(Text(), "M"))  # Per view, "primal", "dual" or "paper"
    start: str = stored(Text())
    spread: list[WeightSpread] = stored(Each(Object((WeightSpread,)), "M"))


def live_factors(state: State, data: Data) -> IntArray:
    """Return the factors that move a linear predictor, see `LIVE`."""
    moved = np.sqrt(data.weight @ state.explained**2 / data.n) * np.abs(state.V).max(axis=0)
    return np.flatnonzero(moved > LIVE * np.sqrt(output_scale(data)))


def collect(state: State, data: Data, **record: Any) -> MeanFieldResult:
    """Return the live factors of the final state, weights spread over arrays of full length."""
    live = live_factors(state, data)
    W, W_std, gamma, features, spread = [], [], [], [], []
    for m, view in enumerate(state.views):
        spec, D = view.q.spectrum, view.selected.size
        mean, var = weight_moments(data.views[m], view.q)
        # Without a live factor no feature takes part in a prediction.
        place = np.arange(spec.index.size if live.size else 0)
        full, std = np.zeros((live.size, D)), np.zeros((live.size, D))
        full[:, spec.index], std[:, spec.index] = mean[live], np.sqrt(var[live])
        W.append(full)
        W_std.append(std)
        every = view.dropped.gamma.mean[data.groups[m].member]
        every[spec.index] = view.gamma.mean
        gamma.append(every)
        features.append(np.isin(np.arange(D), spec.index[place]))
        null_var = view.q.null_var[live] if spec.n_null else np.zeros(live.size)
        basis = spec.full_basis(data.views[m])[place]
        coef_var = view.q.coef_var[:, live]
        scale = spec.null_scale[place]
        spread.append(WeightSpread(spec.index[place], basis, coef_var, scale, null_var))
    used = [
        mask.any() and space != "primal" for mask, space in zip(features, data.spaces, strict=True)
    ]
    none = np.zeros(0, dtype=np.intp)
    return MeanFieldResult(
        W=W,
        W_std=W_std,
        V=state.V[:, live],
        V_cov=state.V_cov[np.ix_(live, live)],
        b=state.b,
        b_var=state.b_var,
        gamma=gamma,
        delta=[view.delta.mean[live] for view in state.views],
        omega=state.omega.mean[live],
        tau=float(state.tau.mean[0]),
        psi=float(state.psi.mean[0]),
        features=features,
        views=np.array([mask.any() for mask in features]),
        relevance=[rows if use else none for rows, use in zip(data.relevance, used, strict=True)],
        spaces=list(data.spaces),
        spread=spread,
        **record,
    )


def latent_moments(result: MeanFieldResult, X_views: Sequence[Any]) -> tuple[Array, Array]:
    """Mean sum_m x W^T and variance of z before its noise, both (n, K), for new rows.

    Dropped features count as w = 0: their spread, of order 1/(delta gamma), is left out.

    Shapes: X_views (n, D_m); returns mean, var (n, K).
    """
    if len(X_views) != len(result.W):
        raise InputError(f"expected {len(result.W)} views, as in training, but got {len(X_views)}")
    mean, var = np.zeros(()), np.zeros(())
    n_rows: int | None = None
    for m, X in enumerate(X_views):
        view = as_products(X)
        n, D = view.shape
        seen = result.W[m].shape[1]
        if seen != D:
            raise InputError(f"view {m} has {D} features, but {seen} were seen in training")
        if n_rows is not None and n != n_rows:
            raise InputError(f"view {m} has {n} rows, but the views before it have {n_rows}")
        n_rows = n
        s = result.spread[m]
        mean = mean + apply(view, result.W[m][:, s.index].T, s.index)
        inside = apply(view, s.basis, s.index) ** 2
        spread = inside @ s.coef_var
        if s.null_var.any():
            whole = quadratic(view, s.null_scale, s.index)
            spread = spread + np.outer(np.maximum(whole - inside.sum(axis=1), 0.0), s.null_var)
        var = var + spread
    return mean, var


def predictor_moments(result: MeanFieldResult, X_views: Sequence[Any]) -> tuple[Array, Array]:
    """Mean and variance of the linear predictor of new rows, (n, C), without the noise of the rows.

    <eta_c> = z V_c^T + b_c, with z = sum_m x W^T, and

        Var eta_c = Var b + v_c S_x v_c^T + tr(Sigma_V (z^T z + S_x)),

    S_x = diag(sum_m x^T Sigma_wk x). What a row adds of its own is `noise_variance`.

    Shapes: X_views (n, D_m); returns mean, var (n, C).
    """
    Z, spread = latent_moments(result, X_views)
    mean = Z @ result.V.T + result.b
    loading = np.einsum("nk,kl,nl->n", Z, result.V_cov, Z) + spread @ np.diag(result.V_cov)
    var = result.b_var + spread @ (result.V**2).T + loading[:, None]
    return mean, var


def noise_variance(result: MeanFieldResult) -> Array:
    """Variance of the noise of a single row in each output, (C,).

    1/psi + (v_c v_c^T + tr Sigma_V)/tau: the noise of y and, through the loadings, that of z. Only
    the sum is seen in the data; how it is divided between psi and tau is up to the priors.
    """
    through = np.sum(result.V**2 + np.diag(result.V_cov), axis=1)
    return np.asarray(1.0 / result.psi + through / result.tau)


def predict_meanfield(result: MeanFieldResult, X_views: Sequence[Any]) -> tuple[Array, Array]:
    """Mean and variance of y (the logit, or the output in regression) for new rows, (n, C).

    The moments of the linear predictor with the noise of y and z added. Departure from the paper:
    it prints the mean without V and the variance as 1/psi + Sigma_V/tau, which leaves out the
    spread of W and most of that of V.

    Shapes: X_views (n, D_m); returns mean, var (n, C).
    """
    mean, var = predictor_moments(result, X_views)
    return mean, var + noise_variance(result)
