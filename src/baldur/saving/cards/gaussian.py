"""The posterior of a fitted model as one Gaussian over the weights of the selected features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from baldur.exceptions import InputError
from baldur.model.loadings import Loadings
from baldur.types import Array, Index

MAX_NUMBERS = 500_000
"""Largest number of covariances that is printed, some megabytes of text."""


@dataclass
class JointGaussian:
    """Mean and covariance of the weights of K factors, and what turns factors into C outputs."""

    index: Index  # L in all
    mean: Array  # (K, 1 + L); the intercept first
    cov: Array  # (K, 1 + L, 1 + L)
    missing_variance: Array  # (M, K); variance that a missing view adds
    loadings: Loadings | None  # or None where factor k is output k
    noise_variance: Array  # (C,); variance of the noise in the linear predictor


def joint_gaussian(predictor: Any) -> JointGaussian:
    """Return the posterior of a fitted model; raise InputError where it is too large to print.

    `predictor` is a `baldur.inference.predictor.Predictor` or has the same methods.
    """
    index, _ = predictor.count_joint()
    missing = predictor.joint_missing_variance
    _check_size(missing.shape[1], index)
    joint = predictor.joint()
    return JointGaussian(
        index, joint.mean[0], joint.cov[0], missing, predictor.loadings, predictor.noise
    )


def _check_size(K: int, index: Index) -> None:
    L = sum(map(len, index))
    numbers = K * (1 + L) ** 2
    if numbers > MAX_NUMBERS:
        raise InputError(
            f"A model of {L:,} features is not printed: the covariance of its weights has "
            f"{numbers:,} entries, more than {MAX_NUMBERS:,}. Save the model and load it with "
            "baldur, or fit one of fewer features (a larger margin)."
        )
