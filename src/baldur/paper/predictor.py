"""The fitted mean-field posterior, and predictions from it in the form the estimators expect."""

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
from baldur.core.types import Array, Index, IntArray, Mask
from baldur.inference.predictor import WeightGaussian, mean_squares
from baldur.paper.state import Data, State
from baldur.paper.weights import apply, quadratic, weight_moments
from baldur.views.prepared_view import PreparedView

Views = Sequence[PreparedView]

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
        """Return the covariance Sigma_wk, (d, d), of the weights of factor `k` on d features."""
        cov = (self.basis * self.coef_var[:, k]) @ self.basis.T
        if self.null_var[k]:
            cov += self.null_var[k] * (np.diag(self.null_scale) - self.basis @ self.basis.T)
        return np.asarray(cov)

    def check_state(self, sizes: Sizes) -> None:
        """Refuse a stored object with features out of order, or variances without their scales."""
        has_scales = len(self.null_scale) == len(self.index) or not self.null_var.any()
        need(has_scales, "expected one scale per feature", "null_scale")
        ascending = (np.diff(self.index) > 0).all()
        need(ascending, "expected features in order, none twice", "index")


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
    spaces: list[str] = stored(Each(Text(), "M"))  # Per view, "primal" or "dual"
    start: str = stored(Text())
    spread: list[WeightSpread] = stored(Each(Object(WeightSpread), "M"))

    def latent_moments(self, views: Views) -> tuple[Array, Array]:
        """Return mean sum_m x W^T and variance of the factors z of new rows, without noise; (n, K).

        Dropped features count as w = 0: their spread, of order 1/(delta gamma), is left out.
        """
        mean, var = np.zeros(()), np.zeros(())
        for view, W, s in zip(views, self.W, self.spread, strict=True):
            mean = mean + apply(view, W[:, s.index].T, s.index)
            in_basis = apply(view, s.basis, s.index) ** 2  # (n, r) squared coordinates
            view_var = in_basis @ s.coef_var
            if s.null_var.any():
                total = quadratic(view, s.null_scale, s.index)
                outside = np.maximum(total - in_basis.sum(axis=1), 0.0)
                view_var = view_var + np.outer(outside, s.null_var)
            var = var + view_var
        return mean, var

    def predictor_moments(self, views: Views) -> tuple[Array, Array]:
        """Return mean and variance of the linear predictors of new rows, (n, C), without noise.

        <eta_c> = z V_c^T + b_c, with z = sum_m x W^T, and

            Var eta_c = Var b + v_c S_x v_c^T + tr(Sigma_V (z^T z + S_x)),

        S_x = diag(sum_m x^T Sigma_wk x). What a row adds of its own is `noise`. Departure from the
        paper: it prints the mean without V and the variance of y as 1/psi + Sigma_V/tau, which
        leaves out the spread of W and most of that of V.
        """
        Z, spread = self.latent_moments(views)
        mean = Z @ self.V.T + self.b
        loading = np.einsum("nk,kl,nl->n", Z, self.V_cov, Z) + spread @ np.diag(self.V_cov)
        var = self.b_var + spread @ (self.V**2).T + loading[:, None]
        return mean, var

    @property
    def noise(self) -> Array:
        """Variance of the noise of a single row in each output, (C,).

        1/psi + (v_c v_c^T + tr Sigma_V)/tau: the noise of y and, through the loadings, that of z.
        Only the sum is seen in the data; how it is divided between psi and tau is up to the priors.
        """
        through = np.sum(self.V**2 + np.diag(self.V_cov), axis=1)
        return np.asarray(1.0 / self.psi + through / self.tau)


def collect(state: State, data: Data, **record: Any) -> MeanFieldResult:
    """Return the posterior of the live factors, with weights over all features of each view."""
    # How far each factor moves the outputs: a root mean square over the rows, (K,).
    moved = np.sqrt(data.weight @ state.explained**2 / data.n) * np.abs(state.V).max(axis=0)
    live = np.flatnonzero(moved > LIVE * np.sqrt(data.output_scale))
    W, W_std, gamma, features, spread = [], [], [], [], []
    for m, view in enumerate(state.views):
        spec, D = view.q.spectrum, view.selected.size
        mean, var = weight_moments(data.views[m], view.q)
        # Without a live factor no feature takes part in a prediction.
        used = np.arange(spec.index.size if live.size else 0)
        full_mean, full_std = np.zeros((live.size, D)), np.zeros((live.size, D))
        full_mean[:, spec.index] = mean[live]
        full_std[:, spec.index] = np.sqrt(var[live])
        W.append(full_mean)
        W_std.append(full_std)
        _, group_of = data.groups[m]
        full_gamma = view.dropped.gamma.mean[group_of]
        full_gamma[spec.index] = view.gamma.mean
        gamma.append(full_gamma)
        features.append(np.isin(np.arange(D), spec.index[used]))
        null_var = view.q.null_var[live] if spec.n_null else np.zeros(live.size)
        basis = spec.full_basis(data.views[m])[used]
        coef_var = view.q.coef_var[:, live]
        scale = spec.null_scale[used]
        spread.append(WeightSpread(spec.index[used], basis, coef_var, scale, null_var))
    is_dual = [
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
        tau=state.mean_tau,
        psi=state.mean_psi,
        features=features,
        views=np.array([mask.any() for mask in features]),
        relevance=[
            rows if dual else none for rows, dual in zip(data.relevance, is_dual, strict=True)
        ],
        spaces=list(data.spaces),
        spread=spread,
        **record,
    )


@dataclass
class MeanFieldPredictor:
    """The mean-field posterior with the methods of `baldur.inference.predictor.Predictor`.

    A label comes from a latent output with its noise, so moments in classification include the
    noise. In regression the output itself is observed, and its noise is apart.
    """

    kind: ClassVar[str] = "mean-field predictor"

    result: MeanFieldResult = stored(Object(MeanFieldResult))
    regression: bool = stored(Boolean())
    # Mean square of each view's part of each factor on the training rows, and of each output
    signal: Array = stored(Numbers("M K", low=0.0))
    output_signal: Array = stored(Numbers("M C", low=0.0))

    holds_training_rows = False

    @property
    def V(self) -> Array:
        """Mean loadings of the factors, (C, K)."""
        return np.asarray(self.result.V)

    @property
    def noise(self) -> Array:
        """Variance of the noise of a single row in each output, (C,)."""
        return self.result.noise

    def latent(self, views: Views) -> tuple[Array, Array]:
        """Return Z of new rows with its variance, its own noise 1/tau included, each (n, K)."""
        mean, var = self.result.latent_moments(views)
        return mean, var + 1.0 / self.result.tau

    def moments(self, views: Views) -> tuple[Array, Array]:
        """Return mean and variance of the linear predictors, each (n, C)."""
        mean, var = self.result.predictor_moments(views)
        return mean, var if self.regression else var + self.noise

    def coefficients(self) -> tuple[list[Array], list[Array], Array]:
        """Return means and s.d. of the weights of each view (C, D_m), and intercepts (C,)."""
        result, V = self.result, self.V
        std = [
            _spread(V, np.asarray(result.V_cov), W, W_std)
            for W, W_std in zip(result.W, result.W_std, strict=True)
        ]
        return [V @ W for W in result.W], std, np.asarray(result.b, dtype=float)

    # -- one Gaussian over all weights, for cards and scorers --------------------------------
    # They need a factor, so a posterior without one is given a factor of weight zero.

    @property
    def loadings(self) -> dict[str, Array]:
        """Moments of q(V), (C, K) and (C, K, K), and of q(b), (C,), of the factors of `joint`."""
        result, (C, K) = self.result, self.V.shape
        # Without a factor, one of zero.
        V, V_cov = np.zeros((C, max(K, 1))), np.zeros((C, max(K, 1), max(K, 1)))
        V[:, :K], V_cov[:, :K, :K] = self.V, result.V_cov
        b, b_var = np.asarray(result.b), np.full(C, float(result.b_var))
        return {"V": V, "V_cov": V_cov, "b": b, "b_var": b_var}

    @property
    def joint_missing_variance(self) -> Array:
        """Variance that a missing view adds to each factor of `joint`: none in this model."""
        return np.zeros((len(self.result.W), max(self.V.shape[1], 1)))

    def joint_index(self) -> Index:
        """Return the features of each view that have a weight."""
        return [spread.index for spread in self.result.spread]

    def joint(self) -> WeightGaussian:
        """Return the Gaussian over the weights of K factors, or of one of zero where K = 0."""
        index = self.joint_index()
        K, L = self.V.shape[1], sum(map(len, index))
        mean = np.zeros((1, max(K, 1), 1 + L))
        cov = np.zeros((1, max(K, 1), 1 + L, 1 + L))
        start = 1  # position 0 is the intercept, which the loadings carry here
        for spread, W in zip(self.result.spread, self.result.W, strict=True):
            here = slice(start, start + len(spread.index))
            mean[0, :K, here] = W[:, spread.index]
            for k in range(K):
                cov[0, k, here, here] = spread.covariance(k)
            start = here.stop
        return WeightGaussian(index, mean, cov)


def make_predictor(result: MeanFieldResult, views: Views, regression: bool) -> MeanFieldPredictor:
    """Return the predictor of a run, with the strength of each view on the training rows.

    Shapes: parts (M, K, n) of M views, K factors and n rows; of C outputs they are (M, C, n).
    """
    parts = np.stack([view.apply(W.T).T for view, W in zip(views, result.W, strict=True)])
    absent = np.stack([view.absent for view in views], axis=1).astype(float)
    return MeanFieldPredictor(
        result,
        regression,
        mean_squares(parts, absent),
        mean_squares(np.einsum("ck,mkn->mcn", np.asarray(result.V), parts), absent),
    )


def _spread(V: Array, V_cov: Array, W: Array, W_std: Array) -> Array:
    """Return the s.d. of sum_k v_ck w_kd for independent V and W, (C, D)."""
    diagonal = np.diag(V_cov)
    var = (V**2 + diagonal) @ W_std**2 + np.einsum("kd,kl,ld->d", W, V_cov, W)
    return np.sqrt(np.maximum(var, 0.0))
