"""The posterior of a fitted model as plain numbers: mean and covariance of every kept weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baldur.exceptions import InputError
from baldur.inference.fitted_mean_field import MeanFieldPredictor
from baldur.model.meanfield import noise_variance

__all__ = ["Member", "Plain", "plain_posterior"]

Array = NDArray[np.float64]
Index = list[NDArray[np.intp]]

MOST_NUMBERS = 500_000
"""Numbers in all covariances together that are still printed: some megabytes of text."""


@dataclass
class Member:
    """One Gaussian of the mixture over the features of `Plain.index`.

    Attributes
    ----------
    weight : (C,) how much it counts for each output
    mean : (K, L + 1), the intercept first
    cov : (K, L + 1, L + 1)
    lacking : (M, K) variance that a row gets for a view it lacks
    """

    weight: Array
    mean: Array
    cov: Array
    lacking: Array


@dataclass
class Plain:
    """A posterior as plain numbers.

    Attributes
    ----------
    index : features of each view that enter
    members : list of Member
    loadings : dict of arrays V, V_cov, b and b_var, or None where factors are outputs
    noise : (C,) variance that every row has of its own in the linear predictor
    """

    index: Index
    members: list[Member]
    loadings: dict[str, Array] | None
    noise: Array


def plain_posterior(predictor: Any, n_views: int) -> Plain:
    """Return the posterior of a fitted model as plain numbers, or say that it has too many.

    Parameters
    ----------
    predictor : Predictor or MeanFieldPredictor
        Of any estimator of ours.
    n_views : int

    Returns
    -------
    Plain
    """
    if isinstance(predictor, MeanFieldPredictor):
        noise = np.zeros(len(predictor.V))
        if not predictor.regression:
            noise = noise_variance(predictor.result)
        return _of_mean_field(predictor.result, noise, n_views)
    index, numbers = predictor.count_joint()
    _check_size(numbers, sum(map(len, index)))
    joint = predictor.joint()
    member = Member(
        np.ones(len(predictor.V)), joint.mean[0], joint.cov[0], predictor.missing_variance
    )
    loadings = None
    if predictor.loadings is not None:
        q = predictor.loadings
        b_var = np.broadcast_to(q.b_var, q.b.shape)
        loadings = {"V": q.V, "V_cov": q.V_cov, "b": q.b, "b_var": b_var}
    return Plain(index, [member], loadings, np.zeros(len(predictor.V)))


def _check_size(numbers: int, features: int) -> None:
    if numbers > MOST_NUMBERS:
        raise InputError(
            f"A model of {features:,} features is not printed: the covariances of its weights are "
            f"{numbers:,} numbers, and up to {MOST_NUMBERS:,} are. Save it and load it with "
            "baldur, or fit one of fewer features (a larger margin)."
        )


def _of_mean_field(result: Any, noise: Array, n_views: int) -> Plain:
    """Weights of different views are independent, and no intercept is among them."""
    index = [spread.index for spread in result.spread]
    alive = np.flatnonzero(result.factors)
    K, L, C = len(result.factors), sum(map(len, index)), len(result.V)
    _check_size(K * (L + 1) ** 2, L)
    mean, cov = np.zeros((K, L + 1)), np.zeros((K, L + 1, L + 1))
    at = 1
    for spread, W in zip(result.spread, result.W, strict=True):
        here = slice(at, at + len(spread.index))
        mean[:, here] = W[:, spread.index]
        B = spread.basis
        for j, k in enumerate(alive):
            cov[k, here, here] = (B * spread.coef_var[:, j]) @ B.T
            if spread.null_var.any():
                cov[k, here, here] += spread.null_var[j] * (np.diag(spread.null_scale) - B @ B.T)
        at = here.stop
    loadings = {
        "V": np.asarray(result.V),
        "V_cov": np.repeat(np.asarray(result.V_cov)[None], C, axis=0),
        "b": np.asarray(result.b, dtype=float),
        "b_var": np.full(C, float(result.b_var)),
    }
    member = Member(np.ones(C), mean, cov, np.zeros((n_views, K)))
    return Plain(index, [member], loadings, noise)
