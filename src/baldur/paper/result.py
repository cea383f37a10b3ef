"""Results of a mean-field run, and predictions from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from baldur.core.state import Fields
from baldur.core.state import State as Saved
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

    index: IntArray
    basis: Array
    coef_var: Array
    null_scale: Array
    null_var: Array

    def covariance(self, k: int) -> Array:
        """Return Sigma_wk of the selected features."""
        cov = (self.basis * self.coef_var[:, k]) @ self.basis.T
        if self.null_var[k]:
            cov += self.null_var[k] * (np.diag(self.null_scale) - self.basis @ self.basis.T)
        return np.asarray(cov)

    def to_state(self) -> Saved:
        """Return the covariance as plain values."""
        return {
            "kind": "weight spread",
            "index": self.index,
            "basis": self.basis,
            "coef_var": self.coef_var,
            "null_scale": self.null_scale,
            "null_var": self.null_var,
        }

    @classmethod
    def from_state(cls, state: Any, *, width: int, factors: int) -> WeightSpread:
        """Build the covariance from its state, for a view of `width` features."""
        with Fields(state, "weight spread", k=factors) as read:
            made = cls(
                index=read.index("index", ("l",), width),
                basis=read.array("basis", ("l", "r")),
                coef_var=read.array("coef_var", ("r", "k"), low=0.0),
                null_scale=read.array("null_scale", (None,), low=0.0),
                null_var=read.array("null_var", ("k",), low=0.0),
            )
            full = len(made.null_scale) == len(made.index) or not made.null_var.any()
            read.need(full, "expected one scale per feature", "null_scale")
            rising = (np.diff(made.index) > 0).all()
            read.need(rising, "expected features in order, none twice", "index")
            return made


@dataclass(frozen=True)
class MeanFieldResult:
    """Posterior of a mean-field run.

    Only the K live factors are part of it, and there is none where the fit ends at the base rate.
    Weights have full length; those of dropped features are zero.
    """

    W: list[Array]  # W, W_std: (K, D_m); Mean and marginal standard deviation of the weights
    W_std: list[Array]
    V: Array  # V, V_cov: (C, K); and (K, K) arrays; <V> and Sigma_V
    V_cov: Array
    b: Array  # b, b_var: (C,); and float; Mean and variance of the intercepts
    b_var: float
    gamma: list[Array]  # (D_m,); <gamma_d>
    delta: list[Array]  # (K,); <delta_k>
    omega: Array  # (K,); <omega_k>
    tau: float  # tau, psi: <tau> and <psi>
    psi: float
    features: list[Mask]  # features, views: (D_m,); and (M,) bool arrays; What is selected
    views: Mask
    relevance: list[IntArray]  # Relevance vectors of each view, empty for primal and dropped views
    elbo: float
    history: list[dict[str, Any]]
    converged: bool
    spaces: list[str]  # Per view, "primal" or "dual"
    start: str
    spread: list[WeightSpread]

    def to_state(self) -> Saved:
        """Return the posterior as plain values."""
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        own["spread"] = [one.to_state() for one in self.spread]
        return {"kind": "mean-field result", **own}

    @classmethod
    def from_state(
        cls, state: Any, *, widths: list[int], outputs: int, factors: int
    ) -> MeanFieldResult:
        """Build the posterior from its state, for views of these widths."""
        M = len(widths)
        with Fields(state, "mean-field result", C=outputs, K=factors) as read:

            def weights(name: str, **conditions: Any) -> list[Array]:
                return read.each(
                    name, lambda f, key, m: f.array(key, ("K", widths[m]), **conditions), M
                )

            return cls(
                W=weights("W"),
                W_std=weights("W_std", low=0.0),
                V=read.array("V", ("C", "K")),
                V_cov=read.covariance("V_cov", ("K", "K")),
                b=read.array("b", ("C",)),
                b_var=read.number("b_var", low=0.0),
                gamma=read.each("gamma", lambda f, key, m: f.array(key, (widths[m],), low=0.0), M),
                delta=read.each("delta", lambda f, key, m: f.array(key, ("K",), low=0.0), M),
                omega=read.array("omega", ("K",), low=0.0),
                tau=read.number("tau", above=0.0),
                psi=read.number("psi", above=0.0),
                features=read.each("features", lambda f, key, m: f.flags(key, (widths[m],)), M),
                views=read.flags("views", (M,)),
                relevance=read.each(
                    "relevance", lambda f, key, m: f.array(key, (None,), "int", low=0), M
                ),
                elbo=read.number("elbo", finite=False),
                history=read.records("history"),
                converged=read.boolean("converged"),
                spaces=read.each("spaces", lambda f, key, m: f.text(key), M),
                start=read.text("start"),
                spread=read.each(
                    "spread",
                    lambda f, key, m: f.part(
                        key, WeightSpread.from_state, width=widths[m], factors=factors
                    ),
                    M,
                ),
            )


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
