"""What a fit leaves behind, in one form for every way of fitting.

`fit_auto`, `fit_shape` and `fit_mean_field` take prepared views and a likelihood and return a
`Fitted`: a posterior that predicts, masks of what was kept, and the record of the fit. All weights
are on the standardised scale; the estimators turn them into the units of the input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from baldur.inference.active import WIDE, Active, run_active
from baldur.inference.fixed_prior import Outputs
from baldur.inference.mixture import Index, Loadings, Member, Mixture, gather
from baldur.inference.prune import view_factor_signal
from baldur.inference.run import Run, Watcher, iterate, run_structured
from baldur.inference.screening import Problem
from baldur.inference.sparsity import DENSE, Choice, Fold, settle_sparsity
from baldur.inference.starts import flat_state
from baldur.inference.wide_outputs import DENSE_BYTES, WideOutputs
from baldur.model.likelihood import Likelihood
from baldur.model.priors import GammaPrior, Priors, sparsity_prior
from baldur.model.structured.state import INTERCEPT_VAR, Data
from baldur.model.structured.weights import FeatureSide, SampleSide
from baldur.views.products import PreparedView

Array = NDArray[np.float64]
Moments = list[tuple[Array, Array]]
Views = Sequence[PreparedView]

MANY_SAMPLES = 1000
"""Samples from which `fit_shape` leaves BLAS as many threads as it has."""


@dataclass
class Fitted:
    """A fitted posterior.

    Attributes
    ----------
    latent, moments : functions of prepared views: factors, and linear predictors
    selected : list of (D_m,) bool arrays
    inclusion : list of (D_m,) arrays or None, probability that each feature is in
    coef, coef_std : lists of (C, D_m)
    intercept : (C,)
    signal : (M, K), variance that each view gives each factor
    V : (C, K)
    spaces : list of str per view
    sparsity : what was settled: a shape, or the share in per view
    path : list of records, or empty
    elbo, history, converged : the record of the fit
    """

    latent: Callable[[Views], Moments]
    moments: Callable[[Views], Moments]
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
    history: list[dict[str, Any]]
    path: list[dict[str, Any]] = field(default_factory=list)
    inclusion: list[Array] | None = None


def from_mixture(mixture: Mixture, widths: Sequence[int], V: Array, **record: Any) -> Fitted:
    """Return the full-width answer of a mixture."""
    w, std, b = mixture.weights()
    edges = np.concatenate([[0], np.cumsum([len(i) for i in mixture.index])])
    coef, coef_std, selected = [], [], []
    for m, D in enumerate(widths):
        here = slice(edges[m], edges[m + 1])
        full, full_std, mask = np.zeros((len(w), D)), np.zeros((len(w), D)), np.zeros(D, bool)
        full[:, mixture.index[m]] = w[:, here]
        full_std[:, mixture.index[m]] = std[:, here]
        mask[mixture.index[m]] = True
        coef.append(full)
        coef_std.append(full_std)
        selected.append(mask)
    return Fitted(
        latent=mixture.latent,
        moments=mixture.moments,
        selected=selected,
        coef=coef,
        coef_std=coef_std,
        intercept=b,
        signal=mixture.signal(),
        V=V,
        **record,
    )


def fit_auto(
    problem: Problem,
    T: Array,
    folds: Sequence[Fold],
    *,
    n_jobs: int | None,
    max_iter: int,
    watch: Watcher | None = None,
) -> tuple[Fitted, Choice]:
    """Fit with ``sparsity="auto"``: factors are the outputs."""
    choice = settle_sparsity(problem, T, folds, n_jobs, max_iter, watch)
    widths = [view.shape[1] for view in problem.views]
    first = choice.mixture.members[0].outputs
    side = "sample" if isinstance(first.sides[0], SampleSide) else "feature"
    runs = choice.reference.inclusions
    dense, whole = choice.kept is not None and choice.kept >= DENSE, choice.reference.everything
    share = np.mean([run.pi for run in runs], axis=0)
    rho = np.mean([run.rho for run in runs], axis=0)
    edges = np.concatenate([[0], np.cumsum([len(i) for i in choice.reference.index])])
    inclusion = []
    for m, D in enumerate(widths):
        full = np.zeros(D)
        full[choice.reference.index[m]] = rho[edges[m] : edges[m + 1]]
        inclusion.append(full)
    histories = [run.history for run in runs] + [whole.history]
    history = [
        {"event": f"posterior {number}", **record}
        for number, records in enumerate(histories, start=1)
        for record in records
    ]
    fitted = from_mixture(
        choice.mixture,
        widths,
        np.eye(problem.likelihood.n_outputs),
        spaces=[side] * len(widths),
        sparsity=share,
        elbo=float(np.mean([member.bound for member in choice.mixture.members])),
        converged=all(run.converged for run in runs) and (not dense or whole.converged),
        history=history,
        path=choice.path,
        inclusion=inclusion,
    )
    return fitted, choice


def structured_data(views: Views, likelihood: Likelihood, shape: float) -> Data:
    """Choose the side by size: features if all of them are no more than the samples."""
    N, D = views[0].shape[0], sum(view.shape[1] for view in views)
    X = np.concatenate([view.dense() for view in views], axis=1) if D <= N else None
    priors = Priors(gamma=sparsity_prior(shape), omega=GammaPrior(0.5, 0.5))
    return Data(list(views), likelihood, priors, X)


def starting_loadings(eta: Array, n_factors: int) -> Array:
    """Return V (C, K) spanning the leading directions of the linear predictors (N, C)."""
    eta = eta - eta.mean(axis=0)
    _, values, rows = np.linalg.svd(eta, full_matrices=False)
    K = min(n_factors, len(values))
    V = rows[:K].T * np.sqrt(values[:K] / max(values[0], 1e-12))
    # The sign of a singular vector is arbitrary; fix it so that runs and machines agree.
    largest = np.abs(V).argmax(axis=0)
    return V * np.where(V[largest, np.arange(K)] < 0, -1.0, 1.0)


def fit_shape(
    views: Views,
    likelihood: Likelihood,
    *,
    shape: float,
    n_factors: int | None,
    max_iter: int,
    tol: float,
    prune: bool,
    watch: Watcher | None = None,
) -> Fitted:
    """Fit the structured family under one prior shape Gamma(a, a).

    With `n_factors` None there is one factor per output and V = I; otherwise V is learned.
    """
    options: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "prune": prune, "watch": watch}
    # Small matrices gain nothing from threads of BLAS and lose much when cores are busy.
    with threadpool_limits(limits=1 if views[0].shape[0] < MANY_SAMPLES else None):
        return from_run(_run_shape(views, likelihood, shape, n_factors, options), shape)


def _run_shape(
    views: Views,
    likelihood: Likelihood,
    shape: float,
    n_factors: int | None,
    options: dict[str, Any],
) -> Run:
    data = structured_data(views, likelihood, shape)
    active = Active.screen(data) if np.isfinite(shape) and sum(data.widths) > WIDE else None
    V = None
    if n_factors is not None and likelihood.n_outputs > 1:
        part = data if active is None else active.data
        flat = flat_state(data) if active is None else active.starts(None)[0]
        rough = iterate(part, flat, max_iter=10, tol=1e-3)
        V = starting_loadings(rough.state.latent()[0] @ rough.state.V.T, n_factors)
    if active is None:
        return run_structured(data, V=V, **options)
    return run_active(active, V=V, **options)


def from_run(run: Run, shape: Any, **record: Any) -> Fitted:
    """Return the full-width answer of a structured run."""
    data, state = run.data, run.state
    kept_at: Index = [np.flatnonzero(kept) for kept in state.kept]
    index = kept_at
    K = state.n_factors
    loadings = None
    if state.learn_loadings or state.learn_intercepts:
        loadings = Loadings(state.V, state.V_cov, state.b, state.b_var)
    intercept_var = 0.0 if state.learn_intercepts else INTERCEPT_VAR
    s = [np.stack([state.prior_variance(m, k) for k in range(K)]) for m in range(len(index))]
    outputs: Outputs | WideOutputs
    total = sum(len(i) for i in index)
    if data.X is None and total * data.n_samples * 8 > DENSE_BYTES:
        sides = [side for side in state.factors if isinstance(side, SampleSide)]
        index = [np.arange(D) for D in data.widths]
        outputs = WideOutputs(data.views, s, sides, intercept_var)
    else:
        X = gather(data.views, kept_at)
        kept_s = np.concatenate([part[:, i] for part, i in zip(s, kept_at, strict=True)], axis=1)
        if data.index is not None:
            index = [of[i] for of, i in zip(data.index, kept_at, strict=True)]
        sides_kept = list(state.factors)
        if data.X is not None:
            keep = np.concatenate(state.kept)
            sides_kept = [
                side.only(keep) if isinstance(side, FeatureSide) else side for side in sides_kept
            ]
        outputs = Outputs(X, kept_s, state.sites, sides_kept, state.extra)
        outputs.intercept_var = intercept_var
    member = Member(outputs, view_factor_signal(data, state), loadings)
    whole = data if data.whole is None else data.whole
    fitted = from_mixture(
        Mixture(index, [member]),
        whole.widths,
        state.V,
        spaces=["sample" if data.X is None else "feature"] * len(index),
        sparsity=shape,
        elbo=run.elbo,
        converged=run.converged,
        history=run.history,
        **record,
    )
    if data.whole is None:  # a kept feature whose weight is zero is kept all the same
        fitted.selected = [kept.copy() for kept in state.kept]
    return fitted
