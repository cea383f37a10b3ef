"""A mean-field run in the form the estimators expect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baldur.inference.fitted import Fitted, Moments, Views
from baldur.model.meanfield import latent_moments, predict_meanfield, run_meanfield

Array = NDArray[np.float64]


def fit_mean_field(views: Views, T: Array, **options: Any) -> Fitted:
    """Fit the paper's mean-field posterior; `options` go to `run_meanfield`."""
    result = run_meanfield(list(views), T, **options)
    V = np.asarray(result.V)
    signal = np.stack(
        [
            (view.apply(W.T)[~view.absent] ** 2).mean(axis=0)
            if not view.absent.all()
            else 0 * W[:, 0]
            for view, W in zip(views, result.W, strict=True)
        ]
    )
    return Fitted(
        latent=_Latent(result),
        moments=_Predict(result),
        selected=[np.asarray(mask) for mask in result.features],
        coef=[V @ W for W in result.W],
        coef_std=[_spread(V, np.asarray(result.V_cov), W, std) for W, std in _pairs(result)],
        intercept=np.asarray(result.b, dtype=float),
        signal=signal,
        V=V,
        spaces=list(result.spaces),
        sparsity=options.get("a_gamma"),
        elbo=float(result.elbo),
        converged=bool(result.converged),
        history=list(result.history),
    )


class _Predict:
    """<eta> and Var eta of new rows."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def __call__(self, views: Views) -> Moments:
        return [predict_meanfield(self.result, list(views))]


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
