"""The posterior of a fitted model as one Gaussian over the weights of the selected features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from baldur.exceptions import InputError
from baldur.inference.predictor import Predictor
from baldur.model.loadings import Loadings
from baldur.paper.meanfield import noise_variance
from baldur.paper.predictor import MeanFieldPredictor
from baldur.types import Array, Index

__all__ = ["JointGaussian", "joint_gaussian"]

MAX_NUMBERS = 500_000
"""Largest number of covariances that is printed, some megabytes of text."""


@dataclass
class JointGaussian:
    """Mean and covariance of the weights of K factors, and what turns factors into C outputs.

    Attributes
    ----------
    index : features of each view that have a weight, L in all
    mean : (K, 1 + L) array, the intercept first
    cov : (K, 1 + L, 1 + L) array
    missing_variance : (M, K) array, variance that a missing view adds
    loadings : Loadings, or None where factor k is output k
    noise_variance : (C,) array, variance of the noise in the linear predictor
    """

    index: Index
    mean: Array
    cov: Array
    missing_variance: Array
    loadings: Loadings | None
    noise_variance: Array


def joint_gaussian(predictor: Predictor | MeanFieldPredictor) -> JointGaussian:
    """Return the posterior of a fitted model; raise InputError where it is too large to print."""
    if isinstance(predictor, MeanFieldPredictor):
        return _mean_field_gaussian(predictor.result)
    index, _ = predictor.count_joint()
    _check_size(predictor.weights.shape[1], index)
    joint = predictor.joint()
    missing = predictor.missing_variance
    if predictor.factors is not None:
        missing = missing @ predictor.factors.P**2
    return JointGaussian(index, joint.mean[0], joint.cov[0], missing, None, predictor.noise)


def _check_size(K: int, index: Index) -> None:
    L = sum(map(len, index))
    numbers = K * (1 + L) ** 2
    if numbers > MAX_NUMBERS:
        raise InputError(
            f"A model of {L:,} features is not printed: the covariance of its weights has "
            f"{numbers:,} entries, more than {MAX_NUMBERS:,}. Save the model and load it with "
            "baldur, or fit one of fewer features (a larger margin)."
        )


def _mean_field_gaussian(result: Any) -> JointGaussian:
    """Return the mean-field posterior, in which the weights of different views are independent."""
    index = [spread.index for spread in result.spread]
    active = np.flatnonzero(result.factors)
    K, L, C = len(result.factors), sum(map(len, index)), len(result.V)
    _check_size(K, index)
    mean, cov = np.zeros((K, 1 + L)), np.zeros((K, 1 + L, 1 + L))
    start = 1
    for spread, W in zip(result.spread, result.W, strict=True):
        here = slice(start, start + len(spread.index))
        mean[:, here] = W[:, spread.index]
        B = spread.basis
        for j, k in enumerate(active):
            cov[k, here, here] = (B * spread.coef_var[:, j]) @ B.T
            if spread.null_var.any():
                cov[k, here, here] += spread.null_var[j] * (np.diag(spread.null_scale) - B @ B.T)
        start = here.stop
    loadings = Loadings(
        np.asarray(result.V),
        np.tile(np.asarray(result.V_cov), (C, 1, 1)),
        np.asarray(result.b, dtype=float),
        np.full(C, float(result.b_var)),
    )
    missing_variance = np.zeros((len(index), K))
    return JointGaussian(index, mean, cov, missing_variance, loadings, noise_variance(result))
