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
    signal : (M, K), variance that each view gives each factor
    V : (C, K)
    spaces : list of str per view
    sparsity : what was settled: a shape, or the share in per view
    elbo : float, the bound; nan for a stack of posteriors, which has none
    converged, history : the record of the fit
    answer : Answer of ``sparsity="auto"``, or None
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
    V: Array
    spaces: list[str]
    sparsity: Any
    elbo: float
    converged: bool
    history: list[dict[str, Any]] = field(default_factory=list)
    answer: Answer | None = None


def from_mixture(mixture: Mixture, V: Array, **record: Any) -> Fitted:
    """Return the full-width answer of a mixture."""
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
        signal=mixture.signal(),
        V=V,
        **record,
    )


def from_answer(answer: Answer, side: str) -> Fitted:
    """Return the answer of ``sparsity="auto"``: factors are the outputs."""
    M = len(answer.selected)
    return from_mixture(
        answer.mixture,
        np.eye(answer.mixture.weights.shape[1]),
        selected=answer.selected,
        spaces=[side] * M,
        sparsity=answer.share,
        elbo=float("nan"),
        converged=answer.converged,
        history=answer.history,
        answer=answer,
    )
