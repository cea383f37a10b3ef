"""A mean-field run in the form the estimators expect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from baldur.inference.fitted import Fitted, Views
from baldur.inference.predictive import Moments
from baldur.model.meanfield import (
    MeanFieldResult,
    latent_moments,
    noise_variance,
    predict_meanfield,
    predictor_moments,
    run_meanfield,
)

Array = NDArray[np.float64]


class MeanFieldFitted(NamedTuple):
    """A fitted posterior, and the noise variance of each output, (C,)."""

    fitted: Fitted
    noise_variance: Array


def fit_mean_field(views: Views, T: Array, *, task: str, **options: Any) -> MeanFieldFitted:
    """Fit the paper's mean-field posterior; `options` go to `run_meanfield`.

    A label comes from a latent output with its noise, so moments in classification include the
    noise. In regression the output itself is observed, and its noise is apart.
    """
    result = run_meanfield(list(views), T, task=task, **options)
    signal = np.stack(
        [
            (view.apply(W.T)[~view.absent] ** 2).mean(axis=0)
            if not view.absent.all()
            else 0 * W[:, 0]
            for view, W in zip(views, result.W, strict=True)
        ]
    )
    fitted = fitted_from_result(
        result, signal=signal, sparsity=options.get("a_gamma"), observed=task == "regression"
    )
    return MeanFieldFitted(fitted, noise_variance(result))


def fitted_from_result(
    result: MeanFieldResult, *, signal: Array, sparsity: Any, observed: bool
) -> Fitted:
    """Return the posterior of a run as the estimators see it.

    Parameters
    ----------
    result : MeanFieldResult
    signal : (M, K) array
        Variance that each view gives each factor, over the training rows.
    sparsity : float
        Shape of the prior of the feature precisions.
    observed : bool
        Whether outputs are observed, as in regression.
    """
    V = np.asarray(result.V)
    return Fitted(
        latent=_Latent(result),
        moments=_Predict(result, observed),
        weights=np.ones((1, len(V))),
        factor_weights=np.ones((1, V.shape[1])),
        noise=noise_variance(result) if observed else np.zeros(len(V)),
        selected=[np.asarray(mask) for mask in result.features],
        coef=[V @ W for W in result.W],
        coef_std=[_spread(V, np.asarray(result.V_cov), W, std) for W, std in _pairs(result)],
        intercept=np.asarray(result.b, dtype=float),
        signal=signal,
        V=V,
        spaces=list(result.spaces),
        sparsity=sparsity,
        elbo=float(result.elbo),
        converged=bool(result.converged),
        history=list(result.history),
    )


class _Predict:
    """<eta> and Var eta of new rows; with the noise of a latent output where it is not observed."""

    def __init__(self, result: MeanFieldResult, observed: bool) -> None:
        self.result = result
        self.observed = observed

    def __call__(self, views: Views) -> Moments:
        rule = predictor_moments if self.observed else predict_meanfield
        return [rule(self.result, list(views))]


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
