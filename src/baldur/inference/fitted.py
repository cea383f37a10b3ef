"""A fitted posterior as the estimators see it, from whichever fit it came."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baldur.inference.auto import Answer
from baldur.inference.mixture import Mixture
from baldur.inference.predictive import Moments
from baldur.views.products import PreparedView

Array = NDArray[np.float64]
Views = Sequence[PreparedView]


@dataclass
class Fitted:
    """A fitted posterior.

    Attributes
    ----------
    latent, moments : functions of prepared views: factors, and linear predictors without noise,
        under every Gaussian of a mixture
    weights : (J, C), how much each Gaussian counts for each output
    factor_weights : (J, K), the same for factors
    noise : (C,) variance of the noise of each output, 0 for logistic ones
    selected : list of (D_m,) bool arrays
    coef, coef_std : lists of (C, D_m)
    intercept : (C,)
    signal : (M, K) mean square of each view's part of each factor, at the mean weights and over
        the training rows that have the view
    view_signal : (M, C) the same of each linear predictor, so that it goes with `coef`
    V : (C, K)
    spaces : list of str per view
    sparsity : share of features with an effect per view (M,), or the prior shape of a mean field
    converged, history : the record of the fit
    answer : Answer of the ensemble, or None for a mean field
    """

    latent: Callable[[Views], Moments]
    moments: Callable[[Views], Moments]
    weights: Array
    factor_weights: Array
    noise: Array
    selected: list[NDArray[np.bool_]]
    coef: list[Array]
    coef_std: list[Array]
    intercept: Array
    signal: Array
    view_signal: Array
    V: Array
    spaces: list[str]
    sparsity: Any
    converged: bool
    history: list[dict[str, Any]] = field(default_factory=list)
    answer: Answer | None = None


def from_mixture(
    mixture: Mixture, V: Array, view_signal: Array | None = None, **record: Any
) -> Fitted:
    """Return the full-width answer of a mixture; factors are the outputs without `view_signal`."""
    signal = mixture.signal()
    coef, std, b = mixture.coefficients()
    return Fitted(
        latent=mixture.latent,
        moments=mixture.moments,
        weights=mixture.output_weights,
        factor_weights=mixture.factor_weights,
        noise=mixture.noise,
        coef=coef,
        coef_std=std,
        intercept=b,
        signal=signal,
        view_signal=signal if view_signal is None else view_signal,
        V=V,
        **record,
    )


def from_answer(answer: Answer, side: str) -> Fitted:
    """Return the fitted posterior of the ensemble's answer: factors are the outputs."""
    M = len(answer.selected)
    return from_mixture(
        answer.mixture,
        np.eye(answer.mixture.weights.shape[1]),
        selected=answer.selected,
        spaces=[side] * M,
        sparsity=answer.share,
        converged=answer.converged,
        history=answer.history,
        answer=answer,
    )
