"""The posterior of a fitted model as plain numbers: mean and covariance of every kept weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baldur.exceptions import InputError
from baldur.inference.fitted import Fitted
from baldur.inference.mixture import Mixture, Pool
from baldur.inference.predictive import pooled_weights
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


def plain_posterior(fitted: Fitted) -> Plain:
    """Return the posterior of a fitted model as plain numbers, or say that it has too many.

    Parameters
    ----------
    fitted : Fitted
        Of any estimator of ours.

    Returns
    -------
    Plain
    """
    rule: Any = fitted.moments
    widths = [len(mask) for mask in fitted.selected]
    if hasattr(rule, "result"):
        noise = noise_variance(rule.result) if not fitted.noise.any() else np.zeros(len(fitted.V))
        return _of_mean_field(rule.result, noise, len(widths))
    return _of_mixture(rule.__self__, fitted.weights)


def _check_size(J: int, K: int, L: int) -> None:
    if J * K * (L + 1) ** 2 > MOST_NUMBERS:
        raise InputError(
            f"A model of {L:,} features is not printed: the covariances of its weights are "
            f"{J * K * (L + 1) ** 2:,} numbers, and up to {MOST_NUMBERS:,} are. Save it and load "
            "it with baldur, or fit one of fewer features (a larger margin)."
        )


def _of_mixture(mixture: Mixture, weights: Array) -> Plain:
    used = [np.zeros(D, dtype=bool) for D in mixture.widths]
    for component in mixture.components:
        for mask, columns in zip(used, component.entering(mixture.widths), strict=True):
            mask[columns] = True
    index = [np.flatnonzero(mask) for mask in used]
    L, K = sum(map(len, index)), mixture.weights.shape[1]
    _check_size(len(mixture.components), K, L)
    starts = np.concatenate([[0], np.cumsum([len(i) for i in index])])
    members = []
    if mixture.pool is not None:
        weights = mixture.weights
    for component, weight in zip(mixture.components, weights, strict=True):
        own = component.entering(mixture.widths)
        at = np.concatenate(
            [[0], *(1 + starts[m] + np.searchsorted(index[m], c) for m, c in enumerate(own))]
        ).astype(np.intp)
        mean, cov = np.zeros((K, L + 1)), np.zeros((K, L + 1, L + 1))
        found_mean, found_cov = component.joint(mixture.widths)
        mean[:, at] = found_mean
        cov[:, at[:, None], at] = found_cov
        members.append(Member(np.asarray(weight), mean, cov, component.lacking))
    if mixture.pool is not None:
        members = [_pooled(members, mixture.pool)]
    loadings = None
    if mixture.loadings is not None:
        q = mixture.loadings
        b_var = np.broadcast_to(q.b_var, q.b.shape)
        loadings = {"V": q.V, "V_cov": q.V_cov, "b": q.b, "b_var": b_var}
    return Plain(index, members, loadings, np.zeros(weights.shape[1]))


def _pooled(members: list[Member], pool: Pool) -> Member:
    """Return the one Gaussian that stands for several, see `baldur.inference.stack`."""
    weight = np.stack([member.weight for member in members])
    means = np.stack([member.mean for member in members])
    covs = np.stack([member.cov for member in members])
    level = np.zeros_like(means[0])
    level[:, 0] = pool.level
    mean, cov = pooled_weights(means, covs, weight, level, pool.slope, pool.slope_var)
    lacking = np.einsum("jk,jmk->mk", weight, np.stack([member.lacking for member in members]))
    return Member(
        np.ones(len(pool.level)),
        pool.shrink[:, None] * mean,
        pool.spread[:, None, None] ** 2 * cov,
        pool.spread**2 * lacking,
    )


def _of_mean_field(result: Any, noise: Array, n_views: int) -> Plain:
    """Weights of different views are independent, and no intercept is among them."""
    index = [spread.index for spread in result.spread]
    alive = np.flatnonzero(result.factors)
    K, L, C = len(result.factors), sum(map(len, index)), len(result.V)
    _check_size(1, K, L)
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
