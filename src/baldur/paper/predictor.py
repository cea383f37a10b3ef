"""A mean-field run in the form the estimators expect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from baldur.core.state import Boolean, Numbers, Object, stored
from baldur.core.types import Array, Index
from baldur.inference.predictor import WeightGaussian, mean_squares
from baldur.model.likelihood import Loadings
from baldur.paper.result import (
    MeanFieldResult,
    latent_moments,
    noise_variance,
    predict_meanfield,
    predictor_moments,
)
from baldur.paper.run import run_meanfield
from baldur.views.prepared_view import PreparedView

Views = Sequence[PreparedView]


@dataclass
class MeanFieldPredictor:
    """The mean-field posterior with the methods of `baldur.inference.predictor.Predictor`.

    A label comes from a latent output with its noise, so moments in classification include the
    noise. In regression the output itself is observed, and its noise is apart.
    """

    kind: ClassVar[str] = "mean-field predictor"

    result: MeanFieldResult = stored(Object((MeanFieldResult,)))
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
        return noise_variance(self.result)

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

    # -- one Gaussian over all weights, for cards and scorers --------------------------------
    # They need a factor, so a posterior without one is given a factor of weight zero.

    @property
    def loadings(self) -> Loadings:
        """q(V) and q(b) of the factors of `joint`."""
        result, (C, K) = self.result, self.V.shape
        V, V_cov = np.zeros((C, max(K, 1))), np.zeros((C, max(K, 1), max(K, 1)))
        V[:, :K], V_cov[:, :K, :K] = self.V, result.V_cov
        return Loadings(V, V_cov, np.asarray(result.b), np.full(C, float(result.b_var)))

    @property
    def joint_missing_variance(self) -> Array:
        """Variance that a missing view adds to each factor of `joint`: none in this model."""
        return np.zeros((len(self.result.W), max(self.V.shape[1], 1)))

    def count_joint(self) -> tuple[Index, int]:
        """Return the features that have a weight, and the numbers in the covariance of `joint`."""
        index = [spread.index for spread in self.result.spread]
        L = 1 + sum(map(len, index))
        return index, max(self.V.shape[1], 1) * L * L

    def joint(self) -> WeightGaussian:
        """Return the Gaussian over the weights of K factors; different views are independent."""
        index, _ = self.count_joint()
        K, L = self.V.shape[1], sum(map(len, index))
        mean = np.zeros((1, max(K, 1), 1 + L))
        cov = np.zeros((1, max(K, 1), 1 + L, 1 + L))
        start = 1
        for spread, W in zip(self.result.spread, self.result.W, strict=True):
            here = slice(start, start + len(spread.index))
            mean[0, :K, here] = W[:, spread.index]
            for k in range(K):
                cov[0, k, here, here] = spread.covariance(k)
            start = here.stop
        return WeightGaussian(index, mean, cov)


def fit_mean_field(views: Views, T: Array, *, task: str, **options: Any) -> MeanFieldPredictor:
    """Fit the paper's mean-field posterior; `options` go to `run_meanfield`."""
    result = run_meanfield(list(views), T, task=task, **options)
    V = np.asarray(result.V)
    parts = np.stack([view.apply(W.T).T for view, W in zip(views, result.W, strict=True)])
    absent = np.stack([view.absent for view in views], axis=1).astype(float)
    return MeanFieldPredictor(
        result,
        task == "regression",
        mean_squares(parts, absent),
        mean_squares(np.einsum("ck,mkn->mcn", V, parts), absent),
    )


def _spread(V: Array, V_cov: Array, W: Array, W_std: Array) -> Array:
    """Return the s.d. of sum_k v_ck w_kd for independent V and W, (C, D)."""
    diagonal = np.diag(V_cov)
    var = (V**2 + diagonal) @ W_std**2 + np.einsum("kd,kl,ld->d", W, V_cov, W)
    return np.sqrt(np.maximum(var, 0.0))
