"""A mean-field run in the form the estimators expect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from baldur.inference.fitted import Fitted, Views
from baldur.inference.gaussian import mean_squares
from baldur.inference.new_rows import absent_matrix
from baldur.inference.predictive import Moments
from baldur.model.meanfield import (
    latent_moments,
    noise_variance,
    predict_meanfield,
    predictor_moments,
    run_meanfield,
)

Array = NDArray[np.float64]


class MeanFieldFitted(NamedTuple):
    """A fitted posterior, the noise variance of each output, (C,), and the bound."""

    fitted: Fitted
    noise_variance: Array
    elbo: float


def fit_mean_field(views: Views, T: Array, *, task: str, **options: Any) -> MeanFieldFitted:
    """Fit the paper's mean-field posterior; `options` go to `run_meanfield`.

    A label comes from a latent output with its noise, so moments in classification include the
    noise. In regression the output itself is observed, and its noise is apart.
    """
    result = run_meanfield(list(views), T, task=task, **options)
    V = np.asarray(result.V)
    parts = np.stack([view.apply(W.T) for view, W in zip(views, result.W, strict=True)])
    absent = absent_matrix(views)
    fitted = Fitted(
        latent=_Latent(result),
        moments=_Predict(result, predict_meanfield if task != "regression" else predictor_moments),
        weights=np.ones((1, len(V))),
        factor_weights=np.ones((1, V.shape[1])),
        noise=noise_variance(result) if task == "regression" else np.zeros(len(V)),
        selected=[np.asarray(mask) for mask in result.features],
        coef=[V @ W for W in result.W],
        coef_std=[_spread(V, np.asarray(result.V_cov), W, std) for W, std in _pairs(result)],
        intercept=np.asarray(result.b, dtype=float),
        signal=mean_squares(parts, absent),
        view_signal=mean_squares(parts @ V.T, absent),
        V=V,
        spaces=list(result.spaces),
        sparsity=options.get("a_gamma"),
        converged=bool(result.converged),
        history=list(result.history),
    )
    return MeanFieldFitted(fitted, noise_variance(result), float(result.elbo))


class _Predict:
    """<eta> and Var eta of new rows."""

    def __init__(self, result: Any, rule: Any) -> None:
        self.result = result
        self.rule = rule

    def __call__(self, views: Views) -> Moments:
        return [self.rule(self.result, list(views))]


class _Latent:
    """Z of new rows with its variance, its own noise 1/tau included."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def __call__(self, views: Views) -> Moments:
        mean, var = latent_moments(self.result, list(views))
        return [(mean, var + 1.0 / self.result.tau)]


def _pairs(result: Any) -> Sequence[tuple[Array, Array]]:
    return list(zip(result.W, result.W_std, strict=True))


def _spread(V: Array, V_cov: Array, W: Array, W_std: Array) -> Array:
    """Standard deviation of sum_k v_ck w_kd for independent V and W, (C, D)."""
    diagonal = np.diag(V_cov)
    var = (V**2 + diagonal) @ W_std**2 + np.einsum("kd,kl,ld->d", W, V_cov, W)
    return np.sqrt(np.maximum(var, 0.0))
