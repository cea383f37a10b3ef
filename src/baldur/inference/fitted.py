"""A fitted posterior as the estimators see it, from whichever fit it came."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baldur.inference.auto import Answer
from baldur.inference.features import Columns, Index, gather, owners
from baldur.inference.gaussian import Gaussian
from baldur.inference.mixture import Implicit, Loadings, Mixture
from baldur.inference.predictive import Moments
from baldur.inference.prune import view_factor_signal
from baldur.inference.reference import noise_variance
from baldur.inference.run import Run
from baldur.inference.streamed import Streamed
from baldur.model.posterior import INTERCEPT_VAR, FeatureSide
from baldur.views.products import PreparedView

Array = NDArray[np.float64]
Views = Sequence[PreparedView]

DENSE_BYTES = 1 << 28
"""Kept columns up to this size are held as one array for prediction."""


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
        factor_weights=mixture.weights,
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


def from_run(run: Run, shape: Any, **record: Any) -> Fitted:
    """Return the full-width answer of a run under one prior shape.

    Not integrated over scales, as one variance per view is: these variances have seen the data
    feature by feature, and the evidence would count it again.
    """
    data, state = run.data, run.state
    kept_at: Index = [np.flatnonzero(kept) for kept in state.kept]
    K, C = state.n_factors, len(state.V)
    loadings = None
    if state.learn_loadings or state.learn_intercepts:
        loadings = Loadings(state.V, state.V_cov, state.b, state.b_var)
    intercept_var = 0.0 if state.learn_intercepts else INTERCEPT_VAR
    s = [np.stack([state.prior_variance(m, k) for k in range(K)]) for m in range(len(kept_at))]
    noise = noise_variance(state.noise) * np.ones(C)
    signal = view_factor_signal(data, state)
    whole = data if data.whole is None else data.whole
    weights = np.ones((1, K))
    if data.X is None and sum(map(len, kept_at)) * data.n_samples * 8 > DENSE_BYTES:
        index = [np.arange(D) for D in data.widths]
        streamed = Streamed(data.views, intercept_var)
        flat = np.concatenate(s, axis=1)
        components = [
            Implicit(streamed, flat, list(state.factors), index, data.views, noise, signal, signal)
        ]
    else:
        index = kept_at
        if data.index is not None:
            index = [of[i] for of, i in zip(data.index, kept_at, strict=True)]
        columns = Columns(gather(data.views, kept_at), owners(kept_at), len(s), intercept_var)
        variances = np.concatenate([p[:, i] for p, i in zip(s, kept_at, strict=True)], axis=1)
        absent = np.stack([view.absent for view in data.views], axis=1).astype(float)
        if loadings is None:
            q = Gaussian(
                columns, data.likelihood, variances, state.sites, state.noise, absent, state.extra
            )
            q.refresh()
            components = [
                Implicit(columns, q.s, q.sides, index, [], noise, q.signal(), q.lacking())
            ]
        else:
            keep = np.concatenate(state.kept)
            sides = [f.only(keep) if isinstance(f, FeatureSide) else f for f in state.factors]
            components = [Implicit(columns, variances, sides, index, [], noise, signal, signal)]
    selected = [kept.copy() for kept in state.kept]
    if data.index is not None:
        selected = [np.zeros(D, dtype=bool) for D in whole.widths]
        for mask, columns_in in zip(selected, index, strict=True):
            mask[columns_in] = True
    return from_mixture(
        Mixture(components, weights, whole.widths, loadings),
        state.V,
        selected=selected,
        spaces=["sample" if data.X is None else "feature"] * len(index),
        sparsity=shape,
        elbo=run.elbo,
        converged=run.converged,
        history=run.history,
        **record,
    )
