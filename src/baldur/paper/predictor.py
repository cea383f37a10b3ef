"""A mean-field run in the form the estimators expect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from baldur.inference.predictor import mean_squares
from baldur.paper.meanfield import (
    MeanFieldResult,
    latent_moments,
    noise_variance,
    predict_meanfield,
    predictor_moments,
    run_meanfield,
)
from baldur.state import Fields, State
from baldur.types import Array, Mask
from baldur.views.prepared_view import PreparedView

Views = Sequence[PreparedView]


@dataclass
class MeanFieldPredictor:
    """The mean-field posterior as a predictor; see `baldur.inference.predictor.Predictor`.

    A label comes from a latent output with its noise, so moments in classification include the
    noise. In regression the output itself is observed, and its noise is apart.

    Attributes
    ----------
    result : MeanFieldResult
    regression : bool
    noise : (C,) array, variance of the noise of observed outputs, 0 for labels
    signal, output_signal : (M, K) and (M, C) arrays, mean square of each view's part on the
        training rows
    """

    result: MeanFieldResult
    regression: bool
    noise: Array
    signal: Array
    output_signal: Array

    holds_training_rows = False

    def to_state(self) -> State:
        """Return the predictor as plain values; `noise` follows from the result."""
        return {
            "kind": "mean-field predictor",
            "result": self.result.to_state(),
            "regression": self.regression,
            "signal": self.signal,
            "output_signal": self.output_signal,
        }

    @classmethod
    def from_state(
        cls, state: Any, *, widths: Sequence[int], outputs: int, factors: int
    ) -> MeanFieldPredictor:
        """Build it again, for views of these widths and so many outputs and factors."""
        sizes = {"outputs": outputs, "factors": factors}
        with Fields(state, "mean-field predictor", M=len(widths), C=outputs, K=factors) as read:
            result = read.part("result", MeanFieldResult.from_state, widths=list(widths), **sizes)
            regression = read.boolean("regression")
            return cls(
                result=result,
                regression=regression,
                noise=_observed_noise(result, regression),
                signal=read.array("signal", ("M", "K"), low=0.0),
                output_signal=read.array("output_signal", ("M", "C"), low=0.0),
            )

    @property
    def V(self) -> Array:
        """Loadings (C, K)."""
        return np.asarray(self.result.V)

    def latent(self, views: Views) -> tuple[Array, Array]:
        """Return Z of new rows with its variance, its own noise 1/tau included, each (n, K)."""
        mean, var = latent_moments(self.result, list(views))
        return mean, var + 1.0 / self.result.tau

    def moments(self, views: Views) -> tuple[Array, Array]:
        """Return mean and variance of the linear predictors, each (n, C)."""
        rule = predictor_moments if self.regression else predict_meanfield
        mean, var = rule(self.result, list(views))
        return mean, var

    def coefficients(self) -> tuple[list[Array], list[Array], Array]:
        """Return means and s.d. of the weights of each view (C, D_m), and intercepts (C,)."""
        result, V = self.result, self.V
        std = [
            _spread(V, np.asarray(result.V_cov), W, W_std)
            for W, W_std in zip(result.W, result.W_std, strict=True)
        ]
        return [V @ W for W in result.W], std, np.asarray(result.b, dtype=float)


@dataclass
class MeanFieldRun:
    """A mean-field fit.

    Attributes
    ----------
    predictor : MeanFieldPredictor
    selected : list of (D_m,) bool arrays
    spaces : list of str, "primal" or "dual" per view
    noise_variance : (C,) array
    elbo : float
    converged, history : the record of the fit
    """

    predictor: MeanFieldPredictor
    selected: list[Mask]
    spaces: list[str]
    noise_variance: Array
    elbo: float
    converged: bool
    history: list[dict[str, Any]]


def fit_mean_field(views: Views, T: Array, *, task: str, **options: Any) -> MeanFieldRun:
    """Fit the paper's mean-field posterior; `options` go to `run_meanfield`."""
    result = run_meanfield(list(views), T, task=task, **options)
    V = np.asarray(result.V)
    parts = np.stack([view.apply(W.T).T for view, W in zip(views, result.W, strict=True)])
    absent = np.stack([view.absent for view in views], axis=1).astype(float)
    regression = task == "regression"
    predictor = MeanFieldPredictor(
        result,
        regression,
        _observed_noise(result, regression),
        mean_squares(parts, absent),
        mean_squares(np.einsum("ck,mkn->mcn", V, parts), absent),
    )
    return MeanFieldRun(
        predictor,
        [np.asarray(mask) for mask in result.features],
        list(result.spaces),
        noise_variance(result),
        float(result.elbo),
        bool(result.converged),
        list(result.history),
    )


def _observed_noise(result: MeanFieldResult, regression: bool) -> Array:
    """Return the variance of the noise of observed outputs, (C,); 0 for labels."""
    return noise_variance(result) if regression else np.zeros(len(result.V))


def _spread(V: Array, V_cov: Array, W: Array, W_std: Array) -> Array:
    """Return the s.d. of sum_k v_ck w_kd for independent V and W, (C, D)."""
    diagonal = np.diag(V_cov)
    var = (V**2 + diagonal) @ W_std**2 + np.einsum("kd,kl,ld->d", W, V_cov, W)
    return np.sqrt(np.maximum(var, 0.0))
